//! One thing that forbids a replacement, endangers it, or should be known.

use std::path::{Path, PathBuf};

use quorate_tokio::core::id::ServerId;
use quorate_tokio::zoo_cfg::{Place, Setting};
use serde::Serialize;

/// How much it matters. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// The replacement does not work, or loses something.
    Forbids,
    /// It may, unless something is seen to.
    Endangers,
    /// To be known.
    Notice,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// The server, if it is one's alone and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<PathBuf>,
    /// In the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) setting: Option<String>,
    /// Its value; asterisks for a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
    /// What it is about.
    pub(super) finding: String,
    /// What to do.
    #[serde(rename = "do")]
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn new(level: Level, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level,
            server: None,
            file: None,
            line: None,
            setting: None,
            value: None,
            finding: finding.into(),
            remedy: remedy.into(),
        }
    }

    pub(super) fn of(self, server: Option<ServerId>) -> Self {
        Self { server: server.map(|id| id.0), ..self }
    }

    pub(super) fn in_file(self, file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    pub(super) fn at(self, at: &Place) -> Self {
        let line = Some(at.line).filter(|line| *line > 0);
        Self { line, ..self.in_file(&at.file) }
    }

    pub(super) fn set_by(self, setting: &Setting) -> Self {
        let (key, value) = (setting.key.clone(), setting.shown().to_owned());
        Self { setting: Some(key), value: Some(value), ..self.at(&setting.at) }
    }
}
