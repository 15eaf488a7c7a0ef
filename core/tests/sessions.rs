//! What a service that keeps sessions has to know from other servers: what PING and REVALIDATE carry passes through,
//! opaque, and comes from the right learner.

use std::time::Duration;

use crate::support::*;
use bytes::Bytes;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Event;
use quorate_core::message::{LearnerInfo, Packet};
use quorate_core::output::Output;
use quorate_core::status::Phase;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;

const LEASE: Duration = Duration::from_secs(6);

fn keeps(config: &mut Config) {
    config.keeps_sessions = true;
    config.lease = Some(LEASE);
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn lease(sessions: &'static str) -> Packet {
    Packet::Lease { zxid: start(1), length: LEASE, sessions: bytes(sessions) }
}

fn pong(sessions: &'static str) -> Packet {
    Packet::Ping { zxid: start(1), sessions: Some(bytes(sessions)) }
}

/// Server 1, which follows 3 in epoch 1; the link to 3.
fn follower(change: fn(&mut Config)) -> (Bench, LinkId) {
    let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), Durable::default(), change);
    // A start counts as a promise just made.
    bench.wait(LEASE);
    bench.lose(3, &[2], 0, 0);
    let link = bench.serve(3, 1);
    (bench, link)
}

/// Server 3, which leads epoch 1 with 2; the link of 2.
fn leader(change: fn(&mut Config)) -> (Bench, LinkId) {
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), Durable::default(), change);
    bench.wait(LEASE);
    bench.win(&[1, 2]);
    let link = bench.learner();
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    bench.receive(link, Packet::FollowerInfo(LearnerInfo { protocol, ..info(2, 0) }));
    bench.persisted();
    bench.receive(link, ack_epoch(0, 0));
    bench.persisted();
    bench.receive(link, ack(1));
    assert_eq!(bench.status().phase, Phase::Broadcast);
    (bench, link)
}

/// What a step tells the service.
fn told(seen: &Seen) -> Vec<Output> {
    let told = seen.0.iter().filter(|output| {
        matches!(
            output,
            Output::Pinged
                | Output::Touched { .. }
                | Output::Revalidate { .. }
                | Output::Revalidated(_)
        )
    });
    told.cloned().collect()
}

// --- the learner ---

#[test]
fn a_ping_is_answered_with_the_sessions_that_the_service_has_heard_from() {
    let (mut bench, link) = follower(keeps);
    let seen = bench.receive(link, ping(1));
    assert_eq!((told(&seen), seen.packets(link)), (vec![Output::Pinged], vec![]));
    assert_eq!(bench.step(Event::Touch(bytes("a and b"))).packets(link), [pong("a and b")]);
    // A promise is made when it is asked for, and said with the sessions.
    assert_eq!(told(&bench.receive(link, lease(""))), [Output::Pinged]);
    assert_eq!(bench.step(Event::Touch(bytes("c"))).packets(link), [lease("c")]);
}

/// An answer tells of what was heard by the time of its ping: a later ping is not answered with it, or the leader would
/// believe that nothing was heard since.
#[test]
fn each_ping_waits_for_an_answer_of_its_own_and_nothing_that_was_heard_is_left_out() {
    let (mut bench, link) = follower(keeps);
    for packet in [ping(1), lease(""), ping(1)] {
        bench.receive(link, packet);
    }
    for (heard, answer) in [("a", pong("a")), ("b", lease("b")), ("", pong(""))] {
        assert_eq!(bench.step(Event::Touch(bytes(heard))).packets(link), [answer]);
    }
    for unasked in ["c", "d"] {
        bench.step(Event::Touch(bytes(unasked))).is_nothing();
    }
    bench.receive(link, ping(1));
    assert_eq!(bench.step(Event::Touch(bytes("e"))).packets(link), [pong("cde")]);
    bench.receive(link, ping(1));
    assert_eq!(bench.step(Event::Touch(bytes(""))).packets(link), [pong("")], "and told once");
}

/// A leader that pings without end is answered without the service before that costs memory.
#[test]
fn the_pings_that_wait_for_the_service_are_bounded() {
    let (mut bench, link) = follower(keeps);
    for _ in 0..1024 {
        assert_eq!(told(&bench.receive(link, ping(1))), [Output::Pinged]);
    }
    let seen = bench.receive(link, ping(1));
    assert_eq!((told(&seen), seen.packets(link)[0].clone()), (vec![], pong("")));
    for _ in 0..1024 {
        assert_eq!(bench.step(Event::Touch(bytes("a"))).packets(link).len(), 1);
    }
    bench.step(Event::Touch(bytes("a"))).is_nothing();
}

