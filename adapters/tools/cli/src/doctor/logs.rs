//! Logs of servers, from files: plain, or compressed with gzip.

use std::path::PathBuf;

use quorate_doctor::Log;
use quorate_timeline::{Source, Timeline};
use quorate_tokio::core::id::ServerId;

use crate::log_file;
use crate::timeline::log_name;

/// A log, or whose it is and why it could not be read.
pub(super) type LogRead = (PathBuf, Result<Log, (Option<ServerId>, String)>);

/// What logs say.
pub(super) struct Read {
    pub(super) logs: Vec<LogRead>,
    /// How far the clocks of their servers are apart, in microseconds.
    pub(super) clocks: Vec<(i64, i64)>,
    /// Who was elected when.
    pub(super) elected: Vec<(i64, i64)>,
}

/// Reads all of them.
pub(super) fn read(files: &[(Option<ServerId>, PathBuf)]) -> Read {
    let mut read = Read { logs: Vec::new(), clocks: Vec::new(), elected: Vec::new() };
    let mut whole = Vec::new();
    let paths: Vec<_> = files.iter().map(|(_, path)| path.as_path()).collect();
    for (id, path) in files {
        let name = log_name(path, &paths);
        let log = match log_file::read(path) {
            Ok(bytes) => {
                let log = Log::of(&name, *id, &bytes);
                whole.push((name, bytes, *id));
                Ok(log)
            }
            Err(error) => Err((*id, error.to_string())),
        };
        read.logs.push((path.clone(), log));
    }
    if !whole.is_empty() {
        let sources: Vec<_> = whole
            .iter()
            .map(|(name, bytes, id)| Source { name, bytes, own: id.map(|id| id.0) })
            .collect();
        let timeline = Timeline::of(&sources);
        (read.clocks, read.elected) = (timeline.offsets(), timeline.elected());
    }
    read
}
