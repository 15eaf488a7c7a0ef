//! The error of opening a data directory and of writing to it.

use std::io;
use std::path::{Path, PathBuf};

use quorate_core::zxid::{Epoch, Zxid};
use thiserror::Error;

use crate::error::{FileError, SAFE};
use crate::install::InstallError;
use crate::retention::PurgeError;
use crate::segments::{AppendError, OpenError, TruncateError};
use crate::snapshot::SnapshotError;
use crate::vote::VoteError;

/// Why a data directory cannot be opened or written to.
#[derive(Debug, Error)]
pub enum LogError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The history cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Transactions cannot be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log cannot be cut.
    #[error(transparent)]
    Truncate(#[from] TruncateError),
    /// The history that a leader sent cannot be written or installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A snapshot cannot be published or removed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Nothing can be removed.
    #[error(transparent)]
    Purge(#[from] PurgeError),
    /// The longest lease that this server may have promised is not known.
    #[error(
        "{} should hold the longest lease that this server may have promised, in milliseconds; write the longest \
         quorate.lease that it ever had, or remove the file once every server has been up for as long", path.display()
    )]
    NoLease {
        /// The file.
        path: PathBuf,
    },
    /// The vote of this server is not known, or cannot be changed so.
    #[error(transparent)]
    Vote(#[from] VoteError),
    /// Another server, in this process or in another, has the directory.
    #[error("the data directory {} is in use by {}", dir.display(), holder(*pid))]
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// The process that has it, if it says.
        pid: Option<u32>,
    },
    /// An epoch file does not hold a number.
    #[error(
        "{} should hold a number and holds {found:?}. {safe}",
        path.display(), safe = SAFE
    )]
    Garbage {
        /// The file.
        path: PathBuf,
        /// The beginning of its content.
        found: String,
    },
    /// An epoch is below 0 or does not fit into a zxid, of which it is the upper half.
    #[error("the epoch {found} of {} is not between 0 and {}", path.display(), Epoch::MAX)]
    NoEpoch {
        /// The file.
        path: PathBuf,
        /// The number.
        found: i64,
    },
    /// The directory says that the server entered an epoch to which it never promised itself.
    #[error(
        "{}: currentEpoch is {current}, but acceptedEpoch is only {accepted}; a file is lost or \
         comes from elsewhere. {safe}", dir.display(), safe = SAFE
    )]
    Contradiction {
        /// The directory of both files.
        dir: PathBuf,
        /// What `currentEpoch` holds.
        current: Epoch,
        /// What `acceptedEpoch` holds; the epoch of the last transaction if there is no such file.
        accepted: Epoch,
    },
    /// The log has a transaction of an epoch to which the server never promised itself.
    #[error(
        "{} holds {accepted}, but the last transaction is {last}, of epoch {}; a file is lost or \
         comes from elsewhere. {safe}", path.display(), last.epoch(), safe = SAFE
    )]
    NeverPromised {
        /// The file.
        path: PathBuf,
        /// What it holds.
        accepted: Epoch,
        /// The last transaction of the log, or the newest snapshot's label.
        last: Zxid,
    },
    /// The caller wants to take an epoch back.
    #[error("{name} cannot go back from {from} to {to}")]
    Regress {
        /// The file's name.
        name: &'static str,
        /// What it holds.
        from: Epoch,
        /// What it was to hold.
        to: Epoch,
    },
    /// The caller wants to enter an epoch without the promise.
    #[error("currentEpoch cannot become {current} while acceptedEpoch is {accepted}")]
    NotPromised {
        /// The epoch to be entered.
        current: Epoch,
        /// The highest that was promised.
        accepted: Epoch,
    },
    /// The caller wants to log what belongs to an epoch without the promise.
    #[error("transaction {zxid} cannot be logged while acceptedEpoch is {accepted}")]
    Unpromised {
        /// The transaction.
        zxid: Zxid,
        /// The highest epoch that was promised.
        accepted: Epoch,
    },
    /// The caller wants to append before there is a snapshot.
    #[error("{} has no snapshot from which a log could go on, not even an empty one", dir.display())]
    NoOrigin {
        /// The directory.
        dir: PathBuf,
    },
    /// The caller wants to install what was not sent.
    #[error("{zxid} belongs to no history that was received")]
    NothingStaged {
        /// The label of the history to be installed, or the first transaction to be added to one.
        zxid: Zxid,
    },
    /// A directory that is opened again after a write to it has failed holds less than was durable there: it is another
    /// one, or the disk has lost what it said was safe.
    #[error(
        "{} was durable through {was} before a write failed, and holds {found} now; it is another directory, or the \
         disk has lost what it had. {safe}", dir.display(), safe = SAFE
    )]
    Lost {
        /// The directory.
        dir: PathBuf,
        /// The last transaction that was durable.
        was: Zxid,
        /// The last one that is there.
        found: Zxid,
    },
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

impl LogError {
    /// The file operation that the system has refused, if it is that.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all others refuse what a caller asks for, or what a file says"
    )]
    pub fn refused(&self) -> Option<Refused<'_>> {
        match self {
            Self::File(error)
            | Self::Open(OpenError::File(error) | OpenError::Install(InstallError::File(error)))
            | Self::Append(AppendError::File(error))
            | Self::Install(InstallError::File(error))
            | Self::Snapshot(SnapshotError::File(error))
            | Self::Purge(PurgeError::File(error))
            | Self::Truncate(TruncateError::File(error)) => {
                Some(Refused { path: &error.path, source: &error.source })
            }
            Self::Install(InstallError::Membership { path, source }) => {
                Some(Refused { path, source })
            }
            Self::Truncate(TruncateError::Sync(error)) => match &**error {
                AppendError::File(error) => {
                    Some(Refused { path: &error.path, source: &error.source })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the caller wants to log a transaction that is longer than a log may have it: then nothing is
    /// wrong with the disk, and nothing was written.
    pub const fn is_too_long(&self) -> bool {
        matches!(
            self,
            Self::Append(AppendError::TooLong { .. }) | Self::Install(InstallError::TooLong { .. })
        )
    }
}

/// A file operation that the system has refused.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// On which file or directory.
    pub path: &'a Path,
    /// What the system says.
    pub source: &'a io::Error,
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => {
            format!("another server in this process (pid {pid})")
        }
        Some(pid) => format!("another process (pid {pid})"),
        None => "another process".to_owned(),
    }
}
