//! Opening a directory again after a write to it has failed, in the process that has written.
//!
//! ```text
//!   a write fails ─► remains ─► the log file goes back to what was synced ─► open ─► no less than that? ─► try it out
//! ```
//!
//! What follows the last good sync of a file is not believed, though it can be read: the system may have dropped what it
//! could not write, keep it in memory all the same, and say at the next sync that all is well (PostgreSQL's "fsyncgate",
//! 2018). A new process would read the same memory, so this holds for the life of the machine's cache, not of a process;
//! only the one that was told of the error can do something about it.

use std::io;
use std::path::{Path, PathBuf};

use quorate_core::durable::Epochs;
use quorate_core::zxid::Zxid;

use super::Log;
use super::error::LogError;
use crate::dirs::Dirs;
use crate::error::{FileError, at};
use crate::files::Files;
use crate::names::PROBE;
use crate::sync_mark::believed;

/// What a directory is to be found with that is opened again after a write to it has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    /// The epochs that were durable.
    pub epochs: Epochs,
    /// The last transaction that surely was; before what was to be cut or replaced, if the failure was in that.
    pub last: Zxid,
    /// The log file that was being written, and through which byte it was synced.
    pub tail: Option<(PathBuf, u64)>,
}

impl Remains {
    /// Errs if a directory is gone: what is made in its place would be the directory of a server that never promised
    /// anything.
    pub(super) fn refuse_gone<F: Files>(files: &F, dirs: &Dirs) -> Result<(), FileError> {
        dirs.each().try_for_each(|dir| match files.names(dir) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(at("find", dir)(io::ErrorKind::NotFound.into())),
            Err(error) => Err(at("read", dir)(error)),
        })
    }

    /// Takes from the log file what was not synced when the write failed.
    pub(super) fn cut_back<F: Files>(&self, files: &F, dirs: &Dirs) -> Result<(), FileError> {
        let Some((path, synced)) = &self.tail else { return Ok(()) };
        // That it is gone is seen by what is missing.
        let Some(size) = files.size(path).map_err(at("read", path))? else { return Ok(()) };
        let believed = believed(*synced, size);
        if size == believed {
            return Ok(());
        }
        if believed == 0 {
            files.remove(path).map_err(at("remove", path))?;
            return files.sync_dir(&dirs.logs).map_err(at("sync", &dirs.logs));
        }
        let file = files.open(path).map_err(at("open", path))?;
        files.cut(&file, believed).map_err(at("cut", path))?;
        files.sync(&file).map_err(at("sync", path))
    }

    /// Errs if less was found.
    pub(super) fn compare(&self, dir: &Path, epochs: Epochs, last: Zxid) -> Result<(), LogError> {
        let kept = epochs.accepted_epoch >= self.epochs.accepted_epoch
            && epochs.current_epoch >= self.epochs.current_epoch
            && last >= self.last;
        let dir = dir.to_owned();
        if kept { Ok(()) } else { Err(LogError::Lost { dir, was: self.last, found: last }) }
    }
}

impl<F: Files + Clone> Log<F> {
    /// What has to be found here again, after a write that has failed.
    pub fn remains(&self) -> Remains {
        let last = self.segments.durable();
        Remains {
            epochs: self.epochs,
            last: self.least.map_or(last, |least| last.min(least)),
            tail: self.segments.synced_tail(),
        }
    }

    /// Writes a file of `bytes`, syncs it, reads it back and removes it, in each directory: whether there is room for a
    /// log to go on, and whether what is written is there.
    ///
    /// # Errors
    ///
    /// A [`LogError`] if not. Nothing is left of the file then, if it can be removed.
    pub fn try_out(&self, bytes: u64) -> Result<(), LogError> {
        self.guard()?;
        for dir in self.segments.dirs().each() {
            let path = dir.join(PROBE);
            let tried = self.try_file(&path, bytes);
            let removed = self.files.remove(&path).map_err(at("remove", &path));
            tried?;
            removed?;
            // A change of the directory that comes after the one that may have failed, and is as durable as that.
            self.files.sync_dir(dir).map_err(at("sync", dir))?;
        }
        Ok(())
    }

    fn try_file(&self, path: &Path, bytes: u64) -> Result<(), FileError> {
        let files = &self.files;
        let file = files.write(path, &[]).map_err(at("create", path))?;
        files.reserve(&file, bytes).map_err(at("make room in", path))?;
        files.write_at(&file, 0, PATTERN).map_err(at("write to", path))?;
        files.sync(&file).map_err(at("sync", path))?;
        let found = files.read(path, PATTERN.len() as u64).map_err(at("read", path))?;
        if found.is_some_and(|found| found.starts_with(PATTERN)) {
            return Ok(());
        }
        Err(at("read back", path)(io::ErrorKind::InvalidData.into()))
    }
}

/// What is written there.
const PATTERN: &[u8; 32] = b"quorate tries out whether it can";
