//! Opening a data directory: the lock, the log and snapshots, the vote, the epochs, the longest lease.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::durable::{Durable, Epochs};
use quorate_core::generation_message::GrantedVote;
use quorate_core::id::ServerId;
use quorate_core::zxid::{Epoch, Zxid};

use super::Log;
use super::error::LogError;
use super::remains::Remains;
use crate::dirs::Dirs;
use crate::epochs::{self, ACCEPTED, CURRENT, LEASE, NoEpoch};
use crate::error::at;
use crate::files::{Disk, Files, Holder, Lock};
use crate::install::Memberships;
use crate::names::{LOCK, VERSION_DIR};
use crate::segments::{SegmentOptions, Segments};
use crate::snapshot::SnapshotFile;
use crate::vote::{self, VOTE};

/// How to open a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Where the transaction logs are (`dataLogDir`), if not in the data directory.
    pub data_log_dir: Option<PathBuf>,
    /// Whether a server whose directory is empty may take its history for known to be empty, and so
    /// may vote (`zookeeper.db.autocreate`). If not, it needs a file `initialize` beside `version-2`
    /// once, or must first get its history from a leader: that protects an ensemble against voters
    /// which lost their disks.
    pub autocreate: bool,
    /// Our id, if we elect by generation: only then is the vote read and kept.
    pub voter: Option<ServerId>,
    /// What it has to hold, where a write to it has failed in this process before.
    pub remains: Option<Remains>,
    /// How to open the transactions and snapshots.
    pub segments: SegmentOptions,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            data_log_dir: None,
            autocreate: true,
            voter: None,
            remains: None,
            segments: SegmentOptions::default(),
        }
    }
}

/// What a data directory holds, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What the protocol starts from. Its last zxid is [`Zxid::UNKNOWN`] where it is not known whether
    /// the history is empty or lost, see [`OpenOptions::autocreate`].
    pub durable: Durable,
    /// What the application is to be restored from. It looks whole; whether it is, reading it tells. If
    /// it is not, drop the [`Log`] and open again with [`SegmentOptions::snapshot_before`] set to its
    /// label.
    ///
    /// None: the application starts from nothing, and has to say how that looks, see
    /// [`Log::begin_with`].
    pub snapshot: Option<SnapshotFile>,
    /// What came of the membership with a history whose installation a crash interrupted. It is to be kept, and that
    /// is to be told with [`Log::memberships_kept`], before anything is written.
    pub installed: Option<Memberships>,
}

impl Log {
    /// Opens the directory `data_dir`, which is created if need be, and tells what it holds. All of
    /// that is durable when this returns.
    ///
    /// Where an epoch file is missing, as in a directory that has only a history, the epoch is that of
    /// the last transaction. A current epoch below that of the last transaction, which was promised, is
    /// what an interrupted synchronisation leaves; it is returned as it is.
    ///
    /// # Errors
    ///
    /// A [`LogError`]: another process has the directory, it cannot be written to, its files
    /// contradict each other, or acknowledged transactions may be missing. Except for the remains of
    /// interrupted writes, nothing was changed then.
    pub fn open(
        data_dir: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<(Self, Found), LogError> {
        Self::open_on(Disk, data_dir, options)
    }
}

impl<F: Files + Clone> Log<F> {
    /// As [`Log::open`], on other files than the operating system's.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn open_on(
        files: F,
        data_dir: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<(Self, Found), LogError> {
        let data_dir = data_dir.as_ref();
        let log_dir = options.data_log_dir.as_deref().unwrap_or(data_dir);
        let dirs = Dirs { snapshots: data_dir.join(VERSION_DIR), logs: log_dir.join(VERSION_DIR) };
        let remains = options.remains.as_ref();
        if remains.is_some() {
            Remains::refuse_gone(&files, &dirs)?;
        }
        for (above, dir) in [(data_dir, &dirs.snapshots), (log_dir, &dirs.logs)] {
            files.create_dir(dir).map_err(at("create the directory", dir))?;
            // It may have been created by a process that died before it could sync this.
            files.sync_dir(above).map_err(at("sync", above))?;
        }
        let lock_path = dirs.snapshots.join(LOCK);
        let lock = match files.lock(&lock_path).map_err(at("lock", &lock_path))? {
            Lock::Ours(lock) => lock,
            Lock::Taken(Holder { pid }) => {
                return Err(LogError::Locked { dir: data_dir.to_owned(), pid });
            }
        };
        let trust_empty_snapshot = options.segments.trust_empty_snapshot;
        let dir = dirs.snapshots.clone();
        remains.map_or(Ok(()), |remains| remains.cut_back(&files, &dirs))?;
        let (segments, opened) = Segments::open(files.clone(), dirs, options.segments)?;
        let mut log = Self {
            files,
            dir,
            epochs: Epochs { accepted_epoch: Epoch::ZERO, current_epoch: Epoch::ZERO },
            granted_vote: None,
            lease: Duration::ZERO,
            segments,
            origin: None,
            known: true,
            trust_empty_snapshot,
            staged: None,
            least: None,
            failed: false,
            behind: opened.behind,
            _lock: lock,
        };
        if let Some(id) = options.voter {
            log.load_vote(data_dir, id)?;
        }
        log.load_epochs(log_dir, opened.last, options.autocreate)?;
        log.lease = log.load_lease()?;
        if let Some(remains) = remains {
            remains.compare(&log.dir, log.epochs, opened.last)?;
        }
        let durable = Durable {
            accepted_epoch: log.epochs.accepted_epoch,
            current_epoch: log.epochs.current_epoch,
            last_zxid: if log.known { opened.last } else { Zxid::UNKNOWN },
            floor: opened.floor,
            snapshot: opened.snapshot.as_ref().map_or(Zxid::ZERO, |snapshot| snapshot.label),
            lease: log.lease,
            granted_vote: log
                .granted_vote
                .map_or(GrantedVote::NONE, |(granted_vote, _)| granted_vote),
            changes: opened.changes,
            window: opened.window,
            window_is_whole: opened.window_is_whole,
        };
        Ok((log, Found { durable, snapshot: opened.snapshot, installed: opened.installed }))
    }

