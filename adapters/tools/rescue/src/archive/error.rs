//! What is wrong with the file of a backup.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::history::HistoryError;
use crate::manifest::{Manifest, Mismatch};

/// Why a file is no backup that can be restored from.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file, or the part in it.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It does not begin as a backup does, or ends before that.
    #[error("{} is no backup of quorate, or was cut short: {problem}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: Malformed,
    },
    /// A later version wrote it.
    #[error(
        "{} has format {found}; this version of quorate reads {}", path.display(), Manifest::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It is longer or shorter than its parts make it.
    #[error(
        "{} has {found} bytes and should have {expected}: it was cut short, or something was added to it", path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// How long it is.
        found: u64,
        /// How long it should be.
        expected: u64,
    },
    /// What follows the manifest is not what it names.
    #[error("{} is damaged: {problem}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: Malformed,
    },
    /// A part is not what it was.
    #[error(
        "{}: {name} is damaged: its SHA-256 is {found}, the manifest says {told}", path.display()
    )]
    Sum {
        /// The file.
        path: PathBuf,
        /// The part.
        name: String,
        /// What its bytes give.
        found: String,
        /// What they should.
        told: String,
    },
    /// Its parts make no history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// They make another one than the manifest says.
    #[error("{}: {mismatch}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// In what.
        mismatch: Mismatch,
    },
}

/// What is not as [`archive`](crate::archive) has it.
#[derive(Debug, Error)]
pub enum Malformed {
    /// It is no tar, or cannot be read.
    #[error(transparent)]
    Tar(#[from] io::Error),
    /// The manifest is none.
    #[error("{name}: {0}", name = Manifest::NAME)]
    Json(#[from] serde_json::Error),
    /// It begins with something else.
    #[error("it does not begin with {}", Manifest::NAME)]
    NoManifest,
    /// The file ends there.
    #[error("it ends within {}", Manifest::NAME)]
    ManifestEnds,
    /// There would be nothing in it.
    #[error("it names no parts")]
    NoParts,
    /// The first part is no snapshot by its name.
    #[error("{0:?} is no snapshot")]
    NoSnapshot(String),
    /// Another part is no log file by its name.
    #[error("{0:?} is no log file, or not in its place")]
    NoLog(String),
    /// An entry is another than the manifest has there.
    #[error("{} is not what the manifest has in its place", .0.display())]
    OutOfPlace(PathBuf),
    /// An entry is not there.
    #[error("{0} is missing")]
    Missing(String),
}
