//! A runtime whose connections can be held up, and whose clock can jump ahead: for a server that does not answer, or does not
//! read, and for a machine that was suspended.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use futures_io::{AsyncRead, AsyncWrite};

use crate::Runtime;

/// While it is held, nothing goes out through it, and nothing comes in: no byte, and no end of a connection.
#[derive(Debug, Default)]
pub struct Gate {
    held: Mutex<Option<Held>>,
}

/// What waits for a gate to be opened.
#[derive(Default)]
struct Held {
    waiting: Vec<Waker>,
    /// Connections that we have ended, which the other end must not see yet.
    ended: Vec<Box<dyn Any + Send>>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waiting, {} ended", self.waiting.len(), self.ended.len())
    }
}

impl Gate {
    pub fn hold(&self) {
        self.held.lock().unwrap().get_or_insert_default();
    }

    pub fn release(&self) {
        let held = self.held.lock().unwrap().take().unwrap_or_default();
        held.waiting.into_iter().for_each(Waker::wake);
    }

    fn is_held(&self) -> bool {
        self.held.lock().unwrap().is_some()
    }

    /// Ends a connection, once it is open.
    fn end(&self, connection: impl Send + 'static) {
        if let Some(held) = &mut *self.held.lock().unwrap() {
            held.ended.push(Box::new(connection));
        }
    }

    fn pass(&self, context: &Context<'_>) -> Poll<()> {
        let mut held = self.held.lock().unwrap();
        let Some(Held { waiting, .. }) = &mut *held else { return Poll::Ready(()) };
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Another runtime, all connections through one gate.
#[derive(Clone, Debug)]
pub struct Gated<R> {
    pub gate: Arc<Gate>,
    inner: R,
    /// For how long its machine was suspended, in milliseconds.
    suspended: Arc<AtomicU64>,
}

impl<R> Gated<R> {
    pub fn new(inner: R) -> Self {
        Self { gate: Arc::default(), inner, suspended: Arc::default() }
    }

    /// Its machine was suspended: timers have stood still, and the clock shows so much more.
    pub fn was_suspended(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap();
        self.suspended.fetch_add(millis, Ordering::SeqCst);
    }

    fn behind<S: Send + 'static>(&self, inner: S) -> Behind<S> {
        Behind { gate: Arc::clone(&self.gate), inner: Some(inner) }
    }
}

/// A connection behind a gate.
#[expect(unnameable_types, reason = "nobody names it")]
#[derive(Debug)]
pub struct Behind<S: Send + 'static> {
    gate: Arc<Gate>,
    /// Until the end.
    inner: Option<S>,
}

impl<S: Send + Unpin + 'static> Behind<S> {
    fn inner(&mut self) -> Pin<&mut S> {
        Pin::new(self.inner.as_mut().expect("taken at its end only"))
    }
}

impl<S: Send + 'static> Drop for Behind<S> {
    fn drop(&mut self) {
        self.gate.end(self.inner.take());
    }
}

impl<R: Runtime> Runtime for Gated<R> {
    type Stream = Behind<R::Stream>;
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
        Ok((self.behind(stream), remote))
    }

    fn local_addr(&self, of: &R::Listener) -> io::Result<SocketAddr> {
        self.inner.local_addr(of)
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        Ok(self.behind(self.inner.dial(to).await?))
    }

    fn now(&self) -> Instant {
        self.inner.now() + Duration::from_millis(self.suspended.load(Ordering::SeqCst))
    }
}

impl<S: AsyncRead + Send + Unpin + 'static> AsyncRead for Behind<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.gate.pass(context));
        self.inner().poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Send + Unpin + 'static> AsyncWrite for Behind<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.gate.pass(context));
        self.inner().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The side that ends a connection does not wait until the other end has seen it.
        if self.gate.is_held() {
            return Poll::Ready(Ok(()));
        }
        self.inner().poll_close(context)
    }
}
