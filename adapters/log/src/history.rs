//! A server's history on disk: the newest snapshot and the log behind it.
//!
//! ```text
//!   snapshot.<S>      log.<a> ───────► log.<b> ──────────► log.<c> ─────► │ buffer │
//!                  ▲              ▲                                       ▲
//!                  floor          S                              durable, last
//! ```
//!
//! The transactions between `floor` and `last` lie in the log without a hole; a learner that stands
//! there can be brought up from it. What is reported durable survives any crash: transactions are
//! gathered by [`History::append`] and written and synced together by [`History::sync`], once for all.
//! A file is never continued after a start, so a torn record can only be at an end, and it is cut off
//! before anything follows it.
//!
//! Opening reads the log behind the newest snapshot, once, and nothing before it; what is before it is
//! read when a learner needs it, see [`History::locate`]. It repairs what an
//! interrupted write leaves and refuses, by file and offset, what an interrupted write cannot leave:
//! where acknowledged transactions may be missing, no server may vote as if they had never been.
//! Everything that it relies on is synced before it is reported, since a process that was killed may
//! have left it in the page cache only.
//!
//! After an error of the disk nobody knows what a crash would leave, so every write is refused from
//! then on; what is there stays there. After a failed fsync it would be wrong to try again: the system
//! may have dropped what it could not write, and would then say that all is well.
//!
//! It does not lock the directory and knows no epochs, see [`Log`](crate::Log), and decides nothing about
//! the protocol.
//!
//! In the Java code: `FileTxnSnapLog`, `FileTxnLog`, `SyncRequestProcessor`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use quorate_core::input::{Located, Place};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::{Corruption, FileError, at};
use crate::files::{Disk, Files};
use crate::install::{self, Install, InstallError};
use crate::reader::{ReadError, Reader};
use crate::record::{self, FILE_HEADER, TXN_BYTES_MAX};
use crate::retention::{self, PurgeError, Purged};
use crate::segment::{self, Cursor, CursorError, Mark, Segment, Step, follows, is_number};
use crate::snapshot::{self, SnapshotError, SnapshotFile, StagedSnapshot};

/// The two directories of a history, which may be the same: `version-2` in `dataDir` and in
/// `dataLogDir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// Where the snapshots are.
    pub snapshots: PathBuf,
    /// Where the log is.
    pub logs: PathBuf,
}

impl Dirs {
    /// Both in one.
    pub fn one(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self { snapshots: dir.clone(), logs: dir }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &Path> {
        let second = (self.snapshots != self.logs).then_some(self.snapshots.as_path());
        [self.logs.as_path()].into_iter().chain(second)
    }

    pub(crate) fn sync<F: Files>(&self, files: &F) -> Result<(), FileError> {
        self.each().try_for_each(|dir| files.sync_dir(dir).map_err(at("sync", dir)))
    }
}

/// How to open a history, and how to go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// By how many bytes a log file grows at a time (`zookeeper.preAllocSize`), so that most syncs need
    /// not tell the file system that it has grown; 4 MiB at most, since a file system may take its time
    /// to find more, and transactions wait. None: as it comes.
    pub preallocate: u64,
    /// When to begin a new log file.
    pub roll: Roll,
    /// The longest transaction that is read or written.
    pub txn_bytes_max: usize,
    /// How many transactions at the end are returned at open.
    pub window_count: usize,
    /// How many bytes they may take together.
    pub window_bytes: usize,
    /// Take only a snapshot older than this one, the newest, which turned out to be unreadable. The log
    /// must lead from the older one through it: it was acknowledged.
    pub snapshot_before: Option<Zxid>,
    /// Whether a log without a snapshot is a history from the beginning
    /// (`zookeeper.snapshot.trust.empty`).
    pub trust_empty_snapshot: bool,
    /// Log files older than the newest snapshot are read for a learner that stands in them, if what it
    /// would be sent from disk has at most this many hundredths of that snapshot's bytes
    /// (`zookeeper.snapshotSizeFactor`); never, if none.
    pub size_percent: Option<u64>,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            preallocate: 64 << 20,
            roll: Roll::default(),
            txn_bytes_max: TXN_BYTES_MAX,
            window_count: 500,
            window_bytes: 16 << 20,
            snapshot_before: None,
            trust_empty_snapshot: false,
            size_percent: Some(33),
        }
    }
}

