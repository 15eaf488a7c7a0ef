//! ZooKeeper's leader election and atomic broadcast, embedded in a tokio program.
//!
//! # Replicating a state machine
//!
//! A [`StateMachine`] says what a command does; the rest is done here. Each server has a copy, and
//! commands are applied to all of them in the same order, as soon as a quorum has them on disk:
//!
//! ```no_run
//! # use quorate_tokio::core::zxid::Zxid;
//! # #[derive(Default)] struct Register;
//! # impl quorate_tokio::StateMachine for Register {
//! #     type State = ();
//! #     fn apply(&mut self, _: Zxid, _: &[u8]) -> bytes::Bytes { bytes::Bytes::new() }
//! #     fn save(&self) {}
//! #     fn load(&mut self, (): ()) {}
//! #     fn write((): ()) -> impl Iterator<Item = bytes::Bytes> + Send { std::iter::empty() }
//! #     fn read((): &mut (), _: &[u8]) -> Result<(), quorate_tokio::RestoreError> { Ok(()) }
//! # }
//! # async fn example(config: quorate_tokio::ServerConfig) -> Result<(), Box<dyn std::error::Error>> {
//! use quorate_tokio::{Replicated, start_with};
//!
//! let server = start_with(config, Replicated::new("register", Register::default())).await?;
//! let written = server.propose("x = 1").await?; // on disk at a quorum, and applied here
//! server.read(|register| { /* sees it, and whatever was written elsewhere before */ }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The example `replicated_register` has the whole of it.
//!
//! # Electing a leader, and nothing else
//!
//! Three servers in one process; each would usually have a machine of its own, and its configuration
//! from a `zoo.cfg` (see [`start`]):
//!
//! ```
//! use quorate_tokio::{ServerConfig, start};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let mut servers = Vec::new();
//! for id in [1, 2, 3] {
//!     let config = ServerConfig::builder(id, dir.path().join(id.to_string()))
//!         .voter(1, "127.0.0.1:12881:13881")
//!         .voter(2, "127.0.0.1:12882:13882")
//!         .voter(3, "127.0.0.1:12883:13883")
//!         .build()?;
//!     servers.push(start(config).await?);
//! }
//! let mut leaders = servers[0].leaders();
//! while let Some(leader) = leaders.next().await {
//!     let Some((id, epoch)) = leader else { continue };
//!     println!("server {id} leads in epoch {epoch}");
//!     # break;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This crate is [`Tokio`], an implementation of [`Runtime`], and a few names; all the rest is in
//! `quorate-driver`, the same for every runtime. It needs tokio's I/O and time drivers
//! (`enable_all`), and works on the current-thread runtime as on the multi-threaded one.
#![forbid(unsafe_code, unused_must_use)]

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};

pub use crate::connection::Connection;

mod connection;

quorate_driver::embed!(Tokio);

/// The program of the package's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;

/// tokio, as the driver sees it: the runtime in whose context it is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

impl Runtime for Tokio {
    type Stream = Connection;
    type Listener = TcpListener;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Detached: the driver ends its tasks by itself.
        drop(tokio::spawn(task));
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }

    async fn listen(&self, at: SocketAddr) -> io::Result<TcpListener> {
        let listener = TcpListener::bind(at).await?;
        // With a shorter queue it works, too.
        drop(quorate_driver::lengthen_queue(&listener));
        Ok(listener)
    }

    async fn accept(&self, on: &TcpListener) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, remote) = on.accept().await?;
        Ok((tuned(stream), remote))
    }

    fn local_addr(&self, of: &TcpListener) -> io::Result<SocketAddr> {
        of.local_addr()
    }

    fn limit(&self, listener: &TcpListener, waiting_max: u32) {
        // With a longer queue it works, too.
        drop(quorate_driver::limit_queue(listener, waiting_max));
    }

    fn relax(&self, stream: &Self::Stream, keep_alive: bool) {
        // It works with them, too.
        drop(quorate_driver::tune_for_client(&stream.0, keep_alive));
    }

    fn ends(&self, stream: &Self::Stream) -> Option<(SocketAddr, SocketAddr)> {
        quorate_driver::ends(&stream.0)
    }

    fn reset(&self, stream: Self::Stream) {
        // It ends in order if it cannot be told to.
        drop(quorate_driver::reset_on_close(&stream.0));
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        Ok(tuned(TcpStream::connect(to).await?))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std() + quorate_driver::boot_time::suspended()
    }
}

fn tuned(stream: TcpStream) -> Connection {
    // A connection without these options is better than none.
    drop(quorate_driver::tune(&stream));
    Connection(stream)
}

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
struct Readme;
