//! What a history holds of the membership: found at start, sent with a snapshot, cut, or not known to a leader.

use crate::support::*;
use quorate_core::config::Config;
use quorate_core::durable::Durable;
use quorate_core::id::LinkId;
use quorate_core::input::{Event, Place};
use quorate_core::membership::Membership;
use quorate_core::message::{LearnerInfo, Packet, Request};
use quorate_core::output::Write;
use quorate_core::reasons::Hangup;
use quorate_core::reconfiguration::{Reconfiguration, Unchanged, from_snapshot, with_snapshot};
use quorate_core::report::Reason;
use quorate_core::timers::Timer;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

fn of(zxid: Zxid, ids: &[i64]) -> Membership {
    voters(ids).with_version(zxid.0)
}

fn seen(membership: &Membership) -> Write {
    Write::NextMembership(Some(membership.text().clone()))
}

fn in_force(membership: &Membership) -> Write {
    Write::Membership(membership.text().clone())
}

/// Server 1 of 1, 2, 3 in epoch 1, whatever `reconfigEnabled` says.
fn server(durable: Durable, reconfigures: bool, next: Option<Membership>) -> Bench {
    let configure = |config: &mut Config| {
        config.reconfig_enabled = reconfigures;
        config.membership = of(start(1), &[1, 2, 3]);
        config.next_membership = next;
    };
    Bench::idle(1, &ensemble(&[1, 2, 3]), durable, configure)
}

fn bound(bench: &Bench) -> (Membership, Option<Membership>) {
    let config = bench.peer.config();
    (config.membership.clone(), config.next_membership.clone())
}

// --- at start ---

/// A directory of a server that did not take note of changes, or of one that a crash met in between.
#[test]
fn changes_that_are_found_at_start_are_seen_before_the_first_vote() {
    let (one, two) = (of(z(1, 2), &[1, 3, 4]), of(z(1, 4), &[3, 4, 5]));
    let log = vec![
        entry(z(1, 1)),
        change(z(1, 2), &[1, 3, 4]),
        entry(z(1, 3)),
        change(z(1, 4), &[3, 4, 5]),
    ];
    for reconfigures in [true, false] {
        let mut bench = server(stored(1, 1, z(1, 0), log[..3].to_vec()), reconfigures, None);
        assert_eq!(bench.step(Event::Tick).persists(), [seen(&one)]);
        assert!(bench.status().vote.zxid < Zxid::ZERO, "no vote before that is on disk");
        bench.persisted();
        assert_eq!((bench.status().vote.zxid, bench.status().voters), (z(1, 3), 4));

        let mut bench = server(stored(1, 1, z(1, 0), log.clone()), reconfigures, Some(one.clone()));
        assert_eq!(bench.step(Event::Tick).persists(), [in_force(&one), seen(&two)]);
        assert_eq!(bound(&bench), (one.clone(), Some(two.clone())));
    }
}

/// What is behind the snapshot and out of memory the disk tells, and what the snapshot's state has.
#[test]
fn changes_that_are_out_of_memory_bind_as_well() {
    let (one, two) = (of(z(1, 2), &[1, 3, 4]), of(z(1, 4), &[3, 4, 5]));
    let durable = Durable {
        changes: vec![two.clone(), one.clone()],
        ..stored(1, 1, z(1, 3), entries(1, 5, 9))
    };
    let mut bench = server(durable, true, None);
    assert_eq!(bench.step(Event::Tick).persists(), [in_force(&one), seen(&two)]);
}

/// A crash came between a cut and taking note of it, or an earlier version of this program forgot to.
#[test]
fn what_was_seen_and_is_in_no_log_came_to_nothing() {
    let cut = of(z(1, 2), &[1, 4, 5]);
    let log = vec![entry(z(1, 1)), entry(z(3, 1))];
    let mut bench = server(stored(4, 3, z(1, 0), log), true, Some(cut.clone()));
    assert_eq!(bench.step(Event::Tick).persists(), [Write::NextMembership(None)]);
    assert_eq!(bound(&bench).1, None);
    // It may have come with the snapshot, which cannot be cut any more.
    let mut bench = server(disk(1, 1, z(1, 6).0), true, Some(cut.clone()));
    assert_eq!(bench.step(Event::Tick).persists(), []);
    assert_eq!(bound(&bench).1, Some(cut));
}

