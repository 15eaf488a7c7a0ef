//! Installing the history that a leader sent (SNAP) in the place of our own, atomically.
//!
//! A learner that gets a snapshot gives up what it has, also what it acknowledged. Between giving it up
//! and having it again there must be no moment: a crash there, with a leader that sends an older
//! snapshot next, would lose a committed transaction. So the snapshot and the transactions behind it
//! are written beside the old history, under names that are not taken for history:
//!
//! ```text
//!   receiving.<n>.snapshot.<zxid>   what the leader sends
//!   staged.snapshot.<zxid>          the same, whole and about to be installed
//!   staged.log.<zxid>               what it sent behind that
//!   quorate.install                 the marker: these two are the history now, and this of the membership binds
//! ```
//!
//! Until the marker is durable, the old history is the one that counts, whole; from then on the new one
//! does. What is left to do behind the marker (remove the old files, rename the new ones, remove the
//! marker) is done here or at the next start, as often as it takes. What the history holds of the membership is kept
//! in files that are not this crate's: so it stands in the marker, which goes only when its owner has it.
//!
//! In the Java code: `Learner.syncWithLeader`, which overwrites in place (ZOOKEEPER-2872).

mod error;
mod marker;
mod recovery;

use std::path::{Path, PathBuf};

use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::dirs::Dirs;
use crate::error::at;
use crate::files::Files;
use crate::names::STAGED;
use crate::record::{self, FILE_HEADER};
use crate::segment;
use crate::sequence::follows;
use crate::snapshot::{self, StagedSnapshot};

pub use error::InstallError;
pub use marker::Memberships;

pub(crate) use marker::remove_marker;
pub(crate) use recovery::{is_leftover, pending, resume};

use marker::{MARKER, MARKER_TMP, Marked};
use recovery::complete;

/// A history that waits for its installation by
/// [`Segments::install`](crate::segments::Segments::install).
#[derive(Debug)]
pub struct Install<F: Files> {
    files: F,
    snapshot: StagedSnapshot<F>,
    log_dir: PathBuf,
    log: Option<StagedLog<F::File>>,
    last: Zxid,
    txn_bytes_max: usize,
    failed: bool,
}

#[derive(Debug)]
struct StagedLog<H> {
    file: H,
    start: Zxid,
    path: PathBuf,
    offset: u64,
    buffer: Vec<u8>,
}

impl<F: Files + Clone> Install<F> {
    /// Begins with a snapshot that was [received](crate::snapshot::SnapshotWriter::receive) whole.
    pub fn new(snapshot: StagedSnapshot<F>, dirs: &Dirs, txn_bytes_max: usize) -> Self {
        Self {
            files: snapshot.files.clone(),
            last: snapshot.label,
            snapshot,
            log_dir: dirs.logs.clone(),
            log: None,
            txn_bytes_max,
            failed: false,
        }
    }

    /// The label of its snapshot.
    pub fn label(&self) -> Zxid {
        self.snapshot.label
    }

    /// Removes it. So does the next start, if this is not called.
    ///
    /// # Errors
    ///
    /// An [`InstallError`] if a file cannot be removed.
    pub fn discard(self) -> Result<(), InstallError> {
        let Self { files, snapshot, log, .. } = self;
        if let Some(StagedLog { file, path, .. }) = log {
            // Not every system removes what is open.
            drop(file);
            files.remove(&path).map_err(at("remove", &path))?;
        }
        Ok(files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?)
    }

    /// The last transaction of this history.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// Adds what the leader sent behind the snapshot.
    ///
    /// # Errors
    ///
    /// An [`InstallError`] if a transaction does not follow the one before, is too long, or cannot be
    /// written. In the last case this history must be abandoned.
    pub fn append(&mut self, txns: &[Txn]) -> Result<(), InstallError> {
        if self.failed {
            return Err(InstallError::Failed { dir: self.log_dir.clone() });
        }
        for txn in txns {
            if !follows(self.last, txn.zxid) {
                return Err(InstallError::Order { zxid: txn.zxid, after: self.last });
            }
            if txn.len() > self.txn_bytes_max {
                let (length, max) = (txn.len(), self.txn_bytes_max);
                return Err(InstallError::TooLong { zxid: txn.zxid, length, max });
            }
            self.failed = true;
            let log = match &mut self.log {
                Some(log) => log,
                none => none.insert(StagedLog::create(&self.files, &self.log_dir, txn.zxid)?),
            };
            record::encode(txn, &mut log.buffer);
            if log.buffer.len() >= BUFFER_BYTES {
                log.flush(&self.files)?;
            }
            self.failed = false;
            self.last = txn.zxid;
        }
        Ok(())
    }

    /// Makes everything durable and then counts: the one step. The marker stays.
    pub(crate) fn commit(
        mut self,
        dirs: &Dirs,
        memberships: &Memberships,
    ) -> Result<Committed, InstallError> {
        if self.failed {
            return Err(InstallError::Failed { dir: self.log_dir });
        }
        let mut names = vec![snapshot::name(self.snapshot.label)];
        if let Some(log) = &mut self.log {
            log.flush(&self.files)?;
            self.files.sync(&log.file).map_err(at("sync", &log.path))?;
            names.push(segment::name(log.start));
        }
        let staged = dirs.snapshots.join(format!("{STAGED}{}", names[0]));
        self.files.rename(&self.snapshot.path, &staged).map_err(at("rename", &staged))?;
        dirs.sync(&self.files)?;
        let (marker, temporary) = (dirs.snapshots.join(MARKER), dirs.snapshots.join(MARKER_TMP));
        let marked = Marked { names, memberships: Some(memberships.clone()) };
        let text = marked.encode();
        let file = self.files.write(&temporary, &text).map_err(at("write", &temporary))?;
        self.files.sync(&file).map_err(at("sync", &temporary))?;
        drop(file);
        self.files.rename(&temporary, &marker).map_err(at("rename", &temporary))?;
        self.files.sync_dir(&dirs.snapshots).map_err(at("sync", &dirs.snapshots))?;
        let committed = Committed {
            label: self.snapshot.label,
            log: self.log.as_ref().map(|log| (log.start, log.offset)),
            last: self.last,
        };
        // Not every system renames what is open.
        let files = self.files.clone();
        drop(self);
        complete(&files, dirs, &marked.names)?;
        Ok(committed)
    }
}

impl<H> StagedLog<H> {
    fn create<F: Files<File = H>>(
        files: &F,
        dir: &Path,
        start: Zxid,
    ) -> Result<Self, InstallError> {
        let path = dir.join(format!("{STAGED}{}", segment::name(start)));
        let file = files.write(&path, &[]).map_err(at("create", &path))?;
        Ok(Self { file, start, path, offset: 0, buffer: FILE_HEADER.to_vec() })
    }

    fn flush<F: Files<File = H>>(&mut self, files: &F) -> Result<(), InstallError> {
        files.write_at(&self.file, self.offset, &self.buffer).map_err(at("write", &self.path))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// What is the history now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) label: Zxid,
    /// The first transaction of its log and where the last one ends, if it has one.
    pub(crate) log: Option<(Zxid, u64)>,
    pub(crate) last: Zxid,
}

const BUFFER_BYTES: usize = 256 << 10;
