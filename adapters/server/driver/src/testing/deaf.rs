//! A runtime whose ports can be made to accept nothing.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_lite::future::or;

use crate::Runtime;

/// Why a port accepts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deafness {
    /// No descriptor is left (EMFILE); that may pass.
    OutOfDescriptors,
    /// The socket is broken for good; a new one is well.
    Broken,
}

/// Which ports accept nothing.
#[derive(Debug, Default)]
pub struct Ears {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By port; sockets that were opened later than the number says are well.
    deaf: BTreeMap<u16, (Deafness, u64)>,
    opened: u64,
    /// How many may wait at which port, as it was said.
    limits: Vec<(u16, u32)>,
    waiting: Vec<Waker>,
}

impl Ears {
    /// Lets a port accept nothing more.
    pub fn stop(&self, port: u16, deafness: Deafness) {
        let mut state = self.state.lock().unwrap();
        let before = if deafness == Deafness::Broken { state.opened } else { u64::MAX };
        state.deaf.insert(port, (deafness, before));
        std::mem::take(&mut state.waiting).into_iter().for_each(Waker::wake);
    }

    /// Lets a port accept again.
    pub fn open(&self, port: u16) {
        self.state.lock().unwrap().deaf.remove(&port);
    }

    /// How many may wait at which port to be accepted, each time that it was said.
    pub fn limits(&self) -> Vec<(u16, u32)> {
        self.state.lock().unwrap().limits.clone()
    }

    fn fails(&self, port: u16, number: u64, context: &Context<'_>) -> Poll<io::Error> {
        let mut state = self.state.lock().unwrap();
        match state.deaf.get(&port).filter(|(_, before)| number <= *before) {
            Some((Deafness::OutOfDescriptors, _)) => Poll::Ready(io::Error::from_raw_os_error(24)),
            Some((Deafness::Broken, _)) => Poll::Ready(io::Error::from_raw_os_error(9)),
            None => {
                state.waiting.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Another runtime, with such ports.
#[derive(Clone, Debug)]
pub struct Deaf<R> {
    pub ears: Arc<Ears>,
    inner: R,
}

impl<R> Deaf<R> {
    pub fn new(inner: R) -> Self {
        Self { ears: Arc::default(), inner }
    }
}

/// A socket that listens, or does not.
#[expect(unnameable_types, reason = "nobody names it")]
#[derive(Debug)]
pub struct Ear<L> {
    inner: L,
    port: u16,
    number: u64,
}

impl<R: Runtime> Runtime for Deaf<R> {
    type Stream = R::Stream;
    type Listener = Ear<R::Listener>;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.inner.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        self.inner.sleep(duration)
    }

    async fn listen(&self, at: SocketAddr) -> io::Result<Self::Listener> {
        let inner = self.inner.listen(at).await?;
        let mut state = self.ears.state.lock().unwrap();
        state.opened += 1;
        Ok(Ear { inner, port: at.port(), number: state.opened })
    }

    async fn accept(&self, on: &Self::Listener) -> io::Result<(Self::Stream, SocketAddr)> {
        let failed = poll_fn(|context| self.ears.fails(on.port, on.number, context));
        or(async { Err(failed.await) }, self.inner.accept(&on.inner)).await
    }

    fn local_addr(&self, of: &Self::Listener) -> io::Result<SocketAddr> {
        self.inner.local_addr(&of.inner)
    }

    fn limit(&self, listener: &Self::Listener, waiting_max: u32) {
        self.ears.state.lock().unwrap().limits.push((listener.port, waiting_max));
        self.inner.limit(&listener.inner, waiting_max);
    }

    fn relax(&self, stream: &R::Stream, keep_alive: bool) {
        self.inner.relax(stream, keep_alive);
    }

    fn reset(&self, stream: R::Stream) {
        self.inner.reset(stream);
    }

    fn dial(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        self.inner.dial(to)
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }
}
