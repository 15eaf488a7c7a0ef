//! How often a server without a vote is answered.
//!
//! ```text
//!   asked ─► answered, 100 times in a row ─► not at all ─── a second later ──► as often again
//! ```
//!
//! A server without a vote is answered whatever it says, and answers in its turn any voter in an earlier round: two
//! such servers would answer each other's answers at the speed of the network for as long as both look.

use core::time::Duration;

use crate::time::Instant;

/// What one server may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    left: u32,
    counted: Instant,
}

impl Answers {
    /// It has not asked yet.
    pub(super) const fn new(now: Instant) -> Self {
        Self { left: MOST, counted: now }
    }

    /// Whether it may be answered now: one answer less is left to it then.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if now.since(self.counted) >= Duration::from_secs(1) {
            *self = Self::new(now);
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// How many answers a server may have in a second.
const MOST: u32 = 100;
