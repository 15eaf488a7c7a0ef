//! What a log tells of its server: events, each with the line that it was read from.

use quorate_core::id::ServerId;
use quorate_core::report::How;
use quorate_core::status::Phase;
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

/// What happened on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Its process has started.
    Started,
    /// It ends in order.
    Stopped,
    /// It begins an election with a vote for itself (Java), which its log tells in full only when it is heard.
    Begins { zxid: Zxid },
    /// Its vote is now this.
    Votes { vote: Vote, round: Round, why: String, says: Option<ServerId> },
    /// A notification came in.
    Heard { from: ServerId, state: ServerState, vote: Vote, round: Round },
    /// Its state is now this. `members` are those whose votes decided, where the log says so.
    State { to: ServerState, leader: Option<ServerId>, members: Vec<ServerId>, why: String },
    /// Its phase is now this.
    Phase { to: Phase, members: Vec<ServerId>, why: String },
    /// It heard nothing for so long.
    Silence { ms: i64 },
    /// It cannot reach another server.
    Unreachable { peer: ServerId },
    /// It lost the connection to its leader, or gave up leading.
    Lost { why: String },
    /// A leader: a learner has connected.
    Connected { learner: ServerId },
    /// A leader: a learner has promised the epoch.
    Compared { learner: ServerId },
    /// A learner is brought up so; said by both.
    Sync { learner: ServerId, how: How },
    /// It has promised an epoch, or as a leader begins one.
    Promised { epoch: Epoch, members: Vec<ServerId>, why: String },
    /// A learner: it has taken over its leader's history.
    TookOver { epoch: Option<Epoch> },
    /// A leader: these have taken its history over, and it serves.
    Quorum { members: Vec<ServerId>, epoch: Option<Epoch> },
    /// A leader: a learner has taken its history over.
    Learner { id: ServerId, synced: bool },
    /// A learner: it may serve.
    UpToDate,
    /// The first transaction of an epoch is being written.
    Wrote { zxid: Zxid },
}

/// An event of one server.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The server that logged it, if the line says so.
    pub(crate) own: Option<ServerId>,
    /// Microseconds since 1970 by its own clock.
    pub(crate) at: i64,
    /// The time is known to so many microseconds: it was cut, not rounded.
    pub(crate) fine: i64,
    /// So many microseconds may have passed before the line was written.
    pub(crate) late: i64,
    /// The log's place among those that were given.
    pub(crate) log: usize,
    /// The line in it, from 1.
    pub(crate) line: usize,
    /// The line itself, its beginning.
    pub(crate) text: String,
    /// What it tells.
    pub(crate) what: What,
}

/// What a line says, before it is known whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// What has happened.
    pub(crate) what: What,
    /// The server that says it, if it does.
    pub(crate) own: Option<ServerId>,
}

impl Said {
    pub(crate) fn new(what: What) -> Self {
        Self { what, own: None }
    }
}

impl What {
    /// In a few words, for people.
    pub(crate) fn words(&self) -> (String, String) {
        let said = |what: &str| (what.to_owned(), String::new());
        match self {
            Self::Started => said("starts"),
            Self::Stopped => said("ends in order"),
            Self::Begins { .. } => said("begins an election"),
            Self::Votes { vote, round, why, .. } => {
                (format!("votes {}, round {round}", vote.leader), why.clone())
            }
            Self::Heard { from, state, vote, round } => (
                match state {
                    ServerState::Looking => {
                        format!("hears {from}: votes {}, round {round}", vote.leader)
                    }
                    ServerState::Leading => format!("hears {from}: LEADING, round {round}"),
                    ServerState::Following | ServerState::Observing => {
                        format!("hears {from}: {state} {}, round {round}", vote.leader)
                    }
                },
                String::new(),
            ),
            Self::State { to, leader, why, .. } => (
                match leader.filter(|_| *to == ServerState::Following) {
                    Some(leader) => format!("{to} {leader}"),
                    None => to.to_string(),
                },
                why.clone(),
            ),
            Self::Phase { to, why, .. } => (to.to_string(), why.clone()),
            Self::Silence { ms } => (format!("asks again, waits {ms} ms"), String::new()),
            Self::Unreachable { peer } => (format!("cannot reach {peer}"), String::new()),
            Self::Lost { why } => (why.clone(), String::new()),
            Self::Connected { learner } => (format!("learner {learner} connected"), String::new()),
            Self::Compared { learner } => (format!("learner {learner} promised"), String::new()),
            Self::Sync { learner, how } => (format!("{how} for {learner}"), String::new()),
            Self::Promised { epoch, why, .. } => (format!("promises epoch {epoch}"), why.clone()),
            Self::TookOver { epoch: Some(epoch) } => {
                (format!("has the history of epoch {epoch}"), String::new())
            }
            Self::TookOver { epoch: None } => said("has the leader's history"),
            Self::Quorum { members, .. } => {
                ("serves".to_owned(), format!("quorum {} acknowledged", set(members)))
            }
            Self::Learner { id, synced: true } => {
                (format!("learner {id} synchronised"), String::new())
            }
            Self::Learner { id, synced: false } => (format!("learner {id} lost"), String::new()),
            Self::UpToDate => said("may serve"),
            Self::Wrote { zxid } => (format!("writes {zxid}"), String::new()),
        }
    }
}

/// Servers as `{1,2}`.
pub(crate) fn set(ids: &[ServerId]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    format!("{{{}}}", ids.join(","))
}
