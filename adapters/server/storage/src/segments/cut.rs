//! Truncating the log: a history ends earlier than it did (TRUNC).
//!
//! ```text
//!   log.<a> ──► log.<b> ──┃─► log.<c>      newer snapshots, then log.<c>, then the end of log.<b>
//! ```
//!
//! Only ever from the end towards the front, so that a crash in between leaves a history without a hole.

use std::path::PathBuf;

use quorate_core::input::Place;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use super::Segments;
use super::append::AppendError;
use crate::cursor::{Cursor, CursorError, Step};
use crate::error::{FileError, at};
use crate::files::Files;
use crate::reader::ReadError;
use crate::sequence::is_successor;
use crate::snapshot::{self, SnapshotFile};

impl<F: Files + Clone> Segments<F> {
    /// Gives up everything behind `zxid`, durably. The bare start of an epoch stands for the last
    /// transaction before it.
    ///
    /// Later files go first, the newest before the others, so that a crash leaves a history without a
    /// hole. A snapshot of what is given up goes before everything, if an older one is left from which
    /// the log leads to `zxid`.
    ///
    /// # Errors
    ///
    /// A [`TruncateError`] if the log cannot end there; then nothing was changed. If the disk fails,
    /// nothing is written from then on.
    pub fn truncate(&mut self, zxid: Zxid) -> Result<(), TruncateError> {
        if self.failed {
            return Err(TruncateError::Failed { dir: self.dirs.logs.clone() });
        }
        if zxid > self.last {
            return Err(TruncateError::Beyond { zxid, last: self.last });
        }
        if zxid == self.last {
            return Ok(());
        }
        self.sync().map_err(|error| TruncateError::Sync(Box::new(error)))?;
        let zxid = match self.place(zxid).map_err(TruncateError::Read)?.0 {
            Place::Absent { previous } if zxid.is_epoch_start() && zxid != self.base => previous,
            Place::BelowFloor | Place::Held | Place::Absent { .. } | Place::Beyond => zxid,
        };
        let base = self.base_for(zxid)?;
        let end = self.end_of(zxid, base.label)?;
        self.failed = true;
        self.extension = None;
        self.cut_snapshots(zxid)?;
        self.tail = None;
        while self.segments.len() > end.keep {
            let Some(segment) = self.segments.last() else { break };
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
            self.segments.pop();
        }
        self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        if let (Some(cut), Some(segment)) = (end.cut, self.segments.last_mut()) {
            let file = self.files.open(&segment.path).map_err(at("open", &segment.path))?;
            self.files.cut(&file, cut).map_err(at("cut", &segment.path))?;
            self.files.sync(&file).map_err(at("sync", &segment.path))?;
            segment.marks.retain(|mark| mark.zxid <= zxid);
            segment.end = Some(cut);
        }
        if let Some(file) = base.file {
            self.snapshot = Some(file);
        }
        (self.base, self.last, self.durable) = (base.label, zxid, zxid);
        self.obsolete = !end.reaches && !self.segments.is_empty();
        self.run_is_open &= end.reaches;
        self.floor = if end.reaches { self.floor.min(zxid) } else { zxid };
        self.run = self.run.min(self.segments.len());
        self.failed = false;
        Ok(())
    }

    /// The snapshot from which the history would start if it ended with `zxid`.
    fn base_for(&mut self, zxid: Zxid) -> Result<Base, TruncateError> {
        if self.base <= zxid {
            return Ok(Base { label: self.base, file: None });
        }
        for snapshot in snapshot::list(&self.files, &self.dirs.snapshots)? {
            if snapshot.label <= zxid && snapshot::looks_whole(&self.files, &snapshot)? {
                let floor = self.extend(snapshot.label).map_err(TruncateError::Read)?;
                if floor <= snapshot.label {
                    return Ok(Base { label: snapshot.label, file: Some(snapshot) });
                }
                break;
            }
        }
        Err(TruncateError::Snapshot { zxid, label: self.base })
    }

    /// Where the record of `zxid` ends, which may be that of the snapshot of `base`.
    fn end_of(&self, zxid: Zxid, base: Zxid) -> Result<End, TruncateError> {
        if let Some(first) = self.segments.get(self.run) {
            if zxid == base && is_successor(zxid, first.start) {
                // What is before the run was not read, and need not be.
                return Ok(End { keep: self.run, cut: None, reaches: true });
            }
        }
        let behind = self.segments.partition_point(|segment| segment.start <= zxid);
        let mut last = None;
        if let Some(index) = behind.checked_sub(1) {
            let segment = &self.segments[index];
            let offset = segment.place_before(zxid);
            let max = self.options.txn_bytes_max;
            let mut cursor = Cursor::open(&self.files, &segment.path, offset, max)?;
            let mut end = cursor.offset();
            while let Step::Record { record, .. } = cursor.next()? {
                if record.zxid > zxid {
                    break;
                }
                (last, end) = (Some(record.zxid), cursor.offset());
            }
            if let Some(last) = last.filter(|last| *last == zxid || zxid == base) {
                return Ok(End { keep: behind, cut: Some(end), reaches: last == zxid });
            }
        }
        if zxid == base && behind == 0 {
            return Ok(End { keep: 0, cut: None, reaches: false });
        }
        Err(TruncateError::Absent { zxid, previous: last })
    }

    /// Removes the snapshots behind `zxid`, newest first, durably.
    fn cut_snapshots(&self, zxid: Zxid) -> Result<(), FileError> {
        let mut any = false;
        for snapshot in snapshot::list(&self.files, &self.dirs.snapshots)? {
            if snapshot.label > zxid {
                self.files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?;
                any = true;
            }
        }
        let dir = &self.dirs.snapshots;
        if any { self.files.sync_dir(dir).map_err(at("sync", dir)) } else { Ok(()) }
    }
}

/// From which snapshot a history starts.
struct Base {
    label: Zxid,
    /// If it is another one than before.
    file: Option<SnapshotFile>,
}

/// Where a log is to end.
struct End {
    /// How many files stay.
    keep: usize,
    /// How much of the last of them.
    cut: Option<u64>,
    /// They lead to the last transaction, as far as they were read.
    reaches: bool,
}

/// Why a log cannot be cut.
#[derive(Debug, Error)]
pub enum TruncateError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// What was appended before cannot be written.
    #[error(transparent)]
    Sync(Box<AppendError>),
    /// The log cannot be read.
    #[error(transparent)]
    Read(ReadError),
    /// It would have to end where it does not reach.
    #[error("the log cannot be cut at {zxid}, it ends with {last}")]
    Beyond {
        /// Where to cut.
        zxid: Zxid,
        /// The last transaction.
        last: Zxid,
    },
    /// There is no such transaction.
    #[error("the log cannot be cut at {zxid}, which it does not have")]
    Absent {
        /// Where to cut.
        zxid: Zxid,
        /// The last one before it that was found in the same file.
        previous: Option<Zxid>,
    },
    /// The newest snapshot has what should go, and from no older one the log leads there.
    #[error("the log cannot be cut at {zxid}: the snapshot of {label} has what follows")]
    Snapshot {
        /// Where to cut.
        zxid: Zxid,
        /// The snapshot's label.
        label: Zxid,
    },
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

impl From<CursorError> for TruncateError {
    fn from(error: CursorError) -> Self {
        Self::Read(error.into())
    }
}
