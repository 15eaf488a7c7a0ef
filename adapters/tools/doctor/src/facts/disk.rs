//! A data directory: what is in it, and what it lies on.

use std::path::PathBuf;

use quorate_core::id::ServerId;
use quorate_storage::check::Report;

/// A data directory that is on this machine.
#[derive(Debug)]
pub struct DataDir {
    /// Whose it is, if that is known.
    pub id: Option<ServerId>,
    /// The `dataDir`.
    pub dir: PathBuf,
    /// The `dataLogDir`, if it is another.
    pub log_dir: Option<PathBuf>,
    /// What it lies on.
    pub space: Option<Space>,
    /// What the logs lie on, if they are elsewhere.
    pub log_space: Option<Space>,
    /// What is in it, read through; none if there was no time, or no right to.
    pub history: Option<Report>,
    /// Files that do not belong to the owner of the directory.
    pub strays: Vec<Stray>,
    /// A file that everybody on this machine may read.
    pub readable: Option<PathBuf>,
    /// How long this disk takes to make a write safe.
    pub bench: Option<Bench>,
}

/// A file that a server's user may not be able to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The file.
    pub file: PathBuf,
    /// Whose it is.
    pub owner: u32,
    /// Whose the directory is.
    pub expected: u32,
}

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Its device.
    pub device: u64,
    /// What `statfs` calls its type.
    pub kind: u64,
    /// Its size, in bytes.
    pub size: u64,
    /// What is free for a user, in bytes.
    pub free: u64,
    /// How many files it may have; 0 if it does not count them.
    pub files: u64,
    /// How many of these may still be made.
    pub files_free: u64,
}

impl Space {
    /// How much is free, in hundredths.
    pub(crate) fn percent(&self) -> u64 {
        self.free.saturating_mul(100).checked_div(self.size).unwrap_or(100)
    }
}

/// What writes to a disk took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bench {
    /// How many.
    pub writes: u32,
    /// Of a hundred, 50 were faster than this, in milliseconds.
    pub p50: f64,
    /// Of a hundred, 99.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}
