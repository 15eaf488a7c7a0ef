//! Data directories on a real disk.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use quorate_core::durable::{Durable, Epochs};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::{Found, Log, LogError, OpenOptions};
use tempfile::TempDir;

fn directory(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("version-2")).unwrap();
    for (name, content) in files {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

fn open(dir: &Path) -> Result<(Log, Found), LogError> {
    Log::open(dir, OpenOptions::default())
}

fn refused(files: &[(&str, &str)]) -> String {
    let dir = directory(files);
    let error = open(dir.path()).unwrap_err().to_string();
    error.replace(&dir.path().display().to_string(), "DIR")
}

fn epochs(accepted: i64, current: i64) -> Epochs {
    Epochs { accepted_epoch: Epoch(accepted), current_epoch: Epoch(current) }
}

fn durable(accepted: i64, current: i64) -> Found {
    let Epochs { accepted_epoch, current_epoch } = epochs(accepted, current);
    Found {
        durable: Durable { accepted_epoch, current_epoch, ..Durable::default() },
        installed: None,
        snapshot: None,
    }
}

#[test]
fn a_new_directory_is_created_and_remembers() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("not/yet");
    let (mut log, found) = open(&path).unwrap();
    assert_eq!(found, durable(0, 0));
    log.write_accepted_epoch(Epoch(3)).unwrap();
    log.write_current_epoch(Epoch(2)).unwrap();
    assert_eq!(log.epochs(), epochs(3, 2));
    drop(log);
    assert_eq!(open(&path).unwrap().1, durable(3, 2));
}

/// ZooKeeper 3.8.0 wrote `acceptedEpoch` of epoch 3 as the one byte `3`.
#[test]
fn epoch_files_are_byte_for_byte_those_of_zookeeper() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    log.write_accepted_epoch(Epoch(3)).unwrap();
    log.write_current_epoch(Epoch(3)).unwrap();
    for name in ["acceptedEpoch", "currentEpoch"] {
        assert_eq!(fs::read(log.dirs().snapshots.join(name)).unwrap(), b"3");
    }
}

#[test]
fn editors_may_leave_a_newline() {
    let files = [("version-2/acceptedEpoch", "7\n"), ("version-2/currentEpoch", " 5 \r\nsecond")];
    assert_eq!(open(directory(&files).path()).unwrap().1, durable(7, 5));
}

#[test]
fn a_directory_has_one_server() {
    let dir = TempDir::new().unwrap();
    let first = open(dir.path()).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the data directory {} is in use by another server in this process (pid {})",
            dir.path().display(),
            std::process::id()
        )
    );
    drop(first);
    open(dir.path()).unwrap();
}

#[test]
fn what_is_no_directory_is_refused() {
    let dir = directory(&[("file", "")]);
    let error = open(&dir.path().join("file")).unwrap_err().to_string();
    assert!(error.starts_with("cannot create the directory"), "{error}");
    assert!(error.contains("file/version-2: "), "{error}");
}

#[test]
fn contents_that_cannot_be_are_refused_by_name() {
    for (content, expected) in [
        ("", "DIR/version-2/acceptedEpoch should hold a number and holds \"\". "),
        ("five", "DIR/version-2/acceptedEpoch should hold a number and holds \"five\". "),
        ("1 2", "DIR/version-2/acceptedEpoch should hold a number and holds \"1 2\". "),
        ("\0\0", "DIR/version-2/acceptedEpoch should hold a number and holds \"\\0\\0\". "),
        ("-1", "the epoch -1 of DIR/version-2/acceptedEpoch is not between 0 and 2147483647"),
        ("2147483648", "the epoch 2147483648 of DIR/version-2/acceptedEpoch is not between"),
        ("4294967295", "the epoch 4294967295 of DIR/version-2/acceptedEpoch is not between"),
        ("9223372036854775808", "DIR/version-2/acceptedEpoch should hold a number and holds"),
    ] {
        let message = refused(&[("version-2/acceptedEpoch", content)]);
        assert!(message.starts_with(expected), "{message}");
    }
    let files = [("version-2/acceptedEpoch", "2147483647")];
    assert_eq!(open(directory(&files).path()).unwrap().1, durable(2_147_483_647, 0));
}

#[test]
fn a_current_epoch_that_was_never_promised_is_refused() {
    let message = refused(&[("version-2/acceptedEpoch", "4"), ("version-2/currentEpoch", "5")]);
    assert!(
        message.starts_with("DIR/version-2: currentEpoch is 5, but acceptedEpoch is only 4"),
        "{message}"
    );
    assert!(refused(&[("version-2/currentEpoch", "1")]).contains("acceptedEpoch is only 0"));
}

#[test]
fn without_autocreate_an_empty_directory_needs_its_marker_once() {
    let strict = || OpenOptions { autocreate: false, ..OpenOptions::default() };
    let dir = directory(&[]);
    for _ in 0..2 {
        let (log, found) = Log::open(dir.path(), strict()).unwrap();
        assert_eq!(found.durable.last_zxid, Zxid::UNKNOWN);
        assert_eq!(log.epochs(), epochs(0, 0));
    }
    let marker = dir.path().join("initialize");
    fs::write(&marker, "").unwrap();
    assert_eq!(Log::open(dir.path(), strict()).unwrap().1, durable(0, 0));
    assert!(!marker.exists());
    assert_eq!(Log::open(dir.path(), strict()).unwrap().1, durable(0, 0));
}

#[test]
fn epochs_never_go_back_and_none_is_entered_without_its_promise() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    log.write_accepted_epoch(Epoch(5)).unwrap();
    log.write_current_epoch(Epoch(5)).unwrap();
    let refused = [
        (log.write_accepted_epoch(Epoch(4)), "acceptedEpoch cannot go back from 5 to 4"),
        (log.write_current_epoch(Epoch(4)), "currentEpoch cannot go back from 5 to 4"),
        (
            log.write_current_epoch(Epoch(6)),
            "currentEpoch cannot become 6 while acceptedEpoch is 5",
        ),
    ];
    for (result, expected) in refused {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
    assert!(matches!(
        log.write_accepted_epoch(Epoch(1 << 31)),
        Err(LogError::NoEpoch { found: 2_147_483_648, .. })
    ));
    log.write_accepted_epoch(Epoch(5)).unwrap();
    assert_eq!(log.epochs(), epochs(5, 5));
}

#[test]
fn leftover_temporary_files_mean_nothing() {
    let dir = directory(&[
        ("version-2/acceptedEpoch", "2"),
        ("version-2/currentEpoch", "2"),
        ("version-2/currentEpoch.tmp", "3"),
    ]);
    let (log, found) = open(dir.path()).unwrap();
    assert_eq!(found, durable(2, 2));
    assert!(!log.dirs().snapshots.join("currentEpoch.tmp").exists());
}
