//! What an operator asks of a running server, and what comes back.

use serde::{Deserialize, Serialize};

use super::membership::Wanted;
use super::report::Report;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// Another membership, or which one it is.
    Reconfig(Wanted),
    /// That another server leads.
    Transfer {
        /// Which.
        to: Successor,
        /// How long that may take, in milliseconds.
        wait_ms: u64,
    },
    /// That this server does not lead, for the moment at least.
    StepDown {
        /// How long to wait for a leader behind it, in milliseconds.
        wait_ms: u64,
    },
    /// How it does.
    Status,
    /// That it reads its file again.
    Reload,
    /// What it logs.
    LogLevel {
        /// A filter; what it was at the start, if there is none.
        filter: Option<String>,
    },
    /// A snapshot.
    Snapshot {
        /// How long that may take, in milliseconds.
        wait_ms: u64,
    },
    /// That clients go elsewhere.
    Shed {
        /// How many in a hundred.
        percent: u8,
        /// Within about how many milliseconds.
        within_ms: u64,
    },
}

impl Question {
    /// What it is called in the audit log; none if it changes nothing.
    pub(super) const fn operation(&self) -> Option<&'static str> {
        Some(match self {
            Self::Status => return None,
            Self::Reconfig(_) => "reconfig",
            Self::Transfer { .. } => "transferLeadership",
            Self::StepDown { .. } => "stepDown",
            Self::Reload => "reload",
            Self::LogLevel { .. } => "logLevel",
            Self::Snapshot { .. } => "takeSnapshot",
            Self::Shed { .. } => "shedClients",
        })
    }
}

/// Who is to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Successor {
    /// The best that there is.
    Best,
    /// Of those that can take over at once the one with the lowest number: who restarts servers from the highest number
    /// down hands the leadership over once, not each time.
    Lowest,
    /// This one.
    Server(i64),
}

impl Answer {
    /// What became of it, in the words of the audit log.
    pub(super) const fn result(&self) -> &'static str {
        match self {
            Self::Done(_) => "success",
            Self::Unchanged(_) | Self::Wrong(_) => "failure",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is done, or so it is.
    Done(Report),
    /// Nothing has changed.
    Unchanged(String),
    /// The outcome is unknown.
    Unknown(String),
    /// What was asked, or the file that it is about, cannot be used; nothing has changed.
    Wrong(String),
}
