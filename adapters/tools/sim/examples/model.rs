//! Model checking with other bounds than the tests have:
//! `cargo run --release -p quorate-sim --example model -- [word …]`.
//!
//! | word | |
//! |---|---|
//! | `election` or `recovery` | which of the two planes is looked at closely; `election` if neither |
//! | `voters=3 rounds=1 crashes=0 breaks=0 timeouts=0 transactions=0` | the bounds |
//! | `generation` or `generation-without-pre-vote` | servers elect by generation; `rounds` are generations then |
//! | `candidacies=2` | how often a server may ask to lead because it hears no leader |
//! | `lossy repeating reordering wire=1` | what notifications suffer, and how many a link holds |
//! | `mischief=2` | how often they do; as often as you like, without it |
//! | `slow-dials` | dials of election ports may take their time |
//! | `accidents` | begin with disks that differ |
//! | `changes` | begin with changes of the membership on disks that differ |
//! | `demote promote leave` | an operator asks for these changes, in this order: 1 becomes an observer, all vote, 3 is no member |
//! | `slow-streams` | a snapshot takes its time |
//! | `live` | look for a fair cycle without a leader; not by generation |
//! | `deep` | the last state that was found comes first: takes little memory, and finds less within a `depth` |
//! | `depth=… taken=… seconds=… threads=2` | how much is looked at: so deep, so many transitions (states, if `live`), for so long |
//!
//! Figures, and what the bounds mean, stand in `tests/model/checking/mod.rs`.

#![allow(clippy::print_stdout, reason = "a program for people")]

#[path = "../tests/model/checking/mod.rs"]
mod checking;

use std::process::ExitCode;
use std::time::Duration;

use checking::ensemble::Ensemble;
use checking::members::Members;
use checking::{Budget, Electing, Scope, check, liveness};

fn main() -> ExitCode {
    let (mut scope, mut live) = (Scope::election(3), false);
    let mut budget = Budget { threads: 2, ..Budget::default() };
    for word in std::env::args().skip(1) {
        let (name, number) = word.split_once('=').unwrap_or((&word, "0"));
        let Ok(number) = number.parse::<u32>() else {
            println!("{word}: no number");
            return ExitCode::FAILURE;
        };
        let few = u8::try_from(number).unwrap_or(u8::MAX);
        let many = usize::try_from(number).unwrap_or(usize::MAX);
        match name {
            "election" => scope = Scope::election(scope.voters),
            "recovery" => scope = Scope::recovery(scope.voters),
            "voters" => scope.voters = many,
            "generation" => scope = scope.by_generation(true),
            "generation-without-pre-vote" => scope = scope.by_generation(false),
            "candidacies" => scope.candidacies = few,
            "rounds" => scope.rounds = i64::from(number),
            "crashes" => scope.crashes = few,
            "breaks" => scope.breaks = few,
            "timeouts" => scope.timeouts = few,
            "transactions" => scope.transactions = few,
            "mischief" => scope.mischief = Some(few),
            "lossy" => scope.lossy = true,
            "repeating" => scope.repeating = true,
            "reordering" => scope.reordering = true,
            "wire" => scope.wire = many,
            "slow-dials" => scope.prompt_dials = false,
            "accidents" => scope = scope.after_accidents(),
            "changes" => scope = scope.after_changes(),
            "demote" => scope.changes.push(Members::of(&[2, 3], &[1])),
            "promote" => scope.changes.push(Members::of(&[1, 2, 3], &[])),
            "leave" => scope.changes.push(Members::of(&[1, 2], &[])),
            "slow-streams" => scope.slow_streams = true,
            "live" => live = true,
            "depth" => budget.depth = Some(many),
            "taken" => budget.transitions = Some(many),
            "seconds" => budget.time = Some(Duration::from_secs(u64::from(number))),
            "threads" => budget.threads = many,
            "deep" => budget.deep = true,
            _ => {
                println!("{word}: not known");
                return ExitCode::FAILURE;
            }
        }
    }
    if live && scope.electing != Electing::Fast {
        println!("live: not by generation");
        return ExitCode::FAILURE;
    }
    let failed = if live {
        let good = if scope.recovery { Ensemble::is_served } else { Ensemble::is_led };
        let outcome = liveness::search(scope, budget.transitions.unwrap_or(usize::MAX), good);
        println!("{outcome}");
        outcome.violation.is_some()
    } else {
        let outcome = check(scope, budget);
        println!("{outcome}");
        outcome.violation.is_some()
    };
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
