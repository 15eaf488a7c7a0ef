//! A server whose quorum port accepts no connections: it gives its leadership up, and is not elected until it does.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::time::Duration;

use crate::support::*;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Plane};
use quorate_core::message::{LearnerInfo, Packet};
use quorate_core::report::Reason;
use quorate_core::status::Phase;
use quorate_core::timers::Timer;
use quorate_core::vote::ServerState::{self, Following, Leading, Looking};

/// syncLimit less a tick.
const PATIENCE: Duration = Duration::from_secs(12);
/// initLimit.
const INIT: Duration = Duration::from_secs(30);

/// Server 3 of three leads epoch 1, in which server 2 follows; its election links to 1 and 2.
fn leads() -> (Bench, Vec<LinkId>, LinkId) {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    let links = bench.win(&[1, 2]);
    let learner = bench.establish(2);
    (bench, links, learner)
}

/// Time passes; the learner answers every ping.
fn answered(bench: &mut Bench, learner: LinkId, time: Duration) -> Seen {
    let (until, mut seen) = (bench.now + time, Seen::default());
    while bench.now + millis(900) < until {
        seen.add(bench.ms(900));
        bench.receive(learner, pong(1));
    }
    seen.add(bench.wait(until.since(bench.now)));
    seen
}

/// It led, and does not since it cannot be followed.
fn deposed() -> (Bench, Vec<LinkId>) {
    let (mut bench, links, learner) = leads();
    bench.step(Event::ListenFailed(Plane::Quorum));
    let seen = answered(&mut bench, learner, PATIENCE);
    assert_eq!(seen.left(), Some(Reason::CannotAccept));
    (bench, links)
}

fn says(bench: &mut Bench, link: LinkId, vote: quorate_core::vote::Vote, round: i64) -> Seen {
    bench.hear(link, standing(Looking, vote, round))
}

fn proposed(bench: &Bench) -> ServerId {
    bench.peer.standing().vote.leader
}

#[test]
fn a_leader_that_cannot_be_followed_gives_its_leadership_up_a_tick_before_its_followers_would_leave()
 {
    let (mut bench, _, learner) = leads();
    bench.step(Event::ListenFailed(Plane::Quorum)).is_nothing();
    assert_eq!(answered(&mut bench, learner, PATIENCE - millis(1)).left(), None);
    // Said once more: the same failure.
    bench.step(Event::ListenFailed(Plane::Quorum)).is_nothing();
    assert_eq!(bench.ms(1).left(), Some(Reason::CannotAccept));
    let ours = bench.peer.standing().vote;
    assert_eq!((ours.leader, ours.peer_epoch.0), (ServerId::NONE, 1));
    assert_eq!(ours.zxid, bench.status().last);
}

#[test]
fn one_that_accepts_again_in_time_leads_on() {
    let (mut bench, _, learner) = leads();
    for _ in 0..5 {
        bench.step(Event::ListenFailed(Plane::Quorum));
        answered(&mut bench, learner, PATIENCE - millis(1));
        bench.step(Event::Listening(Plane::Quorum));
    }
    assert_eq!(bench.state(), Leading);
}

#[test]
fn an_election_port_costs_no_leadership() {
    let (mut bench, _, learner) = leads();
    bench.step(Event::ListenFailed(Plane::Election));
    assert_eq!(answered(&mut bench, learner, 10 * PATIENCE).left(), None);
}

/// Nobody else can lead, and those that are here are a quorum.
#[test]
fn a_single_voter_leads_on() {
    let mut bench = Bench::of(1, &ensemble(&[1]), Durable::default());
    bench.persisted();
    bench.persisted();
    assert!(bench.status().serving);
    bench.step(Event::ListenFailed(Plane::Quorum));
    bench.wait(10 * PATIENCE);
    assert!(bench.status().serving);
}

/// A link that stands is as good as ever; only nobody new can come.
#[test]
fn a_follower_of_ours_is_handed_the_leadership() {
    let disk = stored(4, 4, start(4), entries(4, 1, 2));
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), disk);
    bench.win(&[1, 2]);
    let protocol = LearnerInfo::ours(LearnerInfo::PROTOCOL, 0, true);
    let two = bench.learner();
    bench.receive(two, Packet::FollowerInfo(LearnerInfo { protocol, ..info(2, 4) }));
    bench.persisted();
    bench.receive(two, ack_epoch(4, bench.status().last.0));
    bench.persisted();
    bench.receive(two, ack(5));
    assert_eq!(bench.phase(), Phase::Broadcast);
    bench.step(Event::ListenFailed(Plane::Quorum));
    bench.wait(PATIENCE - millis(100));
    bench.receive(two, Packet::MayLead(true));
    let seen = bench.to(Timer::Listening);
    assert!(seen.releases(), "{:?}", seen.0);
    assert_eq!((seen.left(), bench.state()), (None, Leading));
    let seen = bench.released();
    assert_eq!(seen.names(two), ["TRANSFER"]);
    bench.down(two);
    assert_eq!(bench.status().leader, Some(ServerId(2)));
}

/// Where nobody takes the leadership it is given up all the same.
#[test]
fn a_leadership_that_is_not_taken_is_given_up() {
    let (mut bench, _) = deposed();
    assert_eq!(bench.state(), Looking);
    bench.step(Event::StepDown).is_nothing();
}

