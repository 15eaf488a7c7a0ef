//! A learner takes over its leader's history, packet by packet: what it writes and in which order, what
//! it acknowledges and when, what it delivers and not before, and what it refuses.

use crate::support::*;
use quorate_core::durable::Durable;
use quorate_core::id::{LinkId, ServerId, Ticket};
use quorate_core::input::{Cause, Event, Place};
use quorate_core::message::Packet;
use quorate_core::output::{Output, Write};
use quorate_core::reasons::{Fault, Hangup};
use quorate_core::report::{Change, How, Reason};
use quorate_core::status::Phase;
use quorate_core::timers::Timer;
use quorate_core::txn::Txn;
use quorate_core::vote::ServerState::{Following, Leading, Looking, Observing};
use quorate_core::zxid::{Epoch, Zxid};

/// Server 1 of three, which follows 3 and has promised `epoch`; the link to 3.
fn promised(durable: Durable, epoch: i64) -> (Bench, LinkId) {
    let (current, last) = (durable.current_epoch.0, durable.last_zxid.0);
    let mut bench = Bench::of(1, &ensemble(&[1, 2, 3]), durable);
    bench.lose(3, &[2], current, last);
    let link = promise(&mut bench, epoch);
    (bench, link)
}

/// It reaches its leader, which announces this epoch.
fn promise(bench: &mut Bench, epoch: i64) -> LinkId {
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(epoch));
    bench.persisted();
    assert_eq!(bench.phase(), Phase::Synchronization);
    link
}

/// The same for observer 9.
fn observer(durable: Durable, epoch: i64) -> (Bench, LinkId) {
    let (current, last) = (durable.current_epoch.0, durable.last_zxid.0);
    let mut bench = Bench::of(9, &with_observers(&[1, 2, 3], &[9]), durable);
    let links = [3, 2].map(|peer| bench.meet(peer));
    bench.hear(links[1], standing(Following, vote(current, last, 3), 4));
    bench.hear(links[0], standing(Leading, vote(current, last, 3), 4));
    assert_eq!(bench.state(), Observing);
    let link = promise(&mut bench, epoch);
    (bench, link)
}

/// A server that has 1.1 to 1.`last` and no more.
fn five(last: u32) -> Durable {
    stored(1, 1, z(1, 0), entries(1, 1, last))
}

fn propose(zxid: Zxid) -> Packet {
    Packet::Proposal(entry(zxid))
}

fn append(zxid: Zxid) -> Write {
    Write::Append(entry(zxid).into())
}

fn epoch(epoch: i64) -> Write {
    Write::CurrentEpoch(Epoch(epoch))
}

/// Everything that these packets make it write.
#[track_caller]
fn tell(bench: &mut Bench, link: LinkId, packets: &[Packet]) -> Vec<Write> {
    let mut writes = Vec::new();
    for packet in packets {
        let seen = bench.receive(link, packet.clone());
        assert_eq!(seen.hangups(), [], "{packet:?}");
        assert_eq!(seen.delivered(), [], "{packet:?}: nobody has said that a quorum has it");
        writes.extend(seen.persists());
    }
    writes
}

/// The disk does its writes one after the other; the acknowledgement leaves after the last.
#[track_caller]
fn acknowledged_after_the_last(bench: &mut Bench, link: LinkId, epoch: i64) {
    while bench.writes_pending() > 1 {
        assert_eq!(bench.persisted_one().names(link), [""; 0], "{:?}", bench.boundary.disk);
    }
    assert_eq!(bench.persisted_one().packets(link), [ack(epoch)]);
}

// --- DIFF ---

/// ZOOKEEPER-3911, -4646: NEWLEADER was acknowledged before what had come with it was on disk; the leader
/// served it to a client, all crashed, and it was gone.
#[test]
fn what_came_with_commit_is_durable_before_newleader_is_acknowledged() {
    let (mut bench, link) = promised(five(1), 2);
    let told = [
        Packet::Diff(z(1, 3)),
        propose(z(1, 2)),
        Packet::Commit(z(1, 2)),
        propose(z(1, 3)),
        Packet::Commit(z(1, 3)),
        new_leader(2),
    ];
    let writes = tell(&mut bench, link, &told);
    assert_eq!(writes, [append(z(1, 2)), append(z(1, 3)), epoch(2)]);
    acknowledged_after_the_last(&mut bench, link, 2);
    assert_eq!((bench.delivered(), bench.status().serving), (Zxid(0), false));
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.delivered(), seen.packets(link)), (vec![z(1, 3)], vec![ack(2)]));
    assert!(bench.status().serving);
}

/// A current epoch ahead of the history would win an election with a history that is not there.
#[test]
fn all_proposals_may_come_before_all_commits() {
    let (mut bench, link) = promised(five(1), 2);
    let told = [
        Packet::Diff(z(1, 4)),
        propose(z(1, 2)),
        propose(z(1, 3)),
        propose(z(1, 4)),
        Packet::Commit(z(1, 2)),
        Packet::Commits(quorate_core::message::Run { first: z(1, 3), last: z(1, 4) }),
        new_leader(2),
    ];
    let writes = tell(&mut bench, link, &told);
    assert_eq!(writes, [append(z(1, 2)), append(z(1, 3)), append(z(1, 4)), epoch(2)]);
    acknowledged_after_the_last(&mut bench, link, 2);
}

/// Not simply the whole log: what is outstanding may never be committed.
#[test]
fn at_uptodate_it_delivers_through_the_label_or_the_last_commit() {
    let log = [entries(1, 1, 5), entries(2, 1, 4)].concat();
    // What DIFF says, the last COMMIT before and after NEWLEADER; delivered through.
    for (label, before, after, delivered) in [
        (z(2, 2), None, None, z(2, 2)),
        (z(2, 2), Some(z(2, 3)), None, z(2, 3)),
        (z(2, 2), None, Some(z(2, 4)), z(2, 4)),
        (z(2, 2), Some(z(2, 3)), Some(z(2, 4)), z(2, 4)),
        (z(2, 4), None, None, z(2, 4)),
        (z(1, 5), None, None, z(1, 5)),
        // The bare start of an epoch, which is no transaction, stands for what was before.
        (z(2, 0), None, None, z(1, 5)),
        (z(3, 0), None, None, z(2, 4)),
        // An older one is no reason to go back.
        (Zxid(0), None, Some(z(2, 1)), z(2, 1)),
    ] {
        let durable = stored(2, 2, z(1, 0), log.clone());
        let (mut bench, link) = promised(durable, 3);
        tell(&mut bench, link, &[Packet::Diff(label)]);
        let commit = |zxid: Option<Zxid>| zxid.map(Packet::Commit).into_iter().collect::<Vec<_>>();
        tell(&mut bench, link, &commit(before));
        tell(&mut bench, link, &[new_leader(3)]);
        bench.persisted();
        tell(&mut bench, link, &commit(after));
        let seen = bench.receive(link, Packet::UpToDate);
        assert_eq!(seen.delivered(), [delivered], "{label}, {before:?}, {after:?}");
        // What is beyond was in the log before, and is acknowledged now if it is of this epoch.
        assert_eq!(seen.packets(link), [ack(3)]);
    }
}

