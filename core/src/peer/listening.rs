//! Whether learners can come to our quorum port, and what that means for the next election.
//!
//! ```text
//!   accepts ◄──► failing ──► unreachable ──► proposes nobody ◄── initLimit ──► stands all the same
//! ```
//!
//! What follows for a leader is decided above.

use core::time::Duration;

use crate::time::Instant;

/// Whether learners can come to our quorum port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Listening {
    /// No attempt to accept succeeds.
    pub(super) failing: bool,
    /// That has been so for as long as a leader may be without followers.
    pub(super) unreachable: bool,
    /// When we stand for election all the same, since no other was elected.
    stand_at: Option<Instant>,
}

impl Listening {
    /// Whether learners can come, as far as is known.
    pub(super) const fn accepts(&self) -> bool {
        !self.failing
    }

    /// A leader was elected: in the next election the others go first again.
    pub(super) const fn on_decided(&mut self) {
        self.stand_at = None;
    }

    /// Whether a server that cannot be followed stands in the election that begins now, and until when that is so:
    /// it alternates.
    pub(super) fn stand(&mut self, now: Instant, patience: Duration) -> (bool, Instant) {
        let stands = self.stand_at.is_some_and(|at| at <= now);
        let until = self.stand_at.filter(|_| !stands).unwrap_or(now + patience);
        self.stand_at = (!stands).then_some(until);
        (stands, until)
    }
}
