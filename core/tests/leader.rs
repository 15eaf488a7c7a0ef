//! One leader, packet by packet: from the end of its election through discovery and synchronization
//! to the end of its leadership.

use std::time::Duration;

use crate::support::*;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Event;
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Message, Packet};
use quorate_core::output::Write;
use quorate_core::reasons::{Fault, Hangup};
use quorate_core::report::{Change, Reason};
use quorate_core::status::{LearnerStatus, Phase};
use quorate_core::timers::Timer;
use quorate_core::vote::ServerState::{Following, Leading, Looking};
use quorate_core::zxid::{Epoch, Zxid};

/// Server 3 of three, elected, with this on its disk; the election links of 1 and 2.
fn elected(durable: Durable) -> (Bench, Vec<LinkId>) {
    elected_of(&[1, 2, 3], 3, &[1, 2], durable)
}

fn elected_of(
    voters: &[i64],
    id: i64,
    supporters: &[i64],
    durable: Durable,
) -> (Bench, Vec<LinkId>) {
    let mut bench = Bench::of(id, &ensemble(voters), durable);
    let links = bench.win(supporters);
    (bench, links)
}

/// A leader of epoch 1 whose quorum is server 2; the learner link of 2.
fn established() -> (Bench, LinkId) {
    let (mut bench, _) = elected(Durable::default());
    let link = bench.establish(2);
    (bench, link)
}

/// The leadership of a learner.
fn learner(bench: &Bench, id: i64) -> Option<LearnerStatus> {
    bench.status().learners.into_iter().find(|leadership| leadership.id == ServerId(id))
}

// --- discovery ---

#[test]
fn the_first_quorum_of_an_empty_ensemble_packet_by_packet() {
    let (mut bench, _) = elected(Durable::default());
    assert_eq!((bench.phase(), bench.status().serving), (Phase::Discovery, false));

    let link = bench.learner();
    let seen = bench.receive(link, Packet::FollowerInfo(info(2, 0)));
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(1))]);
    assert_eq!(seen.names(link), [""; 0], "nobody hears of an epoch that is not on our disk");

    let seen = bench.persisted();
    assert_eq!(seen.packets(link), [asking_leader_info(1)]);

    let seen = bench.receive(link, ack_epoch(0, 0));
    assert_eq!(seen.persists(), [Write::CurrentEpoch(Epoch(1))]);
    let config = bench.peer.config().membership.text().clone();
    let zxid = start(1);
    assert_eq!(seen.packets(link), [Packet::Diff(Zxid(0)), Packet::NewLeader { zxid, config }]);
    assert_eq!(bench.phase(), Phase::Synchronization);

    bench.persisted();
    assert!(!bench.status().serving, "one of three has the history");
    let seen = bench.receive(link, ack(1));
    assert_eq!(seen.packets(link), [Packet::UpToDate]);
    let status = bench.status();
    assert_eq!((status.phase, status.serving, status.state), (Phase::Broadcast, true, Leading));
    assert_eq!((status.accepted_epoch, status.current_epoch), (Epoch(1), Epoch(1)));
    assert_eq!((status.vote.peer_epoch, status.processed), (Epoch(1), start(1)));

    // The second acknowledgement, which ZooKeeper's learners send after UPTODATE.
    assert_eq!(bench.receive(link, ack(1)).hangups(), []);
    let me = LearnerStatus { id: ServerId(2), voter: true, follower: true, synced: true };
    assert_eq!(bench.status().learners, [me]);
}

/// ZOOKEEPER-335: an epoch derived from one's own log alone was used twice.
#[test]
fn the_epoch_is_one_above_the_highest_promise_of_the_quorum_not_of_the_log() {
    for (own, theirs, epoch) in [(5, 6, 7), (5, 20, 21), (20, 5, 21), (5, 5, 6), (0, 0, 1)] {
        let (mut bench, _) = elected(disk(own, 0, 0));
        let (_, seen) = bench.follower(2, theirs);
        assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(epoch))], "{own} and {theirs}");
    }
}

/// Nobody whom no membership names may drive the epochs to their end.
#[test]
fn the_promise_of_somebody_who_is_no_member_does_not_count_for_the_epoch() {
    let (mut bench, _) = elected(Durable::default());
    for non_member in [info(200, Epoch::MAX.0 - 1), LearnerInfo { id: None, ..info(0, 40) }] {
        for packet in [Packet::FollowerInfo(non_member.clone()), Packet::ObserverInfo(non_member)] {
            let link = bench.learner();
            assert_eq!(bench.receive(link, packet).hung_up(link), None);
        }
    }
    let (_, seen) = bench.follower(2, 0);
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(1))]);
}

#[test]
fn an_observers_promise_counts_for_the_epoch_and_not_for_the_quorum() {
    let mut bench = Bench::of(3, &with_observers(&[1, 2, 3], &[9]), Durable::default());
    bench.win(&[1, 2]);
    let observer = bench.learner();
    let seen = bench.receive(observer, Packet::ObserverInfo(info(9, 40)));
    assert_eq!(seen.persists(), [], "an observer is no quorum");
    let (_, seen) = bench.follower(2, 0);
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(41))]);
    let seen = bench.persisted();
    assert_eq!(seen.packets(observer), [asking_leader_info(41)]);
    assert_eq!(bench.receive(observer, ack_epoch(0, 0)).persists(), [], "nor is its promise");
    assert_eq!(bench.phase(), Phase::Discovery);
}

/// A voter that comes as an observer has no say, and neither has a non-member that comes as a follower.
#[test]
fn only_voters_that_come_as_followers_count() {
    let (mut bench, _) = elected(Durable::default());
    let (a, b, c) = (bench.learner(), bench.learner(), bench.learner());
    assert_eq!(bench.receive(a, Packet::ObserverInfo(info(2, 0))).persists(), []);
    assert_eq!(bench.receive(b, Packet::FollowerInfo(info(77, 0))).persists(), []);
    assert_eq!(bench.receive(c, Packet::FollowerInfo(info(1, 0))).persists().len(), 1);
}

#[test]
fn leaderinfo_goes_to_everybody_who_came_and_to_each_who_comes() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    let (one, _) = bench.follower(1, 0);
    let (two, _) = bench.follower(2, 0);
    // The quorum has come; this one comes while our own promise is on its way to the disk.
    let (three, seen) = bench.follower(3, 0);
    assert_eq!(seen.names(three), [""; 0]);
    let seen = bench.persisted();
    for link in [one, two, three] {
        assert_eq!(seen.packets(link), [asking_leader_info(1)]);
    }
    let (four, seen) = bench.follower(4, 0);
    assert_eq!(seen.packets(four), [asking_leader_info(1)]);
}