#[test]
fn a_change_binds_no_more_when_the_operator_says_so() {
    let log = vec![entry(z(1, 1)), change(z(1, 2), &[1, 3, 4])];
    let forget = |config: &mut Config| config.forgotten = z(1, 2).0;
    let mut bench = Bench::with(1, &ensemble(&[1, 2, 3]), stored(1, 1, z(1, 0), log), forget);
    assert_eq!((bench.status().voters, bound(&bench).1), (3, None));
    bench.lose(3, &[2], 1, z(1, 2).0);
    let link = bench.serve(3, 2);
    assert!(bench.is_up(link), "nor does it keep it from a leader that knows of none");
}

// --- cuts ---

/// The change is of an epoch before our current one, whose leader was never established.
#[test]
fn every_cut_forgets_the_changes_behind_it() {
    let lost = of(z(3, 6), &[1, 4, 5]);
    let log = [entries(3, 1, 5), vec![change(z(3, 6), &[1, 4, 5])]].concat();
    let mut bench = server(stored(4, 4, z(3, 0), log), true, Some(lost));
    bench.step(Event::Tick);
    bench.persisted();
    bench.lose(3, &[2, 4], 5, z(5, 0).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(5));
    bench.persisted();
    let cut = bench.receive(link, Packet::Trunc(z(3, 5)));
    assert_eq!(cut.persists(), [Write::Truncate(z(3, 5)), Write::NextMembership(None)]);
    bench.receive(link, Packet::Proposal(entry(z(5, 1))));
    bench.receive(link, Packet::Commit(z(5, 1)));
    let config = of(start(1), &[1, 2, 3]).text().clone();
    let seen = bench.receive(link, Packet::NewLeader { zxid: start(5), config });
    assert_eq!(seen.left(), None, "it does not count as held again because the log is that long");
    bench.persisted();
    assert_eq!(bench.status().voters, 3);
}

// --- a leader that does not know ---

fn told(bench: &mut Bench, link: LinkId, epoch: i64, membership: &Membership) -> Seen {
    let config = membership.text().clone();
    bench.receive(link, Packet::NewLeader { zxid: start(epoch), config })
}

/// Where the change is in memory, and where the disk has to be asked.
#[test]
fn a_leader_that_does_not_know_of_a_change_in_our_log_is_not_followed() {
    let made = of(z(1, 2), &[1, 4, 5]);
    let older = [of(start(1), &[1, 2, 3]), of(start(2), &[1, 2, 3]), of(z(1, 1), &[1, 2, 3])];
    for text in older {
        for in_memory in [true, false] {
            let log = vec![change(z(1, 2), &[1, 4, 5]), entry(z(1, 3)), entry(z(1, 4))];
            let whole = stored(1, 1, z(1, 1), log);
            let far = Durable {
                window: whole.window.iter().skip(2).cloned().collect(),
                changes: vec![made.clone()],
                ..whole.clone()
            };
            let durable = if in_memory { whole } else { far };
            let mut bench = server(durable, true, Some(made.clone()));
            bench.step(Event::Tick);
            bench.persisted();
            bench.lose(3, &[2, 4, 5], 2, z(1, 4).0);
            let (link, _) = bench.reach(3);
            bench.receive(link, leader_info(2));
            bench.persisted();
            bench.receive(link, Packet::Diff(z(1, 4)));
            let mut seen = told(&mut bench, link, 2, &text);
            if !in_memory {
                assert_eq!(seen.locates(), [(link, z(1, 2))]);
                assert_eq!((seen.persists(), seen.left()), (vec![], None), "it waits for the disk");
                seen = bench.located(link, cheap(Place::Held));
            }
            let version = z(1, 2).0;
            assert_eq!(seen.hung_up(link), Some(Hangup::OlderMembership { version }));
            let leader = s(3);
            assert_eq!(seen.left(), Some(Reason::OlderMembership { leader, version }));
        }
    }
}

