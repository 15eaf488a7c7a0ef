//! The report of a check: the files of a directory, where the history begins and ends, and the findings.

use std::path::PathBuf;

use quorate_core::zxid::{Epoch, Zxid};

use super::problem::Problem;
use crate::dirs::Dirs;
use crate::files::Holder;
use crate::snapshot::{Inspection, SnapshotFile};

/// What is in a data directory.
#[derive(Debug)]
pub struct Report {
    /// Where the files are.
    pub dirs: Dirs,
    /// The process that has the directory open at present.
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