#[test]
fn no_epoch_begins_before_a_quorum_has_come_however_often_one_voter_comes() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    for _ in 0..3 {
        assert_eq!(bench.follower(1, 0).1.persists(), []);
    }
    assert_eq!(bench.follower(2, 0).1.persists(), [Write::AcceptedEpoch(Epoch(1))]);
}

/// ZOOKEEPER-1282: a leader announced an epoch that no quorum had promised.
#[test]
fn without_a_quorum_of_promises_the_current_epoch_stays_and_the_wait_ends() {
    let (mut bench, _) = elected(disk(4, 4, 0));
    let (link, _) = bench.follower(2, 4);
    bench.persisted();
    let seen = bench.to(Timer::Init);
    let members = ids(&[3]);
    assert_eq!(seen.left(), Some(Reason::NoQuorum { phase: Phase::Discovery, members }));
    assert_eq!(seen.hung_up(link), Some(Hangup::RoleEnded));
    let status = bench.status();
    assert_eq!((status.accepted_epoch, status.current_epoch), (Epoch(5), Epoch(4)));
    assert_eq!((status.state, status.vote.peer_epoch), (Looking, Epoch(4)));
}

#[test]
fn our_own_promise_counts_only_when_it_is_on_disk() {
    // Of two servers, both are needed.
    let (mut bench, _) = elected_of(&[1, 2], 2, &[1], Durable::default());
    let (link, _) = bench.follower(1, 0);
    // It cannot have heard of the epoch yet; should it promise all the same, we have not.
    let seen = bench.receive(link, ack_epoch(0, 0));
    assert_eq!(seen.persists(), []);
    assert_eq!(bench.phase(), Phase::Discovery);
    let seen = bench.persisted();
    assert_eq!(seen.persists(), [Write::CurrentEpoch(Epoch(1))]);
}

/// A learner that had promised this epoch before promises nothing now. What it promised on an earlier
/// link holds.
#[test]
fn a_repeated_promise_does_not_count_and_the_earlier_one_stays() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    let (one, _) = bench.follower(1, 0);
    let (two, _) = bench.follower(2, 0);
    bench.persisted();
    // This one promised the epoch to somebody else: not counted.
    let (three, _) = bench.follower(3, 1);
    assert_eq!(bench.receive(three, ack_epoch_again(0)).left(), None);
    bench.receive(one, ack_epoch(0, 0));
    assert_eq!(bench.phase(), Phase::Discovery, "5 and 1 have promised, 3 has not");

    bench.down(one);
    let (one, _) = bench.follower(1, 1);
    assert_eq!(bench.receive(one, ack_epoch_again(0)).left(), None);
    let seen = bench.receive(two, ack_epoch(0, 0));
    assert_eq!(bench.phase(), Phase::Synchronization, "the promise of 1 outlived its link");
    for link in [one, two, three] {
        assert_eq!(seen.names(link), ["DIFF", "NEWLEADER"], "not counted, but synchronised");
    }
}

/// The learner's promise reached its disk but its ACKEPOCH was lost with the link: it will never
/// promise this epoch again.
#[test]
fn a_lost_promise_that_the_quorum_needs_ends_the_leadership_at_once() {
    let (mut bench, _) = elected(Durable::default());
    let (link, _) = bench.follower(2, 0);
    bench.persisted();
    bench.down(link);
    let (link, _) = bench.follower(2, 1);
    let seen = bench.receive(link, ack_epoch_again(0));
    assert_eq!(seen.left(), Some(Reason::LostPromise { voter: ServerId(2) }));
    assert_eq!(bench.state(), Looking);
}

#[test]
fn a_lost_promise_is_borne_while_somebody_else_still_may_promise() {
    let (mut bench, _) = elected(Durable::default());
    let (two, _) = bench.follower(2, 0);
    bench.persisted();
    bench.down(two);
    let (one, _) = bench.follower(1, 0);
    let (two, _) = bench.follower(2, 1);
    assert_eq!(bench.receive(two, ack_epoch_again(0)).left(), None);
    bench.receive(one, ack_epoch(0, 0));
    assert_eq!(bench.phase(), Phase::Synchronization);
}

/// ZOOKEEPER-1291, -1343: the election was wrong, and a follower with newer history was overrun.
#[test]
fn a_voter_with_newer_history_ends_the_leadership_at_once_and_the_second_time_only_its_link() {
    let (mut bench, links) = elected(disk(4, 4, 0x4_0000_0006));
    for (round, newer) in [ack_epoch(4, 0x4_0000_0007), ack_epoch(5, 0)].into_iter().enumerate() {
        let (link, _) = bench.follower(2, 4);
        bench.persisted();
        let seen = bench.receive(link, newer);
        if round == 0 {
            let Some(Reason::NewerHistory { voter, .. }) = seen.left() else { panic!("{seen:?}") };
            assert_eq!((voter, bench.state()), (ServerId(2), Looking));
            bench.win_again(&links);
        } else {
            assert_eq!(seen.left(), None);
            assert_eq!(seen.hung_up(link), Some(Hangup::NewerHistory(Zxid(0))));
        }
    }
    let status = bench.status();
    assert_eq!((status.state, status.current_epoch), (Leading, Epoch(4)));
}

#[test]
fn a_voter_may_depose_again_after_a_quorum_was_established() {
    let (mut bench, links) = elected(disk(4, 4, 0));
    let (link, _) = bench.follower(2, 4);
    bench.persisted();
    assert!(bench.receive(link, ack_epoch(5, 0)).left().is_some());
    bench.win_again(&links);
    bench.establish(1);
    bench.step(Event::StepDown);
    bench.win_again(&links);
    let (link, _) = bench.follower(2, 4);
    bench.persisted();
    assert!(bench.receive(link, ack_epoch(99, 0)).left().is_some());
}

#[test]
fn an_older_history_is_no_reason_to_leave_and_an_observers_newer_one_costs_its_link() {
    let mut bench = Bench::of(3, &with_observers(&[1, 2, 3], &[9]), disk(4, 4, 0));
    bench.win(&[1, 2]);
    let observer = bench.learner();
    bench.receive(observer, Packet::ObserverInfo(info(9, 0)));
    let (link, _) = bench.follower(2, 4);
    bench.persisted();
    let seen = bench.receive(observer, ack_epoch(5, 0));
    assert_eq!((seen.left(), seen.hung_up(observer)), (None, Some(Hangup::NewerHistory(Zxid(0)))));
    // (3, 3.99) is older than (4, 0): the epoch it was taken over in decides.
    let seen = bench.receive(link, ack_epoch(3, 0x3_0000_0063));
    assert_eq!(seen.left(), None);
    assert_eq!(bench.phase(), Phase::Synchronization);
}

