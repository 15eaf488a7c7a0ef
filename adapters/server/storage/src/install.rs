//! Putting the history that a leader sent in the place of our own, in one step.
//!
//! A learner that gets a snapshot gives up what it has, also what it acknowledged. Between giving it up
//! and having it again there must be no moment: a crash there, with a leader that sends an older
//! snapshot next, would lose a committed transaction. So the snapshot and the transactions behind it
//! are written beside the old history, under names that nobody takes for history:
//!
//! ```text
//!   receiving.<n>.snapshot.<zxid>   what the leader sends
//!   staged.snapshot.<zxid>          the same, whole and about to be installed
//!   staged.log.<zxid>               what it sent behind that
//!   quorate.install                 the marker: these two are the history now, and this of the membership binds
//! ```
//!
//! Until the marker is durable, the old history is the one that counts, whole; from then on the new one
//! does. What is left to do behind the marker (remove the old files, rename the new ones, remove the
//! marker) is done here or at the next start, as often as it takes. What the history holds of the membership is kept
//! in files that are not this crate's: so it stands in the marker, which goes only when its owner has it.
//!
//! In the Java code: `Learner.syncWithLeader`, which overwrites in place (ZOOKEEPER-2872).

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use bytes::{Buf as _, Bytes};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::dirs::Dirs;
use crate::error::{FileError, SAFE, at};
use crate::files::Files;
use crate::names::{RECEIVING, STAGED, TAKING};
use crate::record::{self, FILE_HEADER};
use crate::segment::{self, follows};
use crate::snapshot::{self, StagedSnapshot};

/// What a history holds of the membership of its ensemble, as the text of ZooKeeper's dynamic configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memberships {
    /// The one in force.
    pub present: Bytes,
    /// The one seen last, if that is another.
    pub next: Option<Bytes>,
}

/// A history that waits for its installation by
/// [`History::install`](crate::history::History::install).
#[derive(Debug)]
pub struct Install<F: Files> {
    files: F,
    snapshot: StagedSnapshot<F>,
    log_dir: PathBuf,
    log: Option<StagedLog<F::File>>,
    last: Zxid,
    txn_bytes_max: usize,
    failed: bool,
}

#[derive(Debug)]
struct StagedLog<H> {
    file: H,
    start: Zxid,
    path: PathBuf,
    offset: u64,
    buffer: Vec<u8>,
}

impl<F: Files + Clone> Install<F> {
    /// Begins with a snapshot that was [received](crate::snapshot::SnapshotWriter::receive) whole.
    pub fn new(snapshot: StagedSnapshot<F>, dirs: &Dirs, txn_bytes_max: usize) -> Self {
        Self {
            files: snapshot.files.clone(),
            last: snapshot.label,
            snapshot,
            log_dir: dirs.logs.clone(),
            log: None,
            txn_bytes_max,
            failed: false,
        }
    }

    /// The label of its snapshot.
    pub fn label(&self) -> Zxid {
        self.snapshot.label
    }

    /// Removes it. So does the next start, if this is not called.
    ///
    /// # Errors
    ///
    /// An [`InstallError`] if a file cannot be removed.
    pub fn discard(self) -> Result<(), InstallError> {
        let Self { files, snapshot, log, .. } = self;
        if let Some(StagedLog { file, path, .. }) = log {
            // Not every system removes what is open.
            drop(file);
            files.remove(&path).map_err(at("remove", &path))?;
        }
        Ok(files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?)
    }

    /// The last transaction of this history.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// Adds what the leader sent behind the snapshot.
    ///
    /// # Errors
    ///
    /// An [`InstallError`] if a transaction does not follow the one before, is too long, or cannot be
    /// written. In the last case this history must be abandoned.
    pub fn append(&mut self, txns: &[Txn]) -> Result<(), InstallError> {
        if self.failed {
            return Err(InstallError::Failed { dir: self.log_dir.clone() });
        }
        for txn in txns {
            if !follows(self.last, txn.zxid) {
                return Err(InstallError::Order { zxid: txn.zxid, after: self.last });
            }
            if txn.len() > self.txn_bytes_max {
                let (length, max) = (txn.len(), self.txn_bytes_max);
                return Err(InstallError::TooLong { zxid: txn.zxid, length, max });
            }
            self.failed = true;
            let log = match &mut self.log {
                Some(log) => log,
                none => none.insert(StagedLog::create(&self.files, &self.log_dir, txn.zxid)?),
            };
            record::encode(txn, &mut log.buffer);
            if log.buffer.len() >= BUFFER_BYTES {
                log.flush(&self.files)?;
            }
            self.failed = false;
            self.last = txn.zxid;
        }
        Ok(())
    }

