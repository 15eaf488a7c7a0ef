//! One data directory, opened by one server.
//!
//! ```text
//!   open ─► Found: epochs, history, vote        append, cut, stage ─► sync ─► durable
//!             └─► the core's Durable            epochs, vote ─► durable at once
//! ```
//!
//! The front of this crate: it holds the lock, and hands each act to the room that knows its files. In which
//! order writes have to become durable is the core's decision; that they are when this says so is decided
//! here.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::ballot::Ballot;
use quorate_core::durable::{Durable, Epochs};
use quorate_core::id::ServerId;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};
use thiserror::Error;

use crate::epochs::{self, ACCEPTED, CURRENT, LEASE, NoEpoch};
use crate::error::{FileError, SAFE, at};
use crate::files::{Disk, Files, Holder, Lock};
use crate::history::{
    AppendError, Dirs, History, HistoryOptions, Locating, OpenError, Roll, Synced, TruncateError,
};
use crate::install::{Install, InstallError, Memberships};
use crate::reader::{ReadError, Reader};
use crate::retention::{PurgeError, Purged};
use crate::snapshot::{SnapshotError, SnapshotFile, StagedSnapshot};
use crate::vote::{self, VOTE, VoteError};

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
    /// Who we are, if we elect by generation: only then is the vote read and kept.
    pub voter: Option<ServerId>,
    /// How to open the transactions and snapshots.
    pub history: HistoryOptions,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            data_log_dir: None,
            autocreate: true,
            voter: None,
            history: HistoryOptions::default(),
        }
    }
}

/// What a data directory holds, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What the protocol starts from. Its last zxid is [`Zxid::UNKNOWN`] where nobody can say whether
    /// the history is empty or lost, see [`OpenOptions::autocreate`].
    pub durable: Durable,
    /// What the application is to be restored from. It looks whole; whether it is, reading it tells. If
    /// it is not, drop the [`Log`] and open again with [`HistoryOptions::snapshot_before`] set to its
    /// label.
    ///
    /// None: the application starts from nothing, and has to say how that looks, see
    /// [`Log::begin_with`].
    pub snapshot: Option<SnapshotFile>,
    /// What came of the membership with a history whose installation a crash interrupted. It is to be kept, and that
    /// is to be told with [`Log::memberships_kept`], before anything is written.
    pub installed: Option<Memberships>,
}