#[test]
fn a_voter_of_weight_zero_with_newer_history_costs_its_link_only() {
    let groups = "\ngroup.1=1:2:3\nweight.1=1\nweight.2=0\nweight.3=1";
    let mut bench = Bench::of(3, &(ensemble(&[1, 2, 3]) + groups), disk(4, 4, 0));
    bench.win(&[1, 2]);
    let (two, _) = bench.follower(2, 4);
    assert_eq!(bench.writes_pending(), 0, "no weight, no quorum");
    bench.follower(1, 4);
    bench.persisted();
    let seen = bench.receive(two, ack_epoch(9, 0));
    assert_eq!((seen.left(), seen.hung_up(two)), (None, Some(Hangup::NewerHistory(Zxid(0)))));
}

/// After the promises of a quorum are in, what a late voter has beyond us was never committed.
#[test]
fn a_late_voter_is_synchronised_however_new_its_epoch() {
    let (mut bench, _) = established();
    let (link, seen) = bench.follower(1, 0);
    assert_eq!(
        seen.packets(link),
        [asking_leader_info(1)],
        "at once, it has long been on our disk"
    );
    let seen = bench.receive(link, ack_epoch(1, 0));
    assert_eq!((seen.left(), seen.names(link)), (None, vec!["DIFF", "NEWLEADER"]));
    assert_eq!(learner(&bench, 1).map(|learner| learner.synced), Some(false));
    assert_eq!(bench.receive(link, ack(1)).packets(link), [Packet::UpToDate]);
    assert_eq!(learner(&bench, 1).map(|learner| learner.synced), Some(true));
}

/// Who follows us has promised our epoch, and logs nothing of a later one. Brought up all the same, it
/// would get transactions behind which its own come.
#[test]
fn a_history_that_ends_in_a_later_epoch_than_ours_costs_the_link() {
    for last in [z(2, 0), z(2, 1), z(9, 1)] {
        let (mut bench, _) = elected(Durable::default());
        let (two, _) = bench.follower(2, 0);
        let (one, _) = bench.follower(1, 0);
        bench.persisted();
        let reason = Some(Hangup::EpochOutOfRange(last.epoch()));
        let seen = bench.receive(one, ack_epoch(0, last.0));
        assert_eq!((seen.hung_up(one), seen.left()), (reason, None), "before we are established");
        bench.receive(two, ack_epoch(0, 0));
        bench.persisted();
        bench.receive(two, ack(1));
        let (one, _) = bench.follower(1, 0);
        let seen = bench.receive(one, ack_epoch(0, last.0));
        assert_eq!((seen.hung_up(one), seen.left()), (reason, None), "and later");
        assert_eq!(bench.phase(), Phase::Broadcast);
    }
}

#[test]
fn epochs_that_cannot_be_are_refused() {
    for accepted in [-1, i64::MIN, 1 << 31, (1 << 32) - 1, i64::MAX, (1 << 31) - 1] {
        let (mut bench, _) = elected(Durable::default());
        let (link, seen) = bench.follower(2, accepted);
        let reason = Hangup::EpochOutOfRange(Epoch(accepted));
        assert_eq!(seen.hung_up(link), Some(reason));
        assert_eq!((seen.persists(), bench.state()), (vec![], Leading));
        // The same voter may come with a better one.
        assert_eq!(bench.follower(2, 7).1.persists(), [Write::AcceptedEpoch(Epoch(8))]);
    }
    for current in [-2, i64::MIN, 1 << 31, i64::MAX] {
        let (mut bench, _) = elected(Durable::default());
        let (link, _) = bench.follower(2, 0);
        bench.persisted();
        let seen = bench.receive(link, ack_epoch(current, 0));
        assert_eq!(seen.hung_up(link), Some(Hangup::EpochOutOfRange(Epoch(current))));
        assert_eq!((seen.left(), bench.phase()), (None, Phase::Discovery));
    }
}

#[test]
fn the_last_epoch_is_used_and_after_it_the_server_stops() {
    let max = Epoch::MAX.0;
    let (mut bench, _) = elected(disk(max - 1, 0, 0));
    assert_eq!(bench.follower(2, 0).1.persists(), [Write::AcceptedEpoch(Epoch::MAX)]);

    // Who has promised the last epoch may follow its leader.
    let (mut bench, _) = elected(disk(max - 1, 0, 0));
    bench.establish(2);
    let (one, seen) = bench.follower(1, max);
    assert_eq!(seen.packets(one), [asking_leader_info(max)]);
    let seen = bench.receive(one, ack_epoch_again(0));
    assert_eq!(seen.names(one), ["DIFF", "NEWLEADER"]);

    for theirs in [0, max] {
        let (mut bench, _) = elected(disk(max, 0, 0));
        let (_, seen) = bench.follower(2, theirs);
        assert_eq!(seen.halted(), Some(Fault::EpochsExhausted(Epoch::MAX)));
        assert_eq!(seen.persists(), []);
        assert_eq!(bench.peer.deadline(), None);
        bench.step(Event::Tick).is_nothing();
        bench.learner_seen().1.is_nothing();
    }
}

#[test]
fn who_knows_a_newer_configuration_or_speaks_an_old_protocol_or_has_our_id_is_refused() {
    let (mut bench, _) = elected(Durable::default());
    for (info, reason) in [
        (
            LearnerInfo { config_version: 5, ..info(2, 0) },
            Hangup::NewerConfiguration { theirs: 5, ours: 0 },
        ),
        (LearnerInfo { protocol: 0xffff, ..info(2, 0) }, Hangup::OldProtocol(0xffff)),
        (info(3, 0), Hangup::OwnId(ServerId(3))),
    ] {
        for packet in [Packet::FollowerInfo(info.clone()), Packet::ObserverInfo(info)] {
            let link = bench.learner();
            let seen = bench.receive(link, packet);
            assert_eq!(seen.hung_up(link), Some(reason));
            assert_eq!((seen.persists(), bench.status().learners), (vec![], vec![]));
        }
    }
    let later = LearnerInfo { protocol: 0x2_0000, ..info(2, 0) };
    let link = bench.learner();
    assert_eq!(bench.receive(link, Packet::FollowerInfo(later)).persists().len(), 1);
}

// --- renewal ---

