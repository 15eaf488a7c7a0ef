//! Seeded bugs, switched on one after the other, and found in a model: a checker that misses one is at fault itself.
//!
//! ```text
//! cargo run -p quorate-seeded -- test --release -p quorate-sim --test seeded_model -- --nocapture
//! ```
//!
//! `QUORATE_SEEDED=<name>,<name>` looks for these alone, everywhere, and tells how they come about.
#![allow(clippy::print_stdout, reason = "its figures are for people: `-- --nocapture`")]

mod checking;
#[expect(dead_code, reason = "what else a sound run tells")]
mod sessions;

use std::time::Instant;

use quorate_core::seeded::{Bug, switch_to};

use crate::checking::members::Members;
use crate::checking::{Budget, Scope, check};

/// Where a bug is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Among votes, for disks that differ.
    Votes,
    /// Among the first votes in a generation.
    Generation,
    /// In two generations, for disks that differ.
    Generations,
    /// From nothing to two transactions.
    Service,
    /// From disks that differ to service.
    Accidents,
    /// The same, and a link breaks.
    AccidentsAndBreak,
    /// From nothing to a change of the membership.
    Changes,
    /// From disks that know of changes in part to service.
    AfterChanges,
    /// Among sessions and what becomes of them.
    Sessions,
}

use Look::{
    Accidents, AccidentsAndBreak, AfterChanges, Changes, Generation, Generations, Service,
    Sessions, Votes,
};

/// How much is looked at for each bug, at most.
const BUDGET: Budget =
    Budget { transitions: Some(1_500_000), depth: None, time: None, threads: 2, deep: false };

/// How many steps of sessions are looked at, at most.
const SESSION_STEPS: usize = 400_000;

/// Which bug is looked for where. Those of weights, leases and reads have no place in these models; a few others
/// take more servers, or more steps, than are looked at here. `OlderMembershipTaken` takes a server with a change in
/// its history that does not bind it: no server of ours comes to that, an earlier version did.
const TABLE: &[(Bug, Look)] = &[
    (Bug::TieBreakAcrossEpochs, Votes),
    (Bug::VoteBeforeDisk, AccidentsAndBreak),
    (Bug::GrantBeforeDisk, Generation),
    (Bug::OwnVoteBeforeDisk, Generation),
    (Bug::SecondGrant, Generation),
    (Bug::RejectionCounted, Generation),
    (Bug::SeenIsVoted, Generation),
    (Bug::LogUnchecked, Generations),
    (Bug::StaleAnswerCounted, Generations),
    (Bug::EpochFromLog, Accidents),
    (Bug::LeaderInfoBeforeDisk, Accidents),
    (Bug::AckEpochBeforeDisk, Accidents),
    (Bug::HistoryAckBeforeDisk, Accidents),
    (Bug::OwnHistoryBeforeDisk, Accidents),
    (Bug::EpochBeforeHistory, Accidents),
    (Bug::DeliveredAtCommit, Accidents),
    (Bug::LeaderDeliversUnconfirmed, Accidents),
    (Bug::HistoryWithoutCommit, Accidents),
    (Bug::OrphanBeyondKept, Accidents),
    (Bug::OrphanBetweenKept, Accidents),
    (Bug::CutOneTooFew, Accidents),
    (Bug::DiffOneTooLate, Accidents),
    (Bug::LabelAheadOfState, Accidents),
    (Bug::AckBeforeDisk, Service),
    (Bug::OwnCopyBeforeDisk, Service),
    (Bug::CommitToldEarly, Service),
    (Bug::ChangeOnlyInMemory, Changes),
    (Bug::NextVotersIgnored, Changes),
    (Bug::TellsOfOneChange, AfterChanges),
    (Bug::InstalledBeforeSeen, AfterChanges),
    (Bug::CutChangeBinds, AfterChanges),
    (Bug::ObserversCounted, AfterChanges),
    (Bug::ClosingSessionCreates, Sessions),
    (Bug::MoveUnnoticed, Sessions),
    (Bug::TouchesDropped, Sessions),
];

impl Look {
    fn scope(self) -> Scope {
        let recovery = Scope { rounds: 2, ..Scope::recovery(3) };
        match self {
            Votes => Scope::election(3).after_accidents(),
            Generation => Scope::election(3).by_generation(false),
            Generations => {
                Scope { rounds: 2, ..Scope::election(3).by_generation(false) }.after_accidents()
            }
            Service => Scope { transactions: 2, ..Scope::recovery(3) },
            Accidents => recovery.after_accidents(),
            AccidentsAndBreak => Scope { breaks: 1, ..recovery }.after_accidents(),
            Changes => Scope::recovery(3).with_changes(&[Members::of(&[2, 3], &[1])]),
            AfterChanges => recovery.after_changes(),
            Sessions => Scope::election(2),
        }
    }
}

/// One test, since the switch is the same for the whole process.
#[test]
fn every_seeded_bug_is_found_and_nothing_else() {
    let alone = std::env::var("QUORATE_SEEDED").ok();
    println!("{:28} {:18} {:>8} {:>8} {:>5}  found as", "bug", "in", "states", "seconds", "steps");
    let mut missed = Vec::new();
    for (bug, look) in TABLE {
        let name = format!("{bug:?}");
        if alone.as_ref().is_some_and(|alone| !alone.split(',').any(|one| one == name)) {
            continue;
        }
        switch_to(Some(*bug));
        let begun = Instant::now();
        if *look == Sessions {
            let scopes = [sessions::SILENCE, sessions::MOVE];
            let found = scopes.map(|scope| sessions::look(scope, SESSION_STEPS));
            let found = found.into_iter().max_by_key(|found| found.broken.is_some());
            let Some(found) = found else { continue };
            switch_to(None);
            let (states, took) = (found.states, begun.elapsed().as_secs_f64());
            let told = found.broken.as_ref().map_or("NOT FOUND", |(what, _)| what);
            println!("{name:28} {look:18?} {states:>8} {took:>8.2} {:>5}  {told}", "");
            if found.broken.is_none() {
                missed.push(name);
            }
            continue;
        }
        let outcome = check(look.scope(), BUDGET);
        let took = begun.elapsed().as_secs_f64();
        switch_to(None);
        let place = format!("{look:?}");
        let states = outcome.states;
        // Where all was looked at, what was never seen does not happen any more.
        let never = outcome.unseen.first().filter(|_| outcome.exhausted);
        let never = never.map(|what| (format!("never seen: {what}"), Vec::new()));
        let Some((what, way)) = outcome.violation.or(never) else {
            println!("{name:28} {place:18} {states:>8} {took:>8.2} {:>5}  NOT FOUND", "");
            missed.push(name);
            continue;
        };
        println!("{name:28} {place:18} {states:>8} {took:>8.2} {:>5}  {what}", way.len());
        if alone.is_some() {
            way.iter().for_each(|step| println!("    {step}"));
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