/// When a log file is long enough. The caller adds the jitter that keeps an ensemble's servers from
/// doing it at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roll {
    /// After so many transactions.
    pub records: u64,
    /// After so many bytes.
    pub bytes: u64,
}

impl Default for Roll {
    fn default() -> Self {
        Self { records: 100_000, bytes: 2 << 30 }
    }
}

/// What a directory holds, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The snapshot from which the state is to be restored. It looks whole; whether it is, reading it
    /// will tell. If it is not, open again with [`HistoryOptions::snapshot_before`].
    pub snapshot: Option<SnapshotFile>,
    /// The last transaction of the log, or the snapshot's label if nothing follows it; zero if there is
    /// neither.
    pub last: Zxid,
    /// From here to the last there is no hole. Nobody who stands before it can be served from the log.
    pub floor: Zxid,
    /// The last transactions, ascending, without a hole, within the bounds of the options.
    pub window: VecDeque<Txn>,
}

/// What came of a [`History::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Everything up to here is durable.
    pub through: Zxid,
    /// The next transaction begins a new file: time for a snapshot, and for new limits.
    pub rolled: bool,
}

/// What came of a [`History::locate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locating {
    /// It is known.
    Found(Located),
    /// Older files have to be read first, and there are more of them: ask again.
    Reading,
}

/// A history, opened by the one server that has locked its directory.
#[derive(Debug)]
pub struct History<F: Files = Disk> {
    files: F,
    dirs: Dirs,
    options: HistoryOptions,
    /// All log files, ascending.
    segments: Vec<Segment>,
    /// The first one that belongs to the run without a hole.
    run: usize,
    /// The run may go on before that file.
    run_is_open: bool,
    /// The snapshot that a start would choose: the one opened with, or that was installed or published
    /// since.
    snapshot: Option<SnapshotFile>,
    /// Its label; zero if there is none.
    base: Zxid,
    floor: Zxid,
    durable: Zxid,
    last: Zxid,
    /// The log ends before the snapshot: its files go before anything is appended.
    obsolete: bool,
    tail: Option<Tail<F::File>>,
    /// Records that are not written yet, and before the first of a file its header.
    buffer: Vec<u8>,
    /// Where they will stand.
    marks: Vec<Mark>,
    /// A file before the run that is being read.
    extension: Option<Extension<F>>,
    /// How far those have come who read.
    readers: Vec<Weak<AtomicI64>>,
    failed: bool,
}

/// The file that is being written.
#[derive(Debug)]
struct Tail<H> {
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
    /// Opens what is in `dirs`, which exist, and tells what it is. An installation that was interrupted
    /// is finished first.
    ///
    /// # Errors
    ///
    /// An [`OpenError`]; except for the remains of interrupted writes, nothing was changed.
    pub fn open(
        files: F,
        dirs: Dirs,
        options: HistoryOptions,
    ) -> Result<(Self, Opened), OpenError> {
        install::resume(&files, &dirs)?;
        refuse_strays(&files, &dirs)?;
        let (snapshot, snapshots) =
            snapshot::newest(&files, &dirs.snapshots, options.snapshot_before)?;
        let segments = list_segments(&files, &dirs.logs)?;
        if snapshot.is_none() && snapshots > 0 {
            return Err(OpenError::NoWholeSnapshot { dir: dirs.snapshots });
        }
        if snapshot.is_none() && !segments.is_empty() && !options.trust_empty_snapshot {
            return Err(OpenError::NoSnapshot { dir: dirs.snapshots });
        }
        let base = snapshot.as_ref().map_or(Zxid::ZERO, |snapshot| snapshot.label);
        let mut scan = Scan {
            files: &files,
            options: &options,
            base,
            previous: None,
            floor: base,
            run: 0,
            run_is_open: false,
            torn_before: None,
            passed: false,
            window: VecDeque::new(),
            window_bytes: 0,
        };
        let segments = scan.run(segments)?;
        let Scan { previous, floor, run, run_is_open, passed, window, .. } = scan;
        if let (Some(label), false) = (options.snapshot_before, passed) {
            return Err(OpenError::Lost { label, base });
        }
        // What ends before the snapshot cannot be continued.
        let reaches = previous.is_some_and(|previous| previous >= base);
        let last = if reaches { previous.unwrap_or(base) } else { base };
        let history = Self {
            files,
            snapshot: snapshot.clone(),
            base,
            floor: if reaches { floor } else { base },
            durable: last,
            last,
            obsolete: !reaches && !segments.is_empty(),
            run,
            run_is_open: reaches && run_is_open,
            segments,
            dirs,
            options,
            tail: None,
            buffer: Vec::new(),
            marks: Vec::new(),
            extension: None,
            readers: Vec::new(),
            failed: false,
        };
        history.make_sure(snapshot.as_ref())?;
        let window = if reaches { window } else { VecDeque::new() };
        let opened = Opened { snapshot, last, floor: history.floor, window };
        Ok((history, opened))
    }

