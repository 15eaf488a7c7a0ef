//! A server's data directory, by its place and limits.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_storage::record::TXN_BYTES_MAX;
use quorate_storage::segments::Dirs;

/// A data directory.
#[derive(Clone, Debug)]
pub struct Source {
    /// The `dataDir`.
    pub data_dir: PathBuf,
    /// The `dataLogDir`, if the server has one.
    pub data_log_dir: Option<PathBuf>,
    /// How long a transaction may be, in bytes: `jute.maxbuffer` and its extra size.
    pub txn_bytes_max: usize,
}

impl Source {
    /// One with its logs in it, and ZooKeeper's limit.
    pub fn of(data_dir: impl Into<PathBuf>) -> Self {
        let data_dir = data_dir.into();
        Self { data_dir, data_log_dir: None, txn_bytes_max: TXN_BYTES_MAX }
    }

    pub(crate) fn dirs(&self) -> Dirs {
        Dirs::of(&self.data_dir, self.data_log_dir.as_deref())
    }

    /// The id in `myid`, if there is one.
    pub(crate) fn id(&self) -> Option<i64> {
        number_in(&self.data_dir.join("myid"))
    }

    /// What one of the epoch files holds, if it is there.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        number_in(&self.dirs().snapshots.join(name))
    }
}

/// ZooKeeper reads the first line only.
fn number_in(path: &Path) -> Option<i64> {
    fs::read_to_string(path).ok()?.lines().next()?.trim().parse().ok()
}