#[test]
fn what_came_without_commit_waits_and_is_logged_and_acknowledged_after_uptodate() {
    let (mut bench, link) = promised(five(1), 2);
    let told = [
        Packet::Diff(z(1, 2)),
        propose(z(1, 2)),
        Packet::Commit(z(1, 2)),
        propose(z(2, 1)),
        propose(z(2, 2)),
        new_leader(2),
        // A leader goes on meanwhile.
        propose(z(2, 3)),
    ];
    let writes = tell(&mut bench, link, &told);
    assert_eq!(writes, [append(z(1, 2)), epoch(2)]);
    acknowledged_after_the_last(&mut bench, link, 2);
    tell(&mut bench, link, &[propose(z(2, 4))]);
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!(seen.delivered(), [z(1, 2)]);
    assert_eq!(seen.appended(), [z(2, 1), z(2, 2), z(2, 3), z(2, 4)]);
    assert_eq!(seen.packets(link), [ack(2)], "not on disk yet");
    let acks: Vec<_> = (1..=4).map(|n| Packet::Ack(z(2, n))).collect();
    assert_eq!(bench.persisted().packets(link), acks);
    assert_eq!(bench.receive(link, Packet::Commit(z(2, 1))).delivered(), [z(2, 1)]);
}

/// ZOOKEEPER-4394: a COMMIT between the acknowledgement and UPTODATE found its proposal gone.
#[test]
fn a_commit_between_the_acknowledgement_and_uptodate_is_delivered_once_and_in_order() {
    for durable_before in [false, true] {
        let (mut bench, link) = promised(five(1), 2);
        let told = [
            Packet::Diff(z(1, 3)),
            propose(z(1, 2)),
            Packet::Commit(z(1, 2)),
            propose(z(1, 3)),
            new_leader(2),
        ];
        assert_eq!(tell(&mut bench, link, &told), [append(z(1, 2)), epoch(2)]);
        assert_eq!(bench.persisted().packets(link), [ack(2)]);
        let writes = tell(&mut bench, link, &[Packet::Commit(z(1, 3))]);
        assert_eq!(writes, [append(z(1, 3))]);
        if durable_before {
            assert_eq!(bench.persisted().names(link), [""; 0]);
        }
        let seen = bench.receive(link, Packet::UpToDate);
        assert_eq!((seen.delivered(), seen.appended()), (vec![z(1, 3)], vec![]));
        assert_eq!(seen.packets(link), [ack(2)]);
        assert_eq!(bench.persisted().names(link), [""; 0], "the first acknowledgement covers it");
    }
}

/// ZOOKEEPER-4685: the acknowledgement of a transaction overtook that of NEWLEADER.
#[test]
fn newleader_is_acknowledged_first_whatever_becomes_durable_with_it() {
    let (mut bench, link) = promised(five(1), 2);
    let told = [
        Packet::Diff(z(1, 2)),
        propose(z(1, 2)),
        Packet::Commit(z(1, 2)),
        propose(z(2, 1)),
        new_leader(2),
        Packet::Commit(z(2, 1)),
    ];
    let writes = tell(&mut bench, link, &told);
    assert_eq!(writes, [append(z(1, 2)), epoch(2), append(z(2, 1))]);
    assert_eq!(bench.persisted().packets(link), [ack(2)]);
    let seen = bench.receive(link, Packet::UpToDate);
    // The leader counts without a gap from what was committed at NEWLEADER.
    let acks = vec![ack(2), Packet::Ack(z(2, 1))];
    assert_eq!((seen.packets(link), seen.delivered()), (acks, vec![z(2, 1)]));
}

/// A ZooKeeper leader sends observers INFORM as soon as it forwards to them.
#[test]
fn an_observer_takes_inform_before_uptodate_too() {
    let (mut bench, link) = observer(five(1), 2);
    let told = [
        Packet::Diff(z(1, 2)),
        propose(z(1, 2)),
        Packet::Commit(z(1, 2)),
        Packet::Inform(entry(z(1, 3))),
        new_leader(2),
        Packet::Inform(entry(z(2, 1))),
    ];
    let writes = tell(&mut bench, link, &told);
    assert_eq!(writes, [append(z(1, 2)), append(z(1, 3)), epoch(2), append(z(2, 1))]);
    assert_eq!(bench.persisted().packets(link), [ack(2)]);
    tell(&mut bench, link, &[Packet::Inform(entry(z(2, 2)))]);
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.delivered(), seen.packets(link)), (vec![z(2, 2)], vec![ack(2)]));
    assert_eq!(bench.persisted().names(link), [""; 0], "an observer acknowledges nothing else");
}

/// What is proposed to an observer and not committed is no business of its log.
#[test]
fn an_observer_forgets_what_was_proposed_without_commit() {
    let (mut bench, link) = observer(five(1), 2);
    tell(&mut bench, link, &[Packet::Diff(z(1, 1)), propose(z(2, 1)), new_leader(2)]);
    bench.persisted();
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.appended(), seen.delivered()), (vec![], vec![z(1, 1)]));
    let seen = bench.receive(link, Packet::Inform(entry(z(2, 1))));
    assert_eq!((seen.appended(), seen.delivered()), (vec![z(2, 1)], vec![z(2, 1)]));
}

