//! One learner, packet by packet: from the leader that the election found to the end of their time
//! together.

use std::time::Duration;

use crate::support::*;
use bytes::Bytes;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Plane};
use quorate_core::message::{LearnerInfo, Message, Packet};
use quorate_core::output::Write;
use quorate_core::reasons::Hangup;
use quorate_core::report::Reason;
use quorate_core::status::Phase;
use quorate_core::timers::Timer;
use quorate_core::vote::Round;
use quorate_core::vote::ServerState::{Following, Leading, Looking, Observing};
use quorate_core::zxid::{Epoch, Zxid};

/// Server 1 of three, settled on 3 in round 1; the election links of 3 and 2.
fn settled(durable: Durable) -> (Bench, Vec<LinkId>) {
    let (epoch, zxid) = (durable.current_epoch.0, durable.last_zxid.0);
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), durable);
    let links = bench.lose(3, &[2], epoch, zxid);
    (bench, links)
}

/// The same, connected to the leader; the link to it.
fn connected(durable: Durable) -> (Bench, LinkId) {
    let (mut bench, _) = settled(durable);
    let (link, _) = bench.reach(3);
    (bench, link)
}

/// The same, and it has announced epoch 1, which is promised.
fn promised() -> (Bench, LinkId) {
    let (mut bench, link) = connected(Durable::default());
    bench.receive(link, leader_info(1));
    bench.persisted();
    (bench, link)
}

/// A follower of 3 that serves in epoch 1.
fn serving() -> (Bench, LinkId) {
    let (mut bench, _) = settled(Durable::default());
    let link = bench.serve(3, 1);
    (bench, link)
}

/// Server 9, an observer of 1, 2 and 3, settled on 3; the election links of 3 and 2.
fn observer() -> (Bench, Vec<LinkId>) {
    let mut bench =
        Bench::of(9, &with_observers(&[1, 2, 3], &[9]), Durable { ..Durable::default() });
    let links: Vec<_> = [3, 2].map(|peer| bench.meet(peer)).into();
    bench.hear(links[1], standing(Following, vote(0, 0, 3), 4));
    bench.hear(links[0], standing(Leading, vote(0, 0, 3), 4));
    assert_eq!(bench.state(), Observing);
    (bench, links)
}

// --- reaching the leader ---

#[test]
fn the_leader_is_dialled_on_its_quorum_port_and_told_who_we_are() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), disk(7, 5, 0x5_0000_0002));
    let links: Vec<_> = [3, 2].map(|peer| bench.meet(peer)).into();
    let looking = standing(Looking, vote(5, 0x5_0000_0002, 3), 1);
    bench.hear(links[0], looking);
    let seen = bench.hear(links[1], looking);
    assert_eq!(seen.addressed(), [(Plane::Quorum, 3, vec![at("host3", 2888)])]);
    assert_eq!((bench.state(), bench.phase()), (Following, Phase::Discovery));
    let (link, seen) = bench.reach(3);
    assert_eq!(seen.packets(link), [Packet::FollowerInfo(our_info(1, 7))]);
}

#[test]
fn the_version_of_the_configuration_is_told() {
    let text = ensemble(&[1, 2, 3]).replace("version=0", "version=1f");
    let mut bench = Bench::of(1, &text, Durable::default());
    bench.lose(3, &[2], 0, 0);
    let (link, seen) = bench.reach(3);
    let told = LearnerInfo { config_version: 0x1f, ..our_info(1, 0) };
    assert_eq!(seen.packets(link), [Packet::FollowerInfo(told)]);
}

#[test]
fn an_observer_says_so() {
    let (mut bench, _) = observer();
    let (link, seen) = bench.reach(3);
    assert_eq!(seen.packets(link), [Packet::ObserverInfo(our_info(9, 0))]);
    bench.receive(link, leader_info(1));
    assert_eq!(bench.persisted().packets(link), [ack_epoch(0, 0)]);
    bench.receive(link, Packet::Diff(Zxid(0)));
    bench.receive(link, new_leader(1));
    assert_eq!(bench.persisted().packets(link), [ack(1)]);
    bench.receive(link, Packet::UpToDate);
    assert_eq!((bench.state(), bench.status().serving), (Observing, true));
}

