//! One data directory, opened by one server.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use quorate_core::durable::Durable;
use quorate_core::zxid::{Epoch, Zxid};
use thiserror::Error;

use crate::files::{Disk, Files, Holder, Lock};

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
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { data_log_dir: None, autocreate: true }
    }
}

/// The data directory of one server, locked for as long as this exists.
///
/// Epochs only go up, and the current epoch never passes the accepted one; a caller that asks for
/// anything else gets an error and the files stay as they are. After an error of the disk nobody
/// knows what a crash would leave, so from then on every write is refused: the server must stop and
/// start again.
#[derive(Debug)]
pub struct Log<F: Files = Disk> {
    files: F,
    /// `version-2`.
    dir: PathBuf,
    /// What a crash would leave; changed only after the files.
    durable: Durable,
    /// A write failed, see the type.
    failed: bool,
    _lock: F::Lock,
}

impl Log {
    /// Opens the directory `data_dir`, which is created if need be, and tells what it holds. All of
    /// that is durable when this returns.
    ///
    /// # Errors
    ///
    /// A [`LogError`]: another process has the directory, it cannot be written to, its files
    /// contradict each other, or it holds a history that this version cannot continue.
    pub fn open(
        data_dir: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<(Self, Durable), LogError> {
        Self::open_on(Disk, data_dir, options)
    }
}

impl<F: Files> Log<F> {
    /// As [`Log::open`], on other files than the operating system's.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn open_on(
        files: F,
        data_dir: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<(Self, Durable), LogError> {
        let data_dir = data_dir.as_ref();
        let dir = data_dir.join(VERSION_DIR);
        files.create_dir(&dir).map_err(at("create the directory", &dir))?;
        // It may have been created by a process that died before it could sync this.
        files.sync_dir(data_dir).map_err(at("sync", data_dir))?;
        let lock_path = dir.join(LOCK);
        let lock = match files.lock(&lock_path).map_err(at("lock", &lock_path))? {
            Lock::Ours(lock) => lock,
            Lock::Taken(Holder { pid }) => {
                return Err(LogError::Locked { dir: data_dir.to_owned(), pid });
            }
        };
        let log_dir = options.data_log_dir.as_deref().unwrap_or(data_dir);
        refuse_history(&files, &dir)?;
        if log_dir != data_dir {
            refuse_history(&files, &log_dir.join(VERSION_DIR))?;
        }
        let durable = Durable::default();
        let mut log = Self { files, dir, durable, failed: false, _lock: lock };
        log.load(log_dir, options.autocreate)?;
        let durable = log.durable.clone();
        Ok((log, durable))
    }

    /// Promises to follow no leader of an epoch before `epoch`, durably. Nothing is written if that
    /// was promised already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if `epoch` is before the one promised, is no epoch, or cannot be written.
    pub fn write_accepted_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        let from = self.durable.accepted_epoch;
        if epoch < from {
            return Err(LogError::Regress { name: ACCEPTED, from, to: epoch });
        }
        self.write_epoch(ACCEPTED, from, epoch)?;
        self.durable.accepted_epoch = epoch;
        Ok(())
    }

