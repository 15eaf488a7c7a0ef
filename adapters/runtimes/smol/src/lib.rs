//! ZooKeeper's leader election and atomic broadcast, embedded in a smol program.
//!
//! ```no_run
//! use quorate_smol::zoo_cfg::ZooCfg;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! smol::block_on(async {
//!     let server = quorate_smol::start(ZooCfg::read("/etc/zookeeper/zoo.cfg")?).await?;
//!     println!("the leader, and its epoch: {:?}", server.leaders().led().await);
//!     Ok(server.shutdown().await?)
//! })
//! # }
//! ```
//!
//! This crate is [`Smol`], an implementation of [`Runtime`], and a few names. All the rest is in
//! `quorate-driver`, the same for every runtime: what [`Server`](quorate_driver::Server) does, how a
//! [`StateMachine`] is replicated, what is bounded.
//!
//! A server's tasks run on smol's global executor, which has one thread, or as many as the environment
//! variable `SMOL_THREADS` says. Its handles may be used on any executor.
#![forbid(unsafe_code, unused_must_use)]

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use smol::Timer;
use smol::net::{TcpListener, TcpStream};

quorate_driver::embed!(Smol);

#[doc(no_inline)]
pub use smol::block_on;

/// smol, as the driver sees it: the global executor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smol;

impl Runtime for Smol {
    type Stream = TcpStream;
    type Listener = TcpListener;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The driver ends its tasks by itself.
        smol::spawn(task).detach();
    }

    async fn sleep(&self, duration: Duration) {
        Timer::after(duration).await;
    }

    async fn listen(&self, at: SocketAddr) -> io::Result<TcpListener> {
        // Through the standard library, which sets SO_REUSEADDR where it means what we mean.
        let listener = TcpListener::bind(at).await?;
        // With a shorter queue it works, too.
        drop(quorate_driver::lengthen_queue(&listener));
        Ok(listener)
    }

    async fn accept(&self, on: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
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

    fn relax(&self, stream: &TcpStream, keep_alive: bool) {
        // It works with them, too.
        drop(quorate_driver::tune_for_client(stream, keep_alive));
    }

    fn ends(&self, stream: &TcpStream) -> Option<(SocketAddr, SocketAddr)> {
        quorate_driver::ends(stream)
    }

    fn reset(&self, stream: TcpStream) {
        // It ends in order if it cannot be told to.
        drop(quorate_driver::reset_on_close(&stream));
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<TcpStream> {
        Ok(tuned(TcpStream::connect(to).await?))
    }
}

fn tuned(stream: TcpStream) -> TcpStream {
    // A connection without these options is better than none.
    drop(quorate_driver::tune(&stream));
    stream
}

/// The examples of the package's README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
