//! What servers of simulated runs recorded of themselves is gone through again: the same peers, told the
//! same, say the same, and the rules hold over all of them. A tape that was tampered with is refused.
//!
//! Those of real servers are the business of `quorate`'s `tests/traces`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

mod run;

use quorate_core::input::Event;
use quorate_core::output::{Output, Write};
use quorate_core::report::Change;
use quorate_core::vote::ServerState;
use quorate_sim::audit::{Audit, Entry, What, Why};
use quorate_sim::{Ensemble, Rule};

use run::run;

#[test]
fn a_hundred_simulated_runs_are_what_the_rules_allow() {
    let (mut steps, mut lives, mut commits) = (0, 0, 0);
    let mut happened = [0; 5];
    for seed in 0..100 {
        let voters = if seed % 2 == 0 { 3 } else { 5 };
        let (tape, outcome) = run(seed, voters);
        outcome.unwrap();
        for (all, these) in happened.iter_mut().zip(occurrences(&tape)) {
            *all += these;
        }
        match Audit::of(Ensemble::majority(voters), &tape) {
            Ok(audit) => {
                steps += audit.steps();
                lives += audit.lives();
                commits += audit.checker().commits();
            }
            Err(objection) => panic!("seed {seed}: {objection}"),
        }
    }
    let [taken, received, streamed, cut, handed] = happened;
    println!(
        "{steps} steps of 100 runs, {lives} lives, {commits} commits, {taken} snapshots taken and \
         {received} received, {streamed} logs streamed and {cut} cut, {handed} members handed over"
    );
    assert!(lives > 1000 && commits > 8_000, "{lives} lives, {commits} commits");
    assert!(happened.iter().all(|times| *times > 20), "{happened:?}");
}

/// How often what is rare is on a tape.
fn occurrences(tape: &[Entry]) -> [usize; 5] {
    let heard = |is: fn(&Event) -> bool| {
        let is =
            |entry: &&Entry| matches!(&entry.what, What::Step { input, .. } if is(&input.event));
        tape.iter().filter(is).count()
    };
    let said =
        |is: fn(&Output) -> bool| tape.iter().flat_map(outputs).filter(|output| is(output)).count();
    [
        heard(|event| matches!(event, Event::SnapshotTaken(_))),
        heard(|event| matches!(event, Event::Restored { .. })),
        said(|output| matches!(output, Output::StreamLog { .. })),
        said(|output| matches!(output, Output::Persist { write: Write::Truncate(_), .. })),
        said(|output| matches!(output, Output::Transferred(Ok(_)))),
    ]
}

fn outputs(entry: &Entry) -> &[Output] {
    match &entry.what {
        What::Step { outputs, .. } => outputs,
        What::Start { .. } => &[],
    }
}

/// Three servers, a few leaderships.
fn tape() -> Vec<Entry> {
    let (tape, outcome) = run(1, 3);
    outcome.unwrap();
    tape
}

fn refused(tape: &[Entry]) -> Why {
    Audit::of(Ensemble::majority(3), tape).unwrap_err().why
}

fn rule(why: Why) -> Rule {
    match why {
        Why::Broken(violation) => violation.rule,
        Why::Differs { .. } | Why::Config { .. } | Why::NotStarted(_) => panic!("{why}"),
    }
}

#[test]
fn an_output_that_was_not_said_is_noticed() {
    let mut tape = tape();
    let entry = tape.iter_mut().filter(|entry| !outputs(entry).is_empty()).nth(100).unwrap();
    if let What::Step { outputs, .. } = &mut entry.what {
        outputs.pop();
    }
    assert!(matches!(refused(&tape), Why::Differs { .. }));
}

#[test]
fn what_a_driver_kept_from_the_tape_is_noticed() {
    let mut tape = tape();
    let lets_go = |entry: &Entry| {
        matches!(&entry.what, What::Step { input, outputs }
            if matches!(input.event, Event::Persisted(_))
                && outputs.iter().any(|output| matches!(output, Output::Send { .. })))
    };
    let at = tape.iter().position(lets_go).unwrap();
    tape.remove(at);
    let why = refused(&tape);
    assert!(matches!(why, Why::Differs { .. }), "{why}");
}

#[test]
fn a_write_that_was_never_asked_for_cannot_be_durable() {
    let mut tape = tape();
    for entry in &mut tape {
        if let What::Step { input, .. } = &mut entry.what {
            if let Event::Persisted(ticket) = &mut input.event {
                ticket.0 += 1000;
                break;
            }
        }
    }
    assert_eq!(rule(refused(&tape)), Rule::Boundary);
}

#[test]
fn a_leader_that_counts_on_others_before_their_disks_have_it_is_noticed() {
    let tape = tape();
    let leads = |output: &Output| {
        matches!(output, Output::Report(report)
            if matches!(report.change, Change::State { to: ServerState::Leading, .. }))
    };
    let leader = tape.iter().find(|entry| outputs(entry).iter().any(leads)).unwrap().server;
    // Nobody says anything else; but all that the others did happens later.
    let (mut first, others): (Vec<_>, Vec<_>) =
        tape.into_iter().partition(|entry| entry.server == leader);
    first.extend(others);
    let rule = rule(refused(&first));
    assert!(matches!(rule, Rule::Promise | Rule::Quorum), "{rule}");
}

#[test]
fn a_disk_that_lost_what_was_durable_is_noticed() {
    let mut tape = tape();
    let durable = tape.iter_mut().rev().find_map(|entry| match &mut entry.what {
        What::Start { durable, .. } if !durable.window.is_empty() => Some(durable),
        What::Start { .. } | What::Step { .. } => None,
    });
    let durable = durable.unwrap();
    durable.window.pop_back();
    durable.last_zxid = durable.window.back().map_or(durable.floor, |txn| txn.zxid);
    assert_eq!(rule(refused(&tape)), Rule::Durability);
}

#[test]
fn a_snapshot_that_nobody_took_is_noticed() {
    let mut tape = tape();
    let durable = tape.iter_mut().rev().find_map(|entry| match &mut entry.what {
        What::Start { durable, .. } if durable.snapshot.0 > 0 => Some(durable),
        What::Start { .. } | What::Step { .. } => None,
    });
    durable.unwrap().snapshot.0 -= 1;
    assert_eq!(rule(refused(&tape)), Rule::Durability);
}
