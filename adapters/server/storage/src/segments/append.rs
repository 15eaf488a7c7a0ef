//! Appending transactions: gathered in memory, written in one piece, synced once (group commit).
//!
//! ```text
//!   append ─► │ buffer │ ─► sync: a new file or the tail ─► room in front ─► records, mark ─► fsync ─► durable
//! ```
//!
//! With each batch goes a mark of how far the one before it came, see [`sync_mark`]; where room is taken,
//! one sync more makes the marks in it durable first.
//!
//! When is up to the caller: nothing is written before [`Segments::sync`].

use std::path::PathBuf;

use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use super::Segments;
use crate::error::{FileError, at};
use crate::files::Files;
use crate::record::{self, FILE_HEADER};
use crate::segment::{Mark, Segment};
use crate::sequence::follows;
use crate::snapshot;
use crate::sync_mark::{self, SLOT_BYTES, ZEROS_MIN};

/// What came of a [`Segments::sync`].
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
    /// How many bytes of records and header it has, all of them synced.
    written: u64,
    /// How long it is.
    size: u64,
    /// Where its marks are.
    slots: [u64; 2],
    /// Which of the two is next.
    slot: usize,
    /// What its last mark says.
    marked: u64,
    /// Up to here zero bytes were written in front of the records.
    paved: u64,
    records: u64,
}

impl<F: Files + Clone> Segments<F> {
    /// Takes transactions that follow the last one. They are kept in memory until [`Segments::sync`].
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
            let written = self.tail.as_ref().map_or(HEADER_END, |tail| tail.written);
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
        self.failed = true;
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
    /// As [`Segments::sync`].
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
                self.remove_obsolete()?;
                let start = self.marks.first().map_or(self.last, |mark| mark.zxid);
                let segment = Segment::new(&self.dirs.logs, start);
                let file = self.files.create(&segment.path);
                let file = file.map_err(at("create", &segment.path))?;
                self.tail = Some(Tail::new(file));
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
        tail.make_room(&self.files, segment, preallocated(tail.size, end, step))?;
        let written = self.files.write_at(&tail.file, tail.written, &self.buffer);
        written.map_err(at("write to", path))?;
        tail.mark(&self.files, segment, tail.written)?;
        if end > tail.paved {
            // Room that was only reserved costs the file system an entry in its journal, and another
            // flush, when it is written to for the first time.
            let batch = usize::try_from(end - tail.written).unwrap_or(usize::MAX);
            let ahead = batch.saturating_mul(PAVE_BATCHES).clamp(PAVE_BYTES_MIN, ZEROS.len());
            let room = tail.slots[0].saturating_sub(end);
            let ahead = usize::try_from(room).map_or(ahead, |room| room.min(ahead));
            let paved = self.files.write_at(&tail.file, end, &ZEROS[..ahead]);
            paved.map_err(at("write to", path))?;
            tail.paved = end + ahead as u64;
        }
        self.files.sync_data(&tail.file).map_err(at("sync", path))?;
        if created {
            self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        }
        tail.synced(end);
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

    /// Whether the last batch has no mark yet, which otherwise comes with the next one.
    pub fn is_unmarked(&self) -> bool {
        let unmarked = self.tail.as_ref().is_some_and(|tail| tail.marked < tail.written);
        unmarked && self.marks.is_empty() && !self.failed
    }

