//! Where a scenario is played: the runtimes, tasks on them, and waiting with an end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use async_channel::{Receiver, bounded};
use futures_lite::future::{or, yield_now};

use super::deaf::Deaf;
use super::gated::Gated;
use super::witnessed::Witnessed;
use crate::Runtime;

/// The runtimes of a scenario. The servers of an ensemble run on them in turn; it runs on the first.
#[derive(Clone, Debug)]
pub struct Stage<R> {
    runtimes: Vec<R>,
}

/// Something that was spawned.
#[derive(Debug)]
pub struct Task<T> {
    outcome: Receiver<T>,
}

impl<T> Task<T> {
    /// Waits for what comes of it.
    pub async fn join(self) -> T {
        self.outcome.recv().await.expect("a task has panicked")
    }
}

impl<R: Runtime> Stage<R> {
    pub fn new(runtimes: impl IntoIterator<Item = R>) -> Self {
        Self { runtimes: runtimes.into_iter().collect() }
    }

    /// The one of the nth server.
    pub fn runtime(&self, nth: usize) -> &R {
        &self.runtimes[nth % self.runtimes.len()]
    }

    /// The same runtimes, with a gate for each of so many servers.
    pub fn gated(&self, servers: usize) -> Stage<Gated<R>> {
        Stage::new((0..servers).map(|nth| Gated::new(self.runtime(nth).clone())))
    }

    /// The same runtimes, one for each of so many servers, whose ports can be made to accept nothing.
    pub fn deaf(&self, servers: usize) -> Stage<Deaf<R>> {
        Stage::new((0..servers).map(|nth| Deaf::new(self.runtime(nth).clone())))
    }

    /// The same runtimes, one for each of so many servers, with a witness to the ends of its connections.
    pub fn witnessed(&self, servers: usize) -> Stage<Witnessed<R>> {
        Stage::new((0..servers).map(|nth| Witnessed::new(self.runtime(nth).clone())))
    }

    /// Waits for what must happen soon.
    pub async fn within<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let late = async {
            self.runtime(0).sleep(PATIENCE).await;
            panic!("{what}: nothing in {PATIENCE:?}");
        };
        or(work, late).await
    }

    /// Waits for something that can only be looked at.
    pub async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        self.within(what, async {
            while !holds() {
                // Neither an event nor a measurement: only so that others have the processor meanwhile.
                self.runtime(0).sleep(GLANCE).await;
            }
        })
        .await;
    }

    /// Runs a task beside the scenario.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let (done, outcome) = bounded(1);
        self.runtime(0).spawn(async move {
            // Perhaps no caller waits for it.
            drop(done.try_send(work.await));
        });
        Task { outcome }
    }

    /// Waits for all of them.
    pub async fn join_all<T>(&self, what: &str, tasks: Vec<Task<T>>) -> Vec<T> {
        self.within(what, async {
            let mut outcomes = Vec::new();
            for task in tasks {
                outcomes.push(task.join().await);
            }
            outcomes
        })
        .await
    }

    /// Lets the others run for a moment.
    pub async fn pass(&self) {
        yield_now().await;
    }
}

/// What comes of work that is polled so often at most.
pub(crate) async fn polled<T>(times: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut left) = (pin!(work), times);
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match work.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at what notifies no waiter.
const GLANCE: Duration = Duration::from_millis(1);