/// A voter that has promised a later epoch refuses ours for ever; the leader begins a new one.
#[test]
fn a_voters_later_promise_ends_the_leadership_once() {
    let (mut bench, links) = elected(Durable::default());
    bench.establish(1);
    let (link, seen) = bench.follower(2, 20);
    let (voter, accepted) = (ServerId(2), Epoch(20));
    assert_eq!(seen.left(), Some(Reason::LaterPromise { voter, accepted }));
    assert!(!bench.is_up(link));
    bench.win_again(&links);
    // It comes in time, and the new epoch is above its promise.
    let (_, seen) = bench.follower(2, 20);
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(21))]);
    bench.persisted();
    // Once: a voter that always promises more cannot depose a leader for ever.
    let (link, seen) = bench.follower(2, 30);
    assert_eq!((seen.left(), bench.state()), (None, Leading));
    assert_eq!(seen.packets(link), [asking_leader_info(21)]);
}

/// The renewal is for the sake of that voter; if it is slower than another, it must not be in vain:
/// the voter could never join this leader.
#[test]
fn the_epoch_after_a_renewal_is_above_the_promise_whoever_comes_first() {
    let (mut bench, links) = elected(Durable::default());
    bench.establish(1);
    bench.follower(2, 20);
    bench.win_again(&links);
    let (_, seen) = bench.follower(1, 1);
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(21))]);
}

#[test]
fn an_observers_later_promise_ends_nothing() {
    let (mut bench, _) = established();
    let link = bench.learner();
    let seen = bench.receive(link, Packet::ObserverInfo(info(9, 20)));
    assert_eq!((seen.left(), seen.packets(link)), (None, vec![asking_leader_info(1)]));
    let (link, seen) = bench.follower(77, 20);
    assert_eq!(
        (seen.left(), seen.packets(link)),
        (None, vec![asking_leader_info(1)]),
        "nor a non-member's"
    );
}

// --- synchronization ---

#[test]
fn our_own_history_counts_only_when_the_current_epoch_is_on_disk() {
    let (mut bench, _) = elected(Durable::default());
    let (link, _) = bench.follower(2, 0);
    bench.persisted();
    bench.receive(link, ack_epoch(0, 0));
    let seen = bench.receive(link, ack(1));
    assert_eq!(seen.names(link), [""; 0], "two acknowledged, but one of them is our memory");
    assert!(!bench.status().serving);
    let seen = bench.persisted();
    assert_eq!(seen.packets(link), [Packet::UpToDate]);
    assert!(bench.status().serving);
}

/// A leader whose acknowledgement was kept after its link ended would be established with nobody.
#[test]
fn an_acknowledgement_ends_with_its_link() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    let links: Vec<_> = [1, 2, 3].map(|id| bench.follower(id, 0).0).into();
    bench.persisted();
    for link in &links {
        bench.receive(*link, ack_epoch(0, 0));
    }
    bench.persisted();
    bench.receive(links[0], ack(1));
    bench.down(links[0]);
    bench.receive(links[1], ack(1));
    assert!(!bench.status().serving, "5 and 2");
    // It comes back on a new link and must acknowledge anew.
    let (link, _) = bench.follower(1, 1);
    assert_eq!(bench.receive(link, ack_epoch_again(0)).names(link), ["DIFF", "NEWLEADER"]);
    assert!(!bench.status().serving);
    bench.receive(link, ack(1));
    assert!(bench.status().serving, "5, 2 and 1");
}

#[test]
fn the_same_learner_on_a_new_link_replaces_the_old_one_and_its_acknowledgement() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    let links: Vec<_> = [1, 2].map(|id| bench.follower(id, 0).0).into();
    bench.persisted();
    for link in &links {
        bench.receive(*link, ack_epoch(0, 0));
    }
    bench.persisted();
    bench.receive(links[0], ack(1));
    let (again, seen) = bench.follower(1, 1);
    assert_eq!(seen.hung_up(links[0]), Some(Hangup::Replaced(ServerId(1))));
    assert_eq!(seen.packets(again), [asking_leader_info(1)]);
    bench.receive(links[1], ack(1));
    assert!(!bench.status().serving, "5 and 2; what 1 acknowledged is gone");
    bench.step(Event::Received { link: links[0], message: Message::Packet(ack(1)) }).is_nothing();
    assert_eq!(bench.status().learners.len(), 2);
}

#[test]
fn an_observers_acknowledgement_earns_it_uptodate_and_counts_for_nothing() {
    let mut bench = Bench::of(3, &with_observers(&[1, 2, 3], &[9]), Durable::default());
    bench.win(&[1, 2]);
    let observer = bench.learner();
    bench.receive(observer, Packet::ObserverInfo(info(9, 0)));
    let (two, _) = bench.follower(2, 0);
    bench.persisted();
    bench.receive(two, ack_epoch(0, 0));
    bench.receive(observer, ack_epoch(0, 0));
    bench.persisted();
    assert_eq!(bench.receive(observer, ack(1)).names(observer), [""; 0]);
    assert!(!bench.status().serving);
    let seen = bench.receive(two, ack(1));
    assert_eq!((seen.names(two), seen.names(observer)), (vec!["UPTODATE"], vec!["UPTODATE"]));
}

#[test]
fn anonymous_observers_are_served_and_told_apart() {
    let (mut bench, _) = established();
    let mut links = Vec::new();
    for _ in 0..2 {
        let link = bench.learner();
        let anonymous = LearnerInfo { id: None, ..info(0, 0) };
        assert_eq!(
            bench.receive(link, Packet::ObserverInfo(anonymous)).names(link),
            ["LEADERINFO"]
        );
        bench.receive(link, ack_epoch(0, 0));
        assert_eq!(bench.receive(link, ack(1)).names(link), ["UPTODATE"]);
        links.push(link);
    }
    let leaderships: Vec<_> = bench.status().learners.iter().map(|s| (s.id.0, s.voter)).collect();
    assert_eq!(leaderships, [(-2, false), (-1, false), (2, true)]);
    assert!(links.iter().all(|link| bench.is_up(*link)));
}

#[test]
fn an_acknowledgement_of_another_epoch_or_of_a_transaction_establishes_nothing() {
    let (mut bench, _) = elected(disk(1, 1, 0));
    let (link, _) = bench.follower(2, 1);
    bench.persisted();
    bench.receive(link, ack_epoch(1, 0));
    bench.persisted();
    for zxid in [start(1), start(3), Zxid(0x2_0000_0001), Zxid(-1), Zxid(0)] {
        let seen = bench.receive(link, Packet::Ack(zxid));
        assert_eq!((seen.hangups(), bench.status().serving), (vec![], false), "{zxid}");
    }
    bench.receive(link, ack(2));
    assert!(bench.status().serving);
}

