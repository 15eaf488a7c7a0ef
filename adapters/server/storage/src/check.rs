//! Reading a whole data directory and telling what is wrong with it, without changing anything.
//!
//! A start reads the end of the log and looks at the last bytes of a snapshot. This reads everything:
//! each record of each log file, each snapshot to its last seal. What it finds is one of three things:
//! worth knowing, repaired by the next start, or wrong. Where a start would refuse the directory, this
//! has found something wrong; the other way round it may be stricter, since damage to what is older
//! than the newest snapshot does not keep a server from starting.
//!
//! No lock is needed. Of a directory that is in use, the end of the last log file may be seen in the
//! middle of a write, and files may go while one looks.
//!
//! In the Java code: `TxnLogToolkit`, `SnapshotFormatter`; nothing there looks at a whole directory.

use std::io;
use std::path::{Path, PathBuf};

use quorate_core::zxid::{Epoch, Zxid};
use thiserror::Error;

use crate::dirs::Dirs;
use crate::dump::{Dump, DumpError, Ending, Entry};
use crate::epochs::{self, ACCEPTED, CURRENT, LEASE, NoEpoch};
use crate::error::{Corruption, FileError, at};
use crate::files::{Disk, Files, Holder};
use crate::history::{before, is_successor, list_segments};
use crate::install;
use crate::log::{LOCK, VERSION_DIR};
use crate::names::STAGED;
use crate::record::{Damage, TXN_BYTES_MAX};
use crate::segment::{Segment, follows, is_number};
use crate::snapshot::{self, Inspection, SnapshotError, SnapshotFile};
use crate::vote::{self, VOTE};

/// What is in a data directory.
#[derive(Debug)]
pub struct Report {
    /// Where the files are.
    pub dirs: Dirs,
    /// Who has the directory open at present.
    pub holder: Option<Holder>,
    /// What `acceptedEpoch` holds; none if there is no such file, or it holds no epoch.
    pub accepted_epoch: Option<Epoch>,
    /// What `currentEpoch` holds, likewise.
    pub current_epoch: Option<Epoch>,
    /// Every snapshot, the newest first.
    pub snapshots: Vec<SnapshotLine>,
    /// Every log file, the oldest first.
    pub logs: Vec<LogLine>,
    /// The last transaction of the log, or the label of the newest snapshot that is whole if nothing
    /// follows it; zero if there is neither.
    pub last: Zxid,
    /// From here to the last the files have no hole.
    pub floor: Zxid,
    /// Everything that was found, in the order in which it was looked at.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Error)
    }
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotLine {
    /// Which.
    pub file: SnapshotFile,
    /// How many bytes the file has.
    pub bytes: u64,
    /// What is in it, if it is whole.
    pub content: Option<Inspection>,
}

/// One log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Which.
    pub path: PathBuf,
    /// How many bytes the file has.
    pub bytes: u64,
    /// How many whole records.
    pub records: u64,
    /// The first of them.
    pub first: Option<Zxid>,
    /// The last of them.
    pub last: Option<Zxid>,
    /// Where the last of them ends.
    pub end: u64,
}

/// Something that was found.
#[derive(Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// In which file or directory.
    pub path: PathBuf,
    /// Where in it, if that is known.
    pub offset: Option<u64>,
    /// The transaction there, or the one before it.
    pub zxid: Option<Zxid>,
    /// What.
    pub problem: Problem,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing has to be done.
    Note,
    /// The next start of a server repairs it.
    Repaired,
    /// Something that was written is damaged or missing.
    Error,
}

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

/// Reads all of a data directory. `data_log_dir` is where the transaction logs are, if not in it.
///
/// # Errors
///
/// A [`FileError`] if a directory is not there or cannot be listed. What is wrong with files is in the report.
pub fn check(data_dir: &Path, data_log_dir: Option<&Path>) -> Result<Report, FileError> {
    check_on(Disk, data_dir, data_log_dir, TXN_BYTES_MAX)
}