#[test]
fn it_adopts_a_vote_at_least_as_new_as_its_own_history_and_no_older_one() {
    for (theirs, adopted) in
        [(vote(0, 9, 2), false), (vote(1, 0x1_0000_0000, 1), true), (vote(2, 0, 1), true)]
    {
        let (mut bench, links) = deposed();
        let disk = bench.peer.standing().vote;
        let older = (theirs.peer_epoch, theirs.zxid) < (disk.peer_epoch, disk.zxid);
        assert_eq!(older, !adopted);
        let round = bench.status().round.0;
        says(&mut bench, links[1], theirs, round);
        let expected = if adopted { theirs.leader } else { ServerId::NONE };
        assert_eq!(proposed(&bench), expected, "{theirs}");
    }
}

#[test]
fn it_never_votes_for_itself_whoever_does() {
    let (mut bench, links) = deposed();
    let round = bench.status().round.0;
    let for_us = vote(9, 0x9_0000_0009, 3);
    for (link, round) in [(links[0], round), (links[1], round), (links[0], round + 3)] {
        says(&mut bench, link, for_us, round);
        assert_eq!(proposed(&bench), ServerId::NONE);
    }
    bench.hear(links[1], standing(Following, for_us, bench.status().round.0));
    assert_eq!(bench.state(), Looking);
}

/// What it proposes nobody counts, so the others cannot be called into its round; it goes into theirs.
#[test]
fn it_joins_the_round_of_those_who_look_also_an_earlier_one() {
    let (mut bench, links) = deposed();
    let round = bench.status().round.0;
    for theirs in [round + 4, round - 1] {
        says(&mut bench, links[1], vote(0, 0, 2), theirs);
        assert_eq!((bench.status().round.0, proposed(&bench)), (theirs, ServerId::NONE));
    }
    let newest = vote(1, 0x1_0000_0000, 2);
    says(&mut bench, links[1], newest, round - 1);
    assert_eq!(proposed(&bench), ServerId(2));
    // Once it proposes somebody it stays.
    says(&mut bench, links[0], vote(1, 0x1_0000_0000, 1), round - 2);
    assert_eq!(bench.status().round.0, round - 1);
}

/// With that vote a quorum is one election away.
#[test]
fn another_leads_within_one_election() {
    let (mut bench, links) = deposed();
    let (round, newest) = (bench.status().round.0, vote(1, 0x1_0000_0000, 2));
    says(&mut bench, links[1], newest, round);
    bench.to(Timer::Finalize);
    assert_eq!(bench.status().leader, Some(ServerId(2)));
}

#[test]
fn where_nobody_else_can_lead_it_stands_again_for_a_while_every_init_limit() {
    let (mut bench, links) = deposed();
    for _ in 0..3 {
        bench.wait(INIT - millis(1));
        assert_eq!(proposed(&bench), ServerId::NONE);
        bench.ms(1);
        assert_eq!(proposed(&bench), ServerId(3));
        bench.wait(INIT - millis(1));
        assert_eq!(proposed(&bench), ServerId(3));
        bench.ms(1);
    }
    bench.wait(INIT);
    bench.win_again(&links);
    // As long as any other that was elected, though the port has failed for long.
    assert_eq!(bench.wait(INIT - millis(1)).left(), None);
    assert_eq!(bench.ms(1).left(), Some(Reason::NoneCame));
    assert_eq!(proposed(&bench), ServerId::NONE);
}

/// Time that passes while others lead is no reason to stand when they are gone.
#[test]
fn the_others_go_first_in_each_election() {
    let (mut bench, links) = deposed();
    for _ in 0..3 {
        let ours = bench.peer.standing().vote;
        bench.lose_again(&links, 2, ours.peer_epoch.0, ours.zxid.0);
        let leader = bench.serve(2, bench.status().accepted_epoch.0 + 1);
        for _ in 0..40 {
            bench.ms(1000);
            bench.receive(leader, ping(bench.status().current_epoch.0));
        }
        bench.down(leader);
        bench.persisted();
        assert_eq!((bench.state(), proposed(&bench)), (Looking, ServerId::NONE));
    }
}

#[test]
fn one_that_accepts_again_stands_at_once() {
    let (mut bench, links) = deposed();
    bench.step(Event::Listening(Plane::Election)).is_nothing();
    assert_eq!(proposed(&bench), ServerId::NONE);
    bench.step(Event::Listening(Plane::Quorum));
    assert_eq!(proposed(&bench), ServerId(3));
    bench.win_again(&links);
}

/// Not only a leader: whoever could not be followed lets the others go first.
#[test]
fn a_server_that_looks_proposes_itself_until_its_port_has_failed_for_long() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    bench.step(Event::ListenFailed(Plane::Quorum));
    bench.wait(PATIENCE - millis(1));
    assert_eq!(proposed(&bench), ServerId(3));
    bench.ms(1);
    assert_eq!(proposed(&bench), ServerId::NONE);
}

#[test]
fn a_leadership_on_offer_is_not_taken_by_one_that_cannot_be_followed() {
    for fails in [false, true] {
        let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
        bench.lose(3, &[2], 0, 0);
        let leader = bench.serve(3, 1);
        if fails {
            bench.step(Event::ListenFailed(Plane::Quorum));
        }
        let vote = vote(1, bench.status().last.0, 1);
        let round = quorate_core::vote::Round(bench.status().round.0 + 1);
        bench.receive(leader, Packet::Transfer { vote, round });
        let state: ServerState = bench.state();
        assert_eq!(state, if fails { Following } else { Leading });
    }
}

#[test]
fn without_reconfiguration_or_with_it() {
    for enabled in [false, true] {
        let change = |config: &mut Config| config.reconfig_enabled = enabled;
        let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), disk(1, 1, 0), change);
        let one = bench.meet(1);
        bench.step(Event::ListenFailed(Plane::Quorum));
        bench.wait(PATIENCE);
        says(&mut bench, one, vote(1, 0, 1), 1);
        assert_eq!((proposed(&bench), bench.status().round.0), (ServerId(1), 1));
    }
}
