//! What the package's README shows is the example of the crate's documentation, which compiles.

const README: &str = include_str!("../README.md");
const PAGE: &str = include_str!("../src/lib.rs");

/// The example that begins with the crate's own line, without what is not shown.
fn example(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.strip_prefix("//!").unwrap_or(line).trim());
    let begun = lines.skip_while(|line| *line != "use quorate_etcd::{Candidate, Config};");
    begun.take_while(|line| *line != "```").filter(|line| !line.starts_with("# ")).collect()
}

#[test]
fn the_readmes_example_is_the_one_that_compiles() {
    assert!(example(README).len() > 8);
    assert_eq!(example(README), example(PAGE));
}