/// Twice is a leader's repetition, and nothing that a link should end for.
#[test]
fn what_comes_twice_is_taken_once() {
    let (mut bench, link) = promised(five(2), 2);
    let told = [
        Packet::Diff(z(1, 3)),
        propose(z(1, 3)),
        propose(z(1, 3)),
        Packet::Commit(z(1, 3)),
        Packet::Commit(z(1, 3)),
        propose(z(1, 2)),
        propose(z(1, 3)),
        propose(Zxid(-1)),
        propose(Zxid(i64::MIN)),
        Packet::Commit(Zxid(i64::MIN)),
        propose(z(2, 1)),
        propose(z(2, 1)),
        new_leader(2),
        propose(z(2, 1)),
    ];
    assert_eq!(tell(&mut bench, link, &told), [append(z(1, 3)), epoch(2)]);
    bench.persisted();
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.appended(), seen.delivered()), (vec![z(2, 1)], vec![z(1, 3)]));
    assert_eq!(bench.receive(link, propose(z(2, 1))).appended(), []);
    assert_eq!(bench.persisted().packets(link), [Packet::Ack(z(2, 1))], "once");
}

// --- TRUNC ---

/// Says how it was brought up, and where the common history ends.
fn followed(seen: &Seen) -> Vec<(How, Zxid)> {
    let syncs = seen.syncs().into_iter().map(|(how, reason)| {
        let Reason::EndsAt(zxid) = reason else { panic!("{reason:?}") };
        (how, zxid)
    });
    syncs.collect()
}

#[test]
fn a_cut_within_memory_is_done_at_once_and_what_follows_it_is_logged_before_the_acknowledgement() {
    let (mut bench, link) = promised(five(5), 3);
    let seen = bench.receive(link, Packet::Trunc(z(1, 3)));
    assert_eq!(seen.persists(), [Write::Truncate(z(1, 3))]);
    assert_eq!(followed(&seen), [(How::Trunc, z(1, 3))]);
    // Without COMMIT: a ZooKeeper learner would only keep it in memory with one.
    let writes = tell(&mut bench, link, &[propose(z(2, 1)), propose(z(2, 2)), new_leader(3)]);
    assert_eq!(writes, [append(z(2, 1)), append(z(2, 2)), epoch(3)]);
    acknowledged_after_the_last(&mut bench, link, 3);
    tell(&mut bench, link, &[Packet::Commit(z(2, 1))]);
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.delivered(), seen.appended()), (vec![z(2, 1)], vec![]));
    // A COMMIT of that history may be late.
    assert_eq!(bench.receive(link, Packet::Commit(z(2, 2))).delivered(), [z(2, 2)]);
    assert_eq!(bench.boundary.disk.last(), z(2, 2));
}

#[test]
fn without_commits_a_cut_history_is_delivered_through_the_cut() {
    let (mut bench, link) = promised(five(5), 3);
    tell(&mut bench, link, &[Packet::Trunc(z(1, 3)), propose(z(2, 1)), new_leader(3)]);
    bench.persisted();
    assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), [z(1, 3)]);
}

#[test]
fn a_cut_to_where_our_log_ends_writes_nothing() {
    let (mut bench, link) = promised(five(5), 2);
    assert_eq!(tell(&mut bench, link, &[Packet::Trunc(z(1, 5)), new_leader(2)]), [epoch(2)]);
    bench.persisted();
    assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), [z(1, 5)]);
}

/// Server 1 with 1.1 to 1.9 on disk, the last two of them in memory.
fn nine() -> Durable {
    Durable { floor: z(1, 0), snapshot: z(1, 2), ..stored(1, 1, z(1, 7), entries(1, 8, 9)) }
}

#[test]
fn a_cut_below_memory_asks_the_disk_and_everything_else_waits_for_its_answer() {
    let rest = [propose(z(2, 1)), Packet::Commit(z(2, 1)), propose(z(2, 2)), new_leader(3)];
    for answered_after in 0..=rest.len() {
        let (mut bench, link) = promised(nine(), 3);
        let seen = bench.receive(link, Packet::Trunc(z(1, 4)));
        assert_eq!((seen.locates(), seen.persists()), (vec![(link, z(1, 4))], vec![]));
        let mut writes = tell(&mut bench, link, &rest[..answered_after]);
        assert_eq!(writes, [], "{answered_after}");
        let seen = bench.located(link, cheap(Place::Held));
        assert_eq!(followed(&seen), [(How::Trunc, z(1, 4))]);
        writes.extend(seen.persists());
        writes.extend(tell(&mut bench, link, &rest[answered_after..]));
        assert_eq!(
            writes,
            [Write::Truncate(z(1, 4)), append(z(2, 1)), append(z(2, 2)), epoch(3)],
            "{answered_after}"
        );
        acknowledged_after_the_last(&mut bench, link, 3);
        assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), [z(2, 1)]);
    }
}

/// Nothing that comes meanwhile is mistaken for what is about to be cut.
#[test]
fn what_comes_while_the_disk_is_asked_takes_the_place_of_what_is_cut() {
    let (mut bench, link) = promised(nine(), 3);
    let other = |zxid| {
        let txn = Txn { body: bytes::Bytes::from_static(b"another"), ..entry(zxid) };
        Packet::Proposal(txn)
    };
    bench.receive(link, Packet::Trunc(z(1, 4)));
    tell(&mut bench, link, &[other(z(1, 5)), other(z(1, 6)), other(z(1, 7)), other(z(1, 8))]);
    let seen = bench.located(link, cheap(Place::Held));
    assert_eq!(seen.persists()[0], Write::Truncate(z(1, 4)));
    assert_eq!(seen.appended(), [z(1, 5), z(1, 6), z(1, 7), z(1, 8)]);
    tell(&mut bench, link, &[other(z(1, 9)), other(z(1, 10)), new_leader(3)]);
    assert_eq!(bench.boundary.disk.last(), z(1, 10));
    acknowledged_after_the_last(&mut bench, link, 3);
}

/// What stands before the snapshot from which it started is not replayed any more, in memory or not.
#[test]
fn nothing_is_cut_below_the_snapshot_that_it_starts_from() {
    for (to, cut) in [(z(1, 3), false), (z(1, 4), true), (z(1, 5), true)] {
        let (mut bench, link) = promised(Durable { snapshot: z(1, 4), ..five(6) }, 2);
        let seen = bench.receive(link, Packet::Trunc(to));
        let write = if cut { vec![Write::Truncate(to)] } else { vec![] };
        assert_eq!(seen.persists(), write, "{to}");
        let hangup = (!cut).then_some(Hangup::CannotCut(to));
        assert_eq!((seen.hung_up(link), seen.locates()), (hangup, vec![]), "{to}");
    }
}

