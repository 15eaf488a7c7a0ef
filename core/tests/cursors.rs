//! A learner is a cursor in its leader's history: whatever happens while it joins, and however slowly it
//! reads, it gets every transaction once and in order, and nothing queues up for it.
//!
//! Most of this the bench asserts by itself at each packet; see `support/boundary.rs`.

use crate::support::*;
use quorate_core::config::{Config, HistoryLimits};
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Place};
use quorate_core::message::{Packet, Request, Run};
use quorate_core::output::Form;
use quorate_core::reasons::Hangup;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::rng::Rng;
use quorate_core::timers::Timer;
use quorate_core::zxid::Zxid;

/// Server 3 of 1, 2, 3 and observer 9, established with 2 in epoch 5; the link of 2.
fn leader(durable: Durable, change: impl FnOnce(&mut Config)) -> (Bench, LinkId) {
    let mut bench = Bench::with(3, &with_observers(&[1, 2, 3], &[9]), durable, change);
    bench.win(&[1, 2]);
    let two = bench.establish(2);
    (bench, two)
}

/// 4.1 to 4.4 on disk and in memory.
fn four() -> Durable {
    stored(4, 4, z(4, 0), entries(4, 1, 4))
}

fn introduce(bench: &mut Bench, follows: bool) -> LinkId {
    let link = bench.learner();
    let packet =
        if follows { Packet::FollowerInfo(info(1, 5)) } else { Packet::ObserverInfo(info(9, 5)) };
    bench.receive(link, packet);
    link
}

/// A learner that has everything and serves.
#[track_caller]
fn join(bench: &mut Bench, follows: bool) -> LinkId {
    let link = introduce(bench, follows);
    bench.receive(link, ack_epoch_again(bench.boundary.disk.last().0));
    settle(bench, link);
    assert!(bench.boundary.courses[&link].up_to_date);
    link
}

/// Server 2 acknowledges everything that it was sent.
fn acknowledge(bench: &mut Bench, two: LinkId) -> Seen {
    let (first, last) = (z(5, 1), bench.boundary.courses[&two].sent);
    if last < first {
        return Seen::default();
    }
    bench.receive(two, Packet::Acks(Run { first, last }))
}

/// Where the disk of the bench has this.
fn place(bench: &Bench, zxid: Zxid) -> Place {
    if bench.boundary.disk.log.iter().any(|txn| txn.zxid == zxid) || zxid == z(4, 0) {
        Place::Held
    } else {
        Place::Absent { previous: z(4, 4) }
    }
}

/// One thing that the driver or the learner owes; whether there was one.
fn owed(bench: &mut Bench, link: LinkId) -> bool {
    let course = &bench.boundary.courses[&link];
    if let Some((_, zxid)) = bench.boundary.locating.iter().find(|(of, _)| *of == link).copied() {
        bench.located(link, cheap(place(bench, zxid)));
    } else if bench.boundary.streams.contains_key(&link) {
        bench.streamed(link);
    } else if bench.boundary.paces.get(&link).is_some_and(|paces| *paces > 0) {
        bench.step(Event::Drained(link));
    } else if course.new_leader && !course.up_to_date {
        bench.receive(link, ack(5));
    } else {
        return false;
    }
    true
}

/// The disk, the driver and this learner do everything that is asked of them.
#[track_caller]
fn settle(bench: &mut Bench, link: LinkId) {
    for _ in 0..1_000 {
        if !owed(bench, link) {
            return;
        }
    }
    panic!("without end: {:?}", bench.boundary.courses[&link]);
}

/// It has been sent all that it may have, and told of all that is committed.
#[track_caller]
fn has_everything(bench: &Bench, link: LinkId, told: &str) {
    let course = &bench.boundary.courses[&link];
    let (last, committed) = (bench.boundary.disk.last(), bench.delivered());
    let all = if course.observer { committed } else { last };
    assert!(course.new_leader && course.up_to_date, "{told}: {course:?}");
    assert!(course.sent == all.max(course.sent.min(z(5, 0))), "{told}: {all}, {course:?}");
    assert!(course.told >= committed, "{told}: {committed}, {course:?}");
}

// --- joining ---

