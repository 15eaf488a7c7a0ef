//! Reads that are as new as everything acknowledged before them: a leader answers one when a quorum has
//! said, after it came, that it still follows.

use std::time::Duration;

use crate::support::*;
use quorate_core::durable::Durable;
use quorate_core::id::LinkId;
use quorate_core::message::{LearnerInfo, Packet, Request, Run};
use quorate_core::output::Output;
use quorate_core::reasons::Refusal;
use quorate_core::report::Reason;
use quorate_core::timers::Timer;
use quorate_core::vote::ServerState::Leading;

/// The leader of these voters, established with all of them, in epoch 1; their links.
fn leader(voters: &[i64]) -> (Bench, Vec<LinkId>) {
    leader_of(voters, info)
}

/// The same of voters that say this of themselves.
fn leader_of(voters: &[i64], info: fn(i64, i64) -> LearnerInfo) -> (Bench, Vec<LinkId>) {
    let (own, others) = voters.split_last().unwrap();
    let mut bench = Bench::of(*own, &with_observers(voters, &[9]), Durable::default());
    bench.win(others);
    let came = |id: &i64| {
        let link = bench.learner();
        bench.receive(link, Packet::FollowerInfo(info(*id, 0)));
        link
    };
    let links: Vec<_> = others.iter().map(came).collect();
    bench.persisted();
    for link in &links {
        bench.receive(*link, ack_epoch(0, 0));
    }
    bench.persisted();
    for link in &links {
        bench.receive(*link, ack(1));
    }
    assert!(bench.status().serving);
    (bench, links)
}

/// Observer 9 of it, which serves.
fn observer(bench: &mut Bench, info: fn(i64, i64) -> LearnerInfo) -> LinkId {
    let link = bench.learner();
    bench.receive(link, Packet::ObserverInfo(info(9, 1)));
    bench.receive(link, ack_epoch_again(start(1).0));
    bench.receive(link, ack(1));
    link
}

fn sync(cxid: i32) -> Packet {
    Packet::Request(Request { op: Request::SYNC, ..request(cxid) })
}

/// The tags of the SYNCs on a link.
fn tags(seen: &Seen, link: LinkId) -> Vec<i32> {
    let tag = |packet| if let Packet::Sync { tag } = packet { Some(tag) } else { None };
    seen.packets(link).into_iter().filter_map(tag).collect()
}

/// How many pings a step sent.
fn pings(seen: &Seen, links: &[LinkId]) -> Vec<usize> {
    let on = |link: &LinkId| seen.names(*link).iter().filter(|name| **name == "PING").count();
    links.iter().map(on).collect()
}

#[test]
fn a_read_is_answered_when_a_quorum_has_answered_a_ping_that_was_sent_after_it() {
    let (mut bench, links) = leader(&[1, 2, 3, 4, 5]);
    let (read, seen) = bench.read();
    assert_eq!(
        (pings(&seen, &links), seen.answers()),
        (vec![1; 4], vec![]),
        "all are asked at once"
    );
    assert_eq!(bench.receive(links[0], pong(1)).answers(), []);
    assert_eq!(bench.receive(links[0], pong(1)).answers(), [], "one is one, however often");
    assert_eq!(bench.receive(links[2], pong(1)).answers(), [read], "5, 1 and 3");
    assert_eq!(bench.receive(links[1], pong(1)).answers(), []);
}

/// The followers may have left between their answer and the read.
#[test]
fn an_answer_to_a_ping_from_before_the_read_says_nothing_about_it() {
    let (mut bench, links) = leader(&[1, 2, 3]);
    let seen = bench.to(Timer::Ping);
    assert_eq!(pings(&seen, &links), [1, 1]);
    let (read, _) = bench.read();
    for link in &links {
        assert_eq!(bench.receive(*link, pong(1)).answers(), [], "to the ping before");
    }
    assert_eq!(bench.receive(links[1], pong(1)).answers(), [read]);
}

