//! The last changes of a server, kept in memory, and written beside its data when it must not go on: what led to it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use quorate_tokio::{Changes, ServerError};

use crate::logs::{JsonLine, of_change};

/// The last changes, which no reader has taken yet: the ring that the server fills for each reader, and which loses the
/// oldest.
#[derive(Debug)]
pub(crate) struct LastChanges {
    changes: Changes,
    path: PathBuf,
    sid: i64,
}

impl LastChanges {
    pub(crate) const fn new(changes: Changes, path: PathBuf, sid: i64) -> Self {
        Self { changes, path, sid }
    }

    /// Where they are written.
    pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
        data_dir.join("last-changes.jsonl")
    }

    /// Writes them, and last why the server has ended; in place of those of the time before.
    pub(crate) fn write(mut self, error: &ServerError) {
        let now = (Instant::now(), SystemTime::now());
        let mut text = String::new();
        while let Some(observed) = self.changes.try_next() {
            text += &of_change(&observed, now).text();
            text.push('\n');
        }
        let end = JsonLine {
            at: now.1,
            level: "error",
            event: "server.stopped",
            sid: self.sid,
            fields: vec![("error", error.to_string().into())],
            msg: "server ends".to_owned(),
        };
        text += &end.text();
        text.push('\n');
        let write = || {
            let mut file = fs::File::create(&self.path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        let path = self.path.display();
        match write() {
            Ok(()) => tracing::info!(event = "server.failed", %path, "the last changes are kept"),
            Err(error) => {
                tracing::warn!(event = "server.failed", %path, %error, "the last changes are lost");
            }
        }
    }
}

/// How many changes are kept.
pub(crate) const KEPT: usize = 1024;
