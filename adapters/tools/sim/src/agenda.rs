//! What will happen, and when: the only clock of the simulated world.
//!
//! Things due at the same instant happen in the order in which they were put in, so that a run is a
//! function of its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use quorate_core::time::Instant;

/// A queue of things to come, each with its time.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    now: Instant,
    entered: u64,
    heap: BinaryHeap<Reverse<Entry<T>>>,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    order: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { now: Instant::ORIGIN, entered: 0, heap: BinaryHeap::new() }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Enters something for `at`, or for now if that has passed.
    pub(crate) fn at(&mut self, at: Instant, what: T) {
        self.entered += 1;
        let at = at.max(self.now);
        self.heap.push(Reverse(Entry { at, order: self.entered, what }));
    }

    /// Enters something for a while from now.
    pub(crate) fn after(&mut self, wait: Duration, what: T) {
        self.at(self.now + wait, what);
    }

    /// When the next thing is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes out the next thing; time moves to it.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.what)
    }

    /// Lets time pass up to `at`, when nothing is due before it.
    pub(crate) fn advance(&mut self, at: Instant) {
        let bound = self.next_at().map_or(at, |next| next.min(at));
        self.now = self.now.max(bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order_and_time_never_goes_back() {
        let mut agenda = Agenda::new();
        agenda.after(Duration::from_millis(2), "c");
        agenda.after(Duration::from_millis(1), "a");
        agenda.after(Duration::from_millis(1), "b");
        assert_eq!((agenda.pop(), agenda.pop()), (Some("a"), Some("b")));
        agenda.at(Instant::ORIGIN, "late");
        assert_eq!((agenda.pop(), agenda.pop(), agenda.pop()), (Some("late"), Some("c"), None));
        assert_eq!(agenda.now(), Instant::from_origin(Duration::from_millis(2)));
    }
}
