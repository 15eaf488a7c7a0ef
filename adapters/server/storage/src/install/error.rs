//! The error of installing a history.

use std::io;
use std::path::PathBuf;

use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::{FileError, SAFE};

/// Why a history cannot be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// A transaction does not follow the one before it.
    #[error("transaction {zxid} does not follow {after} of the history to be installed")]
    Order {
        /// The transaction.
        zxid: Zxid,
        /// The last one, or the snapshot's label.
        after: Zxid,
    },
    /// A transaction is longer than a log may have it.
    #[error(
        "transaction {zxid} has {length} bytes; at most {max} are written to a log (jute.maxbuffer and its extrasize)"
    )]
    TooLong {
        /// The transaction.
        zxid: Zxid,
        /// How long it is.
        length: usize,
        /// How long it may be.
        max: usize,
    },
    /// The marker of an installation cannot be read.
    #[error(
        "{} does not name the files of a history; it is damaged or not ours. {safe}", path.display(),
        safe = SAFE
    )]
    Marker {
        /// The file.
        path: PathBuf,
    },
    /// A marker is there, but what it names is not.
    #[error(
        "a history was being installed, but {} is missing. {safe}", path.display(), safe = SAFE
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// What the history holds of the membership cannot be kept.
    #[error("cannot keep the membership that came with a history in {}: {source}", path.display())]
    Membership {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}
