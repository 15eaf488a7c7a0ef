//! The fencing token: a number that grows with each leadership.

use std::fmt;

/// A number that grows with each leadership: its epoch, or the revision with which a store recorded the leader.
///
/// No two leaderships have the same, whichever candidate led, and whatever was restarted in between. The resource
/// that the leader writes to has to compare it, and refuse a token smaller than the greatest it has seen.
///
/// The token of a leader that was designated by an operator instead of elected is the operator's number,
/// and is marked ([`is_designated`](Self::is_designated)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken {
    number: u64,
    designated: bool,
}

impl FencingToken {
    /// The token of an elected leader, for the election, which gives each number once.
    pub const fn elected(number: u64) -> Self {
        Self { number, designated: false }
    }

    /// The token of a leader that an operator has designated; the operator answers for the number.
    pub const fn designated(number: u64) -> Self {
        Self { number, designated: true }
    }

    /// As a number, for a store that knows numbers only.
    pub const fn as_u64(self) -> u64 {
        self.number
    }

    /// Whether the leader was designated by an operator; elected if not.
    pub const fn is_designated(self) -> bool {
        self.designated
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