    /// The last transaction that was appended.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// The last transaction that is durable.
    pub fn durable(&self) -> Zxid {
        self.durable
    }

    /// From where on the log can be served.
    pub fn floor(&self) -> Zxid {
        self.floor
    }

    /// The snapshot from which the state is to be restored; none before the first.
    pub fn snapshot(&self) -> Option<&SnapshotFile> {
        self.snapshot.as_ref()
    }

    /// Whether there is neither a snapshot nor a log.
    pub fn is_empty(&self) -> bool {
        self.snapshot.is_none() && self.segments.is_empty() && self.marks.is_empty()
    }

    /// Whether a write has failed, so that nothing is written any more.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The longest transaction that is read or written.
    pub fn txn_bytes_max(&self) -> usize {
        self.options.txn_bytes_max
    }

    /// Where the files are.
    pub fn dirs(&self) -> &Dirs {
        &self.dirs
    }

    /// Sets when the file being written is long enough.
    pub fn set_roll(&mut self, roll: Roll) {
        self.options.roll = roll;
    }

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

    fn write(&mut self) -> Result<(), FileError> {
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
    fn close(&mut self) -> Result<(), FileError> {
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
        if !planted!(CutUnsynced) {
            self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        }
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
            if snapshot.label > zxid && !planted!(SnapshotsKeptAtCut) {
                self.files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?;
                any = true;
            }
        }
        let dir = &self.dirs.snapshots;
        if any { self.files.sync_dir(dir).map_err(at("sync", dir)) } else { Ok(()) }
    }

    /// Puts another history in the place of this one, durably and in one step.
    ///
    /// # Errors
    ///
    /// An [`InstallError`]; from then on nothing is written, and the next start finds the old history or
    /// the new one, whole.
    pub fn install(&mut self, install: Install<F>) -> Result<(), InstallError> {
        if self.failed {
            return Err(InstallError::Failed { dir: self.dirs.snapshots.clone() });
        }
        self.failed = true;
        (self.tail, self.extension) = (None, None);
        self.buffer.clear();
        self.marks.clear();
        let new = install.commit(&self.dirs)?;
        let segment = new
            .log
            .map(|(start, end)| Segment { end: Some(end), ..Segment::new(&self.dirs.logs, start) });
        self.segments = segment.into_iter().collect();
        self.snapshot = Some(SnapshotFile::new(&self.dirs.snapshots, new.label));
        (self.run, self.run_is_open, self.obsolete) = (0, false, false);
        (self.base, self.floor) = (new.label, new.label);
        (self.last, self.durable) = (new.last, new.last);
        self.failed = false;
        Ok(())
    }

    /// Makes a snapshot of our own state one that a start may choose.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`], in particular if the log is not durable through the snapshot's label; then it
    /// is removed. If the disk fails, nothing is written from then on.
    pub fn publish(&mut self, snapshot: StagedSnapshot<F>) -> Result<(), SnapshotError> {
        if self.failed {
            return Err(SnapshotError::Failed { dir: self.dirs.snapshots.clone() });
        }
        let (label, durable) = (snapshot.label(), self.durable);
        // The start of an epoch is no transaction; an established leader may have reached it.
        let reached = label <= durable || (label.is_epoch_start() && self.last == durable);
        if !reached && !planted!(PublishedAhead) {
            snapshot.discard()?;
            return Err(SnapshotError::NotDurable { label, durable });
        }
        self.failed = true;
        snapshot.publish()?;
        if self.snapshot.is_none() || label >= self.base {
            self.snapshot = Some(SnapshotFile::new(&self.dirs.snapshots, label));
            self.base = label;
        }
        self.failed = false;
        Ok(())
    }

