//! Whole data directories, opened: epochs and history together, those of Java servers too.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use bytes::Bytes;
use quorate_core::durable::{Durable, Epochs};
use quorate_core::input::Place;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::check::check;
use quorate_storage::install::{Install, Memberships};
use quorate_storage::segments::{Locating, OpenError, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotReader, SnapshotWriter, StagedSnapshot};
use quorate_storage::{Disk, Found, Log, LogError, OpenOptions};
use tempfile::TempDir;

const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;
const E3: i64 = 3 << 32;

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(b"some bytes") }
}

fn txns(zxids: impl IntoIterator<Item = i64>) -> Vec<Txn> {
    zxids.into_iter().map(txn).collect()
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap()
}

/// The directory of a Java server whose last transaction is 0x200000002, with these epoch files.
fn java(accepted: Option<&str>, current: Option<&str>) -> TempDir {
    let dir = TempDir::new().unwrap();
    let version = dir.path().join("version-2");
    fs::create_dir(&version).unwrap();
    for name in ["snapshot.0", "snapshot.10000000c", "snapshot.100000018", "log.100000001"] {
        fs::write(version.join(name), golden(name)).unwrap();
    }
    for (name, content) in [("acceptedEpoch", accepted), ("currentEpoch", current)] {
        if let Some(content) = content {
            fs::write(version.join(name), content).unwrap();
        }
    }
    dir
}

fn open(dir: &Path) -> Result<(Log, Found), LogError> {
    Log::open(dir, OpenOptions::default())
}

fn take(log: &Log, label: i64, state: &[u8]) -> StagedSnapshot<Disk> {
    let mut writer = SnapshotWriter::take(Disk, &log.dirs().snapshots, Zxid(label)).unwrap();
    writer.write_all(state).unwrap();
    writer.finish(Parts::default()).unwrap()
}

fn receive(log: &Log, label: i64, state: &[u8]) -> Install<Disk> {
    let mut writer = SnapshotWriter::receive(Disk, &log.dirs().snapshots, Zxid(label)).unwrap();
    writer.write_all(state).unwrap();
    let staged = writer.finish(Parts::default()).unwrap();
    Install::new(staged, log.dirs(), log.txn_bytes_max())
}

/// A new directory with a first state, in which an epoch has begun.
fn begun(dir: &Path) -> Log {
    let (mut log, found) = open(dir).unwrap();
    assert_eq!(found, Found { durable: Durable::default(), snapshot: None, installed: None });
    log.begin_with(take(&log, 0, b"first")).unwrap();
    log.write_accepted_epoch(Epoch(1)).unwrap();
    log.write_current_epoch(Epoch(1)).unwrap();
    log
}

fn append(log: &mut Log, zxids: impl IntoIterator<Item = i64>) {
    log.append(&txns(zxids)).unwrap();
    log.sync().unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("version-2")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "quorate.lock").collect();
    names.sort();
    names
}

fn zxids(log: &mut Log, after: i64) -> Vec<i64> {
    let through = log.durable();
    let mut reader = log.read(Zxid(after), through).unwrap();
    let mut found = Vec::new();
    while let Some(chunk) = reader.next_chunk(1 << 16).unwrap() {
        found.extend(chunk.txns().map(|txn| txn.zxid.0));
    }
    found
}

#[test]
fn a_directory_of_a_java_server_is_gone_on_with() {
    let dir = java(Some("3"), Some("2"));
    let (mut log, found) = open(dir.path()).unwrap();
    let Durable { accepted_epoch, current_epoch, last_zxid, floor, snapshot, window, .. } =
        found.durable;
    assert_eq!((accepted_epoch, current_epoch), (Epoch(3), Epoch(2)));
    assert_eq!((last_zxid, floor, snapshot.0), (Zxid(E2 + 2), Zxid(E1 + 1), E1 + 0x18));
    assert_eq!(window.back().unwrap().zxid, last_zxid);
    assert_eq!(window.front().unwrap().zxid, Zxid(E1 + 1));
    assert_eq!(found.snapshot.unwrap().label, snapshot);
    append(&mut log, [E3 + 1, E3 + 2]);
    drop(log);
    let (mut log, found) = open(dir.path()).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E3 + 2));
    let behind = zxids(&mut log, E1 + 0x18).len();
    assert_eq!(usize::try_from(log.found_behind()), Ok(behind));
    assert_eq!(zxids(&mut log, E2 + 1), [E2 + 2, E3 + 1, E3 + 2]);
    assert!(check(dir.path(), None).unwrap().is_sound());
}

