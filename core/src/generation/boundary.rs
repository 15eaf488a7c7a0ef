//! What an election by generation is told, and what it wants.
//!
//! ```text
//!   ClockConfig   once
//!   ClockEvent    a message, a link, the disk, time ──► GenerationClock ──► ClockOutput   send, keep, decided
//! ```
//!
//! Words only: what becomes of them is decided above.

use alloc::vec::Vec;

use crate::config::Generations;
use crate::generation_message::{Attempt, Cue, GenerationMessage, GrantedVote};
use crate::id::ServerId;
use crate::quorum::{Quorum, Support};
use crate::report::{Change, Reason};
use crate::vote::{Standing, Vote};

/// What an election by generation needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClockConfig {
    /// Who we are.
    pub id: ServerId,
    /// Whether the server is to follow with a vote (FOLLOWING) or without one (OBSERVING).
    pub observer: bool,
    /// Who votes, and how many are enough.
    pub quorum: Quorum,
    /// Time-outs and policies.
    pub rules: Generations,
    /// Where the randomness of time-outs comes from. Two servers should not have the same.
    pub seed: u64,
}

/// Something that concerns the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClockEvent {
    /// Look for a leader. While looking already, only another vote than before counts.
    Look {
        /// The vote for oneself, all of it on disk: its epoch and zxid are what freshness is compared by.
        /// If its candidate is [`ServerId::NONE`], this server waits two time-outs before it asks for votes. If it
        /// names another server, epoch and zxid are still ours, and this server never asks; nor does it with
        /// [`Vote::ABSTENTION`].
        own: Vote,
        /// Why.
        cue: Cue,
    },
    /// A server has said something.
    Heard {
        /// Who, by its link.
        from: ServerId,
        /// What.
        message: GenerationMessage,
    },
    /// This vote, and every vote granted before it, is durable.
    Kept(GrantedVote),
    /// Whether this server may be elected; it may until something else is said. One that may not does not ask to
    /// be, and grants as ever.
    MayLead(bool),
    /// There is a link to this server.
    Reachable(ServerId),
    /// The arbiter of two servers has spoken.
    Oracle(bool),
    /// Time has passed.
    Tick,
}

/// What an election wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClockOutput {
    /// Say something; `config` is left empty.
    Send {
        /// To whom.
        to: Recipient,
        /// What.
        message: GenerationMessage,
    },
    /// Put this on disk and say [`ClockEvent::Kept`].
    Keep(GrantedVote),
    /// Dial, now and afresh, every voter to which there is no link.
    Redial,
    /// Something has changed, and why.
    Changed(Change, Reason),
    /// The election is over, and this is where we stand; on whose word it rests says
    /// [`GenerationClock::support`](super::GenerationClock::support).
    Decided(Standing),
    /// The role that the last election led to is to end; [`retire`](super::GenerationClock::retire) follows.
    Leave(Reason, Cue),
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipient {
    /// Every other voter.
    Voters,
    /// Every other member.
    Members,
    /// One server.
    One(ServerId),
}

/// Messages that came before they could be answered, by position of their sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Early(Vec<Option<GenerationMessage>>);

impl Early {
    /// None, of so many voters.
    pub(super) fn new(voters: usize) -> Self {
        Self(alloc::vec![None; voters])
    }

    /// Keeps the newest of this sender.
    pub(super) fn keep(&mut self, position: usize, message: GenerationMessage) {
        self.0[position] = Some(message);
    }

    /// Takes what this sender said.
    pub(super) fn take(&mut self, position: usize) -> Option<GenerationMessage> {
        self.0[position].take()
    }

    /// How many senders there can be.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// An attempt of ours to be elected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Campaign {
    /// What we ask.
    pub(super) attempt: Attempt,
    /// Who grants it.
    pub(super) grants: Support,
    /// Our own vote is on disk, or none is needed: others were asked.
    pub(super) asked: bool,
}

/// A grant that waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owed {
    /// To whom.
    pub(super) to: ServerId,
    /// What it asked.
    pub(super) attempt: Attempt,
}
