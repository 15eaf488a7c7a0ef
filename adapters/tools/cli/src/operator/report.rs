//! What an operator is told of a running server: as JSON on its way, and as text for people.

use std::fmt::Write as _;

use quorate_tokio::Status;
use serde::{Deserialize, Serialize};

/// What comes of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The membership that is in force now.
    Membership(String),
    /// Who leads now.
    Leads(Leads),
    /// How the server does.
    Status(Box<Doing>),
    /// What of its file counts now.
    Reloaded(Reloaded),
    /// What it logs.
    LogLevel {
        /// The filter.
        filter: String,
    },
    /// A snapshot was taken.
    Snapshot {
        /// The last transaction that is in it.
        zxid: String,
        /// Its file.
        file: String,
        /// How long that is; unknown if it has gone again.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// Clients have gone elsewhere.
    Shed {
        /// How many were to go.
        goal: usize,
        /// How many have gone.
        gone: usize,
    },
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leads {
    /// The server that was asked.
    pub(crate) server: i64,
    /// The leader.
    pub(crate) leader: i64,
    /// The epoch of its leadership.
    pub(crate) epoch: i64,
    /// Whether it is another one than before.
    pub(crate) changed: bool,
}

/// What of a file counts now, what later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reloaded {
    /// What has changed and counts now: `key=value`, or `key` alone where the line is gone.
    pub(crate) now: Vec<String>,
    /// What has changed and counts when the server starts again.
    pub(crate) at_restart: Vec<String>,
    /// What the operator should know of the file.
    pub(crate) warnings: Vec<String>,
}

/// How a server does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Doing {
    pub(crate) server: i64,
    pub(crate) state: String,
    pub(crate) phase: String,
    pub(crate) serving: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader: Option<i64>,
    pub(crate) epoch: i64,
    pub(crate) accepted_epoch: i64,
    pub(crate) round: i64,
    pub(crate) zxid: String,
    pub(crate) applied: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sync: Option<String>,
    pub(crate) voter: bool,
    pub(crate) voters: usize,
    /// Those that are brought up by this leader, the ones that have all marked.
    pub(crate) learners: Vec<(i64, bool)>,
    /// Those that it hears elections from.
    pub(crate) linked: Vec<i64>,
    pub(crate) clients: usize,
    pub(crate) uptime_ms: u64,
    pub(crate) ending: bool,
    /// What it logs.
    pub(crate) log: String,
    /// What is in its file and counts when it starts again.
    pub(crate) at_restart: Vec<String>,
}

impl Doing {
    pub(crate) fn new(status: &Status, log: String, at_restart: Vec<String>) -> Self {
        let Status { peer, sync, metrics } = status;
        Self {
            server: peer.id.0,
            state: peer.state.to_string().to_lowercase(),
            phase: peer.phase.to_string(),
            serving: peer.serving,
            leader: peer.leader.map(|id| id.0),
            epoch: peer.current_epoch.0,
            accepted_epoch: peer.accepted_epoch.0,
            round: peer.round.0,
            zxid: peer.processed.to_string(),
            applied: metrics.applied.to_string(),
            sync: sync.map(|how| how.to_string().to_lowercase()),
            voter: peer.voter,
            voters: peer.voters,
            learners: peer.learners.iter().map(|of| (of.id.0, of.synced)).collect(),
            linked: peer.linked.iter().map(|id| id.0).collect(),
            clients: metrics.clients,
            uptime_ms: u64::try_from(metrics.uptime.as_millis()).unwrap_or(u64::MAX),
            ending: metrics.ending,
            log,
            at_restart,
        }
    }

    fn text(&self) -> String {
        let leader = match (self.leader, self.state.as_str()) {
            (Some(leader), "following" | "observing") => format!(" {leader}"),
            _ => String::new(),
        };
        let Self { server, state, phase, epoch, zxid, applied, clients, log, .. } = self;
        let mut text = format!(
            "server {server}: {state}{leader}, {phase}, epoch {epoch}, zxid {zxid}\nserving: {}\n",
            if self.serving { "yes" } else { "no" }
        );
        let mut line = |key: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key}: {value}");
        };
        line("applied", applied.clone());
        let role = if self.voter { "votes" } else { "does not vote" };
        line("voters", format!("{}, and this server {role}", self.voters));
        if !self.learners.is_empty() {
            let learner = |(id, synced): &(i64, bool)| match synced {
                true => id.to_string(),
                false => format!("{id} (being brought up)"),
            };
            line("learners", join(self.learners.iter().map(learner)));
        }
        line("linked to", join(self.linked.iter().map(i64::to_string)));
        line("clients", clients.to_string());
        line("up", format!("{} s", self.uptime_ms / 1000));
        line("logs", log.clone());
        if !self.at_restart.is_empty() {
            line("counts after a restart", self.at_restart.join(", "));
        }
        text
    }
}

impl Report {
    /// For people, whole lines.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Membership(text) => format!("{text}\n"),
            Self::Leads(Leads { leader, epoch, changed: true, .. }) => {
                format!("server {leader} leads, epoch {epoch}\n")
            }
            Self::Leads(Leads { server, leader, epoch, changed: false }) if server == leader => {
                format!("server {leader} leads already, epoch {epoch}\n")
            }
            Self::Leads(Leads { server, leader, epoch, changed: false }) => format!(
                "server {server} does not lead, and has nothing to give: server {leader} does, epoch {epoch}\n"
            ),
            Self::Status(doing) => doing.text(),
            Self::Reloaded(reloaded) => reloaded.text(),
            Self::LogLevel { filter } => format!("logs {filter}\n"),
            Self::Snapshot { zxid, file, bytes } => {
                let bytes = bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
                format!("{file}: everything through {zxid}{bytes}\n")
            }
            Self::Shed { goal, gone } => format!("{gone} of {goal} connections closed\n"),
        }
    }
}

impl Reloaded {
    fn text(&self) -> String {
        let mut text = String::new();
        for (what, changes) in [
            ("counts now", &self.now),
            ("counts after a restart", &self.at_restart),
            ("warning", &self.warnings),
        ] {
            for change in changes {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{what}: {change}");
            }
        }
        if self.now.is_empty() && self.at_restart.is_empty() {
            text.push_str("nothing has changed\n");
        }
        text
    }
}

fn join(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
