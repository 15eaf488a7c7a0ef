//! Making a backup of a data directory, also while its server runs.
//!
//! The directory is read twice: once to know what it holds, and how far; once to copy so much of it. A copy that is
//! not what was read before is given up, and all is read again: a running server cuts its log at times, and removes old
//! files. The new file is made beside the old one, synced, read back to its digest, and only then takes its name.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_core::zxid::Zxid;
use quorate_storage::Disk;
use thiserror::Error;

use crate::archive::{self, Archive, ArchiveError, WriteArchiveError};
use crate::durable::{WriteError, at, dir_of, pass, sync_dir};
use crate::history::{self, History, HistoryError};
use crate::manifest::{Manifest, Part, shown_digest};
use crate::source::Source;

/// Writes the backup of a directory into the file `to`, in place of one that is there; tells what is in it.
///
/// The last transactions of the log may never have been acknowledged, as with any server that starts again.
///
/// # Errors
///
/// A [`BackupError`]. What was in `to` before is there still.
pub fn take(
    source: &Source,
    to: &Path,
    zxid_at_least: Option<Zxid>,
) -> Result<Manifest, BackupError> {
    let mut tries = 1;
    loop {
        match try_to_take(source, to, zxid_at_least) {
            Err(
                BackupError::History(_) | BackupError::Part { .. } | BackupError::Changed { .. },
            ) if tries < TRIES => {
                std::thread::sleep(PAUSE);
                tries += 1;
            }
            done => return done,
        }
    }
}

fn try_to_take(
    source: &Source,
    to: &Path,
    zxid_at_least: Option<Zxid>,
) -> Result<Manifest, BackupError> {
    let history = history::load(&Disk, &source.dirs(), source.txn_bytes_max)?;
    let last = history.state.zxid;
    if let Some(least) = zxid_at_least.filter(|least| last < *least) {
        return Err(BackupError::TooOld { last, least });
    }
    let (manifest, files) = describe(source, &history)?;
    let dir = dir_of(to);
    let mut file = tempfile::Builder::new()
        .prefix(".quorate-backup-")
        .tempfile_in(dir)
        .map_err(at("write into", dir))?;
    archive::write(file.as_file_mut(), &manifest, &files).map_err(|error| match error {
        WriteArchiveError::Part { path, source } => BackupError::Part { path, source },
        WriteArchiveError::Write(source) => at("write", to)(source).into(),
    })?;
    file.as_file().sync_all().map_err(at("sync", to))?;
    match Archive::open(file.path()).and_then(|archive| archive.verify()) {
        // Its parts were summed before they were copied.
        Err(ArchiveError::Sum { name, .. }) => {
            return Err(BackupError::Changed { path: source.data_dir.join(name) });
        }
        read_back => read_back.map_err(BackupError::ReadBack)?,
    };
    file.persist(to).map_err(|error| at("replace", to)(error.error))?;
    sync_dir(dir)?;
    Ok(manifest)
}

/// The manifest, and the file of each part.
fn describe(source: &Source, history: &History) -> Result<(Manifest, Vec<PathBuf>), BackupError> {
    let whole = fs::metadata(&history.snapshot.path);
    let whole = whole.map_err(unread(&history.snapshot.path))?.len();
    let logs = history.logs.iter().map(|log| (log.path.clone(), log.bytes));
    let all = [(history.snapshot.path.clone(), whole)].into_iter().chain(logs);
    let (mut parts, mut files) = (Vec::new(), Vec::new());
    for (path, bytes) in all {
        let summed = File::open(&path).and_then(|file| pass(file, bytes, |_| Ok(())));
        let sha256 = summed.map_err(unread(&path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        parts.push(Part { name, bytes, sha256 });
        files.push(path);
    }
    let state = &history.state;
    let manifest = Manifest {
        format: Manifest::FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: now_ms(),
        source_id: source.id(),
        accepted_epoch: source.number("acceptedEpoch"),
        current_epoch: source.number("currentEpoch"),
        zxid: state.zxid.to_string(),
        epoch: state.zxid.epoch().0,
        nodes: state.nodes,
        sessions: state.sessions,
        digest: shown_digest(state.digest),
        txn_bytes_max: source.txn_bytes_max,
        parts,
    };
    Ok((manifest, files))
}

fn unread(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Part { path, source }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Why there is no backup.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The directory holds no history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A file could be read once, and not again: it went, or was cut.
    #[error("cannot copy {}: {source}", path.display())]
    Part {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file was changed while it was copied.
    #[error("{}: it changed each time while it was copied", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
    /// It is not as new as it is wished to be.
    #[error("the directory's last transaction is {last}, before {least}: nothing was written")]
    TooOld {
        /// Its last transaction.
        last: Zxid,
        /// What it should be, at least.
        least: Zxid,
    },
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was written does not read back.
    #[error("what was written does not read back: {0}")]
    ReadBack(#[source] ArchiveError),
}

/// How often a directory is read that changes meanwhile.
const TRIES: u32 = 3;
/// Between two tries: longer than a server takes to replace a file.
const PAUSE: Duration = Duration::from_millis(100);
