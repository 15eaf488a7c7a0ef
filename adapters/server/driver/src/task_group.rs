//! A set of tasks that ends as a whole.
//!
//! Whatever a server spawns, it spawns in a [`Scope`]; the [`Reins`] of that scope end all of them at
//! their next step and tell when the last one is gone, and with it its socket. So nothing outlives the
//! server, without a runtime having to know how to abort a task.

use std::convert::Infallible;
use std::future::Future;

use async_channel::{Receiver, Sender, WeakSender, bounded};
use futures_lite::future::or;

use crate::runtime::Runtime;

/// Where tasks are spawned.
#[derive(Clone, Debug)]
pub(crate) struct Scope<R> {
    pub(crate) runtime: R,
    stop: Receiver<Infallible>,
    /// Weak: a scope that nobody uses any more is idle, whoever still could.
    alive: WeakSender<Infallible>,
}

/// Ends the tasks of a scope.
#[derive(Debug)]
pub(crate) struct Reins {
    stop: Sender<Infallible>,
    idle: Receiver<Infallible>,
    alive: Option<Sender<Infallible>>,
}

/// As long as it exists, its scope is not idle.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    _alive: Option<Sender<Infallible>>,
}

impl<R: Runtime> Scope<R> {
    pub(crate) fn new(runtime: R) -> (Self, Reins) {
        let (stopper, stop) = bounded(1);
        let (alive, idle) = bounded(1);
        let scope = Self { runtime, stop, alive: alive.downgrade() };
        (scope, Reins { stop: stopper, idle, alive: Some(alive) })
    }

    /// Runs a task until it ends or the scope does; drops it if the scope has ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(alive) = self.alive.upgrade() else { return };
        let stop = self.stop.clone();
        self.runtime.spawn(async move {
            or(closed(&stop), task).await;
            drop(alive);
        });
    }

    /// Keeps the scope from being idle, for what is no task.
    pub(crate) fn hold(&self) -> Hold {
        Hold { _alive: self.alive.upgrade() }
    }
}

#[cfg(test)]
impl Hold {
    /// Of no scope.
    pub(crate) const fn idle() -> Self {
        Self { _alive: None }
    }
}

impl Reins {
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

/// Waits until the other side of a channel that carries nothing is gone.
pub(crate) async fn closed(channel: &Receiver<Infallible>) {
    if let Ok(never) = channel.recv().await {
        match never {}
    }
}