    /// Removes old snapshots and log files, see [`retention::plan`], but no more than `files_max`: to
    /// remove a large file may take a while. What a [`Reader`] has not reached yet stays.
    ///
    /// # Errors
    ///
    /// A [`PurgeError`] if the disk fails; then nothing is written from then on.
    pub fn purge(&mut self, keep: usize, files_max: usize) -> Result<Purged, PurgeError> {
        if self.failed {
            return Err(PurgeError::Failed { dir: self.dirs.snapshots.clone() });
        }
        let all = snapshot::list(&self.files, &self.dirs.snapshots)?;
        let mut whole = Vec::new();
        for snapshot in &all {
            if whole.len() < keep.max(retention::SNAPSHOTS_MIN)
                && snapshot::looks_whole(&self.files, snapshot)?
            {
                whole.push(snapshot.label);
            }
        }
        whole.dedup();
        let starts: Vec<_> = self.segments.iter().map(|segment| segment.start).collect();
        let plan = retention::plan(&whole, &starts, keep, self.slowest_reader());
        let old = |label: Zxid| plan.snapshots_below.is_some_and(|oldest| label < oldest);
        let old: Vec<_> = all.iter().rev().filter(|snapshot| old(snapshot.label)).collect();
        let snapshots = old.len().min(files_max);
        let logs = plan.logs.min(files_max - snapshots);
        self.failed = true;
        for snapshot in &old[..snapshots] {
            self.files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?;
        }
        for segment in &self.segments[..logs] {
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
        }
        self.segments.drain(..logs);
        if logs + snapshots > 0 {
            self.dirs.sync(&self.files)?;
        }
        if logs > self.run {
            self.floor = self.floor.max(before(self.segments[0].start));
        }
        if logs > 0 {
            self.run_is_open &= logs < self.run;
            self.extension = None;
        }
        self.run = self.run.saturating_sub(logs);
        self.failed = false;
        let more = snapshots < old.len() || logs < plan.logs;
        Ok(Purged { snapshots, logs, floor: self.floor, more })
    }

    /// Where the last of those who read has come to.
    fn slowest_reader(&mut self) -> Option<Zxid> {
        self.readers.retain(|reader| reader.strong_count() > 0);
        let places = self.readers.iter().filter_map(Weak::upgrade);
        places.map(|place| Zxid(place.load(Ordering::Relaxed))).min()
    }

    /// Where `zxid` stands, and what it costs to read on from there. What is before the floor may be in
    /// files that were not needed at start: they are read if that is worth it, see
    /// [`HistoryOptions::size_percent`], about `bytes` of them, so that writes need not wait for it.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if a file cannot be read. If it was one before the floor, the floor stays where it
    /// is from then on.
    pub fn locate(&mut self, zxid: Zxid, bytes: u64) -> Result<Locating, ReadError> {
        let snapshot_bytes = match &self.snapshot {
            Some(SnapshotFile { path, .. }) => {
                self.files.size(path).map_err(at("look at", path))?.unwrap_or_default()
            }
            None => 0,
        };
        if self.may_reach(zxid, snapshot_bytes)? && !self.extend_some(zxid, bytes)? {
            return Ok(Locating::Reading);
        }
        let (place, log_bytes) = self.place(zxid)?;
        Ok(Locating::Found(Located { place, log_bytes, snapshot_bytes }))
    }

    /// Whether `zxid` may be found before the floor, at a price worth paying.
    fn may_reach(&self, zxid: Zxid, snapshot_bytes: u64) -> Result<bool, ReadError> {
        if zxid >= self.floor || zxid < Zxid::ZERO || !self.run_is_open {
            return Ok(false);
        }
        let Some(percent) = self.options.size_percent else { return Ok(false) };
        let behind = self.segments.partition_point(|segment| segment.start <= zxid);
        if behind == 0 && self.segments.first().is_none_or(|first| zxid < before(first.start)) {
            return Ok(false);
        }
        let bytes = self.bytes_from(behind.saturating_sub(1))?;
        Ok(bytes.saturating_mul(100) <= snapshot_bytes.saturating_mul(percent))
    }

