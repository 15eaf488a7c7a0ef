//! When the core hears that a snapshot or a part of the log moves.

use std::time::{Duration, Instant};

/// Bounds how often the core hears that something moves.
/// A stream that only trickles is no progress: its receiver would wait for ever.
pub(super) struct Progress {
    last: Instant,
    bytes: usize,
}

impl Progress {
    pub(super) const fn new(now: Instant) -> Self {
        Self { last: now, bytes: 0 }
    }

    /// So many more bytes have moved; returns whether the core is to hear of it.
    pub(super) fn is_due(&mut self, bytes: usize, now: Instant) -> bool {
        self.bytes += bytes;
        let due = now.saturating_duration_since(self.last) >= PROGRESS_INTERVAL
            && self.bytes >= PROGRESS_BYTES;
        if due {
            *self = Self::new(now);
        }
        due
    }
}

/// How often the core hears that a stream moves.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// How much must have moved for that: 50 KiB/s where connecting may take 20 s.
const PROGRESS_BYTES: usize = 1 << 20;
