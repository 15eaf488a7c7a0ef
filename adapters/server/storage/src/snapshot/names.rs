//! Which files are snapshots, by their names: the label, and how the file is compressed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use quorate_core::zxid::Zxid;

use crate::error::{FileError, at};
use crate::files::Files;
use crate::names::parse_zxid;

/// A snapshot in a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The last transaction whose effects it has; what a Java server wrote may have later ones, too.
    pub label: Zxid,
    /// Where it is.
    pub path: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
}

impl SnapshotFile {
    /// One of ours.
    pub(crate) fn new(dir: &Path, label: Zxid) -> Self {
        Self { label, path: dir.join(name(label)), compression: Compression::None }
    }

    /// The snapshot in a file, to judge by its name; none if that is no snapshot's.
    pub fn at(path: impl Into<PathBuf>) -> Option<Self> {
        let path = path.into();
        let (label, compression) = parse_name(path.file_name()?)?;
        Some(Self { label, path, compression })
    }
}

/// How a snapshot is compressed, as the end of its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compression {
    /// Not at all.
    None,
    /// `.gz`
    Gzip,
    /// `.snappy`
    Snappy,
}

/// The snapshots in a directory, newest first. Files of other names are passed over, as ZooKeeper does.
///
/// # Errors
///
/// What the system says.
pub fn list<F: Files>(files: &F, dir: &Path) -> Result<Vec<SnapshotFile>, FileError> {
    let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let (label, compression) = parse_name(name)?;
            Some(SnapshotFile { label, path: dir.join(name), compression })
        })
        .collect();
    found.sort_by_key(|file| (std::cmp::Reverse(file.label), file.compression));
    Ok(found)
}

/// The name of the snapshot labelled `label`.
pub(crate) fn name(label: Zxid) -> String {
    format!("{PREFIX}.{:x}", label.0)
}

pub(crate) fn parse_name(name: &OsStr) -> Option<(Zxid, Compression)> {
    let (prefix, rest) = name.to_str()?.split_once('.')?;
    let (zxid, compression) = match rest.split_once('.') {
        None => (rest, Compression::None),
        Some((zxid, "gz")) => (zxid, Compression::Gzip),
        Some((zxid, "snappy")) => (zxid, Compression::Snappy),
        Some(_) => return None,
    };
    if prefix == PREFIX { Some((parse_zxid(zxid)?, compression)) } else { None }
}

const PREFIX: &str = "snapshot";
