//! A data directory is looked at without being changed: what is well is said to be well, and whatever is
//! wrong is named by file and place.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::support::{Forgetful, State};
use bytes::Bytes;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::check::{Finding, Problem, Report, Severity, check, check_on};
use quorate_storage::dump::{Dump, DumpError, Ending, Entry};
use quorate_storage::record::{self, Damage};
use quorate_storage::segments::SegmentOptions;
use quorate_storage::snapshot::{self, Parts, SnapshotFile, SnapshotWriter};
use quorate_storage::{Disk, Files, Log, OpenOptions};
use tempfile::TempDir;

const E1: i64 = 1 << 32;
const E2: i64 = 2 << 32;
const MAX: usize = 1024;

fn txn(zxid: i64) -> Txn {
    let header = TxnHeader { client: 1, cxid: 2, time: zxid, kind: 1 };
    Txn { zxid: Zxid(zxid), header, body: Bytes::from_static(b"some bytes") }
}

fn log(zxids: &[i64]) -> Vec<u8> {
    let mut bytes = record::FILE_HEADER.to_vec();
    zxids.iter().for_each(|zxid| record::encode(&txn(*zxid), &mut bytes));
    bytes
}

/// A snapshot that is whole.
fn snapshot() -> Vec<u8> {
    let disk = Forgetful::default();
    let mut writer = SnapshotWriter::take(disk.clone(), Path::new("/"), Zxid(0)).unwrap();
    writer.write_all(b"a state").unwrap();
    let digest = snapshot::Digest { zxid: Zxid(1), version: 2, digest: 3 };
    writer.finish(Parts { digest: Some(digest), last_zxid: Some(Zxid(1)) }).unwrap();
    let names = disk.names(Path::new("/")).unwrap().unwrap();
    disk.read(&Path::new("/").join(&names[0]), 1000).unwrap().unwrap()
}

fn disk(files: &[(&str, &[u8])]) -> Forgetful {
    let mut state = State::default();
    for (name, bytes) in files {
        state.put(Path::new("/data/version-2").join(name), bytes);
    }
    Forgetful::new(state)
}

fn looked_at(disk: &Forgetful) -> Report {
    let before = disk.0.borrow().clone();
    let report = check_on(disk.clone(), "/data".as_ref(), None, MAX).unwrap();
    let after = disk.0.borrow();
    assert_eq!(after.steps, before.steps, "nothing is changed");
    report
}

fn report(files: &[(&str, &[u8])]) -> Report {
    looked_at(&disk(files))
}

fn open(disk: &Forgetful) -> Result<Zxid, quorate_storage::LogError> {
    let history = SegmentOptions { preallocate: 0, txn_bytes_max: MAX, ..Default::default() };
    let options = OpenOptions { segments: history, ..OpenOptions::default() };
    Ok(Log::open_on(disk.clone(), "/data", options)?.1.durable.last_zxid)
}

/// The one finding, as it is shown.
fn only(report: &Report) -> (Severity, String) {
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    (finding.severity, finding.to_string())
}

#[test]
fn a_directory_of_a_java_server_is_sound() {
    let dir = TempDir::new().unwrap();
    let version = dir.path().join("version-2");
    fs::create_dir(&version).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for name in ["snapshot.0", "snapshot.10000000c", "snapshot.100000018", "log.100000001"] {
        fs::copy(golden.join(name), version.join(name)).unwrap();
    }
    fs::write(version.join("acceptedEpoch"), "2").unwrap();
    fs::write(version.join("currentEpoch"), "2").unwrap();
    let report = check(dir.path(), None).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!((report.accepted_epoch, report.current_epoch), (Some(Epoch(2)), Some(Epoch(2))));
    assert_eq!((report.last, report.floor), (Zxid(E2 + 2), Zxid(E1 + 1)));
    assert_eq!(report.holder, None);
    let [log] = &report.logs[..] else { panic!("{:?}", report.logs) };
    assert_eq!((log.records, log.first, log.last), (26, Some(Zxid(E1 + 1)), Some(Zxid(E2 + 2))));
    assert_eq!((log.bytes, log.end), (8208, 2299));
    let labels: Vec<_> = report.snapshots.iter().map(|line| line.file.label.0).collect();
    assert_eq!(labels, [E1 + 0x18, E1 + 0xc, 0]);
    let told = fs::read(golden.join("snapshot.100000018.json")).unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    let content = report.snapshots[0].content.unwrap();
    assert_eq!(content.body_bytes + 16, told["body_ends_at"].as_u64().unwrap());
    assert_eq!(content.parts.digest.unwrap().digest, told["digest"]["digest"].as_i64().unwrap());
}

