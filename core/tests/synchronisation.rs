//! How a learner is brought to its leader's history: the table of cases line by line, the packets that
//! come of each, and that whatever the two histories are the learner ends with the leader's.

use crate::support::*;
use quorate_core::config::{Config, HistoryLimits};
use quorate_core::durable::Durable;
use quorate_core::history::History;
use quorate_core::history::plan::Plan;
use quorate_core::id::LinkId;
use quorate_core::input::{Event, Located, Place};
use quorate_core::message::Packet;
use quorate_core::outbox::Outbox;
use quorate_core::output::Form;
use quorate_core::reasons::Hangup;
use quorate_core::report::{How, Reason};
use quorate_core::rng::Rng;
use quorate_core::txn::Txn;
use quorate_core::zxid::{Epoch, Zxid};

// --- the decision ---

const fn diff(label: Zxid, after: Zxid) -> Plan {
    Plan::Diff { label, after }
}

const fn trunc(to: Zxid) -> Plan {
    Plan::Trunc { to }
}

const SNAP: Plan = Plan::Snap;

/// A history as it was found on disk.
fn found(mut durable: Durable) -> History {
    History::new(&mut durable, HistoryLimits::default(), &mut Rng::new(1))
}

/// The same, of a leader that is established, and knows therefore that all of it is committed.
fn confirmed(durable: Durable) -> History {
    let mut history = found(durable);
    history.commit(history.last(), &mut Rng::new(1));
    history
}

/// A disk with 600 transactions of epoch 5 behind some of epoch 4; the last 500 are in memory.
fn six_hundred(snapshot: Zxid) -> Durable {
    Durable { snapshot, ..stored(5, 5, z(4, 60), entries(5, 101, 600)) }
}

/// Who is at the last transaction, before it, behind it, and so on, where `min = (5, 100)` and
/// `max = last = (5, 600)`.
#[test]
fn a_leader_with_600_transactions_of_one_epoch() {
    let found = found(six_hundred(z(4, 60)));
    let confirmed = confirmed(six_hundred(z(4, 60)));
    let max = z(5, 600);
    // The learner's last zxid; before the leader is established, and when it is, in epoch 7.
    for (learner, before, then) in [
        (max, diff(max, max), diff(max, max)),
        (z(5, 300), diff(max, z(5, 300)), diff(max, z(5, 300))),
        (z(5, 599), diff(max, z(5, 599)), diff(max, z(5, 599))),
        (z(5, 100), diff(max, z(5, 100)), diff(max, z(5, 100))),
        (z(5, 601), trunc(max), trunc(max)),
        (z(5, 0xffff_fffe), trunc(max), trunc(max)),
        (z(6, 0), diff(z(6, 0), z(6, 0)), SNAP),
        (z(6, 3), trunc(z(5, 600)), SNAP),
        (z(7, 0), diff(z(7, 0), z(7, 0)), diff(z(7, 0), z(7, 0))),
        (z(5, 99), Plan::Locate, Plan::Locate),
        (z(5, 50), Plan::Locate, Plan::Locate),
        (z(5, 0), Plan::Locate, Plan::Locate),
        (z(4, 77), Plan::Locate, Plan::Locate),
        (z(3, 10), Plan::Locate, Plan::Locate),
        (Zxid(0), SNAP, SNAP),
        (Zxid(-1), SNAP, SNAP),
        (Zxid(i64::MIN), SNAP, SNAP),
    ] {
        assert_eq!(found.plan(learner, None, None), before, "{learner} before");
        assert_eq!(confirmed.plan(learner, Some(Epoch(7)), None), then, "{learner} then");
    }
}

/// What the disk says of a zxid below the window, and what that costs.
#[test]
fn below_the_window_the_disk_decides() {
    let max = z(5, 600);
    // A snapshot from before the learners below; one from behind them.
    let (older, newer) = (z(4, 60), z(5, 90));
    let absent = Place::Absent { previous: z(4, 70) };
    for (learner, located, from_older, from_newer, established) in [
        (z(5, 50), cheap(Place::Held), true, true, true),
        (z(5, 50), dear(Place::Held), true, false, false),
        (z(4, 70), dear(Place::Held), true, false, false),
        (z(4, 60), cheap(Place::Held), true, true, true),
        // The bare start of an epoch is before its first transaction, wherever that is.
        (z(5, 0), cheap(absent), true, true, true),
        (z(5, 0), dear(absent), true, false, false),
        // The log goes (4, 70), (5, 1): a TRUNC to (4, 70) would be within one epoch, but it is the next
        // one of ours that tells whether the learner's epoch went on for us.
        (z(4, 77), cheap(absent), false, false, false),
        (z(4, 77), dear(absent), false, false, false),
        (z(3, 10), cheap(Place::BelowFloor), false, false, false),
        (z(3, 0), cheap(Place::BelowFloor), false, false, false),
        (z(5, 50), cheap(Place::Beyond), false, false, false),
    ] {
        let plan = |diffs| if diffs { diff(max, learner) } else { SNAP };
        let told = format!("{learner}, {located:?}");
        let found_older = found(six_hundred(older));
        assert_eq!(found_older.plan(learner, None, Some(located)), plan(from_older), "{told}");
        let found_newer = found(six_hundred(newer));
        assert_eq!(found_newer.plan(learner, None, Some(located)), plan(from_newer), "{told}");
        let then = confirmed(six_hundred(older)).plan(learner, Some(Epoch(7)), Some(located));
        assert_eq!(then, plan(established), "{told}");
    }
}

/// The limit is a third of a snapshot; none may be set.
#[test]
fn the_log_is_read_up_to_a_third_of_a_snapshot() {
    let located =
        |log_bytes, snapshot_bytes| Located { place: Place::Held, log_bytes, snapshot_bytes };
    let learner = z(5, 50);
    for (percent, log, snapshot, reads) in [
        (Some(33), 330, 1_000, true),
        (Some(33), 331, 1_000, false),
        (Some(33), u64::MAX, u64::MAX, true),
        (Some(33), 1, 0, true),
        (Some(100), 1_000, 1_000, true),
        (Some(0), 1, 1_000, false),
        (Some(0), 0, 1_000, true),
        (None, 0, 1_000, false),
        (None, 0, 0, false),
    ] {
        let limits = HistoryLimits { size_percent: percent, ..HistoryLimits::default() };
        let mut durable = six_hundred(z(5, 90));
        let history = History::new(&mut durable, limits, &mut Rng::new(1));
        let plan = history.plan(learner, None, Some(located(log, snapshot)));
        let expected = if reads { diff(z(5, 600), learner) } else { SNAP };
        assert_eq!(plan, expected, "{percent:?} of {snapshot}, {log} to read");
    }
}

