//! The first page of the crate shows the whole boundary: every event and every output, in the order of their enums, and
//! nothing that is not there.

const PAGE: &str = include_str!("../src/lib.rs");
const README: &str = include_str!("../README.md");

/// The variants of a public enum.
fn variants<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let (_, body) = source.split_once(&format!("pub enum {name} {{\n")).unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants =
        variants.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    variants.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap()).collect()
}

/// The rows of the page's table that link to variants of an enum.
fn rows<'a>(module: &str, name: &str) -> Vec<&'a str> {
    let begin = format!("]({module}::{name}::");
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("//! | [`"));
    let rows = rows.filter(|row| row.contains(&begin)).map(|row| row.split_once('`').unwrap());
    rows.map(|(variant, rest)| {
        assert!(rest.starts_with(&format!("{begin}{variant}) | ")), "{variant}: {rest}");
        variant
    })
    .collect()
}

#[test]
fn every_event_and_every_output_is_in_the_table() {
    let events = variants(include_str!("../src/input.rs"), "Event");
    assert!(events.len() > 20 && events.contains(&"Tick"));
    assert_eq!(rows("input", "Event"), events);
    let outputs = variants(include_str!("../src/output.rs"), "Output");
    assert!(outputs.len() > 20 && outputs.contains(&"Halt"));
    assert_eq!(rows("output", "Output"), outputs);
}

/// Both pages say it in the same words.
#[test]
fn the_rule_for_a_driver_is_one_sentence() {
    let rule = |page: &str| {
        let page = page.lines().map(|line| line.trim_start_matches("//!").trim());
        let page = page.collect::<Vec<_>>().join(" ");
        let (_, rule) = page.split_once("The whole rule for a driver: **").unwrap();
        rule.split_once("**").unwrap().0.to_owned()
    };
    assert_eq!(rule(PAGE), rule(README));
}
