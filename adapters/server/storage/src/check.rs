//! Checking a whole data directory without changing it: every record, every seal, the epochs, the vote.
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

mod epochs;
mod logs;
mod problem;
mod report;

use std::io;
use std::path::{Path, PathBuf};

use quorate_core::zxid::Zxid;

use crate::dirs::Dirs;
use crate::epochs::{ACCEPTED, CURRENT, LEASE};
use crate::error::{FileError, at};
use crate::files::{Disk, Files};
use crate::install;
use crate::names::{LOCK, STAGED};
use crate::record::TXN_BYTES_MAX;
use crate::segment::list_segments;
use crate::snapshot::{self, SnapshotFile};
use crate::vote::VOTE;

pub use problem::Problem;
pub use report::{Finding, LogLine, Report, Severity, SnapshotLine};

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
    let dirs = Dirs::of(data_dir, data_log_dir);
    for dir in [&dirs.snapshots, &dirs.logs] {
        if files.names(dir).map_err(at("list", dir))?.is_none() {
            return Err(at("list", dir)(io::ErrorKind::NotFound.into()));
        }
    }
    let lock = dirs.snapshots.join(LOCK);
    let holder = files.holder(&lock).map_err(at("look at the lock of", &lock))?;
    let report = Report {
        dirs,
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
}

/// The snapshot in a file that may not have its name yet.
fn unstaged(path: &Path) -> Option<SnapshotFile> {
    let name = path.file_name()?.to_str()?;
    let named = SnapshotFile::at(name.strip_prefix(STAGED).unwrap_or(name))?;
    Some(SnapshotFile { path: path.to_owned(), ..named })
}
