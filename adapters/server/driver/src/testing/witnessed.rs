//! A runtime with a witness to the end of each connection: whether work that only a leader may do was still let in.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_io::{AsyncRead, AsyncWrite};

use crate::Runtime;

/// Looks at a guard whenever a connection ends.
#[derive(Default)]
pub struct Witness {
    seen: Mutex<Seen>,
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ended and too early", self.saw())
    }
}

#[derive(Default)]
struct Seen {
    holds: Option<Box<dyn Fn() -> bool + Send>>,
    ended: usize,
    too_early: usize,
}

impl Witness {
    /// Looks from now on whether this holds: that a guard is good.
    pub fn watch(&self, holds: impl Fn() -> bool + Send + 'static) {
        self.seen.lock().unwrap().holds = Some(Box::new(holds));
    }

    /// How many connections have ended since, and how many of them before the guard was revoked.
    pub fn saw(&self) -> (usize, usize) {
        let seen = self.seen.lock().unwrap();
        (seen.ended, seen.too_early)
    }

    fn note(&self) {
        let mut seen = self.seen.lock().unwrap();
        let Some(held) = seen.holds.as_ref().map(|holds| holds()) else { return };
        seen.ended += 1;
        seen.too_early += usize::from(held);
    }
}

/// Another runtime, with a witness.
#[derive(Clone, Debug)]
pub struct Witnessed<R> {
    pub witness: Arc<Witness>,
    inner: R,
}

impl<R> Witnessed<R> {
    pub fn new(inner: R) -> Self {
        Self { witness: Arc::default(), inner }
    }

    /// The runtime itself.
    pub const fn inner(&self) -> &R {
        &self.inner
    }

    fn before<S>(&self, inner: S) -> Seeing<S> {
        Seeing { witness: Arc::clone(&self.witness), inner }
    }
}

/// A connection before a witness.
#[expect(unnameable_types, reason = "nobody names it")]
#[derive(Debug)]
pub struct Seeing<S> {
    witness: Arc<Witness>,
    inner: S,
}

impl<S> Drop for Seeing<S> {
    fn drop(&mut self) {
        self.witness.note();
    }
}

impl<R: Runtime> Runtime for Witnessed<R> {
    type Stream = Seeing<R::Stream>;
    type Listener = R::Listener;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        self.inner.sleep(duration)
    }

    fn listen(&self, at: SocketAddr) -> impl Future<Output = io::Result<R::Listener>> + Send {
        self.inner.listen(at)
    }

    async fn accept(&self, on: &R::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, remote) = self.inner.accept(on).await?;
        Ok((self.before(stream), remote))
    }

    fn local_addr(&self, of: &R::Listener) -> io::Result<SocketAddr> {
        self.inner.local_addr(of)
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        Ok(self.before(self.inner.dial(to).await?))
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Seeing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Seeing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}
