//! Every seeded bug fits the sources as they are: an edit of one that breaks another is told here, in no time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use quorate_seeded::copy::{bugs, seeded};
use quorate_seeded::tree::Tree;

fn workspace() -> Tree {
    Tree::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))).unwrap()
}

#[test]
fn every_seeded_bug_takes_effect() {
    let tree = workspace();
    let copy = seeded(&tree).unwrap_or_else(|errors| panic!("{errors}"));
    assert_ne!(copy.files, tree.files);
    let bugs = bugs(&tree).unwrap();
    assert_eq!(
        bugs.keys().collect::<Vec<_>>(),
        ["keystore", "sasl", "storage", "tls"]
            .map(|name| format!("adapters/server/{name}"))
            .iter()
            .chain([&"core".to_owned()])
            .collect::<Vec<_>>()
    );
    let count: usize = bugs.values().map(Vec::len).sum();
    assert!(count >= 127, "only {count} bugs");
}

#[test]
fn the_sources_themselves_have_no_switches() {
    let tree = workspace();
    let sources = tree.files.keys().filter(|path| path.contains("/src/") && path.ends_with(".rs"));
    for path in sources.filter(|path| !path.starts_with("adapters/tools/seeded/")) {
        assert!(!tree.text(path).unwrap().contains("seeded!("), "{path}");
    }
}