/// The disk says that the transaction is not there: it was cut by an earlier version of this program.
#[test]
fn what_is_not_in_the_log_keeps_nobody_from_following() {
    let made = of(z(1, 2), &[1, 4, 5]);
    let durable =
        Durable { changes: vec![made.clone()], ..stored(1, 1, z(1, 1), entries(1, 4, 5)) };
    let mut bench = server(durable, true, Some(made));
    bench.step(Event::Tick);
    bench.persisted();
    bench.lose(3, &[2, 4, 5], 2, z(1, 5).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.persisted();
    bench.receive(link, Packet::Diff(z(1, 5)));
    told(&mut bench, link, 2, &of(start(1), &[1, 2, 3]));
    let seen = bench.located(link, cheap(Place::Absent { previous: z(1, 1) }));
    assert_eq!(seen.left(), None);
    assert!(seen.persists().contains(&Write::CurrentEpoch(Epoch(2))), "{seen:?}");
}

/// A snapshot of the epoch of the change, and beyond it, has the change; one of another epoch tells nothing.
#[test]
fn a_snapshot_that_has_a_change_and_tells_of_none_is_not_taken_over() {
    for (label, refused) in [(z(2, 5), true), (z(2, 3), false), (z(3, 1), false)] {
        let log = [entries(2, 1, 3), vec![change(z(2, 4), &[1, 4, 5])]].concat();
        let mut bench = server(stored(2, 2, z(2, 0), log), true, Some(of(z(2, 4), &[1, 4, 5])));
        bench.step(Event::Tick);
        bench.persisted();
        bench.lose(3, &[2, 4, 5], 3, z(3, 0).0);
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(3));
        bench.persisted();
        bench.receive(link, Packet::snap(label));
        bench.step(Event::restored(link));
        let seen = told(&mut bench, link, 3, &of(start(1), &[1, 2, 3]));
        let leader = s(3);
        let reason = Reason::OlderMembership { leader, version: z(2, 4).0 };
        assert_eq!(seen.left(), refused.then_some(reason), "{label}");
    }
}

/// Server 4 was started with a file of its own, in which it has a vote, and nothing told it otherwise since
/// `reconfigEnabled` is off there, or before UPTODATE could. A change follows what is in force at the leader: counting
/// on what stands in its file it would commit the change with one voter less than it takes.
#[test]
fn the_first_change_follows_what_the_leader_gave_and_not_what_stood_in_the_file() {
    let given = of(start(1), &[1, 2, 3]);
    let made = of(z(2, 1), &[2, 3, 4]);
    for (reconfigures, up_to_date) in [(true, true), (true, false), (false, true), (false, false)] {
        let configure = |config: &mut Config| config.reconfig_enabled = reconfigures;
        let durable = disk(1, 1, z(1, 1).0);
        let mut bench = Bench::idle(4, &ensemble(&[1, 2, 3, 4]), durable, configure);
        bench.step(Event::Tick);
        bench.persisted();
        bench.lose(3, &[1, 2], 2, z(1, 1).0);
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(2));
        bench.persisted();
        bench.receive(link, Packet::Diff(z(1, 1)));
        told(&mut bench, link, 2, &given);
        if up_to_date {
            bench.persisted();
            bench.receive(link, Packet::UpToDate);
        }
        bench.receive(link, Packet::Proposal(change(z(2, 1), &[2, 3, 4])));
        if !up_to_date {
            bench.persisted();
            bench.receive(link, Packet::UpToDate);
        }
        assert_eq!(
            bound(&bench),
            (given.clone(), Some(made.clone())),
            "{reconfigures} {up_to_date}"
        );
    }
}

// --- with a snapshot ---

#[test]
fn what_a_snapshot_carries_is_read_again() {
    let (one, two) = (of(z(1, 2), &[1, 3, 4]), of(z(1, 4), &[3, 4, 5]));
    let read = |next, label| from_snapshot(&with_snapshot(&one, next, label)).unwrap();
    let alone = vec![one.clone()];
    assert_eq!(read(None, z(1, 9)), alone);
    assert_eq!(read(Some(&two), z(1, 3)), alone, "the later one comes behind it");
    assert_eq!(read(Some(&two), z(1, 4)), [one.clone(), two.clone()]);
    assert_eq!(from_snapshot(&bytes::Bytes::new()), Some(vec![]), "as from ZooKeeper");
    assert_eq!(from_snapshot(&bytes::Bytes::from_static(b"server.1")), None);
}

