//! Backups of a Java server's directory: round trips, cuts, damage, and what refuses.

use std::fs;
use std::path::Path;

use quorate_core::zxid::{Epoch, Zxid};
use quorate_rescue::archive::{Archive, ArchiveError, Malformed};
use quorate_rescue::backup::{self, BackupError};
use quorate_rescue::history::{self, HistoryError};
use quorate_rescue::manifest::Manifest;
use quorate_rescue::restore::{RestoreError, Target, restore};
use quorate_rescue::source::Source;
use quorate_storage::Disk;
use quorate_storage::segments::Dirs;
use tempfile::TempDir;

use crate::support::{LOG, SNAPSHOTS, contents, directory, golden, source};

/// What the digest of that server was after its last transaction.
const LAST: Zxid = Zxid(0x2_0000_0002);

fn target(dir: &Path) -> Target {
    Target { data_dir: dir.to_owned(), data_log_dir: None, id: 7, epoch_above: None }
}

/// A backup of that directory.
fn backup() -> (TempDir, std::path::PathBuf, Manifest) {
    let (dir, out) = (directory(), tempfile::tempdir().unwrap());
    let file = out.path().join("backup.tar");
    let manifest = backup::take(&source(&dir), &file, Some(LAST)).unwrap();
    (out, file, manifest)
}