/// The window has two bounds, and holds at least what the disk has not.
#[test]
fn the_window_is_bounded_by_a_count_and_by_bytes() {
    // One of these takes 40 bytes.
    for (count, bytes, before) in [
        (500, 16 << 20, z(5, 100)),
        (10, 16 << 20, z(5, 590)),
        (500, 400, z(5, 590)),
        (500, 401, z(5, 590)),
        (500, 399, z(5, 591)),
        (0, 16 << 20, z(5, 600)),
        (500, 0, z(5, 600)),
    ] {
        let limits =
            HistoryLimits { window_count: count, window_bytes: bytes, ..HistoryLimits::default() };
        let (mut rng, mut outbox) = (Rng::new(1), Outbox::default());
        let mut history = History::new(&mut six_hundred(z(4, 60)), limits, &mut rng);
        assert_eq!(history.before(), before, "{count}, {bytes}");
        let more = 2 * count.min(bytes / 40).clamp(1, 600);
        let last = z(5, 600 + u32::try_from(more).unwrap());
        history.on_delivered(z(5, 600));
        history.append(entries(5, 601, last.counter().0).into(), &mut outbox);
        assert_eq!(history.before(), z(5, 600), "{count}, {bytes}: what is not durable stays");
        history.on_delivered(last);
        outbox.on_persisted(quorate_core::id::Ticket(1));
        history.on_persisted(&outbox);
        assert_eq!(history.before().0 - before.0, last.0 - z(5, 600).0, "{count}, {bytes}");
    }
}

#[test]
fn what_is_cut_makes_room_in_the_window() {
    let limits = HistoryLimits { window_count: 500, window_bytes: 400, ..HistoryLimits::default() };
    let (mut rng, mut outbox) = (Rng::new(1), Outbox::default());
    let mut history = History::new(&mut six_hundred(z(4, 60)), limits, &mut rng);
    assert_eq!(history.before(), z(5, 590));
    history.truncate(z(5, 595), &mut outbox);
    history.append(entries(5, 596, 600).into(), &mut outbox);
    outbox.on_persisted(quorate_core::id::Ticket(2));
    history.on_persisted(&outbox);
    assert_eq!(history.before(), z(5, 590), "as many as before");
}

/// An artificial hole: the decision alone; a learner would refuse what follows.
#[test]
fn a_learner_in_a_hole_is_cut_back_to_before_it() {
    let mut txns = entries(5, 100, 149);
    txns.extend(entries(5, 151, 200));
    let history = found(stored(5, 5, z(5, 99), txns));
    assert_eq!(history.plan(z(5, 150), None, None), trunc(z(5, 149)));
    let next = history.after(z(5, 149)).next().map(|txn| txn.zxid);
    assert_eq!(next, Some(z(5, 151)));
}

/// The log is (0, 1), (1, 1), (1, 2), the window (1, 1), (1, 2), and epoch 2 has just begun.
#[test]
fn just_after_an_election() {
    let durable = Durable { floor: z(0, 0), ..stored(2, 2, z(0, 1), entries(1, 1, 2)) };
    let history = confirmed(durable);
    for (learner, plan) in [
        (z(0, 0), SNAP),
        (z(1, 0), diff(z(1, 2), z(1, 0))),
        (z(2, 0), diff(z(2, 0), z(2, 0))),
        (z(1, 2), diff(z(1, 2), z(1, 2))),
        (z(1, 3), trunc(z(1, 2))),
    ] {
        assert_eq!(history.plan(learner, Some(Epoch(2)), None), plan, "{learner}");
    }
}

fn scattered(of: &[(i64, u32)]) -> Vec<Txn> {
    of.iter().map(|(epoch, counter)| entry(z(*epoch, *counter))).collect()
}

/// ZOOKEEPER's own matrix of cases: a wrong choice crashes the learner or leaves it with orphans.
#[test]
fn the_matrix_of_zookeepers_own_tests() {
    // Epochs that the learner skipped and we did not, and the other way round.
    let history = confirmed(stored(6, 6, z(1, 0), scattered(&[(1, 1), (2, 1), (2, 2), (4, 1)])));
    assert_eq!(history.plan(z(3, 1), Some(Epoch(6)), None), SNAP);
    // Committed through 1.5, and the learner is beyond.
    let history = confirmed(stored(2, 2, z(1, 0), entries(1, 1, 5)));
    assert_eq!(history.plan(z(1, 9), Some(Epoch(2)), None), trunc(z(1, 5)));
    // 1.3 is none of 1.1, 1.2, 1.4.
    let history = confirmed(stored(2, 2, z(1, 0), scattered(&[(1, 1), (1, 2), (1, 4)])));
    assert_eq!(history.plan(z(1, 3), Some(Epoch(2)), None), trunc(z(1, 2)));
    // Beyond our last, in another epoch.
    let history = confirmed(stored(4, 4, z(2, 0), entries(2, 1, 5)));
    assert_eq!(history.plan(z(3, 9), Some(Epoch(4)), None), SNAP);
    // Nothing is in memory.
    let history = confirmed(stored(2, 2, z(1, 5), vec![]));
    for (learner, plan) in [
        (z(1, 5), diff(z(1, 5), z(1, 5))),
        (z(1, 3), Plan::Locate),
        (z(1, 9), trunc(z(1, 5))),
        (z(0, 0), SNAP),
    ] {
        assert_eq!(history.plan(learner, Some(Epoch(2)), None), plan, "{learner}");
    }
}

/// ZOOKEEPER-2418: the log on disk was {2, 3, 4} and the list in memory {7, 8}; who stood at 3 was sent 4,
/// 7 and 8.
#[test]
fn no_diff_begins_below_a_hole() {
    let history = found(stored(0, 0, Zxid(6), entries(0, 7, 8)));
    assert_eq!(history.plan(Zxid(3), None, None), Plan::Locate);
    for located in [cheap(Place::BelowFloor), dear(Place::BelowFloor)] {
        assert_eq!(history.plan(Zxid(3), None, Some(located)), SNAP);
    }
    assert_eq!(history.plan(Zxid(6), None, None), diff(Zxid(8), Zxid(6)));
    // However much is in memory, what is before the floor is not served from it.
    let history = found(Durable { floor: Zxid(6), ..stored(0, 0, Zxid(1), entries(0, 2, 8)) });
    assert_eq!(history.plan(Zxid(3), None, None), Plan::Locate);
    assert_eq!(history.plan(Zxid(6), None, None), diff(Zxid(8), Zxid(6)));
}

