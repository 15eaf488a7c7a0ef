//! Appending: what is gathered, written in one piece and synced once.
//!
//! ```text
//!   append ─► │ buffer │ ─► sync: a new file or the tail ─► room in front ─► records ─► fsync ─► durable
//! ```
//!
//! When is up to whoever calls: nothing is written before [`History::sync`].

use std::path::PathBuf;

use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use super::History;
use crate::error::{FileError, at};
use crate::files::Files;
use crate::record::{self, FILE_HEADER};
use crate::segment::{Mark, Segment, follows};
use crate::snapshot;

/// What came of a [`History::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Everything up to here is durable.
    pub through: Zxid,
    /// The next transaction begins a new file: time for a snapshot, and for new limits.
    pub rolled: bool,
}

/// The file that is being written.
#[derive(Debug)]
pub(super) struct Tail<H> {
    file: H,
    /// How many bytes of records and header it has.
    written: u64,
    /// How long it is.
    size: u64,
    /// Up to here zero bytes were written in front of the records.
    paved: u64,
    records: u64,
}

impl<F: Files + Clone> History<F> {
    /// Takes transactions that follow the last one. They are kept in memory until [`History::sync`].
    ///
    /// # Errors
    ///
    /// An [`AppendError`] if one does not follow or is too long; then none was taken.
    pub fn append(&mut self, txns: &[Txn]) -> Result<(), AppendError> {
        if self.failed {
            return Err(self.append_failed());
        }
        let mut after = self.last;
        for txn in txns {
            if !follows(after, txn.zxid) {
                return Err(AppendError::Order { zxid: txn.zxid, after });
            }
            if txn.len() > self.options.txn_bytes_max {
                let (length, max) = (txn.len(), self.options.txn_bytes_max);
                return Err(AppendError::TooLong { zxid: txn.zxid, length, max });
            }
            after = txn.zxid;
        }
        for txn in txns {
            if self.tail.is_none() && self.buffer.is_empty() {
                self.buffer.extend_from_slice(&FILE_HEADER);
            }
            let written = self.tail.as_ref().map_or(0, |tail| tail.written);
            let offset = written + self.buffer.len() as u64;
            self.marks.push(Mark { zxid: txn.zxid, offset });
            record::encode(txn, &mut self.buffer);
        }
        self.last = after;
        Ok(())
    }

    /// Writes what was appended, in one piece, and syncs once.
    ///
    /// # Errors
    ///
    /// An [`AppendError`] if the disk fails; from then on nothing is written.
    pub fn sync(&mut self) -> Result<Synced, AppendError> {
        if self.failed {
            return Err(self.append_failed());
        }
        if self.marks.is_empty() {
            return Ok(Synced { through: self.durable, rolled: false });
        }
        self.failed = !planted!(WrittenOnAfterFailure);
        self.write()?;
        let rolled = self.tail.as_ref().is_some_and(|tail| {
            tail.records >= self.options.roll.records || tail.written >= self.options.roll.bytes
        });
        if rolled {
            self.close()?;
        }
        self.failed = false;
        Ok(Synced { through: self.durable, rolled })
    }

    /// Syncs, and lets the next transaction begin a new file.
    ///
    /// # Errors
    ///
    /// As [`History::sync`].
    pub fn roll(&mut self) -> Result<Synced, AppendError> {
        let Synced { through, .. } = self.sync()?;
        self.failed = true;
        self.close()?;
        self.failed = false;
        Ok(Synced { through, rolled: true })
    }