#[test]
fn without_a_quorum_of_acknowledgements_the_wait_ends() {
    let (mut bench, _) = elected(Durable::default());
    let (link, _) = bench.follower(2, 0);
    bench.persisted();
    bench.receive(link, ack_epoch(0, 0));
    bench.persisted();
    let began = bench.now;
    let seen = bench.to(Timer::Init);
    assert_eq!(bench.now.since(began), bench.peer.config().timing.init_time());
    let members = ids(&[3]);
    assert_eq!(seen.left(), Some(Reason::NoQuorum { phase: Phase::Synchronization, members }));
}

#[test]
fn without_anybody_the_wait_ends_after_the_init_limit() {
    let (mut bench, _) = elected(Durable::default());
    let began = bench.now;
    let seen = bench.to(Timer::Init);
    assert_eq!(bench.now.since(began), Duration::from_secs(30));
    assert_eq!(seen.left(), Some(Reason::NoneCame), "their election links stand");
    assert_eq!((bench.state(), bench.status().round.0), (Looking, 2));
}

// --- broadcast ---

#[test]
fn learners_are_pinged_twice_per_tick_with_the_start_of_the_epoch() {
    let (mut bench, link) = established();
    let (late, _) = bench.follower(1, 0);
    bench.to(Timer::Ping);
    for _ in 0..4 {
        let before = bench.now;
        let seen = bench.to(Timer::Ping);
        assert_eq!(bench.now.since(before), millis(1500));
        assert_eq!(seen.packets(link), [ping(1)]);
        assert_eq!(seen.names(late), [""; 0], "not before it has acknowledged");
        bench.receive(link, pong(1));
    }
}

#[test]
fn a_learner_that_answers_stays_and_one_that_is_silent_for_the_sync_limit_goes() {
    let (mut bench, one) = established();
    let (late, _) = bench.follower(1, 0);
    bench.receive(late, ack_epoch(0, 0));
    bench.receive(late, ack(1));
    let silent = bench.now;
    let mut gone = None;
    while gone.is_none() {
        let seen = bench.to(Timer::Ping);
        assert_eq!(seen.left(), None);
        bench.receive(one, pong(1));
        gone = seen.hung_up(late);
    }
    assert_eq!(gone, Some(Hangup::Silent(ServerId(1))));
    within(bench.now.since(silent), Duration::from_secs(15), Duration::from_millis(16_500));
    assert!(bench.is_up(one) && bench.status().serving);
}

#[test]
fn a_learner_that_never_introduces_itself_goes_after_the_init_limit() {
    let (mut bench, one) = established();
    let link = bench.learner();
    let silent = bench.now;
    let mut gone = None;
    while gone.is_none() {
        gone = bench.to(Timer::Ping).hung_up(link);
        bench.receive(one, pong(1));
    }
    assert_eq!(gone, Some(Hangup::Unintroduced));
    within(bench.now.since(silent), Duration::from_secs(30), Duration::from_millis(31_500));
}

/// Whether or not a ping falls on the very moment.
#[test]
fn who_acknowledges_nothing_or_says_nothing_goes_whenever_that_began() {
    for (writes, reason) in
        [(1, Hangup::Unacknowledged(ServerId(2))), (0, Hangup::Silent(ServerId(2)))]
    {
        for offset in [0, 1] {
            let (mut bench, two) = established();
            bench.to(Timer::Ping);
            bench.wait(Duration::from_millis(offset));
            bench.receive(two, pong(1));
            bench.write(writes);
            bench.persisted();
            let began = bench.now;
            let gone = loop {
                let seen = bench.to(Timer::Ping);
                if let Some(gone) = seen.hung_up(two) {
                    break gone;
                }
                assert!(bench.now.since(began) < Duration::from_secs(60), "never");
                if writes > 0 {
                    bench.receive(two, pong(1));
                }
            };
            assert_eq!(gone, reason);
            assert!(bench.now.since(began) > bench.peer.config().timing.sync_time(), "too early");
        }
    }
}

#[test]
fn a_promise_that_was_counted_is_not_lost_with_its_link() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    let links = [1, 2].map(|id| bench.follower(id, 0).0);
    bench.persisted();
    bench.receive(links[0], ack_epoch(0, 0));
    bench.down(links[0]);
    bench.down(links[1]);
    let (one, _) = bench.follower(1, 1);
    assert_eq!(bench.receive(one, ack_epoch_again(0)).left(), None);
    assert_eq!(bench.phase(), Phase::Discovery);
}

/// It is brought what there is; its promise helps nobody to begin.
#[test]
fn who_does_not_know_how_far_its_history_goes_has_promised_nothing_that_counts() {
    let (mut bench, _) = elected(Durable::default());
    let (two, _) = bench.follower(2, 0);
    bench.persisted();
    bench.receive(two, ack_epoch(0, Zxid::UNKNOWN.0));
    assert_eq!(bench.phase(), Phase::Discovery);
}

#[test]
fn who_has_not_introduced_itself_has_no_leadership() {
    let (mut bench, _) = established();
    bench.learner();
    assert_eq!(bench.status().learners.len(), 1);
}

#[test]
fn who_goes_before_it_has_everything_was_never_counted() {
    let (mut bench, _) = established();
    let (one, _) = bench.follower(1, 0);
    let changes = bench.down(one).changes();
    assert!(!changes.iter().any(|change| matches!(change, Change::Learner { .. })), "{changes:?}");
}

/// A learner answers no ping before UPTODATE, and UPTODATE waits for the others: its silence until
/// then says nothing about it.
#[test]
fn who_has_acknowledged_and_waits_for_the_others_is_not_silent() {
    let (mut bench, _) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2, 3, 4], Durable::default());
    let links: Vec<_> = [1, 2].map(|id| bench.follower(id, 0).0).into();
    bench.persisted();
    for link in &links {
        bench.receive(*link, ack_epoch(0, 0));
    }
    bench.persisted();
    bench.receive(links[0], ack(1));
    // The other needs a while, less than the init limit and more than the sync limit.
    bench.wait(Duration::from_secs(20));
    assert!(bench.is_up(links[0]), "there was nothing that it could have said");
    bench.receive(links[1], ack(1));
    assert!(bench.status().serving);
    // From now on its clock runs, as if it had spoken with UPTODATE.
    bench.to(Timer::Ping);
    assert!(bench.is_up(links[0]), "nor could it have answered yet");
}

