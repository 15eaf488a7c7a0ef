//! What simulated servers with a seeded bug record of themselves is refused.
//!
//! ```text
//! cargo run -p quorate-seeded -- test --release -p quorate-sim --test seeded_traces -- --nocapture
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

mod run;

use quorate_core::seeded::{Bug, switch_to};
use quorate_sim::Ensemble;
use quorate_sim::audit::Audit;

use run::run;

/// Whatever breaks a rule in a run does so on its tape.
#[test]
fn a_tape_of_servers_with_a_bug_is_refused() {
    for bug in [
        Bug::AckBeforeDisk,
        Bug::AckEpochBeforeDisk,
        Bug::HistoryAckBeforeDisk,
        Bug::LeaderInfoBeforeDisk,
        Bug::OwnCopyBeforeDisk,
        Bug::CommitToldEarly,
        Bug::DeliveredAtCommit,
    ] {
        switch_to(Some(bug));
        let (seed, tape, broken) = (0..50)
            .find_map(|seed| match run(seed, 3) {
                (_, Ok(())) => None,
                (tape, Err(broken)) => Some((seed, tape, broken)),
            })
            .unwrap_or_else(|| panic!("{bug:?} broke nothing"));
        match Audit::of(Ensemble::majority(3), &tape) {
            Ok(_) => panic!("{bug:?}, seed {seed}: a tape is accepted in which {broken}"),
            Err(objection) => println!("{bug:?}, seed {seed}: {objection}"),
        }
    }
    switch_to(None);
}