    /// How many bytes of records the files have from one on.
    fn bytes_from(&self, first: usize) -> Result<u64, FileError> {
        let mut bytes = 0_u64;
        for segment in self.segments.iter().skip(first) {
            let end = match segment.end {
                Some(end) => end,
                None => {
                    let size = self.files.size(&segment.path);
                    size.map_err(at("look at", &segment.path))?.unwrap_or_default()
                }
            };
            bytes = bytes.saturating_add(end);
        }
        Ok(bytes)
    }

    /// Where `zxid` stands in the run without a hole, and how many bytes of log are behind it. Reads one
    /// file at most, and of that only a part.
    fn place(&self, zxid: Zxid) -> Result<(Place, u64), ReadError> {
        if zxid < self.floor {
            return Ok((Place::BelowFloor, self.bytes_from(self.run)?));
        }
        if zxid == self.durable {
            return Ok((Place::Held, 0));
        }
        if zxid > self.durable {
            return Ok((Place::Beyond, 0));
        }
        let (mut previous, mut bytes) = (self.floor, 0);
        let behind = self.segments.partition_point(|segment| segment.start <= zxid);
        if let Some(index) = behind.checked_sub(1).filter(|index| *index >= self.run) {
            let segment = &self.segments[index];
            let max = self.options.txn_bytes_max;
            let offset = segment.place_before(zxid);
            let mut cursor = Cursor::open(&self.files, &segment.path, offset, max)?;
            bytes = segment.end.unwrap_or_default();
            let mut end = cursor.offset();
            while let Step::Record { record, .. } = cursor.next()? {
                if record.zxid > zxid {
                    break;
                }
                previous = previous.max(record.zxid);
                end = cursor.offset();
            }
            bytes = bytes.saturating_sub(end);
        }
        bytes = bytes.saturating_add(self.bytes_from(behind.max(self.run))?);
        let place = if previous == zxid { Place::Held } else { Place::Absent { previous } };
        Ok((place, bytes))
    }

    /// Prepares to read what follows `after`, up to `through`. A bare start of an epoch stands for what is
    /// before it.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if that is not in the log without a hole, or not durable.
    pub fn read(&mut self, after: Zxid, through: Zxid) -> Result<Reader<F>, ReadError> {
        if after < self.floor {
            return Err(ReadError::BelowFloor { zxid: after, floor: self.floor });
        }
        if through > self.durable {
            return Err(ReadError::Beyond { zxid: through, durable: self.durable });
        }
        let behind = self.segments.partition_point(|segment| segment.start <= after);
        // What is before the run was not read, and may be anything.
        let first = behind.saturating_sub(1).max(self.run).min(self.segments.len());
        let offset = self.segments.get(first).map_or(0, |segment| segment.place_before(after));
        let paths = self.segments[first..].iter().map(|segment| segment.path.clone()).collect();
        let place = Arc::new(AtomicI64::new(after.0));
        self.readers.retain(|reader| reader.strong_count() > 0);
        self.readers.push(Arc::downgrade(&place));
        let max = self.options.txn_bytes_max;
        Ok(Reader::new(self.files.clone(), paths, offset, place, through, max))
    }

    /// Looks for more history without a hole, in files that were not needed at start, until the floor
    /// is at `wanted` or cannot be lower. Returns the floor. Reads each of these files whole.
    fn extend(&mut self, wanted: Zxid) -> Result<Zxid, ReadError> {
        while !self.extend_some(wanted, u64::MAX)? {}
        Ok(self.floor)
    }

