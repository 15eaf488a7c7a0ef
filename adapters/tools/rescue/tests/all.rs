//! The tests of this directory in one program.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod archives;
mod digests;
mod support;
mod tampered;
mod verdicts;

#[test]
fn every_file_of_tests_is_here() {
    let here = include_str!("all.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(name == "all" || here.contains(&format!("\nmod {name};\n")), "{name}");
    }
}