/// Everything in which two sequences of `a` and `b` steps can be mixed; true is a step of the first.
fn merges(a: usize, b: usize) -> Vec<Vec<bool>> {
    if a == 0 || b == 0 {
        return vec![[vec![true; a], vec![false; b]].concat()];
    }
    let mut all = Vec::new();
    for (first, rest) in [(true, merges(a - 1, b)), (false, merges(a, b - 1))] {
        all.extend(rest.into_iter().map(|rest| [vec![first], rest].concat()));
    }
    all
}

/// What happens at the leader while somebody joins.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// A transaction is proposed.
    Proposed,
    /// Our disk has done everything.
    Durable,
    /// Server 2 has too.
    Acknowledged,
}

/// ZOOKEEPER-962: what was committed between the moment at which a learner's DIFF was computed and that at
/// which it was registered went to it neither way; and what Zab's own model found: forwarding only to
/// those who have acknowledged misses some, forwarding to all gives some twice. In every order of joining,
/// proposing, acknowledging and committing a learner gets each transaction once.
#[test]
fn a_learner_that_joins_while_transactions_are_under_way_misses_none_and_gets_none_twice() {
    use Happens::{Acknowledged, Durable, Proposed};
    let stories = [
        [Proposed, Durable, Acknowledged, Proposed, Acknowledged, Durable, Proposed],
        [Proposed, Proposed, Acknowledged, Durable, Proposed, Proposed, Durable],
    ];
    let limits: [fn(&mut HistoryLimits); 4] = [
        |_| {},
        |limits| limits.window_count = 1,
        |limits| limits.pace_bytes = 1,
        |limits| (limits.window_count, limits.pace_bytes) = (2, 100),
    ];
    let mixes = merges(4, stories[0].len());
    assert_eq!(mixes.len(), 330);
    let mixes = &mixes[if cfg!(miri) { 100..101 } else { 0..330 }];
    let lasts = [Zxid(0), z(4, 0), z(4, 2), z(4, 4), z(5, 0)];
    let lasts = &lasts[if cfg!(miri) { 2..3 } else { 0..5 }];
    for follows in [true, false] {
        for &last in lasts {
            for (n, limit) in limits.iter().enumerate() {
                let (bench, two) = leader(four(), |config| limit(&mut config.history));
                for (story, mix) in
                    stories.iter().flat_map(|story| mixes.iter().map(move |mix| (story, mix)))
                {
                    let mut bench = bench.clone();
                    let mut happens = story.iter();
                    let (mut link, mut steps) = (None, 0);
                    for joins in mix {
                        if !joins {
                            match happens.next().unwrap() {
                                Proposed => drop(bench.write(1)),
                                Durable => drop(bench.persisted()),
                                Acknowledged => drop(acknowledge(&mut bench, two)),
                            }
                            continue;
                        }
                        steps += 1;
                        match (steps, link) {
                            (1, _) => link = Some(introduce(&mut bench, follows)),
                            (2, Some(link)) => {
                                bench.receive(link, ack_epoch_again(last.0));
                            }
                            (_, Some(link)) => drop(owed(&mut bench, link)),
                            (_, None) => {}
                        }
                    }
                    let link = link.unwrap();
                    settle(&mut bench, link);
                    let told = format!("{follows}, {last}, {n}, {story:?}, {mix:?}");
                    has_everything(&bench, link, &told);
                    // And goes on like that.
                    bench.write(1);
                    bench.persisted();
                    settle(&mut bench, two);
                    acknowledge(&mut bench, two);
                    settle(&mut bench, link);
                    assert_eq!(bench.delivered(), bench.boundary.disk.last(), "{told}");
                    has_everything(&bench, link, &told);
                }
            }
        }
    }
}

/// The model's own trace: C has been sent NEWLEADER with the history {1.1}; 1.2 is proposed, acknowledged by
/// A and committed; then comes C's acknowledgement. A COMMIT in between would be the end of ZooKeeper's followers
/// (ZOOKEEPER-4394).
#[test]
fn what_is_committed_before_newleader_is_acknowledged_is_committed_to_the_learner_behind_uptodate()
{
    let (mut bench, two) = leader(four(), |_| {});
    let one = introduce(&mut bench, true);
    assert_eq!(bench.receive(one, ack_epoch_again(z(4, 3).0)).names(one), {
        ["DIFF", "PROPOSAL", "COMMIT", "NEWLEADER"]
    });
    let seen = bench.write(1);
    assert_eq!(seen.names(one), ["PROPOSAL"], "before it has acknowledged anything");
    bench.persisted();
    let seen = acknowledge(&mut bench, two);
    assert_eq!((seen.delivered(), seen.names(one)), (vec![z(5, 1)], vec![]));
    assert_eq!(bench.receive(one, ack(5)).names(one), ["UPTODATE", "COMMIT"]);
}

