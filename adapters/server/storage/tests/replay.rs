//! A history read beside its server: what a start would find, and a refusal where a start refuses.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::path::Path;

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::replay::Replay;
use quorate_storage::segments::{Dirs, SegmentOptions};
use quorate_storage::snapshot::{Parts, SnapshotWriter};
use quorate_storage::{Files, Log, OpenOptions, record};

const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;
const MAX: usize = 1024;

fn log(zxids: &[i64]) -> Vec<u8> {
    let mut bytes = record::FILE_HEADER.to_vec();
    for zxid in zxids {
        let header = TxnHeader { client: 1, cxid: 2, time: *zxid, kind: 1 };
        let body = Bytes::from_static(b"some bytes");
        record::encode(&Txn { zxid: Zxid(*zxid), header, body }, &mut bytes);
    }
    bytes
}

/// A directory with a snapshot of this label, and these log files.
fn directory(label: i64, logs: &[Vec<u8>]) -> Forgetful {
    let disk = Forgetful::default();
    let mut writer = SnapshotWriter::take(disk.clone(), Path::new("/"), Zxid(0)).unwrap();
    writer.write_all(b"a state").unwrap();
    writer.finish(Parts::default()).unwrap();
    let names = disk.names(Path::new("/")).unwrap().unwrap();
    let snapshot = disk.read(&Path::new("/").join(&names[0]), 1000).unwrap().unwrap();
    let mut state = State::default();
    let dir = Path::new("/data/version-2");
    state.put(dir.join(format!("snapshot.{label:x}")), &snapshot);
    state.put(dir.join("acceptedEpoch"), b"9");
    for bytes in logs {
        let first = &bytes[record::FILE_HEADER.len() + record::PREFIX_BYTES + 12..];
        let start = i64::from_be_bytes(first[..8].try_into().unwrap());
        state.put(dir.join(format!("log.{start:x}")), bytes);
    }
    Forgetful::new(state)
}

/// The zxids of what is read, and the files that it is in: where they start, and how long they are.
type Read = (Vec<i64>, Vec<(i64, u64)>);

fn read(disk: &Forgetful, label: i64) -> Result<Read, String> {
    let dirs = Dirs::of(Path::new("/data"), None);
    let steps = disk.0.borrow().steps;
    let read = || {
        let mut replay = Replay::open_on(disk.clone(), &dirs, Zxid(label), MAX)?;
        let mut zxids = Vec::new();
        while let Some(txn) = replay.next_txn()? {
            zxids.push(txn.zxid.0);
        }
        let last = zxids.last().copied().unwrap_or(label);
        assert_eq!(replay.last(), Zxid(last));
        Ok((zxids, replay.parts().iter().map(|part| (part.start.0, part.bytes)).collect()))
    };
    let result = read().map_err(|error: quorate_storage::replay::ReplayError| error.to_string());
    assert_eq!(disk.0.borrow().steps, steps, "nothing is changed");
    result
}

/// The last transaction that a start finds.
fn start(disk: &Forgetful) -> Result<i64, String> {
    let segments = SegmentOptions { preallocate: 0, txn_bytes_max: MAX, ..Default::default() };
    let options = OpenOptions { segments, ..OpenOptions::default() };
    let opened = Log::open_on(disk.clone(), "/data", options);
    opened.map(|(_, found)| found.durable.last_zxid.0).map_err(|error| error.to_string())
}

/// The label, the log files, and what is read of them.
type Case = (i64, Vec<Vec<u8>>, &'static [i64], usize);

#[test]
fn what_is_read_beside_a_server_is_what_its_start_finds() {
    let torn = |zxids: &[i64], bytes: usize| {
        let mut log = log(zxids);
        log.truncate(log.len() - bytes);
        log
    };
    let cases: [Case; 8] = [
        (0, vec![log(&[E1 + 1, E1 + 2])], &[E1 + 1, E1 + 2], 1),
        // From the file before the label; the oldest is not needed.
        (
            E1 + 3,
            vec![log(&[E1 + 1]), log(&[E1 + 2, E1 + 3]), log(&[E1 + 4, E2 + 1])],
            &[E1 + 4, E2 + 1],
            2,
        ),
        (E1 + 1, vec![log(&[E1 + 1])], &[], 1),
        // All of it is in the snapshot, which was sent by a leader.
        (E2 + 7, vec![log(&[E1 + 1, E1 + 2])], &[], 0),
        // The snapshot makes up for what is missing.
        (E1 + 5, vec![log(&[E1 + 1, E1 + 2]), log(&[E1 + 6])], &[E1 + 6], 1),
        // What was being written is not there; nor what was torn where the log goes on.
        (0, vec![torn(&[E1 + 1, E1 + 2], 3)], &[E1 + 1], 1),
        (0, vec![torn(&[E1 + 1, E1 + 2], 3), log(&[E1 + 2])], &[E1 + 1, E1 + 2], 2),
        (0, vec![torn(&[E1 + 1, E1 + 2], 3), log(&[E2 + 1])], &[E1 + 1, E2 + 1], 2),
    ];
    for (label, logs, expected, files) in cases {
        let disk = directory(label, &logs);
        let (zxids, parts) = read(&disk, label).unwrap();
        assert_eq!((zxids.as_slice(), parts.len()), (expected, files), "{label:x} {parts:x?}");
        assert_eq!(start(&disk), Ok(expected.last().copied().unwrap_or(label)), "{label:x}");
    }
}

#[test]
fn what_a_start_refuses_is_refused() {
    let mut damaged = log(&[E1 + 1, E1 + 2]);
    damaged[40] ^= 1;
    let mut buried = log(&[E1 + 1, E1 + 2, E1 + 3]);
    let at = buried.len() * 2 / 3;
    buried[at] = 0;
    let cases: [(i64, Vec<Vec<u8>>, &str); 5] = [
        (0, vec![damaged], "the record is damaged"),
        (0, vec![log(&[E1 + 1, E1 + 3])], "those between are missing"),
        (0, vec![log(&[E1 + 1]), log(&[E1 + 3])], "those between are missing"),
        (E1 + 1, vec![log(&[E1 + 3])], "those between are missing"),
        (0, vec![log(&[E1 + 2, E1 + 1])], "those between are missing"),
    ];
    for (label, logs, expected) in cases {
        let disk = directory(label, &logs);
        let error = read(&disk, label).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(start(&disk).is_err(), "{error}");
    }
    assert!(read(&directory(0, &[buried]), 0).is_err());
}

#[test]
fn a_history_that_is_about_to_be_replaced_is_refused() {
    let disk = directory(0, &[log(&[E1 + 1])]);
    let mut state = disk.0.borrow().clone();
    state.put("/data/version-2/quorate.install", b"whatever");
    assert!(read(&Forgetful::new(state), 0).is_err());
}
