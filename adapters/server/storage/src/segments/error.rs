//! The error of opening the log segments and snapshots of a directory.

use std::path::PathBuf;

use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::cursor::CursorError;
use crate::error::{Corruption, FileError, SAFE};
use crate::install::InstallError;

/// Why a history cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Acknowledged transactions may be missing.
    #[error("{0}. {safe}", safe = SAFE)]
    Corrupt(#[from] Corruption),
    /// An interrupted installation cannot be finished.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// There is a log and no snapshot from which it goes on.
    #[error(
        "{} has no snapshot, but there is a transaction log. If the ensemble never had a snapshot, as those \
         of ZooKeeper 3.4 may not, allow it with snapshot.trust.empty; if one was here and is lost, what it \
         held is not in the log. {safe}", dir.display(), safe = SAFE
    )]
    NoSnapshot {
        /// Where the snapshot should be.
        dir: PathBuf,
    },
    /// There are snapshots, but none of them can be used.
    #[error(
        "no snapshot in {} is whole. {safe}", dir.display(), safe = SAFE
    )]
    NoWholeSnapshot {
        /// Where they are.
        dir: PathBuf,
    },
    /// The newest snapshot cannot be read, and the log does not lead to it from an older one.
    #[error(
        "the snapshot of {label} cannot be read, and the log does not lead from the one of {base} to \
         it. {safe}", safe = SAFE
    )]
    Lost {
        /// The label of the one that cannot be read.
        label: Zxid,
        /// The label of the next older one.
        base: Zxid,
    },
    /// A log file stands where the snapshots are, or the other way round.
    #[error("{} is in the wrong directory: check dataDir and dataLogDir", path.display())]
    Stray {
        /// The file.
        path: PathBuf,
    },
}

impl From<CursorError> for OpenError {
    fn from(error: CursorError) -> Self {
        match error {
            CursorError::File(error) => Self::File(error),
            CursorError::Corrupt(error) => Self::Corrupt(error),
        }
    }
}