/// It was a follower and comes back as an observer: its log may be ahead of what is committed. INFORM would
/// tell it twice.
#[test]
fn an_observer_that_is_ahead_of_what_is_committed_is_told_by_commit() {
    let (mut bench, two) = leader(four(), |_| {});
    bench.write(4);
    bench.persisted();
    bench.receive(two, Packet::Ack(z(5, 1)));
    let nine = introduce(&mut bench, false);
    let seen = bench.receive(nine, ack_epoch_again(z(5, 3).0));
    assert_eq!(seen.packets(nine)[0], Packet::Diff(z(5, 1)));
    assert_eq!(seen.names(nine), ["DIFF", "NEWLEADER"]);
    bench.receive(nine, ack(5));
    bench.write(1);
    let seen = acknowledge(&mut bench, two);
    assert_eq!(seen.names(nine), ["COMMIT", "COMMIT", "INFORM"]);
    bench.persisted();
    has_everything(&bench, nine, "");
}

// --- who is slow ---

/// No more than two parts of the allowance are under way; the rest waits in the log.
#[test]
fn a_learner_is_sent_no_more_than_it_reads() {
    for follows in [true, false] {
        // A transaction of these takes 56 bytes in its packet.
        let (mut bench, two) = leader(four(), |config| config.history.pace_bytes = 1_120);
        let link = join(&mut bench, follows);
        let mut sent = 0;
        for _ in 0..100 {
            let mut seen = bench.write(1);
            bench.persisted();
            settle(&mut bench, two);
            seen.0.extend(acknowledge(&mut bench, two).0);
            sent += seen.names(link).iter().filter(|name| **name != "COMMIT").count();
        }
        assert_eq!(sent, 20, "{follows}");
        let seen = bench.step(Event::Drained(link));
        let more = seen.names(link).iter().filter(|name| **name != "COMMIT").count();
        assert_eq!(more, 10, "{follows}");
        settle(&mut bench, link);
        has_everything(&bench, link, "");
    }
}

/// Who has fallen below the window is served from the log, and then from memory again.
#[test]
fn who_falls_below_the_window_is_served_from_the_log_and_catches_up() {
    let slow = |config: &mut Config| {
        (config.history.window_count, config.history.delivery_bytes) = (5, 1);
        config.history.pace_bytes = 1;
    };
    let (mut bench, two) = leader(four(), slow);
    let one = join(&mut bench, true);
    let nine = join(&mut bench, false);
    let write = |bench: &mut Bench, many| {
        for _ in 0..many {
            bench.write(1);
            bench.persisted();
            settle(bench, two);
        }
    };
    write(&mut bench, 2);
    acknowledge(&mut bench, two);
    assert_eq!(bench.boundary.courses[&one].sent, z(5, 2));
    assert_eq!(bench.boundary.courses[&nine].sent, z(5, 2));
    write(&mut bench, 8);
    acknowledge(&mut bench, two);
    write(&mut bench, 10);
    assert_eq!((bench.delivered(), bench.boundary.disk.last()), (z(5, 10), z(5, 20)));
    let courses = &bench.boundary.courses;
    assert_eq!((courses[&one].sent, courses[&one].told), (z(5, 2), Zxid(z(4, 4).0)));
    assert_eq!((courses[&nine].sent, courses[&nine].told), (z(5, 2), z(5, 2)));

    // The COMMITs of what it has come first, then both together, then what is outstanding.
    let seen = bench.step(Event::Drained(one));
    assert_eq!(seen.packets(one), [Packet::Commit(z(5, 1)), Packet::Commit(z(5, 2))]);
    assert_eq!(seen.streams(), [(one, z(5, 2), z(5, 10), Form::Committed)]);
    let seen = bench.streamed(one);
    assert_eq!(seen.streams(), [(one, z(5, 10), z(5, 20), Form::Proposals)]);
    // Nothing is said meanwhile, whatever happens.
    acknowledge(&mut bench, two);
    write(&mut bench, 1);
    assert_eq!(bench.boundary.courses[&one].told, z(5, 10));
    let seen = bench.streamed(one);
    assert_eq!(seen.names(one), ["PROPOSAL"]);
    assert_eq!(bench.step(Event::Drained(one)).names(one), ["COMMIT"; 10]);
    has_everything(&bench, one, "");

    let seen = bench.step(Event::Drained(nine));
    assert_eq!(seen.streams(), [(nine, z(5, 2), z(5, 20), Form::Informs)]);
    acknowledge(&mut bench, two);
    let seen = bench.streamed(nine);
    assert_eq!(seen.names(nine), ["INFORM"]);
    has_everything(&bench, nine, "");
}

