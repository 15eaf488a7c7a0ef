//! The inbox of the loop: what callers and threads hand to it, and the wake-up that goes with it.

use std::fmt;
use std::sync::Mutex;

use crate::lock::locked;

/// What others hand to the loop, and the loop takes all at once: a burst costs one wake-up, and no caller waits here for
/// the loop.
pub(crate) struct Inbox<T> {
    items: Mutex<Items<T>>,
    /// Wakes the loop, which looks here before it waits again.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug)]
struct Items<T> {
    waiting: Vec<T>,
    /// The loop has been woken for them.
    woken: bool,
    closed: bool,
}

impl<T> Inbox<T> {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        let items = Mutex::new(Items { waiting: Vec::new(), woken: false, closed: false });
        Self { items, wake: Box::new(wake) }
    }

    /// Puts an item in; gives it back if the loop takes no more.
    pub(crate) fn put(&self, item: T) -> Result<(), T> {
        let mut items = locked(&self.items);
        if items.closed {
            return Err(item);
        }
        items.waiting.push(item);
        let woken = std::mem::replace(&mut items.woken, true);
        drop(items);
        if !woken {
            (self.wake)();
        }
        Ok(())
    }

    /// Puts in what can wait until the loop turns for another reason; drops it if the loop takes no more.
    pub(crate) fn put_quietly(&self, item: T) {
        let mut items = locked(&self.items);
        if !items.closed {
            items.waiting.push(item);
        }
    }

    /// Wakes the loop for what was put in quietly.
    pub(crate) fn knock(&self) {
        let woken = std::mem::replace(&mut locked(&self.items).woken, true);
        if !woken {
            (self.wake)();
        }
    }

    /// Takes what is there if the loop was woken for it, in exchange for an empty vector.
    pub(crate) fn take_if_woken(&self, into: &mut Vec<T>) {
        if locked(&self.items).woken {
            self.take(into);
        }
    }

    /// Takes what is there, in exchange for an empty vector.
    pub(crate) fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "what was taken before is done");
        let mut items = locked(&self.items);
        items.woken = false;
        std::mem::swap(&mut items.waiting, into);
    }

    /// Lets nothing more in; returns what the loop has not taken.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut items = locked(&self.items);
        items.closed = true;
        std::mem::take(&mut items.waiting)
    }
}

impl<T: fmt::Debug> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("items", &self.items).finish_non_exhaustive()
    }
}