/// All that follows the snapshot may go.
#[test]
fn a_log_can_be_cut_at_the_snapshot_that_it_starts_from() {
    let (mut bench, link) = promised(nine(), 3);
    let to = z(1, 2);
    assert_eq!(bench.receive(link, Packet::Trunc(to)).locates(), [(link, to)]);
    let seen = bench.located(link, cheap(Place::Held));
    assert_eq!(seen.persists(), [Write::Truncate(to)]);
}

#[test]
fn an_answer_of_the_disk_for_an_earlier_link_cuts_nothing() {
    let (mut bench, link) = promised(nine(), 3);
    bench.receive(link, Packet::Trunc(z(1, 4)));
    let round = bench.status().round.0;
    bench.down(link);
    let located = cheap(Place::Held);
    bench.step(Event::Located { link, located }).is_nothing();
    let links = bench.planes().into_iter().flatten().map(|(link, _)| link).collect::<Vec<_>>();
    for election in &links {
        bench.hear(*election, standing(Looking, vote(1, z(1, 9).0, 3), round + 1));
    }
    let again = promise(&mut bench, 4);
    bench.receive(again, Packet::Trunc(z(1, 5)));
    bench.step(Event::Located { link, located }).is_nothing();
    assert_eq!(bench.located(again, located).persists(), [Write::Truncate(z(1, 5))]);
}

/// It comes back to the same leader at once, without another election, as if it had nothing; what it
/// really has it has told, and was counted by.
#[test]
fn a_log_that_cannot_be_cut_brings_it_back_to_the_same_leader_with_nothing() {
    // The disk's answer, none if it need not be asked: the snapshot that it starts from is newer.
    for (to, place) in [
        (z(1, 4), Some(Place::Absent { previous: z(1, 3) })),
        (z(1, 4), Some(Place::BelowFloor)),
        (z(1, 4), Some(Place::Beyond)),
        (z(1, 1), None),
        (Zxid(0), None),
    ] {
        let (mut bench, link) = promised(nine(), 2);
        let round = bench.status().round;
        let seen = bench.receive(link, Packet::Trunc(to));
        let seen = match place {
            Some(place) => bench.located(link, cheap(place)),
            None => seen,
        };
        assert_eq!(seen.hangups(), [(link, Hangup::CannotCut(to))]);
        assert_eq!((seen.left(), seen.persists(), seen.abandoned()), (None, vec![], false));
        let (from, to_phase) = (Phase::Synchronization, Phase::Discovery);
        assert_eq!(seen.changes(), [Change::Phase { from, to: to_phase }]);
        assert_eq!(seen.reasons(), [Reason::CannotCut { zxid: to }]);
        assert_eq!((bench.state(), bench.phase()), (Following, Phase::Discovery));
        assert_eq!(bench.status().round, round, "no election");
        assert_eq!(seen.dials(), [(quorate_core::input::Plane::Quorum, 3)]);

        let (link, seen) = bench.reach(3);
        assert_eq!(seen.packets(link), [Packet::FollowerInfo(our_info(1, 2))]);
        let seen = bench.receive(link, leader_info(2));
        assert_eq!(seen.packets(link), [ack_epoch_again(-1)]);
        bench.receive(link, Packet::snap(z(1, 3)));
        bench.step(Event::restored(link));
        let told = [propose(z(1, 4)), Packet::Commit(z(1, 4)), new_leader(2)];
        let writes = tell(&mut bench, link, &told);
        let install = install(&bench, z(1, 3));
        assert_eq!(writes, [Write::AppendStaged(entry(z(1, 4))), install, epoch(2)]);
        acknowledged_after_the_last(&mut bench, link, 2);
        assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), [z(1, 4)]);
    }
}

/// The server that cannot cut, on its way back to its leader; its election links.
fn blank() -> (Bench, Vec<LinkId>) {
    let (mut bench, link) = promised(nine(), 2);
    bench.receive(link, Packet::Trunc(z(1, 1)));
    let election: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    assert_eq!(election.len(), 2);
    (bench, election)
}

#[test]
fn it_has_nothing_for_this_leader_and_this_epoch_only_and_never_votes_so() {
    // The same leader, but a later epoch.
    let (mut bench, _) = blank();
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(5));
    assert_eq!(bench.persisted().packets(link), [ack_epoch(1, z(1, 9).0)]);

    // The leader has gone: the vote says what is there.
    let (mut bench, links) = blank();
    let (link, _) = bench.reach(3);
    let seen = bench.down(link);
    for election in &links {
        let ours = standing(Looking, vote(1, z(1, 9).0, 1), 2);
        assert_eq!(seen.told(*election), [ours]);
    }
    // Another leader of whatever epoch.
    for election in &links {
        bench.hear(*election, standing(Looking, vote(1, z(1, 9).0, 3), 2));
    }
    let (link, _) = bench.reach(3);
    assert_eq!(bench.receive(link, leader_info(2)).packets(link), [ack_epoch_again(z(1, 9).0)]);

    // It cannot be reached.
    let (mut bench, _) = blank();
    let seen = bench.to(Timer::ConnectLimit);
    assert_eq!(seen.left(), Some(Reason::LeaderUnreachable { leader: ServerId(3) }));
}

/// Who said that it is unknown what it has must get everything. That still lies there.
#[test]
fn who_came_with_nothing_takes_nothing_but_a_snapshot() {
    for packet in [Packet::Diff(Zxid(0)), Packet::Diff(z(1, 9)), Packet::Trunc(z(1, 8))] {
        let (mut bench, _) = blank();
        let (link, _) = bench.reach(3);
        bench.receive(link, leader_info(2));
        let name = packet.name();
        let seen = bench.receive(link, packet);
        assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn(name)));
        assert_eq!((seen.persists(), bench.state()), (vec![], Looking));
    }
}