/// Cut off from its quorum a leader stops by its own clock.
#[test]
fn a_leader_without_a_quorum_of_synchronised_voters_leaves_at_the_tick() {
    let (mut bench, link) = established();
    let observer = bench.learner();
    bench.receive(observer, Packet::ObserverInfo(info(9, 0)));
    bench.receive(observer, ack_epoch(0, 0));
    bench.receive(observer, ack(1));
    bench.down(link);
    let lost = bench.now;
    let mut left = None;
    while left.is_none() {
        left = bench.to(Timer::Ping).left();
    }
    let members = ids(&[3]);
    assert_eq!(left, Some(Reason::NoQuorum { phase: Phase::Broadcast, members }));
    within(bench.now.since(lost), Duration::ZERO, Duration::from_secs(3));
    assert_eq!((bench.state(), bench.status().serving), (Looking, false));
    assert!(!bench.is_up(observer), "its learners go with the leadership");
}

#[test]
fn a_follower_that_comes_back_within_the_tick_keeps_the_leader() {
    let (mut bench, link) = established();
    bench.to(Timer::Ping);
    bench.receive(link, pong(1));
    bench.down(link);
    let (link, _) = bench.follower(2, 1);
    bench.receive(link, ack_epoch_again(0));
    bench.receive(link, ack(1));
    for _ in 0..4 {
        assert_eq!(bench.to(Timer::Ping).left(), None);
        bench.receive(link, pong(1));
    }
}

#[test]
fn a_silent_quorum_ends_the_leadership_within_the_sync_limit_and_a_tick() {
    let (mut bench, _) = established();
    let silent = bench.now;
    while bench.state() == Leading {
        bench.to(Timer::Ping);
    }
    within(bench.now.since(silent), Duration::from_secs(15), Duration::from_secs(18));
}

/// Until it is established a leader waits for its disk as long as for learners: longer than a follower would be borne.
#[test]
fn a_leader_that_is_not_established_bears_its_disk_beyond_the_sync_limit() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), disk(0, 0, 0));
    bench.win(&[1, 2]);
    bench.follower(1, 0);
    let begun = bench.now;
    while bench.now.since(begun) < Duration::from_secs(20) {
        assert_eq!(bench.to(Timer::Ping).left(), None);
    }
    assert_eq!((bench.state(), bench.phase()), (Leading, Phase::Discovery));
}

/// The others commit without its disk, and nobody else notices.
#[test]
fn a_leader_whose_disk_hangs_leaves_within_the_sync_limit_and_one_whose_disk_is_slow_does_not() {
    let (mut bench, link) = established();
    let hangs = bench.now;
    bench.write(1);
    while bench.state() == Leading {
        let seen = bench.to(Timer::Ping);
        if let Some(reason) = seen.left() {
            assert!(matches!(reason, Reason::DiskHangs { .. }), "{reason:?}");
            break;
        }
        bench.receive(link, pong(1));
    }
    within(bench.now.since(hangs), Duration::from_secs(13), Duration::from_secs(15));

    // There is always something that it has not written yet; but it writes.
    let (mut bench, link) = established();
    bench.write(2);
    for written in 1..40 {
        assert_eq!(bench.to(Timer::Ping).left(), None);
        bench.receive(link, pong(1));
        bench.receive(link, Packet::Ack(Zxid(Zxid::start_of(Epoch(1)).0 + written)));
        bench.write(1);
        bench.persisted_one();
    }
}

#[test]
fn an_operator_may_end_the_leadership() {
    let (mut bench, link) = established();
    let seen = bench.step(Event::StepDown);
    assert_eq!((seen.left(), seen.hung_up(link)), (Some(Reason::Asked), Some(Hangup::RoleEnded)));
    assert_eq!((bench.state(), bench.status().round.0), (Looking, 2));
    bench.step(Event::StepDown).is_nothing();
}

// --- desertion ---

/// ZOOKEEPER-3109: the voters had changed their minds, and the leader waited for them in vain until
/// its limit, tens of seconds without service.
#[test]
fn a_leader_whose_voters_look_in_a_later_round_leaves_at_once() {
    let (mut bench, links) = elected_of(&[1, 2, 3, 4, 5], 3, &[1, 2], Durable::default());
    let round = bench.status().round.0;
    let own = bench.status().vote;
    for earlier in [round, round - 1, 0] {
        let seen = bench.hear(links[0], standing(Looking, own, earlier));
        assert_eq!(seen.left(), None, "its last frame, repeated");
    }
    let seen = bench.hear(links[0], standing(Looking, vote(0, 0, 1), round + 1));
    assert_eq!(seen.left(), Some(Reason::Deserted { voter: ServerId(1) }));
}

#[test]
fn a_leader_with_voters_to_spare_bears_one_that_looks_elsewhere() {
    let (mut bench, links) = elected(Durable::default());
    let round = bench.status().round.0;
    assert_eq!(bench.hear(links[0], standing(Looking, vote(0, 0, 1), round + 1)).left(), None);
    let seen = bench.hear(links[1], standing(Looking, vote(0, 0, 2), round + 1));
    assert_eq!(seen.left(), Some(Reason::Deserted { voter: ServerId(2) }));
}

#[test]
fn the_lower_round_of_a_restarted_voter_counts_only_on_a_new_link() {
    let (mut bench, links) = elected_of(&[1, 2], 2, &[1], Durable::default());
    // The leader is in its second round.
    bench.to(Timer::Init);
    bench.win_again(&links);
    let fresh = standing(Looking, vote(0, 0, 1), 1);
    assert_eq!(bench.hear(links[0], fresh).left(), None);
    bench.ms(5);
    bench.down(links[0]);
    bench.to(Timer::Redial);
    let (link, _) = bench.dialled(1);
    assert_eq!(
        bench.hear(link, fresh).left(),
        Some(Reason::Deserted { voter: ServerId(1) }),
        "it was restarted and has forgotten us"
    );
}

/// Java repeats its last LOOKING frame on each new link, also when it follows us already.
#[test]
fn a_voter_with_an_open_learner_link_has_not_deserted() {
    let (mut bench, links) = elected_of(&[1, 2], 2, &[1], Durable::default());
    let (link, _) = bench.follower(1, 0);
    let seen = bench.hear(links[0], standing(Looking, vote(0, 0, 1), 9));
    assert_eq!((seen.left(), bench.state()), (None, Leading));
    bench.down(link);
    assert!(bench.hear(links[0], standing(Looking, vote(0, 0, 1), 9)).left().is_some());
}