/// That the change is in force it hears behind what the driver sends it.
#[test]
fn who_is_served_from_the_log_is_told_afterwards_that_a_change_is_in_force() {
    let slow = |config: &mut Config| {
        config.reconfig_enabled = true;
        (config.history.window_count, config.history.delivery_bytes) = (5, 1);
        config.history.pace_bytes = 1;
    };
    let (mut bench, two) = leader(four(), slow);
    let one = join(&mut bench, true);
    bench.write(1);
    bench.persisted();
    settle(&mut bench, two);
    acknowledge(&mut bench, two);
    let body = Reconfiguration::change([], [ServerId(9)]).encode();
    let change = Request { op: Request::RECONFIGURE, body, ..request(7) };
    bench.step(Event::Propose(change));
    let seen = bench.prepared();
    assert_eq!(seen.names(one), ["PROPOSAL"]);
    for _ in 0..8 {
        bench.persisted();
        settle(&mut bench, two);
        bench.write(1);
    }
    bench.persisted();
    settle(&mut bench, two);
    let seen = bench.step(Event::Drained(one));
    assert_eq!(seen.streams(), [(one, z(5, 2), z(5, 10), Form::Proposals)]);
    let seen = acknowledge(&mut bench, two);
    assert_eq!((bench.delivered(), seen.names(one)), (z(5, 10), vec![]));
    let seen = bench.streamed(one);
    assert_eq!(seen.names(one).first(), Some(&"COMMITANDACTIVATE"));
}

/// What it got from the log it has to acknowledge like the rest, and may have before the driver says that
/// all of it is sent.
#[test]
fn who_does_not_acknowledge_what_came_from_the_log_loses_its_link() {
    for acknowledges in [false, true] {
        let slow = |config: &mut Config| {
            (config.history.window_count, config.history.delivery_bytes) = (5, 1);
            config.history.pace_bytes = 1;
        };
        let (mut bench, two) = leader(four(), slow);
        let one = join(&mut bench, true);
        for _ in 0..20 {
            bench.write(1);
            bench.persisted();
            settle(&mut bench, two);
        }
        acknowledge(&mut bench, two);
        bench.receive(one, Packet::Acks(Run { first: z(5, 1), last: z(5, 2) }));
        let seen = bench.step(Event::Drained(one));
        assert_eq!(seen.streams(), [(one, z(5, 2), z(5, 20), Form::Committed)]);
        if acknowledges {
            bench.receive(one, Packet::Acks(Run { first: z(5, 3), last: z(5, 20) }));
        }
        settle(&mut bench, one);
        let mut gone = None;
        for _ in 0..20 {
            gone = gone.or(bench.to(Timer::Ping).hung_up(one));
            for link in [one, two] {
                if bench.is_up(link) {
                    bench.receive(link, pong(5));
                }
            }
        }
        assert_eq!(gone, (!acknowledges).then_some(Hangup::Unacknowledged(ServerId(1))));
    }
}

/// After a TRUNC what was committed went out without COMMIT; if it has left memory by then, so do its
/// COMMITs come from the log.
#[test]
fn the_commits_of_what_followed_a_cut_come_from_the_log_too() {
    let slow = |config: &mut Config| {
        (config.history.window_count, config.history.delivery_bytes) = (10, 1);
        config.history.pace_bytes = 1;
    };
    // An artificial hole, for a cut that something follows.
    let txns = [entries(4, 140, 149), entries(4, 151, 155)].concat();
    let (mut bench, two) = leader(stored(4, 4, z(4, 139), txns), slow);
    let one = introduce(&mut bench, true);
    let seen = bench.receive(one, ack_epoch_again(z(4, 150).0));
    assert_eq!(seen.names(one), ["TRUNC", "PROPOSAL", "PROPOSAL"]);
    for _ in 0..20 {
        bench.write(1);
        bench.persisted();
        settle(&mut bench, two);
    }
    acknowledge(&mut bench, two);
    let seen = bench.step(Event::Drained(one));
    assert_eq!((seen.names(one), seen.streams()), {
        (vec![], vec![(one, z(4, 152), z(5, 20), Form::Proposals)])
    });
    let seen = bench.streamed(one);
    assert_eq!((seen.names(one), seen.streams()), (vec!["NEWLEADER"], vec![]));
    let seen = bench.receive(one, ack(5));
    assert_eq!(seen.names(one), ["UPTODATE"]);
    assert_eq!(seen.streams(), [(one, z(4, 149), z(5, 20), Form::Commits)]);
    settle(&mut bench, one);
    has_everything(&bench, one, "");
}