/// It comes back to a leader that it followed before: the leader has what it proposed, and sends it again.
/// Cut, it would be gone from a server that had acknowledged it.
#[test]
fn what_it_logged_of_this_very_epoch_is_not_cut_but_compared() {
    let log = [entries(1, 1, 1), entries(2, 1, 2)].concat();
    let (mut bench, link) = promised(stored(2, 2, z(1, 0), log.clone()), 2);
    let told = [
        Packet::Trunc(z(1, 1)),
        propose(z(2, 1)),
        propose(z(2, 2)),
        propose(z(2, 3)),
        new_leader(2),
    ];
    assert_eq!(tell(&mut bench, link, &told), [append(z(2, 3)), epoch(2)]);
    acknowledged_after_the_last(&mut bench, link, 2);
    let seen = bench.receive(link, Packet::UpToDate);
    let acks = [ack(2), Packet::Ack(z(2, 1)), Packet::Ack(z(2, 2)), Packet::Ack(z(2, 3))];
    assert_eq!((seen.delivered(), seen.packets(link)), (vec![z(1, 1)], acks.to_vec()));
    assert_eq!(bench.receive(link, Packet::Commit(z(2, 1))).delivered(), [z(2, 1)]);

    // Another transaction under a number that is taken: this is not the leader it says it is.
    let (mut bench, link) = promised(stored(2, 2, z(1, 0), log), 2);
    tell(&mut bench, link, &[Packet::Trunc(z(1, 1)), propose(z(2, 1))]);
    let seen = bench.receive(link, Packet::Proposal(txn(z(2, 2).0)));
    assert_eq!(seen.hung_up(link), Some(Hangup::Differs(z(2, 2))));
    assert_eq!((seen.persists(), bench.state()), (vec![], Looking));
}

/// A Java leader tells that something is committed before it has applied it, and cuts a learner that comes
/// back meanwhile (in another role, say) to what it has applied. It sends the rest again at once.
#[test]
fn what_this_very_leader_has_committed_is_kept_when_it_has_not_applied_it_yet() {
    for to in [z(2, 2), z(2, 0), z(1, 1)] {
        let (mut bench, link) = delivered_in(2);
        let seen = bench.receive(link, Packet::Trunc(to));
        assert_eq!((seen.halted(), seen.persists()), (None, vec![]), "{to}");
        let again = (1..=5).map(|n| z(2, n)).filter(|zxid| *zxid > to);
        let mut told: Vec<_> = again.map(propose).collect();
        told.push(Packet::Commit(z(2, 3)));
        told.push(new_leader(2));
        assert_eq!(tell(&mut bench, link, &told), [epoch(2)]);
        acknowledged_after_the_last(&mut bench, link, 2);
        assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), [], "it was before");
        assert_eq!(bench.receive(link, Packet::Commit(z(2, 4))).delivered(), [z(2, 4)]);
    }
}

/// A server that has delivered through 2.3 as a follower, and follows 3 again, in epoch 3.
fn delivered() -> (Bench, LinkId) {
    delivered_in(3)
}

fn delivered_in(epoch: i64) -> (Bench, LinkId) {
    let (mut bench, link) = promised(five(1), 2);
    tell(&mut bench, link, &[Packet::Diff(z(1, 1)), new_leader(2)]);
    bench.persisted();
    bench.receive(link, Packet::UpToDate);
    for n in 1..=5 {
        bench.receive(link, propose(z(2, n)));
    }
    for n in 1..=3 {
        bench.receive(link, Packet::Commit(z(2, n)));
    }
    bench.persisted();
    assert_eq!(bench.delivered(), z(2, 3));
    let election: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    bench.down(link);
    for link in &election {
        if bench.is_up(*link) {
            bench.hear(*link, standing(Looking, vote(2, z(2, 5).0, 3), 2));
        }
    }
    let link = promise(&mut bench, epoch);
    (bench, link)
}

#[test]
fn a_leader_that_would_undo_what_was_committed_stops_the_server() {
    let leader = ServerId(3);
    let halted = |zxid| Some(Fault::CommittedCut { leader, zxid, committed: z(2, 3) });
    for to in [z(2, 2), z(2, 0), z(1, 1), Zxid(0)] {
        let (mut bench, link) = delivered();
        let seen = bench.receive(link, Packet::Trunc(to));
        assert_eq!((seen.halted(), seen.persists()), (halted(to), vec![]));
        assert_eq!(bench.peer.deadline(), None);
        bench.step(Event::Tick).is_nothing();
    }
    // What was not committed may go.
    for to in [z(2, 3), z(2, 4)] {
        let (mut bench, link) = delivered();
        assert_eq!(bench.receive(link, Packet::Trunc(to)).persists(), [Write::Truncate(to)]);
    }
    // A whole history that ends before it is no better; one that reaches it is good.
    for last in [1, 3] {
        let (mut bench, link) = delivered();
        bench.receive(link, Packet::snap(z(2, 0)));
        bench.step(Event::restored(link));
        for n in 1..=last {
            tell(&mut bench, link, &[propose(z(2, n)), Packet::Commit(z(2, n))]);
        }
        let seen = bench.receive(link, new_leader(3));
        let fault = if last < 3 { halted(z(2, last)) } else { None };
        assert_eq!(seen.halted(), fault);
        assert_eq!(seen.persists().is_empty(), last < 3);
    }
}

/// The start of an epoch, which a snapshot is labelled with, is no transaction. The next leader, who knows
/// of none of that epoch, leads the same history by the name of its last transaction: nothing is lost.
#[test]
fn the_start_of_an_epoch_is_nothing_that_a_later_leader_could_lose() {
    let (mut bench, link) = promised(five(9), 3);
    bench.receive(link, Packet::snap(z(3, 0)));
    bench.step(Event::restored(link));
    tell(&mut bench, link, &[new_leader(3)]);
    bench.persisted();
    assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), [z(3, 0)]);
    bench.receive(link, propose(z(3, 1)));
    bench.persisted();
    let election: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    bench.down(link);
    for link in &election {
        if bench.is_up(*link) {
            bench.hear(*link, standing(Looking, vote(4, z(2, 5).0, 3), 2));
        }
    }
    let link = promise(&mut bench, 5);
    let seen = bench.receive(link, Packet::Trunc(z(2, 5)));
    assert_eq!((seen.halted(), seen.hung_up(link)), (None, Some(Hangup::CannotCut(z(2, 5)))));
    let (link, _) = bench.reach(3);
    bench.receive(link, leader_info(5));
    bench.receive(link, Packet::snap(z(2, 5)));
    bench.step(Event::restored(link));
    let writes = tell(&mut bench, link, &[new_leader(5)]);
    assert_eq!(writes, [install(&bench, z(2, 5)), epoch(5)]);
    bench.persisted();
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!(seen.delivered(), [], "the application has that already, under the higher label");
    assert_eq!(bench.receive(link, propose(z(5, 1))).appended(), [z(5, 1)]);
    bench.persisted();
    assert_eq!(bench.receive(link, Packet::Commit(z(5, 1))).delivered(), [z(5, 1)]);
}

