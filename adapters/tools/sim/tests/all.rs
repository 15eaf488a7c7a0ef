//! The tests of this directory in one program: linked once, and what waits in one waits beside the others.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod campaign;
mod clients;
mod crash_points;
mod examples;
mod generation;
mod histories_of_accidents;
mod hostile;
mod lessons;
mod liveness;
mod memberships;
mod mixed;
mod power_cuts;
mod recipes;
mod stores;
mod traces;
mod worked_examples;

#[test]
fn every_file_of_tests_is_here() {
    let here = include_str!("all.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let known =
            ["all", "scenarios"].contains(&name) || here.contains(&format!("\nmod {name};\n"));
        assert!(
            known || path.extension().is_none_or(|kind| kind != "rs"),
            "{name} is not in all.rs"
        );
    }
}
