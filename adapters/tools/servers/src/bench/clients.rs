//! The clients of a bench: writes as fast as they are acknowledged, and what was counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use quorate_driver::Runtime;

use super::measure::{histogram, micros};
use super::sink::Server;

/// What the clients of all servers have counted together.
#[derive(Debug)]
pub struct Measured {
    /// How long each write took, in microseconds.
    pub times: Histogram<u64>,
    /// How many were done.
    pub writes: u64,
    /// How many were not.
    pub failed: u64,
    /// In what time.
    pub took: Duration,
    /// The processor time of this process meanwhile.
    pub cpu: Duration,
}

/// What the clients at one server count.
pub(super) struct Tally {
    /// Writes count now.
    counts: AtomicBool,
    enough: AtomicBool,
    failed: AtomicU64,
    /// The clients are on one thread, so this lock is never contended.
    times: Mutex<Histogram<u64>>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            counts: AtomicBool::new(false),
            enough: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            times: Mutex::new(histogram()),
        }
    }

    /// Begins to count writes, or ceases to.
    pub(super) fn count(&self, counts: bool) {
        self.counts.store(counts, Ordering::Relaxed);
    }

    /// Tells the clients to end.
    pub(super) fn end(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Whether no write was counted so far.
    pub(super) fn is_empty(&self) -> bool {
        self.times().is_empty()
    }

    /// How many writes failed.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// How long those took that did not.
    pub(super) fn times(&self) -> MutexGuard<'_, Histogram<u64>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One write after the other.
pub(super) async fn write<R: Runtime>(server: Server<R>, payload: Bytes, tally: Arc<Tally>) {
    while !tally.enough.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let outcome = server.propose(payload.clone()).await;
        if !tally.counts.load(Ordering::Relaxed) {
            continue;
        }
        if outcome.is_ok() {
            tally.times().saturating_record(micros(begun.elapsed()));
        } else {
            tally.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