/// Nor if a DIFF says it: to a follower that came back when the leader had committed nothing of its own yet. What
/// that one had proposed is cut.
#[test]
fn a_later_leader_cuts_what_follows_the_start_of_an_epoch_that_was_called_committed() {
    let (mut bench, mut link) = promised(five(9), 3);
    let election: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    let again = |bench: &mut Bench, link, round| {
        bench.down(link);
        for link in election.iter().filter(|other| **other != link) {
            bench.hear(*link, standing(Looking, vote(4, z(3, 1).0, 3), round));
        }
    };
    for (round, label) in [(2, z(1, 9)), (3, z(3, 0))] {
        bench.receive(link, Packet::Diff(label));
        tell(&mut bench, link, &[propose(z(3, 1)), new_leader(3)]);
        bench.persisted();
        let delivered = bench.receive(link, Packet::UpToDate).delivered();
        assert_eq!(delivered, if round == 2 { vec![z(1, 9)] } else { vec![] });
        bench.persisted();
        again(&mut bench, link, round);
        if round == 2 {
            link = bench.reach(3).0;
            bench.receive(link, leader_info(3));
        }
    }
    let link = promise(&mut bench, 5);
    let seen = bench.receive(link, Packet::Trunc(z(1, 9)));
    assert_eq!((seen.halted(), seen.persists()), (None, vec![Write::Truncate(z(1, 9))]));
    tell(&mut bench, link, &[new_leader(5)]);
    bench.persisted();
    assert_eq!(bench.receive(link, Packet::UpToDate).delivered(), []);
}

/// Who says DIFF to more than it sends is not believed.
#[test]
fn a_diff_that_does_not_bring_what_it_says_is_refused() {
    let (mut bench, link) = promised(five(1), 2);
    tell(&mut bench, link, &[Packet::Diff(z(1, 4)), propose(z(1, 2)), Packet::Commit(z(1, 2))]);
    let seen = bench.receive(link, new_leader(2));
    let (zxid, after) = (z(2, 0), z(1, 2));
    assert_eq!(seen.hung_up(link), Some(Hangup::Hole { zxid, after }));
    assert_eq!(seen.persists(), []);
}

// --- SNAP ---

#[test]
fn a_snapshot_and_what_follows_it_take_the_place_of_the_history_in_one_step() {
    let (mut bench, link) = promised(five(9), 3);
    let seen = bench.receive(link, Packet::snap(z(2, 5)));
    let (receive, label) =
        (seen.0.contains(&Output::ReceiveSnapshot { link, label: z(2, 5) }), z(2, 5));
    assert!(receive && seen.persists().is_empty(), "{seen:?}");
    let seen = bench.step(Event::restored(link));
    assert_eq!((followed(&seen), seen.persists()), (vec![(How::Snap, label)], vec![]));
    // ZooKeeper reads the label after it has begun to forward: what it covers comes too.
    let covered =
        [propose(z(2, 4)), Packet::Commit(z(2, 4)), propose(z(2, 5)), Packet::Commit(label)];
    assert_eq!(tell(&mut bench, link, &covered), []);
    // Nobody compares it with the history that is about to go.
    let other = Packet::Proposal(txn(z(1, 9).0));
    assert_eq!(tell(&mut bench, link, &[other]), []);
    let writes =
        tell(&mut bench, link, &[propose(z(2, 6)), Packet::Commit(z(2, 6)), propose(z(3, 1))]);
    assert_eq!(writes, [Write::AppendStaged(entry(z(2, 6)))]);
    bench.persisted();
    assert_eq!(bench.status().last, z(1, 9), "our own history is whole");
    assert_eq!(tell(&mut bench, link, &[new_leader(3)]), [install(&bench, label), epoch(3)]);
    acknowledged_after_the_last(&mut bench, link, 3);
    assert_eq!(bench.status().last, z(2, 6));
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.delivered(), seen.appended()), (vec![z(2, 6)], vec![z(3, 1)]));
    assert_eq!(bench.persisted().packets(link), [Packet::Ack(z(3, 1))]);
}

#[test]
fn a_snapshot_alone_is_a_history_and_is_delivered_through_its_label() {
    for label in [z(3, 0), z(2, 7), Zxid(0)] {
        let (mut bench, link) = promised(five(9), 3);
        bench.receive(link, Packet::snap(label));
        bench.step(Event::restored(link));
        let writes = tell(&mut bench, link, &[new_leader(3)]);
        assert_eq!(writes, [install(&bench, label), epoch(3)]);
        bench.persisted();
        let seen = bench.receive(link, Packet::UpToDate);
        let adopted = if label == Zxid(0) { vec![] } else { vec![label] };
        assert_eq!((seen.delivered(), bench.status().last), (adopted, label));
        // The first of the epoch follows any of these labels.
        let seen = bench.receive(link, propose(z(3, 1)));
        assert_eq!((seen.left(), seen.appended()), (None, vec![z(3, 1)]));
    }
}

#[test]
fn a_commit_behind_a_snapshot_between_the_acknowledgement_and_uptodate_is_logged_in_its_place() {
    let (mut bench, link) = promised(five(9), 3);
    bench.receive(link, Packet::snap(z(2, 5)));
    bench.step(Event::restored(link));
    tell(&mut bench, link, &[propose(z(3, 1)), new_leader(3)]);
    bench.persisted();
    assert_eq!(tell(&mut bench, link, &[Packet::Commit(z(3, 1))]), [append(z(3, 1))]);
    let seen = bench.receive(link, Packet::UpToDate);
    assert_eq!((seen.delivered(), seen.appended()), (vec![z(3, 1)], vec![]));
}

