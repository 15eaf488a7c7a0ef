//! Why: every change of vote, state, round and phase, with its reason, as data.
//!
//! Logs, the demo and pictures are made from this; nothing in the protocol reads it.

mod reason;

use core::fmt;

use crate::id::ServerId;
pub use crate::report::reason::Reason;
use crate::status::Phase;
use crate::vote::{Round, ServerState, Vote};
use crate::zxid::{Epoch, Zxid};

/// A change and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// What has changed.
    pub change: Change,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.change, self.reason)
    }
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The server's state.
    State {
        /// Before.
        from: ServerState,
        /// Now.
        to: ServerState,
    },
    /// The server's vote.
    Vote {
        /// Before.
        from: Vote,
        /// Now.
        to: Vote,
    },
    /// The election round.
    Round {
        /// Before.
        from: Round,
        /// Now.
        to: Round,
    },
    /// The server looks again in this round, which it had taken for over.
    BackIntoRound(Round),
    /// The phase.
    Phase {
        /// Before.
        from: Phase,
        /// Now.
        to: Phase,
    },
    /// The epoch that the server has promised; it is on its way to the disk.
    AcceptedEpoch(Epoch),
    /// The epoch whose history the server has taken over; it is on its way to the disk.
    CurrentEpoch(Epoch),
    /// The version of the ensemble's configuration.
    Configuration(i64),
    /// The version of the configuration that was seen last and is not known to be in force.
    NextConfiguration(i64),
    /// How a learner is brought to its leader's history; said by both.
    Sync {
        /// The learner.
        id: ServerId,
        /// How.
        how: How,
    },
    /// Something that a learner said counts for nothing.
    Ignored {
        /// The learner.
        id: ServerId,
        /// What it acknowledged.
        zxid: Zxid,
    },
    /// A learner's place with this leader.
    Learner {
        /// Who.
        id: ServerId,
        /// Whether it now counts as synchronised.
        synced: bool,
    },
}

/// How a learner is brought to its leader's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// What it misses is sent.
    Diff,
    /// What only it has is cut first.
    Trunc,
    /// It gets a whole snapshot first.
    Snap,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diff => "DIFF",
            Self::Trunc => "TRUNC",
            Self::Snap => "SNAP",
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State { from, to } => write!(f, "state {from} -> {to}"),
            Self::Vote { from, to } => write!(f, "vote {from} -> {to}"),
            Self::Round { from, to } => write!(f, "round {from} -> {to}"),
            Self::BackIntoRound(round) => write!(f, "back into round {round}"),
            Self::Phase { from, to } => write!(f, "phase {from} -> {to}"),
            Self::AcceptedEpoch(epoch) => write!(f, "accepted epoch {epoch}"),
            Self::CurrentEpoch(epoch) => write!(f, "current epoch {epoch}"),
            Self::Configuration(version) => write!(f, "configuration version {version:x}"),
            Self::NextConfiguration(version) => write!(f, "next configuration version {version:x}"),
            Self::Sync { id, how } => write!(f, "learner {id} is brought up by {how}"),
            Self::Ignored { id, zxid } => write!(f, "ACK of {zxid} by learner {id} ignored"),
            Self::Learner { id, synced: true } => write!(f, "learner {id} synchronised"),
            Self::Learner { id, synced: false } => write!(f, "learner {id} lost"),
        }
    }
}