#[test]
fn servers_that_have_nothing_have_the_same() {
    let history = found(Durable::default());
    assert_eq!(history.plan(Zxid(0), None, None), diff(Zxid(0), Zxid(0)));
    assert_eq!(history.plan(z(1, 1), None, None), trunc(Zxid(0)));
    assert_eq!(history.plan(z(1, 0), None, None), diff(z(1, 0), z(1, 0)));
    let history = confirmed(Durable::default());
    assert_eq!(history.plan(Zxid(0), Some(Epoch(3)), None), diff(Zxid(0), Zxid(0)));
    assert_eq!(history.plan(z(3, 0), Some(Epoch(3)), None), diff(z(3, 0), z(3, 0)));
    assert_eq!(history.plan(z(1, 1), Some(Epoch(3)), None), SNAP);
}

/// What was not acknowledged by a quorum yet goes out like the rest, and is not called committed.
#[test]
fn a_diff_says_what_is_committed_and_not_more() {
    let (mut history, mut outbox) =
        (confirmed(stored(2, 2, z(1, 0), entries(1, 1, 5))), Outbox::default());
    history.append(entries(2, 1, 4).into(), &mut outbox);
    history.commit(z(2, 2), &mut Rng::new(1));
    let epoch = Some(Epoch(2));
    for (learner, label) in [
        (z(1, 3), z(2, 2)),
        (z(2, 0), z(2, 2)),
        (z(2, 1), z(2, 2)),
        (z(2, 2), z(2, 2)),
        (z(2, 3), z(2, 2)),
        (z(2, 4), z(2, 2)),
    ] {
        assert_eq!(history.plan(learner, epoch, None), diff(label, learner), "{learner}");
    }
}

/// With many transactions under way to a quorum, a learner that has some of them may stand below the
/// window and before what is committed. A snapshot would take from it what it has acknowledged.
#[test]
fn a_snapshot_is_never_older_than_what_the_learner_shares_with_us() {
    let mut durable = stored(2, 2, z(1, 0), entries(1, 1, 5));
    let limits = HistoryLimits { window_count: 10, ..HistoryLimits::default() };
    let (mut rng, mut outbox) = (Rng::new(1), Outbox::default());
    let mut history = History::new(&mut durable, limits, &mut rng);
    history.commit(z(1, 5), &mut rng);
    history.append(entries(2, 1, 100).into(), &mut outbox);
    outbox.on_persisted(quorate_core::id::Ticket(1));
    history.on_persisted(&outbox);
    history.commit(z(2, 40), &mut rng);
    history.on_delivered(z(2, 100));
    let held = dear(Place::Held);
    for (learner, plan) in [
        (z(2, 50), diff(z(2, 40), z(2, 50))),
        (z(2, 41), diff(z(2, 40), z(2, 41))),
        (z(2, 39), SNAP),
        (z(1, 3), SNAP),
    ] {
        assert_eq!(history.plan(learner, Some(Epoch(2)), None), Plan::Locate, "{learner}");
        assert_eq!(history.plan(learner, Some(Epoch(2)), Some(held)), plan, "{learner}");
    }
}

#[test]
fn who_stands_where_the_log_could_not_be_read_gets_a_snapshot_without_another_try() {
    let mut history = found(six_hundred(z(4, 60)));
    history.on_unreadable(z(5, 50));
    assert_eq!(history.plan(z(5, 50), None, None), SNAP);
    assert_eq!(history.plan(z(4, 70), None, None), SNAP);
    assert_eq!(history.plan(z(5, 51), None, None), Plan::Locate);
    assert_eq!(history.plan(z(5, 100), None, None), diff(z(5, 600), z(5, 100)));
}

// --- the packets that come of it ---

/// Server 3 of three, with this on its disk, elected and not established yet.
fn elected(durable: Durable) -> Bench {
    elected_with(durable, |_| {})
}

fn elected_with(durable: Durable, change: impl FnOnce(&mut Config)) -> Bench {
    let mut bench = Bench::with(3, &with_observers(&[1, 2, 3], &[8, 9]), durable, change);
    bench.win(&[1, 2]);
    bench
}

/// The same, established with server 2, which has the same history; the link of 2.
fn established(durable: Durable) -> (Bench, LinkId) {
    established_with(durable, |_| {})
}

fn established_with(durable: Durable, change: impl FnOnce(&mut Config)) -> (Bench, LinkId) {
    let mut bench = elected_with(durable, change);
    let link = bench.establish(2);
    (bench, link)
}

/// Server 1 comes, and its history ends here; what it gets.
fn follower_at(bench: &mut Bench, last: Zxid) -> (LinkId, Seen) {
    let status = bench.status();
    let (link, _) = bench.follower(1, status.accepted_epoch.0);
    if !status.serving {
        bench.persisted();
    }
    (link, bench.receive(link, ack_epoch(status.current_epoch.0, last.0)))
}

/// The same for observer 9 of an established leader.
fn observer_at(bench: &mut Bench, last: Zxid) -> (LinkId, Seen) {
    let status = bench.status();
    let link = bench.learner();
    bench.receive(link, Packet::ObserverInfo(info(9, status.accepted_epoch.0)));
    (link, bench.receive(link, ack_epoch_again(last.0)))
}

fn proposals(txns: &[Txn]) -> Vec<Packet> {
    txns.iter().cloned().map(Packet::Proposal).collect()
}

fn commits(txns: &[Txn]) -> Vec<Packet> {
    txns.iter().map(|txn| Packet::Commit(txn.zxid)).collect()
}

/// PROPOSAL and COMMIT of each.
fn pairs(txns: &[Txn]) -> Vec<Packet> {
    let pair = |txn: &Txn| [Packet::Proposal(txn.clone()), Packet::Commit(txn.zxid)];
    txns.iter().flat_map(pair).collect()
}

fn end(bench: &Bench) -> Packet {
    let config = bench.peer.config().membership.text().clone();
    Packet::NewLeader { zxid: Zxid::start_of(bench.status().current_epoch), config }
}