#[test]
fn a_directory_in_use_says_by_whom_and_one_that_is_not_there_is_an_error() {
    let dir = TempDir::new().unwrap();
    let error = check(dir.path(), None).unwrap_err().to_string();
    assert!(error.starts_with("cannot list ") && error.contains("version-2: "), "{error}");
    let (log, _) = Log::open(dir.path(), OpenOptions::default()).unwrap();
    let report = check(dir.path(), None).unwrap();
    assert_eq!(report.holder.unwrap().pid, Some(std::process::id()));
    assert!(report.is_sound());
    drop(log);
    assert_eq!(check(dir.path(), None).unwrap().holder, None);
    Log::open(dir.path(), OpenOptions::default()).unwrap();
}

#[test]
fn each_thing_that_can_be_wrong_is_named() {
    let s = snapshot();
    let e: [(&str, &[u8]); 2] = [("acceptedEpoch", b"2"), ("currentEpoch", b"2")];
    let with = |files: &[(&str, &[u8])]| only(&report(&[&e[..], files].concat()));
    let whole = log(&[E1 + 1, E1 + 2, E2 + 1]);
    let torn = &log(&[E1 + 1, E1 + 2, E1 + 3])[..16 + 2 * 55 + 54];
    let mut wrong = whole.clone();
    wrong[100] ^= 1;
    let mut length = whole.clone();
    length[16 + 55 + 8] ^= 0x40;
    let at = |name: &str, rest: &str| format!("/data/version-2/{name}{rest}");
    for (files, severity, expected) in [
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", torn)],
            Severity::Repaired,
            at("log.100000001", ", offset 126: 54 bytes are there of what was not written"),
        ),
        (
            vec![
                ("snapshot.0", &s[..]),
                ("log.100000001", torn),
                ("log.100000003", &log(&[E1 + 3])),
            ],
            Severity::Note,
            at("log.100000001", ", offset 126: the last record was not written to its end; the"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", &wrong)],
            Severity::Error,
            at("log.100000001", ", offset 71: the record is damaged: its checksum is "),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", &length)],
            Severity::Error,
            at("log.100000001", ", offset 71: the record is damaged: its length is given as "),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", b"text, and not a log")],
            Severity::Error,
            at("log.100000001", ", offset 0: it is no transaction log: it begins with [74"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", &whole), ("log.200000002", b"")],
            Severity::Repaired,
            at("log.200000002", ", offset 0: it has no record: its creation was interrupted"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", &log(&[E1 + 1, E1 + 3]))],
            Severity::Error,
            at("log.100000001", ", offset 71: transaction 0x100000003 follows 0x100000001; those"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000001", &log(&[E1 + 1, E1 + 1]))],
            Severity::Error,
            at("log.100000001", ", offset 71: transaction 0x100000001 stands behind 0x100000001"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.200000001", &log(&[E1 + 1]))],
            Severity::Error,
            at("log.200000001", ", offset 16: it begins with transaction 0x100000001"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.100000002", &log(&[E1 + 2]))],
            Severity::Error,
            at("log.100000002", ", offset 16: transaction 0x100000002 follows 0x0; those between"),
        ),
        (
            vec![("snapshot.100000005", &s[..]), ("log.100000001", &log(&[E1 + 1, E1 + 5]))],
            Severity::Note,
            at(
                "log.100000001",
                ", offset 71: transaction 0x100000005 follows 0x100000001; the newest",
            ),
        ),
        (
            vec![("snapshot.100000005", &s[..]), ("log.100000001", &whole[..126])],
            Severity::Repaired,
            at("", ": the log ends with 0x100000002, before the newest snapshot of 0x100000005"),
        ),
        (
            vec![("log.100000001", &whole[..])],
            Severity::Error,
            at("", ": there is a transaction log and no snapshot"),
        ),
        (
            vec![
                ("snapshot.0", &s[..]),
                ("snapshot.100000002", &s[..30]),
                ("log.100000001", &whole),
            ],
            Severity::Error,
            at("snapshot.100000002", ": the seal at offset 17 of the snapshot "),
        ),
        (
            vec![
                ("snapshot.0", &s[..]),
                ("snapshot.100000002", &s[..20]),
                ("log.100000001", &whole),
            ],
            Severity::Error,
            at("snapshot.100000002", ": the snapshot "),
        ),
        (
            vec![
                ("snapshot.0", &s[..]),
                ("log.200000001", &log(&[E2 + 1])),
                ("staged.log.1", b"x"),
            ],
            Severity::Repaired,
            at("staged.log.1", ": an interrupted write left it behind"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("currentEpoch.tmp", b"3")],
            Severity::Repaired,
            at("currentEpoch.tmp", ": an interrupted write left it behind"),
        ),
        (
            vec![("snapshot.0", &s[..]), ("log.300000001", &log(&[3 << 32 | 1]))],
            Severity::Error,
            at("acceptedEpoch", ": it is 2, but the last transaction is 0x300000001"),
        ),
        (
            vec![("snapshot.200000002", &s[..]), ("log.200000000", &log(&[E2, E2 + 1, E2 + 2]))],
            Severity::Error,
            at(
                "log.200000000",
                ", offset 16: no leader gives a transaction the number 0x200000000",
            ),
        ),
        (
            vec![("snapshot.0", &s[..]), ("quorate.install", b"nonsense")],
            Severity::Error,
            at("", ": /data/version-2/quorate.install does not name the files of a history"),
        ),
    ] {
        let (found, text) = with(&files);
        let text = text.replace("/data/version-2/:", "/data/version-2:");
        let expected = expected.replace("/data/version-2/:", "/data/version-2:");
        assert!(text.starts_with(&expected) && found == severity, "{found:?} {text}\n{expected}");
        // What a start would refuse is an error here.
        let disk = disk(&[&e[..], &files].concat());
        if open(&disk).is_err() {
            assert_eq!(severity, Severity::Error, "{text}");
        }
    }
}

/// Another epoch behind a torn record: nobody knows how much is missing.
#[test]
fn the_run_without_a_hole_begins_where_a_start_says() {
    let s = snapshot();
    let torn = &log(&[E1 + 1, E1 + 2])[..16 + 55 + 50];
    let second = log(&[E2 + 1, E2 + 2]);
    for (first, floor) in [(torn, E2 + 1), (&log(&[E1 + 1, E1 + 2]), 0)] {
        let files: [(&str, &[u8]); 3] =
            [("snapshot.0", &s), ("log.100000001", first), ("log.200000001", &second)];
        let report = report(&files);
        assert_eq!((report.floor, report.last), (Zxid(floor), Zxid(E2 + 2)));
        let (log, found) = Log::open_on(
            disk(&files),
            "/data",
            OpenOptions {
                segments: SegmentOptions { txn_bytes_max: MAX, ..Default::default() },
                ..OpenOptions::default()
            },
        )
        .unwrap();
        assert_eq!(found.durable.floor, report.floor);
        drop(log);
    }
}

#[test]
fn epoch_files_are_compared_with_the_history() {
    let s = snapshot();
    let whole = log(&[E1 + 1, E2 + 1]);
    let texts = |accepted: Option<&str>, current: Option<&str>| {
        let mut files = vec![("snapshot.0", &s[..]), ("log.100000001", &whole[..])];
        files.extend(accepted.map(|text| ("acceptedEpoch", text.as_bytes())));
        files.extend(current.map(|text| ("currentEpoch", text.as_bytes())));
        let report = report(&files);
        let told =
            report.findings.iter().map(|finding| format!("{:?} {finding}", finding.severity));
        told.collect::<Vec<_>>().join("; ").replace("/data/version-2/", "")
    };
    assert_eq!(texts(Some("2"), Some("2")), "");
    assert_eq!(
        texts(Some("2"), Some("1")),
        "Repaired currentEpoch: it is 1, but the last transaction is 0x200000001: a \
         synchronisation was interrupted; a start sets it"
    );
    assert_eq!(
        texts(Some("2"), None),
        "Repaired currentEpoch: it is missing; a start takes the epoch of the last transaction, 2"
    );
    assert_eq!(
        texts(Some("2"), Some("3")),
        "Error currentEpoch: it is 3, but acceptedEpoch is only 2"
    );
    assert_eq!(
        texts(Some("1"), Some("1")),
        "Error acceptedEpoch: it is 1, but the last transaction is 0x200000001"
    );
    assert_eq!(
        texts(Some("two"), Some("-1")),
        "Error acceptedEpoch: it should hold a number and holds \"two\"; Error currentEpoch: the \
         epoch -1 is not between 0 and 2147483647"
    );
}

#[test]
fn a_history_that_is_being_installed_is_looked_at_where_it_is() {
    let s = snapshot();
    let marker: &[u8] = b"snapshot.200000000\nlog.200000001\n";
    let staged = log(&[E2 + 1, E2 + 2]);
    let files: Vec<(&str, &[u8])> = vec![
        ("acceptedEpoch", b"2"),
        ("currentEpoch", b"1"),
        ("quorate.install", marker),
        ("staged.snapshot.200000000", &s),
        ("staged.log.200000001", &staged),
        // The old history is whatever it is.
        ("snapshot.0", b"gone"),
        ("log.100000007", b"gone"),
    ];
    let found = report(&files);
    let severities: Vec<_> = found.findings.iter().map(|finding| finding.severity).collect();
    assert_eq!(severities, [Severity::Repaired, Severity::Repaired], "{:?}", found.findings);
    assert_eq!((found.last, found.floor), (Zxid(E2 + 2), Zxid(E2)));
    assert_eq!((found.logs.len(), found.snapshots.len()), (1, 1));
    assert_eq!(open(&disk(&files)).unwrap(), Zxid(E2 + 2));
}

fn small() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("acceptedEpoch", b"2".to_vec()),
        ("currentEpoch", b"2".to_vec()),
        ("snapshot.0", snapshot()),
        ("snapshot.100000002", snapshot()),
        ("log.100000001", log(&[E1 + 1, E1 + 2, E1 + 3])),
        ("log.200000001", log(&[E2 + 1, E2 + 2])),
    ]
}

fn borrowed<'a>(files: &'a [(&'static str, Vec<u8>)]) -> Vec<(&'static str, &'a [u8])> {
    files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect()
}

#[test]
fn any_bit_that_is_wrong_in_a_log_or_a_snapshot_is_found() {
    for which in 2..6 {
        let length = small()[which].1.len();
        for bit in 0..length * 8 {
            let mut files = small();
            let (name, bytes) = &mut files[which];
            bytes[bit / 8] ^= 1 << (bit % 8);
            let name = *name;
            let disk = disk(&borrowed(&files));
            let report = looked_at(&disk);
            let named = |finding: &Finding| {
                finding.severity == Severity::Error && finding.path.ends_with(name)
            };
            assert!(report.findings.iter().any(named), "{name}, bit {bit}: {:?}", report.findings);
            // A start refuses it as well, or does not need it.
            let opened = open(&disk);
            if name.starts_with("log.") {
                opened.unwrap_err();
            } else {
                assert_eq!(opened.unwrap(), Zxid(E2 + 2));
            }
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_repaired_or_refused_but_never_passed_over() {
    for which in 2..6 {
        let length = small()[which].1.len();
        for cut in 0..length {
            let mut files = small();
            let (name, bytes) = &mut files[which];
            bytes.truncate(cut);
            let name = *name;
            let at_boundary = cut >= 16 + 55 && (cut - 16) % 55 == 0;
            let disk = disk(&borrowed(&files));
            let report = looked_at(&disk);
            let named = |severity| {
                let mut found = report.findings.iter();
                found.any(|f| f.severity == severity && f.path.ends_with(name))
            };
            let opened = open(&disk);
            match name {
                "log.200000001" => {
                    assert!(report.is_sound() && (at_boundary || named(Severity::Repaired)));
                    assert_eq!(opened.unwrap(), report.last, "cut at {cut}");
                }
                // What follows is of another epoch: nobody knows how much is missing, except where the
                // snapshot has it.
                "log.100000001" if at_boundary => {
                    assert!(report.is_sound(), "cut at {cut}: {:?}", report.findings);
                    opened.unwrap();
                }
                "log.100000001" => {
                    assert!(!report.findings.is_empty(), "cut at {cut}");
                    assert_eq!(opened.unwrap(), report.last, "cut at {cut}");
                }
                // Without its last parts it is what an older server writes.
                _ if [36, 69].contains(&cut) => assert!(report.is_sound()),
                _ => {
                    assert!(named(Severity::Error), "{name} cut at {cut}: {:?}", report.findings);
                    opened.unwrap();
                }
            }
        }
    }
}

/// A few thousand directories that were mistreated at random: what a start refuses is never said to be
/// sound, and what is sound is opened as it was said to be.
#[test]
fn what_a_start_refuses_is_never_sound() {
    let mut seed = 0x1234_5678_9abc_def1_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % u64::try_from(below).unwrap()).unwrap()
    };
    let (mut refused, mut sound) = (0, 0);
    for _ in 0..3000 {
        let mut files = small();
        for _ in 0..=random(2) {
            let which = random(files.len());
            let length = files[which].1.len();
            let place = random(length.max(1));
            let bytes = &mut files[which].1;
            match random(8) {
                0 => bytes.truncate(place),
                1 => bytes[place..].fill(0),
                2 => bytes.splice(place..place, [0; 40]).for_each(drop),
                3 => bytes.extend_from_within(place..),
                4 => bytes.resize(length + 600, 0),
                5 => bytes.clear(),
                6 => drop(files.remove(which)),
                _ => {
                    bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << (place % 8))
                }
            }
        }
        let disk = disk(&borrowed(&files));
        let report = looked_at(&disk);
        match open(&disk) {
            Err(error) => {
                refused += 1;
                assert!(!report.is_sound(), "{error}");
            }
            Ok(last) if report.is_sound() => {
                sound += 1;
                assert_eq!(last, report.last, "{:?}", report.findings);
            }
            Ok(_) => {}
        }
    }
    assert!(refused > 300 && sound > 300, "{refused} refused, {sound} sound");
}

#[test]
fn a_log_file_is_shown_record_by_record_also_behind_a_damaged_one() {
    let mut bytes = log(&[E1 + 1, E1 + 2, E1 + 3]);
    bytes[16 + 55 + 12 + 32] ^= 1;
    bytes.extend_from_slice(&[0; 100]);
    let disk = disk(&[("log.100000001", &bytes)]);
    let path = Path::new("/data/version-2/log.100000001");
    let entries: Vec<_> = Dump::open_on(disk, path, MAX).unwrap().map(Result::unwrap).collect();
    let mut damaged = txn(E1 + 2);
    damaged.body = Bytes::from_static(b"rome bytes");
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[0], Entry::Record { offset: 16, txn: txn(E1 + 1) });
    let Entry::Damaged { offset: 71, damage: Damage::Checksum { .. }, txn: found } = &entries[1]
    else {
        panic!("{:?}", entries[1])
    };
    assert_eq!(found.as_ref(), Some(&damaged));
    assert_eq!(entries[2], Entry::Record { offset: 126, txn: txn(E1 + 3) });
    assert_eq!(entries[3], Entry::End { offset: 181, ending: Ending::Padding { bytes: 100 } });
}

#[test]
fn the_end_of_a_log_file_is_shown_as_it_is() {
    let whole = log(&[E1 + 1, E1 + 2]);
    let path = Path::new("/data/version-2/log.100000001");
    let end = |bytes: &[u8]| {
        let disk = disk(&[("log.100000001", bytes)]);
        let dump = Dump::open_on(disk, path, MAX).unwrap();
        dump.map(Result::unwrap).last().unwrap()
    };
    assert_eq!(end(&whole), Entry::End { offset: 126, ending: Ending::Padding { bytes: 0 } });
    let torn = Ending::Torn { bytes: 50 };
    assert_eq!(end(&whole[..121]), Entry::End { offset: 71, ending: torn });
    assert_eq!(end(&whole[..5]), Entry::End { offset: 0, ending: Ending::Torn { bytes: 5 } });
    let mut hidden = whole;
    hidden[16 + 54] = b'C';
    let broken = Ending::Broken(Damage::Frame);
    assert_eq!(end(&hidden), Entry::End { offset: 16, ending: broken });
    let disk = disk(&[("log.100000001", b"something else")]);
    let error = Dump::open_on(disk, path, MAX).unwrap_err();
    assert!(matches!(error, DumpError::Corrupt(_)), "{error}");
}

#[test]
fn a_file_that_may_only_be_read_is_shown() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log.100000001");
    fs::write(&path, log(&[E1 + 1])).unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    assert_eq!(Dump::open(&path, MAX).unwrap().count(), 2);
    let snapshot_path = dir.path().join("snapshot.100000001");
    fs::write(&snapshot_path, snapshot()).unwrap();
    let file = SnapshotFile::at(&snapshot_path).unwrap();
    assert_eq!(file.label, Zxid(E1 + 1));
    assert_eq!(snapshot::inspect(Disk, &file).unwrap().body_bytes, 7);
    assert_eq!(SnapshotFile::at(&path), None);
}

#[test]
fn problems_are_told_apart_by_type() {
    let report = report(&[("snapshot.0", &snapshot()), ("log.100000001", &log(&[E1 + 1])[..60])]);
    let kinds: Vec<_> = report.findings.iter().map(|finding| &finding.problem).collect();
    assert!(
        matches!(
            kinds[..],
            [Problem::NoRecord, Problem::EpochMissing(Epoch(0)), Problem::EpochMissing(_)]
        ),
        "{kinds:?}"
    );
}
