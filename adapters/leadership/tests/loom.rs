//! The seat between the thread of an election and those of its guards, in every order in which they can run.
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
use quorate_leadership::{Clock, FencingToken, LeadershipError, Seat};

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

/// A seat, and the bell that wakes its election.
fn seat() -> (Arc<Seat>, loom::sync::Arc<Notify>) {
    let bell = loom::sync::Arc::new(Notify::new());
    let rung = bell.clone();
    (Arc::new(Seat::new(move || rung.notify())), bell)
}

/// Somebody leads for a moment, or learns that it never will.
fn guard(seat: &Arc<Seat>) -> JoinHandle<Result<(), LeadershipError>> {
    let seat = Arc::clone(seat);
    thread::spawn(move || block_on(seat.take(&NoClock)).map(drop))
}

/// The guards are sent away; returns when they are gone, and looks whether they are.
fn give_up(seat: &Seat, bell: &Notify) {
    seat.send_away();
    while !seat.is_released() {
        bell.wait();
    }
    assert!(seat.is_vacant(), "somebody works on");
}

#[test]
fn a_seat_is_given_up_when_its_guards_have_gone_and_not_before() {
    explore(|| {
        let (seat, bell) = seat();
        seat.set(Some(FencingToken::elected(1)), None);
        let guards = [guard(&seat), guard(&seat)];
        give_up(&seat, &bell);
        seat.end();
        for guard in guards {
            // It came in time, or too late.
            assert!(matches!(guard.join().unwrap(), Ok(()) | Err(LeadershipError::Ended)));
        }
    });
}

#[test]
fn a_seat_that_is_kept_after_all_is_given_up_only_when_those_have_gone_who_came_since() {
    explore(|| {
        let (seat, bell) = seat();
        seat.set(Some(FencingToken::elected(1)), None);
        let guard = guard(&seat);
        seat.send_away();
        seat.keep();
        give_up(&seat, &bell);
        seat.end();
        assert!(matches!(guard.join().unwrap(), Ok(()) | Err(LeadershipError::Ended)));
    });
}

#[test]
fn the_end_of_an_earlier_reigns_guards_is_not_taken_for_that_of_the_nexts() {
    explore(|| {
        let (seat, bell) = seat();
        seat.set(Some(FencingToken::elected(1)), None);
        let guard = guard(&seat);
        seat.send_away();
        // It is deposed before they are gone, and elected again.
        seat.set(None, None);
        seat.set(Some(FencingToken::elected(2)), None);
        give_up(&seat, &bell);
        seat.end();
        assert!(matches!(guard.join().unwrap(), Ok(()) | Err(LeadershipError::Ended)));
    });
}

#[test]
fn whoever_waits_to_lead_is_woken_by_an_election_and_by_the_end() {
    explore(|| {
        let (seat, _) = seat();
        let guard = guard(&seat);
        seat.set(Some(FencingToken::elected(1)), None);
        guard.join().unwrap().unwrap();
    });
    explore(|| {
        let (seat, _) = seat();
        let guard = guard(&seat);
        seat.end();
        guard.join().unwrap().unwrap_err();
    });
}