/// A history without epoch files is from before there were any: it is that of its last epoch.
#[test]
fn missing_epoch_files_are_those_of_the_last_transaction() {
    for (accepted, current, expected) in [
        (None, None, (2, 2)),
        (Some("5"), None, (5, 2)),
        (None, Some("1"), (2, 1)),
        (None, Some("2"), (2, 2)),
    ] {
        let dir = java(accepted, current);
        let (_, found) = open(dir.path()).unwrap();
        let found = (found.durable.accepted_epoch.0, found.durable.current_epoch.0);
        assert_eq!(found, expected, "{accepted:?} {current:?}");
        for (name, expected) in [("acceptedEpoch", expected.0), ("currentEpoch", expected.1)] {
            let text = fs::read_to_string(dir.path().join("version-2").join(name)).unwrap();
            assert_eq!(text, expected.to_string(), "{name}");
        }
    }
}

/// The core puts it right, by a write.
#[test]
fn an_interrupted_synchronisation_is_returned_as_it_is() {
    for (accepted, current) in [(2, 1), (2, 0), (7, 1)] {
        let dir = java(Some(&accepted.to_string()), Some(&current.to_string()));
        let (_, found) = open(dir.path()).unwrap();
        let found = found.durable;
        assert_eq!((found.accepted_epoch.0, found.current_epoch.0), (accepted, current));
        assert_eq!(found.last_zxid, Zxid(E2 + 2));
    }
}

#[test]
fn a_history_that_was_never_promised_is_refused_by_name() {
    for (accepted, current, expected) in [
        (
            Some("1"),
            Some("1"),
            "DIR/version-2/acceptedEpoch holds 1, but the last transaction is 0x200000002, of epoch 2; ",
        ),
        (Some("1"), None, "DIR/version-2/acceptedEpoch holds 1, but the last transaction is "),
        (Some("2"), Some("3"), "DIR/version-2: currentEpoch is 3, but acceptedEpoch is only 2; "),
        (None, Some("3"), "DIR/version-2: currentEpoch is 3, but acceptedEpoch is only 2; "),
    ] {
        let dir = java(accepted, current);
        let before = names(dir.path());
        let error = open(dir.path()).unwrap_err().to_string();
        let error = error.replace(&dir.path().display().to_string(), "DIR");
        assert!(error.starts_with(expected), "{error}");
        assert!(error.ends_with(quorate_storage::error::SAFE), "{error}");
        assert_eq!(names(dir.path()), before);
        assert!(!check(dir.path(), None).unwrap().is_sound());
    }
}

#[test]
fn nothing_of_an_epoch_is_logged_before_its_promise() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    let error = log.append(&txns([E1 + 1, E2 + 1])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "transaction 0x200000001 cannot be logged while acceptedEpoch is 1"
    );
    assert_eq!(log.last(), Zxid::ZERO);
    log.stage(receive(&log, E2, b"sent")).unwrap();
    assert!(matches!(
        log.install(Zxid(E2), &unchanged(), || Ok(())),
        Err(LogError::Unpromised { .. })
    ));
    append(&mut log, [E1 + 1]);
}

#[test]
fn a_first_state_is_the_snapshot_of_nothing() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    assert_eq!(names(dir.path()), ["acceptedEpoch", "currentEpoch", "snapshot.0"]);
    append(&mut log, [E1 + 1, E1 + 2]);
    drop(log);
    let (mut log, found) = open(dir.path()).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E1 + 2));
    assert_eq!((found.durable.floor, found.durable.snapshot), (Zxid::ZERO, Zxid::ZERO));
    let file = found.snapshot.unwrap();
    let mut reader = SnapshotReader::open(Disk, &file).unwrap();
    let mut state = [0; 5];
    reader.read_exact(&mut state).unwrap();
    reader.finish().unwrap();
    assert_eq!(&state, b"first");
    assert_eq!(zxids(&mut log, 0), [E1 + 1, E1 + 2]);
}

#[test]
fn nothing_is_appended_before_there_is_a_state_to_start_from() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    log.write_accepted_epoch(Epoch(1)).unwrap();
    let error = log.append(&txns([E1 + 1])).unwrap_err();
    assert!(matches!(error, LogError::NoOrigin { .. }), "{error}");
    log.begin_with(take(&log, 0, b"first")).unwrap();
    append(&mut log, [E1 + 1]);
}