    /// As [`History::extend`], about so many bytes; tells whether it has ended.
    fn extend_some(&mut self, wanted: Zxid, bytes: u64) -> Result<bool, ReadError> {
        let Some(next) = self.segments.get(self.run).map(|first| first.start) else {
            return Ok(true);
        };
        if self.floor <= wanted || !self.run_is_open {
            return Ok(true);
        }
        // Unless all goes well, nobody tries again.
        self.run_is_open = false;
        let mut extension = match self.extension.take() {
            Some(extension) => extension,
            None => {
                let Some(index) = self.run.checked_sub(1) else { return Ok(true) };
                let segment = self.segments[index].clone();
                Extension::begin(&self.files, segment, self.options.txn_bytes_max)?
            }
        };
        let Some(torn) = extension.read(bytes)? else {
            (self.extension, self.run_is_open) = (Some(extension), true);
            return Ok(false);
        };
        let Extension { mut segment, mut cursor, floor, last, whole } = extension;
        let connects = last.is_some_and(|last| {
            is_successor(last, next)
                || (!torn && follows(last, next) && cursor.check_end(last).is_ok())
        });
        if !connects {
            return Ok(true);
        }
        // To a killed process it may have been in the page cache only.
        let file = self.files.open(&segment.path).map_err(at("open", &segment.path))?;
        self.files.sync(&file).map_err(at("sync", &segment.path))?;
        self.run -= 1;
        segment.end = Some(cursor.offset());
        self.segments[self.run] = segment;
        (self.floor, self.run_is_open) = (floor, whole && self.run > 0);
        Ok(self.floor <= wanted || !self.run_is_open)
    }

    /// Syncs everything that was reported by what was read.
    fn make_sure(&self, snapshot: Option<&SnapshotFile>) -> Result<(), FileError> {
        if planted!(FoundUnsynced) {
            return Ok(());
        }
        let logs = self.segments[self.run..].iter().map(|segment| &segment.path);
        for path in logs.chain(snapshot.map(|snapshot| &snapshot.path)) {
            let file = self.files.open(path).map_err(at("open", path))?;
            self.files.sync(&file).map_err(at("sync", path))?;
        }
        self.dirs.sync(&self.files)
    }

    fn append_failed(&self) -> AppendError {
        AppendError::Failed { dir: self.dirs.logs.clone() }
    }
}

/// A file before the run that is being read, to see whether the run goes on in it.
#[derive(Debug)]
struct Extension<F: Files> {
    segment: Segment,
    cursor: Cursor<F>,
    floor: Zxid,
    last: Option<Zxid>,
    /// It has no hole.
    whole: bool,
}

impl<F: Files + Clone> Extension<F> {
    fn begin(files: &F, segment: Segment, txn_bytes_max: usize) -> Result<Self, ReadError> {
        let cursor = Cursor::look(files, &segment.path, txn_bytes_max)?;
        let floor = before(segment.start);
        let segment = Segment { marks: Vec::new(), ..segment };
        Ok(Self { segment, cursor, floor, last: None, whole: true })
    }

    /// Reads about so many bytes on; at the end of the file it tells whether that is torn.
    fn read(&mut self, bytes: u64) -> Result<Option<bool>, ReadError> {
        let until = self.cursor.offset().saturating_add(bytes);
        while self.cursor.offset() < until {
            let (offset, zxid) = match self.cursor.next()? {
                Step::Record { offset, record } => (offset, record.zxid),
                Step::End { torn, .. } => return Ok(Some(torn)),
            };
            if self.last.is_none() && zxid != self.segment.start {
                let path = self.segment.path.clone();
                return Err(Corruption::Misnamed { path, found: zxid }.into());
            }
            if self.last.is_some_and(|last| !follows(last, zxid)) {
                (self.floor, self.whole) = (before(zxid), false);
            }
            self.segment.mark(zxid, offset);
            self.last = Some(zxid);
        }
        Ok(None)
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

/// Reading the log behind a snapshot.
struct Scan<'a, F> {
    files: &'a F,
    options: &'a HistoryOptions,
    base: Zxid,
    previous: Option<Zxid>,
    floor: Zxid,
    run: usize,
    run_is_open: bool,
    /// The first transaction of a later epoch in a file behind one that ends torn.
    torn_before: Option<Zxid>,
    /// The log has the transaction whose snapshot could not be read.
    passed: bool,
    window: VecDeque<Txn>,
    window_bytes: usize,
}

impl<F: Files + Clone> Scan<'_, F> {
    /// Reads what is behind the snapshot, and repairs the end. Returns the files that are left.
    fn run(&mut self, mut segments: Vec<Segment>) -> Result<Vec<Segment>, OpenError> {
        self.drop_empty_end(&mut segments)?;
        self.run = self.first(&segments);
        for index in self.run..segments.len() {
            let next = segments.get(index + 1).map(|next| next.start);
            self.file(&mut segments[index], index, next)?;
        }
        Ok(segments)
    }

