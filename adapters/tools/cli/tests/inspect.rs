//! Files on disk as the command shows them: those of a Java server, damaged ones, and our own.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Ensemble, lines, quorate, stderr, stdout};
use quorate_storage::record::{FILE_HEADER, encode};
use quorate_tokio::core::txn::{Txn, TxnHeader};
use quorate_tokio::core::zxid::Zxid;
use serde_json::Value;
use tempfile::TempDir;

/// What a server of ZooKeeper 3.8 has written.
fn java(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/storage/tests/golden").join(name)
}

const LOG: &str = "log.100000001";
const SNAPSHOTS: [&str; 3] = ["snapshot.0", "snapshot.10000000c", "snapshot.100000018"];

/// Its data directory.
fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("version-2");
    fs::create_dir(&inner).unwrap();
    for name in SNAPSHOTS.into_iter().chain([LOG]) {
        fs::copy(java(name), inner.join(name)).unwrap();
    }
    for epoch in ["acceptedEpoch", "currentEpoch"] {
        fs::write(inner.join(epoch), "2").unwrap();
    }
    dir
}

fn show<'a>(words: [&'a str; 2], path: &'a Path) -> [&'a std::ffi::OsStr; 3] {
    [words[0].as_ref(), words[1].as_ref(), path.as_ref()]
}

/// The lines of JSON that `words` write about `path`, and the exit code.
fn json(words: [&str; 2], path: &Path) -> (Option<i32>, Vec<Value>) {
    let output = quorate(show(words, path).into_iter().chain(["--json".as_ref()]));
    (output.status.code(), lines(&output))
}

/// A copy whose bytes were changed.
fn changed(file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(file.file_name().unwrap());
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

#[test]
fn a_java_servers_log_is_shown_as_its_own_tool_shows_it() {
    let (code, lines) = json(["log", "dump"], &java(LOG));
    assert_eq!(code, Some(0));
    let expected = fs::read_to_string(java("log.100000001.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let expected = expected["records"].as_array().unwrap();
    let (end, records) = lines.split_last().unwrap();
    assert_eq!(records.len(), expected.len());
    for (record, expected) in records.iter().zip(expected) {
        assert_eq!(record["event"], "record");
        assert_eq!(record["offset"], expected["offset"]);
        let header = &expected["decoded"]["hdr"];
        for (ours, theirs) in [
            ("zxid", "zxid"),
            ("session", "clientId"),
            ("cxid", "cxid"),
            ("time_ms", "time"),
            ("kind", "type"),
            ("op", "op"),
        ] {
            assert_eq!(record[ours], header[theirs], "{record}");
        }
        assert_eq!(record["path"], expected["decoded"]["txn"]["path"], "{record}");
        assert!(record.get("malformed").is_none(), "{record}");
    }
    assert_eq!((&end["event"], &end["ending"]), (&"end".into(), &"padding".into()));
    assert_eq!(end["records"], expected.len());

    let output = quorate(show(["log", "dump"], &java(LOG)));
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert_eq!(text.lines().count(), expected.len() + 3);
    assert!(text.contains("setData /a \"world2\" version 1\n"), "{text}");
}

#[test]
fn a_damaged_record_is_named_and_those_behind_it_are_shown() {
    let (_dir, path) = changed(&java(LOG), |bytes| bytes[120] ^= 1);
    let (code, lines) = json(["log", "dump"], &path);
    assert_eq!(code, Some(1));
    let damaged: Vec<_> = lines.iter().filter(|line| line["event"] == "damaged").collect();
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0]["offset"], 77);
    assert!(damaged[0]["problem"].as_str().unwrap().contains("checksum"));
    assert_eq!(lines.len(), 27, "all 26 records and the end");

    let output = quorate(show(["log", "dump"], &path));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("        77  DAMAGED: its checksum is"),
        "{}",
        stdout(&output)
    );
    assert!(stderr(&output).ends_with("1 damaged record(s)\n"), "{}", stderr(&output));
}

#[test]
fn a_record_that_a_crash_cut_short_is_no_damage() {
    let (_dir, path) = changed(&java(LOG), |bytes| bytes.truncate(2290));
    let (code, lines) = json(["log", "dump"], &path);
    assert_eq!(code, Some(0));
    let end = lines.last().unwrap();
    assert_eq!((&end["ending"], &end["offset"]), (&"torn".into(), &2198.into()));
}