/// ZOOKEEPER-2872: a snapshot that came in part, or was not on disk, stood below a later log.
#[test]
fn a_snapshot_that_ends_early_leaves_the_old_history() {
    for beside in [false, true] {
        let (mut bench, link) = promised(five(9), 3);
        bench.receive(link, Packet::snap(z(2, 5)));
        if beside {
            bench.step(Event::restored(link));
            tell(&mut bench, link, &[propose(z(2, 6)), Packet::Commit(z(2, 6))]);
            bench.persisted();
        }
        bench.boundary.up.remove(&link);
        let seen = bench.step(Event::LinkDown { link, cause: Cause::Garbled });
        let lost = Reason::LeaderLost { leader: ServerId(3), cause: Cause::Garbled };
        assert_eq!(seen.left(), Some(lost));
        assert!(seen.abandoned() && seen.persists().is_empty());
        let status = bench.status();
        assert_eq!((status.state, status.last, status.current_epoch), (Looking, z(1, 9), Epoch(1)));
        assert_eq!(status.vote, vote(1, z(1, 9).0, 1), "what is on disk is what is voted with");
        // A word that comes late changes nothing.
        assert_eq!(
            bench
                .peer
                .step(quorate_core::input::Input { at: bench.now, event: Event::restored(link) }),
            []
        );
    }
}

#[test]
fn a_snapshot_that_moves_is_no_silence() {
    let (mut bench, link) = promised(five(9), 3);
    bench.receive(link, Packet::snap(z(2, 5)));
    for _ in 0..10 {
        bench.ms(29_000);
        bench.step(Event::Progress(link)).is_nothing();
    }
    bench.step(Event::restored(link));
    assert_eq!(bench.ms(29_000).left(), None);
    let seen = bench.ms(1_000);
    assert_eq!(seen.left(), Some(Reason::LeaderSilent { leader: ServerId(3) }));
}

// --- what it refuses ---

/// ZOOKEEPER-2418: a server that logs what leaves a hole has a history that never was.
#[test]
fn what_leaves_a_hole_is_refused_and_the_leader_left() {
    let snap = |label| vec![Packet::snap(label)];
    let cases: &[(Vec<Packet>, Packet, Zxid, Zxid)] = &[
        // Behind our own last transaction.
        (vec![Packet::Diff(z(1, 7))], propose(z(1, 7)), z(1, 7), z(1, 5)),
        (vec![Packet::Diff(z(2, 3))], propose(z(2, 2)), z(2, 2), z(1, 5)),
        // Behind the one before, whether or not that is logged.
        (vec![Packet::Diff(z(1, 8)), propose(z(1, 6))], propose(z(1, 8)), z(1, 8), z(1, 6)),
        (
            vec![Packet::Diff(z(1, 8)), propose(z(1, 6)), Packet::Commit(z(1, 6))],
            propose(z(1, 8)),
            z(1, 8),
            z(1, 6),
        ),
        // Behind a cut.
        (vec![Packet::Trunc(z(1, 3))], propose(z(1, 5)), z(1, 5), z(1, 3)),
        (vec![Packet::Trunc(z(1, 3))], propose(z(2, 2)), z(2, 2), z(1, 3)),
        // Behind a snapshot.
        (snap(z(2, 5)), propose(z(2, 7)), z(2, 7), z(2, 5)),
        (snap(z(2, 0)), propose(z(2, 2)), z(2, 2), z(2, 0)),
        (snap(z(2, 5)), propose(z(3, 2)), z(3, 2), z(2, 5)),
        // Out of order.
        (
            vec![Packet::Diff(z(1, 9))],
            Packet::Proposals([entry(z(1, 7)), entry(z(1, 6))].into()),
            z(1, 7),
            z(1, 5),
        ),
        // After NEWLEADER.
        (vec![Packet::Diff(z(1, 5)), new_leader(3)], propose(z(3, 2)), z(3, 2), z(1, 5)),
        // COMMIT of what was not proposed.
        (vec![Packet::Diff(z(1, 6))], Packet::Commit(z(1, 6)), z(1, 6), z(1, 5)),
        (vec![Packet::Diff(z(1, 6)), propose(z(1, 6))], Packet::Commit(z(1, 7)), z(1, 7), z(1, 6)),
        (vec![Packet::Trunc(z(1, 3))], Packet::Commit(z(1, 4)), z(1, 4), z(1, 3)),
        (snap(z(2, 5)), Packet::Commit(z(2, 6)), z(2, 6), z(2, 5)),
        (
            vec![Packet::Diff(z(1, 5)), new_leader(3)],
            Packet::CommitAndActivate { zxid: z(3, 1), leader: ServerId(3) },
            z(3, 1),
            z(1, 5),
        ),
        (vec![Packet::Diff(z(1, 5))], Packet::Inform(entry(z(1, 7))), z(1, 7), z(1, 5)),
        // Numbers that cannot be.
        (vec![Packet::Diff(z(1, 5))], propose(z(1, 0xffff_ffff)), z(1, 0xffff_ffff), z(1, 5)),
    ];
    for (said, packet, zxid, after) in cases {
        let (mut bench, link) = promised(five(5), 3);
        for before in said {
            bench.receive(link, before.clone());
            if let Packet::Snap { .. } = before {
                bench.step(Event::restored(link));
            }
        }
        let last = bench.boundary.disk.last();
        let seen = bench.receive(link, packet.clone());
        let (zxid, after) = (*zxid, *after);
        let told = format!("{} {zxid} after {said:?}", packet.name());
        assert_eq!(seen.hung_up(link), Some(Hangup::Hole { zxid, after }), "{told}");
        let leader = ServerId(3);
        assert_eq!(seen.left(), Some(Reason::Hole { leader, zxid, after }), "{told}");
        assert_eq!((seen.appended(), bench.boundary.disk.last()), (vec![], last), "{told}");
        assert_eq!(bench.state(), Looking);
    }
}