    /// Removes last files that have no record: those whose creation was interrupted.
    fn drop_empty_end(&self, segments: &mut Vec<Segment>) -> Result<(), OpenError> {
        while let Some(segment) = segments.last() {
            let mut cursor = self.cursor(&segment.path)?;
            let Step::End { .. } = cursor.next()? else { break };
            cursor.check_end(Zxid::ZERO)?;
            drop(cursor);
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
            // Synced with the directory, before anything is reported.
            segments.pop();
        }
        Ok(())
    }

    /// The first file that may have something behind the snapshot.
    fn first(&self, segments: &[Segment]) -> usize {
        let behind = segments.partition_point(|segment| segment.start <= self.base);
        match segments.get(behind) {
            // Then everything before it is in the snapshot.
            Some(next) if is_successor(self.base, next.start) => behind,
            _ => behind.saturating_sub(1),
        }
    }

    fn file(
        &mut self,
        segment: &mut Segment,
        index: usize,
        next: Option<Zxid>,
    ) -> Result<(), OpenError> {
        let mut cursor = self.cursor(&segment.path)?;
        let mut first = true;
        loop {
            match cursor.next()? {
                Step::Record { offset, record } => {
                    let zxid = record.zxid;
                    if first && zxid != segment.start {
                        let path = segment.path.clone();
                        return Err(Corruption::Misnamed { path, found: zxid }.into());
                    }
                    first = false;
                    self.record(&segment.path, index, offset, zxid)?;
                    segment.mark(zxid, offset);
                    if let Ok(txn) = Txn::decode(cursor.txn()) {
                        self.keep(txn);
                    }
                }
                Step::End { offset, torn } => {
                    return self.end(segment, &mut cursor, offset, torn, next);
                }
            }
        }
    }

    /// Whether a record can stand where it does, and what that means for the floor.
    fn record(
        &mut self,
        path: &Path,
        index: usize,
        offset: u64,
        zxid: Zxid,
    ) -> Result<(), OpenError> {
        let base = self.base;
        if !is_number(zxid) {
            return Err(Corruption::Number { path: path.to_owned(), offset, zxid }.into());
        }
        let hole = |after| Corruption::Hole { path: path.to_owned(), offset, zxid, after };
        match self.previous {
            Some(after) if zxid <= after => {
                let path = path.to_owned();
                return Err(Corruption::Order { path, offset, zxid, after }.into());
            }
            Some(after) if after < base && base < zxid => {
                // The snapshot stands between them and is no record.
                if !follows(base, zxid) {
                    return Err(hole(base).into());
                }
                self.restart(base, index);
            }
            Some(after) if follows(after, zxid) || planted!(HolePassedOver) => {}
            // What is missing is in the snapshot.
            Some(_) if zxid <= base => self.restart(before(zxid), index),
            Some(after) => return Err(hole(after).into()),
            None if zxid > base => {
                if !follows(base, zxid) {
                    return Err(hole(base).into());
                }
                self.restart(base, index);
                self.run_is_open = index > 0 && is_successor(base, zxid);
            }
            None => {
                self.restart(before(zxid), index);
                self.run_is_open = index > 0;
            }
        }
        if self.torn_before == Some(zxid) {
            self.restart(self.floor.max(before(zxid)), index);
        }
        self.previous = Some(zxid);
        self.passed |= self.options.snapshot_before == Some(zxid);
        Ok(())
    }

    /// The run without a hole begins here.
    fn restart(&mut self, floor: Zxid, index: usize) {
        (self.floor, self.run, self.run_is_open) = (floor, index, false);
        self.window.clear();
        self.window_bytes = 0;
    }

