//! The problems that a check can find in a data directory.

use quorate_core::zxid::{Epoch, Zxid};
use thiserror::Error;

use crate::error::FileError;
use crate::install;
use crate::record::Damage;
use crate::snapshot::SnapshotError;

/// What can be found.
#[derive(Debug, Error)]
pub enum Problem {
    /// A file does not begin as a log file does.
    #[error("it is no transaction log: it begins with {0:02x?}")]
    NoLog(Vec<u8>),
    /// A record, or what stands behind the last one.
    #[error("the record is damaged: {0}")]
    Record(#[source] Damage),
    /// The last records, or the header, were not written to their end.
    #[error("{0} bytes are there of what was not written to its end; a start cuts it off")]
    TornEnd(u64),
    /// As before, and other files follow.
    #[error("the last record was not written to its end; the log goes on in the next file")]
    TornMiddle,
    /// A file without a record.
    #[error("it has no record: its creation was interrupted")]
    NoRecord,
    /// The first record is not the one that gives the file its name.
    #[error("it begins with transaction {0}")]
    Misnamed(Zxid),
    /// A transaction has a number that is the start of an epoch, or no zxid at all.
    #[error("no leader gives a transaction the number {0}")]
    Number(Zxid),
    /// A transaction does not come after the one before it.
    #[error("transaction {zxid} stands behind {after}")]
    Order {
        /// The transaction.
        zxid: Zxid,
        /// The one before it.
        after: Zxid,
    },
    /// Transactions are missing.
    #[error("transaction {zxid} follows {after}; those between are missing")]
    Hole {
        /// The transaction.
        zxid: Zxid,
        /// The one before it, or the snapshot that the log should continue.
        after: Zxid,
    },
    /// Transactions are missing that the newest snapshot has.
    #[error("transaction {zxid} follows {after}; the newest snapshot makes up for those between")]
    Gap {
        /// The transaction.
        zxid: Zxid,
        /// The one before it.
        after: Zxid,
    },
    /// The log ends before the newest snapshot.
    #[error(
        "the log ends with {last}, before the newest snapshot of {label}; it is removed before \
         anything is appended"
    )]
    Outdated {
        /// The last transaction of the log.
        last: Zxid,
        /// The snapshot's label.
        label: Zxid,
    },
    /// A snapshot is damaged.
    #[error(transparent)]
    Snapshot(SnapshotError),
    /// A file cannot be read.
    #[error(transparent)]
    File(FileError),
    /// There is a log and no snapshot from which it goes on.
    #[error(
        "there is a transaction log and no snapshot; a server starts from it only with \
         snapshot.trust.empty, which is right only where no snapshot was ever taken"
    )]
    NoSnapshot,
    /// There are snapshots, and none of them is whole.
    #[error("no snapshot is whole")]
    NoWholeSnapshot,
    /// A log file stands where the snapshots are, or the other way round.
    #[error("it is in the wrong directory: check dataDir and dataLogDir")]
    Stray,
    /// An interrupted write left it behind.
    #[error("an interrupted write left it behind; a start removes it")]
    Leftover,
    /// A history is being installed.
    #[error("the installation of a history was interrupted; a start finishes it")]
    Installing,
    /// The installation of a history cannot be finished.
    #[error(transparent)]
    Install(install::InstallError),
    /// No vote stands there, with its checksum.
    #[error("should hold a vote with its checksum and holds {0:?}")]
    Vote(String),
    /// An epoch file does not hold a number.
    #[error("it should hold a number and holds {0:?}")]
    Garbage(String),
    /// An epoch is below 0 or does not fit into a zxid, of which it is the upper half.
    #[error("the epoch {0} is not between 0 and {max}", max = Epoch::MAX)]
    NoEpoch(i64),
    /// An epoch file is missing, although the server has a history.
    #[error("it is missing; a start takes the epoch of the last transaction, {0}")]
    EpochMissing(Epoch),
    /// The server entered an epoch that it never promised.
    #[error("it is {current}, but acceptedEpoch is only {accepted}")]
    NotPromised {
        /// `currentEpoch`.
        current: Epoch,
        /// `acceptedEpoch`.
        accepted: Epoch,
    },
    /// The log has transactions of an epoch that the server never promised.
    #[error("it is {accepted}, but the last transaction is {last}")]
    LastNotPromised {
        /// `acceptedEpoch`.
        accepted: Epoch,
        /// The last transaction.
        last: Zxid,
    },
    /// A synchronisation with a leader was interrupted.
    #[error(
        "it is {current}, but the last transaction is {last}: a synchronisation was interrupted; a \
         start sets it"
    )]
    Interrupted {
        /// `currentEpoch`.
        current: Epoch,
        /// The last transaction.
        last: Zxid,
    },
}