/// The data directory of one server, locked for as long as this exists.
///
/// It holds the two epochs and the [`History`]. Epochs only go up, and the current epoch never passes
/// the accepted one; a caller that asks for anything else gets an error and the files stay as they are.
/// After an error of the disk nobody knows what a crash would leave, so from then on every write is
/// refused: the server must stop and start again.
#[derive(Debug)]
pub struct Log<F: Files = Disk> {
    files: F,
    /// `version-2`.
    dir: PathBuf,
    /// What a crash would leave; changed only after the files.
    epochs: Epochs,
    /// The last vote given, and whose it is; none if we do not elect by generation.
    ballot: Option<(Ballot, ServerId)>,
    /// The longest lease that may have been promised.
    lease: Duration,
    history: History<F>,
    /// The application's first state, as long as nobody knows whether the history begins with it.
    origin: Option<StagedSnapshot<F>>,
    /// The history is known to be what the directory says.
    known: bool,
    /// A log without a snapshot is a history from the beginning.
    trust_empty_snapshot: bool,
    /// The history that a leader is sending.
    staged: Option<Install<F>>,
    /// A write of an epoch failed, see the type.
    failed: bool,
    _lock: F::Lock,
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
        let trust_empty_snapshot = options.history.trust_empty_snapshot;
        let dir = dirs.snapshots.clone();
        let (history, opened) = History::open(files.clone(), dirs, options.history)?;
        let mut log = Self {
            files,
            dir,
            epochs: Epochs { accepted_epoch: Epoch::ZERO, current_epoch: Epoch::ZERO },
            ballot: None,
            lease: Duration::ZERO,
            history,
            origin: None,
            known: true,
            trust_empty_snapshot,
            staged: None,
            failed: false,
            _lock: lock,
        };
        if let Some(id) = options.voter {
            log.load_vote(data_dir, id)?;
        }
        log.load_epochs(log_dir, opened.last, options.autocreate)?;
        log.lease = log.load_lease()?;
        let durable = Durable {
            accepted_epoch: log.epochs.accepted_epoch,
            current_epoch: log.epochs.current_epoch,
            last_zxid: if log.known { opened.last } else { Zxid::UNKNOWN },
            floor: opened.floor,
            snapshot: opened.snapshot.as_ref().map_or(Zxid::ZERO, |snapshot| snapshot.label),
            lease: log.lease,
            ballot: log.ballot.map_or(Ballot::NONE, |(ballot, _)| ballot),
            changes: opened.changes,
            window: opened.window,
        };
        Ok((log, Found { durable, snapshot: opened.snapshot, installed: opened.installed }))
    }

    /// Takes a snapshot of the application's first state, labelled zero, for a directory in which
    /// [none was found](Found::snapshot). Without one nothing can be appended: a log without a snapshot
    /// looks as if its beginning had been lost. It is published at once where the history is known to be
    /// empty, otherwise as soon as the server has entered an epoch.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn begin_with(&mut self, snapshot: StagedSnapshot<F>) -> Result<(), LogError> {
        self.guard()?;
        self.origin = Some(snapshot);
        if self.known { self.publish_origin() } else { Ok(()) }
    }

    /// Promises to follow no leader of an epoch before `epoch`, durably. Nothing is written if that
    /// was promised already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if `epoch` is before the one promised, is no epoch, or cannot be written.
    pub fn write_accepted_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        let from = self.epochs.accepted_epoch;
        if epoch < from {
            return Err(LogError::Regress { name: ACCEPTED, from, to: epoch });
        }
        self.write_epoch(ACCEPTED, from, epoch)?;
        self.epochs.accepted_epoch = epoch;
        Ok(())
    }

    /// Records that the history of the leader of `epoch` was taken over, durably. Nothing is written
    /// if that was recorded already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if `epoch` is before the present one, was not promised, or cannot be written.
    pub fn write_current_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        let from = self.epochs.current_epoch;
        if epoch < from {
            return Err(LogError::Regress { name: CURRENT, from, to: epoch });
        }
        if epoch > self.epochs.accepted_epoch {
            let accepted = self.epochs.accepted_epoch;
            return Err(LogError::NotPromised { current: epoch, accepted });
        }
        self.guard()?;
        // Whatever the history was before, it is known from here on.
        self.publish_origin()?;
        self.write_epoch(CURRENT, from, epoch)?;
        self.epochs.current_epoch = epoch;
        self.known = true;
        Ok(())
    }

    /// Keeps the vote of this server, durably. Nothing is written if that is what it voted already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if it voted otherwise in this generation, or in a later one, if the directory was opened
    /// without [`OpenOptions::voter`], or if the disk fails.
    pub fn write_vote(&mut self, ballot: Ballot) -> Result<(), LogError> {
        self.guard()?;
        let (from, id) = self.ballot.ok_or(VoteError::Unwanted)?;
        if !vote::follows(from, ballot) {
            return Err(VoteError::Twice { from, to: ballot }.into());
        }
        if from != ballot {
            self.failed = true;
            vote::keep(&self.files, &self.dir, ballot, id)?;
            self.failed = false;
            self.ballot = Some((ballot, id));
        }
        Ok(())
    }

    /// Keeps how long a lease this server may promise, durably, if that is more than before: what it has promised
    /// binds it whatever its settings say later.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn write_lease(&mut self, longest: Duration) -> Result<(), LogError> {
        self.guard()?;
        if longest > self.lease {
            self.failed = true;
            // Whole milliseconds, and not one too few.
            let millis = longest.as_nanos().div_ceil(1_000_000);
            epochs::replace_with(&self.files, &self.dir, LEASE, format!("{millis}\n").as_bytes())?;
            self.failed = false;
            self.lease = longest;
        }
        Ok(())
    }

    /// Takes transactions that follow the last one. They are kept in memory until [`Log::sync`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if one does not follow, is too long or of an epoch that was not promised, or if
    /// there is no snapshot yet; then none was taken.
    pub fn append(&mut self, txns: &[Txn]) -> Result<(), LogError> {
        self.guard()?;
        let begun = self.history.snapshot().is_some() || self.origin.is_some();
        if !begun && !self.trust_empty_snapshot {
            return Err(LogError::NoOrigin { dir: self.dir.clone() });
        }
        self.promised(txns.last().map(|txn| txn.zxid))?;
        Ok(self.history.append(txns)?)
    }

    /// Writes what was appended, in one piece, and syncs once.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn sync(&mut self) -> Result<Synced, LogError> {
        self.guard()?;
        Ok(self.history.sync()?)
    }

    /// Whether the last batch has no mark yet; see [`History::is_unmarked`].
    pub fn is_unmarked(&self) -> bool {
        self.history.is_unmarked()
    }

    /// Marks where the last batch ends; see [`History::mark`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn mark(&mut self) -> Result<(), LogError> {
        self.guard()?;
        Ok(self.history.mark()?)
    }

    /// Gives up everything behind `zxid`, durably; see [`History::truncate`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the log cannot end there, or the disk fails.
    pub fn truncate(&mut self, zxid: Zxid) -> Result<(), LogError> {
        self.guard()?;
        Ok(self.history.truncate(zxid)?)
    }

    /// Begins a history that a leader sends. One that was begun before is given up.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the older one cannot be removed.
    pub fn stage(&mut self, install: Install<F>) -> Result<(), LogError> {
        self.discard_staged()?;
        self.staged = Some(install);
        Ok(())
    }

    /// Adds transactions to the history that a leader sends.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if none was begun, or one does not follow, is too long or cannot be written.
    pub fn append_staged(&mut self, txns: &[Txn]) -> Result<(), LogError> {
        self.guard()?;
        let Some(first) = txns.first() else { return Ok(()) };
        let nothing = LogError::NothingStaged { zxid: first.zxid };
        let staged = self.staged.as_mut().ok_or(nothing)?;
        Ok(staged.append(txns)?)
    }

    /// Gives up the history that a leader has been sending, if there is one.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if a file cannot be removed.
    pub fn discard_staged(&mut self) -> Result<(), LogError> {
        self.guard()?;
        match self.staged.take() {
            Some(staged) => Ok(staged.discard()?),
            None => Ok(()),
        }
    }

    /// Puts the history that a leader has sent, which begins with the snapshot labelled `label`, in the
    /// place of this one, durably and in one step, and with it what it holds of the membership; see
    /// [`History::install`].
    ///
    /// # Errors
    ///
    /// A [`LogError`], in particular if that history ends in an epoch that was not promised. If the disk
    /// fails, the next start finds the old history or the new one, whole.
    pub fn install(
        &mut self,
        label: Zxid,
        memberships: &Memberships,
        keep: impl FnOnce() -> Result<(), (PathBuf, io::Error)>,
    ) -> Result<(), LogError> {
        self.guard()?;
        let staged = match self.staged.take() {
            Some(staged) if staged.label() == label => staged,
            other => {
                self.staged = other;
                return Err(LogError::NothingStaged { zxid: label });
            }
        };
        self.promised(Some(staged.last()))?;
        self.history.install(staged, memberships, keep)?;
        match self.origin.take() {
            Some(origin) => Ok(origin.discard()?),
            None => Ok(()),
        }
    }

    /// What was found to be [installed](Found::installed) of the membership is kept.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn memberships_kept(&mut self) -> Result<(), LogError> {
        Ok(self.history.memberships_kept()?)
    }

    /// Makes a snapshot of our own state one that a start may choose; see [`History::publish`].
    ///
    /// # Errors
    ///
    /// A [`LogError`], in particular if the log is not durable through the snapshot's label.
    pub fn publish(&mut self, snapshot: StagedSnapshot<F>) -> Result<(), LogError> {
        self.guard()?;
        Ok(self.history.publish(snapshot)?)
    }

    /// Removes old snapshots and log files; see [`History::purge`].
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn purge(&mut self, keep: usize, files_max: usize) -> Result<Purged, LogError> {
        self.guard()?;
        Ok(self.history.purge(keep, files_max)?)
    }

    /// Where `zxid` stands; see [`History::locate`].
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if a file cannot be read.
    pub fn locate(&mut self, zxid: Zxid, bytes: u64) -> Result<Locating, ReadError> {
        self.history.locate(zxid, bytes)
    }

    /// Prepares to read what follows `after`, up to `through`; see [`History::read`].
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if that is not in the log without a hole, or not durable.
    pub fn read(&mut self, after: Zxid, through: Zxid) -> Result<Reader<F>, ReadError> {
        self.history.read(after, through)
    }

    /// Sets when the file being written is long enough.
    pub fn set_roll(&mut self, roll: Roll) {
        self.history.set_roll(roll);
    }

    /// Makes everything durable, gives back the room that was taken in advance, and unlocks the directory.
    /// Nothing depends on it: dropping a `Log` is as good, but for that room.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if the disk fails.
    pub fn close(mut self) -> Result<(), LogError> {
        self.guard()?;
        self.history.roll()?;
        Ok(())
    }

    /// The snapshot that a start would choose; none before the first.
    pub fn snapshot(&self) -> Option<&SnapshotFile> {
        self.history.snapshot()
    }

    /// What a crash would leave of the epochs.
    pub fn epochs(&self) -> Epochs {
        self.epochs
    }

    /// The last transaction that was appended.
    pub fn last(&self) -> Zxid {
        self.history.last()
    }

    /// The last transaction that is durable.
    pub fn durable(&self) -> Zxid {
        self.history.durable()
    }

    /// Where the files are.
    pub fn dirs(&self) -> &Dirs {
        self.history.dirs()
    }

    /// The longest transaction that is read or written.
    pub fn txn_bytes_max(&self) -> usize {
        self.history.txn_bytes_max()
    }

    fn guard(&self) -> Result<(), LogError> {
        if self.failed || self.history.has_failed() {
            return Err(LogError::Failed { dir: self.dir.clone() });
        }
        Ok(())
    }

    fn promised(&self, last: Option<Zxid>) -> Result<(), LogError> {
        let accepted = self.epochs.accepted_epoch;
        match last {
            Some(zxid) if zxid.epoch() > accepted => Err(LogError::Unpromised { zxid, accepted }),
            _ => Ok(()),
        }
    }

    fn publish_origin(&mut self) -> Result<(), LogError> {
        match self.origin.take() {
            None => Ok(()),
            Some(origin) if self.history.snapshot().is_some() => Ok(origin.discard()?),
            Some(origin) => Ok(self.history.publish(origin)?),
        }
    }

    /// Reads the vote, which must be there if there is anything else.
    fn load_vote(&mut self, data_dir: &Path, id: ServerId) -> Result<(), LogError> {
        self.remove(&epochs::temporary(&self.dir, VOTE))?;
        let mut has_history = !self.history.is_empty();
        for name in [ACCEPTED, CURRENT] {
            has_history |= self.read_epoch(name)?.is_some();
        }
        let ballot = vote::open(&self.files, data_dir, &self.dir, id, has_history)??;
        self.ballot = Some((ballot, id));
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
        self.known = autocreate || initialize || current.is_some() || !self.history.is_empty();
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

    fn write_epoch(&mut self, name: &'static str, from: Epoch, to: Epoch) -> Result<(), LogError> {
        self.guard()?;
        if !to.is_valid() {
            return Err(LogError::NoEpoch { path: self.dir.join(name), found: to.0 });
        }
        if from == to {
            return Ok(());
        }
        // Until it has returned well, nobody knows which of the two a crash would leave.
        self.failed = true;
        epochs::replace(&self.files, &self.dir, name, to)?;
        self.failed = false;
        Ok(())
    }
}