/// What a leader must not say, and when.
#[test]
fn decisions_that_cannot_be_and_packets_in_the_wrong_place_are_refused() {
    let snap = Packet::snap(z(2, 5));
    let cases: &[(&[Packet], Packet)] = &[
        (&[], propose(z(1, 6))),
        (&[], Packet::Commit(z(1, 5))),
        (&[], Packet::Inform(entry(z(1, 6)))),
        // A cut beyond our last, or nowhere.
        (&[], Packet::Trunc(z(1, 6))),
        (&[], Packet::Trunc(z(2, 0))),
        (&[], Packet::Trunc(Zxid(-1))),
        (&[], Packet::Trunc(Zxid(i64::MIN))),
        // A snapshot of nowhere, or of an epoch that nobody has promised.
        (&[], Packet::snap(Zxid(-1))),
        (&[], Packet::snap(Zxid(i64::MIN))),
        (&[], Packet::snap(Zxid(i64::MAX))),
        (&[], Packet::snap(z(4, 0))),
        // A transaction of an epoch that nobody has promised.
        (&[Packet::Diff(z(1, 5))], propose(z(4, 1))),
        (&[Packet::Diff(z(1, 5))], propose(Zxid(i64::MAX))),
        (&[Packet::Diff(z(1, 5)), new_leader(3)], propose(z(4, 1))),
        (&[Packet::Trunc(z(1, 3))], propose(z(4, 1))),
        // One decision is enough.
        (&[Packet::Diff(z(1, 5))], Packet::Trunc(z(1, 5))),
        (&[Packet::Diff(z(1, 5))], Packet::snap(z(1, 5))),
        (&[Packet::Trunc(z(1, 5))], Packet::Diff(z(1, 5))),
        (&[Packet::Trunc(z(1, 3))], Packet::Trunc(z(1, 2))),
        (&[Packet::Diff(z(1, 5)), new_leader(3)], Packet::Trunc(z(1, 5))),
        // While the snapshot comes nothing else can.
        (std::slice::from_ref(&snap), Packet::snap(z(2, 5))),
        (std::slice::from_ref(&snap), propose(z(2, 6))),
        (std::slice::from_ref(&snap), Packet::Commit(z(2, 6))),
        (std::slice::from_ref(&snap), new_leader(3)),
    ];
    for (said, packet) in cases {
        let (mut bench, link) = promised(five(5), 3);
        for packet in *said {
            bench.receive(link, packet.clone());
        }
        let name = packet.name();
        let seen = bench.receive(link, packet.clone());
        assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn(name)), "{packet:?}, {said:?}");
        assert_eq!((seen.appended(), bench.state()), (vec![], Looking));
    }
    // While the disk is asked a second NEWLEADER is one too many.
    let (mut bench, link) = promised(nine(), 3);
    tell(&mut bench, link, &[Packet::Trunc(z(1, 4)), new_leader(3)]);
    let seen = bench.receive(link, new_leader(3));
    assert_eq!(seen.hung_up(link), Some(Hangup::OutOfTurn("NEWLEADER")));
}

// --- what a crash or the next leader finds ---

/// ZOOKEEPER-4712: what an earlier leadership had begun to write was acknowledged to the next leader, or came
/// back behind its cut.
#[test]
fn a_write_of_an_earlier_leadership_that_ends_late_acknowledges_nothing_to_the_next_leader() {
    let (mut bench, link) = promised(five(3), 2);
    tell(&mut bench, link, &[Packet::Diff(z(1, 3)), new_leader(2)]);
    bench.persisted();
    bench.receive(link, Packet::UpToDate);
    bench.receive(link, propose(z(2, 1)));
    assert_eq!(bench.writes_pending(), 1);
    let election: Vec<_> = bench.planes().into_iter().flatten().map(|(link, _)| link).collect();
    let seen = bench.down(link);
    assert!(election.iter().all(|link| seen.told(*link).is_empty()), "not before it is on disk");
    let seen = bench.persisted();
    let told: Vec<_> = election.iter().flat_map(|link| seen.told(*link)).collect();
    assert!(!told.is_empty());
    for standing in told {
        assert_eq!((standing.vote.zxid, standing.vote.peer_epoch), (z(2, 1), Epoch(2)));
    }
    assert_eq!(seen.names(link), [""; 0]);
}

/// The disk has done a part when the link ends: the next leader is told what is in the log, on disk or on
/// its way there, and the vote waits for it.
#[test]
fn a_synchronisation_that_ends_early_leaves_what_the_next_one_can_begin_with() {
    let told = [
        Packet::Diff(z(1, 4)),
        propose(z(1, 2)),
        Packet::Commit(z(1, 2)),
        propose(z(1, 3)),
        Packet::Commit(z(1, 3)),
        propose(z(1, 4)),
        new_leader(2),
        Packet::Commit(z(1, 4)),
    ];
    // How many of them came; what is in the log then, and the current epoch.
    for (heard, last, current) in [
        (1, z(1, 1), 1),
        (2, z(1, 1), 1),
        (3, z(1, 2), 1),
        (5, z(1, 3), 1),
        (6, z(1, 3), 1),
        (7, z(1, 3), 2),
        (8, z(1, 4), 2),
    ] {
        for done in (0..=4).step_by(if cfg!(miri) { 4 } else { 1 }) {
            let (mut bench, link) = promised(five(1), 2);
            tell(&mut bench, link, &told[..heard]);
            for _ in 0..done.min(bench.writes_pending()) {
                bench.persisted_one();
            }
            bench.down(link);
            bench.persisted();
            let status = bench.status();
            assert_eq!((status.last, status.current_epoch), (last, Epoch(current)), "{heard}");
            assert_eq!(status.vote, vote(current, last.0, 1));
            assert_eq!(bench.delivered(), Zxid(0));
        }
    }
}

/// Of an epoch that is behind the log a synchronisation was interrupted: whoever has a transaction of an
/// epoch has all that its leader brought into it.
#[test]
fn a_log_ahead_of_the_current_epoch_is_an_interrupted_synchronisation() {
    let log = [entries(1, 1, 2), entries(3, 1, 2)].concat();
    let mut bench = Bench::idle(1, &ensemble(&[1, 2, 3]), stored(4, 1, z(1, 0), log), |_| {});
    let election = bench.meet(3);
    let seen = bench.step(Event::Tick);
    assert_eq!(seen.persists(), [epoch(3)]);
    assert_eq!(seen.told(election), [], "not before it is on disk");
    let seen = bench.persisted();
    assert_eq!(seen.told(election), [standing(Looking, vote(3, z(3, 2).0, 1), 1)]);
    bench.step(Event::Persisted(Ticket(1))).is_nothing();
}