#[test]
fn a_java_servers_snapshots_are_shown_node_by_node() {
    for (name, nodes, sessions) in
        SNAPSHOTS.into_iter().zip([(4, 0), (8, 1), (10, 0)]).map(|(name, (n, s))| (name, n, s))
    {
        let (code, lines) = json(["snapshot", "dump"], &java(name));
        assert_eq!(code, Some(0), "{name}");
        let header = &lines[0];
        assert_eq!(header["state"], "data_tree", "{name}");
        assert_eq!(header["zxid"], format!("0x{}", name.strip_prefix("snapshot.").unwrap()));
        assert_eq!((&header["nodes"], &header["sessions"]), (&nodes.into(), &sessions.into()));
        let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
        assert_eq!((count("node"), count("session")), (nodes, sessions), "{name}");
    }
    let (_, lines) = json(["snapshot", "dump"], &java("snapshot.100000018"));
    assert_eq!(lines[0]["computed_digest"], lines[0]["digest"]["digest"], "ZooKeeper's own digest");
    let a = lines.iter().find(|line| line["path"] == "/a").unwrap();
    assert_eq!(
        (&a["data"], &a["version"], &a["mzxid"]),
        (&"four".into(), &3.into(), &"0x10000000d".into())
    );
    let output = quorate(show(["snapshot", "dump"], &java("snapshot.100000018")));
    assert!(stdout(&output).contains("a data tree of 10 nodes, 0 sessions\n"));
    assert!(stdout(&output).contains("       3  /a \"four\"\n"), "{}", stdout(&output));
}

#[test]
fn a_damaged_snapshot_is_shown_as_far_as_it_goes() {
    let file = java("snapshot.100000018");
    // In the data of a node: only the seal tells.
    let at = fs::read(&file).unwrap().windows(4).position(|bytes| bytes == b"four").unwrap();
    let (_dir, path) = changed(&file, |bytes| bytes[at] ^= 1);
    let (code, lines) = json(["snapshot", "dump"], &path);
    assert_eq!(code, Some(1));
    assert_eq!(lines.iter().filter(|line| line["event"] == "node").count(), 10);
    let last = lines.last().unwrap();
    assert_eq!(last["event"], "damaged");
    assert!(last["problem"].as_str().unwrap().contains("seal"), "{last}");

    // Cut short: there is no tree to show.
    for length in [17, 100, 1200] {
        let (_dir, path) = changed(&file, |bytes| bytes.truncate(length));
        let output = quorate(show(["snapshot", "dump"], &path));
        assert_eq!(output.status.code(), Some(1), "{length}");
        assert!(stdout(&output).contains("DAMAGED: "), "{length}: {}", stdout(&output));
    }
}

/// What stands around the state of an application of ours, whose bytes only it understands.
#[test]
fn a_snapshot_of_an_application_of_its_own_is_summarised() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, body: &[u8]| {
        let mut bytes = b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
        bytes.extend(body);
        let (mut a, mut b) = (1_u64, 0_u64);
        for byte in &bytes {
            a = (a + u64::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        bytes.extend((b << 16 | a).to_be_bytes());
        bytes.extend(b"\0\0\0\x01/");
        fs::write(dir.path().join(name), bytes).unwrap();
        dir.path().join(name)
    };
    let framed = write("snapshot.5", b"\0\0\0\x03abc\0\0\0\x02de\0\0\0\0");
    let (code, lines) = json(["snapshot", "dump"], &framed);
    assert_eq!((code, &lines[0]["state"]), (Some(0), &"application".into()));
    let output = quorate(show(["snapshot", "dump"], &framed));
    assert!(stdout(&output).contains("an application of its own, 5 bytes"), "{}", stdout(&output));

    let other = write("snapshot.6", b"something else altogether");
    let (code, lines) = json(["snapshot", "dump"], &other);
    assert_eq!((code, &lines[0]["state"]), (Some(0), &"unknown".into()));
    assert_eq!(lines[0]["body_bytes"], 25);
}

#[test]
fn a_sound_directory_is_sound() {
    let dir = directory();
    for path in [dir.path(), &dir.path().join("version-2")] {
        let (code, lines) = json(["log", "check"], path);
        assert_eq!(code, Some(0), "{lines:?}");
        let report = &lines[0];
        assert_eq!((&report["sound"], &report["in_use"]), (&true.into(), &false.into()));
        assert_eq!(report["last"], "0x200000002");
        assert_eq!(report["accepted_epoch"], 2);
        assert_eq!(report["snapshots"].as_array().unwrap().len(), 3);
        assert_eq!(report["logs"][0]["records"], 26);
        assert!(report["findings"].as_array().unwrap().is_empty());
    }
    let output = quorate(show(["log", "check"], dir.path()));
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).ends_with("to 0x200000002\n"), "{}", stdout(&output));
}