    /// Makes everything durable and then counts: the one step. The marker stays.
    pub(crate) fn commit(
        mut self,
        dirs: &Dirs,
        memberships: &Memberships,
    ) -> Result<Committed, InstallError> {
        if self.failed {
            return Err(InstallError::Failed { dir: self.log_dir });
        }
        let mut names = vec![snapshot::name(self.snapshot.label)];
        if let Some(log) = &mut self.log {
            log.flush(&self.files)?;
            if !planted!(InstallUnsynced) {
                self.files.sync(&log.file).map_err(at("sync", &log.path))?;
            }
            names.push(segment::name(log.start));
        }
        let staged = dirs.snapshots.join(format!("{STAGED}{}", names[0]));
        self.files.rename(&self.snapshot.path, &staged).map_err(at("rename", &staged))?;
        dirs.sync(&self.files)?;
        let (marker, temporary) = (dirs.snapshots.join(MARKER), dirs.snapshots.join(MARKER_TMP));
        let marked = Marked { names, memberships: Some(memberships.clone()) };
        let text = marked.encode();
        let file = self.files.write(&temporary, &text).map_err(at("write", &temporary))?;
        self.files.sync(&file).map_err(at("sync", &temporary))?;
        drop(file);
        self.files.rename(&temporary, &marker).map_err(at("rename", &temporary))?;
        self.files.sync_dir(&dirs.snapshots).map_err(at("sync", &dirs.snapshots))?;
        let committed = Committed {
            label: self.snapshot.label,
            log: self.log.as_ref().map(|log| (log.start, log.offset)),
            last: self.last,
        };
        // Not every system renames what is open.
        let files = self.files.clone();
        drop(self);
        complete(&files, dirs, &marked.names)?;
        Ok(committed)
    }
}

impl<H> StagedLog<H> {
    fn create<F: Files<File = H>>(
        files: &F,
        dir: &Path,
        start: Zxid,
    ) -> Result<Self, InstallError> {
        let path = dir.join(format!("{STAGED}{}", segment::name(start)));
        let file = files.write(&path, &[]).map_err(at("create", &path))?;
        Ok(Self { file, start, path, offset: 0, buffer: FILE_HEADER.to_vec() })
    }

    fn flush<F: Files<File = H>>(&mut self, files: &F) -> Result<(), InstallError> {
        files.write_at(&self.file, self.offset, &self.buffer).map_err(at("write", &self.path))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// What is the history now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) label: Zxid,
    /// The first transaction of its log and where the last one ends, if it has one.
    pub(crate) log: Option<(Zxid, u64)>,
    pub(crate) last: Zxid,
}

/// At start: does what is left to do of an installation whose marker is there, and removes what waited
/// for one. The marker stays if it tells of memberships, which are returned.
pub(crate) fn resume<F: Files>(
    files: &F,
    dirs: &Dirs,
) -> Result<Option<Memberships>, InstallError> {
    let mut memberships = None;
    if let Some((marker, marked)) = marker(files, dirs)? {
        // A killed process may have left the marker in the page cache only; it must outlive what it
        // tells us to remove.
        let file = files.open(&marker).map_err(at("open", &marker))?;
        files.sync(&file).map_err(at("sync", &marker))?;
        drop(file);
        dirs.sync(files)?;
        complete(files, dirs, &marked.names)?;
        memberships = marked.memberships;
        if memberships.is_none() {
            remove_marker(files, dirs)?;
        }
    }
    for dir in dirs.each() {
        let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
        for name in names {
            let text = name.to_string_lossy();
            if is_leftover(&text) {
                let path = dir.join(&name);
                files.remove(&path).map_err(at("remove", &path))?;
            }
        }
    }
    Ok(memberships)
}

/// What a marker says.
struct Marked {
    names: Vec<String>,
    /// None from a version of this crate that did not write them here.
    memberships: Option<Memberships>,
}

impl Marked {
    /// A line for each name; then, for each membership, a line that tells how many bytes follow, and these.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for name in &self.names {
            out.extend_from_slice(format!("{name}\n").as_bytes());
        }
        if let Some(Memberships { present, next }) = &self.memberships {
            for (key, text) in [(PRESENT, Some(present)), (NEXT, next.as_ref())] {
                let Some(text) = text else { continue };
                out.extend_from_slice(format!("{key}{}\n", text.len()).as_bytes());
                out.extend_from_slice(text);
                out.push(b'\n');
            }
        }
        out
    }

    fn decode(text: Vec<u8>) -> Option<Self> {
        let mut rest = Bytes::from(text);
        let (mut names, mut present, mut next) = (Vec::new(), None, None);
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = rest.split_to(end + 1);
            let line = std::str::from_utf8(&line[..end]).ok()?;
            let mut text = |length: &str| {
                let length: usize = length.parse().ok()?;
                let whole = rest.get(length) == Some(&b'\n');
                let text = whole.then(|| rest.split_to(length))?;
                rest.advance(1);
                Some(text)
            };
            if let Some(length) = line.strip_prefix(PRESENT) {
                present = Some(text(length)?);
            } else if let Some(length) = line.strip_prefix(NEXT) {
                next = Some(text(length)?);
            } else {
                names.push(line.to_owned());
            }
        }
        let memberships = present.map(|present| Memberships { present, next });
        are_a_history(&names).then_some(Self { names, memberships })
    }
}