/// A voter that lost its disk must not take a first state for its history, not even after a crash.
#[test]
fn without_autocreate_the_first_state_waits_for_an_epoch() {
    let strict = || OpenOptions { autocreate: false, ..OpenOptions::default() };
    let dir = TempDir::new().unwrap();
    for _ in 0..2 {
        let (mut log, found) = Log::open(dir.path(), strict()).unwrap();
        assert_eq!(found.durable.last_zxid, Zxid::UNKNOWN);
        log.begin_with(take(&log, 0, b"first")).unwrap();
        log.write_accepted_epoch(Epoch(1)).unwrap();
        let left = names(dir.path());
        assert!(left.iter().all(|name| name == "acceptedEpoch" || name.starts_with("taking.")));
    }
    let (mut log, _) = Log::open(dir.path(), strict()).unwrap();
    log.begin_with(take(&log, 0, b"first")).unwrap();
    append(&mut log, [E1 + 1]);
    log.write_current_epoch(Epoch(1)).unwrap();
    drop(log);
    let (log, found) = Log::open(dir.path(), strict()).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E1 + 1));
    drop(log);
    assert_eq!(names(dir.path()), ["acceptedEpoch", "currentEpoch", "log.100000001", "snapshot.0"]);
}

#[test]
fn a_marker_is_taken_away_where_there_is_a_history_as_well() {
    let dir = java(Some("2"), Some("2"));
    fs::write(dir.path().join("initialize"), "").unwrap();
    let strict = OpenOptions { autocreate: false, ..OpenOptions::default() };
    let (_, found) = Log::open(dir.path(), strict).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E2 + 2));
    assert!(!dir.path().join("initialize").exists());
}

#[test]
fn a_history_is_known_without_a_marker_and_without_epoch_files() {
    let dir = java(None, None);
    let strict = OpenOptions { autocreate: false, ..OpenOptions::default() };
    let (_, found) = Log::open(dir.path(), strict).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E2 + 2));
}

#[test]
fn a_closed_log_takes_no_more_room_than_its_records() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    append(&mut log, [E1 + 1]);
    log.append(&txns([E1 + 2])).unwrap();
    let path = dir.path().join("version-2/log.100000001");
    assert_eq!(fs::metadata(&path).unwrap().len(), (4 << 20) + 16, "room in advance");
    log.close().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 16 + 2 * 55);
    assert_eq!(open(dir.path()).unwrap().1.durable.last_zxid, Zxid(E1 + 2));
}

#[test]
fn logs_in_a_directory_of_their_own_are_found_there() {
    let (dir, logs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let options = || OpenOptions {
        data_log_dir: Some(logs.path().join("not/yet")),
        ..OpenOptions::default()
    };
    let (mut log, _) = Log::open(dir.path(), options()).unwrap();
    log.begin_with(take(&log, 0, b"first")).unwrap();
    log.write_accepted_epoch(Epoch(1)).unwrap();
    append(&mut log, [E1 + 1]);
    drop(log);
    assert_eq!(names(dir.path()), ["acceptedEpoch", "currentEpoch", "snapshot.0"]);
    assert_eq!(names(&logs.path().join("not/yet")), ["log.100000001"]);
    assert_eq!(Log::open(dir.path(), options()).unwrap().1.durable.last_zxid, Zxid(E1 + 1));
    assert!(check(dir.path(), Some(&logs.path().join("not/yet"))).unwrap().is_sound());
}

/// Only reading a snapshot tells whether it is whole; the one before it will do, if the log goes on from
/// there through what could not be read.
#[test]
fn a_snapshot_that_cannot_be_read_has_a_predecessor() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    append(&mut log, E1 + 1..=E1 + 4);
    log.publish(take(&log, E1 + 3, b"third")).unwrap();
    append(&mut log, [E1 + 5]);
    drop(log);
    let older = |label| {
        let history = SegmentOptions { snapshot_before: Some(Zxid(label)), ..Default::default() };
        Log::open(dir.path(), OpenOptions { segments: history, ..OpenOptions::default() })
    };
    assert_eq!(open(dir.path()).unwrap().1.durable.snapshot, Zxid(E1 + 3));
    let (mut log, found) = older(E1 + 3).unwrap();
    assert_eq!(found.snapshot.unwrap().label, Zxid(0));
    assert_eq!((found.durable.snapshot, found.durable.last_zxid), (Zxid(0), Zxid(E1 + 5)));
    assert_eq!(log.snapshot().unwrap().label, Zxid(0), "also for who asks later");
    assert_eq!(zxids(&mut log, 0), (E1 + 1..=E1 + 5).collect::<Vec<_>>());
    // The next one is newer than both.
    log.publish(take(&log, E1 + 5, b"fifth")).unwrap();
    assert_eq!(log.snapshot().unwrap().label, Zxid(E1 + 5));
    drop(log);
    assert_eq!(open(dir.path()).unwrap().1.durable.snapshot, Zxid(E1 + 5));
    let error = older(0).unwrap_err();
    assert!(matches!(error, LogError::Open(OpenError::NoWholeSnapshot { .. })), "{error}");
}