#[test]
fn a_java_servers_directory_comes_back_with_the_same_digest() {
    let dir = directory();
    let before = history::load(&Disk, &Dirs::of(dir.path(), None), 1 << 20).unwrap().state;
    let (out, file, manifest) = backup();
    assert_eq!((manifest.zxid.as_str(), manifest.epoch, manifest.nodes), ("0x200000002", 2, 11));
    assert_eq!((manifest.source_id, manifest.current_epoch), (Some(1), Some(2)));
    let names: Vec<_> = manifest.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(
        names,
        ["snapshot.100000018", LOG],
        "the newest snapshot, and the log from before it"
    );

    let to = out.path().join("restored");
    let restored = restore(&Archive::open(&file).unwrap(), &target(&to)).unwrap();
    assert_eq!(restored.epoch, Epoch(2));
    let after = history::load(&Disk, &Dirs::of(&to, None), 1 << 20).unwrap().state;
    assert_eq!(after, before);
    let inner = to.join("version-2");
    let log = fs::read(inner.join(LOG)).unwrap();
    assert_eq!(log, fs::read(golden(LOG)).unwrap()[..log.len()], "through its last record");
    assert_eq!(fs::read_to_string(to.join("myid")).unwrap(), "7\n");
    for epoch in ["acceptedEpoch", "currentEpoch"] {
        assert_eq!(fs::read_to_string(inner.join(epoch)).unwrap(), "2");
    }
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn the_log_in_a_directory_of_its_own_comes_back_into_one() {
    let (dir, logs, out) =
        (directory(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(logs.path().join("version-2")).unwrap();
    let moved = logs.path().join("version-2").join(LOG);
    fs::rename(dir.path().join("version-2").join(LOG), moved).unwrap();
    let from = Source { data_log_dir: Some(logs.path().to_owned()), ..source(&dir) };
    let file = out.path().join("backup.tar");
    backup::take(&from, &file, None).unwrap();
    let (data, log) = (out.path().join("data"), out.path().join("log"));
    let to = Target { data_log_dir: Some(log.clone()), ..target(&data) };
    restore(&Archive::open(&file).unwrap(), &to).unwrap();
    assert!(log.join("version-2").join(LOG).exists());
    assert!(!data.join("version-2").join(LOG).exists());
    let found = history::load(&Disk, &Dirs::of(&data, Some(&log)), 1 << 20).unwrap();
    assert_eq!(found.state.zxid, LAST);
}

#[test]
fn a_log_that_grows_is_cut_at_its_last_whole_record() {
    let whole = fs::read(golden(LOG)).unwrap();
    for (length, last) in [(2290, 0x2_0000_0001), (2150, 0x1_0000_0018), (40, 0x1_0000_0018)] {
        let (dir, out) = (directory(), tempfile::tempdir().unwrap());
        fs::write(dir.path().join("version-2").join(LOG), &whole[..length]).unwrap();
        let manifest = backup::take(&source(&dir), &out.path().join("f"), None).unwrap();
        assert_eq!(manifest.zxid, Zxid(last).to_string(), "{length}");
        let log = manifest.parts.iter().find(|part| part.name == LOG).map_or(0, |part| part.bytes);
        assert!(log < length as u64, "{log} of {length}: half a record is none");
        Archive::open(out.path().join("f")).unwrap().verify().unwrap();
    }
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
    let (dir, out) = (directory(), tempfile::tempdir().unwrap());
    let newest = dir.path().join("version-2").join(SNAPSHOTS[2]);
    let bytes = fs::read(&newest).unwrap();
    fs::write(&newest, &bytes[..bytes.len() - 1]).unwrap();
    let manifest = backup::take(&source(&dir), &out.path().join("f"), None).unwrap();
    assert_eq!(manifest.parts[0].name, SNAPSHOTS[1]);
    assert_eq!(manifest.digest, backup().2.digest, "it leads to the same state");
}

#[test]
fn a_directory_that_may_have_lost_transactions_is_refused_by_name_and_the_old_backup_stays() {
    let (out, file, _) = backup();
    let old = fs::read(&file).unwrap();
    let refuse = |change: &dyn Fn(&Path), expected: &str| {
        let dir = directory();
        change(&dir.path().join("version-2"));
        let error = backup::take(&source(&dir), &file, None).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(fs::read(&file).unwrap(), old);
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    };
    let edit = |inner: &Path, change: fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(inner.join(LOG)).unwrap();
        change(&mut bytes);
        fs::write(inner.join(LOG), bytes).unwrap();
    };
    refuse(
        &|inner| edit(inner, |bytes| bytes[120] ^= 1),
        "offset 77, after 0x100000001: the record is damaged",
    );
    refuse(
        &|inner| edit(inner, |bytes| drop(bytes.drain(2137..2198))),
        "follows 0x100000018; those",
    );
    let no_snapshot = |inner: &Path| {
        SNAPSHOTS.iter().for_each(|name| fs::remove_file(inner.join(name)).unwrap());
    };
    refuse(&no_snapshot, "there is no snapshot");
}

#[test]
fn a_backup_that_is_too_old_is_not_written() {
    let (dir, out) = (directory(), tempfile::tempdir().unwrap());
    let file = out.path().join("f");
    let error = backup::take(&source(&dir), &file, Some(Zxid(LAST.0 + 1))).unwrap_err();
    assert!(matches!(error, BackupError::TooOld { last: LAST, .. }), "{error}");
    assert!(!file.exists());
}

/// Its directory is then the one where the command was typed.
#[test]
fn a_backup_may_be_named_without_a_directory() {
    let dir = directory();
    let name = format!("a-backup-{}.tar", std::process::id());
    let taken = backup::take(&source(&dir), Path::new(&name), None);
    let removed = fs::remove_file(&name);
    assert_eq!(taken.unwrap().zxid, LAST.to_string());
    removed.unwrap();
}

/// Every length of the tar but the whole one: at the manifest, at each boundary, within each part, in the padding and
/// tar's own end.
#[test]
fn a_backup_cut_short_anywhere_is_named_and_nothing_is_restored() {
    let (out, file, manifest) = backup();
    let whole = fs::read(&file).unwrap();
    let to = out.path().join("restored");
    let mut lengths: Vec<_> = (0..whole.len()).step_by(512).flat_map(|at| [at, at + 1]).collect();
    lengths.extend([511, 700, whole.len() - 1024, whole.len() - 1]);
    for length in lengths.into_iter().filter(|length| *length < whole.len()) {
        fs::write(&file, &whole[..length]).unwrap();
        let error = Archive::open(&file).unwrap_err();
        let named = matches!(error, ArchiveError::Manifest { .. } | ArchiveError::Length { .. });
        assert!(named, "{length}: {error}");
        assert!(error.to_string().contains("cut short"), "{length}: {error}");
    }
    fs::write(&file, [whole.as_slice(), b"x"].concat()).unwrap();
    assert!(matches!(Archive::open(&file), Err(ArchiveError::Length { .. })));
    assert!(!to.exists());
    fs::write(&file, &whole).unwrap();
    assert_eq!(Archive::open(&file).unwrap().manifest(), &manifest);
}

#[test]
fn one_wrong_bit_in_a_part_is_named_before_anything_is_written() {
    let (out, file, manifest) = backup();
    let whole = fs::read(&file).unwrap();
    let to = out.path().join("restored");
    for part in &manifest.parts {
        let name = part.name.as_bytes();
        let header = whole.windows(name.len()).rposition(|bytes| bytes == name).unwrap();
        let mut bytes = whole.clone();
        bytes[header + 512 + 30] ^= 1;
        fs::write(&file, bytes).unwrap();
        let error = restore(&Archive::open(&file).unwrap(), &target(&to)).unwrap_err();
        assert!(error.to_string().contains(&format!("{} is damaged", part.name)), "{error}");
        assert!(!to.exists());
    }
}

/// What it says of itself must be what its parts come to.
#[test]
fn a_manifest_that_tells_another_state_is_refused() {
    let (out, file, manifest) = backup();
    let whole = fs::read(&file).unwrap();
    let text = String::from_utf8_lossy(&whole[512..]).into_owned();
    for (what, told) in [
        ("digest of the tree", format!("\"digest\": \"{}", manifest.digest)),
        ("number of nodes", "\"nodes\": 11".to_owned()),
        ("last transaction", "\"zxid\": \"0x200000002".to_owned()),
        ("epoch", "\"epoch\": 2".to_owned()),
        ("number of sessions", format!("\"sessions\": {}", manifest.sessions)),
    ] {
        let at = 512 + text.find(&told).unwrap() + told.len() - 1;
        let mut bytes = whole.clone();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        fs::write(&file, bytes).unwrap();
        let to = out.path().join("restored");
        let error = restore(&Archive::open(&file).unwrap(), &target(&to)).unwrap_err();
        assert!(error.to_string().contains(&format!("the {what} is ")), "{what}: {error}");
        assert!(!to.exists());
    }
}

#[test]
fn what_is_no_backup_of_ours_is_said() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("f");
    for text in ["", "a text", "ZKSN"] {
        fs::write(&file, text).unwrap();
        let error = Archive::open(&file).unwrap_err();
        assert!(error.to_string().contains("is no backup of quorate"), "{error}");
    }
    let (_out, file, _) = backup();
    let whole = fs::read(&file).unwrap();
    let at = whole.windows(11).position(|bytes| bytes == b"\"format\": 1").unwrap();
    for (format, other) in [(9, b'9'), (0, b'0')] {
        let mut changed = whole.clone();
        changed[at + 10] = other;
        fs::write(&file, changed).unwrap();
        let refused = Archive::open(&file).map(drop);
        assert!(
            matches!(refused, Err(ArchiveError::Format { found, .. }) if found == format),
            "{refused:?}"
        );
    }
    // A name that leads out of the directory.
    let mut elsewhere = whole;
    let at = elsewhere.windows(LOG.len()).position(|bytes| bytes == LOG.as_bytes()).unwrap();
    elsewhere[at..at + LOG.len()].copy_from_slice(b"log./../../aa");
    fs::write(&file, elsewhere).unwrap();
    assert!(matches!(Archive::open(&file), Err(ArchiveError::Manifest { .. })));
}

#[test]
fn a_directory_that_is_not_empty_is_left_as_it_is() {
    let (_out, file, _) = backup();
    let archive = Archive::open(&file).unwrap();
    for name in ["myid", "version-2", "anything"] {
        let to = tempfile::tempdir().unwrap();
        fs::write(to.path().join(name), "x").unwrap();
        let before = contents(to.path());
        let error = restore(&archive, &target(to.path())).unwrap_err();
        assert!(matches!(error, RestoreError::NotEmpty { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(contents(to.path()), before);
    }
    // A log directory counts as well.
    let (to, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(logs.path().join("x"), "x").unwrap();
    let both = Target { data_log_dir: Some(logs.path().to_owned()), ..target(to.path()) };
    assert!(matches!(restore(&archive, &both), Err(RestoreError::NotEmpty { .. })));
    assert!(contents(to.path()).is_empty());
    // But not what every new file system has.
    fs::create_dir(to.path().join("lost+found")).unwrap();
    restore(&archive, &target(to.path())).unwrap();
}

#[test]
fn epochs_are_those_of_the_last_transaction_or_as_high_as_told() {
    let (_out, file, _) = backup();
    let archive = Archive::open(&file).unwrap();
    for (above, expected) in [(1, 2), (2, 2), (77, 77)] {
        let to = tempfile::tempdir().unwrap();
        let told = Target { epoch_above: Some(Epoch(above)), ..target(to.path()) };
        assert_eq!(restore(&archive, &told).unwrap().epoch, Epoch(expected));
        let accepted = fs::read_to_string(to.path().join("version-2/acceptedEpoch")).unwrap();
        assert_eq!(accepted, expected.to_string());
    }
    for wrong in [-1, i64::from(i32::MAX), 1 << 40] {
        let to = tempfile::tempdir().unwrap();
        let told = Target { epoch_above: Some(Epoch(wrong)), ..target(to.path()) };
        let refused = restore(&archive, &told);
        assert_eq!(refused.is_err(), wrong > 0, "{wrong}: a lower one changes nothing");
        assert_eq!(contents(to.path()).is_empty(), wrong > 0);
    }
}

/// Of a Java server a snapshot may have effects of transactions that its log does not have yet.
#[test]
fn a_snapshot_that_is_ahead_of_the_log_is_passed_over() {
    let dir = directory();
    let inner = dir.path().join("version-2");
    let bytes = fs::read(inner.join(SNAPSHOTS[2])).unwrap();
    // As if it had been begun at 0x100000012, and the log had been cut before its end.
    fs::remove_file(inner.join(SNAPSHOTS[2])).unwrap();
    fs::write(inner.join("snapshot.100000012"), bytes).unwrap();
    let log = fs::read(inner.join(LOG)).unwrap();
    let found = history::load(&Disk, &Dirs::of(dir.path(), None), 1 << 20).unwrap();
    assert_eq!(found.snapshot.label, Zxid(0x1_0000_0012), "with its log it will do");
    fs::write(inner.join(LOG), &log[..2100]).unwrap();
    let found = history::load(&Disk, &Dirs::of(dir.path(), None), 1 << 20).unwrap();
    assert_eq!(found.snapshot.label, Zxid(0x1_0000_000c));
    fs::remove_file(inner.join(SNAPSHOTS[0])).unwrap();
    fs::remove_file(inner.join(SNAPSHOTS[1])).unwrap();
    let error = history::load(&Disk, &Dirs::of(dir.path(), None), 1 << 20).unwrap_err();
    assert!(matches!(error, HistoryError::Ahead { .. }), "{error}");
}

/// Snapshots are passed over as long as there are others, and what is told is what was wrong with the newest.
#[test]
fn as_many_snapshots_are_passed_over_as_are_damaged() {
    let dir = directory();
    let inner = dir.path().join("version-2");
    let load = || history::load(&Disk, &Dirs::of(dir.path(), None), 1 << 20);
    for (good, name) in [(1, SNAPSHOTS[2]), (0, SNAPSHOTS[1])] {
        let bytes = fs::read(inner.join(name)).unwrap();
        fs::write(inner.join(name), &bytes[..bytes.len() - 1]).unwrap();
        let found = load().unwrap();
        assert!(found.snapshot.path.ends_with(SNAPSHOTS[good]), "{:?}", found.snapshot);
        assert_eq!(found.state.zxid, LAST);
    }
    let bytes = fs::read(inner.join(SNAPSHOTS[0])).unwrap();
    fs::write(inner.join(SNAPSHOTS[0]), &bytes[..bytes.len() - 1]).unwrap();
    let error = load().unwrap_err().to_string();
    assert!(error.contains(SNAPSHOTS[2]), "{error}");
}

/// What clients keep secret is in it.
#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_backup_and_what_is_restored_from_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let (out, file, _) = backup();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    for entry in tar::Archive::new(fs::File::open(&file).unwrap()).entries().unwrap() {
        assert_eq!(entry.unwrap().header().mode().unwrap(), 0o600, "for who unpacks it by hand");
    }
    let to = out.path().join("restored");
    restore(&Archive::open(&file).unwrap(), &target(&to)).unwrap();
    for (name, _) in contents(&to) {
        assert_eq!(mode(&to.join(&name)), 0o600, "{name:?}");
    }
}

/// A length is not believed before there is a name to it, and no more is read than any manifest has.
#[test]
fn a_manifest_that_is_said_to_be_longer_than_any_is_not_read() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("f");
    let mut header = tar::Header::new_gnu();
    header.set_path(Manifest::NAME).unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    fs::write(&file, header.as_bytes()).unwrap();
    let error = Archive::open(&file).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Manifest { problem: Malformed::NoManifest, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("is no backup of quorate"), "{error}");
}

/// A running server cuts its log, and replaces files, at times: what cannot be read is read again.
#[test]
fn a_directory_that_is_not_whole_for_a_moment_is_read_again() {
    let (dir, out) = (directory(), tempfile::tempdir().unwrap());
    let log = dir.path().join("version-2").join(LOG);
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[120] ^= 1;
    fs::write(&log, damaged).unwrap();
    let mended = std::thread::spawn(move || {
        // It has been read once by then, or is read for the first time: both end well.
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::write(&log, whole).unwrap();
    });
    let manifest = backup::take(&source(&dir), &out.path().join("f"), None).unwrap();
    assert_eq!(manifest.zxid, LAST.to_string());
    mended.join().unwrap();
}