/// From the SNAP itself, from the state in it, from what was forwarded before the label was read, from what comes
/// behind it, and from NEWLEADER: each alone, or all of them.
#[test]
fn a_learner_takes_every_membership_that_comes_with_a_snapshot() {
    let memberships = [
        of(z(2, 3), &[1, 3, 4]),
        of(z(2, 4), &[1, 4, 5]),
        of(z(2, 5), &[1, 5, 6]),
        of(z(2, 7), &[1, 6, 7]),
        of(z(2, 9), &[1, 7, 8]),
    ];
    for ways in 0..1_u32 << 5 {
        let has = |way: usize| ways & 1 << way != 0;
        let mut bench = server(disk(2, 1, z(1, 1).0), ways % 2 == 0, None);
        bench.step(Event::Tick);
        bench.persisted();
        bench.lose(3, &[2], 2, z(2, 9).0);
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(2));
        let with = if has(0) { memberships[0].text().clone() } else { bytes::Bytes::new() };
        bench.receive(link, Packet::Snap { label: z(2, 6), memberships: with });
        let membership = has(1).then(|| memberships[1].text().clone());
        bench.step(Event::Restored { link, membership });
        if has(2) {
            bench.receive(link, Packet::Proposal(change(z(2, 5), &[1, 5, 6])));
        }
        for counter in 7..=9 {
            let made = (counter == 7 && has(3)) || (counter == 9 && has(4));
            let ids = if counter == 7 { [1, 6, 7] } else { [1, 7, 8] };
            let zxid = z(2, counter);
            let txn = if made { change(zxid, &ids) } else { entry(zxid) };
            bench.receive(link, Packet::Proposal(txn));
            bench.receive(link, Packet::Commit(zxid));
        }
        let newest = (0..5).rfind(|way| has(*way)).map(|way| &memberships[way]);
        let fallback = of(start(1), &[1, 2, 3]);
        let written = told(&mut bench, link, 2, newest.unwrap_or(&fallback)).persists();
        let older = (0..5).filter(|way| has(*way)).rev().nth(1).map(|way| &memberships[way]);
        // What SNAP itself tells of is in force at the leader.
        let (older, newest) = if ways == 1 { (newest, None) } else { (older, newest) };
        let install = Write::Install {
            label: z(2, 6),
            membership: older.unwrap_or(&fallback).text().clone(),
            next: newest.map(|newest| newest.text().clone()),
        };
        assert_eq!(written[written.len() - 2..], [install, Write::CurrentEpoch(Epoch(2))]);
    }
}

/// What is proposed and not committed comes as a transaction, and binds then.
#[test]
fn a_membership_that_is_later_than_the_history_is_not_seen_yet() {
    let (one, two) = (of(z(2, 3), &[1, 3, 4]), of(z(2, 8), &[3, 4, 5]));
    let mut bench = server(disk(2, 1, z(1, 1).0), true, None);
    bench.step(Event::Tick);
    bench.persisted();
    bench.lose(3, &[2], 2, z(2, 9).0);
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(2));
    bench.receive(link, Packet::Snap { label: z(2, 7), memberships: one.text().clone() });
    bench.step(Event::restored(link));
    bench.receive(link, Packet::Proposal(change(z(2, 8), &[3, 4, 5])));
    told(&mut bench, link, 2, &two);
    assert_eq!(bound(&bench), (one.clone(), None));
    bench.persisted();
    bench.receive(link, Packet::UpToDate);
    assert_eq!(bound(&bench), (one, Some(two)));
}

// --- the leader's side ---

/// Server 3 leads epoch 1 with 2 and observer 9 there; its membership is {2, 3, 9 observing} of version 1.1, and if
/// `underway` it has proposed {2, 3}.
fn leader(underway: bool) -> (Bench, LinkId) {
    let enable = |config: &mut Config| config.reconfig_enabled = true;
    let mut bench = Bench::with(3, &with_observers(&[1, 2, 3], &[9]), Durable::default(), enable);
    bench.win(&[1, 2]);
    let (two, _) = bench.follower(2, 0);
    bench.persisted();
    bench.receive(two, ack_epoch(0, 0));
    bench.persisted();
    bench.receive(two, ack(1));
    ask(&mut bench, &leave(&[1]));
    bench.persisted();
    bench.receive(two, Packet::Ack(z(1, 1)));
    if underway {
        ask(&mut bench, &leave(&[9]));
        bench.persisted();
    }
    (bench, two)
}

fn ask(bench: &mut Bench, asked: &Reconfiguration) -> Seen {
    let id = RequestId { client: 7, cxid: 9 };
    let request = Request { id, op: Request::RECONFIGURE, body: asked.encode(), identities: None };
    bench.step(Event::Propose(request));
    bench.prepared()
}

/// A learner that needs everything; what the leader says to its ACKEPOCH, and to the end of the snapshot.
fn joins(bench: &mut Bench, info: LearnerInfo) -> (LinkId, Seen, Seen) {
    let link = bench.learner();
    bench.receive(link, Packet::FollowerInfo(info));
    let asked = bench.receive(link, ack_epoch_again(-1));
    let through = if asked.hung_up(link).is_some() { Seen(vec![]) } else { bench.streamed(link) };
    (link, asked, through)
}

#[test]
fn a_leader_sends_its_memberships_with_a_snapshot_to_those_that_take_them() {
    let (mut bench, _) = leader(true);
    let (link, asked, through) = joins(&mut bench, our_info(5, 1));
    let sent = asked.memberships_sent(link).unwrap();
    let [present] = &from_snapshot(&sent).unwrap()[..] else { panic!("{sent:?}") };
    assert_eq!(present.version(), z(1, 1).0);
    assert!(through.names(link).contains(&"NEWLEADER"), "and nothing waits: {through:?}");
    let (link, asked, _) =
        joins(&mut bench, LearnerInfo { config_version: z(1, 1).0, ..info(6, 1) });
    assert!(asked.memberships_sent(link).unwrap().is_empty(), "as ZooKeeper does");
}