/// As [`check`], on other files than the operating system's, with transactions no longer than
/// `txn_bytes_max`.
///
/// # Errors
///
/// As [`check`].
pub fn check_on<F: Files + Clone>(
    files: F,
    data_dir: &Path,
    data_log_dir: Option<&Path>,
    txn_bytes_max: usize,
) -> Result<Report, FileError> {
    let snapshots = data_dir.join(VERSION_DIR);
    let logs = data_log_dir.map_or_else(|| snapshots.clone(), |dir| dir.join(VERSION_DIR));
    for dir in [&snapshots, &logs] {
        if files.names(dir).map_err(at("list", dir))?.is_none() {
            return Err(at("list", dir)(io::ErrorKind::NotFound.into()));
        }
    }
    let lock = snapshots.join(LOCK);
    let holder = files.holder(&lock).map_err(at("look at the lock of", &lock))?;
    let report = Report {
        dirs: Dirs { snapshots, logs },
        holder,
        accepted_epoch: None,
        current_epoch: None,
        snapshots: Vec::new(),
        logs: Vec::new(),
        last: Zxid::ZERO,
        floor: Zxid::ZERO,
        findings: Vec::new(),
    };
    let mut check = Check { files, txn_bytes_max, report, base: None, only: None };
    check.leftovers()?;
    check.snapshots()?;
    check.logs()?;
    check.epochs();
    Ok(check.report)
}

struct Check<F: Files> {
    files: F,
    txn_bytes_max: usize,
    report: Report,
    /// The newest snapshot that is whole.
    base: Option<Zxid>,
    /// While a history is being installed: its files, wherever they are at present.
    only: Option<Vec<PathBuf>>,
}

impl<F: Files + Clone> Check<F> {
    fn find(&mut self, severity: Severity, path: &Path, problem: Problem) {
        let path = path.to_owned();
        self.report.findings.push(Finding { severity, path, offset: None, zxid: None, problem });
    }

    fn find_at(
        &mut self,
        severity: Severity,
        place: (&Path, u64),
        zxid: Option<Zxid>,
        problem: Problem,
    ) {
        let (path, offset) = (place.0.to_owned(), Some(place.1));
        self.report.findings.push(Finding { severity, path, offset, zxid, problem });
    }

    /// What interrupted writes left, and what stands in the wrong place.
    fn leftovers(&mut self) -> Result<(), FileError> {
        let dirs = self.report.dirs.clone();
        let installing = match install::pending(&self.files, &dirs) {
            Ok(None) => false,
            Ok(Some((marker, present))) => {
                self.find(Severity::Repaired, &marker, Problem::Installing);
                self.only = Some(present);
                true
            }
            Err(install::InstallError::File(error)) => return Err(error),
            Err(error) => {
                let problem = Problem::Install(error);
                self.find(Severity::Error, &dirs.snapshots, problem);
                true
            }
        };
        for dir in dirs.each() {
            let names = self.files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
            for name in names {
                let text = name.to_string_lossy();
                let staged = install::is_leftover(&text);
                let temporary = text.strip_suffix(".tmp");
                let epoch =
                    temporary.is_some_and(|name| [ACCEPTED, CURRENT, LEASE, VOTE].contains(&name));
                if (staged && !installing) || epoch {
                    self.find(Severity::Repaired, &dir.join(&name), Problem::Leftover);
                }
            }
        }
        if dirs.snapshots != dirs.logs && !installing {
            for stray in list_segments(&self.files, &dirs.snapshots)? {
                self.find(Severity::Error, &stray.path, Problem::Stray);
            }
            for stray in snapshot::list(&self.files, &dirs.logs)? {
                self.find(Severity::Error, &stray.path, Problem::Stray);
            }
        }
        Ok(())
    }

    fn snapshots(&mut self) -> Result<(), FileError> {
        let dir = self.report.dirs.snapshots.clone();
        let all = match &self.only {
            Some(present) => present.iter().filter_map(|path| unstaged(path)).collect(),
            None => snapshot::list(&self.files, &dir)?,
        };
        for file in all {
            let size = self.files.size(&file.path).map_err(at("look at", &file.path))?;
            // It went while we looked.
            let Some(bytes) = size else { continue };
            let content = match snapshot::inspect(self.files.clone(), &file) {
                Ok(content) => {
                    self.base = self.base.or(Some(file.label));
                    Some(content)
                }
                Err(error) => {
                    self.find(Severity::Error, &file.path, Problem::Snapshot(error));
                    None
                }
            };
            self.report.snapshots.push(SnapshotLine { file, bytes, content });
        }
        if self.base.is_none() && !self.report.snapshots.is_empty() {
            self.find(Severity::Error, &dir, Problem::NoWholeSnapshot);
        }
        Ok(())
    }