    /// Reads the vote, which must be there if there is anything else.
    fn load_vote(&mut self, data_dir: &Path, id: ServerId) -> Result<(), LogError> {
        self.remove(&epochs::temporary(&self.dir, VOTE))?;
        let mut has_history = !self.segments.is_empty();
        for name in [ACCEPTED, CURRENT] {
            has_history |= self.read_epoch(name)?.is_some();
        }
        let granted_vote = vote::open(&self.files, data_dir, &self.dir, id, has_history)??;
        self.granted_vote = Some((granted_vote, id));
        Ok(())
    }

    /// Reads both epochs, makes sure of them, and compares them with the last transaction.
    fn load_epochs(
        &mut self,
        log_dir: &Path,
        last: Zxid,
        autocreate: bool,
    ) -> Result<(), LogError> {
        for name in [ACCEPTED, CURRENT] {
            self.remove(&epochs::temporary(&self.dir, name))?;
        }
        let (accepted, current) = (self.read_epoch(ACCEPTED)?, self.read_epoch(CURRENT)?);
        let (a, c) = (accepted.unwrap_or(last.epoch()), current.unwrap_or(last.epoch()));
        if last.epoch() > a {
            let path = self.dir.join(ACCEPTED);
            return Err(LogError::NeverPromised { path, accepted: a, last });
        }
        if c > a {
            let dir = self.dir.clone();
            return Err(LogError::Contradiction { dir, current: c, accepted: a });
        }
        self.files.sync_dir(&self.dir).map_err(at("sync", &self.dir))?;
        self.epochs = Epochs { accepted_epoch: a, current_epoch: c };

        let marker = log_dir.join(INITIALIZE);
        let initialize = self.files.read(&marker, 1).map_err(at("read", &marker))?.is_some();
        self.known = autocreate || initialize || current.is_some() || !self.segments.is_empty();
        if !self.known {
            return Ok(());
        }
        for (name, found, epoch) in [(ACCEPTED, accepted, a), (CURRENT, current, c)] {
            if found.is_none() {
                epochs::replace(&self.files, &self.dir, name, epoch)?;
            }
        }
        if initialize {
            self.remove(&marker)?;
            self.files.sync_dir(log_dir).map_err(at("sync", log_dir))?;
        }
        Ok(())
    }

    /// Reads the longest lease, and makes sure of it; zero where none was promised.
    fn load_lease(&self) -> Result<Duration, LogError> {
        self.remove(&epochs::temporary(&self.dir, LEASE))?;
        let path = self.dir.join(LEASE);
        let Some(found) = epochs::read(&self.files, &path)? else { return Ok(Duration::ZERO) };
        match found.map(|millis| u64::try_from(millis.0)) {
            Ok(Ok(millis)) => Ok(Duration::from_millis(millis)),
            Ok(Err(_)) | Err(_) => Err(LogError::NoLease { path }),
        }
    }

    fn remove(&self, path: &Path) -> Result<(), LogError> {
        match self.files.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(at("remove", path)(error).into())
            }
            _ => Ok(()),
        }
    }

    fn read_epoch(&self, name: &str) -> Result<Option<Epoch>, LogError> {
        let path = self.dir.join(name);
        match epochs::read(&self.files, &path)? {
            None => Ok(None),
            Some(Ok(epoch)) => Ok(Some(epoch)),
            Some(Err(NoEpoch::Garbage(found))) => Err(LogError::Garbage { path, found }),
            Some(Err(NoEpoch::OutOfRange(found))) => Err(LogError::NoEpoch { path, found }),
        }
    }
}

const INITIALIZE: &str = "initialize";
