//! The state of one server in a few fields: role, leader, vote, round, epochs.

use quorate_core::id::ServerId;
use quorate_core::status::{Phase, Status};
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::Epoch;

/// Where one server stands, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// What it is doing.
    pub state: ServerState,
    /// How far it has come.
    pub phase: Phase,
    /// Whether it serves.
    pub serving: bool,
    /// Who leads, as it believes.
    pub leader: Option<ServerId>,
    /// Its round.
    pub round: Round,
    /// Its vote.
    pub vote: Vote,
    /// The epoch it has promised.
    pub accepted_epoch: Epoch,
    /// The epoch whose history it has.
    pub current_epoch: Epoch,
}

impl Brief {
    pub(crate) fn of(status: &Status) -> Self {
        Self {
            state: status.state,
            phase: status.phase,
            serving: status.serving,
            leader: status.leader,
            round: status.round,
            vote: status.vote,
            accepted_epoch: status.accepted_epoch,
            current_epoch: status.current_epoch,
        }
    }
}