    fn logs(&mut self) -> Result<(), FileError> {
        let dirs = self.report.dirs.clone();
        let segments: Vec<_> = match &self.only {
            Some(present) => present.iter().filter_map(|path| Segment::staged(path)).collect(),
            None => list_segments(&self.files, &dirs.logs)?,
        };
        if !segments.is_empty() && self.report.snapshots.is_empty() {
            self.find(Severity::Error, &dirs.snapshots, Problem::NoSnapshot);
        }
        let base = self.base.unwrap_or(Zxid::ZERO);
        let mut run = Run { base, previous: None, floor: base, torn: false };
        let mut endings = Vec::new();
        for segment in &segments {
            let path = &segment.path;
            let Some(bytes) = self.files.size(path).map_err(at("look at", path))? else { continue };
            let mut line =
                LogLine { path: path.clone(), bytes, records: 0, first: None, last: None, end: 0 };
            let ending = self.log(segment.start, &mut run, &mut line);
            endings.push((ending, run.previous));
            self.report.logs.push(line);
        }
        self.judge_endings(&endings);
        let last = run.previous.filter(|last| *last >= base);
        if let (Some(last), None) = (run.previous, last) {
            let problem = Problem::Outdated { last, label: base };
            self.find(Severity::Repaired, &dirs.logs, problem);
        }
        self.report.last = last.unwrap_or(base);
        self.report.floor = if last.is_some() { run.floor } else { base };
        Ok(())
    }

    /// Goes through one file; tells how it ends, if it can be read so far.
    fn log(&mut self, start: Zxid, run: &mut Run, line: &mut LogLine) -> Option<Ending> {
        let path = line.path.clone();
        let mut dump = match Dump::open_on(self.files.clone(), &path, self.txn_bytes_max) {
            Ok(dump) => dump,
            Err(DumpError::Corrupt(Corruption::Header { found, .. })) => {
                self.find_at(Severity::Error, (&path, 0), None, Problem::NoLog(found));
                return None;
            }
            Err(DumpError::Corrupt(_)) => return None,
            Err(DumpError::File(error)) => {
                self.find(Severity::Error, &path, Problem::File(error));
                return None;
            }
        };
        loop {
            match dump.next_entry() {
                Ok(Some(Entry::Record { offset, txn })) => {
                    let zxid = txn.zxid;
                    if line.first.is_none() && zxid != start {
                        let problem = Problem::Misnamed(zxid);
                        self.find_at(Severity::Error, (&path, offset), Some(zxid), problem);
                    }
                    if let Some((severity, problem)) = run.record(zxid) {
                        self.find_at(severity, (&path, offset), Some(zxid), problem);
                    }
                    line.records += 1;
                    line.first = line.first.or(Some(zxid));
                    line.last = Some(zxid);
                }
                Ok(Some(Entry::Damaged { offset, damage, .. })) => {
                    let problem = Problem::Record(damage);
                    self.find_at(Severity::Error, (&path, offset), run.previous, problem);
                    // Which transaction it was, nobody knows: what follows begins anew.
                    run.previous = None;
                }
                Ok(Some(Entry::End { offset, ending })) => {
                    line.end = offset;
                    run.torn = matches!(ending, Ending::Torn { .. });
                    return Some(ending);
                }
                Ok(None) => return None,
                Err(error) => {
                    self.find(Severity::Error, &path, Problem::File(error));
                    return None;
                }
            }
        }
    }

    /// What it means how the files end depends on what follows them.
    fn judge_endings(&mut self, endings: &[(Option<Ending>, Option<Zxid>)]) {
        let base = self.base.unwrap_or(Zxid::ZERO);
        for (index, (ending, last)) in endings.iter().enumerate() {
            let Some(ending) = *ending else { continue };
            let line = self.report.logs[index].clone();
            let next = self.report.logs[index + 1..].iter().find_map(|line| line.first);
            let after = last.unwrap_or(Zxid::ZERO);
            let place = (line.path.as_path(), line.end);
            match (ending, next) {
                (Ending::Broken(damage), next) => {
                    // Nothing can be between a transaction and its successor.
                    let harmless =
                        next.is_some_and(|next| is_successor(after, next) || next <= base);
                    let severity = if harmless { Severity::Note } else { Severity::Error };
                    self.find_at(severity, place, *last, Problem::Record(damage));
                }
                (Ending::Padding { .. } | Ending::Torn { .. }, _) if line.records == 0 => {
                    let severity = if next.is_none() { Severity::Repaired } else { Severity::Note };
                    self.find_at(severity, place, *last, Problem::NoRecord);
                }
                (Ending::Torn { bytes }, None) => {
                    self.find_at(Severity::Repaired, place, *last, Problem::TornEnd(bytes));
                }
                (Ending::Torn { .. }, Some(_)) => {
                    self.find_at(Severity::Note, place, *last, Problem::TornMiddle);
                }
                (Ending::Padding { .. }, _) => {}
            }
        }
    }

