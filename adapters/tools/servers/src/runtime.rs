//! The async runtimes that servers can run on where a command line chooses one: a table with one row each.
//!
//! Everything else is generic over it: what has to run on the chosen runtime is a [`WithRuntime`], and
//! [`Kind::dispatch`] hands it the runtime of that row. A runtime that is deleted takes its row with it.

use std::future::Future;
use std::io;
use std::pin::Pin;

use clap::ValueEnum;
use quorate_driver::Runtime;

/// Something that is written once and runs on any runtime.
pub trait WithRuntime {
    /// What it returns.
    type Output;

    /// Runs with this runtime, whose threads run `block_on`.
    fn with<R: Runtime>(self, runtime: R, block_on: BlockOn) -> Self::Output;
}

/// Runs work on the calling thread until it is done.
pub type BlockOn = fn(Work) -> io::Result<()>;
/// What one thread does, and nothing beside it.
pub type Work = Pin<Box<dyn Future<Output = ()>>>;

/// The row of a runtime: its name on a command line, the runtime, what its threads run, and the environment variable
/// that bounds its threads if it has several without.
macro_rules! runtimes {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($cfg:meta)])?
        $kind:ident: $name:literal, $runtime:expr, $block_on:expr, $threads:expr;
    )*) => {
        /// What runs servers. Others than tokio are there if built with `--features runtimes`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub enum Kind {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? #[value(name = $name)] $kind,)*
        }

        impl Kind {
            /// As it is said on a command line.
            pub const fn name(self) -> &'static str {
                match self { $($(#[cfg($cfg)])? Self::$kind => $name,)* }
            }

            /// The environment variable that says how many threads it has, if it takes more than one by itself.
            pub const fn threads(self) -> Option<&'static str> {
                match self { $($(#[cfg($cfg)])? Self::$kind => $threads,)* }
            }

            /// Runs work with this runtime.
            pub fn dispatch<W: WithRuntime>(self, work: W) -> W::Output {
                match self { $($(#[cfg($cfg)])? Self::$kind => work.with($runtime, $block_on),)* }
            }
        }
    };
}

runtimes! {
    /// One thread for each server.
    Tokio: "tokio", quorate_tokio::Tokio, on_tokio, None;
    /// As many threads as `SMOL_THREADS` says, or one.
    #[cfg(feature = "smol")]
    Smol: "smol", quorate_smol::Smol, |work| { quorate_smol::block_on(work); Ok(()) }, None;
    /// As many threads as `ASYNC_STD_THREAD_COUNT` says, or one, as on smol.
    #[cfg(feature = "async-std")]
    AsyncStd: "async-std", quorate_async_std::AsyncStd, |work| { quorate_async_std::block_on(work); Ok(()) }, Some("ASYNC_STD_THREAD_COUNT");
}

/// Runs work and what it spawns with tokio on the calling thread, until the work is done. Boxed, so that the loop of the
/// runtime is there once.
///
/// # Errors
///
/// If the system refuses what a runtime needs, such as descriptors.
pub fn on_tokio(work: Pin<Box<dyn Future<Output = ()> + '_>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work);
    // A name that is still being looked up must not keep the process.
    runtime.shutdown_background();
    Ok(())
}
