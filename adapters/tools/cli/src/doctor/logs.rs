//! Logs of servers, from files: plain, or compressed with gzip.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use quorate_doctor::Log;
use quorate_timeline::{Source, Timeline};
use quorate_tokio::core::id::ServerId;

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
        let log = match bytes(path) {
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

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|end| end == "gz") {
        MultiGzDecoder::new(file).take(LOG_MAX).read_to_end(&mut bytes)?;
    } else {
        file.by_ref().take(LOG_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// So much of a log is read: what is beyond is of another day.
const LOG_MAX: u64 = 256 << 20;