/// A thing to do to a directory, what is said of it, and the exit code.
type Mishap = (fn(&Path), &'static str, i32);

#[test]
fn what_is_wrong_with_a_directory_is_found_and_what_a_start_repairs_is_told_apart() {
    let mishaps: [Mishap; 6] = [
        (
            |inner| {
                let mut bytes = fs::read(inner.join(LOG)).unwrap();
                bytes[120] ^= 1;
                fs::write(inner.join(LOG), bytes).unwrap();
            },
            "offset 77: the record is damaged",
            1,
        ),
        (
            |inner| {
                // The first of epoch 2 is taken out as if it had never been there.
                let mut bytes = fs::read(inner.join(LOG)).unwrap();
                bytes.drain(2137..2198);
                fs::write(inner.join(LOG), bytes).unwrap();
            },
            "transaction 0x200000002 follows 0x100000018",
            1,
        ),
        (|inner| fs::write(inner.join("currentEpoch"), "9").unwrap(), "acceptedEpoch is only 2", 1),
        (
            |inner| {
                for name in SNAPSHOTS {
                    fs::remove_file(inner.join(name)).unwrap();
                }
            },
            "no snapshot",
            1,
        ),
        (
            |inner| {
                let bytes = fs::read(inner.join(LOG)).unwrap();
                fs::write(inner.join(LOG), &bytes[..2290]).unwrap();
            },
            "was not written to its end; a start cuts it off",
            0,
        ),
        (|inner| fs::remove_file(inner.join("currentEpoch")).unwrap(), "a start takes", 0),
    ];
    for (mishap, expected, code) in mishaps {
        let dir = directory();
        mishap(&dir.path().join("version-2"));
        let output = quorate(show(["log", "check"], dir.path()));
        assert_eq!(output.status.code(), Some(code), "{expected}: {}", stdout(&output));
        assert!(stdout(&output).contains(expected), "{expected}: {}", stdout(&output));
        let (json_code, lines) = json(["log", "check"], dir.path());
        assert_eq!(json_code, Some(code));
        let finding = &lines[0]["findings"][0];
        assert_eq!(finding["severity"], if code == 0 { "repaired" } else { "error" });
        assert_eq!(lines[0]["sound"], code == 0);
    }
}

#[test]
fn logs_in_a_directory_of_their_own_are_found() {
    let (dir, logs) = (directory(), tempfile::tempdir().unwrap());
    fs::create_dir(logs.path().join("version-2")).unwrap();
    let from = dir.path().join("version-2").join(LOG);
    fs::rename(from, logs.path().join("version-2").join(LOG)).unwrap();
    let output = quorate(
        show(["log", "check"], dir.path())
            .into_iter()
            .chain(["--data-log-dir".as_ref(), logs.path().as_os_str()]),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains(LOG));
}

#[test]
fn the_directory_of_a_running_server_is_read_without_disturbing_it() {
    let ensemble = Ensemble::new(&["participant"], "");
    let server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let (code, lines) = json(["log", "check"], &ensemble.dir.path().join("1"));
    assert_eq!(code, Some(0), "{lines:?}");
    assert_eq!((&lines[0]["in_use"], &lines[0]["pid"]), (&true.into(), &server.child.id().into()));
    let snapshot = ensemble.dir.path().join("1/version-2/snapshot.0");
    let (code, lines) = json(["snapshot", "dump"], &snapshot);
    assert_eq!((code, &lines[0]["state"]), (Some(0), &"data_tree".into()));
    assert_eq!(ensemble.led(), 1);
}

#[test]
fn what_is_no_such_file_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "a text that is long enough to have a header\n").unwrap();
    let missing = dir.path().join("missing");
    for (words, path, expected) in [
        (["log", "dump"], &text, "is no transaction log"),
        (["snapshot", "dump"], &text, "is no snapshot"),
        (["log", "dump"], &missing, "cannot open"),
        (["snapshot", "dump"], &missing, "cannot open"),
        (["log", "check"], &missing, "cannot list"),
        (["log", "dump"], &dir.path().to_owned(), "cannot"),
        (["snapshot", "dump"], &dir.path().to_owned(), "cannot"),
    ] {
        let output = quorate(show(words, path));
        assert_eq!(output.status.code(), Some(1), "{words:?} {}", path.display());
        let said = stderr(&output);
        assert!(said.lines().count() == 1 && said.contains(expected), "{words:?}: {said}");
        assert!(stdout(&output).is_empty(), "{words:?}: {}", stdout(&output));
    }
    for words in [["log", "dump"], ["log", "undump"], ["snapshot", "check"]] {
        assert_eq!(quorate(words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn a_record_beyond_the_default_is_damage_unless_the_raised_limit_is_told() {
    let header = TxnHeader { client: 7, cxid: 1, time: 1_700_000_000_000, kind: 5 };
    let txn = Txn { zxid: Zxid(0x1_0000_0001), header, body: vec![7; 3 << 20].into() };
    let mut bytes = FILE_HEADER.to_vec();
    encode(&txn, &mut bytes);
    let dir = directory();
    let path = dir.path().join("version-2").join(LOG);
    fs::write(&path, bytes).unwrap();
    for (act, path) in [("dump", path.as_path()), ("check", dir.path())] {
        let refused = quorate(show(["log", act], path));
        assert_eq!(refused.status.code(), Some(1));
        assert!(stdout(&refused).contains("jute.maxbuffer"), "{}", stdout(&refused));
        let raised = ["--longest".as_ref(), "8388608".as_ref()];
        let told = quorate(show(["log", act], path).into_iter().chain(raised));
        assert!(!stdout(&told).contains("jute.maxbuffer"), "{}", stdout(&told));
    }
}
