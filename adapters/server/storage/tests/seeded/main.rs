//! Bugs seeded in the data directory, switched on one after the other, and found by its crash tests: tests that miss
//! one are at fault themselves.
//!
//! ```text
//! cargo run -p quorate-seeded -- test --release -p quorate-storage --test seeded -- --nocapture
//! ```
//!
//! The tests are those of the crate: they run here without a bug, and then for each of them those that
//! [`TABLE`] names, in a process of their own that is told of it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

#[path = "../damage.rs"]
mod damage;
#[path = "../failing_disk.rs"]
mod failing_disk;
#[path = "../history.rs"]
mod history;
#[path = "../history_crash.rs"]
mod history_crash;
#[path = "../log_crash.rs"]
mod log_crash;
#[path = "../open.rs"]
mod open;
#[path = "../support/mod.rs"]
mod support;
#[path = "../sync_mark.rs"]
mod sync_mark;

use std::process::Command;
use std::time::Instant;

use quorate_storage::seeded::Bug;

/// What `fuzz/tests/seeded.rs` looks for.
const ELSEWHERE: &[Bug] = &[Bug::ChecksumUnchecked, Bug::SealUnchecked];

/// Which tests find what.
const TABLE: &[(Bug, &str)] = &[
    (Bug::AppendUnsynced, "log_crash::"),
    (Bug::WrittenOnAfterFailure, "failing_disk::"),
    (Bug::FoundUnsynced, "log_crash::"),
    (Bug::EpochUnsynced, "log_crash::"),
    (Bug::TornEndKept, "log_crash::"),
    (Bug::MarkIgnored, "sync_mark::"),
    (Bug::MarkAhead, "sync_mark::"),
    (Bug::MarkInOneSlot, "sync_mark::"),
    (Bug::RoomUnmarked, "sync_mark::"),
    (Bug::CutBeforeSync, "sync_mark::"),
    (Bug::HolePassedOver, "damage::"),
    (Bug::TornStepPassedOver, "damage::"),
    (Bug::ObsoleteKept, "damage::"),
    (Bug::CutUnsynced, "history_crash::"),
    (Bug::SnapshotsKeptAtCut, "history_crash::"),
    (Bug::SnapshotUnsynced, "log_crash::"),
    (Bug::InstallUnsynced, "log_crash::"),
    (Bug::OldHistoryKept, "history_crash::"),
    (Bug::PublishedAhead, "damage::"),
];

/// Those of these tests that fail with this bug.
fn failing(bug: Bug, tests: &str) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([tests, "-q"]).env("QUORATE_SEEDED", format!("{bug:?}"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failures = said.rsplit("failures:\n").next().unwrap_or_default();
    let failures: Vec<_> = failures.lines().take_while(|line| line.starts_with("    ")).collect();
    assert_eq!(failures.is_empty(), output.status.success(), "{said}");
    failures.into_iter().map(|name| name.trim().to_owned()).collect()
}

#[test]
fn every_seeded_bug_in_the_data_directory_is_found() {
    for bug in Bug::ALL {
        let rows = TABLE.iter().filter(|(seeded, _)| seeded == bug).count();
        assert_eq!(rows, usize::from(!ELSEWHERE.contains(bug)), "{bug:?} has a row");
    }
    let mut missed = Vec::new();
    for (bug, tests) in TABLE {
        let begun = Instant::now();
        let failing = failing(*bug, tests);
        let (name, took) = (format!("{bug:?}"), begun.elapsed().as_secs_f64());
        let first = failing.first().map_or("NOT FOUND", String::as_str);
        println!("{took:>6.2} s  {name:22} {:>2} tests fail, {first}", failing.len());
        if failing.is_empty() {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