/// The marker and what it says, if there is one.
fn marker<F: Files>(files: &F, dirs: &Dirs) -> Result<Option<(PathBuf, Marked)>, InstallError> {
    let marker = dirs.snapshots.join(MARKER);
    let text = files.read(&marker, MARKER_BYTES_MAX).map_err(at("read", &marker))?;
    let Some(text) = text else { return Ok(None) };
    match Marked::decode(text) {
        Some(marked) => Ok(Some((marker, marked))),
        None => Err(InstallError::Marker { path: marker }),
    }
}

/// For those who only look: the marker of an installation that a start would finish, if there is one,
/// and where the files of that history are at present.
pub(crate) fn pending<F: Files>(
    files: &F,
    dirs: &Dirs,
) -> Result<Option<(PathBuf, Vec<PathBuf>)>, InstallError> {
    let Some((marker, Marked { names, .. })) = marker(files, dirs)? else { return Ok(None) };
    let moves = moves(files, dirs, &names)?;
    let present = names.iter().map(|name| {
        let staged = moves.iter().find(|(_, path)| path.ends_with(name));
        let dir = if is_log(name) { &dirs.logs } else { &dirs.snapshots };
        staged.map_or_else(|| dir.join(name), |(staged, _)| staged.clone())
    });
    Ok(Some((marker, present.collect())))
}

/// Whether a file of that name was left behind by an interrupted write, unless a marker names it.
pub(crate) fn is_leftover(name: &str) -> bool {
    name == MARKER_TMP || [STAGED, RECEIVING, TAKING].iter().any(|prefix| name.starts_with(prefix))
}

/// What is still to be renamed, from which name to which.
fn moves<F: Files>(
    files: &F,
    dirs: &Dirs,
    names: &[String],
) -> Result<Vec<(PathBuf, PathBuf)>, InstallError> {
    let mut moves = Vec::new();
    for name in names {
        let dir = if is_log(name) { &dirs.logs } else { &dirs.snapshots };
        let (staged, path) = (dir.join(format!("{STAGED}{name}")), dir.join(name));
        if files.size(&staged).map_err(at("look at", &staged))?.is_some() {
            moves.push((staged, path));
        } else if files.size(&path).map_err(at("look at", &path))?.is_none() {
            return Err(InstallError::Missing { path: staged });
        }
    }
    Ok(moves)
}

/// Everything behind the marker but its end. May be interrupted and done again at any step.
fn complete<F: Files>(files: &F, dirs: &Dirs, names: &[String]) -> Result<(), InstallError> {
    let moves = moves(files, dirs, names)?;
    let kept = |name: &OsStr| names.iter().any(|kept| OsStr::new(kept) == name);
    for dir in dirs.each() {
        let found = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
        for name in found {
            let history =
                segment::start_of(&name).is_some() || snapshot::parse_name(&name).is_some();
            if history && !kept(&name) && !planted!(OldHistoryKept) {
                let path = dir.join(&name);
                files.remove(&path).map_err(at("remove", &path))?;
            }
        }
    }
    for (staged, path) in moves {
        files.rename(&staged, &path).map_err(at("rename", &staged))?;
    }
    Ok(dirs.sync(files)?)
}

/// The memberships are kept elsewhere. Before that nothing may be appended to the new history: the marker would take it
/// away again.
pub(crate) fn remove_marker<F: Files>(files: &F, dirs: &Dirs) -> Result<(), InstallError> {
    let marker = dirs.snapshots.join(MARKER);
    files.remove(&marker).map_err(at("remove", &marker))?;
    files.sync_dir(&dirs.snapshots).map_err(at("sync", &dirs.snapshots))?;
    Ok(())
}

/// One snapshot, and perhaps one log.
fn are_a_history(names: &[String]) -> bool {
    let snapshot = names.first().is_some_and(|name| snapshot::parse_name(name.as_ref()).is_some());
    snapshot && names.len() <= 2 && names.iter().skip(1).all(|name| is_log(name))
}

fn is_log(name: &str) -> bool {
    segment::start_of(name.as_ref()).is_some()
}

/// Why a history cannot be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// A transaction does not follow the one before it.
    #[error("transaction {zxid} does not follow {after} of the history to be installed")]
    Order {
        /// The transaction.
        zxid: Zxid,
        /// The last one, or the snapshot's label.
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
    /// The marker of an installation cannot be read.
    #[error(
        "{} does not name the files of a history; it is damaged or not ours. {safe}", path.display(),
        safe = SAFE
    )]
    Marker {
        /// The file.
        path: PathBuf,
    },
    /// A marker is there, but what it names is not.
    #[error(
        "a history was being installed, but {} is missing. {safe}", path.display(), safe = SAFE
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// What the history holds of the membership cannot be kept.
    #[error("cannot keep the membership that came with a history in {}: {source}", path.display())]
    Membership {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

const MARKER: &str = "quorate.install";
const MARKER_TMP: &str = "quorate.install.tmp";
/// Names, and two texts of memberships.
const MARKER_BYTES_MAX: u64 = 4 << 20;
const PRESENT: &str = "membership ";
const NEXT: &str = "next ";
const BUFFER_BYTES: usize = 256 << 10;
