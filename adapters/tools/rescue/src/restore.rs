//! Restoring a backup into an empty directory.
//!
//! ```text
//!   verify all of the archive ─► write under another name, sync ─► read back to the digest
//!     ─► rename the log directory, then version-2 ─► myid
//! ```
//!
//! Until the last step there is nothing that a server would start from: without its `myid` it does not. (A `myid` beside
//! an empty directory would be worse than nothing: a server that may vote for emptiness.)

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quorate_core::zxid::Epoch;
use quorate_storage::Disk;
use quorate_storage::segments::Dirs;
use thiserror::Error;

use crate::archive::{Archive, ArchiveError};
use crate::durable::{WriteError, at, create, create_dir, first_in, sync_dir, write_new};
use crate::history::{self, HistoryError};
use crate::manifest::{Manifest, Mismatch, Part};

/// Where a backup goes, and as what.
#[derive(Clone, Debug)]
pub struct Target {
    /// The `dataDir`, empty or not there.
    pub data_dir: PathBuf,
    /// The `dataLogDir`, if the server has one; likewise.
    pub data_log_dir: Option<PathBuf>,
    /// The server's id.
    pub id: i64,
    /// Another epoch that the next leader's must be above.
    pub epoch_above: Option<Epoch>,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The backup.
    pub manifest: Manifest,
    /// What both epoch files hold.
    pub epoch: Epoch,
}

/// Verifies a backup, writes it into an empty directory, and compares the digest of what was written.
///
/// # Errors
///
/// A [`RestoreError`]. Before the archive was verified to its end nothing is written; what was written then is removed.
pub fn restore(archive: &Archive, target: &Target) -> Result<Restored, RestoreError> {
    let history = archive.verify()?;
    let last = history.state.zxid.epoch();
    let epoch = last.max(target.epoch_above.unwrap_or(last));
    // The next leader needs one above it.
    if !epoch.is_valid() || epoch.next().is_none() {
        return Err(RestoreError::NoEpoch { epoch });
    }
    let roots = [Some(target.data_dir.as_path()), target.data_log_dir.as_deref()];
    for root in roots.into_iter().flatten() {
        if let Some(found) = first_in(root)? {
            return Err(RestoreError::NotEmpty { dir: root.to_owned(), found });
        }
    }
    let staged = Staged::of(target);
    let written = staged.write(archive, epoch).and_then(|()| {
        let limit = archive.manifest().txn_bytes_max;
        let found = history::load(&Disk, &staged.dirs, limit)?.state;
        archive.manifest().compare(&found).map_err(RestoreError::ReadBack)
    });
    if let Err(error) = written {
        staged.remove();
        return Err(error);
    }
    staged.publish(target)?;
    Ok(Restored { manifest: archive.manifest().clone(), epoch })
}

/// What is written and has not its name yet.
struct Staged {
    dirs: Dirs,
}

impl Staged {
    fn of(target: &Target) -> Self {
        let logs = target.data_log_dir.as_deref().unwrap_or(&target.data_dir);
        Self { dirs: Dirs { snapshots: target.data_dir.join(STAGED), logs: logs.join(STAGED) } }
    }

    fn each(&self) -> impl Iterator<Item = &Path> {
        let second = (self.dirs.logs != self.dirs.snapshots).then_some(self.dirs.logs.as_path());
        [self.dirs.snapshots.as_path()].into_iter().chain(second)
    }

    fn write(&self, archive: &Archive, epoch: Epoch) -> Result<(), RestoreError> {
        self.each().try_for_each(create_dir)?;
        for part in &archive.manifest().parts {
            let is_log = part.name.starts_with("log.");
            let dir = if is_log { &self.dirs.logs } else { &self.dirs.snapshots };
            unpack(archive, part, &dir.join(&part.name))?;
        }
        for name in ["acceptedEpoch", "currentEpoch"] {
            write_new(&self.dirs.snapshots.join(name), epoch.0.to_string().as_bytes())?;
        }
        self.each().try_for_each(sync_dir)?;
        Ok(())
    }

    /// What holds the snapshot comes last but for the id: without either no server starts.
    fn publish(&self, target: &Target) -> Result<(), RestoreError> {
        let logs = target.data_log_dir.as_deref().filter(|_| self.each().count() > 1);
        for dir in [logs, Some(target.data_dir.as_path())].into_iter().flatten() {
            let (from, to) = (dir.join(STAGED), dir.join("version-2"));
            fs::rename(&from, &to).map_err(at("rename", &from))?;
            sync_dir(dir)?;
        }
        let myid = target.data_dir.join("myid");
        write_new(&myid, format!("{}\n", target.id).as_bytes())?;
        Ok(sync_dir(&target.data_dir)?)
    }

    fn remove(&self) {
        // What cannot be removed is in the way of the next restore only, which names it.
        self.each().for_each(|dir| drop(fs::remove_dir_all(dir)));
    }
}

fn unpack(archive: &Archive, part: &Part, to: &Path) -> Result<(), RestoreError> {
    let mut file = create(to)?;
    let mut failed = None;
    let unpacked = archive.unpack(part, &mut Noting { file: &mut file, failed: &mut failed });
    if let Some(error) = failed {
        return Err(at("write", to)(error).into());
    }
    unpacked?;
    Ok(file.sync_all().map_err(at("sync", to))?)
}

/// Tells an error of writing from one of reading.
struct Noting<'a> {
    file: &'a mut fs::File,
    failed: &'a mut Option<io::Error>,
}

impl Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                *self.failed = Some(error);
            }
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Why a backup was not restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The backup is not what it was.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is something in the directory already.
    #[error(
        "{} is not empty: {} is there; nothing was written. A backup is restored into an empty directory only",
        dir.display(), found.display()
    )]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
        /// What is in it.
        found: PathBuf,
    },
    /// No leader could have an epoch above it.
    #[error("epoch {epoch} leaves the next leader none")]
    NoEpoch {
        /// The epoch that would be written.
        epoch: Epoch,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was written does not read back.
    #[error("what was written does not read back: {0}")]
    Unreadable(#[from] HistoryError),
    /// What was written reads back as something else.
    #[error("what was written does not read back: {0}")]
    ReadBack(#[source] Mismatch),
}

/// Where everything is written first.
const STAGED: &str = "version-2.restoring";