/// The leader may still be counting votes; a Java leader waits 200 ms before it even listens.
#[test]
fn a_leader_that_does_not_answer_yet_is_tried_again_from_10_to_100_ms_until_the_limit() {
    let (mut bench, _) = settled(Durable::default());
    let began = bench.now;
    let mut waits = Vec::new();
    let seen = loop {
        let seen = bench.refused(Plane::Quorum, 3);
        assert_eq!(seen.dials(), [], "its election link is up: it lives");
        let before = bench.now;
        let (timer, seen) = bench.next();
        if timer == Timer::ConnectLimit {
            break seen;
        }
        assert_eq!((timer, seen.dials()), (Timer::Connect, vec![(Plane::Quorum, 3)]));
        waits.push(bench.now.since(before));
    };
    for (at, wait) in waits.iter().enumerate() {
        let mean = [10, 20, 40, 80].get(at).copied().unwrap_or(100);
        within(*wait, millis(mean) * 3 / 4, millis(mean) * 5 / 4);
    }
    assert!(waits.len() > 5, "more often than Java does");
    assert!(waits.windows(2).skip(5).any(|pair| pair[0] != pair[1]), "with jitter");
    assert_eq!(bench.now.since(began), Duration::from_secs(30));
    assert_eq!(seen.left(), Some(Reason::LeaderUnreachable { leader: ServerId(3) }));
    assert_eq!((bench.state(), bench.status().round), (Looking, Round(2)));
}

#[test]
fn a_connect_limit_of_its_own_is_kept() {
    let limit = |config: &mut quorate_core::config::Config| config.timing.connect_limit = Some(2);
    let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), Durable::default(), limit);
    bench.lose(3, &[2], 0, 0);
    let began = bench.now;
    bench.to(Timer::ConnectLimit);
    assert_eq!(bench.now.since(began), Duration::from_secs(6));
    assert_eq!(bench.state(), Looking);
}

#[test]
fn a_leader_whose_both_ports_refuse_is_given_up_at_once() {
    let (mut bench, links) = settled(Durable::default());
    // The dials with which we once asked to be dialled come to nothing; the links are up.
    assert_eq!(bench.refused(Plane::Election, 3).left(), None);
    bench.down(links[0]);
    let seen = bench.refused(Plane::Quorum, 3);
    assert_eq!(seen.left(), None);
    let seen = if seen.election_dials() == [3] {
        bench.refused(Plane::Election, 3)
    } else {
        bench.to(Timer::Redial);
        bench.refused(Plane::Election, 3)
    };
    assert_eq!(seen.left(), Some(Reason::LeaderUnreachable { leader: ServerId(3) }));
    assert_eq!(bench.state(), Looking);
    within(bench.now.0, 0, 20_000_000);
}

/// Two ports that refuse are one server that has gone: not one port alone, nor those of two servers.
#[test]
fn a_leader_of_which_one_port_refuses_is_tried_again() {
    let (mut bench, links) = settled(Durable::default());
    bench.down(links[0]);
    while !bench.is_dialling(Plane::Election, 3) {
        bench.next();
    }
    assert_eq!(bench.refused(Plane::Election, 3).left(), None);
    let (mut bench, links) = settled(Durable::default());
    assert_eq!(bench.refused(Plane::Quorum, 3).left(), None);
    bench.down(links[1]);
    while !bench.is_dialling(Plane::Election, 2) {
        bench.next();
    }
    assert_eq!(bench.refused(Plane::Election, 2).left(), None);
    assert_eq!(bench.state(), Following);
}

#[test]
fn another_servers_silence_says_nothing_about_the_leader() {
    let (mut bench, links) = settled(Durable::default());
    bench.refused(Plane::Election, 2);
    bench.down(links[1]);
    bench.to(Timer::Redial);
    assert_eq!(bench.refused(Plane::Election, 2).left(), None);
    assert_eq!(bench.state(), Following);
}