/// All of the history that a leader brings into its leadership goes out with COMMIT, or a follower would
/// acknowledge NEWLEADER without having it on disk.
#[test]
fn before_it_is_established_a_leader_sends_its_whole_history_with_commit() {
    let max = z(5, 600);
    for (last, label, sent) in [
        (max, Packet::Diff(max), vec![]),
        (z(5, 300), Packet::Diff(max), entries(5, 301, 600)),
        (z(5, 100), Packet::Diff(max), entries(5, 101, 600)),
        (z(5, 599), Packet::Diff(max), entries(5, 600, 600)),
    ] {
        let mut bench = elected(six_hundred(z(4, 60)));
        let (link, seen) = follower_at(&mut bench, last);
        assert_eq!(bench.status().current_epoch, Epoch(6));
        let packets = [vec![label], pairs(&sent), vec![end(&bench)]].concat();
        assert!(seen.packets(link) == packets, "{last}: {:?}", seen.names(link));
        assert_eq!(seen.syncs(), [(How::Diff, Reason::EndsAt(last))]);
        assert_eq!(seen.delivered(), [], "no quorum has it");
    }
}

#[test]
fn after_a_diff_come_committed_transactions_then_outstanding_ones_then_newleader() {
    for last in [z(1, 3), z(2, 0), z(2, 1)] {
        let (mut bench, two) = established(stored(1, 1, z(1, 0), entries(1, 1, 5)));
        bench.write(4);
        bench.persisted();
        bench.receive(two, Packet::Ack(z(2, 1)));
        bench.receive(two, Packet::Ack(z(2, 2)));
        assert_eq!(bench.delivered(), z(2, 2));
        let log: Vec<_> = bench.boundary.disk.after(last).to_vec();
        let (committed, outstanding) = log.split_at(log.len() - 2);

        let (one, seen) = follower_at(&mut bench, last);
        let diff = vec![Packet::Diff(z(2, 2))];
        let end = vec![end(&bench)];
        let packets =
            [diff.clone(), pairs(committed), proposals(outstanding), end.clone()].concat();
        assert_eq!(seen.packets(one), packets, "from {last}");

        let (nine, seen) = observer_at(&mut bench, last);
        assert_eq!(seen.packets(nine), [diff, pairs(committed), end].concat(), "from {last}");
    }
}

/// An observer's log begins behind a snapshot, and the leader has nothing: where it is told to cut it cannot,
/// and comes back. That both have nothing now is not so; told DIFF, it would come again and again.
#[test]
fn who_comes_back_blank_is_sent_even_an_empty_state() {
    let mut bench = elected(Durable::default());
    let (link, seen) = follower_at(&mut bench, Zxid(0));
    assert_eq!(seen.packets(link)[0], Packet::Diff(Zxid(0)));
    let observer = bench.learner();
    bench.receive(observer, Packet::ObserverInfo(info(9, 1)));
    let seen = bench.receive(observer, ack_epoch(1, z(1, 1).0));
    assert_eq!(seen.packets(observer)[0], Packet::Trunc(Zxid(0)));
    bench.down(observer);
    let (observer, seen) = observer_at(&mut bench, Zxid::UNKNOWN);
    assert_eq!((seen.names(observer), seen.snapshots()), (vec![], vec![(observer, Zxid(0))]));
}

/// The first leader after an election, (c) of the worked example: log (0, 1), (1, 1), (1, 2), epoch 2.
#[test]
fn just_after_an_election_packet_by_packet() {
    let durable = || Durable { floor: z(0, 0), ..stored(1, 1, z(0, 1), entries(1, 1, 2)) };
    let txns = entries(1, 1, 2);
    for (last, packets) in [
        (z(1, 0), [vec![Packet::Diff(z(1, 2))], pairs(&txns)].concat()),
        (z(2, 0), vec![Packet::Diff(z(2, 0))]),
        (z(1, 2), vec![Packet::Diff(z(1, 2))]),
        (z(1, 3), vec![Packet::Trunc(z(1, 2))]),
    ] {
        let (mut bench, _) = established(durable());
        let (link, seen) = follower_at(&mut bench, last);
        assert_eq!(seen.packets(link), [packets, vec![end(&bench)]].concat(), "from {last}");
    }
    let (mut bench, _) = established(durable());
    let (link, seen) = follower_at(&mut bench, z(0, 0));
    assert_eq!((seen.names(link), seen.snapshots()), (vec![], vec![(link, z(2, 0))]));
}

/// A ZooKeeper learner keeps what comes with COMMIT after a TRUNC in memory only; what comes without, it
/// logs. A follower has logged it at NEWLEADER, and would look for it in vain before UPTODATE (ZOOKEEPER-4394); an
/// observer begins at UPTODATE with what it was told of.
#[test]
fn what_follows_a_cut_goes_out_without_commit_until_newleader_or_a_followers_uptodate() {
    let hole = || [entries(5, 100, 149), entries(5, 151, 153)].concat();
    let mut bench = elected(stored(5, 5, z(5, 99), hole()));
    let (link, seen) = follower_at(&mut bench, z(5, 150));
    let rest = entries(5, 151, 153);
    let packets = [vec![Packet::Trunc(z(5, 149))], proposals(&rest), vec![end(&bench)]];
    assert_eq!(seen.packets(link), packets.concat());
    assert_eq!(seen.syncs(), [(How::Trunc, Reason::EndsAt(z(5, 150)))]);
    bench.receive(link, ack(6));
    let seen = bench.persisted();
    assert_eq!(seen.packets(link), [vec![Packet::UpToDate], commits(&rest)].concat());
    // An observer too.
    let (mut bench, _) = established(stored(5, 5, z(5, 99), hole()));
    let (link, seen) = observer_at(&mut bench, z(5, 150));
    let packets =
        [vec![Packet::Trunc(z(5, 149))], proposals(&rest), vec![end(&bench)], commits(&rest)];
    assert_eq!(seen.packets(link), packets.concat());
}

/// The window is short, and what is before it only the disk knows.
fn short(config: &mut Config) {
    (config.history.window_count, config.history.delivery_bytes) = (10, 1);
}

#[test]
fn a_learner_below_the_window_gets_the_log_from_disk_and_then_the_window() {
    let durable = || stored(5, 5, z(5, 0), entries(5, 1, 100));
    let mut bench = elected_with(durable(), short);
    let (link, seen) = follower_at(&mut bench, z(5, 50));
    assert_eq!((seen.names(link), seen.locates()), (vec![], vec![(link, z(5, 50))]));
    let seen = bench.located(link, cheap(Place::Held));
    assert_eq!(seen.packets(link), [Packet::Diff(z(5, 100))]);
    assert_eq!(seen.streams(), [(link, z(5, 50), z(5, 100), Form::Committed)]);
    let seen = bench.streamed(link);
    assert_eq!(seen.packets(link), [end(&bench)]);

    // With more on its way than memory holds, all of it durable: a part of it from the disk too.
    let (mut bench, two) = established_with(durable(), short);
    bench.write(20);
    bench.persisted();
    (1..=5).for_each(|n| drop(bench.receive(two, Packet::Ack(z(6, n)))));
    let (link, seen) = follower_at(&mut bench, z(5, 50));
    assert_eq!(seen.locates(), [(link, z(5, 50))]);
    let seen = bench.located(link, cheap(Place::Held));
    assert_eq!(seen.packets(link), [Packet::Diff(z(6, 5))]);
    assert_eq!(seen.streams(), [(link, z(5, 50), z(6, 5), Form::Committed)]);
    let seen = bench.streamed(link);
    assert_eq!((seen.names(link), seen.streams()), {
        (vec![], vec![(link, z(6, 5), z(6, 20), Form::Proposals)])
    });
    let seen = bench.streamed(link);
    assert_eq!(seen.packets(link), [end(&bench)]);
}

