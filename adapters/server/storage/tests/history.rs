//! A history on a real disk, long enough for several files and places within them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use quorate_core::input::Place;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::Disk;
use quorate_storage::segments::{Dirs, Locating, Opened, Roll, SegmentOptions, Segments};
use quorate_storage::snapshot::{self, Parts, SnapshotWriter};
use tempfile::TempDir;

const E1: i64 = 1 << 32;
const COUNT: i64 = 3000;

fn txn(zxid: i64, body: usize) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    let byte = u8::try_from(zxid & 0xff).unwrap();
    Txn { zxid: Zxid(zxid), header, body: Bytes::from(vec![byte; body]) }
}

fn options() -> SegmentOptions {
    let roll = Roll { records: 1000, bytes: u64::MAX };
    SegmentOptions { preallocate: 1 << 20, roll, trust_empty_snapshot: true, ..Default::default() }
}

fn open(dir: &Path) -> (Segments, Opened) {
    Segments::open(Disk, Dirs::one(dir), options()).unwrap()
}

/// 3,000 transactions of 300 bytes in three files.
fn long() -> (TempDir, Segments) {
    let dir = TempDir::new().unwrap();
    let (mut history, opened) = open(dir.path());
    assert_eq!((opened.last, opened.floor, opened.snapshot), (Zxid(0), Zxid(0), None));
    for batch in (E1 + 1..=E1 + COUNT).collect::<Vec<_>>().chunks(100) {
        let txns: Vec<_> = batch.iter().map(|zxid| txn(*zxid, 255)).collect();
        history.append(&txns).unwrap();
        let synced = history.sync().unwrap();
        assert_eq!(synced.through.0, batch[99]);
        assert_eq!(synced.rolled, (batch[99] - E1) % 1000 == 0);
    }
    (dir, history)
}

fn place(history: &mut Segments, zxid: Zxid) -> Place {
    match history.locate(zxid, u64::MAX).unwrap() {
        Locating::Found(located) => located.place,
        Locating::Reading => panic!("{zxid}"),
    }
}

fn logs(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("log."));
    names.sort();
    names
}

fn publish(history: &mut Segments, dir: &Path, label: i64) {
    let mut writer = SnapshotWriter::take(Disk, dir, Zxid(label)).unwrap();
    writer.write_all(b"state").unwrap();
    history.publish(writer.finish(Parts::default()).unwrap()).unwrap();
}

#[test]
fn files_roll_and_hold_no_more_than_their_records() {
    let (dir, history) = long();
    assert_eq!(logs(dir.path()), ["log.100000001", "log.1000003e9", "log.1000007d1"]);
    for name in logs(dir.path()) {
        assert_eq!(fs::metadata(dir.path().join(name)).unwrap().len(), 16 + 1000 * 300);
    }
    drop(history);
    let (_, opened) = open(dir.path());
    assert_eq!((opened.last.0, opened.floor.0), (E1 + COUNT, 0));
    let window: Vec<_> = opened.window.iter().map(|txn| txn.zxid.0).collect();
    assert_eq!(window, (E1 + COUNT - 499..=E1 + COUNT).collect::<Vec<_>>());
}

#[test]
fn any_part_is_read_in_pieces_of_bounded_size() {
    let (_dir, mut history) = long();
    for (after, through) in
        [(0, E1 + 1), (E1 + 999, E1 + 1001), (E1 + 1234, E1 + 2987), (0, E1 + 3000)]
    {
        for bytes in [1, 4096, 1 << 20] {
            let mut reader = history.read(Zxid(after), Zxid(through)).unwrap();
            let mut next = after.max(E1) + 1;
            while let Some(chunk) = reader.next_chunk(bytes).unwrap() {
                assert!(chunk.records().len() <= bytes.max(300));
                for found in chunk.txns() {
                    assert_eq!(found, txn(next, 255));
                    next += 1;
                }
                assert_eq!(chunk.last().0, next - 1);
            }
            assert_eq!(next, through + 1, "behind {after:x}, {bytes} at a time");
        }
    }
    for zxid in (E1 + 1..E1 + COUNT).step_by(97) {
        assert_eq!(place(&mut history, Zxid(zxid)), Place::Held);
    }
}