/// A stream has no frame: what is said in its midst is read as a part of it.
#[test]
fn uptodate_and_sync_wait_for_the_end_of_a_stream() {
    let slow = |config: &mut Config| {
        (config.history.window_count, config.history.delivery_bytes) = (5, 1);
        config.history.pace_bytes = 1;
    };
    let (mut bench, two) = leader(four(), slow);
    let fall_behind = |bench: &mut Bench, link| {
        for _ in 0..20 {
            bench.write(1);
            bench.persisted();
            settle(bench, two);
        }
        acknowledge(bench, two);
        let seen = bench.step(Event::Drained(link));
        assert_eq!(seen.streams().len(), 1, "{seen:?}");
    };
    let one = introduce(&mut bench, true);
    let seen = bench.receive(one, ack_epoch_again(z(4, 4).0));
    assert_eq!(seen.names(one), ["DIFF", "NEWLEADER"]);
    fall_behind(&mut bench, one);
    assert_eq!(bench.receive(one, ack(5)).names(one), [""; 0]);
    let seen = bench.streamed(one);
    assert_eq!(seen.names(one).first(), Some(&"UPTODATE"), "{seen:?}");
    settle(&mut bench, one);
    has_everything(&bench, one, "");

    // What it acknowledged meanwhile counts.
    bench.receive(one, Packet::Acks(Run { first: z(5, 1), last: z(5, 20) }));
    bench.down(two);
    let seen = bench.write(1);
    assert_eq!(seen.names(one), ["PROPOSAL"]);
    bench.persisted();
    assert_eq!(bench.receive(one, Packet::Ack(z(5, 21))).delivered(), [z(5, 21)]);

    // It asked for SYNC while it was sent a stretch of the log: nothing comes in between.
    let (mut bench, _two) = leader(four(), slow);
    let one = join(&mut bench, true);
    fall_behind(&mut bench, one);
    let sync = Packet::Request(Request { op: Request::SYNC, ..request(1) });
    let seen = bench.receive(one, sync);
    assert_eq!(seen.names(one), [""; 0]);
    let seen = bench.streamed(one);
    assert_eq!(seen.names(one).first(), Some(&"SYNC"), "{seen:?}");
    settle(&mut bench, one);
    settle(&mut bench, one);
    has_everything(&bench, one, "");
}

/// It has acknowledged and is not told to serve yet, so it has nothing to say; but its stream must move.
#[test]
fn who_does_not_read_the_stream_before_it_serves_loses_its_link() {
    for moves in [true, false] {
        let slow = |config: &mut Config| {
            (config.history.window_count, config.history.delivery_bytes) = (5, 1);
            config.history.pace_bytes = 1;
        };
        let (mut bench, two) = leader(four(), slow);
        let one = introduce(&mut bench, true);
        bench.receive(one, ack_epoch_again(z(4, 4).0));
        for _ in 0..20 {
            bench.write(1);
            bench.persisted();
            settle(&mut bench, two);
        }
        acknowledge(&mut bench, two);
        bench.step(Event::Drained(one));
        assert_eq!(bench.receive(one, ack(5)).names(one), [""; 0]);
        let mut gone = None;
        for _ in 0..30 {
            gone = gone.or(bench.to(Timer::Ping).hung_up(one));
            bench.receive(two, pong(5));
            if moves {
                bench.step(Event::Progress(one));
            }
        }
        assert_eq!(gone, (!moves).then_some(Hangup::Silent(ServerId(1))));
    }
}