#[test]
fn a_leader_that_has_moved_on_is_given_up_at_once() {
    let cases = [
        (standing(Looking, vote(0, 0, 3), 2), true, "a later round"),
        (
            standing(Looking, vote(0, 0, 1), 1),
            true,
            "in our round it votes for another with less: it restarted",
        ),
        (standing(Following, vote(0, 0, 2), 1), true, "another leader"),
        (standing(Looking, vote(0, 0, 3), 1), false, "the vote we settled on: still counting"),
        (
            standing(Looking, vote(0, -9, 3), 1),
            false,
            "for itself, with less: it may lead us all the same",
        ),
        (standing(Looking, vote(0, 9, 2), 0), false, "an earlier round, repeated"),
        (standing(Leading, vote(0, 0, 3), 1), false, "it leads"),
    ];
    for (heard, gone, why) in cases {
        let (mut bench, links) = settled(Durable::default());
        let seen = bench.hear(links[0], heard);
        let reason = Reason::LeaderMovedOn { leader: ServerId(3), round: heard.round };
        assert_eq!(seen.left(), gone.then_some(reason.clone()), "{why}");
        // The same from another server says nothing.
        let (mut bench, links) = settled(Durable::default());
        assert_eq!(bench.hear(links[1], heard).left(), None, "{why}");
        // A leader that looks takes our connection, and keeps it waiting.
        let (mut bench, links) = settled(Durable::default());
        let (link, _) = bench.reach(3);
        assert_eq!(bench.hear(links[0], heard).left(), gone.then_some(reason), "{why}");
        // Once it has answered it leads.
        let (mut bench, links) = settled(Durable::default());
        let (answered, _) = bench.reach(3);
        assert_eq!(answered, link);
        bench.receive(answered, leader_info(1));
        assert_eq!(bench.hear(links[0], heard).left(), None, "{why}");
    }
}

#[test]
fn a_connection_that_comes_too_late_is_hung_up_and_the_next_one_is_good() {
    let (mut bench, links) = settled(Durable::default());
    bench.to(Timer::ConnectLimit);
    let (link, seen) = bench.reach(3);
    assert_eq!(seen.hung_up(link), Some(Hangup::Unwanted));
    bench.lose_again(&links, 3, 0, 0);
    let (link, seen) = bench.reach(3);
    assert_eq!((seen.hung_up(link), seen.names(link)), (None, vec!["FOLLOWERINFO"]));
}

#[test]
fn a_dial_that_outlived_its_leadership_serves_the_next_one() {
    let (mut bench, links) = settled(Durable::default());
    bench.to(Timer::ConnectLimit);
    bench.lose_again(&links, 3, 0, 0);
    // It is the same port; a second dial would only be one more.
    let (link, seen) = bench.reach(3);
    assert_eq!(seen.names(link), ["FOLLOWERINFO"]);
}

// --- discovery ---

/// ZOOKEEPER-1653 and others: what was said must not be ahead of what is on disk.
#[test]
fn a_promise_leaves_when_it_is_on_disk_and_tells_the_epoch_before_it() {
    let (mut bench, link) = connected(disk(4, 3, 0x3_0000_0009));
    let seen = bench.receive(link, leader_info(6));
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(6))]);
    assert_eq!(seen.names(link), [""; 0]);
    assert_eq!(bench.persisted().packets(link), [ack_epoch(3, 0x3_0000_0009)]);
    assert_eq!(bench.phase(), Phase::Synchronization);
}

#[test]
fn an_epoch_promised_before_is_followed_and_not_promised_again() {
    let (mut bench, link) = connected(disk(6, 3, 0x3_0000_0009));
    let seen = bench.receive(link, leader_info(6));
    assert_eq!(seen.persists(), []);
    assert_eq!(seen.packets(link), [ack_epoch_again(0x3_0000_0009)]);
    assert_eq!(bench.phase(), Phase::Synchronization);
}

#[test]
fn an_epoch_older_than_our_promise_is_refused() {
    let (mut bench, link) = connected(disk(6, 3, 0));
    let seen = bench.receive(link, leader_info(5));
    assert_eq!(seen.hung_up(link), Some(Hangup::OldEpoch(Epoch(5))));
    let (announced, accepted) = (Epoch(5), Epoch(6));
    assert_eq!(seen.left(), Some(Reason::OldEpoch { announced, accepted }));
    assert_eq!((seen.persists(), bench.state()), (vec![], Looking));
}

#[test]
fn epochs_that_cannot_be_are_refused() {
    for epoch in [-1, i64::MIN, 1 << 31, (1 << 32) - 1, i64::MAX] {
        let (mut bench, link) = connected(disk(6, 3, 0));
        let seen = bench.receive(link, leader_info(epoch));
        assert_eq!(seen.hung_up(link), Some(Hangup::EpochOutOfRange(Epoch(epoch))));
        assert_eq!((seen.persists(), bench.state()), (vec![], Looking), "{epoch}");
        assert_eq!(bench.status().accepted_epoch, Epoch(6));
    }
    let (mut bench, link) = connected(disk(6, 3, 0));
    let seen = bench.receive(link, leader_info(Epoch::MAX.0));
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch::MAX)]);
}

