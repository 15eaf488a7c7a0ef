//! Elections by generation, told to one clock: where it matters what a single message says.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::Generations;
use quorate_core::generation::{ClockConfig, ClockEvent, ClockOutput, Cue, GenerationClock};
use quorate_core::generation_message::{
    Attempt, Body, Claim, Generation, GenerationMessage, GrantedVote,
};
use quorate_core::id::ServerId;
use quorate_core::quorum::Quorum;
use quorate_core::time::Instant;
use quorate_core::vote::{ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::stories::Told;

const MILLI: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Duration::from_millis(ms)
}

fn says(from: i64, generation: i64, body: Body) -> ClockEvent {
    let claim = Claim { current_epoch: Epoch(1), last: Zxid(1 << 32) };
    let (from, generation) = (ServerId(from), Generation(generation));
    let config = Bytes::new();
    let message = GenerationMessage { from, generation, claim, body, config, knows_probes: false };
    ClockEvent::Heard { from, message }
}

/// Server 1 of three, whose leader was silent; without pre-votes it asks in generation 1.
fn candidate(pre_vote: bool) -> GenerationClock {
    let config = ClockConfig {
        id: ServerId(1),
        observer: false,
        quorum: Quorum::majority([1, 2, 3].map(ServerId)),
        rules: Generations { pre_vote, ..Generations::within(150 * MILLI, 300 * MILLI) },
        seed: 1,
    };
    let mut clock = GenerationClock::new(config, GrantedVote::NONE);
    let own = Vote { peer_epoch: Epoch(1), zxid: Zxid(1 << 32), leader: ServerId(1) };
    clock.step(at(0), ClockEvent::Look { own, cue: Cue::Silence });
    if !pre_vote {
        kept(&mut clock, 1);
    }
    clock
}

fn kept(clock: &mut GenerationClock, generation: i64) {
    let granted_vote = GrantedVote { generation: Generation(generation), vote: ServerId(1) };
    clock.step(at(1), ClockEvent::Kept(granted_vote));
}

fn answer(number: u64, granted: bool) -> Body {
    let attempt = Attempt { generation: Generation(1), number, pre: false };
    Body::VoteResponse { attempt, granted }
}

fn leads(clock: &GenerationClock) -> bool {
    clock.standing().state == ServerState::Leading
}

fn no(what: bool, happened: &str) -> Told {
    if what { Err(happened.to_owned()) } else { Ok(()) }
}

/// A grant of the first attempt comes in the second, which is of another generation.
pub(crate) fn a_late_grant() -> Told {
    let mut clock = candidate(false);
    clock.step(at(400), ClockEvent::Tick);
    kept(&mut clock, 2);
    clock.step(at(401), says(2, 1, answer(1, true)));
    no(leads(&clock), "it leads on a vote in another generation")
}

/// A voter says yes to what it is not asked yet: our own vote is on its way to the disk.
pub(crate) fn a_guessed_grant() -> Told {
    let mut clock = candidate(false);
    clock.step(at(400), ClockEvent::Tick);
    let guess = Attempt { generation: Generation(2), number: 2, pre: false };
    clock.step(at(400), says(2, 2, Body::VoteResponse { attempt: guess, granted: true }));
    kept(&mut clock, 2);
    no(leads(&clock), "it leads, and nobody has answered it")
}

/// A voter says no.
pub(crate) fn a_rejection() -> Told {
    let mut clock = candidate(false);
    clock.step(at(2), says(2, 1, answer(1, false)));
    no(leads(&clock), "it leads, and nobody has voted for it")
}

fn request(generation: i64) -> Body {
    let attempt = Attempt { generation: Generation(generation), number: 1, pre: false };
    Body::VoteRequest(attempt)
}

fn keeps(outputs: &[ClockOutput]) -> bool {
    outputs.iter().any(|output| matches!(output, ClockOutput::Keep(_)))
}

/// Somebody asks for a vote while a leader is heard.
pub(crate) fn asked_while_a_leader_lives() -> Told {
    let mut clock = candidate(true);
    clock.step(at(2), says(2, 1, Body::Heartbeat { leader: ServerId(2), beat: 1 }));
    let outputs = clock.step(at(9), says(3, 2, request(2)));
    let leaves = outputs.iter().any(|output| matches!(output, ClockOutput::Leave(..)));
    no(leaves || keeps(&outputs), "it gives up a leader that it heard just now")
}

/// A later generation is seen, then somebody asks for a vote in it.
pub(crate) fn seen_before_it_is_asked() -> Told {
    let mut clock = candidate(false);
    clock.step(at(2), says(2, 5, Body::Heartbeat { leader: ServerId::NONE, beat: 1 }));
    let outputs = clock.step(at(3), says(3, 5, request(5)));
    no(!keeps(&outputs), "it has no vote left in a generation in which it gave none")
}

fn leader() -> GenerationClock {
    let mut clock = candidate(false);
    clock.step(at(2), says(2, 1, answer(1, true)));
    assert!(leads(&clock));
    clock
}

/// Nobody answers a leader.
pub(crate) fn a_leader_that_nobody_hears() -> Told {
    let mut clock = leader();
    let ticks = (3..1_000).map(|ms| clock.step(at(ms), ClockEvent::Tick));
    let mut outputs = ticks.flatten();
    no(!outputs.any(|output| matches!(output, ClockOutput::Leave(..))), "it leads on, unheard")
}