/// What is not durable is in memory, whatever the limits are.
#[test]
fn nothing_is_read_from_disk_that_is_not_there() {
    let (mut bench, two) = established_with(stored(5, 5, z(5, 0), entries(5, 1, 100)), short);
    bench.write(20);
    bench.receive(two, Packet::Ack(z(6, 1)));
    let (link, _) = follower_at(&mut bench, z(5, 50));
    let seen = bench.located(link, cheap(Place::Held));
    assert_eq!(seen.streams(), [(link, z(5, 50), z(5, 100), Form::Committed)]);
    let outstanding: Vec<_> = bench.boundary.disk.after(z(6, 0)).to_vec();
    assert_eq!(outstanding.len(), 20);
    let seen = bench.streamed(link);
    let packets = [proposals(&outstanding), vec![end(&bench)]].concat();
    assert_eq!(seen.packets(link), packets);
}

#[test]
fn a_learner_that_gets_a_snapshot_gets_what_follows_its_label() {
    // Before it is established a leader has the state from which it started.
    let mut bench = elected(six_hundred(z(5, 590)));
    let (link, seen) = follower_at(&mut bench, Zxid(0));
    assert_eq!((seen.names(link), seen.snapshots()), (vec![], vec![(link, z(5, 590))]));
    assert_eq!(seen.syncs(), [(How::Snap, Reason::EndsAt(Zxid(0)))]);
    let seen = bench.streamed(link);
    let packets = [pairs(&entries(5, 591, 600)), vec![end(&bench)]].concat();
    assert_eq!(seen.packets(link), packets);

    // A young ensemble has none yet: the state is the empty one, and all of the log follows.
    let mut bench = elected(stored(1, 1, Zxid(0), entries(1, 1, 5)));
    let (link, seen) = follower_at(&mut bench, Zxid(0));
    assert_eq!(seen.snapshots(), [(link, Zxid(0))]);
    let seen = bench.streamed(link);
    assert_eq!(seen.streams(), [(link, Zxid(0), z(1, 5), Form::Committed)]);
    assert_eq!(bench.streamed(link).packets(link), [end(&bench)]);

    // An established leader's state is that of its epoch's start at least, and what is proposed meanwhile
    // follows it.
    let (mut bench, two) = established(six_hundred(z(5, 590)));
    let (link, seen) = follower_at(&mut bench, Zxid(0));
    assert_eq!(seen.snapshots(), [(link, z(6, 0))]);
    bench.write(3);
    bench.persisted();
    bench.receive(two, Packet::Ack(z(6, 1)));
    let log = bench.boundary.disk.after(z(6, 0)).to_vec();
    let seen = bench.streamed(link);
    let packets = [pairs(&log[..1]), proposals(&log[1..]), vec![end(&bench)]].concat();
    assert_eq!(seen.packets(link), packets);
    let (link, seen) = observer_at(&mut bench, Zxid(0));
    assert_eq!(seen.snapshots(), [(link, z(6, 1))], "the label is what was delivered");
}

#[test]
fn what_the_disk_cannot_give_cheaply_or_at_all_becomes_a_snapshot_and_nothing_of_a_plan_leaves() {
    for (durable, last, located) in [
        // (5, 50), the log costs too much; (4, 77), (4, 70) is followed by (5, 1); (3, 10), it is gone.
        (six_hundred(z(5, 90)), z(5, 50), dear(Place::Held)),
        (six_hundred(z(4, 60)), z(4, 77), cheap(Place::Absent { previous: z(4, 70) })),
        (six_hundred(z(4, 60)), z(3, 10), cheap(Place::BelowFloor)),
        // The log on disk was {2, 3, 4}, the list in memory {7, 8}.
        (stored(1, 1, Zxid(6), entries(0, 7, 8)), Zxid(3), cheap(Place::BelowFloor)),
    ] {
        let label = durable.snapshot;
        let mut bench = elected(durable);
        let (link, seen) = follower_at(&mut bench, last);
        assert_eq!((seen.names(link), seen.locates()), (vec![], vec![(link, last)]));
        let seen = bench.located(link, located);
        assert_eq!((seen.names(link), seen.streams()), (vec![], vec![]), "{last}");
        assert_eq!(seen.snapshots(), [(link, label)], "{last}");
    }
}

/// What could not be read once is not tried again for the next who stands there.
#[test]
fn a_log_that_cannot_be_read_costs_the_link_and_the_next_time_it_is_a_snapshot() {
    let (mut bench, _) = established_with(stored(5, 5, z(5, 0), entries(5, 1, 100)), short);
    let (link, _) = follower_at(&mut bench, z(5, 50));
    bench.located(link, cheap(Place::Held));
    let seen = bench.unreadable(link);
    assert_eq!(seen.hung_up(link), Some(Hangup::Unreadable));
    let (link, seen) = follower_at(&mut bench, z(5, 50));
    assert_eq!((seen.locates(), seen.snapshots()), (vec![], vec![(link, z(6, 0))]));
    // A snapshot that cannot be read costs the link too.
    assert_eq!(bench.unreadable(link).hung_up(link), Some(Hangup::Unreadable));
    // Who stands behind that is served from the log.
    let (link, seen) = follower_at(&mut bench, z(5, 51));
    assert_eq!(seen.locates(), [(link, z(5, 51))]);
}

