//! Mistakes that are planted, one after the other, and found by what is fed: a target that misses what it is
//! for is itself a mistake.
//!
//! ```text
//! RUSTFLAGS="--cfg quorate_planted" \
//!   cargo test --release -p quorate-fuzz --test planted --target-dir target/planted -- --nocapture
//! ```
//!
//! Each row of [`TABLE`] is fed in a process of its own: the seeds of its target. With nothing planted all of them
//! hold.

#![cfg(quorate_planted)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use quorate_core::planted::{Mistake, plant};
use quorate_fuzz::TARGETS;
use quorate_storage::planted::Mistake as OnDisk;

/// What is planted: in the core and what knows it, or in the data directory.
#[derive(Clone, Copy, Debug)]
enum Planted {
    Core(Mistake),
    Disk(OnDisk),
}

use Planted::{Core, Disk};

/// What is fed, with which mistake.
const TABLE: &[(&str, Planted)] = &[
    ("ensemble", Core(Mistake::HistoryAckBeforeDisk)),
    ("garbage", Core(Mistake::RoundGoesBack)),
    ("generation", Core(Mistake::SecondGrant)),
    ("generation", Core(Mistake::GrantBeforeDisk)),
    ("generation", Core(Mistake::GuessCounted)),
    ("handshake", Core(Mistake::LastAddressIntroduced)),
    ("leases", Core(Mistake::TermFromAnswer)),
    ("leases", Core(Mistake::ConflictIgnored)),
    ("log_files", Disk(OnDisk::AppendUnsynced)),
    ("log_files", Disk(OnDisk::EpochUnsynced)),
    ("membership", Core(Mistake::WeightsUnwritten)),
    ("messages", Core(Mistake::PeerEpochLeftOut)),
    ("notification", Core(Mistake::LengthBelieved)),
    ("offers", Core(Mistake::SecondOfferAfterLostAnswer)),
    ("offers", Core(Mistake::OfferOfAnotherSession)),
    ("offers", Core(Mistake::AnyCreationDeleted)),
    ("packet", Core(Mistake::RunWithHole)),
    ("play", Core(Mistake::TermFromAnswer)),
    ("record", Disk(OnDisk::ChecksumUnchecked)),
    ("snapshot", Disk(OnDisk::SealUnchecked)),
    ("step", Core(Mistake::AckEpochBeforeDisk)),
    ("synchronisation", Core(Mistake::DiffOneTooLate)),
    ("tree", Core(Mistake::DigestKeepsOld)),
    ("zoo_cfg", Core(Mistake::BackslashKept)),
];

impl Planted {
    fn name(self) -> String {
        match self {
            Core(mistake) => format!("{mistake:?}"),
            Disk(mistake) => format!("{mistake:?}"),
        }
    }
}

/// Feeds a target in another process, which fails if something does not hold.
fn feed(target: &str, planted: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "what_was_asked_for_is_fed", "-q"]);
    command.env("QUORATE_FED", target).env("QUORATE_PLANTED", planted).output().unwrap()
}

/// The other process.
#[test]
fn what_was_asked_for_is_fed() {
    let Ok(target) = std::env::var("QUORATE_FED") else { return };
    let planted = std::env::var("QUORATE_PLANTED").unwrap_or_default();
    plant(Mistake::ALL.iter().copied().find(|mistake| format!("{mistake:?}") == planted));
    let (_, feed) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(&target);
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        feed(&fs::read(path).unwrap());
    }
}

#[test]
fn every_target_finds_what_is_planted_and_nothing_else() {
    let mut missed = Vec::new();
    for (target, _) in TARGETS {
        assert!(TABLE.iter().any(|(row, ..)| *row == target), "{target} was never seen to fail");
        let unplanted = feed(target, "");
        let said = String::from_utf8_lossy(&unplanted.stdout);
        assert!(unplanted.status.success(), "{target}, with nothing planted: {said}");
    }
    for (target, planted) in TABLE {
        let begun = Instant::now();
        let fed = feed(target, &planted.name());
        let (name, took) = (planted.name(), begun.elapsed().as_secs_f64());
        let said = String::from_utf8_lossy(&fed.stdout).into_owned();
        let panic = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
        let found = if fed.status.success() { None } else { panic };
        let shown: String = found.unwrap_or("NOT FOUND").chars().take(60).collect();
        println!("{took:>6.2} s  {target:16} {name:22} {shown}");
        if found.is_none() {
            missed.push((target, name));
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
