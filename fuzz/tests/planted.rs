//! Mistakes that are planted, one after the other, and found by what is fed: a target that misses what it is
//! for is itself a mistake.
//!
//! ```text
//! RUSTFLAGS="--cfg quorate_planted" \
//!   cargo test --release -p quorate-fuzz --test planted --target-dir target/planted -- --nocapture
//! ```
//!
//! Each row of [`TABLE`] is fed in a process of its own: the seeds, and if these do not suffice so many inputs
//! more, made of them in the same way each time. With nothing planted all of that holds.

#![cfg(quorate_planted)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use quorate_core::planted::{Mistake, plant};
use quorate_core::rng::Rng;
use quorate_fuzz::TARGETS;
use quorate_log::planted::Mistake as OnDisk;

/// What is planted: in the core and what knows it, or in the data directory.
#[derive(Clone, Copy, Debug)]
enum Planted {
    Core(Mistake),
    Disk(OnDisk),
}

use Planted::{Core, Disk};

/// What is fed, with which mistake, and how many inputs beyond the seeds.
const TABLE: &[(&str, Planted, u32)] = &[
    ("ensemble", Core(Mistake::HistoryAckBeforeDisk), 0),
    ("garbage", Core(Mistake::RoundGoesBack), 0),
    ("generation", Core(Mistake::SecondGrant), 0),
    ("generation", Core(Mistake::GrantBeforeDisk), 0),
    ("generation", Core(Mistake::GuessCounted), 0),
    ("handshake", Core(Mistake::LastAddressIntroduced), 0),
    ("leases", Core(Mistake::TermFromAnswer), 0),
    ("leases", Core(Mistake::ConflictIgnored), 0),
    ("log_files", Disk(OnDisk::AppendUnsynced), 3_000),
    ("log_files", Disk(OnDisk::EpochUnsynced), 3_000),
    ("membership", Core(Mistake::WeightsUnwritten), 0),
    ("messages", Core(Mistake::PeerEpochLeftOut), 500),
    ("notification", Core(Mistake::LengthBelieved), 0),
    ("offers", Core(Mistake::SecondOfferAfterLostAnswer), 0),
    ("offers", Core(Mistake::OfferOfAnotherSession), 0),
    ("packet", Core(Mistake::RunWithHole), 0),
    ("play", Core(Mistake::TermFromAnswer), 0),
    ("record", Disk(OnDisk::ChecksumUnchecked), 0),
    ("snapshot", Disk(OnDisk::SealUnchecked), 3_000),
    ("step", Core(Mistake::AckEpochBeforeDisk), 0),
    ("synchronisation", Core(Mistake::DiffOneTooLate), 0),
    ("tree", Core(Mistake::DigestKeepsOld), 0),
    ("zoo_cfg", Core(Mistake::BackslashKept), 0),
];

/// As much is fed with nothing planted.
const UNPLANTED: u32 = 100;

impl Planted {
    fn name(self) -> String {
        match self {
            Core(mistake) => format!("{mistake:?}"),
            Disk(mistake) => format!("{mistake:?}"),
        }
    }
}

/// Feeds a target in another process, which fails if something does not hold.
fn feed(target: &str, planted: &str, more: u32) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "what_was_asked_for_is_fed", "-q"]);
    command.env("QUORATE_FED", target).env("QUORATE_MORE", more.to_string());
    command.env("QUORATE_PLANTED", planted).output().unwrap()
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
    let seeds: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    for seed in &seeds {
        feed(seed);
    }
    let more: u32 = std::env::var("QUORATE_MORE").unwrap().parse().unwrap();
    let mut rng = Rng::new(1);
    for _ in 0..more {
        feed(&changed(&seeds, &mut rng));
    }
}

/// A seed in which a few bytes are other ones, gone, or another's.
fn changed(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut below = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
    let mut bytes = seeds[below(seeds.len())].clone();
    for _ in 0..=below(4) {
        let at = below(bytes.len() + 1);
        match below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, u8::try_from(below(256)).unwrap()),
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << below(8);
                }
            }
            _ => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len() + 1);
                let end = (from + below(32)).min(other.len());
                let until = (at + end - from).min(bytes.len());
                bytes.splice(at..until, other[from..end].iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn every_target_finds_what_is_planted_and_nothing_else() {
    let mut missed = Vec::new();
    for (target, _) in TARGETS {
        assert!(TABLE.iter().any(|(row, ..)| *row == target), "{target} was never seen to fail");
        let unplanted = feed(target, "", UNPLANTED);
        let said = String::from_utf8_lossy(&unplanted.stdout);
        assert!(unplanted.status.success(), "{target}, with nothing planted: {said}");
    }
    for (target, planted, more) in TABLE {
        let begun = Instant::now();
        let fed = feed(target, &planted.name(), *more);
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
