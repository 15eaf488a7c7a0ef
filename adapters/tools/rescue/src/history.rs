//! What a data directory holds: the newest whole snapshot, the log files behind it, and the tree that they make.

use std::path::PathBuf;

use quorate_core::membership::Membership;
use quorate_core::zxid::Zxid;
use quorate_storage::Files;
use quorate_storage::error::FileError;
use quorate_storage::replay::{LogPart, Replay, ReplayError};
use quorate_storage::segments::Dirs;
use quorate_storage::snapshot::{self, Digest, SnapshotError, SnapshotFile, SnapshotReader};
use quorate_znode::{ApplyError, DigestCheck, Tree};
use thiserror::Error;

/// A history: its files, and the state at its end.
#[derive(Clone, Debug)]
pub struct History {
    /// Where it begins.
    pub snapshot: SnapshotFile,
    /// What follows, each file through its last whole record.
    pub logs: Vec<LogPart>,
    /// What all of it makes.
    pub state: State,
}

/// A data tree in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The last transaction.
    pub zxid: Zxid,
    /// ZooKeeper's digest of the tree, version 2.
    pub digest: u64,
    /// How many nodes, the root among them.
    pub nodes: usize,
    /// How many sessions.
    pub sessions: usize,
    /// The version of the newest change of the membership in it; 0 if there was none.
    pub membership: i64,
}

/// Reads a history to its end: the newest snapshot that is whole, and every transaction behind it. The digest that the
/// last transaction carries, if any, must be that of the tree.
///
/// A snapshot of a Java server has effects of later transactions; one whose log does not reach so far is passed over.
///
/// # Errors
///
/// A [`HistoryError`]. Where snapshots were passed over and no other will do, that of the newest.
pub fn load<F: Files + Clone>(
    files: &F,
    dirs: &Dirs,
    txn_bytes_max: usize,
) -> Result<History, HistoryError> {
    let mut passed_over = None;
    for snapshot in snapshot::list(files, &dirs.snapshots)?.into_iter().take(CANDIDATES_MAX) {
        match load_from(files, dirs, snapshot, txn_bytes_max) {
            Ok(history) => return Ok(history),
            Err(error) => {
                let older_may_do = error.is_of_snapshot();
                passed_over.get_or_insert(error);
                if !older_may_do {
                    break;
                }
            }
        }
    }
    Err(passed_over.unwrap_or_else(|| HistoryError::NoSnapshot { dir: dirs.snapshots.clone() }))
}

fn load_from<F: Files + Clone>(
    files: &F,
    dirs: &Dirs,
    snapshot: SnapshotFile,
    txn_bytes_max: usize,
) -> Result<History, HistoryError> {
    let (mut tree, digest) = restore(files, &snapshot)?;
    let mut replay = Replay::open_on(files.clone(), dirs, snapshot.label, txn_bytes_max)?;
    let mut checked = None;
    while let Some(txn) = replay.next_txn()? {
        let applied = tree.apply(&txn);
        let applied = applied.map_err(|source| HistoryError::Apply { zxid: txn.zxid, source })?;
        checked = Some((txn.zxid, applied.digest));
    }
    let zxid = replay.last();
    // While a Java server writes a snapshot, its tree goes on; from this transaction on all of that is there.
    let whole_from = digest.map_or(Zxid::ZERO, |digest| digest.zxid);
    if zxid < whole_from {
        let path = snapshot.path;
        return Err(HistoryError::Ahead { path, holds: whole_from, last: zxid });
    }
    let ours = tree.digest();
    let theirs = match (checked, digest) {
        (Some((_, DigestCheck::Differs { leader, .. })), _) => Some(leader),
        (None, Some(digest)) if digest.zxid == zxid => {
            Some(u64::from_be_bytes(digest.digest.to_be_bytes()))
        }
        (Some((_, DigestCheck::Absent | DigestCheck::Equal)) | None, _) => None,
    };
    if let Some(theirs) = theirs.filter(|theirs| *theirs != ours) {
        return Err(HistoryError::Digest { zxid, ours, theirs });
    }
    let membership = tree.configuration().and_then(|text| Membership::parse(text).ok());
    let state = State {
        zxid,
        digest: ours,
        nodes: tree.len(),
        sessions: tree.session_count(),
        membership: membership.map_or(0, |membership| membership.version()),
    };
    Ok(History { snapshot, logs: replay.parts().to_vec(), state })
}

/// The tree in a snapshot, and the digest that the file has of it, if that is known and of a kind that can be compared.
fn restore<F: Files + Clone>(
    files: &F,
    snapshot: &SnapshotFile,
) -> Result<(Tree, Option<Digest>), HistoryError> {
    let mut reader = SnapshotReader::open(files.clone(), snapshot)?;
    let tree = Tree::restore(&mut reader, snapshot.label).map_err(|source| {
        let path = snapshot.path.clone();
        HistoryError::Tree { path, source }
    })?;
    let parts = reader.finish()?;
    let known = |digest: &Digest| digest.version == 2 && digest.zxid != Zxid::ZERO;
    Ok((tree, parts.digest.filter(known)))
}

/// Why a directory, or an archive, holds no history.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no snapshot to begin from.
    #[error(
        "{}: there is no snapshot, so it is not known where the history begins; a server that has been started once \
         has one", dir.display()
    )]
    NoSnapshot {
        /// Where none is.
        dir: PathBuf,
    },
    /// The newest snapshot is damaged, and so are the others.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A snapshot holds something else than ZooKeeper's data tree, or is damaged.
    #[error("{}: it holds no data tree of ZooKeeper: {source}", path.display())]
    Tree {
        /// The file.
        path: PathBuf,
        /// Where it stops to be one.
        source: quorate_znode::SnapshotError,
    },
    /// The log is damaged, or transactions are missing.
    #[error(transparent)]
    Log(#[from] ReplayError),
    /// A snapshot has what the log does not.
    #[error(
        "{}: it holds effects of transactions through {holds}, but the log ends with {last}", path.display()
    )]
    Ahead {
        /// The snapshot.
        path: PathBuf,
        /// Through which transaction.
        holds: Zxid,
        /// The last of the log.
        last: Zxid,
    },
    /// A transaction is of a kind that is not known.
    #[error("transaction {zxid} cannot be applied: {source}")]
    Apply {
        /// Which.
        zxid: Zxid,
        /// Why.
        source: ApplyError,
    },
    /// The tree is not the one that the leader had.
    #[error(
        "after transaction {zxid} the tree has the digest {ours:#x}; the leader's was {theirs:#x}"
    )]
    Digest {
        /// The last transaction.
        zxid: Zxid,
        /// What the nodes give.
        ours: u64,
        /// What the transaction, or the snapshot, says.
        theirs: u64,
    },
}

impl HistoryError {
    /// Whether an older snapshot may do.
    const fn is_of_snapshot(&self) -> bool {
        match self {
            Self::Snapshot(_) | Self::Tree { .. } | Self::Ahead { .. } => true,
            Self::File(_)
            | Self::NoSnapshot { .. }
            | Self::Log(_)
            | Self::Apply { .. }
            | Self::Digest { .. } => false,
        }
    }
}

/// How many snapshots are tried, as in ZooKeeper.
const CANDIDATES_MAX: usize = 100;