    /// Records that the history of the leader of `epoch` was taken over, durably. Nothing is written
    /// if that was recorded already.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if `epoch` is before the present one, was not promised, or cannot be written.
    pub fn write_current_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        let from = self.durable.current_epoch;
        if epoch < from {
            return Err(LogError::Regress { name: CURRENT, from, to: epoch });
        }
        if epoch > self.durable.accepted_epoch {
            let accepted = self.durable.accepted_epoch;
            return Err(LogError::NotPromised { current: epoch, accepted });
        }
        self.write_epoch(CURRENT, from, epoch)?;
        self.durable.current_epoch = epoch;
        Ok(())
    }

    /// What a crash would leave.
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Where the files are: `version-2` in the data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads both epochs and makes sure of them. Missing files are created with epoch 0, as ZooKeeper
    /// does for a history that ends there.
    fn load(&mut self, log_dir: &Path, autocreate: bool) -> Result<(), LogError> {
        for name in [ACCEPTED, CURRENT] {
            // What was not renamed before a crash was never relied on.
            self.remove(&self.dir.join(format!("{name}.tmp")))?;
        }
        let accepted = self.read_epoch(ACCEPTED)?;
        let current = self.read_epoch(CURRENT)?;
        let (a, c) = (accepted.unwrap_or(Epoch::ZERO), current.unwrap_or(Epoch::ZERO));
        if c > a {
            let dir = self.dir.clone();
            return Err(LogError::Contradiction { dir, current: c, accepted: a });
        }
        self.files.sync_dir(&self.dir).map_err(at("sync", &self.dir))?;
        (self.durable.accepted_epoch, self.durable.current_epoch) = (a, c);

        let marker = log_dir.join(INITIALIZE);
        let path = self.dir.join(EMPTY_SNAPSHOT);
        let empty_snapshot = self.files.read(&path, 1).map_err(at("read", &path))?.is_some();
        let initialize = self.files.read(&marker, 1).map_err(at("read", &marker))?.is_some();
        if !(autocreate || initialize || empty_snapshot || current.is_some()) {
            self.durable.last_zxid = Zxid::UNKNOWN;
            return Ok(());
        }
        for (name, found, epoch) in [(ACCEPTED, accepted, a), (CURRENT, current, c)] {
            if found.is_none() {
                self.replace(name, epoch)?;
            }
        }
        if initialize {
            self.remove(&marker)?;
            self.files.sync_dir(log_dir).map_err(at("sync", log_dir))?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), LogError> {
        match self.files.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", path)(error)),
            _ => Ok(()),
        }
    }

    /// An epoch file's number, made durable before it is believed; none if there is no file. ZooKeeper
    /// reads the first line only, and so do we.
    fn read_epoch(&self, name: &str) -> Result<Option<Epoch>, LogError> {
        let path = self.dir.join(name);
        let bytes = self.files.read(&path, EPOCH_BYTES_MAX).map_err(at("read", &path))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let found = String::from_utf8_lossy(&bytes);
        let line = found.lines().next().unwrap_or_default().trim();
        let Ok(number) = line.parse() else {
            return Err(LogError::Garbage { path, found: found.into_owned() });
        };
        if !Epoch(number).is_valid() {
            return Err(LogError::NoEpoch { path, found: number });
        }
        let file = self.files.open(&path).map_err(at("open", &path))?;
        self.files.sync(&file).map_err(at("sync", &path))?;
        Ok(Some(Epoch(number)))
    }

    fn write_epoch(&mut self, name: &'static str, from: Epoch, to: Epoch) -> Result<(), LogError> {
        if self.failed {
            return Err(LogError::Failed { dir: self.dir.clone() });
        }
        if !to.is_valid() {
            return Err(LogError::NoEpoch { path: self.dir.join(name), found: to.0 });
        }
        if from == to { Ok(()) } else { self.replace(name, to) }
    }

    /// The four steps.
    fn replace(&mut self, name: &str, epoch: Epoch) -> Result<(), LogError> {
        let (path, temporary) = (self.dir.join(name), self.dir.join(format!("{name}.tmp")));
        // Until the last step has been done, nobody knows which of the two a crash would leave.
        self.failed = true;
        let file = self.files.write(&temporary, epoch.0.to_string().as_bytes());
        let file = file.map_err(at("write", &temporary))?;
        self.files.sync(&file).map_err(at("sync", &temporary))?;
        // Not every system renames what is open.
        drop(file);
        self.files.rename(&temporary, &path).map_err(at("replace", &path))?;
        self.files.sync_dir(&self.dir).map_err(at("sync", &self.dir))?;
        self.failed = false;
        Ok(())
    }
}

/// Why a data directory cannot be opened or written to.
#[derive(Debug, Error)]
pub enum LogError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was to be done, for instance "sync".
        action: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
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
        "{} should hold a number and holds {found:?}; if its content is lost, move the data \
         directory away and let the server get its history from the others",
        path.display()
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
         comes from elsewhere. Move the data directory away and let the server get its history \
         from the others", dir.display()
    )]
    Contradiction {
        /// The directory of both files.
        dir: PathBuf,
        /// What `currentEpoch` holds.
        current: Epoch,
        /// What `acceptedEpoch` holds; 0 if there is no such file.
        accepted: Epoch,
    },
    /// There is a history that would be ignored.
    #[error(
        "{} contains a transaction log or a snapshot of one, which this version cannot continue yet",
        path.display()
    )]
    HasHistory {
        /// The file.
        path: PathBuf,
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
    /// An earlier write failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
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

fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    let path = path.to_owned();
    move |source| LogError::Io { action, path, source }
}

/// Errs if there is a transaction log, or a snapshot of anything but the empty history.
fn refuse_history<F: Files>(files: &F, dir: &Path) -> Result<(), LogError> {
    let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
    match names.iter().filter(|name| is_history(name)).min() {
        Some(name) => Err(LogError::HasHistory { path: dir.join(name) }),
        None => Ok(()),
    }
}

/// `log.<zxid>`, `snapshot.<zxid>`, `snapshot.<zxid>.<compression>`; ZooKeeper passes over other files.
fn is_history(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let mut parts = name.split('.');
    let (kind, zxid) = (parts.next(), parts.next());
    let zxid = zxid.and_then(|zxid| i64::from_str_radix(zxid, 16).ok());
    match (kind, zxid) {
        (Some("log"), Some(_)) => true,
        (Some("snapshot"), Some(zxid)) => zxid != 0,
        _ => false,
    }
}

pub(crate) const VERSION_DIR: &str = "version-2";
pub(crate) const LOCK: &str = "quorate.lock";
const ACCEPTED: &str = "acceptedEpoch";
const CURRENT: &str = "currentEpoch";
const INITIALIZE: &str = "initialize";
const EMPTY_SNAPSHOT: &str = "snapshot.0";
/// More than any epoch takes; enough to show what else stands there.
const EPOCH_BYTES_MAX: u64 = 64;
