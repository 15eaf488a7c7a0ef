//! What was sent to a client and is not written yet.
//!
//! Replies can be held back, and are; events cannot. A client that does not take its events is cut off, so that it costs
//! no other client the memory.

use alloc::collections::VecDeque;
use core::time::Duration;

use quorate_core::time::Instant;

/// The bytes that wait to be written to one client, in order.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    bytes: usize,
    events: usize,
    /// How many of events, and how many of replies, in turn.
    runs: VecDeque<Run>,
    /// Since when many of events have waited.
    many_since: Option<Instant>,
    /// Since when something has waited and nothing was written. Only once something was: hosts need not tell.
    stuck_since: Option<Instant>,
    told: bool,
}

#[derive(Debug)]
struct Run {
    of_events: bool,
    bytes: usize,
}

impl Unwritten {
    /// All of them.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many more are sent.
    pub(crate) fn sent(&mut self, of_events: bool, bytes: usize, now: Instant) {
        self.bytes += bytes;
        self.stuck_since = self.stuck_since.or(Some(now)).filter(|_| self.told);
        match self.runs.back_mut().filter(|run| run.of_events == of_events) {
            Some(run) => run.bytes += bytes,
            None => self.runs.push_back(Run { of_events, bytes }),
        }
        if of_events {
            self.events += bytes;
            if self.events > EVENTS_MANY {
                self.many_since = self.many_since.or(Some(now));
            }
        }
    }

    /// So many of the oldest are written.
    pub(crate) fn written(&mut self, bytes: usize, now: Instant) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.told = true;
        self.stuck_since = Some(now).filter(|_| self.bytes > 0);
        let mut rest = bytes;
        while let Some(run) = self.runs.front_mut().filter(|_| rest > 0) {
            let of_this = run.bytes.min(rest);
            (run.bytes, rest) = (run.bytes - of_this, rest - of_this);
            if run.of_events {
                self.events -= of_this;
            }
            if run.bytes == 0 {
                self.runs.pop_front();
            }
        }
        if self.events <= EVENTS_MANY {
            self.many_since = None;
        }
        if self.runs.is_empty() && self.runs.capacity() > RUNS_KEPT_MAX {
            self.runs = VecDeque::new();
        }
    }

    /// Whether nothing could be written for so long, though something waits.
    pub(crate) fn is_stuck(&self, now: Instant, patience: Duration) -> bool {
        self.stuck_since.is_some_and(|since| now.since(since) >= patience)
    }

    /// Whether more of events wait than ever may, or many for too long.
    pub(crate) fn is_too_much(&self, now: Instant) -> bool {
        self.events > EVENTS_MAX
            || self.many_since.is_some_and(|since| now.since(since) >= EVENTS_TIME)
    }
}

/// How many bytes of events may wait for one client.
const EVENTS_MAX: usize = 16 << 20;
/// More than this may wait for a while.
const EVENTS_MANY: usize = 1 << 20;
/// How long.
const EVENTS_TIME: Duration = Duration::from_secs(5);
/// Where events and replies have changed more often than this, their memory is given back once all is written.
const RUNS_KEPT_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_apart_from_the_replies_between_them() {
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        let mut unwritten = Unwritten::default();
        unwritten.sent(false, 100 << 20, at(0));
        assert!(!unwritten.is_too_much(at(100)), "one reply may be as long as it is");
        unwritten.sent(true, EVENTS_MANY + 1, at(0));
        unwritten.sent(false, 10, at(0));
        unwritten.sent(true, 9, at(4));
        assert!(!unwritten.is_too_much(at(4)) && unwritten.is_too_much(at(5)));
        unwritten.written(100 << 20, at(5));
        assert!(unwritten.is_too_much(at(5)), "the reply is written, and none of the events");
        unwritten.written(10, at(5));
        assert!(!unwritten.is_too_much(at(5)));
        assert_eq!((unwritten.bytes, unwritten.events), (EVENTS_MANY + 10, EVENTS_MANY));
        unwritten.sent(true, EVENTS_MAX, at(6));
        assert!(unwritten.is_too_much(at(6)));
        unwritten.written(usize::MAX, at(6));
        assert_eq!((unwritten.bytes, unwritten.events, unwritten.runs.len()), (0, 0, 0));
    }

    #[test]
    fn it_is_stuck_from_the_last_byte_that_was_written() {
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        let patience = Duration::from_secs(4);
        let mut unwritten = Unwritten::default();
        unwritten.sent(false, 10, at(0));
        assert!(!unwritten.is_stuck(at(100), patience), "perhaps nobody tells what is written");
        unwritten.written(10, at(100));
        assert!(!unwritten.is_stuck(at(200), patience), "nothing waits");
        unwritten.sent(false, 10, at(100));
        unwritten.sent(true, 10, at(103));
        assert!(!unwritten.is_stuck(at(103), patience) && unwritten.is_stuck(at(104), patience));
        unwritten.written(1, at(104));
        assert!(!unwritten.is_stuck(at(107), patience) && unwritten.is_stuck(at(108), patience));
        unwritten.written(19, at(108));
        assert!(!unwritten.is_stuck(at(200), patience));
    }
}