/// What a leader sent replaced the log: a start from before it would lose what was acknowledged.
#[test]
fn a_snapshot_that_the_log_does_not_lead_to_has_no_predecessor() {
    for behind in [&[E2 + 8][..], &[E3 + 1], &[]] {
        let dir = java(Some("2"), Some("2"));
        let label = E2 + 7;
        // A Java server keeps its old log when it gets a snapshot.
        let mut bytes = golden("snapshot.100000018");
        fs::write(dir.path().join("version-2/snapshot.200000007"), &bytes).unwrap();
        fs::write(dir.path().join("version-2/acceptedEpoch"), "3").unwrap();
        if let Some(first) = behind.first() {
            bytes = quorate_storage::record::FILE_HEADER.to_vec();
            quorate_storage::record::encode(&txn(*first), &mut bytes);
            let name = format!("version-2/log.{first:x}");
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let (log, found) = open(dir.path()).unwrap();
        assert_eq!(found.durable.last_zxid.0, behind.first().copied().unwrap_or(label));
        assert_eq!(found.durable.floor, Zxid(label));
        drop(log);
        let history =
            SegmentOptions { snapshot_before: Some(Zxid(label)), ..SegmentOptions::default() };
        let older = OpenOptions { segments: history, ..OpenOptions::default() };
        let error = Log::open(dir.path(), older).unwrap_err().to_string();
        assert!(
            error.starts_with("the snapshot of 0x200000007 cannot be read, and the log does not")
                || error.contains("those between are missing"),
            "{error}"
        );
    }
}

/// Behind such a snapshot the old log must be gone before anything follows, and older snapshots too:
/// from one of them the new transactions would look like the next.
#[test]
fn what_ends_before_the_snapshot_goes_with_the_older_snapshots() {
    let dir = java(Some("2"), Some("2"));
    let bytes = golden("snapshot.100000018");
    fs::write(dir.path().join("version-2/snapshot.200000007"), bytes).unwrap();
    let (mut log, found) = open(dir.path()).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E2 + 7));
    assert!(found.durable.window.is_empty());
    assert!(names(dir.path()).contains(&"log.100000001".to_owned()));
    append(&mut log, [E2 + 8]);
    drop(log);
    assert_eq!(
        names(dir.path()),
        ["acceptedEpoch", "currentEpoch", "log.200000008", "snapshot.200000007"]
    );
}

/// An established leader's snapshot may be labelled with the bare start of its epoch.
#[test]
fn the_newest_snapshot_may_have_the_label_of_a_bare_epoch() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    append(&mut log, [E1 + 1, E1 + 2]);
    log.write_accepted_epoch(Epoch(2)).unwrap();
    log.write_current_epoch(Epoch(2)).unwrap();
    log.publish(take(&log, E2, b"start of 2")).unwrap();
    drop(log);
    let (mut log, found) = open(dir.path()).unwrap();
    assert_eq!((found.durable.snapshot, found.durable.last_zxid), (Zxid(E2), Zxid(E2)));
    let mut place = |zxid: i64| match log.locate(Zxid(zxid), u64::MAX).unwrap() {
        Locating::Found(located) => located.place,
        Locating::Reading => panic!("there is nothing to read"),
    };
    assert_eq!(place(E2), Place::Held);
    assert_eq!(place(E1 + 2), Place::BelowFloor);
    assert_eq!(place(E2 + 1), Place::Beyond);
    append(&mut log, [E2 + 1]);
    drop(log);
    let (mut log, found) = open(dir.path()).unwrap();
    assert_eq!((found.durable.floor, found.durable.last_zxid), (Zxid(E2), Zxid(E2 + 1)));
    assert_eq!(zxids(&mut log, E2), [E2 + 1]);
}

