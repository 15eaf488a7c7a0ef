//! Logs that were cut off, have a wrong bit, or lie about themselves, at every offset: they are refused
//! by name or shortened as a power cut would have, and what was acknowledged is never passed over.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::input::{Located, Place};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::error::{Corruption, SAFE};
use quorate_storage::reader::ReadError;
use quorate_storage::record;
use quorate_storage::segments::{
    AppendError, Dirs, Locating, OpenError, Opened, SegmentOptions, Segments, TruncateError,
};
use quorate_storage::snapshot::{Parts, SnapshotError, SnapshotWriter};

const DIR: &str = "/data/version-2";
const SNAPSHOT: &[u8] = b"0123456789\0\0\0\x01/";
const LOG: &[u8] = include_bytes!("golden/log.100000001");
const LOG_ENDS: usize = 2299;
const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(b"some bytes") }
}

fn log(zxids: &[i64]) -> Vec<u8> {
    let mut bytes = record::FILE_HEADER.to_vec();
    zxids.iter().for_each(|zxid| record::encode(&txn(*zxid), &mut bytes));
    bytes
}

fn disk(files: &[(&str, &[u8])]) -> Forgetful {
    let mut state = State::default();
    for (name, bytes) in files {
        state.put(Path::new(DIR).join(name), bytes);
    }
    Forgetful::new(state)
}

fn options() -> SegmentOptions {
    SegmentOptions { preallocate: 0, txn_bytes_max: 1024, ..SegmentOptions::default() }
}

fn open(disk: &Forgetful) -> Result<(Segments<Forgetful>, Opened), OpenError> {
    Segments::open(disk.clone(), Dirs::one(DIR), options())
}

fn place(history: &mut Segments<Forgetful>, zxid: i64) -> Place {
    match history.locate(Zxid(zxid), u64::MAX).unwrap() {
        Locating::Found(located) => located.place,
        Locating::Reading => place(history, zxid),
    }
}

fn zxids(history: &mut Segments<Forgetful>, after: i64, through: i64) -> Vec<i64> {
    let mut reader = history.read(Zxid(after), Zxid(through)).unwrap();
    let mut found = Vec::new();
    while let Some(chunk) = reader.next_chunk(1).unwrap() {
        assert_eq!(chunk.len(), 1);
        found.extend(chunk.txns().map(|txn| txn.zxid.0));
    }
    found
}

/// ZOOKEEPER-2332: an empty file stopped the start; so short a log is one of them.
#[test]
fn a_log_cut_at_any_offset_ends_with_its_last_whole_record() {
    let whole = open(&disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", LOG)])).unwrap().1;
    assert_eq!(whole.last, Zxid(E2 + 2));
    let mut ends = vec![(16, 0)];
    for txn in &whole.window {
        let (end, _) = ends[ends.len() - 1];
        ends.push((end + txn.len() + record::OVERHEAD, txn.zxid.0));
    }
    assert_eq!(ends[ends.len() - 1].0, LOG_ENDS);
    for padded in [false, true] {
        for length in 0..LOG_ENDS {
            let mut bytes = LOG[..length].to_vec();
            if padded {
                bytes.resize(LOG.len(), 0);
            }
            let disk = disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", &bytes)]);
            let (mut history, opened) = open(&disk).unwrap();
            let (end, last) = *ends.iter().rfind(|(end, _)| *end <= length).unwrap_or(&(0, 0));
            assert_eq!(opened.last.0, last, "cut at {length}");
            let left = disk.0.borrow().content("/data/version-2/log.100000001").cloned();
            assert_eq!(left.is_none(), last == 0, "a file without a record is removed");
            if let Some(left) = left {
                assert!(left.written == left.synced && left.written.len() >= end);
                assert!(left.written[end..].iter().all(|byte| *byte == 0), "torn tails are cut");
            }
            let next = if last == 0 { E1 + 1 } else { last + 1 };
            history.append(&[txn(next)]).unwrap();
            history.sync().unwrap();
            assert_eq!(open(&disk).unwrap().1.last.0, next, "cut at {length}");
        }
    }
}

#[test]
fn a_log_with_any_bit_wrong_is_refused_and_nothing_is_changed() {
    for padded in [true, false] {
        let good = if padded { LOG } else { &LOG[..LOG_ENDS] };
        for bit in 0..good.len().min(LOG_ENDS + 100) * 8 {
            let mut bytes = good.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let disk = disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", &bytes)]);
            match open(&disk) {
                // Only behind the last record a bit means nothing.
                Ok((_, opened)) => {
                    assert!(bit / 8 >= LOG_ENDS, "bit {bit}");
                    assert_eq!(opened.last, Zxid(E2 + 2));
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("/data/version-2/log.100000001"), "{text}");
                    let state = disk.0.borrow();
                    assert_eq!(
                        *state.content("/data/version-2/log.100000001").unwrap().written,
                        bytes
                    );
                }
            }
        }
    }
}