    pub(super) fn write(&mut self) -> Result<(), FileError> {
        let created = match self.tail {
            Some(_) => false,
            None => {
                if !planted!(ObsoleteKept) {
                    self.remove_obsolete()?;
                }
                let start = self.marks.first().map_or(self.last, |mark| mark.zxid);
                let segment = Segment::new(&self.dirs.logs, start);
                let file = self.files.create(&segment.path);
                let file = file.map_err(at("create", &segment.path))?;
                self.tail = Some(Tail { file, written: 0, size: 0, paved: 0, records: 0 });
                self.segments.push(segment);
                true
            }
        };
        let (Some(tail), Some(segment)) = (&mut self.tail, self.segments.last_mut()) else {
            return Ok(());
        };
        let path = &segment.path;
        let end = tail.written + self.buffer.len() as u64;
        let step = self.options.preallocate.min(PREALLOCATE_STEP_MAX);
        let size = preallocated(tail.size, end, step);
        if size > tail.size {
            self.files.reserve(&tail.file, size).map_err(at("make room in", path))?;
            tail.size = size;
        }
        let written = self.files.write_at(&tail.file, tail.written, &self.buffer);
        written.map_err(at("write to", path))?;
        if end > tail.paved && end < tail.size {
            // Room that was only reserved costs the file system an entry in its journal, and another
            // flush, when it is written to for the first time.
            let batch = usize::try_from(end - tail.written).unwrap_or(usize::MAX);
            let ahead = batch.saturating_mul(PAVE_BATCHES).clamp(PAVE_BYTES_MIN, ZEROS.len());
            let ahead = usize::try_from(tail.size - end).map_or(ahead, |room| room.min(ahead));
            let paved = self.files.write_at(&tail.file, end, &ZEROS[..ahead]);
            paved.map_err(at("write to", path))?;
            tail.paved = end + ahead as u64;
        }
        if !planted!(AppendUnsynced) {
            self.files.sync_data(&tail.file).map_err(at("sync", path))?;
        }
        if created {
            self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        }
        tail.written = end;
        tail.size = tail.size.max(end);
        tail.records += self.marks.len() as u64;
        for mark in self.marks.drain(..) {
            segment.mark(mark.zxid, mark.offset);
        }
        segment.end = Some(end);
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES);
        self.durable = self.last;
        Ok(())
    }

    /// Gives back the room that was taken in advance. Nothing depends on it.
    pub(super) fn close(&mut self) -> Result<(), FileError> {
        if let (Some(tail), Some(segment)) = (self.tail.take(), self.segments.last()) {
            if tail.size > tail.written {
                let cut = self.files.cut(&tail.file, tail.written);
                cut.map_err(at("cut", &segment.path))?;
            }
        }
        Ok(())
    }

    /// Before anything is appended behind a snapshot that the log does not reach: removes the log, and
    /// older snapshots, from which what follows would look like their continuation.
    fn remove_obsolete(&mut self) -> Result<(), FileError> {
        if !self.obsolete {
            return Ok(());
        }
        self.extension = None;
        while let Some(segment) = self.segments.last() {
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
            self.segments.pop();
        }
        for snapshot in snapshot::list(&self.files, &self.dirs.snapshots)? {
            if snapshot.label < self.base {
                self.files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?;
            }
        }
        self.dirs.sync(&self.files)?;
        (self.obsolete, self.run, self.run_is_open) = (false, 0, false);
        Ok(())
    }

    pub(super) fn append_failed(&self) -> AppendError {
        AppendError::Failed { dir: self.dirs.logs.clone() }
    }
}

/// How long a file should be that is `size` bytes long and has records up to `end`, as ZooKeeper
/// reckons it.
fn preallocated(size: u64, end: u64, step: u64) -> u64 {
    if step == 0 || end.saturating_add(PREALLOCATE_EARLY) < size {
        return size;
    }
    let size = size.max(FILE_HEADER.len() as u64);
    let missing = end.saturating_add(PREALLOCATE_EARLY).saturating_sub(size);
    size.saturating_add((missing / step + 1).saturating_mul(step))
}

/// Why transactions cannot be appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The system refused. What was to be written may be there after a restart, or a part of it.
    #[error(transparent)]
    File(#[from] FileError),
    /// A transaction does not follow the one before it.
    #[error("transaction {zxid} cannot be appended behind {after}")]
    Order {
        /// The transaction.
        zxid: Zxid,
        /// The one before it.
        after: Zxid,
    },
    /// A transaction is longer than a log may have it.
    #[error("transaction {zxid} has {length} bytes; at most {max} are written to a log")]
    TooLong {
        /// The transaction.
        zxid: Zxid,
        /// How long it is.
        length: usize,
        /// How long it may be.
        max: usize,
    },
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

/// How much room is taken at a time, at most: 64 MiB, ZooKeeper's step, held up a busy disk for 300 ms.
const PREALLOCATE_STEP_MAX: u64 = 4 << 20;
/// How much room a file still has when more is taken.
const PREALLOCATE_EARLY: u64 = 4096;
/// What is written in front of the records, at most.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];
/// How much of it at least.
const PAVE_BYTES_MIN: usize = 64 << 10;
/// For how many more batches like the present one.
const PAVE_BATCHES: usize = 8;
/// How much memory is kept for the next batch.
const BUFFER_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_grow_as_those_of_zookeeper() {
        assert_eq!(preallocated(0, 100, 64 << 20), 67_108_880);
        assert_eq!(preallocated(0, 100, 4096), 8208);
        assert_eq!(preallocated(0, 2299, 4096), 8208);
        assert_eq!(preallocated(8208, 2400, 4096), 8208);
        assert_eq!(preallocated(8208, 4112, 4096), 12_304);
        assert_eq!(preallocated(0, 100, 0), 0);
        assert_eq!(preallocated(0, 100_000, 4096), 16 + 26 * 4096);
    }
}