// --- synchronization ---

#[test]
fn a_first_synchronization_packet_by_packet() {
    let (mut bench, link) = promised();
    assert_eq!(bench.receive(link, Packet::Diff(Zxid(0))).0.len(), 1, "a report");
    let seen = bench.receive(link, new_leader(1));
    assert_eq!(seen.persists(), [Write::CurrentEpoch(Epoch(1))]);
    assert_eq!(seen.names(link), [""; 0], "acknowledged is what a crash does not undo");
    assert_eq!(bench.persisted().packets(link), [ack(1)]);
    assert!(!bench.status().serving, "the ensemble has not said so");
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!(seen.packets(link), [ack(1)]);
    let status = bench.status();
    assert_eq!((status.serving, status.phase), (true, Phase::Broadcast));
    assert_eq!((status.accepted_epoch, status.current_epoch), (Epoch(1), Epoch(1)));
    assert_eq!(status.vote.peer_epoch, Epoch(1), "all members tell a newcomer the same");
}

#[test]
fn pings_before_uptodate_are_not_answered_and_after_it_they_are() {
    let (mut bench, link) = promised();
    assert_eq!(bench.receive(link, ping(1)).names(link), [""; 0]);
    bench.receive(link, Packet::Diff(Zxid(0)));
    bench.receive(link, new_leader(1));
    bench.persisted();
    assert_eq!(bench.receive(link, ping(1)).names(link), [""; 0]);
    bench.receive(link, Packet::UpToDate);
    for zxid in [start(1), Zxid(0x1_0000_0007)] {
        let seen = bench.receive(link, Packet::Ping { zxid, sessions: None });
        assert_eq!(seen.packets(link), [Packet::Ping { zxid, sessions: Some(Bytes::new()) }]);
    }
}

/// What a leader must not say, and when. The server goes on looking for another.
#[test]
fn a_leader_that_speaks_out_of_turn_is_left() {
    let out_of_turn: [(&[Packet], Packet); 9] = [
        (&[], Packet::Diff(Zxid(0))),
        (&[], Packet::UpToDate),
        (&[], ping(1)),
        (&[leader_info(1)], new_leader(1)),
        (&[leader_info(1)], Packet::UpToDate),
        (&[leader_info(1), Packet::Diff(Zxid(0))], Packet::Diff(Zxid(0))),
        (&[leader_info(1), Packet::Diff(Zxid(0))], new_leader(2)),
        (&[leader_info(1), Packet::Diff(Zxid(0))], Packet::UpToDate),
        (&[leader_info(1), Packet::Diff(Zxid(0)), new_leader(1)], new_leader(1)),
    ];
    for (said, packet) in out_of_turn {
        let (mut bench, link) = connected(Durable::default());
        for packet in said {
            bench.receive(link, packet.clone());
            bench.persisted();
        }
        let name = packet.name();
        let seen = bench.receive(link, packet);
        assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn(name)), "{name} after {said:?}");
        let reason = Reason::LeaderMisbehaved { leader: ServerId(3), packet: name };
        assert_eq!(seen.left(), Some(reason));
        assert_eq!(bench.state(), Looking);
    }
}

/// No leader can have counted an acknowledgement that has not left.
#[test]
fn uptodate_before_our_write_is_durable_is_misbehaviour() {
    let (mut bench, link) = promised();
    bench.receive(link, Packet::Diff(Zxid(0)));
    bench.receive(link, new_leader(1));
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn("UPTODATE")));
    assert!(!bench.status().serving);
}

// --- silence and ends ---

