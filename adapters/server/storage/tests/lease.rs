//! The longest lease that a server may have promised, in its directory.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use quorate_storage::{Log, LogError, OpenOptions};

fn open(dir: &Path) -> Result<(Log, Duration), LogError> {
    let (log, found) = Log::open(dir, OpenOptions::default())?;
    Ok((log, found.durable.lease))
}

#[test]
fn the_longest_lease_is_found_again_and_grows_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("version-2/longestLease");
    let (mut log, longest) = open(dir.path()).unwrap();
    assert_eq!(longest, Duration::ZERO);
    assert!(!file.exists(), "where no lease is promised, nothing is written");
    log.write_lease(Duration::from_millis(5_000)).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"5000\n");
    log.write_lease(Duration::from_millis(2_000)).unwrap();
    drop(log);
    let (mut log, longest) = open(dir.path()).unwrap();
    assert_eq!(longest, Duration::from_millis(5_000));
    log.write_lease(Duration::from_micros(5_000_001)).unwrap();
    drop(log);
    assert_eq!(open(dir.path()).unwrap().1, Duration::from_millis(5_001), "not a moment too few");
}

#[test]
fn a_server_whose_longest_lease_cannot_be_read_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    for content in ["", "long", "-1"] {
        fs::write(dir.path().join("version-2/longestLease"), content).unwrap();
        let error = open(dir.path()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("should hold the longest lease"), "{content:?}: {error}");
    }
}
