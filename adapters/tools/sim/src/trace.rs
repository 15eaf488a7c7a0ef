//! What a run leaves behind: a hash of everything that happened, and a record of it.
//!
//! The hash is always made; two runs of one seed must agree in it. The record is kept only when asked
//! for, since a failing seed can simply be run again.

use std::hash::{Hash, Hasher};

use quorate_core::id::ServerId;
use quorate_core::time::Instant;

use crate::hash::Mix;
use crate::record::{Record, What};

/// The hash and the record.
#[derive(Debug)]
pub(crate) struct Trace {
    hasher: Mix,
    /// Empty unless it is kept.
    pub(crate) record: Record,
    keeps: bool,
}

impl Trace {
    pub(crate) fn new(keeps: bool) -> Self {
        Self { hasher: Mix::default(), record: Record::default(), keeps }
    }

    /// Takes something into the hash.
    pub(crate) fn mix(&mut self, what: &impl Hash) {
        what.hash(&mut self.hasher);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// Whether there is a record.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Records something; it is made only if it is kept.
    pub(crate) fn note(&mut self, at: Instant, who: ServerId, what: impl FnOnce() -> What) {
        if self.keeps {
            self.record.note(at, who, what());
        }
    }
}
