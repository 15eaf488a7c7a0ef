//! One thing that is wrong: how much it matters, of what, what was seen, why, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use quorate_core::id::ServerId;
use quorate_driver::zoo_cfg::{Place, Setting};
use serde::Serialize;

/// How much a finding matters. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It does not or will not work, or data are at risk.
    Error,
    /// It works until something else happens.
    Warning,
    /// To be known.
    Notice,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        })
    }
}

/// What a finding is about; nothing, if it is the ensemble as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<i64>,
    /// The file or directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A host, where it is one rather than a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl Subject {
    /// A server.
    pub fn server(id: ServerId) -> Self {
        Self { server: Some(id.0), ..Self::default() }
    }

    /// A file, and whose it is if that is known.
    pub fn file(path: &Path, server: Option<ServerId>) -> Self {
        let server = server.map(|id| id.0);
        Self { server, file: Some(path.to_owned()), ..Self::default() }
    }

    /// A host.
    pub fn host(host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..Self::default() }
    }

    /// The same in a line.
    #[must_use]
    pub fn at(self, at: &Place) -> Self {
        Self { file: Some(at.file.clone()), line: Some(at.line).filter(|line| *line > 0), ..self }
    }

    /// The same in the line of a setting.
    #[must_use]
    pub fn set_by(self, setting: &Setting) -> Self {
        Self { key: Some(setting.key.clone()), ..self.at(&setting.at) }
    }

    /// The same with the name of a setting that may not be written anywhere.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Whether one may be the cause of the other: they are of one server, or one is of the ensemble.
    pub(crate) fn concerns(&self, other: &Self) -> bool {
        self.server.is_none() || other.server.is_none() || self.server == other.server
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.server.map(|id| format!("server {id}")));
        parts.extend(self.host.clone());
        let line = self.line.map_or(String::new(), |line| format!(":{line}"));
        parts.extend(self.file.as_ref().map(|file| format!("{}{line}", file.display())));
        parts.extend(self.key.clone());
        if parts.is_empty() {
            return f.write_str("the ensemble");
        }
        f.write_str(&parts.join(", "))
    }
}

/// Something that was seen, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where: a file and line, a port, a rule whose finding is folded under this one.
    pub source: String,
    /// What.
    pub value: String,
}

impl Evidence {
    pub(crate) fn new(source: impl fmt::Display, value: impl Into<String>) -> Self {
        let value: String = value.into();
        Self { source: source.to_string(), value: shortened(&value) }
    }
}

/// What others wrote stands in a finding without its control characters, and not at any length.
pub(crate) fn shortened(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().map(plain).take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// So many characters of what was seen are shown.
const SHOWN: usize = 240;

/// What a rule has found, before the rest is added that is the same in all its findings.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) level: Level,
    pub(crate) subject: Subject,
    pub(crate) what: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) todo: Vec<String>,
}

impl Found {
    pub(crate) fn new(level: Level, subject: Subject, what: impl Into<String>) -> Self {
        let what: String = what.into();
        Self { level, subject, what, evidence: Vec::new(), todo: Vec::new() }
    }

    pub(crate) fn error(subject: Subject, what: impl Into<String>) -> Self {
        Self::new(Level::Error, subject, what)
    }

    pub(crate) fn warning(subject: Subject, what: impl Into<String>) -> Self {
        Self::new(Level::Warning, subject, what)
    }

    pub(crate) fn notice(subject: Subject, what: impl Into<String>) -> Self {
        Self::new(Level::Notice, subject, what)
    }

    pub(crate) fn seen(mut self, source: impl fmt::Display, value: impl Into<String>) -> Self {
        self.evidence.push(Evidence::new(source, value));
        self
    }

    pub(crate) fn seen_all(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    pub(crate) fn todo(mut self, what: impl Into<String>) -> Self {
        self.todo.push(what.into());
        self
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that has fired.
    pub rule: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What it is about.
    pub subject: Subject,
    /// What is wrong, in a sentence with the values.
    pub finding: String,
    /// What was seen, and where.
    pub evidence: Vec<Evidence>,
    /// Why it matters.
    pub why: &'static str,
    /// What to do.
    #[serde(rename = "do")]
    pub todo: Vec<String>,
    /// Where it is discussed.
    pub sources: &'static [&'static str],
    /// The rules whose findings come of this one and are not told beside it.
    pub explains: Vec<&'static str>,
}
