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
//! Opening reads the log behind the newest snapshot, once, and nothing before it. It repairs what an
//! interrupted write leaves and refuses, by file and offset, what an interrupted write cannot leave:
//! where acknowledged transactions may be missing, no server may vote as if they had never been.
//! Everything that it relies on is synced before it is reported, since a process that was killed may
//! have left it in the page cache only.
//!
//! After an error of the disk nobody knows what a crash would leave, so every write is refused from
//! then on; what is there stays there. After a failed fsync it would be wrong to try again: the system
//! may have dropped what it could not write, and would then say that all is well.
//!
//! It does not lock the directory, see [`Log`](crate::Log), and decides nothing about the protocol.
//!
//! In the Java code: `FileTxnSnapLog`, `FileTxnLog`, `SyncRequestProcessor`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::{Corruption, FileError, at};
use crate::files::{Disk, Files};
use crate::install::{self, Install, InstallError};
use crate::reader::{ReadError, Reader};
use crate::record::{self, FILE_HEADER, TXN_BYTES_MAX};
use crate::retention::{self, PurgeError, Purged};
use crate::segment::{self, Cursor, CursorError, Mark, Segment, Step, follows};
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
    /// not tell the file system that it has grown. None: as it comes.
    pub preallocate: u64,
    /// When to begin a new log file.
    pub roll: Roll,
    /// The longest transaction that is read or written.
    pub txn_bytes_max: usize,
    /// How many transactions at the end are returned at open.
    pub window_count: usize,
    /// How many bytes they may take together.
    pub window_bytes: usize,
    /// Take only a snapshot older than this one; for when the newest turned out to be unreadable.
    pub snapshot_before: Option<Zxid>,
    /// Whether a log without a snapshot is a history from the beginning
    /// (`zookeeper.snapshot.trust.empty`).
    pub trust_empty_snapshot: bool,
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

