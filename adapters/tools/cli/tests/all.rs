//! The tests of this directory in one program: linked once, and what waits in one waits beside the others.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

mod admin;
mod alone;
mod audit;
mod bench;
mod client;
mod common;
mod compressed;
mod control;
mod demo;
mod descriptors;
mod doctor;
mod elect;
mod exposed;
mod guide;
#[cfg(feature = "tls")]
mod https;
mod inspect;
mod logs;
mod migrate;
mod packages;
mod peer_tls;
mod play;
mod probe;
mod reconfig;
mod rescue;
mod secrets;
mod serve;
mod shipped;
mod sim;
mod timeline;
mod tls;

#[test]
fn every_file_of_tests_is_here() {
    let here = include_str!("all.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let known = ["all", "clients", "traces"].contains(&name)
            || here.contains(&format!("\nmod {name};\n"));
        assert!(
            known || path.extension().is_none_or(|kind| kind != "rs"),
            "{name} is not in all.rs"
        );
    }
}
