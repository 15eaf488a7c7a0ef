//! The tests of this directory in one program: linked once, and what waits in one waits beside the others.
#![allow(clippy::unwrap_used, reason = "tests; what they share is not marked as such")]

mod audit;
mod between;
mod bounds;
mod clients;
mod containers;
mod costs;
mod ensemble;
mod examples;
mod expiry;
mod framing;
mod growth;
mod handshakes;
mod hostile;
mod logins;
mod operations;
mod orders;
mod permissions;
mod quotas;
mod rewatches;
mod servers;
mod sessions;
mod stand;
mod stopping;
mod support;
mod throttles;
mod watches;
mod wire;
mod words;

#[test]
fn every_file_of_tests_is_here() {
    let here = include_str!("all.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let known = ["all"].contains(&name) || here.contains(&format!("\nmod {name};\n"));
        assert!(
            known || path.extension().is_none_or(|kind| kind != "rs"),
            "{name} is not in all.rs"
        );
    }
}