#[test]
fn a_leader_may_be_silent_for_the_init_limit_until_newleader_and_then_for_the_sync_limit() {
    let (init, sync) = (Duration::from_secs(30), Duration::from_secs(15));
    let said = [leader_info(1), Packet::Diff(Zxid(0)), new_leader(1), Packet::UpToDate];
    for (heard, limit) in [(0, init), (1, init), (2, init), (3, sync), (4, sync)] {
        let (mut bench, link) = connected(Durable::default());
        for packet in &said[..heard] {
            bench.ms(1_000);
            bench.receive(link, packet.clone());
            bench.persisted();
        }
        let silent = bench.now;
        let seen = bench.to(Timer::Silence);
        assert_eq!(bench.now.since(silent), limit, "after {heard} packets");
        assert_eq!(seen.hung_up(link), Some(Hangup::Silent(ServerId(3))));
        assert_eq!(seen.left(), Some(Reason::LeaderSilent { leader: ServerId(3) }));
    }
}

#[test]
fn a_leader_that_pings_is_not_silent() {
    let (mut bench, link) = serving();
    for _ in 0..100 {
        assert_eq!(bench.ms(14_000).left(), None);
        bench.receive(link, ping(1));
    }
    let (mut bench, link) = promised();
    bench.receive(link, Packet::Diff(Zxid(0)));
    bench.receive(link, new_leader(1));
    bench.persisted();
    for _ in 0..10 {
        assert_eq!(bench.ms(14_000).left(), None);
        bench.receive(link, ping(1));
    }
}

#[test]
fn how_the_link_to_the_leader_ended_is_told_as_it_was() {
    for (cause, told) in [
        (Cause::Closed, "leader 3 closed its link"),
        (Cause::Reset, "the link to leader 3 broke"),
        (Cause::Silent, "leader 3 acknowledges nothing any more"),
        (Cause::Garbled, "leader 3 sent what cannot be read"),
    ] {
        let (mut bench, link) = connected(Durable::default());
        bench.boundary.up.remove(&link);
        let seen = bench.step(Event::LinkDown { link, cause });
        assert_eq!(seen.left().map(|reason| reason.to_string()).as_deref(), Some(told));
    }
}

#[test]
fn the_end_of_the_link_is_the_end_of_the_leadership_and_begins_the_next_round() {
    let said = [leader_info(1), Packet::Diff(Zxid(0)), new_leader(1), Packet::UpToDate];
    for heard in 0..=said.len() {
        let (mut bench, link) = connected(Durable::default());
        for packet in &said[..heard] {
            bench.receive(link, packet.clone());
            bench.persisted();
        }
        let seen = bench.down(link);
        let lost = Reason::LeaderLost { leader: ServerId(3), cause: Cause::Closed };
        assert_eq!(seen.left(), Some(lost));
        let status = bench.status();
        assert_eq!((status.state, status.serving), (Looking, false));
        assert_eq!((status.round, status.vote.leader), (Round(2), ServerId(1)));
        let epoch = Epoch(i64::from(heard >= 3));
        assert_eq!(status.vote.peer_epoch, epoch, "what is on disk is what is voted with");
    }
}

#[test]
fn a_notification_on_the_leaders_link_ends_it() {
    let (mut bench, link) = serving();
    let seen = bench.hear(link, standing(Leading, vote(0, 0, 3), 1));
    assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn("notification")));
    assert_eq!(bench.state(), Looking);
}

#[test]
fn an_observer_waits_a_little_before_it_takes_part_again_and_a_voter_does_not() {
    let mut waits = std::collections::BTreeSet::new();
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let text = with_observers(&[1, 2, 3], &[9]);
        let mut bench = Bench::with(9, &text, Durable::default(), |config| config.seed = seed);
        let links: Vec<_> = [3, 2].map(|peer| bench.meet(peer)).into();
        bench.hear(links[1], standing(Following, vote(0, 0, 3), 4));
        bench.hear(links[0], standing(Leading, vote(0, 0, 3), 4));
        let (link, _) = bench.reach(3);
        let seen = bench.down(link);
        assert!(links.iter().all(|link| seen.told(*link).is_empty()));
        let lost = bench.now;
        bench.to(Timer::Backoff);
        let wait = bench.now.since(lost);
        within(wait, Duration::ZERO, millis(200));
        waits.insert(wait);
    }
    assert!(cfg!(miri) || waits.len() > 15, "not all at once: {waits:?}");
}

// --- fencing ---

