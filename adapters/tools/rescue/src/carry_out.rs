//! Carrying out a recovery that nothing is against: a copy, then the epochs.
//!
//! ```text
//!   copy, verified ─► recovered.json, not complete ─► acceptedEpoch ─► currentEpoch
//!     ─► (the caller: the membership) ─► recovered.json, complete
//! ```
//!
//! The epochs come before the membership: a kept server that starts in between is one of too few of the old membership,
//! and cannot lead. The other way round it could lead in an epoch that an old disk has, too. What was interrupted is
//! done again from the beginning, with another place for the copy.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use quorate_core::zxid::Epoch;
use quorate_storage::segments::SegmentOptions;
use quorate_storage::{Disk, Files, Lock, Log, LogError, OpenOptions};
use thiserror::Error;

use crate::durable::{WriteError, at, create, create_dir, first_in, pass, sync_dir};
use crate::recovered::{self, Recovered, RecoveredError};
use crate::source::Source;

/// What is in the way of a copy of `source` in `to`: something that is there, or that one is inside of the other.
///
/// # Errors
///
/// A [`WriteError`] if it cannot be found out.
pub fn in_the_way(source: &Source, to: &Path) -> Result<Option<PathBuf>, WriteError> {
    let whole = |path: &Path| std::path::absolute(path).map_err(at("look at", path));
    let to = whole(to)?;
    for dir in [Some(&source.data_dir), source.data_log_dir.as_ref()].into_iter().flatten() {
        let dir = whole(dir)?;
        if to.starts_with(&dir) || dir.starts_with(&to) {
            return Ok(Some(dir));
        }
    }
    first_in(&to)
}

/// Copies a data directory, and reads the copy back. Tells how many files that were.
///
/// # Errors
///
/// A [`CarryOutError`], also if a server has the directory open.
pub fn copy(source: &Source, to: &Path) -> Result<usize, CarryOutError> {
    let lock = source.dirs().snapshots.join(LOCK);
    let _held = match Disk.lock(&lock).map_err(at("lock", &lock))? {
        Lock::Ours(held) => held,
        Lock::Taken(_) => return Err(CarryOutError::Locked { dir: source.data_dir.clone() }),
    };
    let mut pairs = vec![
        (source.data_dir.clone(), to.to_owned()),
        (source.data_dir.join("version-2"), to.join("version-2")),
    ];
    if let Some(logs) = source.data_log_dir.as_ref().filter(|logs| **logs != source.data_dir) {
        pairs.push((logs.join("version-2"), to.join("dataLogDir").join("version-2")));
    }
    let mut copied = 0;
    for (from, to) in pairs {
        create_dir(&to)?;
        let entries = fs::read_dir(&from).map_err(at("list", &from))?;
        for entry in entries {
            let entry = entry.map_err(at("list", &from))?;
            let is_file = entry.file_type().map_err(at("look at", &entry.path()))?.is_file();
            if is_file && entry.file_name() != LOCK {
                copy_file(&entry.path(), &to.join(entry.file_name()))?;
                copied += 1;
            }
        }
        sync_dir(&to)?;
    }
    Ok(copied)
}

fn copy_file(from: &Path, to: &Path) -> Result<(), CarryOutError> {
    let open = |path: &Path| -> Result<(File, u64), WriteError> {
        let file = File::open(path).map_err(at("open", path))?;
        let bytes = file.metadata().map_err(at("look at", path))?.len();
        Ok((file, bytes))
    };
    let (file, bytes) = open(from)?;
    let mut copy = create(to)?;
    let read = pass(file, bytes, |piece| copy.write_all(piece)).map_err(at("copy", from))?;
    copy.sync_all().map_err(at("sync", to))?;
    let (file, bytes) = open(to)?;
    let written = pass(file, bytes, |_| Ok(())).map_err(at("read", to))?;
    if read == written { Ok(()) } else { Err(CarryOutError::Differs { copy: to.to_owned() }) }
}

/// Raises both epochs, behind the note that this was begun.
///
/// # Errors
///
/// A [`CarryOutError`]; done again it goes on.
pub fn raise(source: &Source, begun: &Recovered) -> Result<(), CarryOutError> {
    recovered::write(&source.data_dir, &Recovered { complete: false, ..begun.clone() })?;
    let options = OpenOptions {
        data_log_dir: source.data_log_dir.clone(),
        segments: SegmentOptions {
            txn_bytes_max: source.txn_bytes_max,
            ..SegmentOptions::default()
        },
        ..OpenOptions::default()
    };
    let (mut log, _found) = Log::open(&source.data_dir, options)?;
    log.write_accepted_epoch(Epoch(begun.epoch))?;
    log.write_current_epoch(Epoch(begun.epoch))?;
    Ok(log.close()?)
}

/// Notes that all of it is done.
///
/// # Errors
///
/// A [`CarryOutError`] if the note cannot be written.
pub fn finish(source: &Source, begun: &Recovered) -> Result<(), CarryOutError> {
    Ok(recovered::write(&source.data_dir, &Recovered { complete: true, ..begun.clone() })?)
}

/// Why a recovery was not carried out to its end.
#[derive(Debug, Error)]
pub enum CarryOutError {
    /// A server has the directory open.
    #[error("{}: a server has it open", dir.display())]
    Locked {
        /// Which.
        dir: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The copy of a file is not what the file is.
    #[error("{} does not read back as what was copied", copy.display())]
    Differs {
        /// The copy.
        copy: PathBuf,
    },
    /// The note cannot be written.
    #[error(transparent)]
    Note(#[from] RecoveredError),
    /// The epochs cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// What servers of ours keep one another out with.
const LOCK: &str = "quorate.lock";
