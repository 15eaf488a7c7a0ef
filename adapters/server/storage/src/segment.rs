//! One transaction log file: its name, its first transaction, and places in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use quorate_core::zxid::Zxid;

use crate::error::{FileError, at};
use crate::files::Files;
use crate::names::{STAGED, parse_zxid};

/// A log file, as far as it was read or written by us.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Its first transaction, which gives it its name.
    pub(crate) start: Zxid,
    pub(crate) path: PathBuf,
    /// Places of some of its records, ascending, so that finding one does not mean reading all.
    pub(crate) marks: Vec<Mark>,
    /// Where its last record ends, if that is known.
    pub(crate) end: Option<u64>,
}

/// Where a record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) zxid: Zxid,
    pub(crate) offset: u64,
}

impl Segment {
    pub(crate) fn new(dir: &Path, start: Zxid) -> Self {
        Self { start, path: dir.join(name(start)), marks: Vec::new(), end: None }
    }

    /// The log file at a path, which may not have its name yet; none if it will be none.
    pub(crate) fn staged(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let start = start_of(OsStr::new(name.strip_prefix(STAGED).unwrap_or(name)))?;
        Some(Self { start, path: path.to_owned(), marks: Vec::new(), end: None })
    }

    /// Notes a place, if it is far enough from the last one.
    pub(crate) fn mark(&mut self, zxid: Zxid, offset: u64) {
        let last = self.marks.last().map_or(0, |mark| mark.offset);
        if offset >= last + MARK_BYTES {
            self.marks.push(Mark { zxid, offset });
        }
    }

    /// A place from which on one gets to `zxid`: the beginning, or a record not behind it.
    pub(crate) fn place_before(&self, zxid: Zxid) -> u64 {
        let behind = self.marks.partition_point(|mark| mark.zxid <= zxid);
        behind.checked_sub(1).map_or(0, |last| self.marks[last].offset)
    }
}

/// The name of the file that begins with `start`.
pub(crate) fn name(start: Zxid) -> String {
    format!("{PREFIX}.{:x}", start.0)
}

/// The zxid in `log.<zxid>`; none for other files.
pub(crate) fn start_of(name: &OsStr) -> Option<Zxid> {
    let (prefix, zxid) = name.to_str()?.split_once('.')?;
    if prefix == PREFIX { parse_zxid(zxid) } else { None }
}

pub(crate) fn list_segments<F: Files>(files: &F, dir: &Path) -> Result<Vec<Segment>, FileError> {
    let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
    let mut starts: Vec<_> = names.iter().filter_map(|name| start_of(name)).collect();
    starts.sort_unstable();
    // The same number may be written with zeros in front; only one of them is what we would open.
    starts.dedup();
    Ok(starts.into_iter().map(|start| Segment::new(dir, start)).collect())
}

const PREFIX: &str = "log";

/// How far apart the places are that are remembered.
const MARK_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_zookeeper() {
        assert_eq!(name(Zxid(0x1_0000_0001)), "log.100000001");
        for (name, start) in [
            ("log.100000001", Some(Zxid(0x1_0000_0001))),
            ("log.0", Some(Zxid(0))),
            ("log.1.2", None),
            ("log.+1", None),
            ("log.-1", None),
            ("log.0x1", None),
            ("log.ffffffffffffffff", None),
            ("log", None),
            ("logs.1", None),
            ("staged.log.1", None),
        ] {
            assert_eq!(start_of(OsStr::new(name)), start, "{name}");
        }
    }
}