/// An old leader comes back with (1, 5), which nobody else has.
#[test]
fn an_old_leader_that_comes_back_loses_what_only_it_has() {
    // Nothing is committed in epoch 2 yet.
    let (mut bench, two) = established(stored(1, 1, z(1, 0), entries(1, 1, 4)));
    assert_eq!(bench.status().current_epoch, Epoch(2));
    let (link, seen) = follower_at(&mut bench, z(1, 5));
    assert_eq!(seen.packets(link), [Packet::Trunc(z(1, 4)), end(&bench)]);
    // (2, 1) is proposed, and then committed: the cut would cross into another epoch.
    bench.write(1);
    let (link, seen) = follower_at(&mut bench, z(1, 5));
    assert_eq!((seen.names(link), seen.snapshots()), (vec![], vec![(link, z(2, 0))]));
    bench.receive(two, Packet::Ack(z(2, 1)));
    bench.persisted();
    let (link, seen) = follower_at(&mut bench, z(1, 5));
    assert_eq!((seen.names(link), seen.snapshots()), (vec![], vec![(link, z(2, 1))]));
    // ZOOKEEPER-1154: everybody was at (7, 3), one logged (7, 4) alone; the others went on to (8, 1).
    let (mut bench, two) = established(stored(7, 7, z(7, 0), entries(7, 1, 3)));
    bench.write(1);
    bench.persisted();
    bench.receive(two, Packet::Ack(z(8, 1)));
    let (link, seen) = follower_at(&mut bench, z(7, 4));
    assert_eq!((seen.names(link), seen.snapshots()), (vec![], vec![(link, z(8, 1))]));
}

/// It may be needed for that; an established leader has a snapshot with a label that is late enough, and
/// until then it is cut to what all have.
#[test]
fn who_is_beyond_our_last_in_another_epoch_is_cut_to_it_until_we_are_established() {
    let mut bench = elected(stored(4, 4, z(2, 0), entries(2, 1, 5)));
    // It has logged of epoch 3, and taken over a history before ours.
    let (one, _) = bench.follower(1, 4);
    bench.persisted();
    let seen = bench.receive(one, ack_epoch(3, z(3, 9).0));
    assert_eq!(seen.packets(one), [Packet::Trunc(z(2, 5)), end(&bench)]);
    bench.persisted();
    bench.receive(one, ack(5));
    assert!(bench.status().serving);
    let (two, seen) = follower_at(&mut bench, z(3, 9));
    assert_eq!((seen.names(two), seen.snapshots()), (vec![], vec![(two, z(5, 0))]));
}

/// How many observers are sent snapshots at a time is limited; voters are not observers.
#[test]
fn observers_wait_for_their_turn_to_be_sent_a_snapshot_and_voters_do_not() {
    let two_at_a_time = |config: &mut Config| config.history.observer_snapshots = 2;
    let (mut bench, _) = established_with(stored(5, 5, z(5, 0), entries(5, 1, 10)), two_at_a_time);
    let observe = |bench: &mut Bench, id: i64| {
        let link = bench.learner();
        bench.receive(link, Packet::ObserverInfo(info(id, 6)));
        let seen = bench.receive(link, ack_epoch_again(0));
        (link, seen.snapshots().len())
    };
    let learners: Vec<_> = (20..25).map(|id| observe(&mut bench, id)).collect();
    assert_eq!(learners.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
    let links: Vec<_> = learners.into_iter().map(|(link, _)| link).collect();
    let (one, seen) = follower_at(&mut bench, Zxid(0));
    assert_eq!(seen.snapshots(), [(one, z(6, 0))]);
    assert_eq!(bench.streamed(one).snapshots(), [], "a voter frees no place");
    // One is done, one ends, one cannot be read, and one is hung up.
    assert_eq!(bench.streamed(links[0]).snapshots(), [(links[2], z(6, 0))]);
    assert_eq!(bench.down(links[1]).snapshots(), [(links[3], z(6, 0))]);
    assert_eq!(bench.unreadable(links[2]).snapshots(), [(links[4], z(6, 0))]);
    let (sixth, waits) = observe(&mut bench, 25);
    assert_eq!(waits, 0);
    let link = bench.learner();
    let seen = bench.receive(link, Packet::ObserverInfo(info(23, 6)));
    assert_eq!(seen.hung_up(links[3]), Some(Hangup::Replaced(quorate_core::id::ServerId(23))));
    assert_eq!(seen.snapshots(), [(sixth, z(6, 0))]);
}

/// An answer of the disk for somebody who has gone is for nobody.
#[test]
fn a_late_answer_of_the_disk_or_the_driver_does_nothing() {
    let (mut bench, _) = established_with(stored(5, 5, z(5, 0), entries(5, 1, 100)), short);
    let (link, _) = follower_at(&mut bench, z(5, 50));
    bench.down(link);
    let located = cheap(Place::Held);
    bench.step(Event::Located { link, located }).is_nothing();
    let (link, _) = follower_at(&mut bench, z(5, 50));
    bench.located(link, located);
    bench.step(Event::Located { link, located }).is_nothing();
    bench.streamed(link);
    bench.step(Event::Located { link, located }).is_nothing();
}

// --- whatever the two histories are ---

/// A leader and a learner whose histories could have come about: whoever has a transaction of an epoch
/// has everything that its leader brought into it, and the transactions of it before that one.
#[derive(Debug)]
struct Pair {
    /// Everything that the leader ever logged.
    leader: Vec<Txn>,
    /// Its log can be read from here on.
    floor: Zxid,
    /// The label of the snapshot from which it started.
    snapshot: Zxid,
    /// So many of its transactions were in memory when it started.
    window: usize,
    /// How many it keeps there.
    limits: HistoryLimits,
    /// Its epoch if it is established, and how much of what it proposed in it is committed.
    established: Option<(Epoch, usize)>,
    /// How many of the leader's transactions are of that epoch.
    proposed: usize,
    learner: Vec<Txn>,
    /// What the learner says: its last transaction or the start of a later epoch.
    last: Zxid,
    /// What the disk says of the costs.
    costs: (u64, u64),
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).unwrap()
}

/// One of these, or zero.
fn some_zxid(rng: &mut Rng, of: &[Txn]) -> Zxid {
    of.get(below(rng, of.len() + 1)).map_or(Zxid::ZERO, |txn| txn.zxid)
}