/// A vote made with an epoch that only memory holds could be broken by a crash.
#[test]
fn no_vote_leaves_before_everything_that_it_tells_is_on_disk() {
    let (mut bench, links) = settled(Durable::default());
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(1));
    let first = bench.persisted();
    assert_eq!(first.names(link), ["ACKEPOCH"]);
    bench.receive(link, Packet::Diff(Zxid(0)));
    bench.receive(link, new_leader(1));
    let seen = bench.down(link);
    assert!(links.iter().all(|link| seen.told(*link).is_empty()), "{seen:?}");
    assert_eq!(bench.state(), Looking);
    let seen = bench.ms(5_000);
    assert!(links.iter().all(|link| seen.told(*link).is_empty()), "{seen:?}");
    let seen = bench.persisted();
    for link in links {
        assert_eq!(seen.told(link), [standing(Looking, vote(1, 0, 1), 2)]);
    }
}

#[test]
fn of_several_writes_the_last_one_ends_the_wait() {
    let (mut bench, link) = connected(Durable::default());
    bench.receive(link, leader_info(1));
    bench.receive(link, Packet::Diff(Zxid(0)));
    bench.receive(link, new_leader(1));
    assert_eq!(bench.writes_pending(), 2);
    bench.down(link);
    assert_eq!(bench.persisted_one().all_sent(), [] as [&Message; 0]);
    assert_eq!(bench.status().round, Round(1));
    assert!(!bench.persisted_one().all_sent().is_empty());
    assert_eq!(bench.status().round, Round(2));
}

/// A server that has given up its leader and waits for its disk is no witness for that leader:
/// newcomers would join a leadership that is over, again and again.
#[test]
fn who_waits_for_its_disk_does_not_claim_its_old_office() {
    // A follower that waits for its disk.
    let (mut bench, links) = settled(Durable::default());
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(1));
    bench.down(link);
    let seen = bench.hear(links[1], standing(Looking, vote(0, 0, 2), 2));
    assert!(seen.told(links[1]).iter().all(|s| s.state == Looking), "{seen:?}");
    let again = bench.accepted(2);
    assert!(again.1.told(again.0).iter().all(|s| s.state == Looking), "{again:?}");
}

/// The same for a leader: it would still be joined, and would hang up on everybody who comes.
#[test]
fn a_leader_that_has_left_and_waits_for_its_disk_does_not_say_that_it_leads() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    let links = bench.win(&[1, 2]);
    bench.follower(2, 0);
    assert_eq!(bench.writes_pending(), 1);
    bench.step(Event::StepDown);
    assert_eq!(bench.state(), Looking);
    let seen = bench.hear(links[0], standing(Looking, vote(0, 0, 1), 2));
    assert!(seen.told(links[0]).iter().all(|s| s.state == Looking), "{seen:?}");
}

// --- what belongs to an earlier leadership ---

#[test]
fn links_packets_and_writes_of_an_earlier_leadership_do_nothing() {
    let (mut bench, links) = settled(Durable::default());
    let (old, _) = bench.reach(3);
    bench.receive(old, leader_info(1));
    bench.receive(old, Packet::Diff(Zxid(0)));
    bench.receive(old, new_leader(1));
    bench.down(old);
    // The acknowledgements that were held for the old link are gone with it.
    let seen = bench.persisted();
    assert_eq!(seen.names(old), [""; 0]);
    bench.lose_again(&links, 3, 1, 0);
    let packet = |packet| Event::Received { link: old, message: Message::Packet(packet) };
    for stale in [leader_info(9), Packet::Diff(Zxid(0)), new_leader(1), Packet::UpToDate] {
        bench.step(packet(stale)).is_nothing();
    }
    bench.step(Event::LinkDown { link: old, cause: Cause::Reset }).is_the_end_of(old);
    assert_eq!(bench.status().accepted_epoch, Epoch(1));
    let link = bench.serve(3, 2);
    bench.step(packet(Packet::snap(Zxid(5)))).is_nothing();
    assert!(bench.is_up(link) && bench.status().serving);
}

#[test]
fn a_write_that_becomes_durable_after_the_next_leader_came_acknowledges_nothing_to_it() {
    let (mut bench, links) = settled(Durable::default());
    let (old, _) = bench.reach(3);
    bench.receive(old, leader_info(1));
    bench.down(old);
    assert_eq!(bench.persisted().names(old), [""; 0]);
    bench.lose_again(&links, 3, 0, 0);
    let (link, seen) = bench.reach(3);
    assert_eq!(seen.packets(link), [Packet::FollowerInfo(our_info(1, 1))], "the promise holds");
}