#[test]
fn a_damaged_record_is_named_by_file_offset_and_zxid() {
    let mut bytes = log(&[E1 + 1, E1 + 2, E1 + 3]);
    let place = 16 + 55 + 20;
    bytes[place] ^= 1;
    let disk = disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", &bytes)]);
    let error = open(&disk).unwrap_err().to_string();
    let expected = "/data/version-2/log.100000001, offset 71, after 0x100000001: the record is \
                    damaged: its checksum is ";
    assert!(error.starts_with(expected), "{error}");
}

/// A length that says two gigabytes allocates nothing.
#[test]
fn a_record_that_claims_to_be_huge_is_refused() {
    for length in [i32::MAX, 1025, -1, i32::MIN] {
        let mut bytes = log(&[E1 + 1]);
        bytes.extend_from_slice(&[0, 0, 0, 0, 1, 2, 3, 4]);
        bytes.extend_from_slice(&length.to_be_bytes());
        let disk = disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", &bytes)]);
        let error = open(&disk).unwrap_err().to_string();
        assert!(error.contains(&format!("its length is given as {length}")), "{error}");
    }
}

#[test]
fn what_was_written_between_two_files_decides_whether_they_connect() {
    let torn = |zxids: &[i64], by: usize| {
        let bytes = log(zxids);
        bytes[..bytes.len() - by].to_vec()
    };
    // A torn tail is normal if the next file goes on.
    let first = torn(&[E1 + 1, E1 + 2, E1 + 3], 5);
    let files: [(&str, &[u8]); 3] = [
        ("snapshot.0", SNAPSHOT),
        ("log.100000001", &first),
        ("log.100000003", &log(&[E1 + 3, E1 + 4])),
    ];
    let (mut history, opened) = open(&disk(&files)).unwrap();
    assert_eq!((opened.floor, opened.last), (Zxid(0), Zxid(E1 + 4)));
    assert_eq!(zxids(&mut history, 0, E1 + 4), [E1 + 1, E1 + 2, E1 + 3, E1 + 4]);

    // Another epoch behind it starts the floor: something may be missing.
    let files: [(&str, &[u8]); 3] = [
        ("snapshot.0", SNAPSHOT),
        ("log.100000001", &first),
        ("log.200000001", &log(&[E2 + 1, E2 + 2])),
    ];
    let (mut history, opened) = open(&disk(&files)).unwrap();
    assert_eq!((opened.floor, opened.last), (Zxid(E2 + 1), Zxid(E2 + 2)));
    assert_eq!(opened.window.len(), 2);
    assert!(matches!(history.read(Zxid(E1 + 2), Zxid(E2 + 2)), Err(ReadError::BelowFloor { .. })));
    let files: [(&str, &[u8]); 3] = [
        ("snapshot.0", SNAPSHOT),
        ("log.100000001", &log(&[E1 + 1, E1 + 2])),
        ("log.200000001", &log(&[E2 + 1, E2 + 2])),
    ];
    assert_eq!(open(&disk(&files)).unwrap().1.floor, Zxid(0), "nothing torn, nothing missing");

    // A hole is refused, torn or not.
    for first in [first, log(&[E1 + 1, E1 + 2])] {
        let files: [(&str, &[u8]); 3] = [
            ("snapshot.0", SNAPSHOT),
            ("log.100000001", &first),
            ("log.100000004", &log(&[E1 + 4])),
        ];
        assert_eq!(
            open(&disk(&files)).unwrap_err().to_string(),
            format!(
                "/data/version-2/log.100000004, offset 16: transaction 0x100000004 follows \
                 0x100000002; those between are missing. {SAFE}"
            )
        );
    }

    // So is a record before the end that only looks torn, whatever follows.
    let mut hidden = log(&[E1 + 1, E1 + 2, E1 + 3]);
    hidden[16 + 55 + 54] = b'C';
    for next in [vec![], log(&[E2 + 1])] {
        let mut files: Vec<(&str, &[u8])> =
            vec![("snapshot.0", SNAPSHOT), ("log.100000001", &hidden)];
        if !next.is_empty() {
            files.push(("log.200000001", &next));
        }
        let error = open(&disk(&files)).unwrap_err();
        assert!(
            matches!(error, OpenError::Corrupt(Corruption::Record { offset: 71, .. })),
            "{error}"
        );
    }
}