/// Reads that come while one is waiting wait for the next ping, all together.
#[test]
fn reads_share_pings_and_are_answered_in_order() {
    let (mut bench, links) = leader(&[1, 2, 3]);
    let (first, seen) = bench.read();
    assert_eq!(pings(&seen, &links), [1, 1]);
    let mut others = Vec::new();
    for _ in 0..100 {
        let (read, seen) = bench.read();
        assert_eq!(seen.0, [], "the next ping is theirs");
        others.push(read);
    }
    let seen = bench.receive(links[0], pong(1));
    assert_eq!((seen.answers(), pings(&seen, &links)), (vec![first], vec![1, 1]));
    // The other's answer to the first ping is too old for them.
    assert_eq!(bench.receive(links[1], pong(1)).answers(), []);
    let seen = bench.receive(links[1], pong(1));
    assert_eq!((seen.answers(), pings(&seen, &links)), (others, vec![0, 0]));
}

#[test]
fn a_regular_ping_serves_reads_too() {
    let (mut bench, links) = leader(&[1, 2, 3]);
    let (first, _) = bench.read();
    let (second, _) = bench.read();
    bench.to(Timer::Ping);
    bench.receive(links[0], pong(1));
    let seen = bench.receive(links[0], pong(1));
    assert_eq!(seen.answers(), [second], "answered {first} before");
}

/// Whoever is cut off, or was deposed and does not know it yet, must not answer: what it has may be old.
#[test]
fn a_leader_without_a_quorum_never_answers() {
    let (mut bench, links) = leader(&[1, 2, 3, 4, 5]);
    let nine = observer(&mut bench, info);
    let non_member = bench.learner();
    bench.receive(non_member, Packet::FollowerInfo(info(77, 1)));
    bench.receive(non_member, ack_epoch_again(start(1).0));
    bench.receive(non_member, ack(1));
    // A voter that only observes has no say either.
    let observes = bench.learner();
    bench.receive(observes, Packet::ObserverInfo(info(2, 1)));
    bench.receive(observes, ack_epoch_again(start(1).0));
    bench.receive(observes, ack(1));
    let mut reads = vec![bench.read().0];
    let mut left = None;
    while left.is_none() {
        let seen = bench.to(Timer::Ping);
        assert_eq!(seen.answers(), []);
        left = seen.left();
        if left.is_some() {
            let over = Refusal::LeadershipOver;
            let refused: Vec<_> = reads.iter().map(|read| (*read, over)).collect();
            assert_eq!(seen.unread(), refused);
            break;
        }
        // One voter, and those who have no vote.
        for link in [links[0], nine, non_member, observes] {
            assert_eq!(bench.receive(link, pong(1)).answers(), []);
        }
        reads.push(bench.read().0);
    }
    assert!(matches!(left, Some(Reason::NoQuorum { .. })));
}

/// What a voter said on a link that is gone it may have said to us before it left us.
#[test]
fn an_answer_counts_on_the_link_it_came_on_only() {
    let (mut bench, links) = leader(&[1, 2, 3, 4, 5]);
    let (read, _) = bench.read();
    bench.receive(links[0], pong(1));
    bench.down(links[0]);
    assert_eq!(bench.receive(links[1], pong(1)).answers(), [], "5 and 2");
    let (one, _) = bench.follower(1, 1);
    bench.receive(one, ack_epoch_again(start(1).0));
    assert_eq!(bench.receive(one, ack(1)).answers(), []);
    // It was not asked on this link yet.
    assert_eq!(bench.receive(one, pong(1)).answers(), []);
    assert_eq!(bench.receive(links[2], pong(1)).answers(), [read]);
}