#[test]
fn learners_that_come_to_a_follower_are_sent_away() {
    let (mut bench, good) = serving();
    let (link, seen) = bench.learner_seen();
    assert_eq!(seen.hung_up(link), Some(Hangup::NotLeading));
    assert!(bench.is_up(good) && bench.status().serving);
}

#[test]
fn a_follower_that_serves_answers_who_looks_with_its_leader_and_the_epoch() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    let links = bench.lose(3, &[2], 0, 0);
    bench.serve(3, 1);
    let seen = bench.hear(links[1], standing(Looking, vote(0, 0, 2), 7));
    assert_eq!(seen.told(links[1]), [standing(Following, vote(1, 0, 3), 1)]);
    let seen = bench.hear(links[1], standing(Following, vote(0, 0, 3), 7));
    assert_eq!(seen.told(links[1]), []);
}

/// A leader that will not have us (it knows an older configuration, our history is beyond what it can
/// serve, it is full) closes each link at once. Coming back at the speed of the network would cost
/// every voter an exchange of votes each time.
#[test]
fn a_learner_that_is_turned_away_again_and_again_takes_its_time() {
    let (mut bench, links) = settled(Durable::default());
    let began = bench.now;
    for _ in 0..50 {
        let (link, _) = bench.reach(3);
        bench.down(link);
        while bench.status().leader.is_none() {
            bench.hear(links[1], standing(Following, vote(0, 0, 3), 1));
            bench.hear(links[0], standing(Leading, vote(0, 0, 3), 1));
            if bench.status().leader.is_none() {
                bench.next();
            }
        }
    }
    let took = bench.now.since(began);
    assert!(took > Duration::from_secs(5), "50 times within {took:?}");
}

// --- an observer whose promise is above every leadership ---

/// Observer 9 of 1, 2 and 3 has promised epoch 9 to a leader that died of it, and follows 3, which leads epoch 4; what
/// it answers to LEADERINFO.
fn observes_below(durable: Durable, next: Option<&[i64]>) -> (Bench, LinkId, Seen) {
    let text = with_observers(&[1, 2, 3], &[9]);
    let mut bench = Bench::with(9, &text, durable, |config| {
        config.reconfig_enabled = true;
        config.next_membership = next.map(|ids| voters(ids).with_version(1));
    });
    let links: Vec<_> = [3, 2].map(|peer| bench.meet(peer)).into();
    bench.hear(links[1], standing(Following, vote(1, 0x1_0000_0002, 3), 4));
    bench.hear(links[0], standing(Leading, vote(1, 0x1_0000_0002, 3), 4));
    let (link, _) = bench.reach(3);
    let seen = bench.receive(link, leader_info(4));
    (bench, link, seen)
}

/// What an observer has promised counts nowhere, so no leader pays for it: it serves, promises nothing and keeps its
/// promise. On 953d248 it hung up on every leader until one began epoch 9.
#[test]
fn an_observer_follows_a_leader_below_its_promise() {
    let (mut bench, link, seen) = observes_below(disk(9, 1, 0x1_0000_0002), None);
    assert_eq!(seen.packets(link), [ack_epoch_again(0x1_0000_0002)]);
    assert_eq!(seen.persists(), []);
    bench.receive(link, Packet::Diff(Zxid(0x1_0000_0002)));
    bench.receive(link, new_leader(4));
    assert_eq!(bench.persisted().packets(link), [ack(4)]);
    bench.receive(link, Packet::UpToDate);
    let status = bench.status();
    assert!(status.serving);
    assert_eq!((status.accepted_epoch, status.current_epoch), (Epoch(9), Epoch(4)));
}

#[test]
fn an_observer_with_a_newer_history_or_a_vote_to_come_is_held_by_its_promise() {
    let newer = [disk(9, 5, 0x1_0000_0002), disk(9, 5, 0x5_0000_0001)].map(|disk| (disk, None));
    let votes = (disk(9, 1, 0x1_0000_0002), Some(&[1, 2, 3, 9][..]));
    let mut votes_next = votes.0.clone();
    votes_next.last_zxid = Zxid(0x1_0000_0002);
    for (durable, next) in newer.into_iter().chain([(votes_next, votes.1)]) {
        let (bench, link, seen) = observes_below(durable, next);
        assert_eq!(seen.hung_up(link), Some(Hangup::OldEpoch(Epoch(4))), "{next:?}");
        assert!(matches!(seen.left(), Some(Reason::OldEpoch { .. })));
        assert_eq!(bench.status().accepted_epoch, Epoch(9));
    }
}

