//! Snapshots that say which digest their tree has, as those of ZooKeeper have done since 3.6.

use std::fs;

use quorate_core::zxid::Zxid;
use quorate_rescue::history::{self, History, HistoryError};
use quorate_storage::Disk;
use quorate_storage::segments::Dirs;

use crate::support::{LOG, SNAPSHOTS, directory};

/// The newest snapshot of that server.
const LABEL: Zxid = Zxid(0x1_0000_0018);
/// The digest at its end: of which transaction, of which kind, and what it is. Behind it stands a seal.
const DIGEST: usize = 8 + 4 + 8;
const SEAL: usize = 8 + 5;

/// The checksum in a seal, of all that stands before it (RFC 1950, 8.2).
fn adler32(bytes: &[u8]) -> u64 {
    let add =
        |(a, b), byte: &u8| ((a + u64::from(*byte)) % 65_521, (a + b + u64::from(*byte)) % 65_521);
    let (a, b) = bytes.iter().fold((1, 0), add);
    b << 16 | a
}

/// What is in that directory without its log, after something was done to the digest in its newest snapshot.
fn load(change: impl FnOnce(&mut [u8])) -> Result<History, HistoryError> {
    let dir = directory();
    let inner = dir.path().join("version-2");
    fs::remove_file(inner.join(LOG)).unwrap();
    let mut bytes = fs::read(inner.join(SNAPSHOTS[2])).unwrap();
    let seal = bytes.len() - SEAL;
    change(&mut bytes[seal - DIGEST..seal]);
    let sum = adler32(&bytes[..seal]);
    bytes[seal..seal + 8].copy_from_slice(&sum.to_be_bytes());
    fs::write(inner.join(SNAPSHOTS[2]), bytes).unwrap();
    history::load(&Disk, &Dirs::of(dir.path(), None), 1 << 20)
}

#[test]
fn a_tree_that_is_not_what_its_snapshot_says_is_refused_where_that_can_be_told() {
    let tree = load(|_| ()).unwrap().state;
    assert_eq!(tree.zxid, LABEL);
    let said = |zxid: Zxid, version: i32, digest: u64| {
        load(|bytes| {
            bytes[..8].copy_from_slice(&zxid.0.to_be_bytes());
            bytes[8..12].copy_from_slice(&version.to_be_bytes());
            bytes[12..].copy_from_slice(&digest.to_be_bytes());
        })
    };
    assert_eq!(said(LABEL, 2, tree.digest).unwrap().state, tree);
    let error = said(LABEL, 2, tree.digest ^ 1).unwrap_err();
    assert!(matches!(error, HistoryError::Digest { zxid: LABEL, .. }), "{error}");
    // Of another kind, of no transaction, and of one before the tree's.
    for (zxid, version) in [(LABEL, 3), (Zxid::ZERO, 2), (Zxid(LABEL.0 - 1), 2)] {
        assert_eq!(said(zxid, version, tree.digest ^ 1).unwrap().state, tree, "{zxid}, {version}");
    }
}
