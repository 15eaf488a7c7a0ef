//! Everything in `seeds`, the handwritten and what fuzzing found to reach code of its own, once more.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use quorate_fuzz::{TARGETS, Target};

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn replay((name, feed): Target) -> usize {
    let files = sorted(&Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name));
    for file in &files {
        let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(catch_unwind(|| feed(&bytes)).is_ok(), "this is the input: {}", file.display());
    }
    assert!(!files.is_empty(), "{name} has no seeds");
    files.len()
}

#[test]
fn all_seeds_hold() {
    let threads: Vec<_> =
        TARGETS.into_iter().map(|target| std::thread::spawn(move || replay(target))).collect();
    let files: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
    assert!(files.iter().all(Result::is_ok), "see above");
}

/// What is fed here is what libFuzzer is handed, and nothing lies in a folder that nobody reads.
#[test]
fn targets_binaries_and_seeds_are_the_same_ones() {
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| PathBuf::from(name)).collect();
    let stems = |dir: &str| -> Vec<PathBuf> {
        let all = sorted(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir));
        all.iter().filter_map(|path| Some(path.file_stem()?.into())).collect()
    };
    assert_eq!(stems("fuzz_targets"), names);
    assert_eq!(stems("seeds"), names);
}
