#![doc = include_str!("../README.md")]
//!
//! ZooKeeper's leader election and atomic broadcast, embedded in an async-std program:
//!
//! ```no_run
//! use quorate_async_std::zoo_cfg::ZooCfg;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! async_std::task::block_on(async {
//!     let server = quorate_async_std::start(ZooCfg::read("/etc/zookeeper/zoo.cfg")?).await?;
//!     println!("the leader, and its epoch: {:?}", server.leaders().led().await);
//!     Ok(server.shutdown().await?)
//! })
//! # }
//! ```
//!
//! This crate is [`AsyncStd`], an implementation of [`Runtime`], and a few names. All the rest is in
//! `quorate-driver`, the same for every runtime.
#![forbid(unsafe_code, unused_must_use)]

use std::future::Future;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_std::io::{self, Read, Write};
use async_std::net::{TcpListener, TcpStream};
use async_std::task;

quorate_driver::embed!(AsyncStd);

#[doc(no_inline)]
pub use async_std::task::block_on;

/// async-std, as the driver sees it: its one executor.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncStd;

impl Runtime for AsyncStd {
    type Stream = Stream;
    type Listener = TcpListener;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Detached: the driver ends its tasks by itself.
        drop(task::spawn(task));
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        task::sleep(duration)
    }

    async fn listen(&self, at: SocketAddr) -> io::Result<TcpListener> {
        // Through the standard library, which sets SO_REUSEADDR where it means what we mean.
        let listener = TcpListener::bind(at).await?;
        // With a shorter queue it works, too.
        drop(quorate_driver::lengthen_queue(&listener));
        Ok(listener)
    }

    async fn accept(&self, on: &TcpListener) -> io::Result<(Stream, SocketAddr)> {
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

    fn relax(&self, stream: &Stream, keep_alive: bool) {
        // It works with them, too.
        drop(quorate_driver::tune_for_client(&stream.0, keep_alive));
    }

    fn ends(&self, stream: &Stream) -> Option<(SocketAddr, SocketAddr)> {
        quorate_driver::ends(&stream.0)
    }

    fn reset(&self, stream: Stream) {
        // It ends in order if it cannot be told to.
        drop(quorate_driver::reset_on_close(&stream.0));
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<Stream> {
        Ok(tuned(TcpStream::connect(to).await?))
    }
}

fn tuned(stream: TcpStream) -> Stream {
    // A connection without these options is better than none.
    drop(quorate_driver::tune(&stream));
    Stream(stream)
}

/// async-std's own, but that closing it says so to the peer.
#[derive(Debug)]
pub struct Stream(TcpStream);

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is buffered. async-std does nothing here, until it is dropped.
        Poll::Ready(self.0.shutdown(Shutdown::Write))
    }
}
