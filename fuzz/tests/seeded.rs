//! Seeded bugs, switched on one after the other, and found by what is fed: a target that misses what it is for is at
//! fault itself.
//!
//! ```text
//! cargo run -p quorate-seeded -- test --release -p quorate-fuzz --test seeded -- --nocapture
//! ```
//!
//! Each row of [`TABLE`] is fed in a process of its own: the seeds of its target. With none switched on all of them
//! hold.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use quorate_core::seeded::{Bug, switch_to};
use quorate_fuzz::TARGETS;
use quorate_keystore::seeded::Bug as InStores;
use quorate_sasl::seeded::Bug as InLogins;
use quorate_storage::seeded::Bug as OnDisk;
use quorate_tls::seeded::Bug as InCertificates;

/// What is seeded: in the core and what knows it, in the data directory, where key stores are read, at logins, or in
/// what certificates name.
#[derive(Clone, Copy, Debug)]
enum Seeded {
    Core(Bug),
    Disk(OnDisk),
    Stores(InStores),
    Logins(InLogins),
    Certificates(InCertificates),
}

use Seeded::{Certificates, Core, Disk, Logins, Stores};

/// What is fed, with which bug.
const TABLE: &[(&str, Seeded)] = &[
    ("certificate", Stores(InStores::WildcardDeep)),
    ("certificate", Certificates(InCertificates::LineBroken)),
    ("client_frames", Core(Bug::HeaderUnchecked)),
    ("ensemble", Core(Bug::HistoryAckBeforeDisk)),
    ("garbage", Core(Bug::RoundGoesBack)),
    ("generation", Core(Bug::SecondGrant)),
    ("generation", Core(Bug::GrantBeforeDisk)),
    ("generation", Core(Bug::GuessCounted)),
    ("handshake", Core(Bug::LastAddressIntroduced)),
    ("jaas", Logins(InLogins::ValueShown)),
    ("key_store", Stores(InStores::DigestUnchecked)),
    ("key_store", Stores(InStores::PasswordUnchecked)),
    ("key_store", Stores(InStores::NameTwiceReplaced)),
    ("leases", Core(Bug::TermFromAnswer)),
    ("leases", Core(Bug::ConflictIgnored)),
    ("log_files", Disk(OnDisk::AppendUnsynced)),
    ("log_files", Disk(OnDisk::EpochUnsynced)),
    ("login", Logins(InLogins::NonceUnchecked)),
    ("login", Logins(InLogins::PeekEats)),
    ("membership", Core(Bug::WeightsUnwritten)),
    ("messages", Core(Bug::PeerEpochLeftOut)),
    ("notification", Core(Bug::LengthBelieved)),
    ("offers", Core(Bug::SecondOfferAfterLostAnswer)),
    ("offers", Core(Bug::OfferOfAnotherSession)),
    ("offers", Core(Bug::AnyCreationDeleted)),
    ("packet", Core(Bug::RunWithHole)),
    ("play", Core(Bug::TermFromAnswer)),
    ("record", Disk(OnDisk::ChecksumUnchecked)),
    ("snapshot", Disk(OnDisk::SealUnchecked)),
    ("step", Core(Bug::AckEpochBeforeDisk)),
    ("synchronisation", Core(Bug::DiffOneTooLate)),
    ("timeline", Core(Bug::TextUnescaped)),
    ("tree", Core(Bug::DigestKeepsOld)),
    ("zoo_cfg", Core(Bug::BackslashKept)),
];

impl Seeded {
    fn name(self) -> String {
        match self {
            Core(bug) => format!("{bug:?}"),
            Disk(bug) => format!("{bug:?}"),
            Stores(bug) => format!("{bug:?}"),
            Logins(bug) => format!("{bug:?}"),
            Certificates(bug) => format!("{bug:?}"),
        }
    }
}

/// Feeds a target in another process, which fails if something does not hold.
fn feed(target: &str, seeded: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "what_was_asked_for_is_fed", "-q"]);
    command.env("QUORATE_FED", target).env("QUORATE_SEEDED", seeded).output().unwrap()
}

/// The other process.
#[test]
fn what_was_asked_for_is_fed() {
    let Ok(target) = std::env::var("QUORATE_FED") else { return };
    let seeded = std::env::var("QUORATE_SEEDED").unwrap_or_default();
    switch_to(Bug::ALL.iter().copied().find(|bug| format!("{bug:?}") == seeded));
    let (_, feed) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(&target);
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        feed(&fs::read(path).unwrap());
    }
}

#[test]
fn every_target_finds_what_is_seeded_and_nothing_else() {
    let mut missed = Vec::new();
    for (target, _) in TARGETS {
        assert!(TABLE.iter().any(|(row, ..)| *row == target), "{target} was never seen to fail");
        let without = feed(target, "");
        let said = String::from_utf8_lossy(&without.stdout);
        assert!(without.status.success(), "{target}, with no bug: {said}");
    }
    for (target, seeded) in TABLE {
        let begun = Instant::now();
        let fed = feed(target, &seeded.name());
        let (name, took) = (seeded.name(), begun.elapsed().as_secs_f64());
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
