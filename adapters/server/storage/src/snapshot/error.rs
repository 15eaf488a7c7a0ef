//! The error of writing and reading a snapshot file.

use std::path::PathBuf;

use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::FileError;

/// Why a snapshot cannot be written or read.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// It does not begin as a snapshot does.
    #[error("{} is no snapshot: it begins with {found:02x?}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: [u8; 16],
    },
    /// It ends too early.
    #[error("the snapshot {} ends too early, after {offset} bytes", path.display())]
    Ended {
        /// The file.
        path: PathBuf,
        /// How many bytes it has, uncompressed.
        offset: u64,
    },
    /// A checksum does not fit.
    #[error(
        "the seal at offset {offset} of the snapshot {} of {label} does not fit to its content",
        path.display()
    )]
    Seal {
        /// The file.
        path: PathBuf,
        /// Where the seal stands, uncompressed.
        offset: u64,
        /// The snapshot's label.
        label: Zxid,
    },
    /// Behind the seals stands what no version of ZooKeeper writes.
    #[error("the snapshot {} of {label} has something odd at offset {offset}", path.display())]
    Odd {
        /// The file.
        path: PathBuf,
        /// Where it stands, uncompressed.
        offset: u64,
        /// The snapshot's label.
        label: Zxid,
    },
    /// No snapshot can have that label.
    #[error("a snapshot cannot be labelled {label}")]
    Label {
        /// The label.
        label: Zxid,
    },
    /// The log does not reach as far as the snapshot, so that a start from it would leave a hole.
    #[error(
        "the snapshot of {label} is not published while the log is durable through {durable} only"
    )]
    NotDurable {
        /// The snapshot's label.
        label: Zxid,
        /// The last transaction that is durable.
        durable: Zxid,
    },
    /// An earlier write to the directory failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}
