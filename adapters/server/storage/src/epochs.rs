//! The files of the two epochs and of the longest lease: a decimal number each, replaced as a whole.
//!
//! In the Java code: `QuorumPeer.readLongFromFile`, `AtomicFileOutputStream`.

use std::path::{Path, PathBuf};

use quorate_core::zxid::Epoch;

use crate::error::{FileError, at};
use crate::files::Files;

/// The promise.
pub(crate) const ACCEPTED: &str = "acceptedEpoch";
/// The epoch whose leader's history we hold.
pub(crate) const CURRENT: &str = "currentEpoch";
/// The longest lease that was ever to be promised, in milliseconds: a number like the two, and none of ZooKeeper's.
pub(crate) const LEASE: &str = "longestLease";

/// What stands in an epoch file and is no epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoEpoch {
    Garbage(String),
    OutOfRange(i64),
}

/// What an epoch file says; none if there is none. ZooKeeper reads the first line only, and so do we.
pub(crate) fn look<F: Files>(
    files: &F,
    path: &Path,
) -> Result<Option<Result<Epoch, NoEpoch>>, FileError> {
    let bytes = files.read(path, BYTES_MAX).map_err(at("read", path))?;
    Ok(bytes.map(|bytes| parse(&bytes)))
}

/// As [`look`], and makes durable what it returns: it may so far be in the page cache only.
pub(crate) fn read<F: Files>(
    files: &F,
    path: &Path,
) -> Result<Option<Result<Epoch, NoEpoch>>, FileError> {
    let found = look(files, path)?;
    if let Some(Ok(_)) = found {
        let file = files.open(path).map_err(at("open", path))?;
        files.sync(&file).map_err(at("sync", path))?;
    }
    Ok(found)
}

/// Replaces an epoch file, durably. Until this has returned well, a crash may leave either of the
/// two.
pub(crate) fn replace<F: Files>(
    files: &F,
    dir: &Path,
    name: &str,
    epoch: Epoch,
) -> Result<(), FileError> {
    replace_with(files, dir, name, epoch.0.to_string().as_bytes())
}

/// The same, of any small file.
pub(crate) fn replace_with<F: Files>(
    files: &F,
    dir: &Path,
    name: &str,
    content: &[u8],
) -> Result<(), FileError> {
    let (path, temporary) = (dir.join(name), temporary(dir, name));
    let file = files.write(&temporary, content);
    let file = file.map_err(at("write", &temporary))?;
    files.sync(&file).map_err(at("sync", &temporary))?;
    // Not every system renames what is open.
    drop(file);
    files.rename(&temporary, &path).map_err(at("replace", &path))?;
    files.sync_dir(dir).map_err(at("sync", dir))
}

/// Where the next content of an epoch file is written. What was not renamed before a crash was never
/// relied on.
pub(crate) fn temporary(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.tmp"))
}

fn parse(bytes: &[u8]) -> Result<Epoch, NoEpoch> {
    let found = String::from_utf8_lossy(bytes);
    let line = found.lines().next().unwrap_or_default().trim();
    let Ok(number) = line.parse() else { return Err(NoEpoch::Garbage(found.into_owned())) };
    if Epoch(number).is_valid() { Ok(Epoch(number)) } else { Err(NoEpoch::OutOfRange(number)) }
}

/// More than any epoch takes; enough to show what else stands there.
const BYTES_MAX: u64 = 64;
