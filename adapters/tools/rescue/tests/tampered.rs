//! Archives whose manifest and entries do not fit together: each is refused when it is opened, before a byte is restored.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use quorate_rescue::archive::Archive;
use quorate_rescue::backup;
use quorate_rescue::restore::{Target, restore};
use tar::{EntryType, Header};
use tempfile::TempDir;

use crate::support::{LOG, contents, directory, source};

/// An entry: its name, of which kind it is, and its bytes.
type Entry = (String, EntryType, Vec<u8>);

/// A backup, with something done to its entries, the first of which is the manifest.
fn tampered(change: impl FnOnce(&mut Vec<Entry>)) -> (TempDir, PathBuf) {
    let (dir, out) = (directory(), tempfile::tempdir().unwrap());
    let file = out.path().join("backup.tar");
    backup::take(&source(&dir), &file, None).unwrap();
    let length = fs::metadata(&file).unwrap().len();
    let mut entries = Vec::new();
    for entry in tar::Archive::new(fs::File::open(&file).unwrap()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        entries.push((name, EntryType::Regular, bytes));
    }
    change(&mut entries);
    let mut tar = tar::Builder::new(fs::File::create(&file).unwrap());
    for (name, kind, bytes) in entries {
        let mut header = Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, &bytes[..]).unwrap();
    }
    let written = tar.into_inner().unwrap();
    // Zeros, as tar ends.
    written.set_len(written.metadata().unwrap().len().max(length)).unwrap();
    (out, file)
}

/// A text in the manifest in place of another one, as long.
fn edit(entries: &mut [Entry], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let text = String::from_utf8(entries[0].2.clone()).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    entries[0].2 = text.replacen(from, to, 1).into_bytes();
}

fn refused(file: &Path, what: &str) -> String {
    Archive::open(file).map(|_| ()).expect_err(what).to_string()
}

#[test]
fn an_archive_that_was_only_written_again_is_the_same() {
    let (_out, file) = tampered(|_| ());
    Archive::open(&file).unwrap().verify().unwrap();
}

#[test]
fn a_snapshot_whose_name_leads_into_another_directory_is_refused() {
    let (_out, file) = tampered(|entries| {
        let name = entries[1].0.clone();
        // As long as before, so that all else fits.
        let other = format!("a/snapshot.{}", &name["snapshot.".len() + 2..]);
        edit(entries, &format!("\"{name}\""), &format!("\"{other}\""));
        entries[1].0 = other;
    });
    let said = refused(&file, "a name with a slash");
    assert!(said.contains("is no snapshot"), "{said}");
}

#[test]
fn logs_out_of_their_order_are_refused() {
    let (_out, file) = tampered(|entries| {
        let log = entries.iter().find(|entry| entry.0 == LOG).unwrap().clone();
        let text = String::from_utf8(entries[0].2.clone()).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        let parts = manifest["parts"].as_array_mut().unwrap();
        let again = parts.last().unwrap().clone();
        parts.push(again);
        entries[0].2 = serde_json::to_vec_pretty(&manifest).unwrap();
        entries.push(log);
    });
    let said = refused(&file, "the same log twice");
    assert!(said.contains("not in its place"), "{said}");
}

#[test]
fn entries_that_are_not_what_the_manifest_has_there_are_refused() {
    let (_out, file) = tampered(|entries| drop(entries.pop()));
    let said = refused(&file, "the last one is not there");
    assert!(said.contains(&format!("{LOG} is missing")), "{said}");

    let (_out, file) = tampered(|entries| entries[1].1 = EntryType::Symlink);
    let said = refused(&file, "a link");
    assert!(said.contains("in its place"), "{said}");

    // As many blocks, and a byte less.
    let (_out, file) = tampered(|entries| {
        entries[2].2.pop();
    });
    let said = refused(&file, "shorter than it should be");
    assert!(said.contains("in its place"), "{said}");
}

/// The file system takes the directory, and not what is written first into it.
#[test]
fn what_was_begun_is_removed_when_the_rest_cannot_be_written() {
    let (out, file) = tampered(|_| ());
    let mut logs = out.path().to_owned();
    while logs.as_os_str().len() < PATH_BYTES_MAX - 220 {
        logs.push("d".repeat(200));
    }
    logs.push("d".repeat(PATH_BYTES_MAX - 10 - logs.as_os_str().len()));
    let data = out.path().join("data");
    let target =
        Target { data_dir: data.clone(), data_log_dir: Some(logs), id: 1, epoch_above: None };
    let error = restore(&Archive::open(&file).unwrap(), &target).unwrap_err();
    assert!(error.to_string().contains("cannot create the directory"), "{error}");
    assert_eq!(contents(&data), []);
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
}

/// Of Linux.
const PATH_BYTES_MAX: usize = 4096;
