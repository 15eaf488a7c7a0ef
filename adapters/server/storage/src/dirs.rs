//! The two directories of a server: of its snapshots and of its log.

use std::path::{Path, PathBuf};

use crate::error::{FileError, at};
use crate::files::Files;
use crate::names::VERSION_DIR;

/// The two directories of a history, which may be the same: `version-2` in `dataDir` and in
/// `dataLogDir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// Where the snapshots are.
    pub snapshots: PathBuf,
    /// Where the log is.
    pub logs: PathBuf,
}

impl Dirs {
    /// Those of a server with this `dataDir`, and this `dataLogDir` if it has one.
    pub fn of(data_dir: &Path, data_log_dir: Option<&Path>) -> Self {
        let snapshots = data_dir.join(VERSION_DIR);
        let logs = data_log_dir.map_or_else(|| snapshots.clone(), |dir| dir.join(VERSION_DIR));
        Self { snapshots, logs }
    }

    /// Both in one.
    pub fn one(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self { snapshots: dir.clone(), logs: dir }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &Path> {
        let second = (self.snapshots != self.logs).then_some(self.snapshots.as_path());
        [self.logs.as_path()].into_iter().chain(second)
    }

    pub(crate) fn sync<F: Files>(&self, files: &F) -> Result<(), FileError> {
        self.each().try_for_each(|dir| files.sync_dir(dir).map_err(at("sync", dir)))
    }
}
