//! What a run leaves behind: a hash of everything that happened, and a record of it.
//!
//! The hash is always made; two runs of one seed must agree in it. The record is kept only when asked
//! for, since a failing seed can simply be run again.

use std::hash::{Hash, Hasher};

use quorate_core::id::ServerId;
use quorate_core::time::Instant;

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
        Self { hasher: Mix(0), record: Record::default(), keeps }
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

/// A fast hasher that gives the same result on every machine; not for tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mix(u64);

impl Mix {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.word(u64::from(n));
    }

    fn write_u16(&mut self, n: u16) {
        self.word(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.word(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn write_i32(&mut self, n: i32) {
        self.word(i64::from(n) as u64);
    }

    fn write_i64(&mut self, n: i64) {
        self.word(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.word(n as u64);
    }
}
