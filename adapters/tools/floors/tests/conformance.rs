//! The pages of `adapters/service/conformance`: what a server promises its clients, each rule with tests that show it.
//! Every test that is named there exists, and has run.
//!
//! ```text
//! - The rule.
//!   - quorate-service `sessions::an_id_is_never_given_out_twice`
//! ```
//!
//! What is not there yet stands below `## Not yet`, without tests.

#![allow(clippy::unwrap_used, reason = "tests; what they share is not marked as such")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A test that a page names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    package: String,
    test: String,
}

/// A page, and the rules in it.
struct Page {
    name: String,
    /// Each rule, with the tests that show it; not those that are not there yet.
    rules: Vec<(String, Vec<Named>)>,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join("adapters/service/conformance")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        pages.push(Page { rules: rules(&name, &fs::read_to_string(&path).unwrap()), name });
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    pages
}

fn rules(page: &str, text: &str) -> Vec<(String, Vec<Named>)> {
    let mut rules: Vec<(String, Vec<Named>)> = Vec::new();
    let mut not_yet = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            not_yet = heading == "Not yet";
        } else if not_yet {
            assert!(
                !line.starts_with("  - "),
                "{page}: what is not there yet has no tests: {line}"
            );
        } else if let Some(rule) = line.strip_prefix("- ") {
            rules.push((rule.to_owned(), Vec::new()));
        } else if let Some(named) = line.strip_prefix("  - ") {
            let test = named.strip_suffix('`').and_then(|named| named.split_once(" `"));
            let (package, test) = test.unwrap_or_else(|| panic!("{page}: not a test: {line}"));
            let (_, tests) = rules.last_mut().unwrap_or_else(|| panic!("{page}: no rule: {line}"));
            tests.push(Named { package: package.to_owned(), test: test.to_owned() });
        }
    }
    rules
}

#[test]
fn every_rule_of_a_page_has_a_test_or_stands_below_not_yet() {
    let mut count = 0;
    for Page { name, rules } in pages() {
        assert!(!rules.is_empty(), "{name} has no rules");
        for (rule, tests) in rules {
            assert!(!tests.is_empty(), "{name}: no test shows this: {rule}");
            count += 1;
        }
    }
    assert!(count > 200, "{count} rules: where are the pages?");
}

#[test]
fn every_test_that_a_page_names_exists() {
    let packages = packages();
    let mut words: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for Page { name, rules } in pages() {
        for Named { package, test } in rules.into_iter().flat_map(|(_, tests)| tests) {
            let folder = packages.get(&package);
            let folder = folder.unwrap_or_else(|| panic!("{name}: there is no package {package}"));
            // The scenarios of the driver run on every runtime.
            let scenarios = folder.parent().is_some_and(|above| above.ends_with("runtimes"));
            let beside = scenarios.then(|| root().join("adapters/server/driver/src/testing"));
            let function = test.rsplit("::").next().unwrap_or_default();
            let exists = [Some(folder.clone()), beside].into_iter().flatten().any(|folder| {
                let words = words.entry(folder.clone()).or_insert_with(|| identifiers(&folder));
                words.contains(function)
            });
            assert!(exists, "{name}: there is no test {package} {test}");
        }
    }
}

/// What `cargo test` has printed stands in the file that `QUORATE_TEST_LOG` names.
#[test]
#[ignore = "needs what a run of all tests has printed"]
fn every_test_that_a_page_names_has_run() {
    let log = std::env::var("QUORATE_TEST_LOG").expect("QUORATE_TEST_LOG names a file");
    let log = fs::read_to_string(log).unwrap();
    let ran: BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"))
        // "… - should panic"
        .map(|test| test.split(' ').next().unwrap_or_default())
        .collect();
    let mut missing = BTreeSet::new();
    for Page { name, rules } in pages() {
        for Named { package, test } in rules.into_iter().flat_map(|(_, tests)| tests) {
            if !ran.contains(&*test) {
                missing.insert(format!("{name}: {package} {test}"));
            }
        }
    }
    assert!(missing.is_empty(), "named, and not run: {missing:#?}");
}

/// The folder of each package.
fn packages() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join("core"), root().join("adapters"), root().join("fuzz")];
    while let Some(folder) = folders.pop() {
        if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) {
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""));
            if let Some(name) = name.and_then(|name| name.strip_suffix('"')) {
                found.insert(name.to_owned(), folder);
            }
            continue;
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// Every word of the sources in a folder that may be a name.
fn identifiers(folder: &Path) -> BTreeSet<String> {
    let (mut words, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                words.extend(names.map(str::to_owned));
            }
        }
    }
    words
}

#[test]
fn a_page_is_read_as_it_stands() {
    let text = "# Sessions\n\nWhat.\n\n- One rule.\n  - quorate-service `a::b_c`\n  - quorate-tokio `d`\n\
                - Another.\n  - quorate-znode `e`\n\n## At the socket\n\n- A third.\n  - quorate `f`\n\n\
                ## Not yet\n\n- A fourth, since nobody wants it.\n";
    let named = |package: &str, test: &str| Named { package: package.into(), test: test.into() };
    let expected = [
        (
            "One rule.".to_owned(),
            vec![named("quorate-service", "a::b_c"), named("quorate-tokio", "d")],
        ),
        ("Another.".to_owned(), vec![named("quorate-znode", "e")]),
        ("A third.".to_owned(), vec![named("quorate", "f")]),
    ];
    assert_eq!(rules("a page", text), expected);
}
