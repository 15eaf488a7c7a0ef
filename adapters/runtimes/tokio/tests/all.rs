//! The tests of this directory in one program: linked once, and what waits in one waits beside the others.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "how long elections took, and why a test was skipped")]

mod common;
mod conformance;
mod examples;
mod exposed;
mod interop;
mod interop_claims;
mod interop_history;
mod interop_membership;
mod interop_sasl;
mod interop_tls;
mod interop_tls_steps;
mod java;
mod mixed;
mod operator;
mod readme;
#[path = "java/stores.rs"]
mod stores;
#[path = "../../../tools/cli/src/superuser.rs"]
mod superuser; // the command's, against Java servers, which are here

#[test]
fn every_file_of_tests_is_here() {
    let here = include_str!("all.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let known = ["all", "interop_starts", "logged"].contains(&name)
            || here.contains(&format!("\nmod {name};\n"));
        assert!(
            known || path.extension().is_none_or(|kind| kind != "rs"),
            "{name} is not in all.rs"
        );
    }
}
