//! The clients, and what they have seen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use hdrhistogram::Histogram;
use quorate_driver::Runtime;

use super::measure::{histogram, micros};
use super::sink::Server;

/// What the clients at one server have seen.
pub(super) struct Tally {
    /// It is being measured.
    pub(super) counts: AtomicBool,
    pub(super) enough: AtomicBool,
    pub(super) failed: AtomicU64,
    /// The clients are on one thread, so nobody waits for this.
    pub(super) times: Mutex<Histogram<u64>>,
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
            let mut times = tally.times.lock().unwrap_or_else(PoisonError::into_inner);
            times.saturating_record(micros(begun.elapsed()));
        } else {
            tally.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
