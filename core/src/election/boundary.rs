//! What an election is told, and what it wants.
//!
//! ```text
//!   ElectorConfig   once
//!   ElectorEvent    a vote, a link, the arbiter, time ──► Elector ──► ElectorOutput   tell, dial, decided
//! ```
//!
//! Words only: what becomes of them is decided above.

use core::time::Duration;

use crate::id::ServerId;
use crate::quorum::Quorum;
use crate::report::{Change, Reason};
use crate::time::Instant;
use crate::vote::{Standing, Vote};

/// What an election needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectorConfig {
    /// Who we are. A server without a vote in `quorum` listens and never proposes itself.
    pub id: ServerId,
    /// Whether the server is to follow with a vote (FOLLOWING) or without one (OBSERVING).
    pub observer: bool,
    /// Who votes, and how many are enough.
    pub quorum: Quorum,
    /// The first wait for notifications; each is twice the one before.
    pub notification_min: Duration,
    /// The longest such wait.
    pub notification_max: Duration,
    /// How long a counted quorum waits for a better vote.
    pub finalize_wait: Duration,
    /// Whether the wait ends at once when nothing that could change the outcome is outstanding: all vote alike, or a
    /// quorum with the leader in it does that is known to end the wait in the same way, and the others cannot be
    /// reached.
    pub finish_when_settled: bool,
    /// Whether others may know of a membership in which we vote, that we do not know of yet: where it
    /// changes while the ensemble runs (`reconfigEnabled`).
    pub may_change: bool,
}

/// Something that concerns the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElectorEvent {
    /// Look for a leader, with this vote to begin with; ignored while looking already with the same.
    Look(Vote),
    /// A server has said where it stands.
    Heard {
        /// Who.
        from: ServerId,
        /// What.
        standing: Standing,
        /// Whether the message carried a version above 0.
        versioned: bool,
        /// Whether its sender ends an election at once when nothing can change how it ends, as we do with
        /// [`ElectorConfig::finish_when_settled`]; see
        /// [`Mark::SETTLES_AT_ONCE`](crate::message::Mark::SETTLES_AT_ONCE).
        at_once: bool,
    },
    /// No link to this voter exists, and a dial that was made since the last [`ElectorOutput::Redial`] or
    /// the beginning of the round has failed. That tells of the moment when it was made, and counts for
    /// [`DIAL_TELLS`](super::DIAL_TELLS) from then on.
    Unreachable {
        /// Whom.
        peer: ServerId,
        /// When the dial was made.
        dialled: Instant,
    },
    /// Whether this server may be elected; it may until something else is said. One that may not proposes no candidate,
    /// adopts votes that are at least as new as its own, and goes into the round of those who look, also an
    /// earlier one. [`ElectorEvent::Look`] has to follow.
    MayLead(bool),
    /// There is a link to this voter.
    Reachable(ServerId),
    /// The arbiter of two servers has spoken.
    Oracle(bool),
    /// Time has passed.
    Tick,
}

/// What an election wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElectorOutput {
    /// Tell a peer, or all voters, where we stand.
    Notify {
        /// Whom.
        to: Recipient,
        /// What.
        standing: Standing,
    },
    /// Dial, now and afresh, every voter to which there is no link.
    Redial,
    /// Something has changed, and why.
    Changed(Change, Reason),
    /// The election is over.
    Decided(Decision),
}

/// To whom a notification goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipient {
    /// Every other voter.
    Voters,
    /// One server.
    One(ServerId),
}

/// The end of an election; on whose word it rests says [`Elector::support`](super::Elector::support).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Where we stand now.
    pub standing: Standing,
    /// How long it took.
    pub took: Duration,
}
