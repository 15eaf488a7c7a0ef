//! The state of a candidate: its session, its offer, its place in the row, and the call it waits for.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::recipe::boundary::{Attempt, SessionId, Token};
use crate::recipe::offer::names::{Entry, Naming, queue};
use crate::time::Instant;

/// What Start, Stop and failures have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Start was not said, or the offer is withdrawn.
    Idle,
    /// An offer is made and kept.
    Running,
    /// The offer is withdrawn.
    Stopping {
        /// Start was said meanwhile.
        again: bool,
    },
    /// Something failed for good; what is left of the offer is deleted.
    Failed {
        /// It starts again by itself.
        again: bool,
    },
}

/// The session that the store has told of last, until it says that it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Live {
    pub(crate) id: SessionId,
    pub(crate) timeout: Duration,
    pub(crate) connected: bool,
    /// When what the store has answered last was sent.
    pub(crate) contact: Option<Instant>,
}

/// What we know of our offer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Own {
    /// There is none.
    None,
    /// A create may have taken effect: there is one, or none.
    Unknown {
        /// What may be ours, the likeliest last; none if the children have not been listed yet.
        claims: Option<Vec<String>>,
    },
    /// It is there.
    Held {
        name: String,
        /// Which read left a watch on it and found it ours, in this connection.
        watch: Option<Attempt>,
        /// When it was created, once a read has said.
        created: Option<Token>,
    },
}

/// A node of ours that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stray {
    pub(crate) name: String,
    /// When it was created, where its name can come back.
    pub(crate) created: Option<Token>,
}

/// Our place in the row, as the last listing showed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Not known, or something has happened since.
    Stale {
        /// Our offer was missing: that has to be certain before another one is made.
        fresh: bool,
    },
    /// No offer is before ours.
    First,
    /// This one is next to us.
    Behind {
        neighbour: String,
        /// When it was created, if the listing told.
        created: Option<Token>,
        /// Which read left a watch on it.
        watch: Option<Attempt>,
    },
}

impl Place {
    pub(crate) const STALE: Self = Self::Stale { fresh: false };

    /// The place of the offer of this name in a listing, if it is there.
    pub(crate) fn of(own: &str, entries: &[Entry]) -> Option<Self> {
        let row = queue(entries);
        let at = row.iter().position(|entry| entry.name == own)?;
        Some(match at.checked_sub(1) {
            None => Self::First,
            Some(before) => {
                let Entry { name, created } = row[before];
                let (neighbour, created) = (name.clone(), created.map(Token));
                Self::Behind { neighbour, created, watch: None }
            }
        })
    }
}

/// Which offers of a listing may be ours, though we do not know: the likeliest last.
pub(crate) fn claims(naming: Naming, prefix: &str, entries: &[Entry]) -> Vec<String> {
    let is_ours = |name: &str| match naming {
        Naming::Lease => name == prefix,
        Naming::Guid | Naming::Java | Naming::Session | Naming::Latch | Naming::Kazoo => {
            name.starts_with(prefix)
        }
    };
    let row = queue(entries).into_iter().map(|entry| &entry.name);
    let mut claims: Vec<String> = row.filter(|name| is_ours(name)).cloned().collect();
    if naming.is_telling() {
        // All of them are: the one that stands best.
        claims.reverse();
    }
    claims
}

/// What we know of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    /// It may be there.
    Assumed,
    /// It is not.
    Missing,
    /// We have just created it.
    Ensured,
}

/// A call that has not been answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) attempt: Attempt,
    pub(crate) due: Option<Instant>,
    pub(crate) what: What,
}

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Root,
    Create,
    /// Our place in the row.
    List {
        fresh: bool,
    },
    /// What may be ours.
    Search,
    /// Whether this one is ours.
    Claim(String),
    /// Our own, to read which session owns it, and to watch it.
    Verify,
    /// Our neighbour, to watch it.
    Watch,
    /// One of ours that is to be deleted.
    Delete(Stray),
}