impl Pair {
    fn new(seed: u64) -> Self {
        let rng = &mut Rng::new(seed);
        // The epochs that the leader has transactions of; those between are others'.
        let mut leader = Vec::new();
        let mut epoch = 0;
        for _ in 0..below(rng, 5) {
            epoch += 1 + i64::try_from(below(rng, 3)).unwrap();
            let most = u32::try_from(below(rng, 6)).unwrap() + 1;
            leader.extend(entries(epoch, 1, most));
        }
        let inherited = leader.len();
        let (mut established, mut proposed) = (None, 0);
        if rng.below(2) == 0 {
            let leadership = epoch + 1 + i64::try_from(below(rng, 3)).unwrap();
            proposed = below(rng, 6);
            leader.extend(entries(leadership, 1, u32::try_from(proposed).unwrap()));
            established = Some((Epoch(leadership), below(rng, proposed + 1)));
        }

        // Whoever receives a snapshot from an established leader starts where that leadership began.
        let old = &leader[..inherited];
        let mut snapshot = some_zxid(rng, old);
        if rng.below(4) == 0 && old.iter().any(|txn| txn.zxid.epoch() > snapshot.epoch()) {
            snapshot = Zxid::start_of(Epoch(snapshot.epoch().0 + 1));
        }
        let read_on = old.iter().filter(|txn| txn.zxid <= snapshot);
        let floor = match rng.below(3) {
            0 => snapshot,
            _ => some_zxid(rng, &read_on.cloned().collect::<Vec<_>>()),
        };
        let after_floor = old.iter().filter(|txn| txn.zxid > floor).count();
        let window = below(rng, after_floor + 1);
        let percent = [None, Some(0), Some(33), Some(33)][below(rng, 4)];
        let limits = HistoryLimits {
            window_count: 1 + below(rng, 12),
            size_percent: percent,
            ..HistoryLimits::default()
        };

        // What they share, and what only the learner has: more of the epoch with which that ends, where
        // the leader's history did not go on with it, and epochs of which the leader heard nothing.
        let shared = below(rng, leader.len() + 1);
        let mut learner = leader[..shared].to_vec();
        let next = leader.get(shared).map(|txn| txn.zxid);
        if let Some(last) = learner.last().map(|txn| txn.zxid) {
            let more = u32::try_from(below(rng, 4)).unwrap();
            // A leader has all that it proposed itself.
            let theirs = established.is_some_and(|(leadership, _)| leadership == last.epoch());
            if next.is_none_or(|next| next.epoch() != last.epoch()) && !theirs {
                let (epoch, counter) = (last.epoch().0, last.counter().0);
                learner.extend(entries(epoch, counter + 1, counter + more));
            }
        }
        let leadership = established.map(|(leadership, _)| leadership.0);
        for _ in 0..below(rng, 3) {
            let last = learner.last().map_or(0, |txn| txn.zxid.epoch().0);
            let epoch = last + 1 + i64::try_from(below(rng, 2)).unwrap();
            let ours =
                leader.iter().any(|txn| txn.zxid.epoch().0 == epoch) || leadership == Some(epoch);
            // A later leadership than the leader's own would not have let it be established.
            let late = leadership.is_some_and(|leadership| epoch > leadership);
            // Nothing of a later epoch of ours came between.
            if ours || late || rng.below(2) == 0 {
                continue;
            }
            learner.extend(entries(epoch, 1, u32::try_from(below(rng, 4)).unwrap() + 1));
        }
        let mut last = learner.last().map_or(Zxid::ZERO, |txn| txn.zxid);
        // It started from a snapshot of the leadership that came next, and heard no more of that.
        let exact = learner.len() == shared;
        let begun = match next {
            Some(next) if next.epoch() > last.epoch() => Some(next.epoch()),
            Some(_) => None,
            // Of an epoch that we promised and never took over, before we have one of our own.
            None if established.is_none() => last.epoch().next(),
            None => established.map(|(leadership, _)| leadership).filter(|_| proposed == 0),
        };
        if let Some(begun) = begun.filter(|_| exact && rng.below(3) == 0) {
            last = Zxid::start_of(begun);
        }
        let costs = (rng.below(50), rng.below(100));
        Self {
            leader,
            floor,
            snapshot,
            window,
            limits,
            established,
            proposed,
            learner,
            last,
            costs,
        }
    }

    /// The leader's history, come about as it does: found on disk, then confirmed, then continued.
    fn history(&self) -> History {
        let (mut rng, mut outbox) = (Rng::new(1), Outbox::default());
        let (old, new) = self.leader.split_at(self.leader.len() - self.proposed);
        let in_memory = old[old.len() - self.window..].to_vec();
        let mut durable = Durable {
            floor: self.floor,
            snapshot: self.snapshot,
            last_zxid: old.last().map_or(self.floor, |txn| txn.zxid).max(self.snapshot),
            window: in_memory.into(),
            ..Durable::default()
        };
        let mut history = History::new(&mut durable, self.limits.clone(), &mut rng);
        if let Some((_, committed)) = self.established {
            history.commit(history.last(), &mut rng);
            for (n, txn) in (1..).zip(new) {
                history.append([txn.clone()].into(), &mut outbox);
                outbox.on_persisted(quorate_core::id::Ticket(n));
                history.on_persisted(&outbox);
            }
            if let Some(last) = committed.checked_sub(1) {
                history.commit(new[last].zxid, &mut rng);
            }
        }
        assert_eq!(history.broken(), None);
        history
    }

    /// What the disk would answer.
    fn locate(&self, zxid: Zxid) -> Located {
        let on_disk = self.leader.iter().map(|txn| txn.zxid).filter(|zxid| *zxid > self.floor);
        let on_disk: Vec<_> = std::iter::once(self.floor).chain(on_disk).collect();
        let place = match on_disk.binary_search(&zxid) {
            Ok(_) => Place::Held,
            Err(0) => Place::BelowFloor,
            Err(at) if at == on_disk.len() => Place::Beyond,
            Err(at) => Place::Absent { previous: on_disk[at - 1] },
        };
        Located { place, log_bytes: self.costs.0, snapshot_bytes: self.costs.1 }
    }

    /// The state that the leader can send, and its label.
    fn label(&self, history: &History) -> Zxid {
        let begun = self.established.map_or(Zxid::ZERO, |(epoch, _)| Zxid::start_of(epoch));
        history.position().max(begun)
    }
}

