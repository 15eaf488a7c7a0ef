//! The gate between the thread of an election and those of its guards, in every order in which they can run.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p quorate-leadership --test loom`. A thread that waits for
//! something that nobody says any more is a deadlock, and found.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::future::block_on;
use loom::sync::Notify;
use loom::thread::{self, JoinHandle};
use quorate_leadership::{Clock, FencingToken, LeadershipError, LeadershipGate};

#[derive(Clone)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Instant {
        unreachable!("nobody asks")
    }

    fn sleep(&self, _: Duration) -> impl Future<Output = ()> + Send {
        pending()
    }
}

/// In every order in which one thread takes the place of another in the middle of something at most three times.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A gate, and what wakes its election.
fn gate() -> (Arc<LeadershipGate>, loom::sync::Arc<Notify>) {
    let woken = loom::sync::Arc::new(Notify::new());
    let wakes = woken.clone();
    (Arc::new(LeadershipGate::new(move || wakes.notify())), woken)
}

/// A thread that leads for a moment, or learns that it never will.
fn guard(gate: &Arc<LeadershipGate>) -> JoinHandle<Result<(), LeadershipError>> {
    let gate = Arc::clone(gate);
    thread::spawn(move || block_on(gate.acquire(&NoClock)).map(drop))
}

/// Revokes the guards; returns when they are gone, and checks that they are.
fn give_up(gate: &LeadershipGate, woken: &Notify) {
    gate.revoke();
    while !gate.is_released() {
        woken.wait();
    }
    assert!(!gate.has_guards(), "one works on");
}

#[test]
fn leadership_is_given_up_when_its_guards_have_gone_and_not_before() {
    explore(|| {
        let (gate, woken) = gate();
        gate.set(Some(FencingToken::elected(1)), None);
        let guards = [guard(&gate), guard(&gate)];
        give_up(&gate, &woken);
        gate.end();
        for guard in guards {
            // It came in time, or too late.
            assert!(matches!(guard.join().unwrap(), Ok(()) | Err(LeadershipError::Ended)));
        }
    });
}

#[test]
fn leadership_that_is_kept_after_all_is_given_up_only_when_later_guards_have_gone() {
    explore(|| {
        let (gate, woken) = gate();
        gate.set(Some(FencingToken::elected(1)), None);
        let guard = guard(&gate);
        gate.revoke();
        gate.reopen();
        give_up(&gate, &woken);
        gate.end();
        assert!(matches!(guard.join().unwrap(), Ok(()) | Err(LeadershipError::Ended)));
    });
}

#[test]
fn the_end_of_earlier_guards_is_not_taken_for_that_of_later_ones() {
    explore(|| {
        let (gate, woken) = gate();
        gate.set(Some(FencingToken::elected(1)), None);
        let guard = guard(&gate);
        gate.revoke();
        // It is deposed before they are gone, and elected again.
        gate.set(None, None);
        gate.set(Some(FencingToken::elected(2)), None);
        give_up(&gate, &woken);
        gate.end();
        assert!(matches!(guard.join().unwrap(), Ok(()) | Err(LeadershipError::Ended)));
    });
}

#[test]
fn a_caller_that_waits_to_lead_is_woken_by_an_election_and_by_the_end() {
    explore(|| {
        let (gate, _) = gate();
        let guard = guard(&gate);
        gate.set(Some(FencingToken::elected(1)), None);
        guard.join().unwrap().unwrap();
    });
    explore(|| {
        let (gate, _) = gate();
        let guard = guard(&gate);
        gate.end();
        guard.join().unwrap().unwrap_err();
    });
}