/// Nor has one that says on a new link what it said when it elected us.
#[test]
fn a_new_link_of_a_voter_in_our_round_is_no_desertion() {
    let (mut bench, links) = elected_of(&[1, 2], 2, &[1], Durable::default());
    let now = standing(Looking, vote(0, 0, 1), bench.status().round.0);
    bench.ms(5);
    bench.down(links[0]);
    bench.to(Timer::Redial);
    let (link, _) = bench.dialled(1);
    assert_eq!(bench.hear(link, now).left(), None);
}

/// That another one follows does not bring it back.
#[test]
fn a_voter_has_deserted_whoever_else_follows() {
    let (mut bench, links) = elected_of(&[1, 2, 3, 4, 5], 5, &[1, 2], Durable::default());
    bench.follower(1, 0);
    let seen = bench.hear(links[1], standing(Looking, vote(0, 0, 2), 9));
    assert_eq!(seen.left(), Some(Reason::Deserted { voter: ServerId(2) }));
}

#[test]
fn an_established_leader_is_not_deserted_by_words() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    let links = bench.win(&[1, 2]);
    let learner = bench.establish(2);
    bench.down(learner);
    for link in links {
        let seen = bench.hear(link, standing(Looking, vote(0, 0, 1), 9));
        assert_eq!(seen.left(), None);
        assert_eq!(seen.told(link).len(), 1, "it is told who leads");
        assert_eq!(seen.told(link)[0].state, Leading);
    }
}

#[test]
fn followers_and_non_members_that_report_later_rounds_are_no_deserters() {
    let (mut bench, links) = elected_of(&[1, 2], 2, &[1], Durable::default());
    let later = standing(Following, vote(0, 0, 1), 9);
    assert_eq!(bench.hear(links[0], later).left(), None);
    let (non_member, _) = bench.accepted(77);
    assert_eq!(bench.hear(non_member, standing(Looking, vote(0, 0, 1), 9)).left(), None);
}

// --- other quorums ---

#[test]
fn in_a_hierarchical_ensemble_a_majority_of_servers_is_not_enough() {
    let groups = "\ngroup.1=1:2:3\ngroup.2=4:5:6\ngroup.3=7:8:9";
    let text = ensemble(&[1, 2, 3, 4, 5, 6, 7, 8, 9]) + groups;
    let mut bench = Bench::of(9, &text, Durable::default());
    bench.win(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let mut links = Vec::new();
    for id in [1, 2, 3, 4, 7] {
        let (link, seen) = bench.follower(id, 0);
        // The groups of 1, 2, 3 and of 7, 9 are two of three.
        assert_eq!(seen.persists().len(), usize::from(id == 7), "at {id}");
        links.push(link);
    }
    bench.persisted();
    for link in &links[..4] {
        bench.receive(*link, ack_epoch(0, 0));
        assert_eq!(bench.phase(), Phase::Discovery);
    }
    bench.receive(links[4], ack_epoch(0, 0));
    assert_eq!(bench.phase(), Phase::Synchronization);
    bench.persisted();
    for link in &links[1..] {
        assert!(!bench.status().serving);
        bench.receive(*link, ack(1));
    }
    assert!(bench.status().serving, "2, 3 of the first and 7, 9 of the third");
}

#[test]
fn while_the_membership_changes_the_old_and_the_new_quorum_are_both_needed_in_each_phase() {
    let next = Membership::parse(ensemble(&[3, 4, 5])).unwrap().with_version(start(1).0);
    let change = |config: &mut Config| config.next_membership = Some(next);
    let mut bench =
        Bench::with(3, &ensemble(&[1, 2, 3]), stored(1, 1, Zxid::ZERO, Vec::new()), change);
    let links: Vec<_> = [1, 2, 4].map(|peer| bench.meet(peer)).into();
    let ours = bench.peer.standing();
    bench.hear(links[0], ours);
    bench.hear(links[1], ours);
    bench.ms(1_000);
    assert_eq!(bench.state(), Looking, "all of the old, one of the new");
    bench.hear(links[2], ours);
    bench.to(Timer::Finalize);
    assert_eq!(bench.state(), Leading);
    let (two, seen) = bench.follower(2, 1);
    assert_eq!(seen.persists(), []);
    let (four, seen) = bench.follower(4, 1);
    assert_eq!(seen.persists().len(), 1);
    bench.persisted();
    for (link, phase) in [(two, Phase::Discovery), (four, Phase::Synchronization)] {
        bench.receive(link, ack_epoch(1, 0));
        assert_eq!(bench.phase(), phase);
    }
    bench.persisted();
    for (link, serving) in [(two, false), (four, true)] {
        bench.receive(link, ack(2));
        assert_eq!(bench.status().serving, serving);
    }
    bench.down(four);
    bench.to(Timer::Ping);
    bench.receive(two, pong(2));
    bench.to(Timer::Ping);
    assert_eq!(bench.state(), Looking);
}

#[test]
fn a_server_alone_in_its_ensemble_leads_as_soon_as_its_disk_has_it() {
    let mut bench = Bench::idle(1, "server.1=host1:2888:3888\nversion=0", disk(3, 2, 0), |_| {});
    let seen = bench.step(Event::Tick);
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(4))]);
    assert_eq!(bench.state(), Leading);
    assert_eq!(bench.persisted().persists(), [Write::CurrentEpoch(Epoch(4))]);
    assert!(!bench.status().serving);
    bench.persisted();
    assert!(bench.status().serving);
    // And goes on, tick by tick.
    for _ in 0..10 {
        assert_eq!(bench.to(Timer::Ping).left(), None);
    }
    bench.step(Event::StepDown);
    bench.persisted();
    bench.persisted();
    let status = bench.status();
    assert_eq!((status.serving, status.current_epoch), (true, Epoch(5)));
}

/// Server 2 of two with an arbiter, elected and established with server 1.
fn arbitrated() -> (Bench, LinkId, LinkId) {
    let oracle = |config: &mut Config| config.oracle = true;
    let mut bench = Bench::with(2, &ensemble(&[1, 2]), Durable::default(), oracle);
    let links = bench.win(&[1]);
    let learner = bench.establish(1);
    (bench, links[0], learner)
}

#[test]
fn of_two_servers_the_survivor_goes_on_if_the_arbiter_says_yes() {
    for yes in [true, false] {
        let (mut bench, _, learner) = arbitrated();
        bench.step(Event::Oracle(yes));
        bench.down(learner);
        for _ in 0..4 {
            bench.to(Timer::Ping);
            if bench.state() == Looking {
                break;
            }
        }
        assert_eq!(bench.status().serving, yes);
    }
}

