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

mod append;
mod cut;
mod read;
mod scan;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::sync::atomic::{AtomicI64, Ordering};

use quorate_core::membership::Membership;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::{Corruption, FileError, SAFE, at};
use crate::files::{Disk, Files};
use crate::install::{self, Install, InstallError, Memberships};
use crate::record::TXN_BYTES_MAX;
use crate::retention::{self, PurgeError, Purged};
use crate::segment::{self, CursorError, Mark, Segment};
use crate::snapshot::{self, SnapshotError, SnapshotFile, StagedSnapshot};

pub use crate::dirs::Dirs;
pub use append::{AppendError, Synced};
pub use cut::TruncateError;
pub use read::Locating;

use append::Tail;
use read::Extension;
use scan::Scan;

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
    /// The memberships that transactions of the log behind the snapshot brought, ascending.
    pub changes: Vec<Membership>,
    /// What came of the membership with a history whose installation a crash interrupted: it is to be kept, and that
    /// is to be [told](History::memberships_kept), before anything is written.
    pub installed: Option<Memberships>,
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
    /// What came with the history of the membership is not known to be kept.
    unkept: bool,
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
        let installed = install::resume(&files, &dirs)?;
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
            changes: Vec::new(),
        };
        let segments = scan.run(segments)?;
        let Scan { previous, floor, run, run_is_open, passed, window, changes, .. } = scan;
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
            // The marker would take away again what is written now.
            failed: installed.is_some(),
            unkept: installed.is_some(),
        };
        history.make_sure(snapshot.as_ref())?;
        let window = if reaches { window } else { VecDeque::new() };
        let floor = history.floor;
        let opened = Opened { snapshot, last, floor, window, changes, installed };
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

    /// Puts another history in the place of this one, durably and in one step, and with it what it holds of the
    /// membership. `keep` keeps that where it belongs, durably; a crash before that has come to its end leaves it to
    /// the [next start](Opened::installed).
    ///
    /// # Errors
    ///
    /// An [`InstallError`]; from then on nothing is written, and the next start finds the old history or
    /// the new one, whole.
    pub fn install(
        &mut self,
        install: Install<F>,
        memberships: &Memberships,
        keep: impl FnOnce() -> Result<(), (PathBuf, io::Error)>,
    ) -> Result<(), InstallError> {
        if self.failed {
            return Err(InstallError::Failed { dir: self.dirs.snapshots.clone() });
        }
        self.failed = true;
        (self.tail, self.extension) = (None, None);
        self.buffer.clear();
        self.marks.clear();
        let new = install.commit(&self.dirs, memberships)?;
        keep().map_err(|(path, source)| InstallError::Membership { path, source })?;
        install::remove_marker(&self.files, &self.dirs)?;
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

    /// What was found to be [installed](Opened::installed) of the membership is kept.
    ///
    /// # Errors
    ///
    /// An [`InstallError`] if the disk fails.
    pub fn memberships_kept(&mut self) -> Result<(), InstallError> {
        if core::mem::take(&mut self.unkept) {
            install::remove_marker(&self.files, &self.dirs)?;
            self.failed = false;
        }
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
    /// remove a large file may take a while. What a [`Reader`](crate::reader::Reader) has not reached yet stays.
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
}

/// Whether nothing can be between two transactions.
pub(crate) fn is_successor(zxid: Zxid, next: Zxid) -> bool {
    zxid.0.checked_add(1) == Some(next.0)
}

/// The highest number behind which `zxid` comes next for sure.
pub(crate) fn before(zxid: Zxid) -> Zxid {
    if zxid.counter().0 > 1 { Zxid(zxid.0 - 1) } else { zxid }
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
    #[error("{0}. {safe}", safe = SAFE)]
    Corrupt(#[from] Corruption),
    /// An interrupted installation cannot be finished.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// There is a log and no snapshot from which it goes on.
    #[error(
        "{} has no snapshot, but there is a transaction log. If the ensemble never had a snapshot, as those \
         of ZooKeeper 3.4 may not, allow it with snapshot.trust.empty; if one was here and is lost, what it \
         held is not in the log. {safe}", dir.display(), safe = SAFE
    )]
    NoSnapshot {
        /// Where the snapshot should be.
        dir: PathBuf,
    },
    /// There are snapshots, but none of them can be used.
    #[error(
        "no snapshot in {} is whole. {safe}", dir.display(), safe = SAFE
    )]
    NoWholeSnapshot {
        /// Where they are.
        dir: PathBuf,
    },
    /// The newest snapshot cannot be read, and the log does not lead to it from an older one.
    #[error(
        "the snapshot of {label} cannot be read, and the log does not lead from the one of {base} to \
         it. {safe}", safe = SAFE
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
