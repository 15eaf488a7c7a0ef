//! Several runtimes as one type, so that one ensemble can hold servers of each.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_io::{AsyncRead, AsyncWrite};

use crate::Runtime;

/// Any runtime. All must be at home where a scenario runs: tokio in a task of its own, the others
/// everywhere.
#[derive(Clone)]
pub struct AnyRuntime(Arc<dyn Erased>);

impl AnyRuntime {
    pub fn new(runtime: impl Runtime) -> Self {
        Self(Arc::new(runtime))
    }
}

impl fmt::Debug for AnyRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyRuntime").finish_non_exhaustive()
    }
}

/// A connection of any runtime.
#[expect(unnameable_types, reason = "nobody names it")]
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Connection for S {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Stream = Box<dyn Connection>;
type Listener = Box<dyn Any + Send + Sync>;

trait Erased: Send + Sync {
    fn spawn(&self, task: Boxed<'static, ()>);
    fn sleep(&self, duration: Duration) -> Boxed<'_, ()>;
    fn listen(&self, at: SocketAddr) -> Boxed<'_, io::Result<Listener>>;
    fn accept<'a>(&'a self, on: &'a Listener) -> Boxed<'a, io::Result<(Stream, SocketAddr)>>;
    fn local_addr(&self, of: &Listener) -> io::Result<SocketAddr>;
    fn limit(&self, listener: &Listener, waiting_max: u32);
    fn relax(&self, stream: &Stream, keep_alive: bool);
    fn ends(&self, stream: &Stream) -> Option<(SocketAddr, SocketAddr)>;
    fn reset(&self, stream: Stream);
    fn dial(&self, to: SocketAddr) -> Boxed<'_, io::Result<Stream>>;
    fn now(&self) -> Instant;
}

impl<R: Runtime> Erased for R {
    fn spawn(&self, task: Boxed<'static, ()>) {
        Runtime::spawn(self, task);
    }

    fn sleep(&self, duration: Duration) -> Boxed<'_, ()> {
        Box::pin(Runtime::sleep(self, duration))
    }

    fn listen(&self, at: SocketAddr) -> Boxed<'_, io::Result<Listener>> {
        Box::pin(async move { Ok(Box::new(Runtime::listen(self, at).await?) as Listener) })
    }

    fn accept<'a>(&'a self, on: &'a Listener) -> Boxed<'a, io::Result<(Stream, SocketAddr)>> {
        let on = on.downcast_ref::<R::Listener>().expect("a listener of the same runtime");
        Box::pin(async move {
            let (stream, remote) = Runtime::accept(self, on).await?;
            Ok((Box::new(stream) as Stream, remote))
        })
    }

    fn local_addr(&self, of: &Listener) -> io::Result<SocketAddr> {
        let of = of.downcast_ref::<R::Listener>().expect("a listener of the same runtime");
        Runtime::local_addr(self, of)
    }

    fn limit(&self, listener: &Listener, waiting_max: u32) {
        let listener = listener.downcast_ref::<R::Listener>();
        Runtime::limit(self, listener.expect("a listener of the same runtime"), waiting_max);
    }

    fn relax(&self, stream: &Stream, keep_alive: bool) {
        let stream = (**stream).as_any().downcast_ref::<R::Stream>();
        Runtime::relax(self, stream.expect("a connection of the same runtime"), keep_alive);
    }

    fn ends(&self, stream: &Stream) -> Option<(SocketAddr, SocketAddr)> {
        let stream = (**stream).as_any().downcast_ref::<R::Stream>();
        Runtime::ends(self, stream.expect("a connection of the same runtime"))
    }

    fn reset(&self, stream: Stream) {
        let stream = stream.into_any().downcast::<R::Stream>();
        Runtime::reset(self, *stream.expect("a connection of the same runtime"));
    }

    fn dial(&self, to: SocketAddr) -> Boxed<'_, io::Result<Stream>> {
        Box::pin(async move { Ok(Box::new(Runtime::dial(self, to).await?) as Stream) })
    }

    fn now(&self) -> Instant {
        Runtime::now(self)
    }
}

impl Runtime for AnyRuntime {
    type Stream = Stream;
    type Listener = Listener;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(Box::pin(task));
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        self.0.sleep(duration)
    }

    fn listen(&self, at: SocketAddr) -> impl Future<Output = io::Result<Listener>> + Send {
        self.0.listen(at)
    }

    async fn accept(&self, on: &Listener) -> io::Result<(Stream, SocketAddr)> {
        self.0.accept(on).await
    }

    fn local_addr(&self, of: &Listener) -> io::Result<SocketAddr> {
        self.0.local_addr(of)
    }

    fn limit(&self, listener: &Listener, waiting_max: u32) {
        self.0.limit(listener, waiting_max);
    }

    fn relax(&self, stream: &Stream, keep_alive: bool) {
        self.0.relax(stream, keep_alive);
    }

    fn ends(&self, stream: &Stream) -> Option<(SocketAddr, SocketAddr)> {
        self.0.ends(stream)
    }

    fn reset(&self, stream: Stream) {
        self.0.reset(stream);
    }

    fn dial(&self, to: SocketAddr) -> impl Future<Output = io::Result<Stream>> + Send {
        self.0.dial(to)
    }

    fn now(&self) -> Instant {
        self.0.now()
    }
}