    fn epochs(&mut self) {
        let dir = self.report.dirs.snapshots.clone();
        let path = dir.join(VOTE);
        match self.files.read(&path, 128) {
            Ok(Some(bytes)) if vote::parse(&bytes).is_none() => {
                let problem = Problem::Vote(String::from_utf8_lossy(&bytes).into_owned());
                self.find(Severity::Error, &path, problem);
            }
            Ok(_) => {}
            Err(error) => {
                self.find(Severity::Error, &path, Problem::File(at("read", &path)(error)));
            }
        }
        let last = self.report.last;
        let has_history = !(self.report.logs.is_empty() && self.report.snapshots.is_empty());
        let mut read = |name: &str| {
            let path = dir.join(name);
            let problem = match epochs::look(&self.files, &path) {
                Ok(Some(Ok(epoch))) => return (Some(epoch), Some(epoch)),
                Ok(None) => {
                    if has_history {
                        let problem = Problem::EpochMissing(last.epoch());
                        self.find(Severity::Repaired, &path, problem);
                    }
                    return (None, Some(last.epoch()));
                }
                Ok(Some(Err(NoEpoch::Garbage(found)))) => Problem::Garbage(found),
                Ok(Some(Err(NoEpoch::OutOfRange(found)))) => Problem::NoEpoch(found),
                Err(error) => Problem::File(error),
            };
            self.find(Severity::Error, &path, problem);
            (None, None)
        };
        let ((found_accepted, accepted), (found_current, current)) =
            (read(ACCEPTED), read(CURRENT));
        (self.report.accepted_epoch, self.report.current_epoch) = (found_accepted, found_current);
        let (accepted_path, current_path) = (dir.join(ACCEPTED), dir.join(CURRENT));
        let (Some(accepted), Some(current)) = (accepted, current) else { return };
        if current > accepted {
            let problem = Problem::NotPromised { current, accepted };
            self.find(Severity::Error, &current_path, problem);
        }
        if last.epoch() > accepted {
            let problem = Problem::LastNotPromised { accepted, last };
            self.find(Severity::Error, &accepted_path, problem);
        } else if last.epoch() > current {
            self.find(Severity::Repaired, &current_path, Problem::Interrupted { current, last });
        }
    }
}

/// The snapshot in a file that may not have its name yet.
fn unstaged(path: &Path) -> Option<SnapshotFile> {
    let name = path.file_name()?.to_str()?;
    let named = SnapshotFile::at(name.strip_prefix(STAGED).unwrap_or(name))?;
    Some(SnapshotFile { path: path.to_owned(), ..named })
}

/// What the records so far were.
struct Run {
    base: Zxid,
    previous: Option<Zxid>,
    floor: Zxid,
    /// The last file ended torn.
    torn: bool,
}

impl Run {
    /// Whether a transaction can stand where it does.
    fn record(&mut self, zxid: Zxid) -> Option<(Severity, Problem)> {
        let base = self.base;
        let torn = std::mem::take(&mut self.torn);
        let after = self.previous.replace(zxid);
        let hole = |after| Some((Severity::Error, Problem::Hole { zxid, after }));
        match after {
            _ if !is_number(zxid) => Some((Severity::Error, Problem::Number(zxid))),
            Some(after) if zxid <= after => Some((Severity::Error, Problem::Order { zxid, after })),
            Some(after) if after < base && base < zxid => {
                self.floor = base;
                if follows(base, zxid) { None } else { hole(base) }
            }
            Some(after) if follows(after, zxid) => {
                if torn && !is_successor(after, zxid) {
                    self.floor = before(zxid);
                }
                None
            }
            Some(after) => {
                self.floor = before(zxid);
                let gap = Some((Severity::Note, Problem::Gap { zxid, after }));
                if zxid <= base { gap } else { hole(after) }
            }
            None if zxid > base => {
                self.floor = base;
                if follows(base, zxid) { None } else { hole(base) }
            }
            None => {
                self.floor = before(zxid);
                None
            }
        }
    }
}