    fn end(
        &mut self,
        segment: &mut Segment,
        cursor: &mut Cursor<F>,
        offset: u64,
        torn: bool,
        next: Option<Zxid>,
    ) -> Result<(), OpenError> {
        segment.end = Some(offset);
        let after = self.previous.unwrap_or(Zxid::ZERO);
        let Some(next) = next else {
            cursor.check_end(after)?;
            if torn && !planted!(TornEndKept) {
                let file = cursor.file();
                self.files.cut(file, offset).map_err(at("cut", &segment.path))?;
                self.files.sync(file).map_err(at("sync", &segment.path))?;
            }
            return Ok(());
        };
        // Nothing can be between a transaction and its successor.
        if is_successor(after, next) {
            return Ok(());
        }
        if torn && !planted!(TornStepPassedOver) {
            // Another epoch began; nobody knows whether the torn record was part of the last one.
            self.torn_before = Some(next);
        }
        // What is missing before the snapshot is not missed.
        if next > self.base { Ok(cursor.check_end(after)?) } else { Ok(()) }
    }

    fn keep(&mut self, txn: Txn) {
        self.window_bytes += txn.len();
        self.window.push_back(txn);
        while self.window.len() > self.options.window_count
            || self.window_bytes > self.options.window_bytes
        {
            let Some(dropped) = self.window.pop_front() else { break };
            self.window_bytes -= dropped.len();
        }
    }

    fn cursor(&self, path: &Path) -> Result<Cursor<F>, OpenError> {
        Ok(Cursor::open(self.files, path, 0, self.options.txn_bytes_max)?)
    }
}

/// Whether nothing can be between two transactions.
pub(crate) fn is_successor(zxid: Zxid, next: Zxid) -> bool {
    zxid.0.checked_add(1) == Some(next.0)
}

/// The highest number behind which `zxid` comes next for sure.
pub(crate) fn before(zxid: Zxid) -> Zxid {
    if zxid.counter().0 > 1 { Zxid(zxid.0 - 1) } else { zxid }
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

pub(crate) fn list_segments<F: Files>(files: &F, dir: &Path) -> Result<Vec<Segment>, FileError> {
    let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
    let mut starts: Vec<_> = names.iter().filter_map(|name| segment::start_of(name)).collect();
    starts.sort_unstable();
    // The same number may be written with zeros in front; only one of them is what we would open.
    starts.dedup();
    Ok(starts.into_iter().map(|start| Segment::new(dir, start)).collect())
}

/// Errs if two directories that should differ in what they hold do not.
fn refuse_strays<F: Files>(files: &F, dirs: &Dirs) -> Result<(), OpenError> {
    if dirs.snapshots == dirs.logs {
        return Ok(());
    }
    if let Some(segment) = list_segments(files, &dirs.snapshots)?.first() {
        return Err(OpenError::Stray { path: segment.path.clone() });
    }
    match snapshot::list(files, &dirs.logs)?.first() {
        Some(snapshot) => Err(OpenError::Stray { path: snapshot.path.clone() }),
        None => Ok(()),
    }
}

/// Why a history cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Acknowledged transactions may be missing.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// An interrupted installation cannot be finished.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// There is a log and no snapshot from which it goes on.
    #[error(
        "{} has no snapshot, but there is a transaction log; if the log is known to be complete from \
         the beginning, allow it with snapshot.trust.empty", dir.display()
    )]
    NoSnapshot {
        /// Where the snapshot should be.
        dir: PathBuf,
    },
    /// There are snapshots, but none of them can be used.
    #[error(
        "no snapshot in {} is whole; move the data directory away and let the server get its history \
         from the others", dir.display()
    )]
    NoWholeSnapshot {
        /// Where they are.
        dir: PathBuf,
    },
    /// The newest snapshot cannot be read, and the log does not lead to it from an older one.
    #[error(
        "the snapshot of {label} cannot be read, and the log does not lead from the one of {base} to \
         it; move the data directory away and let the server get its history from the others"
    )]
    Lost {
        /// The label of the one that cannot be read.
        label: Zxid,
        /// The label of the next older one.
        base: Zxid,
    },
    /// A log file stands where the snapshots are, or the other way round.
    #[error("{} is in the wrong directory: check dataDir and dataLogDir", path.display())]
    Stray {
        /// The file.
        path: PathBuf,
    },
}

impl From<CursorError> for OpenError {
    fn from(error: CursorError) -> Self {
        match error {
            CursorError::File(error) => Self::File(error),
            CursorError::Corrupt(error) => Self::Corrupt(error),
        }
    }
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