/// A quorum without us may be ahead of our own disk; nobody reads from that what is not there.
#[test]
fn what_others_have_committed_and_our_disk_has_not_is_sent_from_memory() {
    let slow = |config: &mut Config| {
        (config.history.window_count, config.history.delivery_bytes) = (5, 1);
        config.history.pace_bytes = 1;
    };
    let (mut bench, two) = leader(four(), slow);
    let one = join(&mut bench, true);
    let nine = join(&mut bench, false);
    for n in 1..=20 {
        bench.write(1);
        if n <= 10 {
            bench.persisted();
        }
        for link in [one, two] {
            settle(&mut bench, link);
            bench.receive(link, Packet::Ack(z(5, n)));
        }
    }
    assert_eq!((bench.delivered(), bench.boundary.disk.durable.last), (z(5, 20), z(5, 10)));
    let seen = bench.step(Event::Drained(nine));
    assert_eq!(seen.streams(), [(nine, z(5, 2), z(5, 10), Form::Informs)]);
    let seen = bench.streamed(nine);
    assert_eq!(seen.names(nine), ["INFORM"]);
    settle(&mut bench, nine);
    has_everything(&bench, nine, "");
}

/// Many learners of all kinds, at random: they come, read slowly, acknowledge, go and come back.
#[test]
fn whatever_learners_do_each_gets_every_transaction_once() {
    let (mut snapshots, mut streams, mut serving) = (0, 0, 0);
    for seed in 0..if cfg!(miri) { 1 } else { 400 } {
        let mut rng = Rng::new(seed);
        let mut below = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
        let limits = HistoryLimits {
            window_count: [1, 3, 8, 500][below(4)],
            pace_bytes: [1, 100, 500, 1 << 20][below(4)],
            size_percent: [None, Some(33), Some(1_000)][below(3)],
            observer_snapshots: 1,
            ..HistoryLimits::default()
        };
        let (mut bench, mut two) = leader(four(), |config| config.history = limits);
        let mut learners: Vec<LinkId> = Vec::new();
        for _ in 0..200 {
            let last = bench.boundary.disk.last();
            let at = below(learners.len().max(1));
            match below(12) {
                0..3 => drop(bench.write(1 + u32::try_from(below(3)).unwrap())),
                3 => drop(bench.persisted()),
                4 => {
                    settle(&mut bench, two);
                    acknowledge(&mut bench, two);
                }
                5 if learners.len() < 6 => {
                    let id = [1, 9, 20 + i64::try_from(below(5)).unwrap()][below(3)];
                    let observes = id != 1 && below(2) == 0;
                    let info = info(id, 5);
                    let packet = if observes {
                        Packet::ObserverInfo(info)
                    } else {
                        Packet::FollowerInfo(info)
                    };
                    let link = bench.learner();
                    let seen = bench.receive(link, packet);
                    learners.retain(|old| seen.hung_up(*old).is_none());
                    let log = &bench.boundary.disk.log;
                    let known: Vec<_> = log.iter().map(|txn| txn.zxid).collect();
                    let corners = [Zxid(0), z(4, 0), z(5, 0), z(4, 9), z(3, 7), last];
                    let from = if below(2) == 0 {
                        known[below(known.len())]
                    } else {
                        corners[below(corners.len())]
                    };
                    bench.receive(link, ack_epoch_again(from.0));
                    learners.push(link);
                }
                6 if !learners.is_empty() && below(4) == 0 => {
                    bench.down(learners.swap_remove(at));
                }
                7 if below(20) == 0 => {
                    bench.down(two);
                    two = bench.follower(2, 5).0;
                    bench.receive(two, ack_epoch_again(last.0));
                    settle(&mut bench, two);
                }
                8 if !learners.is_empty() => {
                    let link = learners[at];
                    if let Some(stream) = bench.boundary.streams.get(&link) {
                        let snapshot = matches!(stream, boundary::Stream::Snapshot { .. });
                        snapshots += usize::from(snapshot);
                        streams += usize::from(!snapshot);
                    }
                    owed(&mut bench, link);
                }
                _ if !learners.is_empty() => drop(owed(&mut bench, learners[at])),
                _ => {}
            }
        }
        settle(&mut bench, two);
        bench.persisted();
        acknowledge(&mut bench, two);
        // Those that waited for their turn get it, one after the other.
        for _ in 0..learners.len() + 1 {
            learners.iter().for_each(|link| settle(&mut bench, *link));
        }
        for link in learners {
            has_everything(&bench, link, &format!("seed {seed}"));
            serving += 1;
        }
    }
    assert!(
        cfg!(miri) || snapshots > 100 && streams > 100 && serving > 1_000,
        "a test of nothing: {snapshots}, {streams}, {serving}"
    );
}
