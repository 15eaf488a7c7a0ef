//! The state of a candidate: what it knows of the key, its claim to it, and the call it waits for.

use crate::recipe::boundary::{Attempt, Token};
use crate::recipe::lease::boundary::Held;
use crate::time::Instant;

/// What Start and Stop have led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Running,
    Stopping { again: bool },
}

/// What we know of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// It has to be read.
    Unread,
    /// It was deleted: other candidates want it too, so we look at this time.
    Gone { look_at: Instant },
    /// There is none.
    Free,
    /// It is another candidate's.
    Foreign {
        held: Held,
        /// When it has expired, if candidates count that.
        over_at: Option<Instant>,
    },
    /// It has the number of an earlier claim of ours: a write that was on its way for long, or what an earlier
    /// session has left behind.
    Stray { version: u64 },
    /// It has the number of our claim.
    Ours { version: u64, token: Token, released: bool },
}

/// Our attempt to hold the key, from the first write to when the key is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    /// The number that no other claim has.
    pub(crate) holder: u128,
    /// A write of ours may have taken effect, or may still do so: when the first one was sent.
    pub(crate) unsure: Option<Instant>,
    /// When the call was sent that was acknowledged last.
    pub(crate) contact: Option<Instant>,
    /// From when on the store counts, at the earliest.
    pub(crate) counts_from: Option<Instant>,
    /// Its leadership is over: the key is to be given back.
    pub(crate) spent: bool,
}

/// A call that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) attempt: Attempt,
    pub(crate) sent: Instant,
    pub(crate) due: Option<Instant>,
    pub(crate) what: What,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Read { watch: bool },
    Take,
    Renew,
    Mark,
    Delete,
}

impl Claim {
    pub(crate) const fn new(holder: u128) -> Self {
        Self { holder, unsure: None, contact: None, counts_from: None, spent: false }
    }

    /// Whether a key in the store may be of this claim.
    pub(crate) const fn is_open(&self) -> bool {
        self.unsure.is_some() || self.contact.is_some()
    }
}