/// A ZooKeeper leader counts an acknowledgement by the id of its sender: whoever finds at NEWLEADER that it has a vote
/// does not acknowledge an epoch below its promise.
#[test]
fn an_observer_that_hears_at_newleader_that_it_votes_acknowledges_nothing_below_its_promise() {
    let (mut bench, link, _) = observes_below(disk(9, 1, 0x1_0000_0002), None);
    bench.receive(link, Packet::Diff(Zxid(0x1_0000_0002)));
    let config = voters(&[1, 2, 3, 9]).with_version(2).text().clone();
    let mut seen = bench.receive(link, Packet::NewLeader { zxid: start(4), config });
    assert_eq!(seen.hung_up(link), Some(Hangup::OldEpoch(Epoch(4))));
    assert!(matches!(seen.left(), Some(Reason::OldEpoch { .. })));
    seen = bench.persisted();
    assert_eq!(seen.packets(link), []);
    assert_eq!(bench.status().current_epoch, Epoch(1));
}

/// The change comes behind NEWLEADER, and the acknowledgement of that still waits for the disk.
#[test]
fn an_observer_that_comes_to_vote_before_its_acknowledgement_has_left_does_not_send_it() {
    let txn = change(z(4, 1), &[1, 2, 3, 9]);
    for packet in
        [Packet::Inform(txn.clone()), Packet::InformAndActivate { leader: ServerId(3), txn }]
    {
        let (mut bench, link, _) = observes_below(disk(9, 1, 0x1_0000_0002), None);
        bench.receive(link, Packet::Diff(Zxid(0x1_0000_0002)));
        bench.receive(link, new_leader(4));
        let seen = bench.receive(link, packet);
        assert_eq!(seen.hung_up(link), Some(Hangup::OldEpoch(Epoch(4))));
        assert!(matches!(seen.left(), Some(Reason::OldEpoch { .. })));
        assert_eq!(bench.persisted().packets(link), []);
    }
}

/// 5 was elected by 1, 2, 3 and 4, and 1 does not reach it. One after the other of them looks again: what 5 has not told
/// yet they tell. Where no link at all to 5 is up the first of them is enough.
#[test]
fn whoever_does_not_reach_its_leader_looks_again_with_those_who_elected_it() {
    let settled = || {
        let mut bench = Bench::of(1, &ensemble(&[1, 2, 3, 4, 5]), Durable::default());
        let links = bench.lose(5, &[4, 3, 2], 0, 0);
        (bench, links)
    };
    let again = |id| standing(Looking, vote(0, 0, id), 2);
    let deserted = |voter| Some(Reason::Deserted { voter: ServerId(voter) });
    let (mut bench, links) = settled();
    let [_, four, three, two] = links[..] else { panic!("{links:?}") };
    assert_eq!(
        bench.hear(four, standing(Looking, vote(0, 0, 4), 1)).left(),
        None,
        "no later round"
    );
    assert_eq!(bench.hear(four, again(4)).left(), None, "1, 2, 3 and 5 are still a quorum");
    assert_eq!(bench.hear(four, again(4)).left(), None, "it is counted once");
    assert_eq!(bench.hear(three, again(3)).left(), None, "1, 2 and 5 are");
    assert_eq!(bench.hear(two, again(2)).left(), deserted(2));
    // It has reached 5, and 5 has not told its epoch.
    let (mut bench, links) = settled();
    let (link, _) = bench.reach(5);
    bench.hear(links[1], again(4));
    bench.hear(links[2], again(3));
    assert_eq!(bench.hear(links[3], again(2)).left(), deserted(2));
    // Once it has there is a quorum that the others know nothing of.
    let (mut bench, links) = settled();
    bench.reach(5);
    bench.receive(link, leader_info(1));
    for (link, id) in [(links[1], 4), (links[2], 3), (links[3], 2)] {
        assert_eq!(bench.hear(link, again(id)).left(), None);
    }
    // There is no link to 5 of either kind.
    let (mut bench, links) = settled();
    bench.down(links[0]);
    assert_eq!(bench.hear(links[1], again(4)).left(), deserted(4));
}