/// NEWLEADER could tell it one of two; so the change has to be in force first.
#[test]
fn an_older_learner_hears_newleader_when_no_change_is_under_way() {
    let (mut bench, two) = leader(true);
    let (link, _, through) = joins(&mut bench, info(6, 1));
    assert!(!through.names(link).contains(&"NEWLEADER"), "{through:?}");
    let seen = bench.receive(two, Packet::Ack(z(1, 2)));
    let names = seen.names(link);
    assert!(names.contains(&"NEWLEADER"), "{names:?}");
    // One that has in force what is in force here misses nothing.
    let (mut bench, _) = leader(true);
    let (link, _, through) =
        joins(&mut bench, LearnerInfo { config_version: z(1, 1).0, ..info(6, 1) });
    assert!(through.names(link).contains(&"NEWLEADER"), "{through:?}");
}

/// The change waits for the quorum, and the quorum perhaps for this learner: so it is refused, for an election to tell
/// it, but not again and again.
#[test]
fn a_prospective_leader_refuses_an_older_learner_once_and_then_serves_it() {
    let (present, next) = (of(z(1, 2), &[1, 2, 3]), change(z(1, 4), &[1, 2, 3, 4]));
    let durable = stored(1, 1, z(1, 3), vec![next]);
    let configure = |config: &mut Config| {
        config.reconfig_enabled = true;
        config.membership = present.clone();
        config.next_membership = Some(of(z(1, 4), &[1, 2, 3, 4]));
    };
    let mut bench = Bench::with(3, &ensemble(&[1, 2, 3]), durable, configure);
    let links = bench.win(&[1, 2, 4]);
    let comes = |bench: &mut Bench| {
        let [four, two] = [4, 2].map(|id| bench.follower(id, 1).0);
        bench.persisted();
        for link in [four, two] {
            bench.receive(link, ack_epoch(1, z(1, 4).0));
        }
        bench.persisted();
        let one = bench.learner();
        bench.receive(one, Packet::FollowerInfo(info(1, 1)));
        bench.receive(one, ack_epoch(1, z(1, 1).0));
        let seen = bench.located(one, cheap(Place::BelowFloor));
        (one, seen)
    };
    let (one, seen) = comes(&mut bench);
    let version = z(1, 2).0;
    assert_eq!(seen.hung_up(one), Some(Hangup::Untold { version }));
    assert_eq!(bench.state(), ServerState::Leading);
    bench.to(Timer::Init);
    assert_eq!(bench.state(), ServerState::Looking);
    bench.win_again(&links);
    let (one, seen) = comes(&mut bench);
    assert_eq!(seen.hung_up(one), None);
    assert!(seen.reasons().contains(&Reason::Unprotected { version }), "{seen:?}");
    let through = bench.streamed(one);
    assert!(!through.names(one).is_empty(), "and it is told at once");
}

/// It has logged what came behind the membership in force, and says that it knows of none.
#[test]
fn a_change_is_refused_where_a_voter_is_known_not_to_take_note_of_it() {
    let (mut bench, two) = leader(false);
    bench.write(1);
    bench.persisted();
    bench.receive(two, Packet::Ack(z(1, 2)));
    bench.down(two);
    let (two, _) = bench.follower(2, 1);
    bench.receive(two, ack_epoch_again(z(1, 2).0));
    bench.receive(two, ack(1));
    let seen = ask(&mut bench, &leave(&[9]));
    let refused = |seen: &Seen| {
        let [Packet::Proposal(Txn { header, body, .. })] = &seen.packets(two)[..] else {
            panic!("{seen:?}")
        };
        assert_eq!(header.kind, Txn::REJECTED);
        Unchanged::from_code(i32::from_be_bytes(*body.first_chunk().unwrap()))
    };
    assert_eq!(refused(&seen), Some(Unchanged::Blind));
}

/// `reconfigEnabled` decides who may ask, not who is bound.
#[test]
fn a_server_that_may_not_be_asked_for_changes_is_bound_by_them() {
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), Durable::default());
    bench.lose(3, &[2], 0, 0);
    let link = bench.serve(3, 1);
    let seen = bench.receive(link, Packet::Proposal(change(z(1, 1), &[3, 4, 5])));
    let next = of(z(1, 1), &[3, 4, 5]);
    assert_eq!(seen.persists()[0], self::seen(&next));
    assert_eq!(bound(&bench).1, Some(next));
}
