//! The number that tells a leader from every earlier one.

use std::fmt;

/// A number that every later leader's is greater than: the epoch of the reign, or the revision at which a
/// store took note of the leader.
///
/// No two reigns have the same, whoever led, and whatever was restarted in between. What is guarded by
/// leadership has to compare it: a store that has seen a token refuses a smaller one.
///
/// The token of a leader that was designated by an operator instead of elected is the operator's number,
/// and is marked ([`is_designated`](Self::is_designated)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken {
    number: u64,
    designated: bool,
}

impl FencingToken {
    /// The token of an elected leader. For whoever runs the election, which gives each number once.
    pub const fn elected(number: u64) -> Self {
        Self { number, designated: false }
    }

    /// The token of a leader that an operator has designated, who answers for the number.
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
