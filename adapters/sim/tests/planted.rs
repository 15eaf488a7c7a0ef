//! Mistakes that are planted, one after the other, and found: a checker that misses one is itself a mistake.
//!
//! ```text
//! RUSTFLAGS="--cfg quorate_planted" \
//!   cargo test --release -p quorate-sim --test planted --target-dir target/planted -- --nocapture
//! ```
//!
//! [`TABLE`] says for each of them where it is looked for, and how many seeds may pass until one fails. With
//! nothing planted as many seeds pass without a complaint.
//!
//! `QUORATE_PLANTED=<name>,<name>` looks for these alone, and tells all of what was found.

#![cfg(quorate_planted)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quorate_core::planted::{Mistake, plant};
use quorate_sim::campaign::{Case, Failure, Story};
use quorate_sim::runner::attempt;

/// Where a mistake is looked for.
#[derive(Clone, Copy, Debug)]
enum Hunt {
    /// Among so many random elections.
    Elections(u64),
    /// Among so many random histories, in which clients write and read.
    Histories(u64),
    /// Not here, since no peer does in them what it takes.
    Elsewhere(&'static str),
}

use Hunt::{Elections, Elsewhere, Histories};

/// What is looked for and where, and the seed that was the first to fail when this was written.
const TABLE: &[(Mistake, Hunt, u64)] = &[
    (Mistake::TieBreakAcrossEpochs, Elections(100), 0),
    (Mistake::RoundGoesBack, Elections(100), 0),
    (Mistake::LeadsInAnEarlierRound, Histories(100), 0),
    (Mistake::JoinsOnFollowersWord, Elections(300), 0),
    (Mistake::SettledVotesComparedInFull, Elsewhere("open"), 0),
    (Mistake::WeightlessElected, Elections(200), 0),
    (Mistake::ObserversCounted, Elections(100), 0),
    (Mistake::HalfIsEnough, Elections(100), 0),
    (Mistake::VoteBeforeDisk, Histories(50), 0),
    (Mistake::EpochFromLog, Elections(50), 0),
    (Mistake::EpochPromisedTwice, Elections(300), 0),
    (Mistake::NewerVoterUnnoticed, Histories(600), 0),
    (Mistake::OwnPromiseBeforeDisk, Elections(500), 0),
    (Mistake::LeaderInfoBeforeDisk, Elections(20), 0),
    (Mistake::AckEpochBeforeDisk, Elections(20), 0),
    (Mistake::HistoryAckBeforeDisk, Elections(20), 0),
    (Mistake::OwnHistoryBeforeDisk, Histories(50), 0),
    (Mistake::EpochBeforeHistory, Elections(50), 0),
    (Mistake::DeliveredAtCommit, Histories(50), 0),
    (Mistake::DeliveredWholeLog, Histories(50), 0),
    (Mistake::LeaderDeliversUnconfirmed, Elections(50), 0),
    (Mistake::HistoryWithoutCommit, Elections(50), 0),
    (Mistake::OrphanBeyondKept, Elections(100), 0),
    (Mistake::OrphanBetweenKept, Histories(300), 0),
    (Mistake::CutOneTooFew, Histories(600), 0),
    (Mistake::DiffOneTooLate, Histories(50), 0),
    (Mistake::ForwardedBeforeItsTurn, Histories(300), 0),
    (Mistake::DiskAndWindowApart, Elections(50), 0),
    (Mistake::LabelAheadOfState, Elections(50), 0),
    (Mistake::LabelBelowEpochStart, Histories(300), 0),
    (Mistake::SnapshotBelowLearner, Histories(300), 0),
    (Mistake::PendingForgotten, Histories(300), 0),
    (Mistake::AckOutlivesLink, Histories(200), 0),
    (Mistake::AckOfUnsent, Elsewhere("open"), 0),
    (Mistake::AckAcrossGap, Elsewhere("open"), 0),
    (Mistake::AckBeforeDisk, Histories(20), 0),
    (Mistake::OwnCopyBeforeDisk, Histories(50), 0),
    (Mistake::CommitToldEarly, Histories(20), 0),
    (Mistake::InformedEarly, Histories(50), 0),
    (Mistake::OldPreparationProposed, Elsewhere("open"), 0),
    (Mistake::PreparationsKept, Histories(20), 0),
    (Mistake::LeadsWithoutQuorum, Elections(100), 0),
    (Mistake::ReadWithoutQuorum, Histories(400), 0),
    (Mistake::ReadWithoutLeader, Histories(20), 0),
    (Mistake::SyncBeforeCommits, Histories(100), 0),
    (Mistake::LeaseForgotten, Histories(300), 0),
    (Mistake::LeaseReleasedByFollower, Elsewhere("open"), 0),
    (Mistake::LeaseForgottenAtStart, Elsewhere("open"), 0),
    (Mistake::LeaseFromAnswer, Elsewhere("open"), 0),
    (Mistake::LeaseOutlivesLink, Elsewhere("open"), 0),
    (Mistake::LeaseWithoutMargin, Elsewhere("open"), 0),
    (Mistake::NextVotersIgnored, Histories(1500), 0),
    (Mistake::ChangeOnlyInMemory, Histories(1500), 0),
    (Mistake::ChangeOutlivesCut, Histories(1500), 0),
];

/// The first of so many seeds that fails; if another was begun before and fails, too, that one.
fn hunt(story: Story, seeds: u64) -> Option<(u64, Failure)> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(None::<(u64, Failure)>));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || found.lock().unwrap().is_some() {
                        return;
                    }
                    if let Err(failure) = attempt(&Case::of(story, seed)) {
                        let mut found = found.lock().unwrap();
                        if found.as_ref().is_none_or(|(first, _)| seed < *first) {
                            *found = Some((seed, failure));
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// What is found where a mistake is looked for; none if it is not looked for here.
fn look(at: Hunt) -> Option<Option<(u64, Failure)>> {
    match at {
        Elections(seeds) => Some(hunt(Story::Elections, seeds)),
        Histories(seeds) => Some(hunt(Story::Histories, seeds)),
        Elsewhere(_) => None,
    }
}

/// One test, since what is planted is the same for the whole process.
#[test]
fn every_planted_mistake_is_found_and_nothing_else() {
    let alone = std::env::var("QUORATE_PLANTED").ok();
    let (begun, mut missed) = (Instant::now(), Vec::new());
    for mistake in Mistake::ALL {
        let rows = TABLE.iter().filter(|(planted, ..)| planted == mistake).count();
        assert_eq!(rows, 1, "{mistake:?} has a row");
    }
    println!("{:>6} {:>7}  {:28} found as", "seed", "seconds", "mistake");
    for (mistake, at, _) in TABLE {
        let name = format!("{mistake:?}");
        if alone.as_ref().is_some_and(|alone| !alone.split(',').any(|one| one == name)) {
            continue;
        }
        let begun = Instant::now();
        plant(Some(*mistake));
        let found = look(*at);
        plant(None);
        let took = begun.elapsed().as_secs_f64();
        match (found, at) {
            (Some(Some((seed, failure))), _) => {
                println!("{seed:>6} {took:>7.2}  {name:28} {}", failure.kind());
                if alone.is_some() {
                    println!("{failure}");
                }
            }
            (Some(None), at) => {
                println!("{:>6} {took:>7.2}  {name:28} NOT FOUND: {at:?}", "");
                missed.push(name);
            }
            (None, Elsewhere(why)) => println!("{:>6} {:>7}  {name:28} {why}", "", ""),
            (None, _) => {}
        }
    }
    println!("{:?}", begun.elapsed());
    assert!(missed.is_empty(), "not found: {missed:?}");
    if alone.is_some() {
        return;
    }
    let most = |budget: fn(&Hunt) -> u64| TABLE.iter().map(|(_, at, _)| budget(at)).max();
    let elections = most(|at| if let Elections(seeds) = at { *seeds } else { 0 }).unwrap_or(0);
    let histories = most(|at| if let Histories(seeds) = at { *seeds } else { 0 }).unwrap_or(0);
    assert_eq!(hunt(Story::Elections, elections), None, "nothing is planted");
    assert_eq!(hunt(Story::Histories, histories), None, "nothing is planted");
    println!("{:?} with {elections} and {histories} seeds without a mistake", begun.elapsed());
}