    /// Marks where the last batch ends, durably, if there is none under way: from then on damage to it is
    /// not taken for a write that ended early. For when no batch has come for a while.
    ///
    /// # Errors
    ///
    /// An [`AppendError`] if the disk fails; from then on nothing is written.
    pub fn mark(&mut self) -> Result<(), AppendError> {
        if !self.is_unmarked() {
            return Ok(());
        }
        let (Some(tail), Some(segment)) = (&mut self.tail, self.segments.last()) else {
            return Ok(());
        };
        self.failed = true;
        tail.mark(&self.files, segment, tail.written)?;
        self.files.sync_data(&tail.file).map_err(at("sync", &segment.path))?;
        tail.synced(tail.written);
        self.failed = false;
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

impl<H> Tail<H> {
    /// An empty file.
    fn new(file: H) -> Self {
        Self {
            file,
            written: HEADER_END,
            size: 0,
            slots: [0; 2],
            slot: 0,
            marked: 0,
            paved: 0,
            records: 0,
        }
    }

    /// Makes the file longer, so that there is room for the next batch before its marks. Durably: no batch
    /// may lie where a power cut would leave no mark. Everything before it is durable, so in between it
    /// needs none.
    fn make_room<F: Files<File = H>>(
        &mut self,
        files: &F,
        segment: &Segment,
        size: u64,
    ) -> Result<(), FileError> {
        let Some(slots) = sync_mark::slots(size).filter(|_| size > self.size) else {
            return Ok(());
        };
        let (file, path) = (&self.file, &segment.path);
        files.reserve(file, size).map_err(at("make room in", path))?;
        // Of a file that begins, not even the header is durable.
        let through = if self.size == 0 { 0 } else { self.written };
        if self.size == 0 {
            files.write_at(file, 0, &FILE_HEADER).map_err(at("write to", path))?;
        } else {
            // Records will end here, and behind them have to be zero bytes.
            for slot in self.slots {
                let cleared = files.write_at(file, slot, &[0; sync_mark::BYTES]);
                cleared.map_err(at("write to", path))?;
            }
        }
        // Both, so that the next one finds written room.
        let mark = sync_mark::encode(segment.start, through);
        for slot in slots {
            files.write_at(file, slot, &mark).map_err(at("write to", path))?;
        }
        files.sync_data(file).map_err(at("sync", path))?;
        (self.size, self.slots, self.marked) = (size, slots, through);
        Ok(())
    }

    /// Writes a mark, not durably.
    fn mark<F: Files<File = H>>(
        &mut self,
        files: &F,
        segment: &Segment,
        through: u64,
    ) -> Result<(), FileError> {
        let mark = sync_mark::encode(segment.start, through);
        let slot = self.slots[self.slot];
        files.write_at(&self.file, slot, &mark).map_err(at("write to", &segment.path))?;
        self.marked = through;
        Ok(())
    }

    /// Through which byte it is synced: a file without a record need not be there.
    pub(super) fn synced_through(&self) -> u64 {
        if self.records == 0 { 0 } else { self.written }
    }

    /// Everything that was written is durable, records through `end`. Only now may the other slot be
    /// overwritten.
    fn synced(&mut self, end: u64) {
        self.written = end;
        self.slot ^= 1;
    }
}

/// How long a file should be that is `size` bytes long and is to have records up to `end`, with room to
/// spare and the marks behind it: in steps, as ZooKeeper does it, but where ZooKeeper takes none.
fn preallocated(size: u64, end: u64, step: u64) -> u64 {
    let early = end.saturating_add(PREALLOCATE_EARLY.max(ZEROS_MIN));
    if sync_mark::slots(size).is_some_and(|[first, _]| early <= first) {
        return size;
    }
    let (size, step) = (size.max(HEADER_END), step.max(PREALLOCATE_STEP_MIN));
    let missing = early.saturating_add(3 * SLOT_BYTES).saturating_sub(size);
    size.saturating_add(missing.div_ceil(step).max(1).saturating_mul(step))
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
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

const HEADER_END: u64 = FILE_HEADER.len() as u64;
/// How much room is taken at a time at least, also where ZooKeeper would take none (`preAllocSize=0`):
/// marks need some, and each step costs a sync.
const PREALLOCATE_STEP_MIN: u64 = 64 << 10;
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
    fn files_grow_in_steps_and_have_room_for_the_marks() {
        assert_eq!(preallocated(0, 100, 64 << 20), 67_108_880, "as those of ZooKeeper");
        for step in [0, 4096, 1 << 20] {
            let least = step.max(64 << 10);
            assert_eq!(preallocated(0, 100, step), 16 + least);
            let (mut size, mut steps) = (0, 0);
            for end in (16..4 << 20).step_by(331) {
                let next = preallocated(size, end, step);
                steps += u64::from(next > size);
                assert!(next >= size && (next - 16) % least == 0);
                assert!(sync_mark::slots(next).unwrap()[0] >= end + PREALLOCATE_EARLY);
                size = next;
            }
            assert!(steps <= (4 << 20) / least + 1);
        }
        let large = preallocated(0, 300_000, 0);
        assert_eq!(large, 16 + 5 * (64 << 10));
        assert_eq!(preallocated(large, 300_001, 0), large);
    }
}
