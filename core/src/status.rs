//! How things stand with one server: its phase, its vote, its leader and its learners, for people and monitoring.
//!
//! [`Peer::status`](crate::peer::Peer::status) makes it of the state of the machines. It is read after a step; what has
//! changed, and why, is a [`Report`](crate::report::Report).

use alloc::vec::Vec;
use core::fmt;

use crate::id::ServerId;
use crate::vote::{Round, ServerState, Vote};
use crate::zxid::{Epoch, Zxid};

/// Where a server is on the way from no leader to a serving one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It looks for a leader.
    Election,
    /// Leader and learners agree on the new epoch.
    Discovery,
    /// Learners take over the leader's history.
    Synchronization,
    /// The ensemble serves.
    Broadcast,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Election => "election",
            Self::Discovery => "discovery",
            Self::Synchronization => "synchronization",
            Self::Broadcast => "broadcast",
        })
    }
}

/// How things stand with one server, for people and monitoring.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// Who.
    pub id: ServerId,
    /// What it is doing.
    pub state: ServerState,
    /// How far it has come.
    pub phase: Phase,
    /// Its election round.
    pub round: Round,
    /// Its vote: the one it proposes while looking, the one that ended the election afterwards.
    pub vote: Vote,
    /// Who leads; none while looking.
    pub leader: Option<ServerId>,
    /// The highest epoch it has promised.
    pub accepted_epoch: Epoch,
    /// The epoch whose history it has taken over.
    pub current_epoch: Epoch,
    /// The last transaction in its log.
    pub last: Zxid,
    /// The last zxid that the ensemble has established: the start of the epoch until something is
    /// committed in it. Equals `last` before this server serves.
    pub processed: Zxid,
    /// Whether it serves: a leader with a synchronised quorum, or a learner that was told UPTODATE.
    pub serving: bool,
    /// Whether it has a vote.
    pub voter: bool,
    /// How many servers have a vote.
    pub voters: usize,
    /// A leader's learners, ascending, and whether each is synchronised.
    pub learners: Vec<LearnerStatus>,
    /// The servers with which it has an election link, ascending.
    pub linked: Vec<ServerId>,
}

/// A learner as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LearnerStatus {
    /// Who; a negative number for an observer without an id.
    pub id: ServerId,
    /// Whether it has a vote.
    pub voter: bool,
    /// Whether it registered as a follower; an observer otherwise.
    pub follower: bool,
    /// Whether it has acknowledged the leader's history.
    pub synced: bool,
}
