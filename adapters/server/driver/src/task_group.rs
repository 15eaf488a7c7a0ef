//! A group of tasks that ends as a whole.
//!
//! Every task of a server is spawned in a [`TaskGroup`]; the [`TaskGroupHandle`] ends all of them at their next step and
//! tells when the last one is gone, and with it its socket. So nothing outlives the server, without a runtime having to
//! know how to abort a task.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use async_channel::{Receiver, Sender, WeakSender, bounded};

use crate::runtime::Runtime;

/// Where tasks are spawned.
#[derive(Clone, Debug)]
pub(crate) struct TaskGroup<R> {
    pub(crate) runtime: R,
    stop: Receiver<Infallible>,
    /// Weak: a group without tasks is idle, although more could be spawned in it.
    alive: WeakSender<Infallible>,
}

/// Ends the tasks of a group.
#[derive(Debug)]
pub(crate) struct TaskGroupHandle {
    stop: Sender<Infallible>,
    idle: Receiver<Infallible>,
    alive: Option<Sender<Infallible>>,
}

/// As long as it exists, its group is not idle.
#[derive(Clone, Debug)]
pub(crate) struct KeepAlive {
    _alive: Option<Sender<Infallible>>,
}

impl<R: Runtime> TaskGroup<R> {
    pub(crate) fn new(runtime: R) -> (Self, TaskGroupHandle) {
        let (stopper, stop) = bounded(1);
        let (alive, idle) = bounded(1);
        let group = Self { runtime, stop, alive: alive.downgrade() };
        (group, TaskGroupHandle { stop: stopper, idle, alive: Some(alive) })
    }

    /// Runs a task until it ends or the group does; drops it if the group has ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(alive) = self.alive.upgrade() else { return };
        let stop = self.stop.clone();
        self.runtime.spawn(async move {
            unless_closed(&stop, task).await;
            drop(alive);
        });
    }

    /// Keeps the group from being idle, for what is no task.
    pub(crate) fn keep_alive(&self) -> KeepAlive {
        KeepAlive { _alive: self.alive.upgrade() }
    }
}

#[cfg(test)]
impl KeepAlive {
    /// Of no group.
    pub(crate) const fn idle() -> Self {
        Self { _alive: None }
    }
}

impl TaskGroupHandle {
    /// Ends all tasks, those to come too.
    pub(crate) fn stop(&self) {
        self.stop.close();
    }

    /// Waits until no task is left.
    pub(crate) async fn idle(&mut self) {
        self.alive = None;
        closed(&self.idle).await;
    }
}

/// Runs a task until it ends or the channel is closed. To listen takes a lock that all tasks of a group share, so it is
/// done once, and not each time that a task is woken.
async fn unless_closed(channel: &Receiver<Infallible>, task: impl Future<Output = ()>) {
    let (mut closed, mut task) = (pin!(closed(channel)), pin!(task));
    let mut listening: Option<Waker> = None;
    poll_fn(|context| {
        let is_closed = if listening.as_ref().is_some_and(|by| by.will_wake(context.waker())) {
            channel.is_closed()
        } else {
            listening = Some(context.waker().clone());
            closed.as_mut().poll(context).is_ready()
        };
        if is_closed { Poll::Ready(()) } else { task.as_mut().poll(context) }
    })
    .await;
}

/// Waits until the other side of a channel that carries nothing is gone.
pub(crate) async fn closed(channel: &Receiver<Infallible>) {
    if let Ok(never) = channel.recv().await {
        match never {}
    }
}
