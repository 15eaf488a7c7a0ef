//! Files that ZooKeeper 3.8.0 wrote: read, compared field by field, and written again byte for byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use bytes::Bytes;
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use quorate_storage::Disk;
use quorate_storage::record::{self, Found, PREFIX_BYTES};
use quorate_storage::segments::{Dirs, SegmentOptions, Segments};
use quorate_storage::snapshot::{
    self, Compression, Digest, Parts, SnapshotError, SnapshotFile, SnapshotReader, SnapshotWriter,
};
use quorate_storage::sync_mark;
use serde_json::Value;
use tempfile::TempDir;

const LOG: &[u8] = include_bytes!("golden/log.100000001");
/// Where its last record ends.
const LOG_ENDS: usize = 2299;
const SNAPSHOTS: [i64; 3] = [0, 0x1_0000_000c, 0x1_0000_0018];

fn golden(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap()
}

fn told(name: &str) -> Value {
    serde_json::from_slice(&golden(&format!("{name}.json"))).unwrap()
}

fn hex(value: &Value) -> i64 {
    i64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// The records of the captured log, with their offsets.
fn records() -> Vec<(usize, Txn)> {
    let (mut offset, mut found) = (16, Vec::new());
    while let Found::Record(record) = record::decode(&LOG[offset..], record::TXN_BYTES_MAX) {
        let start = offset + PREFIX_BYTES;
        let txn = Bytes::from_static(&LOG[start..start + record.txn_bytes]);
        let txn = Txn::decode(txn).unwrap();
        assert_eq!(txn.zxid, record.zxid);
        found.push((offset, txn));
        offset += record.len();
    }
    assert_eq!(offset as u64, told("log.100000001")["padding_starts_at"].as_u64().unwrap());
    found
}

fn txns() -> Vec<Txn> {
    records().into_iter().map(|(_, txn)| txn).collect()
}

fn directory(names: &[&str]) -> (TempDir, Dirs) {
    let dir = TempDir::new().unwrap();
    for name in names {
        fs::write(dir.path().join(name), golden(name)).unwrap();
    }
    let dirs = Dirs::one(dir.path());
    (dir, dirs)
}

#[test]
fn every_record_of_the_log_says_what_zookeeper_meant() {
    let told = told("log.100000001");
    let told = told["records"].as_array().unwrap();
    let found = records();
    assert_eq!(found.len(), told.len());
    for ((offset, txn), told) in found.iter().zip(told) {
        assert_eq!(*offset as u64, told["offset"].as_u64().unwrap());
        assert_eq!(txn.len() as u64, told["length"].as_u64().unwrap());
        let header = &told["decoded"]["hdr"];
        assert_eq!(txn.zxid.0, hex(&header["zxid"]));
        assert_eq!(txn.header.client, hex(&header["clientId"]));
        assert_eq!(i64::from(txn.header.cxid), header["cxid"].as_i64().unwrap());
        assert_eq!(txn.header.time, header["time"].as_i64().unwrap());
        assert_eq!(i64::from(txn.header.kind), header["type"].as_i64().unwrap());
        let checksum = &LOG[*offset..offset + 8];
        assert_eq!(i64::from_be_bytes(checksum.try_into().unwrap()), hex(&told["adler32"]));
        let mut again = Vec::new();
        record::encode(txn, &mut again);
        assert_eq!(again, LOG[*offset..offset + txn.len() + record::OVERHEAD]);
    }
}

/// The captured server preallocated 4 KiB at a time.
#[test]
fn the_log_is_written_again_byte_for_byte() {
    for batch in [1, 5, 1000] {
        let (dir, dirs) = directory(&["snapshot.0"]);
        let options = SegmentOptions { preallocate: 4096, ..SegmentOptions::default() };
        let (mut history, _) = Segments::open(Disk, dirs, options).unwrap();
        for txns in txns().chunks(batch) {
            history.append(txns).unwrap();
            history.sync().unwrap();
        }
        let written = fs::read(dir.path().join("log.100000001")).unwrap();
        assert!(written[..LOG_ENDS] == LOG[..LOG_ENDS], "batches of {batch}");
        // Behind it a Java server finds what ends a log, and never gets to our marks.
        let [marks, _] = sync_mark::slots(written.len() as u64).unwrap();
        let room = &written[LOG_ENDS..usize::try_from(marks).unwrap()];
        assert!(room.len() >= 4096 && room.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_directory_of_a_java_server_opens() {
    let (dir, dirs) =
        directory(&["snapshot.0", "snapshot.10000000c", "snapshot.100000018", "log.100000001"]);
    let (mut history, opened) =
        Segments::open(Disk, dirs.clone(), SegmentOptions::default()).unwrap();
    assert_eq!(opened.snapshot.unwrap().label, Zxid(0x1_0000_0018));
    assert_eq!((opened.last, opened.floor), (Zxid(0x2_0000_0002), Zxid(0x1_0000_0001)));
    assert_eq!(opened.window, txns());
    // It goes on in a file of its own, as a Java server does.
    let mut next = txns().pop().unwrap();
    next.zxid = Zxid(0x2_0000_0003);
    history.append(&[next.clone()]).unwrap();
    history.sync().unwrap();
    assert!(fs::read(dir.path().join("log.100000001")).unwrap() == LOG);
    drop(history);
    let (mut history, opened) = Segments::open(Disk, dirs, SegmentOptions::default()).unwrap();
    assert_eq!(opened.last, next.zxid);
    let mut reader = history.read(opened.floor, opened.last).unwrap();
    let mut found = Vec::new();
    while let Some(chunk) = reader.next_chunk(300).unwrap() {
        assert!(chunk.records().len() <= 300);
        found.extend(chunk.txns());
    }
    assert_eq!(found[..], [&txns()[1..], &[next]].concat());
}

fn body_of(label: i64) -> (Vec<u8>, Parts, Vec<u8>) {
    let name = format!("snapshot.{label:x}");
    let (bytes, told) = (golden(&name), told(&name));
    let end = usize::try_from(told["body_ends_at"].as_u64().unwrap()).unwrap();
    let digest = Digest {
        zxid: Zxid(hex(&told["digest"]["zxid"])),
        version: i32::try_from(told["digest"]["version"].as_i64().unwrap()).unwrap(),
        digest: told["digest"]["digest"].as_i64().unwrap(),
    };
    let body = bytes[16..end].to_vec();
    (bytes, Parts { digest: Some(digest), last_zxid: None }, body)
}

fn file(dir: &TempDir, name: &str) -> SnapshotFile {
    let all = snapshot::list(&Disk, dir.path()).unwrap();
    all.into_iter().find(|file| file.path.ends_with(name)).unwrap()
}

fn read(file: &SnapshotFile, body: usize) -> Result<(Vec<u8>, Parts), SnapshotError> {
    let mut reader = SnapshotReader::open(Disk, file)?;
    let mut found = vec![0; body];
    // What ends early is found to do so by `finish` as well.
    drop(reader.read_exact(&mut found));
    Ok((found, reader.finish()?))
}

#[test]
fn snapshots_are_read_and_written_again_byte_for_byte() {
    for label in SNAPSHOTS {
        let name = format!("snapshot.{label:x}");
        let (dir, dirs) = directory(&[&name]);
        let (bytes, parts, body) = body_of(label);
        let found = read(&file(&dir, &name), body.len()).unwrap();
        assert_eq!(found, (body.clone(), parts));
        let mut writer = SnapshotWriter::take(Disk, dir.path(), Zxid(label)).unwrap();
        writer.write_all(&body).unwrap();
        let staged = writer.finish(parts).unwrap();
        let (mut history, _) = Segments::open(Disk, dirs, SegmentOptions::default()).unwrap();
        // Opening removed what was not published; nothing is lost by that.
        assert!(history.publish(staged).is_err());
        let (mut history, _) =
            Segments::open(Disk, Dirs::one(dir.path()), SegmentOptions::default()).unwrap();
        let mut writer = SnapshotWriter::take(Disk, dir.path(), Zxid(label)).unwrap();
        writer.write_all(&body).unwrap();
        history.publish(writer.finish(parts).unwrap()).unwrap();
        assert_eq!(fs::read(dir.path().join(&name)).unwrap(), bytes);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn the_parts_of_all_versions_are_read() {
    let digest = Digest { zxid: Zxid(5), version: 2, digest: -7 };
    for parts in [
        Parts::default(),
        Parts { digest: Some(digest), last_zxid: None },
        Parts { digest: Some(digest), last_zxid: Some(Zxid(6)) },
        Parts { digest: None, last_zxid: Some(Zxid(6)) },
    ] {
        let (dir, dirs) = directory(&["snapshot.0"]);
        let (mut history, _) = Segments::open(Disk, dirs, SegmentOptions::default()).unwrap();
        let mut writer = SnapshotWriter::take(Disk, dir.path(), Zxid(0)).unwrap();
        writer.write_all(b"body").unwrap();
        history.publish(writer.finish(parts).unwrap()).unwrap();
        assert_eq!(read(&file(&dir, "snapshot.0"), 4).unwrap(), (b"body".to_vec(), parts));
        // An application that reads too little or too much is told.
        for wrong in [0, 3, 5, 12, 17] {
            read(&file(&dir, "snapshot.0"), wrong).unwrap_err();
        }
        // Who does not know the application finds out as well.
        let found = snapshot::inspect(Disk, &file(&dir, "snapshot.0")).unwrap();
        assert_eq!((found.body_bytes, found.parts), (4, parts));
    }
}

#[test]
fn snapshots_compressed_with_gzip_are_read() {
    let (bytes, parts, body) = body_of(0x1_0000_0018);
    let (dir, dirs) = directory(&[]);
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(&bytes).unwrap();
    fs::write(dir.path().join("snapshot.100000018.gz"), encoder.finish().unwrap()).unwrap();
    let gz = file(&dir, "snapshot.100000018.gz");
    assert_eq!(gz.compression, Compression::Gzip);
    assert!(snapshot::looks_whole(&Disk, &gz).unwrap());
    assert_eq!(read(&gz, body.len()).unwrap(), (body, parts));
    let (_, opened) = Segments::open(Disk, dirs, SegmentOptions::default()).unwrap();
    assert_eq!((opened.last, opened.snapshot), (Zxid(0x1_0000_0018), Some(gz)));
}

/// As snappy-java compresses the snapshot of that label.
const SNAPPY: &str = "snapshot.100000018.snappy";

#[test]
fn snapshots_compressed_with_snappy_are_read() {
    let (_, parts, body) = body_of(0x1_0000_0018);
    let (dir, dirs) = directory(&[SNAPPY]);
    let snappy = file(&dir, SNAPPY);
    assert_eq!(snappy.compression, Compression::Snappy);
    assert!(snapshot::looks_whole(&Disk, &snappy).unwrap());
    let found = snapshot::inspect(Disk, &snappy).unwrap();
    assert_eq!((found.body_bytes, found.parts), (body.len() as u64, parts));
    assert_eq!(read(&snappy, body.len()).unwrap(), (body, parts));
    let (_, opened) = Segments::open(Disk, dirs, SegmentOptions::default()).unwrap();
    assert_eq!((opened.last, opened.snapshot), (Zxid(0x1_0000_0018), Some(snappy)));
}

#[test]
fn a_snappy_snapshot_with_any_byte_wrong_or_any_byte_missing_is_refused_by_name() {
    let (dir, _) = directory(&[SNAPPY]);
    let (bytes, good) = (golden(SNAPPY), file(&dir, SNAPPY));
    let (_, _, body) = body_of(0x1_0000_0018);
    for place in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[place] ^= 1 << (place % 8);
        fs::write(&good.path, &wrong).unwrap();
        match read(&good, body.len()) {
            Err(error) => assert!(error.to_string().contains(SNAPPY), "{error}"),
            // The version of what wrote it may be newer, and a copy may be of the same bytes elsewhere.
            Ok((found, _)) => assert!((8..12).contains(&place) || found == body, "{place}"),
        }
    }
    for length in 0..bytes.len() {
        fs::write(&good.path, &bytes[..length]).unwrap();
        let error = read(&good, body.len()).unwrap_err().to_string();
        assert!(error.contains(SNAPPY) && error.contains("ends too early"), "{length}: {error}");
    }
}

#[test]
fn files_of_all_compressions_go_in_the_order_of_their_labels() {
    let (dir, dirs) = directory(&["snapshot.0", "snapshot.10000000c", SNAPPY]);
    fs::write(dir.path().join("snapshot.100000017.gz"), b"\x1f\x8b and more").unwrap();
    let (history, opened) = Segments::open(Disk, dirs.clone(), SegmentOptions::default()).unwrap();
    assert_eq!(opened.snapshot.unwrap().path, dir.path().join(SNAPPY));
    drop(history);
    let before = |label| {
        let options = SegmentOptions { snapshot_before: Some(label), ..SegmentOptions::default() };
        Segments::open(Disk, dirs.clone(), options).map(|(_, opened)| opened.snapshot)
    };
    // No log leads from the next older one to what was acknowledged.
    let error = before(Zxid(0x1_0000_0018)).unwrap_err().to_string();
    assert!(error.contains("0x100000017"), "{error}");
    fs::write(dir.path().join("log.100000001"), LOG).unwrap();
    let older = before(Zxid(0x1_0000_0017)).unwrap().unwrap();
    assert_eq!(older.label, Zxid(0x1_0000_000c));

    fs::copy(dir.path().join(SNAPPY), dir.path().join("snapshot.5.snappy")).unwrap();
    let (mut history, _) = Segments::open(Disk, dirs.clone(), SegmentOptions::default()).unwrap();
    assert_eq!(history.purge(3, 100).unwrap().snapshots, 2);
    let left = snapshot::list(&Disk, dir.path()).unwrap();
    let left: Vec<_> = left.iter().map(|file| file.label.0 & 0xff).collect();
    assert_eq!(left, [0x18, 0x17, 0xc]);
}

#[test]
fn a_snapshot_with_any_byte_wrong_or_any_byte_missing_is_refused() {
    let (bytes, _, body) = body_of(0x1_0000_0018);
    let (dir, _) = directory(&["snapshot.100000018"]);
    let good = file(&dir, "snapshot.100000018");
    for place in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(&good.path, &bytes).unwrap();
        read(&good, body.len()).unwrap_err();
    }
    for length in 0..bytes.len() {
        fs::write(&good.path, &bytes[..length]).unwrap();
        let whole = snapshot::looks_whole(&Disk, &good).unwrap();
        match read(&good, body.len()) {
            // Up to the first seal it is what an older server would have written.
            Ok(_) => assert!(length == 16 + body.len() + 13 && whole),
            // A body that ends with the string "/" looks like a seal from behind.
            Err(_) => assert!(!whole || length == 16 + body.len(), "{length}"),
        }
    }
}