#[test]
fn records_out_of_order_and_files_of_another_name_are_refused() {
    for (name, zxids, expected) in [
        (
            "log.100000001",
            &[E1 + 1, E1 + 1][..],
            "offset 71: transaction 0x100000001 stands behind",
        ),
        ("log.100000001", &[E1 + 1, E1 + 2, E1 + 1], "offset 126: transaction 0x100000001 stands"),
        ("log.100000001", &[E1 + 1, E2 + 2], "transaction 0x200000002 follows 0x100000001"),
        ("log.100000002", &[E1 + 2], "transaction 0x100000002 follows 0x0"),
        ("log.100000001", &[E1 + 2], "log.100000001 begins with transaction 0x100000002"),
        ("log.7fffffffffffffff", &[i64::MAX], "follows 0x0"),
    ] {
        let disk = disk(&[("snapshot.0", SNAPSHOT), (name, &log(zxids))]);
        let error = open(&disk).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let disk = disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", b"no log at all, but text")]);
    let error = open(&disk).unwrap_err().to_string();
    assert!(error.contains("log.100000001 is no transaction log: it begins with"), "{error}");
}

#[test]
fn a_snapshot_stands_for_what_is_before_it() {
    // The log ends before the snapshot: its files go before anything else is written, not earlier.
    let files: [(&str, &[u8]); 2] =
        [("snapshot.100000005", SNAPSHOT), ("log.100000001", &log(&[E1 + 1, E1 + 2]))];
    let on = disk(&files);
    let (mut history, opened) = open(&on).unwrap();
    assert_eq!((opened.last, opened.floor), (Zxid(E1 + 5), Zxid(E1 + 5)));
    assert!(opened.window.is_empty());
    assert!(on.0.borrow().content("/data/version-2/log.100000001").is_some());
    history.append(&[txn(E1 + 6)]).unwrap();
    history.sync().unwrap();
    assert!(on.0.borrow().content("/data/version-2/log.100000001").is_none());
    let (mut history, opened) = open(&on).unwrap();
    assert_eq!((opened.last, opened.floor), (Zxid(E1 + 6), Zxid(E1 + 5)));
    assert_eq!(zxids(&mut history, E1 + 5, E1 + 6), [E1 + 6]);

    // A Java server goes on in the same file behind a snapshot that its leader sent.
    for (zxids, floor) in [
        (vec![E1 + 1, E1 + 2, E1 + 6, E1 + 7], E1 + 5),
        (vec![E1 + 1, E1 + 2, E2 + 1], E1 + 5),
        (vec![E1 + 1, E1 + 2, E1 + 4, E1 + 5, E1 + 6], E1 + 3),
        (vec![E1 + 4, E1 + 5], E1 + 3),
        (vec![E1 + 1, E1 + 2, E1 + 3, E1 + 4, E1 + 5, E2 + 1], E1 + 1),
    ] {
        let bytes = log(&zxids);
        let name = format!("log.{:x}", zxids[0]);
        let disk = disk(&[("snapshot.100000005", SNAPSHOT), (&name, &bytes)]);
        let (_, opened) = open(&disk).unwrap();
        assert_eq!((opened.floor.0, opened.last.0), (floor, zxids[zxids.len() - 1]), "{zxids:x?}");
        let expected: Vec<_> = zxids.iter().copied().filter(|zxid| *zxid > floor).collect();
        let window: Vec<_> = opened.window.iter().map(|txn| txn.zxid.0).collect();
        assert!(window.ends_with(&expected), "{window:x?}");
    }
    for zxids in [&[E1 + 7][..], &[E1 + 1, E1 + 2, E1 + 7], &[E2 + 2]] {
        let name = format!("log.{:x}", zxids[0]);
        let disk = disk(&[("snapshot.100000005", SNAPSHOT), (&name, &log(zxids))]);
        assert!(matches!(open(&disk), Err(OpenError::Corrupt(Corruption::Hole { .. }))));
    }
}

/// The start of an epoch is no transaction, nor is anything beyond the last epoch; also what a snapshot
/// stands for could not be served otherwise.
#[test]
fn what_no_leader_can_have_numbered_so_is_refused_wherever_it_stands() {
    for (label, zxids, number) in [
        (0, &[0, 1][..], 0),
        (E2 + 2, &[E2, E2 + 1, E2 + 2, E2 + 3], E2),
        (E2 + 2, &[E2], E2),
        (E2 + 2, &[E1 + 1, E2, E2 + 1, E2 + 2], E2),
        (E2 + 2, &[E2 + 1, E2 + 2, E2 + 3, 3 << 32], 3 << 32),
        (0, &[E1 + 1, E2], E2),
    ] {
        let (snapshot, name) = (format!("snapshot.{label:x}"), format!("log.{:x}", zxids[0]));
        let disk = disk(&[(&snapshot, SNAPSHOT), (&name, &log(zxids))]);
        let before = disk.0.borrow().steps;
        let error = open(&disk).unwrap_err();
        let OpenError::Corrupt(Corruption::Number { offset, zxid, .. }) = &error else {
            panic!("{error}")
        };
        let place = zxids.iter().position(|zxid| *zxid == number).unwrap();
        assert_eq!((*offset, *zxid), (16 + 55 * place as u64, Zxid(number)), "{error}");
        assert!(error.to_string().contains("no leader gives a transaction the number"), "{error}");
        assert_eq!(disk.0.borrow().steps, before, "nothing is changed");
    }
}

/// ZOOKEEPER-3056: and a log without any snapshot is no history, unless the operator says so.
#[test]
fn a_torn_snapshot_is_passed_over_only_if_the_log_goes_on_from_an_older_one() {
    let torn = &SNAPSHOT[..12];
    let whole = log(&[E1 + 1, E1 + 2, E1 + 3]);
    let files: [(&str, &[u8]); 3] =
        [("snapshot.0", SNAPSHOT), ("snapshot.100000002", torn), ("log.100000001", &whole)];
    let (_, opened) = open(&disk(&files)).unwrap();
    assert_eq!(opened.snapshot.unwrap().label, Zxid(0));
    assert_eq!(opened.last, Zxid(E1 + 3));
    let behind = log(&[E1 + 3]);
    let files: [(&str, &[u8]); 3] =
        [("snapshot.0", SNAPSHOT), ("snapshot.100000002", torn), ("log.100000003", &behind)];
    assert!(matches!(open(&disk(&files)), Err(OpenError::Corrupt(Corruption::Hole { .. }))));
    let files: [(&str, &[u8]); 2] = [("snapshot.100000002", torn), ("log.100000001", &whole)];
    assert!(matches!(open(&disk(&files)), Err(OpenError::NoWholeSnapshot { .. })));
    assert!(matches!(open(&disk(&files[1..])), Err(OpenError::NoSnapshot { .. })));
    assert_eq!(open(&disk(&[])).unwrap().1.last, Zxid(0));
    // The newest one that looks whole may prove not to be.
    let files: [(&str, &[u8]); 3] =
        [("snapshot.0", SNAPSHOT), ("snapshot.100000002", SNAPSHOT), ("log.100000001", &whole)];
    let older = SegmentOptions { snapshot_before: Some(Zxid(E1 + 2)), ..options() };
    let (_, opened) = Segments::open(disk(&files), Dirs::one(DIR), older).unwrap();
    assert_eq!((opened.snapshot.unwrap().label, opened.last), (Zxid(0), Zxid(E1 + 3)));
}

#[test]
fn files_in_the_wrong_directory_are_refused() {
    let dirs = Dirs { snapshots: DIR.into(), logs: "/logs".into() };
    let error = Segments::open(disk(&[("log.1", b"")]), dirs, options()).unwrap_err();
    assert!(matches!(error, OpenError::Stray { .. }), "{error}");
    let dirs = Dirs { snapshots: "/snapshots".into(), logs: DIR.into() };
    let error = Segments::open(disk(&[("snapshot.0", SNAPSHOT)]), dirs, options()).unwrap_err();
    assert!(matches!(error, OpenError::Stray { .. }), "{error}");
}

/// A directory with a long past: 1,000 files, of which the last two are behind the last snapshot.
#[test]
fn opening_reads_the_end_and_nothing_else() {
    let mut state = State::default();
    let at = |name: String| Path::new(DIR).join(name);
    for file in 0..1000 {
        let start = E1 + 1 + file * 10;
        let bytes = log(&(start..start + 10).collect::<Vec<_>>());
        state.put(at(format!("log.{start:x}")), &bytes);
        if file % 100 == 98 {
            let mut big = vec![7; 1 << 16];
            big.extend_from_slice(SNAPSHOT);
            state.put(at(format!("snapshot.{:x}", start - 1)), &big);
        }
    }
    let disk = Forgetful::new(state);
    let (mut history, opened) = open(&disk).unwrap();
    assert_eq!(opened.snapshot.as_ref().unwrap().label.0, E1 + 9980);
    assert_eq!((opened.floor.0, opened.last.0), (E1 + 9980, E1 + 10_000));
    let read = |disk: &Forgetful| {
        let state = disk.0.borrow();
        let read = state.contents.iter().filter(|content| content.read > 0).count();
        (read, state.contents.iter().map(|content| content.read).sum::<usize>())
    };
    let (files, bytes) = read(&disk);
    assert!(files <= 4 && bytes < 5 * 600, "{files} files, {bytes} bytes");
    // The rest is looked at when somebody needs it, as far as that is worth a third of a snapshot, a
    // little at a time, and can be served then.
    assert_eq!(place(&mut history, E1 + 9000), Place::BelowFloor);
    assert_eq!(place(&mut history, E1 - 1), Place::BelowFloor);
    assert_eq!(read(&disk), (files, bytes), "too much to be worth it");
    let mut asked = 0;
    let located = loop {
        asked += 1;
        match history.locate(Zxid(E1 + 9905), 100).unwrap() {
            Locating::Found(located) => break located,
            Locating::Reading => {}
        }
    };
    let log_bytes = 5 * 55 + 9 * (16 + 550);
    let snapshot_bytes = (1 << 16) + SNAPSHOT.len() as u64;
    assert_eq!(located, Located { place: Place::Held, log_bytes, snapshot_bytes });
    assert!(asked > 30, "asked {asked} times");
    assert_eq!(history.floor(), Zxid(E1 + 9900));
    assert_eq!(zxids(&mut history, E1 + 9905, E1 + 10_000).len(), 95);
    assert_eq!(read(&disk).0 - files, 8, "only what it takes");
    // Never, if so configured; and all of it, where the snapshot is large enough.
    for (percent, expected) in [(None, Place::BelowFloor), (Some(1000), Place::Held)] {
        let options = SegmentOptions { size_percent: percent, ..options() };
        let (mut history, _) = Segments::open(disk.clone(), Dirs::one(DIR), options).unwrap();
        assert_eq!(place(&mut history, E1 + 1), expected);
    }
}

/// An older file may be damaged, or be none of this history: then nobody is served from it, and the
/// history is as good as before.
#[test]
fn what_cannot_be_read_before_the_floor_stays_below_it() {
    let mut big = vec![7; 1 << 14];
    big.extend_from_slice(SNAPSHOT);
    let good = log(&[E1 + 1, E1 + 2, E1 + 3]);
    let mut wrong = good.clone();
    wrong[16 + 55 + 30] ^= 1;
    let short = log(&[E1 + 1, E1 + 2]);
    let hole = log(&[E1 + 1, E1 + 3]);
    for (first, e1_1, e1_2) in [
        (&good, Place::Held, Place::Held),
        (&wrong, Place::BelowFloor, Place::BelowFloor),
        (&short, Place::BelowFloor, Place::BelowFloor),
        // Behind the hole everything is there.
        (&hole, Place::BelowFloor, Place::Held),
    ] {
        let files: [(&str, &[u8]); 3] = [
            ("snapshot.100000003", &big),
            ("log.100000001", first),
            ("log.100000004", &log(&[E1 + 4, E1 + 5])),
        ];
        let (mut history, opened) = open(&disk(&files)).unwrap();
        assert_eq!((opened.floor, opened.last), (Zxid(E1 + 3), Zxid(E1 + 5)));
        if *first == wrong {
            let error = history.locate(Zxid(E1 + 1), u64::MAX).unwrap_err();
            assert!(error.to_string().contains("log.100000001, offset 71"), "{error}");
        }
        assert_eq!(place(&mut history, E1 + 1), e1_1);
        assert_eq!(place(&mut history, E1 + 2), e1_2);
        assert_eq!(place(&mut history, E1 + 3), Place::Held);
        assert_eq!(place(&mut history, E1 + 4), Place::Held);
        assert_eq!(zxids(&mut history, E1 + 3, E1 + 5), [E1 + 4, E1 + 5]);
    }
}

#[test]
fn a_place_in_the_log_is_found_or_said_to_be_absent() {
    let bytes = log(&[E1 + 1, E1 + 2, E2 + 1, E2 + 2]);
    let (mut history, _) =
        open(&disk(&[("snapshot.0", SNAPSHOT), ("log.100000001", &bytes)])).unwrap();
    history.append(&[txn(E2 + 3)]).unwrap();
    let mut located = |zxid| place(&mut history, zxid);
    assert_eq!(located(-1), Place::BelowFloor);
    for held in [0, E1 + 1, E1 + 2, E2 + 1, E2 + 2] {
        assert_eq!(located(held), Place::Held);
    }
    assert_eq!(located(E1), Place::Absent { previous: Zxid(0) });
    assert_eq!(located(E1 + 3), Place::Absent { previous: Zxid(E1 + 2) });
    assert_eq!(located(E2), Place::Absent { previous: Zxid(E1 + 2) });
    assert_eq!(located(E2 + 3), Place::Beyond, "not durable");
    let Locating::Found(located) = history.locate(Zxid(E1 + 2), 0).unwrap() else { panic!() };
    assert_eq!((located.log_bytes, located.snapshot_bytes), (110, SNAPSHOT.len() as u64));
    assert!(matches!(history.read(Zxid(0), Zxid(E2 + 3)), Err(ReadError::Beyond { .. })));
    assert_eq!(zxids(&mut history, E1 + 2, E2 + 1), [E2 + 1]);
    assert!(zxids(&mut history, E2 + 2, E2 + 2).is_empty());
    // The bare start of an epoch stands for what is before it.
    assert_eq!(zxids(&mut history, E1, E2), [E1 + 1, E1 + 2]);
    assert_eq!(zxids(&mut history, E2, E2 + 2), [E2 + 1, E2 + 2]);
    history.sync().unwrap();
    assert_eq!(zxids(&mut history, E2 + 1, E2 + 3), [E2 + 2, E2 + 3], "over the end of a file");
}

#[test]
fn the_log_is_cut_exactly_or_not_at_all() {
    let bytes = log(&[E1 + 1, E1 + 2, E2 + 1, E2 + 2]);
    let disk = disk(&[("snapshot.100000001", SNAPSHOT), ("log.100000001", &bytes)]);
    let (mut history, _) = open(&disk).unwrap();
    let before = disk.0.borrow().steps;
    assert!(matches!(history.truncate(Zxid(E2 + 3)), Err(TruncateError::Beyond { .. })));
    assert!(matches!(history.truncate(Zxid(E1 + 3)), Err(TruncateError::Absent { .. })));
    assert!(matches!(history.truncate(Zxid(E1)), Err(TruncateError::Snapshot { .. })));
    history.truncate(Zxid(E2 + 2)).unwrap();
    assert_eq!(disk.0.borrow().steps, before, "nothing was touched");
    history.truncate(Zxid(E1 + 2)).unwrap();
    let expected = log(&[E1 + 1, E1 + 2]);
    assert_eq!(
        *disk.0.borrow().content("/data/version-2/log.100000001").unwrap().written,
        expected
    );
    history.truncate(Zxid(E1 + 1)).unwrap();
    history.append(&[txn(E1 + 2)]).unwrap();
    history.sync().unwrap();
    let (_, opened) = open(&disk).unwrap();
    assert_eq!((opened.last, opened.floor), (Zxid(E1 + 2), Zxid(E1 + 1)));
}

#[test]
fn what_may_not_be_written_is_refused_before_it_is_taken() {
    let (mut history, _) = open(&disk(&[])).unwrap();
    history.append(&[txn(E1 + 1)]).unwrap();
    for wrong in [E1 + 2, E1 + 4, E2, E2 + 2, 0, -1, i64::MIN, i64::MAX] {
        let error = history.append(&[txn(E1 + 2), txn(wrong)]).unwrap_err();
        assert!(matches!(error, AppendError::Order { .. }), "{error}");
    }
    let long = Txn { body: Bytes::from(vec![0; 1024]), ..txn(E1 + 2) };
    assert!(matches!(history.append(&[long]), Err(AppendError::TooLong { .. })));
    assert_eq!(history.last(), Zxid(E1 + 1));
    history.append(&[txn(E1 + 2)]).unwrap();
    assert_eq!(history.sync().unwrap().through, Zxid(E1 + 2));
}

#[test]
fn a_snapshot_waits_for_the_log() {
    let disk = disk(&[]);
    let (mut history, _) = open(&disk).unwrap();
    history.append(&[txn(E1 + 1)]).unwrap();
    let stage = |label| {
        let writer = SnapshotWriter::take(disk.clone(), Path::new(DIR), Zxid(label)).unwrap();
        writer.finish(Parts::default()).unwrap()
    };
    let error = history.publish(stage(E1 + 1)).unwrap_err();
    assert!(matches!(error, SnapshotError::NotDurable { .. }), "{error}");
    history.sync().unwrap();
    history.publish(stage(E1 + 1)).unwrap();
    assert!(disk.0.borrow().content("/data/version-2/snapshot.100000001").is_some());
    assert!(matches!(
        SnapshotWriter::take(disk.clone(), Path::new(DIR), Zxid(-1)),
        Err(SnapshotError::Label { .. })
    ));
}

/// A few thousand directories that were mistreated at random.
#[test]
fn whatever_is_on_the_disk_is_refused_or_makes_sense() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % u64::try_from(below).unwrap()).unwrap()
    };
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut files = vec![
            ("snapshot.0".to_owned(), SNAPSHOT.to_vec()),
            ("snapshot.100000002".to_owned(), SNAPSHOT.to_vec()),
            ("log.100000001".to_owned(), log(&[E1 + 1, E1 + 2, E1 + 3])),
            ("log.100000004".to_owned(), log(&[E1 + 4])),
            ("log.200000001".to_owned(), log(&[E2 + 1, E2 + 2, E2 + 3, E2 + 4])),
        ];
        for _ in 0..=random(3) {
            let which = random(files.len());
            let length = files[which].1.len();
            let place = random(length.max(1));
            let bytes = &mut files[which].1;
            match random(7) {
                0 => bytes.truncate(place),
                1 => bytes[place..].fill(0),
                2 => bytes.splice(place..place, [0; 40]).for_each(drop),
                3 => bytes.extend_from_within(place..),
                4 => bytes.resize(length + 600, 0),
                5 => bytes.clear(),
                _ => {
                    bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << (place % 8))
                }
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        if random(4) == 0 {
            files.remove(random(5));
        }
        let named: Vec<_> =
            files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let disk = disk(&named);
        let Ok((mut history, found)) = open(&disk) else {
            refused += 1;
            continue;
        };
        opened += 1;
        let read = zxids(&mut history, found.floor.0, found.last.0);
        assert!(read.iter().all(|zxid| *zxid > found.floor.0 && *zxid <= found.last.0));
        assert!(
            found.snapshot.is_none_or(
                |snapshot| found.floor <= snapshot.label || found.floor.counter().0 == 1
            )
        );
        let window: Vec<_> = found.window.iter().map(|txn| txn.zxid.0).collect();
        assert!(window.ends_with(&read), "{window:x?} {read:x?}");
        drop(history.locate(Zxid(E1 + 1), u64::MAX));
        history.append(&[txn((3 << 32) + 1)]).unwrap();
        history.sync().unwrap();
        assert_eq!(open(&disk).unwrap().1.last.0, (3 << 32) + 1);
    }
    assert!(opened > 500 && refused > 500, "{opened} opened, {refused} refused");
}