/// Why a data directory cannot be opened or written to.
#[derive(Debug, Error)]
pub enum LogError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The history cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Transactions cannot be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log cannot be cut.
    #[error(transparent)]
    Truncate(#[from] TruncateError),
    /// The history that a leader sent cannot be written or installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A snapshot cannot be published or removed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Nothing can be removed.
    #[error(transparent)]
    Purge(#[from] PurgeError),
    /// The longest lease that this server may have promised is not known.
    #[error(
        "{} should hold the longest lease that this server may have promised, in milliseconds; write the longest \
         quorate.lease that it ever had, or remove the file once every server has been up for as long", path.display()
    )]
    NoLease {
        /// The file.
        path: PathBuf,
    },
    /// The vote of this server is not known, or cannot be changed so.
    #[error(transparent)]
    Vote(#[from] VoteError),
    /// Another server, in this process or in another, has the directory.
    #[error("the data directory {} is in use by {}", dir.display(), holder(*pid))]
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// The process that has it, if it says.
        pid: Option<u32>,
    },
    /// An epoch file does not hold a number.
    #[error(
        "{} should hold a number and holds {found:?}. {safe}",
        path.display(), safe = SAFE
    )]
    Garbage {
        /// The file.
        path: PathBuf,
        /// The beginning of its content.
        found: String,
    },
    /// An epoch is below 0 or does not fit into a zxid, of which it is the upper half.
    #[error("the epoch {found} of {} is not between 0 and {}", path.display(), Epoch::MAX)]
    NoEpoch {
        /// The file.
        path: PathBuf,
        /// The number.
        found: i64,
    },
    /// The directory says that the server entered an epoch to which it never promised itself.
    #[error(
        "{}: currentEpoch is {current}, but acceptedEpoch is only {accepted}; a file is lost or \
         comes from elsewhere. {safe}", dir.display(), safe = SAFE
    )]
    Contradiction {
        /// The directory of both files.
        dir: PathBuf,
        /// What `currentEpoch` holds.
        current: Epoch,
        /// What `acceptedEpoch` holds; the epoch of the last transaction if there is no such file.
        accepted: Epoch,
    },
    /// The log has a transaction of an epoch to which the server never promised itself.
    #[error(
        "{} holds {accepted}, but the last transaction is {last}, of epoch {}; a file is lost or \
         comes from elsewhere. {safe}", path.display(), last.epoch(), safe = SAFE
    )]
    NeverPromised {
        /// The file.
        path: PathBuf,
        /// What it holds.
        accepted: Epoch,
        /// The last transaction of the log, or the newest snapshot's label.
        last: Zxid,
    },
    /// The caller wants to take an epoch back.
    #[error("{name} cannot go back from {from} to {to}")]
    Regress {
        /// The file's name.
        name: &'static str,
        /// What it holds.
        from: Epoch,
        /// What it was to hold.
        to: Epoch,
    },
    /// The caller wants to enter an epoch without the promise.
    #[error("currentEpoch cannot become {current} while acceptedEpoch is {accepted}")]
    NotPromised {
        /// The epoch to be entered.
        current: Epoch,
        /// The highest that was promised.
        accepted: Epoch,
    },
    /// The caller wants to log what belongs to an epoch without the promise.
    #[error("transaction {zxid} cannot be logged while acceptedEpoch is {accepted}")]
    Unpromised {
        /// The transaction.
        zxid: Zxid,
        /// The highest epoch that was promised.
        accepted: Epoch,
    },
    /// The caller wants to append before there is a snapshot.
    #[error("{} has no snapshot from which a log could go on, not even an empty one", dir.display())]
    NoOrigin {
        /// The directory.
        dir: PathBuf,
    },
    /// The caller wants to install what was not sent.
    #[error("{zxid} belongs to no history that was received")]
    NothingStaged {
        /// The label of the history to be installed, or the first transaction to be added to one.
        zxid: Zxid,
    },
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

impl LogError {
    /// Whether the caller wants to log a transaction that is longer than a log may have it: then nothing is
    /// wrong with the disk, and nothing was written.
    pub const fn is_too_long(&self) -> bool {
        matches!(
            self,
            Self::Append(AppendError::TooLong { .. }) | Self::Install(InstallError::TooLong { .. })
        )
    }
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => {
            format!("another server in this process (pid {pid})")
        }
        Some(pid) => format!("another process (pid {pid})"),
        None => "another process".to_owned(),
    }
}

pub(crate) const VERSION_DIR: &str = "version-2";
pub(crate) const LOCK: &str = "quorate.lock";
const INITIALIZE: &str = "initialize";
