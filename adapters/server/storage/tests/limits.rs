//! The longest record: what is longer is refused, by a message that names the setting, and is read and written where the
//! limit is raised.

use std::path::Path;

use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_storage::Disk;
use quorate_storage::check::{check, check_on};
use quorate_storage::dump::{Dump, Ending, Entry};
use quorate_storage::segments::{AppendError, Dirs, OpenError, Opened, SegmentOptions, Segments};

/// `jute.maxbuffer` of 4 MiB, and as much again.
const RAISED: usize = 8 << 20;

fn txn(zxid: i64, bytes: usize) -> Txn {
    let header = TxnHeader { client: 7, cxid: 1, time: 1_700_000_000_000, kind: 5 };
    let body = Bytes::from(vec![7; bytes - Txn::HEADER_BYTES]);
    Txn { zxid: Zxid(zxid), header, body }
}

fn open(dir: &Path, txn_bytes_max: usize) -> Result<(Segments, Opened), OpenError> {
    let options = SegmentOptions {
        preallocate: 0,
        txn_bytes_max,
        trust_empty_snapshot: true,
        ..SegmentOptions::default()
    };
    Segments::open(Disk, Dirs::one(dir), options)
}

#[test]
fn a_record_of_3_mib_is_refused_unless_the_limit_is_raised() {
    let most = SegmentOptions::default().txn_bytes_max;
    assert_eq!(most, 2 * 0xf_ffff);
    let data = tempfile::tempdir().unwrap();
    let dir = data.path().join("version-2");
    std::fs::create_dir(&dir).unwrap();
    let (mut segments, _) = open(&dir, most).unwrap();
    let long = txn(0x1_0000_0002, 3 << 20);
    segments.append(&[txn(0x1_0000_0001, most)]).unwrap();
    let error = segments.append(std::slice::from_ref(&long)).unwrap_err();
    assert!(matches!(error, AppendError::TooLong { length: 0x30_0000, .. }), "{error}");
    assert!(error.to_string().contains("jute.maxbuffer"), "{error}");
    assert_eq!(segments.sync().unwrap().through, Zxid(0x1_0000_0001), "nothing of it was written");
    drop(segments);

    let (mut segments, _) = open(&dir, RAISED).unwrap();
    segments.append(&[long.clone(), txn(0x1_0000_0003, 100)]).unwrap();
    segments.sync().unwrap();
    drop(segments);
    let (mut segments, opened) = open(&dir, RAISED).unwrap();
    assert_eq!(opened.last, Zxid(0x1_0000_0003));
    assert_eq!(opened.window[1], long);
    let mut reader = segments.read(Zxid(0x1_0000_0001), Zxid(0x1_0000_0002)).unwrap();
    let chunk = reader.next_chunk(1 << 10).unwrap().unwrap();
    assert_eq!(chunk.txns().collect::<Vec<_>>(), [long]);
    drop(segments);

    let error = open(&dir, most).unwrap_err().to_string();
    assert!(error.contains("3145728") && error.contains("jute.maxbuffer"), "{error}");
    // For people: the same of the whole directory, and of the file.
    assert!(!check(data.path(), None).unwrap().is_sound());
    let report = check_on(Disk, data.path(), None, RAISED).unwrap();
    assert_eq!(report.last, Zxid(0x1_0000_0003));
    let log = |max| Dump::open(dir.join("log.100000002"), max).unwrap().last().unwrap().unwrap();
    assert!(matches!(log(most), Entry::End { ending: Ending::Broken(_), .. }));
    assert!(matches!(log(RAISED), Entry::End { ending: Ending::Padding { .. }, .. }));
}