/// The same decision as ZooKeeper's description has it, entry by entry, with what ours does otherwise: a TRUNC
/// stays inside an epoch, or in what nobody has established; what we have proposed ourselves is our history, too;
/// from the disk there is no TRUNC; and no snapshot takes away what the learner shares with us.
fn by_the_book(pair: &Pair, history: &History) -> Plan {
    let zxids: Vec<Zxid> = pair.leader.iter().map(|txn| txn.zxid).collect();
    let (peer, established) = (pair.last, pair.established.is_some());
    let last = zxids.last().copied().unwrap_or(Zxid::ZERO).max(pair.snapshot);
    let inherited = zxids.len() - pair.proposed;
    let committed = match pair.established {
        None => last,
        Some((_, 0)) => zxids[..inherited].last().copied().unwrap_or(Zxid::ZERO).max(pair.snapshot),
        Some((_, count)) => zxids[inherited + count - 1],
    };
    let begun = pair.established.map_or(Zxid::ZERO, |(epoch, _)| Zxid::start_of(epoch));
    let processed = committed.max(begun);
    if peer <= Zxid::ZERO {
        return if last == Zxid::ZERO { diff(committed, Zxid::ZERO) } else { SNAP };
    }
    let bare = peer.counter().0 == 0;
    if peer == processed || peer == last {
        return diff(peer.min(processed), peer);
    }
    if peer > last {
        return match (bare, established) {
            (false, _) if peer.epoch() == last.epoch() => trunc(last),
            (_, true) => SNAP,
            (false, false) => trunc(last),
            (true, false) => diff(peer, peer),
        };
    }
    // What of the history lies in memory, and what on disk.
    let min = history.before();
    if peer >= min && peer >= pair.floor {
        if peer == min {
            return diff(committed, peer);
        }
        let mut previous = min;
        for zxid in zxids.into_iter().filter(|zxid| *zxid > min) {
            if zxid < peer {
                previous = zxid;
            } else if zxid == peer || bare {
                return diff(committed, peer);
            } else {
                return if zxid.epoch() == peer.epoch() { trunc(previous) } else { SNAP };
            }
        }
        return if bare { diff(committed, peer) } else { SNAP };
    }
    let on_disk = peer >= pair.floor && (peer == pair.floor || zxids.contains(&peer) || bare);
    let (log, snapshot) = pair.costs;
    let cheap = match pair.limits.size_percent {
        None => false,
        Some(percent) => snapshot == 0 || log * 100 <= snapshot * percent,
    };
    let older = pair.label(history) < peer;
    if on_disk && (cheap || older) { diff(committed, peer) } else { SNAP }
}

/// How often each case came about.
#[derive(Debug, Default)]
struct Cases {
    empty: usize,
    memory: usize,
    disk: usize,
    trunc: usize,
    snap: usize,
    /// Beyond the leader's last in another epoch, before it is established.
    beyond: usize,
}

fn bring_up(pair: &Pair, cases: &mut Cases) {
    let history = pair.history();
    let epoch = pair.established.map(|(epoch, _)| epoch);
    let mut plan = history.plan(pair.last, epoch, None);
    let located = plan == Plan::Locate;
    if located {
        assert!(pair.last < history.before() || pair.last < pair.floor);
        plan = history.plan(pair.last, epoch, Some(pair.locate(pair.last)));
    }
    assert_eq!(plan, by_the_book(pair, &history), "by the description");
    let has = |zxid: Zxid| pair.leader.iter().any(|txn| txn.zxid == zxid);
    let prefix = pair.leader.starts_with(&pair.learner);
    // What is readable without a hole from where the learner stands.
    let readable = pair.last >= pair.floor;
    let (mut result, after) = match plan {
        Plan::Diff { label, after } => {
            if located {
                cases.disk += 1;
            } else if after >= history.last() {
                cases.empty += 1;
            } else {
                cases.memory += 1;
            }
            assert_eq!(after, pair.last, "a DIFF follows what the learner has");
            assert!(prefix, "a DIFF for a learner that has what we have not");
            assert!(readable || pair.leader.is_empty(), "a DIFF below the floor");
            // The label tells nobody that something is committed which is not.
            let committed = if epoch.is_some() { history.committed() } else { history.last() };
            let told = pair.leader.iter().filter(|txn| txn.zxid <= label);
            assert!(told.into_iter().all(|txn| txn.zxid <= committed), "DIFF says {label}");
            (pair.learner.clone(), after)
        }
        Plan::Trunc { to } => {
            cases.trunc += 1;
            let beyond = epoch.is_none() && pair.last > history.last();
            cases.beyond += usize::from(beyond && to.epoch() != pair.last.epoch());
            assert!(beyond || to.epoch() == pair.last.epoch(), "a cut across epochs");
            if beyond && pair.learner.iter().all(|txn| txn.zxid != to) {
                // No two histories of one ensemble are like that; it could not cut, and says so.
                return;
            }
            assert!(pair.learner.iter().any(|txn| txn.zxid == to), "no cut is possible there");
            let (kept, cut): (Vec<_>, Vec<_>) =
                pair.learner.iter().cloned().partition(|txn| txn.zxid <= to);
            assert!(cut.iter().all(|txn| !has(txn.zxid)), "what we have is cut");
            (kept, to)
        }
        Plan::Snap => {
            // Whoever says that it is unknown what it has may only not have been able to cut.
            let in_memory = pair.last > Zxid::ZERO && pair.last >= history.before();
            assert!(!(prefix && readable && in_memory), "a snapshot, and all of it is in memory");
            let label = pair.label(&history);
            cases.snap += 1;
            assert!(!(prefix && readable && label < pair.last), "a part of ours is taken away");
            if pair.last > history.last() && !pair.last.is_epoch_start() {
                // Or a ZooKeeper server would play its old log behind it.
                assert!(label > pair.last, "{label} for a learner at {}", pair.last);
            }
            let state = pair.leader.iter().filter(|txn| txn.zxid <= label);
            (state.cloned().collect(), label)
        }
        Plan::Locate => panic!("the disk was asked already"),
    };
    result.extend(pair.leader.iter().filter(|txn| txn.zxid > after).cloned());
    assert_eq!(result, pair.leader, "{plan:?}");
    assert!(after >= pair.floor, "what follows {after} cannot be read");
}

/// Whatever the two histories are: the plan carried out gives the leader's, byte for byte; nothing is
/// taken away that the leader has; no cut of an established leader crosses an epoch, no DIFF begins below
/// the floor. And it is the plan of a second implementation, see `differential.rs`.
#[test]
fn every_plan_leads_to_the_leaders_history() {
    let mut cases = Cases::default();
    let seeds: usize =
        std::env::var("QUORATE_DIFFERENTIAL").map_or(200_000, |n| n.parse().unwrap());
    let seeds = if cfg!(miri) { 20 } else { seeds };
    for seed in 0..seeds as u64 {
        let pair = Pair::new(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bring_up(&pair, &mut cases);
        }));
        if outcome.is_err() {
            let leader: Vec<_> = pair.leader.iter().map(|txn| txn.zxid.to_string()).collect();
            let learner: Vec<_> = pair.learner.iter().map(|txn| txn.zxid.to_string()).collect();
            panic!("seed {seed}: {leader:?}, and {learner:?} says {}; {pair:?}", pair.last);
        }
    }
    let Cases { empty, memory, disk, trunc, snap, beyond } = cases;
    for many in [empty, memory, disk, trunc, snap, beyond] {
        assert!(cfg!(miri) || many > seeds / 50, "a test of nothing: {cases:?}");
    }
}