/// Nobody answers a ping before it serves; the first answer is to the first ping after that.
#[test]
fn pings_from_before_a_learner_serves_are_not_waited_for() {
    let mut bench = Bench::of(5, &ensemble(&[1, 2, 3, 4, 5]), Durable::default());
    bench.win(&[1, 2, 3, 4]);
    let links: Vec<_> = [1, 2].map(|id| bench.follower(id, 0).0).into();
    bench.persisted();
    links.iter().for_each(|link| drop(bench.receive(*link, ack_epoch(0, 0))));
    bench.persisted();
    bench.receive(links[0], ack(1));
    let seen = bench.to(Timer::Ping);
    assert_eq!(pings(&seen, &links), [1, 0]);
    bench.receive(links[1], ack(1));
    assert!(bench.status().serving);
    let (read, _) = bench.read();
    bench.receive(links[0], pong(1));
    assert_eq!(bench.receive(links[1], pong(1)).answers(), [read]);
}

#[test]
fn a_server_alone_answers_at_once() {
    let mut bench = Bench::of(1, &ensemble(&[1]), Durable::default());
    bench.persisted();
    bench.persisted();
    let (read, seen) = bench.read();
    assert_eq!(seen.0, [Output::Answer(quorate_core::id::ReadId(read))]);
    bench.write(1);
    bench.persisted();
    let (read, seen) = bench.read();
    assert_eq!(seen.answers(), [read]);
}

// --- SYNC, towards servers of ours ---

/// It is a linearisable read there: a quorum has said, after it came, that this server leads, and what was proposed
/// when it came is committed to the learner before.
#[test]
fn a_learner_of_ours_is_answered_when_a_quorum_says_so_and_it_has_what_was_proposed_before() {
    let (mut bench, links) = leader_of(&[1, 2, 3], our_info);
    let nine = observer(&mut bench, our_info);
    bench.write(2);
    for link in [links[0], nine] {
        bench.receive(link, sync(7));
        bench.receive(links[1], pong(1));
    }
    bench.write(1);
    bench.persisted();
    assert_eq!(bench.receive(links[0], Packet::Ack(z(1, 1))).names(links[0]), ["COMMIT"]);
    let seen = bench.receive(links[0], Packet::Acks(Run { first: z(1, 2), last: z(1, 3) }));
    assert_eq!(seen.names(links[0]), ["COMMIT", "SYNC", "COMMIT"]);
    assert_eq!(seen.names(nine), ["INFORM", "SYNC", "INFORM"]);
    assert_eq!(seen.names(links[1]), ["COMMIT", "COMMIT"]);
    assert_eq!((tags(&seen, links[0]), tags(&seen, nine)), (vec![7], vec![7]));
}

/// In a leadership without a transaction, or when all are committed, a quorum's word is enough.
#[test]
fn a_learner_of_ours_is_answered_at_once_if_nothing_is_outstanding() {
    let (mut bench, links) = leader_of(&[1, 2, 3], our_info);
    let nine = observer(&mut bench, our_info);
    for round in 0..2 {
        for link in [links[0], nine] {
            let seen = bench.receive(link, sync(1));
            assert_eq!(pings(&seen, &links), [1, 1]);
            assert_eq!(seen.names(link).last(), Some(&"PING"), "{round}");
            let seen = bench.receive(links[0], pong(1));
            assert_eq!(seen.names(link), ["SYNC"], "{round}");
        }
        bench.write(1);
        bench.persisted();
        bench.receive(links[0], Packet::Ack(z(1, 1)));
    }
}

/// Answers to one learner come in the order in which it asked, and to one that has gone not at all.
#[test]
fn syncs_of_one_learner_are_answered_in_order_and_those_of_one_that_is_gone_not_at_all() {
    let (mut bench, links) = leader_of(&[1, 2, 3], our_info);
    let (one, two) = (links[0], links[1]);
    for tag in 1..=3 {
        bench.receive(one, sync(tag));
        bench.receive(two, sync(tag));
    }
    bench.down(one);
    assert_eq!(bench.receive(two, pong(1)).names(two), ["PING"], "for all but the first");
    let seen = bench.receive(two, pong(1));
    assert_eq!((seen.names(two), tags(&seen, two)), (vec!["SYNC"; 3], vec![1, 2, 3]));
    assert_eq!(bench.state(), Leading);
}