#[test]
fn a_cut_at_the_bare_start_of_an_epoch_ends_with_what_is_before_it() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    log.write_accepted_epoch(Epoch(3)).unwrap();
    append(&mut log, [E1 + 1, E1 + 2, E2 + 1, E2 + 2]);
    log.truncate(Zxid(E2)).unwrap();
    assert_eq!(log.last(), Zxid(E1 + 2));
    append(&mut log, [E3 + 1]);
    log.truncate(Zxid(E1)).unwrap();
    assert_eq!(log.last(), Zxid(0));
    append(&mut log, [E3 + 1]);
    drop(log);
    let (mut log, found) = open(dir.path()).unwrap();
    assert_eq!(found.durable.last_zxid, Zxid(E3 + 1));
    assert_eq!(zxids(&mut log, 0), [E3 + 1]);
}

#[test]
fn a_history_that_a_leader_sends_takes_the_place_of_ours_when_it_is_installed() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    append(&mut log, [E1 + 1, E1 + 2]);
    log.write_accepted_epoch(Epoch(2)).unwrap();
    // One is given up, and another begun with the same label before that is done.
    let first = receive(&log, E2, b"sent");
    let second = receive(&log, E2, b"sent again");
    log.stage(first).unwrap();
    log.append_staged(&txns([E2 + 1])).unwrap();
    log.discard_staged().unwrap();
    log.stage(second).unwrap();
    log.append_staged(&txns([E2 + 1, E2 + 2])).unwrap();
    assert!(matches!(
        log.install(Zxid(E1), &unchanged(), || Ok(())),
        Err(LogError::NothingStaged { zxid: Zxid(E1) })
    ));
    assert_eq!(log.last(), Zxid(E1 + 2));
    log.install(Zxid(E2), &unchanged(), || Ok(())).unwrap();
    assert!(matches!(
        log.install(Zxid(E2), &unchanged(), || Ok(())),
        Err(LogError::NothingStaged { zxid: Zxid(E2) })
    ));
    assert_eq!(log.snapshot().unwrap().label, Zxid(E2));
    log.write_current_epoch(Epoch(2)).unwrap();
    append(&mut log, [E2 + 3]);
    assert_eq!(zxids(&mut log, E2), [E2 + 1, E2 + 2, E2 + 3]);
    assert_eq!(
        names(dir.path()),
        ["acceptedEpoch", "currentEpoch", "log.200000001", "log.200000003", "snapshot.200000000"]
    );
    drop(log);
    let (_, found) = open(dir.path()).unwrap();
    assert_eq!((found.durable.floor, found.durable.last_zxid), (Zxid(E2), Zxid(E2 + 3)));
}

#[test]
fn a_history_given_up_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    log.stage(receive(&log, E2, b"sent")).unwrap();
    log.append_staged(&txns([E2 + 1])).unwrap();
    log.stage(receive(&log, E2 + 5, b"sent")).unwrap();
    log.discard_staged().unwrap();
    log.discard_staged().unwrap();
    let error = log.append_staged(&txns([E2 + 6])).unwrap_err();
    assert_eq!(error.to_string(), "0x200000006 belongs to no history that was received");
    assert_eq!(names(dir.path()), ["acceptedEpoch", "currentEpoch", "snapshot.0"]);
    assert_eq!(log.epochs(), Epochs { accepted_epoch: Epoch(1), current_epoch: Epoch(1) });
}

#[test]
fn a_snapshot_that_came_too_early_is_removed() {
    let dir = TempDir::new().unwrap();
    let mut log = begun(dir.path());
    append(&mut log, [E1 + 1]);
    let error = log.publish(take(&log, E1 + 2, b"not yet")).unwrap_err();
    assert!(error.to_string().contains("while the log is durable through 0x100000001 only"));
    assert!(!names(dir.path()).iter().any(|name| name.starts_with("taking.")));
    append(&mut log, [E1 + 2]);
    log.publish(take(&log, E1 + 2, b"now")).unwrap();
}

fn unchanged() -> Memberships {
    Memberships { present: Bytes::from_static(b"server.1=a:1:2\nversion=0"), next: None }
}
