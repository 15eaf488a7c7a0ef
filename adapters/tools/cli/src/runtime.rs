//! Which async runtime servers run on, where that can be chosen.

use clap::ValueEnum;

/// What runs servers. Others than tokio are there if built with `--features runtimes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// One thread for each server.
    #[default]
    Tokio,
    /// As many threads as `SMOL_THREADS` says, or one.
    #[cfg(feature = "runtimes")]
    Smol,
    /// As many threads as `ASYNC_STD_THREAD_COUNT` says, or one, as on smol.
    #[cfg(feature = "runtimes")]
    AsyncStd,
}

impl Kind {
    /// As it is said on a command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            #[cfg(feature = "runtimes")]
            Self::Smol => "smol",
            #[cfg(feature = "runtimes")]
            Self::AsyncStd => "async-std",
        }
    }
}

/// How many threads async-std has; one for each processor if nothing is said.
#[cfg(feature = "runtimes")]
pub(crate) const ASYNC_STD_THREADS: &str = "ASYNC_STD_THREAD_COUNT";