/// Local reads and those of learners wait in one queue.
#[test]
fn reads_from_here_and_from_learners_of_ours_keep_their_order() {
    let (mut bench, links) = leader_of(&[1, 2, 3], our_info);
    let (first, _) = bench.read();
    bench.receive(links[0], sync(1));
    let (second, _) = bench.read();
    bench.receive(links[1], pong(1));
    let seen = bench.receive(links[1], pong(1));
    assert_eq!((seen.answers(), seen.names(links[0])), (vec![second], vec!["SYNC"]), "{first}");
}

// --- SYNC, towards servers of ZooKeeper ---

/// They complete requests in the order in which they forwarded them, and know only the head of that queue.
#[test]
fn a_sync_of_zookeepers_comes_behind_what_was_proposed_before_and_before_everything_later() {
    let (mut bench, links) = leader(&[1, 2, 3]);
    let nine = observer(&mut bench, info);
    for link in [links[0], nine] {
        let seen = bench.receive(link, sync(7));
        assert_eq!(seen.packets(link), [Packet::Sync { tag: 0 }], "no quorum is asked");
    }
    bench.write(1);
    for link in [links[0], nine] {
        assert_eq!(bench.receive(link, sync(7)).names(link), [""; 0]);
    }
    bench.write(2);
    bench.persisted();
    let run = Run { first: z(1, 1), last: z(1, 3) };
    let seen = bench.receive(links[0], Packet::Acks(run));
    assert_eq!(seen.names(links[0]), ["COMMIT", "SYNC", "COMMIT", "COMMIT"]);
    assert_eq!(seen.names(nine), ["INFORM", "SYNC", "INFORM", "INFORM"]);
    assert_eq!(seen.names(links[1]), ["COMMIT", "COMMIT", "COMMIT"]);
}

/// `set`, `sync`, `set` in a pipeline: the application has not even prepared the first when the SYNC comes.
#[test]
fn a_sync_waits_behind_the_requests_that_are_being_prepared() {
    for (info, ours) in [(info as fn(i64, i64) -> LearnerInfo, false), (our_info, true)] {
        for together in [1, 2, 3] {
            let (mut bench, links) = leader_of(&[1, 2, 3], info);
            let one = links[0];
            for cxid in [1, 3, 5] {
                bench.receive(one, Packet::Request(request(cxid)));
                assert_eq!(bench.receive(one, sync(cxid + 1)).names(one), [""; 0]);
            }
            let mut seen = Seen::default();
            while !bench.boundary.preparing.is_empty() {
                seen.add(bench.prepared_together(together));
            }
            let syncs = tags(&seen, one);
            assert_eq!(syncs, [], "none before its COMMIT");
            // A quorum's word is asked for by those alone that are read points.
            assert_eq!(pings(&seen, &[one]) > vec![0], ours);
            for _ in 0..3 {
                bench.receive(links[1], pong(1));
            }
            bench.persisted();
            let run = Run { first: z(1, 1), last: z(1, 3) };
            let seen = bench.receive(one, Packet::Acks(run));
            let all = ["COMMIT", "SYNC", "COMMIT", "SYNC", "COMMIT", "SYNC"];
            assert_eq!(seen.names(one), all, "{together} {ours}");
            let expected = if ours { [2, 4, 6] } else { [0; 3] };
            assert_eq!(tags(&seen, one), expected);
        }
    }
}

/// A leader whose clock runs while nobody answers is not asked more and more.
#[test]
fn reads_that_wait_cost_one_ping_each_half_tick_however_many_they_are() {
    let (mut bench, links) = leader(&[1, 2, 3]);
    let mut sent = 0;
    let began = bench.now;
    while bench.now.since(began) < Duration::from_secs(9) {
        for _ in 0..50 {
            sent += pings(&bench.read().1, &links)[0];
        }
        sent += pings(&bench.to(Timer::Ping), &links)[0];
    }
    within(sent, 6, 8);
}
