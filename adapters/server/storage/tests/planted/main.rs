//! Mistakes that are planted in the data directory, one after the other, and found by its crash tests: tests
//! that miss one are themselves a mistake.
//!
//! ```text
//! RUSTFLAGS="--cfg quorate_planted" \
//!   cargo test --release -p quorate-storage --test planted --target-dir target/planted -- --nocapture
//! ```
//!
//! The tests are those of the crate: they run here without a mistake, and then for each of them those that
//! [`TABLE`] names, in a process of their own that is told of it.

#![cfg(quorate_planted)]
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

use quorate_storage::planted::Mistake;

/// What `fuzz/tests/planted.rs` looks for.
const ELSEWHERE: &[Mistake] = &[Mistake::ChecksumUnchecked, Mistake::SealUnchecked];

/// Which tests find what.
const TABLE: &[(Mistake, &str)] = &[
    (Mistake::AppendUnsynced, "log_crash::"),
    (Mistake::WrittenOnAfterFailure, "failing_disk::"),
    (Mistake::FoundUnsynced, "log_crash::"),
    (Mistake::EpochUnsynced, "log_crash::"),
    (Mistake::TornEndKept, "log_crash::"),
    (Mistake::MarkIgnored, "sync_mark::"),
    (Mistake::MarkAhead, "sync_mark::"),
    (Mistake::MarkInOneSlot, "sync_mark::"),
    (Mistake::RoomUnmarked, "sync_mark::"),
    (Mistake::CutBeforeSync, "sync_mark::"),
    (Mistake::HolePassedOver, "damage::"),
    (Mistake::TornStepPassedOver, "damage::"),
    (Mistake::ObsoleteKept, "damage::"),
    (Mistake::CutUnsynced, "history_crash::"),
    (Mistake::SnapshotsKeptAtCut, "history_crash::"),
    (Mistake::SnapshotUnsynced, "log_crash::"),
    (Mistake::InstallUnsynced, "log_crash::"),
    (Mistake::OldHistoryKept, "history_crash::"),
    (Mistake::PublishedAhead, "damage::"),
];

/// Those of these tests that fail with this mistake.
fn failing(mistake: Mistake, tests: &str) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([tests, "-q"]).env("QUORATE_PLANTED", format!("{mistake:?}"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failures = said.rsplit("failures:\n").next().unwrap_or_default();
    let failures: Vec<_> = failures.lines().take_while(|line| line.starts_with("    ")).collect();
    assert_eq!(failures.is_empty(), output.status.success(), "{said}");
    failures.into_iter().map(|name| name.trim().to_owned()).collect()
}

#[test]
fn every_planted_mistake_in_the_data_directory_is_found() {
    for mistake in Mistake::ALL {
        let rows = TABLE.iter().filter(|(planted, _)| planted == mistake).count();
        assert_eq!(rows, usize::from(!ELSEWHERE.contains(mistake)), "{mistake:?} has a row");
    }
    let mut missed = Vec::new();
    for (mistake, tests) in TABLE {
        let begun = Instant::now();
        let failing = failing(*mistake, tests);
        let (name, took) = (format!("{mistake:?}"), begun.elapsed().as_secs_f64());
        let first = failing.first().map_or("NOT FOUND", String::as_str);
        println!("{took:>6.2} s  {name:22} {:>2} tests fail, {first}", failing.len());
        if failing.is_empty() {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