/// Where a zxid stands in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// In the log without a hole, or at its floor: a DIFF can begin behind it.
    Held,
    /// Not in the log, although later transactions are; a server that has it must give up what it has
    /// behind `previous`.
    Absent {
        /// The last one before it that the log has.
        previous: Zxid,
    },
    /// Before everything that can be served.
    BelowFloor,
    /// After the last one that is durable.
    Beyond,
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
    /// The snapshot we started from, or that was installed or published since.
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
            window: VecDeque::new(),
            window_bytes: 0,
        };
        let segments = scan.run(segments)?;
        let Scan { previous, floor, run, run_is_open, window, .. } = scan;
        // What ends before the snapshot cannot be continued.
        let reaches = previous.is_some_and(|previous| previous >= base);
        let last = if reaches { previous.unwrap_or(base) } else { base };
        let history = Self {
            files,
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
                self.remove_obsolete()?;
                let start = self.marks.first().map_or(self.last, |mark| mark.zxid);
                let segment = Segment::new(&self.dirs.logs, start);
                let file = self.files.create(&segment.path);
                let file = file.map_err(at("create", &segment.path))?;
                self.tail = Some(Tail { file, written: 0, size: 0, records: 0 });
                self.segments.push(segment);
                true
            }
        };
        let (Some(tail), Some(segment)) = (&mut self.tail, self.segments.last_mut()) else {
            return Ok(());
        };
        let path = &segment.path;
        let end = tail.written + self.buffer.len() as u64;
        let size = preallocated(tail.size, end, self.options.preallocate);
        if size > tail.size {
            self.files.reserve(&tail.file, size).map_err(at("make room in", path))?;
            tail.size = size;
        }
        let written = self.files.write_at(&tail.file, tail.written, &self.buffer);
        written.map_err(at("write to", path))?;
        self.files.sync_data(&tail.file).map_err(at("sync", path))?;
        if created {
            self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        }
        tail.written = end;
        tail.size = tail.size.max(end);
        tail.records += self.marks.len() as u64;
        for mark in self.marks.drain(..) {
            segment.mark(mark.zxid, mark.offset);
        }
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

    fn remove_obsolete(&mut self) -> Result<(), FileError> {
        if !self.obsolete {
            return Ok(());
        }
        while let Some(segment) = self.segments.last() {
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
            self.segments.pop();
        }
        self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        (self.obsolete, self.run, self.run_is_open) = (false, 0, false);
        Ok(())
    }

    /// Gives up everything behind `zxid`, durably.
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
        let base = self.base_for(zxid)?;
        let place = self.end_of(zxid, base)?;
        self.failed = true;
        self.cut_snapshots(zxid)?;
        self.tail = None;
        let keep = place.as_ref().map_or(0, |place| place.segment + 1);
        while self.segments.len() > keep {
            let Some(segment) = self.segments.last() else { break };
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
            self.segments.pop();
        }
        self.files.sync_dir(&self.dirs.logs).map_err(at("sync", &self.dirs.logs))?;
        if let (Some(place), Some(segment)) = (&place, self.segments.last_mut()) {
            let file = self.files.open(&segment.path).map_err(at("open", &segment.path))?;
            self.files.cut(&file, place.end).map_err(at("cut", &segment.path))?;
            self.files.sync(&file).map_err(at("sync", &segment.path))?;
            segment.marks.retain(|mark| mark.zxid <= zxid);
        }
        (self.base, self.last, self.durable) = (base, zxid, zxid);
        let reaches = place.is_some_and(|place| place.last == zxid);
        self.obsolete = !reaches && !self.segments.is_empty();
        self.run_is_open &= reaches;
        self.floor = if reaches { self.floor.min(zxid) } else { zxid };
        self.run = self.run.min(self.segments.len());
        self.failed = false;
        Ok(())
    }

    /// The snapshot from which the history would start if it ended with `zxid`.
    fn base_for(&mut self, zxid: Zxid) -> Result<Zxid, TruncateError> {
        if self.base <= zxid {
            return Ok(self.base);
        }
        for snapshot in snapshot::list(&self.files, &self.dirs.snapshots)? {
            if snapshot.label <= zxid && snapshot::looks_whole(&self.files, &snapshot)? {
                let floor = self.extend(snapshot.label).map_err(TruncateError::Read)?;
                if floor <= snapshot.label {
                    return Ok(snapshot.label);
                }
                break;
            }
        }
        Err(TruncateError::Snapshot { zxid, label: self.base })
    }

    /// Where the record of `zxid` ends; none if `zxid` is that of the snapshot and no file begins
    /// before it.
    fn end_of(&self, zxid: Zxid, base: Zxid) -> Result<Option<Place>, TruncateError> {
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
                return Ok(Some(Place { segment: index, end, last }));
            }
        }
        if zxid == base && behind == 0 {
            return Ok(None);
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

    /// Puts another history in the place of this one, durably and in one step.
    ///
    /// # Errors
    ///
    /// An [`InstallError`]; from then on nothing is written, and the next start finds the old history or
    /// the new one, whole.
    pub fn install(&mut self, install: Install<F>) -> Result<(), InstallError> {
        if self.failed {
            return Err(InstallError::Failed);
        }
        self.failed = true;
        self.tail = None;
        self.buffer.clear();
        self.marks.clear();
        let new = install.commit(&self.dirs)?;
        self.segments =
            new.start.map(|start| Segment::new(&self.dirs.logs, start)).into_iter().collect();
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
    /// A [`SnapshotError`], in particular if the log is not durable through the snapshot's label. If
    /// the disk fails, nothing is written from then on.
    pub fn publish(&mut self, snapshot: StagedSnapshot<F>) -> Result<(), SnapshotError> {
        if self.failed {
            return Err(SnapshotError::Failed { dir: self.dirs.snapshots.clone() });
        }
        let (label, durable) = (snapshot.label(), self.durable);
        // The start of an epoch is no transaction; an established leader may have reached it.
        let reached = label <= durable || (label.is_epoch_start() && self.last == durable);
        if !reached {
            return Err(SnapshotError::NotDurable { label, durable });
        }
        self.failed = true;
        snapshot.publish()?;
        self.base = self.base.max(label);
        self.failed = false;
        Ok(())
    }

    /// Removes old snapshots and log files, see [`retention::plan`].
    ///
    /// # Errors
    ///
    /// A [`PurgeError`] if the disk fails; then nothing is written from then on.
    pub fn purge(&mut self, keep: usize, cursor: Option<Zxid>) -> Result<Purged, PurgeError> {
        if self.failed {
            return Err(PurgeError::Failed);
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
        let plan = retention::plan(&whole, &starts, keep, cursor);
        let old = |label: Zxid| plan.snapshots_below.is_some_and(|oldest| label < oldest);
        let old: Vec<_> = all.iter().filter(|snapshot| old(snapshot.label)).collect();
        self.failed = true;
        for snapshot in old.iter().rev() {
            self.files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?;
        }
        for segment in &self.segments[..plan.logs] {
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
        }
        self.segments.drain(..plan.logs);
        if plan.logs > 0 || !old.is_empty() {
            self.dirs.sync(&self.files)?;
        }
        if plan.logs > self.run {
            self.floor = self.floor.max(before(self.segments[0].start));
        }
        if plan.logs > 0 && plan.logs >= self.run {
            self.run_is_open = false;
        }
        self.run = self.run.saturating_sub(plan.logs);
        self.failed = false;
        Ok(Purged { snapshots: old.len(), logs: plan.logs, floor: self.floor })
    }

    /// Where `zxid` stands. Reads one file at most, and of that only a part.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if the log cannot be read.
    pub fn locate(&self, zxid: Zxid) -> Result<Located, ReadError> {
        if zxid < self.floor {
            return Ok(Located::BelowFloor);
        }
        if zxid == self.floor || zxid == self.durable {
            return Ok(Located::Held);
        }
        if zxid > self.durable {
            return Ok(Located::Beyond);
        }
        let mut previous = self.floor;
        let behind = self.segments.partition_point(|segment| segment.start <= zxid);
        if let Some(segment) = behind.checked_sub(1).map(|index| &self.segments[index]) {
            let max = self.options.txn_bytes_max;
            let offset = segment.place_before(zxid);
            let mut cursor = Cursor::open(&self.files, &segment.path, offset, max)?;
            while let Step::Record { record, .. } = cursor.next()? {
                if record.zxid > zxid {
                    break;
                }
                previous = previous.max(record.zxid);
            }
        }
        Ok(if previous == zxid { Located::Held } else { Located::Absent { previous } })
    }

    /// Prepares to read what follows `after`, up to `through`.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if that is not in the log without a hole, or not durable.
    pub fn read(&self, after: Zxid, through: Zxid) -> Result<Reader<F>, ReadError> {
        if after < self.floor {
            return Err(ReadError::BelowFloor { zxid: after, floor: self.floor });
        }
        if through > self.durable {
            return Err(ReadError::Beyond { zxid: through, durable: self.durable });
        }
        let behind = self.segments.partition_point(|segment| segment.start <= after);
        let first = behind.saturating_sub(1);
        let offset = self.segments.get(first).map_or(0, |segment| segment.place_before(after));
        let paths = self.segments[first..].iter().map(|segment| segment.path.clone()).collect();
        let max = self.options.txn_bytes_max;
        Ok(Reader::new(self.files.clone(), paths, offset, after, through, max))
    }

    /// Looks for more history without a hole, in files that were not needed at start, until the floor
    /// is at `wanted` or cannot be lower. Returns the floor. Reads each of these files whole.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if a file cannot be read. The floor stays where it is then.
    pub fn extend(&mut self, wanted: Zxid) -> Result<Zxid, ReadError> {
        while self.floor > wanted && self.run_is_open {
            let Some(index) = self.run.checked_sub(1) else { break };
            let next = self.segments[self.run].start;
            let mut segment = self.segments[index].clone();
            let max = self.options.txn_bytes_max;
            let mut cursor = Cursor::open(&self.files, &segment.path, 0, max)?;
            let (mut floor, mut last, mut whole) = (before(segment.start), None, true);
            let torn = loop {
                match cursor.next()? {
                    Step::Record { offset, record } => {
                        if last.is_none() && record.zxid != segment.start {
                            let (path, found) = (segment.path, record.zxid);
                            return Err(Corruption::Misnamed { path, found }.into());
                        }
                        if last.is_some_and(|last| !follows(last, record.zxid)) {
                            (floor, whole) = (before(record.zxid), false);
                        }
                        segment.mark(record.zxid, offset);
                        last = Some(record.zxid);
                    }
                    Step::End { torn, .. } => break torn,
                }
            };
            let connects = last.is_some_and(|last| {
                is_successor(last, next)
                    || (!torn && follows(last, next) && cursor.check_end(last).is_ok())
            });
            if !connects {
                self.run_is_open = false;
                break;
            }
            self.files.sync(cursor.file()).map_err(at("sync", &segment.path))?;
            self.segments[index] = segment;
            (self.run, self.floor, self.run_is_open) = (index, floor, whole);
        }
        Ok(self.floor)
    }

    /// Syncs everything that was reported by what was read.
    fn make_sure(&self, snapshot: Option<&SnapshotFile>) -> Result<(), FileError> {
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

/// Where a log is to end.
struct Place {
    segment: usize,
    end: u64,
    /// The last transaction in front of it.
    last: Zxid,
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
            Some(after) if follows(after, zxid) => {}
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
        segment: &Segment,
        cursor: &mut Cursor<F>,
        offset: u64,
        torn: bool,
        next: Option<Zxid>,
    ) -> Result<(), OpenError> {
        let after = self.previous.unwrap_or(Zxid::ZERO);
        let Some(next) = next else {
            cursor.check_end(after)?;
            if torn {
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
        if torn {
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

/// How much room a file still has when more is taken.
const PREALLOCATE_EARLY: u64 = 4096;
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
