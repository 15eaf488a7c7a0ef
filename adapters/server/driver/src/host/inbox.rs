//! The inbox of the loop: what other tasks and threads hand to it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_channel::Sender;

use crate::net::events::Happened;

/// What others hand to the loop, and the loop takes all at once: a cell with a bell, so that a burst
/// costs one wake-up, and no caller waits here for the loop.
#[derive(Debug)]
pub(crate) struct Tray<T> {
    items: Mutex<Items<T>>,
    bell: Sender<Happened>,
}

#[derive(Debug)]
struct Items<T> {
    waiting: Vec<T>,
    closed: bool,
}

impl<T> Tray<T> {
    pub(crate) fn new(bell: Sender<Happened>) -> Self {
        Self { items: Mutex::new(Items { waiting: Vec::new(), closed: false }), bell }
    }

    /// Puts an item in; gives it back if the loop takes no more.
    pub(crate) fn put(&self, item: T) -> Result<(), T> {
        let mut items = self.locked();
        if items.closed {
            return Err(item);
        }
        items.waiting.push(item);
        let first = items.waiting.len() == 1;
        drop(items);
        if first {
            // Full: the loop is awake, and looks here before it waits again.
            drop(self.bell.try_send(Happened::Rung));
        }
        Ok(())
    }

    /// Takes what is there, in exchange for an empty vector.
    pub(crate) fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "what was taken before is done");
        std::mem::swap(&mut self.locked().waiting, into);
    }

    /// Lets nothing more in; returns what the loop has not taken.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut items = self.locked();
        items.closed = true;
        std::mem::take(&mut items.waiting)
    }

    fn locked(&self) -> MutexGuard<'_, Items<T>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
