//! Traces of real servers, the same story on each runtime: sockets on loopback, files, the machine's clock.
//! What the servers recorded of themselves is gone through again: the same peers, told the same, say the
//! same, and all rules of the simulator hold over them together.
//!
//! It is here because no other crate has all runtimes and the simulator. With a bug in the servers the tape is refused:
//! that is in `seeded`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

mod cells;
mod servers;

use std::time::Instant;

use quorate_driver::Runtime;
use quorate_driver::core::input::Event;
use quorate_driver::testing::{Ensemble, Stage};
use quorate_sim::audit::{Entry, Tape, What};

use cells::Cells;
use servers::{Cut, ENTRIES, Recorded, adjust, audited, recorded, replaced};

async fn story<R: Runtime>(runtime: R, voters: i64) {
    let begun = Instant::now();
    let Recorded { tape, rounds, states } = recorded(runtime, voters, ENTRIES).await;
    let (took, begun) = (begun.elapsed(), Instant::now());
    let audit = match audited(voters, &tape) {
        Ok(audit) => audit,
        Err(objection) => panic!("{objection}"),
    };
    // What the core told is what the real applications did.
    for (id, state) in states {
        let told = audit.state(id).unwrap();
        assert_eq!(state, (told.count, told.cells.clone()), "what server {id} has applied");
    }
    let heard = |is: fn(&Event) -> bool| {
        let is =
            |entry: &&Entry| matches!(&entry.what, What::Step { input, .. } if is(&input.event));
        tape.iter().filter(is).count()
    };
    let (checker, lives) = (audit.checker(), audit.lives());
    let taken = heard(|event| matches!(event, Event::SnapshotTaken(_)));
    let received = heard(|event| matches!(event, Event::Restored { .. }));
    println!(
        "{voters} servers: {} entries in {took:.2?}: {lives} lives, {} leaders, {} commits, {} reads, \
         {taken} snapshots taken and {received} received; gone through in {:.2?}",
        tape.len(),
        checker.leaders().len(),
        checker.commits(),
        checker.reads_answered(),
        begun.elapsed(),
    );
    assert!(checker.leaders().len() > rounds / 2, "{rounds} rounds");
    assert!(checker.acknowledged() > 500 && checker.reads_answered() > 100 && taken > 0);
}

/// Three servers and five, on each runtime.
async fn stories<R: Runtime>(runtime: R) {
    for voters in [3, 5] {
        story(runtime.clone(), voters).await;
    }
}

/// How long it takes until somebody else leads when the ways of a leader are closed, again and again; the
/// old one comes back each time.
async fn cuts<R: Runtime>(runtime: R, count: usize) {
    let (tape, mut times) = (Tape::default(), Vec::new());
    let stage = Stage::new([runtime]).gated(5);
    let mut ensemble = Ensemble::new(&stage, "127.0.0.1", [5, 0], |_| Cells::default());
    ensemble.adjust = adjust;
    let recorders = tape.clone();
    ensemble.record(move |id| recorders.recorder(id));
    ensemble.start_all().await;
    for _ in 0..count {
        let leader = ensemble.agreed().await.0;
        let (_cut, begun) = (Cut::off(&stage, leader), Instant::now());
        replaced(&stage, &ensemble, leader).await;
        times.push(begun.elapsed());
    }
    ensemble.agreed().await;
    for id in ensemble.ids() {
        ensemble.kill(id).await;
    }
    if let Err(objection) = audited(5, &tape.take()) {
        panic!("{objection}");
    }
    times.sort();
    let (median, p99, worst) = (times[count / 2], times[count * 99 / 100 - 1], times[count - 1]);
    println!("led again after {median:.1?} (median), {p99:.1?} (p99), {worst:.1?} (worst)");
}

fn cuts_on_tokio(count: usize) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(cuts(quorate_tokio::Tokio, count));
}

#[test]
fn leaders_on_each_runtime_are_cut_off_and_replaced() {
    cuts_on_tokio(8);
    quorate_smol::block_on(cuts(quorate_smol::Smol, 8));
}

#[test]
#[ignore = "a minute on each runtime: cargo test -p quorate --features runtimes --test traces -- --ignored"]
fn leaders_on_tokio_are_cut_off_two_hundred_times() {
    cuts_on_tokio(200);
}

#[test]
#[ignore = "a minute on each runtime: cargo test -p quorate --features runtimes --test traces -- --ignored"]
fn leaders_on_smol_are_cut_off_two_hundred_times() {
    quorate_smol::block_on(cuts(quorate_smol::Smol, 200));
}

#[test]
fn servers_on_tokio_do_what_the_rules_allow() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(stories(quorate_tokio::Tokio));
}

#[test]
fn servers_on_smol_do_what_the_rules_allow() {
    quorate_smol::block_on(stories(quorate_smol::Smol));
}

/// The same on async-std; it goes with that runtime.
#[cfg(feature = "async-std")]
mod async_std {
    use quorate_async_std::{AsyncStd, block_on};

    use super::*;

    #[test]
    fn leaders_are_cut_off_and_replaced() {
        block_on(cuts(AsyncStd, 8));
    }

    #[test]
    #[ignore = "a minute on each runtime: cargo test -p quorate --features runtimes --test traces -- --ignored"]
    fn leaders_are_cut_off_two_hundred_times() {
        block_on(cuts(AsyncStd, 200));
    }

    #[test]
    fn servers_do_what_the_rules_allow() {
        block_on(stories(AsyncStd));
    }
}
