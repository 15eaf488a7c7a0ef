//! What is told in the end: the findings, and every place that was looked at, or was not, with the reason.

use quorate_core::id::ServerId;
use serde::Serialize;

use crate::finding::{Finding, Level};

/// A place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Looked {
    /// `zoo.cfg`, `election port`, `client port`, `data directory`, `log`, `this host`.
    pub what: &'static str,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<i64>,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A place that was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotLooked {
    /// As in [`Looked`].
    pub what: &'static str,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<i64>,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Why not.
    pub because: String,
}

/// Where one looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// With success.
    pub done: Vec<Looked>,
    /// Without.
    pub failed: Vec<NotLooked>,
}

impl Looks {
    /// It was looked at.
    pub fn done(&mut self, what: &'static str, server: Option<ServerId>, address: String) {
        let server = server.map(|id| id.0);
        self.done.push(Looked { what, server, address: Some(address) });
    }

    /// It was not.
    pub fn failed(
        &mut self,
        what: &'static str,
        server: Option<ServerId>,
        address: String,
        because: String,
    ) {
        let server = server.map(|id| id.0);
        self.failed.push(NotLooked { what, server, address: Some(address), because });
    }
}

/// All of it. Its JSON is one object.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of the doctor.
    pub version: &'static str,
    /// When it looked.
    pub at: String,
    /// Where it looked.
    pub looked_at: Vec<Looked>,
    /// Where it could not.
    pub not_looked_at: Vec<NotLooked>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// How many findings there are of each level.
    pub summary: Summary,
    /// How many members answered, of how many.
    #[serde(skip)]
    pub members: (usize, usize),
}

/// How many findings there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Errors.
    pub error: usize,
    /// Warnings.
    pub warning: usize,
    /// Notices.
    pub notice: usize,
}

impl Report {
    /// Puts a report together. `at`: the time, as people write it. `members`: how many answered, of how many.
    pub fn new(at: String, looks: Looks, findings: Vec<Finding>, members: (usize, usize)) -> Self {
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let summary = Summary {
            error: count(Level::Error),
            warning: count(Level::Warning),
            notice: count(Level::Notice),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            at,
            looked_at: looks.done,
            not_looked_at: looks.failed,
            findings,
            summary,
            members,
        }
    }

    /// Whether anything was found that matters so much, or more.
    pub fn has(&self, level: Level) -> bool {
        self.findings.iter().any(|finding| finding.level <= level)
    }
}
