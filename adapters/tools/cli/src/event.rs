//! A server's change as one line of JSON: written by `serve --json` and by the demo, read by the demo
//! from its child processes.
//!
//! What it does not do: no field is ever computed here; everything is what the server reported.

use std::time::Duration;

use quorate_tokio::Observed;
use quorate_tokio::core::report::Change;
use quorate_tokio::core::status::Phase;
use quorate_tokio::core::vote::ServerState;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line {
    /// A server has changed.
    Change(ChangeLine),
    /// The reader was too slow, so lines are missing.
    Lost {
        /// How many so far.
        changes: u64,
    },
}

/// What has changed, why, and how the server is since.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChangeLine {
    /// Milliseconds since the writer started.
    pub(crate) at_ms: f64,
    /// Which server.
    pub(crate) server: i64,
    /// What has changed.
    pub(crate) change: What,
    /// What it was, if that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) from: Option<String>,
    /// What it is.
    pub(crate) to: String,
    /// Why.
    pub(crate) reason: String,
    /// The server's state after all that changed at this moment.
    pub(crate) state: State,
    /// Its phase.
    pub(crate) phase: Stage,
    /// Its round.
    pub(crate) round: i64,
    /// Its vote.
    pub(crate) vote: VoteLine,
    /// Its leader, none while it looks for one.
    pub(crate) leader: Option<i64>,
    /// The highest epoch that it has promised.
    pub(crate) accepted_epoch: i64,
    /// The epoch whose history it has.
    pub(crate) current_epoch: i64,
    /// Whether it serves.
    pub(crate) serving: bool,
}

/// A vote; no leader, epoch or zxid in the abstention of a server that has none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct VoteLine {
    pub(crate) leader: Option<i64>,
    pub(crate) peer_epoch: Option<i64>,
    pub(crate) zxid: Option<String>,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    State,
    Vote,
    Round,
    Phase,
    AcceptedEpoch,
    CurrentEpoch,
    Configuration,
    NextConfiguration,
    Sync,
    Ignored,
    Learner,
}

/// The states, as ZooKeeper writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum State {
    Looking,
    Following,
    Leading,
    Observing,
}

/// The phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Election,
    Discovery,
    Synchronization,
    Broadcast,
}

impl From<ServerState> for State {
    fn from(state: ServerState) -> Self {
        match state {
            ServerState::Looking => Self::Looking,
            ServerState::Following => Self::Following,
            ServerState::Leading => Self::Leading,
            ServerState::Observing => Self::Observing,
        }
    }
}

impl From<Phase> for Stage {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Election => Self::Election,
            Phase::Discovery => Self::Discovery,
            Phase::Synchronization => Self::Synchronization,
            Phase::Broadcast => Self::Broadcast,
        }
    }
}

impl ChangeLine {
    /// The line for what a server reported at `at` after the writer's start.
    pub(crate) fn new(observed: &Observed, at: Duration) -> Self {
        let status = &observed.status;
        let (change, from, to) = match &observed.report.change {
            Change::State { from, to } => (What::State, Some(from.to_string()), to.to_string()),
            Change::Vote { from, to } => (What::Vote, Some(from.to_string()), to.to_string()),
            Change::Round { from, to } => (What::Round, Some(from.to_string()), to.to_string()),
            Change::BackIntoRound(round) => (What::Round, None, round.to_string()),
            Change::Phase { from, to } => (What::Phase, Some(from.to_string()), to.to_string()),
            Change::AcceptedEpoch(epoch) => (What::AcceptedEpoch, None, epoch.to_string()),
            Change::CurrentEpoch(epoch) => (What::CurrentEpoch, None, epoch.to_string()),
            Change::Configuration(version) => (What::Configuration, None, format!("{version:x}")),
            Change::NextConfiguration(version) => {
                (What::NextConfiguration, None, format!("{version:x}"))
            }
            Change::Sync { id, how } => (What::Sync, None, format!("{id} by {how}")),
            Change::Ignored { id, zxid } => (What::Ignored, None, format!("{zxid} of {id}")),
            Change::Learner { id, synced: true } => {
                (What::Learner, None, format!("{id} synchronised"))
            }
            Change::Learner { id, synced: false } => (What::Learner, None, format!("{id} lost")),
        };
        let vote = status.vote;
        Self {
            at_ms: millis(at),
            server: status.id.0,
            change,
            from,
            to,
            reason: observed.report.reason.to_string(),
            state: status.state.into(),
            phase: status.phase.into(),
            round: status.round.0,
            vote: VoteLine {
                leader: known(vote.leader.0),
                peer_epoch: known(vote.peer_epoch.0),
                zxid: known(vote.zxid.0).map(|_| vote.zxid.to_string()),
            },
            leader: status.leader.map(|id| id.0),
            accepted_epoch: status.accepted_epoch.0,
            current_epoch: status.current_epoch.0,
            serving: status.serving,
        }
    }
}

/// The smallest number is the wire's mark for "none".
pub(crate) fn known(number: i64) -> Option<i64> {
    (number != i64::MIN).then_some(number)
}

/// Milliseconds, to the microsecond.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