#[test]
fn what_waited_for_a_leader_is_not_said_to_the_next() {
    let (mut bench, link) = follower(keeps);
    bench.receive(link, ping(1));
    bench.down(link);
    bench.step(Event::Touch(bytes("a"))).is_nothing();
    bench.step(Event::Revalidate(bytes("a"))).is_nothing();
}

#[test]
fn without_a_service_a_ping_is_answered_at_once() {
    let (mut bench, link) = follower(|_| {});
    assert_eq!(bench.receive(link, ping(1)).packets(link)[0], pong(""));
    bench.step(Event::Touch(bytes("a"))).is_nothing();
    bench.receive(link, Packet::Revalidate(bytes("a"))).is_nothing();
}

#[test]
fn a_session_is_looked_up_at_the_leader() {
    let (mut bench, link) = follower(keeps);
    let seen = bench.step(Event::Revalidate(bytes("a")));
    assert_eq!(seen.packets(link), [Packet::Revalidate(bytes("a"))]);
    let seen = bench.receive(link, Packet::Revalidate(bytes("a lives")));
    assert_eq!(told(&seen), [Output::Revalidated(bytes("a lives"))]);
}

// --- the leader ---

/// Expiry rests on when the ping was sent, not on when its answer came.
#[test]
fn each_answer_to_a_ping_is_told_with_when_that_was_sent() {
    let (mut bench, from) = leader(keeps);
    // The first is sent when it begins to serve.
    let first = bench.now;
    bench.to(Timer::Ping);
    let second = bench.now;
    let touched =
        |asked, sessions| vec![Output::Touched { from, asked, sessions: bytes(sessions) }];
    bench.ms(100);
    assert_eq!(told(&bench.receive(from, lease("a"))), touched(first, "a"));
    assert_eq!(told(&bench.receive(from, pong(""))), touched(second, ""));
    let never = Instant::ORIGIN;
    assert_eq!(told(&bench.receive(from, pong("b"))), touched(never, "b"), "it answers none");
}

#[test]
fn a_learner_that_asks_for_a_session_is_told_behind_what_is_delivered() {
    let (mut bench, from) = leader(keeps);
    let seen = bench.receive(from, Packet::Revalidate(bytes("a")));
    assert_eq!(told(&seen), [Output::Revalidate { from, body: bytes("a") }]);
    let answer = Event::Revalidated { to: from, body: bytes("a lives") };
    assert_eq!(bench.step(answer.clone()).packets(from), [Packet::Revalidate(bytes("a lives"))]);
    bench.step(Event::Revalidated { to: LinkId(4711), body: bytes("a") }).is_nothing();
    bench.down(from);
    assert_eq!(bench.step(answer).packets(from), []);
}

#[test]
fn a_leader_without_a_service_hears_nothing_of_sessions() {
    let (mut bench, from) = leader(|_| {});
    bench.to(Timer::Ping);
    assert_eq!(told(&bench.receive(from, pong("a"))), []);
    assert_eq!(told(&bench.receive(from, Packet::Revalidate(bytes("a")))), []);
    assert!(bench.is_up(from));
}

/// Else a write of a session's earlier connection, which waits while the leadership is on its way, would be taken for
/// one of the later connection by the same learner.
#[test]
fn who_comes_back_is_asked_for_behind_the_requests_that_wait() {
    let (mut bench, link) = leader(keeps);
    bench.receive(link, Packet::MayLead(true));
    assert!(bench.step(Event::TransferLeadership(Some(ServerId(2)))).releases());
    bench.released();
    let ask = |bench: &mut Bench, text| bench.receive(link, Packet::Revalidate(bytes(text)));
    let told = Output::Revalidate { from: link, body: bytes("before") };
    assert!(ask(&mut bench, "before").0.contains(&told), "nothing waits");
    bench.receive(link, Packet::Request(request(7))).is_nothing();
    ask(&mut bench, "behind").is_nothing();
    let seen = bench.to(Timer::Transfer);
    let order = seen.0.iter().filter_map(|output| {
        if let Output::Prepare { request, .. } = output {
            return Some(request.id.cxid);
        }
        let told = Output::Revalidate { from: link, body: bytes("behind") };
        (*output == told).then_some(-1)
    });
    assert_eq!(order.collect::<Vec<_>>(), [7, -1]);
}
