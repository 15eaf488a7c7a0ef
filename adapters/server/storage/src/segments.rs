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
//! gathered by [`Segments::append`] and written and synced together by [`Segments::sync`], once for all.
//! A file is never continued after a start, so a torn record can only be at an end, and it is cut off
//! before anything follows it.
//!
//! Opening reads the log behind the newest snapshot, once, and nothing before it; what is before it is
//! read when a learner needs it, see [`Segments::locate`]. It repairs what an
//! interrupted write leaves and refuses, by file and offset, what an interrupted write cannot leave:
//! where acknowledged transactions may be missing, no server may vote as if they had never been.
//! Everything that it relies on is synced before it is reported, since a process that was killed may
//! have left it in the page cache only.
//!
//! After an error of the disk it is unknown what a crash would leave, so every write is refused from
//! then on; what is there stays there. After a failed fsync it would be wrong to try again: the system
//! may have dropped what it could not write, and would then say that all is well.
//!
//! It does not lock the directory and knows no epochs, see [`Log`](crate::Log), and decides nothing about
//! the protocol.
//!
//! In the Java code: `FileTxnSnapLog`, `FileTxnLog`, `SyncRequestProcessor`.

mod append;
mod cut;
mod error;
mod options;
mod purge;
mod read;
mod scan;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Weak;
use std::sync::atomic::AtomicI64;

use quorate_core::membership::Membership;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::error::{FileError, at};
use crate::files::{Disk, Files};
use crate::install::{self, Install, InstallError, Memberships};
use crate::segment::{Mark, Segment, list_segments};
use crate::snapshot::{self, SnapshotError, SnapshotFile, StagedSnapshot};

pub use crate::dirs::Dirs;
pub use append::{AppendError, Synced};
pub use cut::TruncateError;
pub use error::OpenError;
pub use options::{Roll, SegmentOptions};
pub use read::Locating;

use append::Tail;
use read::Extension;
use scan::Scan;

/// What a directory holds, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The snapshot from which the state is to be restored. It looks whole; whether it is, reading it
    /// will tell. If it is not, open again with [`SegmentOptions::snapshot_before`].
    pub snapshot: Option<SnapshotFile>,
    /// The last transaction of the log, or the snapshot's label if nothing follows it; zero if there is
    /// neither.
    pub last: Zxid,
    /// From here to the last there is no hole. A learner that stands before it cannot be served from the log.
    pub floor: Zxid,
    /// The last transactions, ascending, without a hole, within the bounds of the options.
    pub window: VecDeque<Txn>,
    /// Whether these are all behind the floor.
    pub window_is_whole: bool,
    /// The memberships that transactions of the log behind the snapshot brought, ascending.
    pub changes: Vec<Membership>,
    /// How many transactions of the log are behind the snapshot.
    pub behind: u64,
    /// What came of the membership with a history whose installation a crash interrupted: it is to be kept, and that
    /// is to be [told](Segments::memberships_kept), before anything is written.
    pub installed: Option<Memberships>,
}

/// The log segments and snapshots of a history, opened by the one server that has locked its directory.
#[derive(Debug)]
pub struct Segments<F: Files = Disk> {
    files: F,
    dirs: Dirs,
    options: SegmentOptions,
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
    /// How far each reader has come.
    readers: Vec<Weak<AtomicI64>>,
    failed: bool,
    /// What came with the history of the membership is not known to be kept.
    unkept: bool,
}

impl<F: Files + Clone> Segments<F> {
    /// Opens what is in `dirs`, which exist, and tells what it is. An installation that was interrupted
    /// is finished first.
    ///
    /// # Errors
    ///
    /// An [`OpenError`]; except for the remains of interrupted writes, nothing was changed.
    pub fn open(
        files: F,
        dirs: Dirs,
        options: SegmentOptions,
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
            window_cut: false,
            changes: Vec::new(),
            behind: 0,
        };
        let segments = scan.run(segments)?;
        let Scan { previous, floor, run, run_is_open, passed, .. } = scan;
        let Scan { window, window_cut, changes, behind, .. } = scan;
        if let (Some(label), false) = (options.snapshot_before, passed) {
            return Err(OpenError::Lost { label, base });
        }
        // What ends before the snapshot cannot be continued.
        let reaches = previous.is_some_and(|previous| previous >= base);
        let last = if reaches { previous.unwrap_or(base) } else { base };
        let opened = Self {
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
        opened.make_sure(snapshot.as_ref())?;
        let window = if reaches { window } else { VecDeque::new() };
        let window_is_whole = reaches && !window_cut;
        let floor = opened.floor;
        let found =
            Opened { snapshot, last, floor, window, window_is_whole, changes, behind, installed };
        Ok((opened, found))
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

    /// The file that is being written, and through which byte it is synced; zero if not even its header is.
    pub(crate) fn synced_tail(&self) -> Option<(PathBuf, u64)> {
        let (tail, segment) = (self.tail.as_ref()?, self.segments.last()?);
        Some((segment.path.clone(), tail.synced_through()))
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
        if !reached {
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

    /// Syncs everything that was reported by what was read.
    fn make_sure(&self, snapshot: Option<&SnapshotFile>) -> Result<(), FileError> {
        let logs = self.segments[self.run..].iter().map(|segment| &segment.path);
        for path in logs.chain(snapshot.map(|snapshot| &snapshot.path)) {
            let file = self.files.open(path).map_err(at("open", path))?;
            self.files.sync(&file).map_err(at("sync", path))?;
        }
        self.dirs.sync(&self.files)
    }
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