/// Room that was taken in advance, and what was cut, does not count.
#[test]
fn the_bytes_behind_a_place_are_those_of_the_records() {
    let (_dir, mut history) = long();
    let behind = |history: &mut Segments, zxid: i64| match history.locate(Zxid(zxid), 0).unwrap() {
        Locating::Found(located) => located.log_bytes,
        Locating::Reading => panic!("there is nothing to read"),
    };
    history.append(&[txn(E1 + 3001, 255), txn(E1 + 3002, 255)]).unwrap();
    history.sync().unwrap();
    assert_eq!(behind(&mut history, E1 + 3001), 300);
    assert_eq!(behind(&mut history, E1 + 2998), 2 * 300 + 16 + 2 * 300);
    assert_eq!(behind(&mut history, E1 + 500), 2500 * 300 + 3 * 16 + 2 * 300);
    history.truncate(Zxid(E1 + 1500)).unwrap();
    assert_eq!(behind(&mut history, E1 + 500), 1000 * 300 + 16);
    history.append(&[txn(E1 + 1501, 255)]).unwrap();
    history.sync().unwrap();
    assert_eq!(behind(&mut history, E1 + 1499), 300 + 16 + 300);
}

#[test]
fn transactions_longer_than_a_piece_are_read_too() {
    let dir = TempDir::new().unwrap();
    let (mut history, _) = open(dir.path());
    for zxid in 1..=4 {
        history.append(&[txn(E1 + zxid, 1 << 20)]).unwrap();
    }
    history.sync().unwrap();
    let mut reader = history.read(Zxid(E1 + 1), Zxid(E1 + 4)).unwrap();
    for zxid in 2..=4 {
        let chunk = reader.next_chunk(1000).unwrap().unwrap();
        assert_eq!(chunk.txns().collect::<Vec<_>>(), [txn(E1 + zxid, 1 << 20)]);
    }
    assert!(reader.next_chunk(1000).unwrap().is_none());
    drop(history);
    assert_eq!(open(dir.path()).1.last.0, E1 + 4);
}

#[test]
fn a_cut_takes_later_files_with_it() {
    for keep in [E1 + 2500, E1 + 2000, E1 + 1501, E1 + 1000, E1 + 1] {
        let (dir, mut history) = long();
        history.truncate(Zxid(keep)).unwrap();
        assert_eq!(place(&mut history, Zxid(keep + 1)), Place::Beyond);
        history.append(&[txn(keep + 1, 7)]).unwrap();
        history.sync().unwrap();
        drop(history);
        let (mut history, opened) = open(dir.path());
        assert_eq!(opened.last.0, keep + 1);
        let mut reader = history.read(Zxid(0), opened.last).unwrap();
        let mut count = 0;
        while let Some(chunk) = reader.next_chunk(1 << 16).unwrap() {
            count += i64::try_from(chunk.len()).unwrap();
        }
        assert_eq!(count, keep + 1 - E1);
    }
}

#[test]
fn what_is_purged_leaves_a_history_that_opens() {
    let (dir, mut history) = long();
    for label in [500, 1000, 1500, 2200, 3000] {
        publish(&mut history, dir.path(), E1 + label);
    }
    let mut reader = history.read(Zxid(E1 + 700), Zxid(E1 + COUNT)).unwrap();
    let purged = history.purge(3, 1).unwrap();
    assert_eq!((purged.snapshots, purged.logs, purged.more), (1, 0, true));
    let purged = history.purge(3, 100).unwrap();
    assert_eq!((purged.snapshots, purged.logs, purged.more), (1, 0, false));
    assert_eq!(purged.floor, Zxid(0), "somebody reads the first file");
    while reader.next_chunk(1 << 16).unwrap().unwrap().last() < Zxid(E1 + 1000) {}
    let purged = history.purge(3, 100).unwrap();
    assert_eq!((purged.snapshots, purged.logs, purged.floor), (0, 1, Zxid(E1 + 1000)));
    assert_eq!(logs(dir.path()), ["log.1000003e9", "log.1000007d1"]);
    assert_eq!(place(&mut history, Zxid(E1 + 999)), Place::BelowFloor);
    assert_eq!(place(&mut history, Zxid(E1 + 1000)), Place::Held);
    drop(history);
    // From each of the snapshots that are left.
    let mut before = None;
    for snapshot in snapshot::list(&Disk, dir.path()).unwrap() {
        let options = SegmentOptions { snapshot_before: before, ..options() };
        let (_, opened) = Segments::open(Disk, Dirs::one(dir.path()), options).unwrap();
        assert_eq!(opened.snapshot.as_ref(), Some(&snapshot));
        assert_eq!(opened.last.0, E1 + COUNT);
        assert!(opened.floor <= snapshot.label);
        before = Some(snapshot.label);
    }
    assert_eq!(before, Some(Zxid(E1 + 1500)));
}