#[test]
fn of_two_servers_the_survivor_is_elected_if_the_arbiter_says_yes() {
    let oracle = |config: &mut Config| config.oracle = true;
    let mut bench = Bench::with(2, &ensemble(&[1, 2]), disk(1, 1, 0), oracle);
    bench.ms(3_000);
    assert_eq!(bench.state(), Looking);
    bench.step(Event::Oracle(true));
    bench.to(Timer::Finalize);
    assert_eq!(bench.state(), Leading, "not only after the next wait, which grows to a minute");
    bench.persisted();
    bench.persisted();
    assert!(bench.status().serving);
}

/// The arbiter's word lets the survivor lead, and promises nothing for the other, which may have been told the same: no
/// lease comes of it, and nobody waits for one.
#[test]
fn the_word_of_an_arbiter_makes_no_lease() {
    let mut bench = Bench::with(2, &ensemble(&[1, 2]), disk(1, 1, 0), |config| {
        config.oracle = true;
        config.lease = Some(2 * config.timing.tick);
    });
    bench.step(Event::Oracle(true));
    for _ in 0..4 {
        bench.ms(10_000);
        bench.persisted();
    }
    let leadership = bench.peer.leadership().expect("it leads alone");
    assert_eq!(leadership.lease, None);
}

/// The arbiter is not asked while the leader has a follower; once it no longer leads it has none.
#[test]
fn a_leader_that_had_a_follower_may_ask_the_arbiter_in_its_next_election() {
    let (mut bench, link, learner) = arbitrated();
    bench.step(Event::Oracle(true));
    for _ in 0..4 {
        bench.to(Timer::Ping);
        bench.receive(learner, pong(1));
    }
    bench.step(Event::StepDown);
    assert_eq!(bench.state(), Looking);
    bench.down(link);
    bench.ms(5_000);
    assert_eq!(bench.state(), Leading, "the arbiter says that the other is gone");
}

// --- out of turn ---

#[test]
fn what_has_no_place_at_its_stage_costs_the_link_and_nothing_else() {
    let every = || {
        vec![
            Packet::FollowerInfo(info(2, 0)),
            Packet::ObserverInfo(info(2, 0)),
            asking_leader_info(1),
            ack_epoch(0, 0),
            Packet::Diff(Zxid(0)),
            Packet::Trunc(Zxid(0)),
            Packet::snap(Zxid(0)),
            new_leader(1),
            Packet::UpToDate,
            ack(1),
            pong(1),
            Packet::Proposal(txn(1)),
            Packet::Commit(Zxid(1)),
            Packet::Inform(txn(1)),
            Packet::CommitAndActivate { zxid: Zxid(1), leader: ServerId(2) },
            Packet::Request(request(1)),
            Packet::Revalidate(bytes::Bytes::new()),
            Packet::Sync { tag: 0 },
        ]
    };
    // What a learner has said before, and what it may say then.
    let stages: [(&[Packet], &[&str]); 5] = [
        (&[], &["FOLLOWERINFO", "OBSERVERINFO"]),
        (&[Packet::FollowerInfo(info(2, 1))], &["ACKEPOCH"]),
        (&[Packet::FollowerInfo(info(2, 1)), ack_epoch(1, 0)], &["ACK"]),
        (
            &[Packet::FollowerInfo(info(2, 1)), ack_epoch(1, 0), ack(1)],
            &["ACK", "PING", "REQUEST", "REVALIDATE"],
        ),
        (&[Packet::ObserverInfo(info(9, 1)), ack_epoch(1, 0)], &["ACK"]),
    ];
    let step = if cfg!(miri) { 6 } else { 1 };
    for (said, allowed) in stages {
        for packet in every().into_iter().step_by(step) {
            let (mut bench, _) = elected(Durable::default());
            let good = bench.establish(1);
            let link = bench.learner();
            for packet in said {
                bench.receive(link, packet.clone());
            }
            assert!(bench.is_up(link));
            let name = packet.name();
            let seen = bench.receive(link, packet);
            let reason = (!allowed.contains(&name)).then_some(Hangup::OutOfTurn(name));
            assert_eq!(seen.hung_up(link), reason, "{name} after {said:?}");
            assert_eq!((seen.left(), bench.is_up(good)), (None, true));
            assert!(bench.status().serving);
        }
    }
}

/// The brakes on what learners may make a leader hold.
#[test]
fn learners_are_bounded_in_number_and_silent_ones_make_room_for_others() {
    let limits = |config: &mut Config| {
        config.limits.unintroduced = 4;
        config.limits.learners = 8;
    };
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), Durable::default(), limits);
    bench.win(&[1, 2]);
    let good = bench.establish(2);
    let silent: Vec<_> = (0..4).map(|_| bench.learner()).collect();
    let (fifth, seen) = bench.learner_seen();
    assert_eq!(seen.hangups(), [(silent[0], Hangup::TooManyUnintroduced)]);
    for (id, link) in (50..).zip(silent[1..].iter().chain([&fifth])) {
        bench.receive(*link, Packet::ObserverInfo(info(id, 0)));
    }
    for id in 60..63 {
        let link = bench.learner();
        bench.receive(link, Packet::ObserverInfo(info(id, 0)));
    }
    assert_eq!(bench.status().learners.len(), 8);
    let (ninth, seen) = bench.learner_seen();
    assert_eq!(seen.hung_up(ninth), Some(Hangup::TooManyLearners));
    assert!(bench.is_up(good));
}

// --- early learners ---

#[test]
fn learners_that_came_early_are_taken_in_with_what_they_said() {
    let mut bench = Bench::of(3, &ensemble(&[1, 2, 3]), Durable::default());
    let link = bench.learner();
    bench.receive(link, Packet::FollowerInfo(info(2, 6))).is_nothing();
    let election = bench.meet(2);
    let first = bench.meet(1);
    let ours = bench.peer.standing();
    bench.hear(first, ours);
    let seen = bench.hear(election, ours);
    assert_eq!(seen.persists(), [Write::AcceptedEpoch(Epoch(7))]);
    assert_eq!(bench.persisted().packets(link), [asking_leader_info(7)]);
}

#[test]
fn the_configuration_of_the_ensemble_goes_out_with_newleader() {
    let (mut bench, _) = established();
    let (link, _) = bench.follower(1, 1);
    let seen = bench.receive(link, ack_epoch_again(0));
    let Some(Packet::NewLeader { config, .. }) = seen.packets(link).pop() else { panic!() };
    let told = Membership::parse(&config).unwrap();
    assert!(told.same_members(&bench.peer.config().membership));
}
