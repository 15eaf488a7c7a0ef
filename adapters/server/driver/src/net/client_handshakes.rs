//! Clients and TLS: how many come through it, and which did not come to be for what it says, or for its lack.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::lock::locked;

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct ClientHandshakes {
    failures: Mutex<BTreeMap<&'static str, u64>>,
    /// Handshakes that are under way.
    pub(crate) under_way: AtomicUsize,
    /// Connections through TLS.
    pub(crate) open: AtomicUsize,
    /// How many there were.
    pub(crate) made: AtomicU64,
    /// Handshakes that were given up for others.
    pub(crate) evicted: AtomicU64,
}

impl ClientHandshakes {
    /// How often clients were refused for each reason.
    pub(crate) fn failures(&self) -> Vec<(&'static str, u64)> {
        locked(&self.failures).iter().map(|(reason, count)| (*reason, *count)).collect()
    }

    pub(super) fn refuse(&self, reason: &'static str) {
        *locked(&self.failures).entry(reason).or_insert(0) += 1;
    }

    /// One was given up, so that another may begin.
    #[cfg(feature = "tls")]
    pub(super) fn evict(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }
}

/// One of those that there are.
pub(super) struct Among<'a>(&'a AtomicUsize);

impl<'a> Among<'a> {
    pub(super) fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Among<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
