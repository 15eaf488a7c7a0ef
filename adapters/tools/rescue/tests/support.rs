//! Data directories as a server of ZooKeeper 3.8 has written them.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_rescue::source::Source;
use tempfile::TempDir;

/// A file that such a server has written.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/storage/tests/golden").join(name)
}

pub(crate) const LOG: &str = "log.100000001";
pub(crate) const SNAPSHOTS: [&str; 3] = ["snapshot.0", "snapshot.10000000c", "snapshot.100000018"];

/// The data directory of server 1: 26 transactions, the last 0x200000002.
pub(crate) fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("version-2");
    fs::create_dir(&inner).unwrap();
    for name in SNAPSHOTS.into_iter().chain([LOG]) {
        fs::copy(golden(name), inner.join(name)).unwrap();
    }
    for epoch in ["acceptedEpoch", "currentEpoch"] {
        fs::write(inner.join(epoch), "2").unwrap();
    }
    fs::write(dir.path().join("myid"), "1\n").unwrap();
    dir
}

pub(crate) fn source(dir: &TempDir) -> Source {
    Source::of(dir.path())
}

/// Every file below a directory, with its bytes.
pub(crate) fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(inner) = dirs.pop() {
        for entry in fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.push((path.strip_prefix(dir).unwrap().to_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}
