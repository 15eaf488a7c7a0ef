//! Snapshots that a Java server has compressed: shown, and gone on from.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{
    Ensemble, Process, QUORATE, java_is_here, lines, quorate, read, stderr, stdout, until,
};

const NODES: usize = 60;

/// A server in the directory that another has left.
fn successor(of: &Ensemble) -> Ensemble {
    let to = Ensemble::new(&["participant"], "snapshot.compression.method=snappy");
    let files = |ensemble: &Ensemble| ensemble.dir.path().join("1/version-2");
    fs::create_dir(files(&to)).unwrap();
    for file in fs::read_dir(files(of)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), files(&to).join(file.file_name())).unwrap();
    }
    to
}

/// Those compressed with Snappy, the newest first.
fn snapshots(ensemble: &Ensemble) -> Vec<PathBuf> {
    let files = fs::read_dir(ensemble.dir.path().join("1/version-2")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let label = |path: &PathBuf| {
        let label = path.file_name()?.to_str()?.strip_prefix("snapshot.")?;
        i64::from_str_radix(label.strip_suffix(".snappy")?, 16).ok()
    };
    let mut found: Vec<_> = paths.filter_map(|path| Some((label(&path)?, path))).collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn host(ensemble: &Ensemble) -> String {
    format!("127.0.0.1:{}", ensemble.client[0])
}

fn has_all(ensemble: &Ensemble) -> Process {
    let server = ensemble.serve(1);
    ensemble.led();
    let output = quorate(["client", &host(ensemble), "ls", "/"]);
    assert_eq!(stdout(&output).lines().count(), NODES + 1, "{}", stderr(&output));
    server
}

/// A Java server that has compressed at least two snapshots, and has ended.
fn left_by_java() -> Ensemble {
    let ensemble =
        Ensemble::new(&["participant"], "snapshot.compression.method=snappy\nsnapCount=10");
    let mut java = ensemble.java(1);
    ensemble.led();
    let mut client = Command::new(QUORATE)
        .args(["client", &host(&ensemble)])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut typed = client.stdin.take().unwrap();
    for n in 0..NODES {
        writeln!(typed, "create /n{n} {}", "data".repeat(100)).unwrap();
    }
    drop(typed);
    assert!(client.wait().unwrap().success());
    until("compressed snapshots", || (snapshots(&ensemble).len() > 2).then_some(()));
    java.terminate();
    ensemble
}

#[test]
fn a_server_goes_on_from_what_a_java_server_compressed_with_snappy() {
    if !java_is_here() {
        return;
    }
    let java = left_by_java();
    let newest = &snapshots(&java)[0];
    let dumped = quorate(["snapshot", "dump", "--json", newest.to_str().unwrap()]);
    assert_eq!(dumped.status.code(), Some(0), "{}", stderr(&dumped));
    let header = &lines(&dumped)[0];
    assert_eq!((&header["compression"], &header["state"]), (&"snappy".into(), &"data_tree".into()));
    let text = quorate(["snapshot", "dump", newest.to_str().unwrap()]);
    assert!(stdout(&text).contains(" bytes, compressed with snappy\n"), "{}", stdout(&text));

    let ours = successor(&java);
    let data = ours.dir.path().join("1");
    let checked = quorate(["log", "check", data.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(0), "{}{}", stdout(&checked), stderr(&checked));
    let mut server = has_all(&ours);
    assert_eq!(server.terminate(), Some(0));
    let log = read(&ours.log(1));
    assert!(!log.contains("cannot restore"), "{log}");
    assert!(log.contains("snapshots are written as they are; compressed ones are read"), "{log}");
}

#[test]
fn a_damaged_snappy_snapshot_is_named_and_an_older_one_is_taken() {
    if !java_is_here() {
        return;
    }
    let java = left_by_java();
    for (what, damage) in [
        ("ends too early", (|bytes| bytes.truncate(bytes.len() / 2)) as fn(&mut Vec<u8>)),
        // The length of the first block.
        ("a block of a length", |bytes| bytes[16] = 0x7f),
        ("", |bytes| {
            // One bit may make the copy of a repeated text begin elsewhere in it, which is no damage.
            let middle = bytes.len() / 2;
            bytes[middle..][..16].iter_mut().for_each(|byte| *byte ^= 0xff);
        }),
    ] {
        let ours = successor(&java);
        let newest = snapshots(&ours).remove(0);
        let mut bytes = fs::read(&newest).unwrap();
        damage(&mut bytes);
        fs::write(&newest, bytes).unwrap();
        let data = ours.dir.path().join("1");
        let checked = quorate(["log", "check", data.to_str().unwrap()]);
        assert_eq!(checked.status.code(), Some(1), "{}", stdout(&checked));
        let name = newest.file_name().unwrap().to_str().unwrap();
        assert!(stdout(&checked).contains(name), "{}", stdout(&checked));
        let _server = has_all(&ours);
        let log = read(&ours.log(1));
        let line = log.lines().find(|line| line.contains("cannot restore a snapshot")).unwrap();
        assert!(line.contains(name) && line.contains(what), "{line}");
    }
}
