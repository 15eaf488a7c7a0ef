//! Accidents of real ensembles in which transactions were lost, doubled or mixed up, replayed; each
//! says what happened and what must happen instead.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::{HistoryLimits, Timing};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{LearnerInfo, Packet};
use quorate_core::output::{Hangup, Output, Write};
use quorate_core::vote::ServerState::{Leading, Looking};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::stage::{learner_info, says, txn};
use quorate_sim::{
    Contents, CrashKind, DiskConfig, Ensemble, FaultClass, NetworkConfig, Outcome, Stage, State,
    Survival, World, WorldConfig,
};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

const fn z(epoch: i64, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), Counter(counter))
}

fn new_leader(epoch: i64) -> Packet {
    Packet::NewLeader { zxid: z(epoch, 0), config: Bytes::new() }
}

fn ack(epoch: i64) -> Packet {
    Packet::Ack(z(epoch, 0))
}

fn proposal(epoch: i64, counter: u32, number: u64) -> Packet {
    Packet::Proposal(txn(z(epoch, counter), number))
}

/// Server 1 of three that follows server 3 and has promised `epoch`; its writes are synced by hand.
fn follower(own: Contents, epoch: i64) -> (Stage, LinkId) {
    learner(&Ensemble::majority(3), 1, own, epoch)
}

fn learner(ensemble: &Ensemble, id: i64, own: Contents, epoch: i64) -> (Stage, LinkId) {
    let (current, last) = (own.current_epoch.0, own.last().0);
    let mut stage = Stage::new(ensemble, id, own);
    for peer in [2, 3] {
        // An observer has nobody who would dial it: it dials.
        let link = if id > peer { stage.answer(Plane::Election, peer) } else { stage.meet(peer) };
        stage.hear(link, says(Looking, 3, current, last, 1));
    }
    stage.pass(SECOND);
    let link = stage.answer(Plane::Quorum, 3);
    stage.hear(link, Packet::LeaderInfo { epoch: Epoch(epoch), protocol: LearnerInfo::PROTOCOL });
    stage.packets(link);
    stage.sync_at_once = false;
    (stage, link)
}

/// Server 3 of three with this on its disk, elected by the others, and the link of server 1, with which
/// it is established.
fn leader(own: Contents, history: HistoryLimits) -> (Stage, LinkId) {
    let (current, last) = (own.current_epoch.0, own.last());
    let mut stage = Stage::with(&Ensemble::majority(3), 3, own, |config| config.history = history);
    for peer in [1, 2] {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, current, last.0, 1));
    }
    assert_eq!(stage.status().state, Leading);
    let link = registers(&mut stage, 1, current);
    stage.hear(link, Packet::AckEpoch { last, current_epoch: Some(Epoch(current)) });
    let epoch = stage.status().current_epoch.0;
    stage.hear(link, ack(epoch));
    assert!(stage.status().serving);
    stage.packets(link);
    (stage, link)
}

fn registers(stage: &mut Stage, id: i64, accepted: i64) -> LinkId {
    let link = stage.accept(Plane::Quorum, 0);
    stage.hear(link, Packet::FollowerInfo(learner_info(id, accepted)));
    link
}

fn names(packets: &[Packet]) -> Vec<&'static str> {
    packets.iter().map(Packet::name).collect()
}

fn settles(world: &mut World, among: &[i64]) -> i64 {
    let ids: Vec<_> = among.iter().map(|id| ServerId(*id)).collect();
    let took = world.run_until(|w| w.is_settled_among(ids.iter().copied()), 60 * SECOND).unwrap();
    assert!(took.is_some(), "{among:?} do not settle");
    world.leader().unwrap().0
}

/// Writes at a server, and waits until it is applied there.
fn writes(world: &mut World, id: i64) -> Zxid {
    let request = world.propose(id, 7).unwrap().unwrap();
    let outcome = |w: &World| w.checker().outcome(request);
    world.run_until(|w| matches!(outcome(w), Some(Outcome::Applied(_))), 5 * SECOND).unwrap();
    match outcome(world) {
        Some(Outcome::Applied(zxid)) => zxid,
        other => panic!("a write at {id} is {other:?}"),
    }
}

/// Everybody who runs has applied the same, all that is committed.
fn level(world: &mut World) {
    let level = world.run_until(World::is_level, 10 * SECOND).unwrap();
    assert!(level.is_some(), "somebody lacks something");
}

fn world(seed: u64, servers: i64) -> World {
    let timing = Timing { tick: 200 * MILLI, ..Timing::default() };
    World::new(seed, WorldConfig { timing, ..WorldConfig::new(Ensemble::majority(servers)) })
}

/// Ensemble of three led by 3: it is cut off and logs a transaction that nobody else has, ends, and the
/// two others have a new leader.
fn with_an_orphan(seed: u64) -> World {
    let mut world = world(seed, 3);
    world.start_all([1, 2, 3]);
    assert_eq!(settles(&mut world, &[1, 2, 3]), 3);
    for _ in 0..4 {
        writes(&mut world, 1);
    }
    world.partition(&[&[1, 2], &[3]]);
    let request = world.propose(3, 1).unwrap().unwrap();
    world.run_for(50 * MILLI).unwrap();
    assert_eq!(world.durable(3).unwrap().last(), z(1, 5));
    assert_eq!(world.checker().outcome(request), Some(Outcome::Accepted), "nobody was told more");
    world.crash(3, CrashKind::Power).unwrap();
    settles(&mut world, &[1, 2]);
    world.cut(1, 3);
    world.cut(2, 3);
    world.heal();
    world
}

// ---- epochs ----

/// An epoch was derived from the last logged zxid: two leaders that never heard of each other gave one
/// number to two transactions (ZOOKEEPER-335). Here each of three leads alone once, logs something and
/// ends; the checker has every zxid that anybody ever logged in its book.
#[test]
fn e2_two_leaders_never_give_one_zxid_to_two_transactions() {
    for seed in 0..10 {
        let mut world = world(seed, 3);
        world.start_all([1, 2, 3]);
        let mut leader = settles(&mut world, &[1, 2, 3]);
        writes(&mut world, leader);
        for _ in 0..6 {
            let others: Vec<i64> = (1..=3).filter(|id| *id != leader).collect();
            world.partition(&[&others, &[leader]]);
            world.propose(leader, 1).unwrap();
            world.run_for(20 * MILLI).unwrap();
            world.crash(leader, CrashKind::Power).unwrap();
            settles(&mut world, &others);
            world.heal();
            world.start(leader);
            leader = settles(&mut world, &[1, 2, 3]);
        }
        writes(&mut world, 1);
        level(&mut world);
    }
}

/// Of three, the second has logged 2.1 alone, and ends; the others go on in epoch 3 and commit nothing.
/// Then the first is gone, and the third, which leads because it has seen epoch 3, needs the second for a
/// quorum: what only that has is given up, and it is brought up now, not when a quorum is there.
#[test]
fn a_follower_that_is_needed_is_brought_up_whatever_it_has() {
    let mut config = WorldConfig::new(Ensemble::majority(3));
    config = config.with_disk(2, Contents::ending(2, 2, z(1, 1)).and(2));
    config = config.with_disk(3, Contents::ending(3, 3, z(1, 1)));
    let mut world = World::new(5, config);
    world.start_all([2, 3]);
    assert_eq!(settles(&mut world, &[2, 3]), 3);
    writes(&mut world, 2);
    level(&mut world);
}

/// The low half of the number ran over into the epoch, and the ensemble stopped (ZOOKEEPER-1277). A
/// history that ends at the last number of its epoch is followed by the first of another, and a number
/// that begins an epoch is no transaction.
#[test]
fn e4_behind_the_last_number_of_an_epoch_comes_the_first_of_another() {
    let last = z(3, Counter::LAST.0);
    let mut config = WorldConfig::new(Ensemble::majority(3));
    for id in 1..=3 {
        config = config.with_history(id, last);
    }
    let mut world = World::new(1277, config);
    world.start_all([1, 2, 3]);
    settles(&mut world, &[1, 2, 3]);
    assert_eq!(writes(&mut world, 1), z(4, 1));
    level(&mut world);

    let (mut stage, link) = follower(Contents::ending(3, 3, z(3, 0xffff_ffff)), 3);
    stage.hear(link, Packet::Diff(z(3, 0xffff_ffff)));
    let number = stage.durable().snapshots[0].count + 1;
    stage.hear(link, proposal(4, 0, number));
    assert_ne!(stage.hang_up_of(link), None, "4.0 is no transaction");
}

/// The numbers of an epoch run out while everybody writes: the leader makes room for a new epoch before
/// one runs over, again and again. Each request is carried out once or refused, and nothing is lost.
#[test]
fn e4_a_leader_whose_numbers_run_out_under_load_makes_room_for_a_new_epoch() {
    const NUMBERS: u32 = 20;
    let timing = Timing { tick: 200 * MILLI, ..Timing::default() };
    let history =
        HistoryLimits { reign_count: NUMBERS, snap_count: 30, ..HistoryLimits::default() };
    let config = WorldConfig { timing, history, ..WorldConfig::new(Ensemble::majority(3)) };
    let mut world = World::new(1277, config);
    world.start_all([1, 2, 3]);
    settles(&mut world, &[1, 2, 3]);
    let mut asked = Vec::new();
    for round in 0..600 {
        let id = 1 + round % 3;
        asked.extend(world.propose(id, 1).unwrap());
        world.run_for(2 * MILLI).unwrap();
    }
    settles(&mut world, &[1, 2, 3]);
    world.run_for(SECOND).unwrap();
    level(&mut world);
    let mut applied = std::collections::BTreeSet::new();
    for request in &asked {
        match world.checker().outcome(*request) {
            Some(Outcome::Applied(zxid)) => assert!(applied.insert(zxid), "{zxid} twice"),
            Some(Outcome::Refused | Outcome::Lost) => {}
            other => panic!("{request} has no end: {other:?}"),
        }
    }
    let counters = applied.iter().map(|zxid| zxid.counter().0);
    assert_eq!(counters.clone().max(), Some(NUMBERS), "all of an epoch's numbers are used");
    assert!(counters.min() >= Some(1), "the start of an epoch is no transaction");
    let epochs: std::collections::BTreeSet<_> = applied.iter().map(|zxid| zxid.epoch()).collect();
    assert!(epochs.len() > 5, "{epochs:?}");
    let spent = world.coverage().of(FaultClass::NumbersSpent);
    assert!(spent > 5, "{spent} times");
}

/// The last epoch that numbers have room for is an epoch like any other. There is none behind it: whoever
/// would have to begin one stops, by name, and touches nothing.
#[test]
fn e4_the_last_epoch_is_led_and_nobody_leads_behind_it() {
    let last = Epoch::MAX.0;
    let timing = Timing { tick: 200 * MILLI, ..Timing::default() };
    let mut config = WorldConfig { timing, ..WorldConfig::new(Ensemble::majority(3)) };
    for id in 1..=3 {
        config = config.with_history(id, z(last - 1, 7));
    }
    let mut world = World::new(4883, config);
    world.start_all([1, 2, 3]);
    let leader = settles(&mut world, &[1, 2, 3]);
    assert_eq!(writes(&mut world, 1), z(last, 1));
    assert!(writes(&mut world, 2) > Zxid::ZERO, "no number is negative");
    // Who comes back follows the leader of the epoch that it has promised.
    let follower = if leader == 1 { 2 } else { 1 };
    world.crash(follower, CrashKind::Process).unwrap();
    world.start(follower);
    settles(&mut world, &[1, 2, 3]);
    level(&mut world);
    let held: Vec<_> = (1..=3).map(|id| world.durable(id).cloned()).collect();
    world.crash(leader, CrashKind::Process).unwrap();
    let end = world.run_until(|w| w.leader().is_some_and(|id| id.0 != leader), 60 * SECOND);
    let end = end.unwrap_err().to_string();
    assert!(end.contains("no new epoch can begin"), "{end}");
    for (id, held) in (1..=3).zip(held) {
        assert_eq!(world.durable(id).cloned(), held, "{id} has what it had");
    }
}

// ---- synchronisation ----

/// Followers acknowledged NEWLEADER with a transaction in memory only; the leader served it, all
/// crashed, and the followers formed a quorum without it (ZOOKEEPER-3911). Everything that came with
/// COMMIT is on disk before the acknowledgement leaves, and delivered only at UPTODATE.
#[test]
fn s1_newleader_is_acknowledged_only_after_what_was_synchronised_is_durable() {
    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 1)), 2);
    stage.hear(link, Packet::Diff(z(1, 2)));
    stage.hear(link, proposal(1, 2, 2));
    stage.hear(link, Packet::Commit(z(1, 2)));
    stage.hear(link, new_leader(2));
    assert_eq!(stage.packets(link), [], "nothing of it is on disk");
    assert_eq!(stage.delivered(), None);
    stage.sync();
    assert_eq!(stage.packets(link), [ack(2)]);
    assert_eq!(stage.delivered(), None, "no quorum is known to have it");
    let stage = stage.restarted(Survival::Nothing);
    assert_eq!(stage.durable().last(), z(1, 2), "what was acknowledged is kept");

    // The whole story: the followers crash at UPTODATE, then the leader, and the followers come back.
    let mut config = WorldConfig::new(Ensemble::majority(3));
    config = config.with_disk(1, Contents::ending(1, 1, z(1, 1)));
    config = config.with_disk(2, Contents::ending(1, 1, z(1, 1)));
    config = config.with_disk(3, Contents::ending(1, 1, z(1, 2)));
    config.disk.survival = Survival::Nothing;
    let mut world = World::new(3911, config);
    world.start_all([1, 2, 3]);
    assert_eq!(settles(&mut world, &[1, 2, 3]), 3);
    assert_eq!(world.checker().committed(), z(1, 2));
    for id in [1, 2, 3] {
        world.crash(id, CrashKind::Power).unwrap();
    }
    world.start_all([1, 2]);
    settles(&mut world, &[1, 2]);
    assert_eq!(world.applied(1).unwrap().label, z(1, 2));
}

/// The first cure only queued the writes before it acknowledged; a crash between the acknowledgement and
/// the write lost what was committed (ZOOKEEPER-4646). Whatever a crash leaves of the writes under way,
/// nothing was acknowledged that is not there.
#[test]
fn s2_an_acknowledgement_never_overtakes_the_disk() {
    for heard in 0..5 {
        for synced in 0..=heard {
            let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 1)), 2);
            let script = [
                Packet::Diff(z(1, 3)),
                proposal(1, 2, 2),
                Packet::Commit(z(1, 2)),
                proposal(1, 3, 3),
                Packet::Commit(z(1, 3)),
                new_leader(2),
            ];
            for (at, packet) in script.into_iter().enumerate().take(heard + 2) {
                stage.hear(link, packet);
                if at == synced {
                    stage.sync();
                }
            }
            let acknowledged = !stage.packets(link).is_empty();
            let stage = stage.restarted(Survival::Nothing);
            let whole =
                stage.durable().last() == z(1, 3) && stage.durable().current_epoch == Epoch(2);
            assert!(whole || !acknowledged, "{heard} heard, {synced} synced");
        }
    }
}

/// A snapshot carried more than its label said, what was sent before it was counted twice, and a server
/// that crashed claimed a history that it had in part (ZOOKEEPER-3104). The label is the content; what
/// it covers is dropped, the rest goes behind it; both take the place of the old history in one step.
#[test]
fn s3_a_snapshot_and_what_follows_it_become_the_history_in_one_step() {
    for survival in [Survival::Nothing, Survival::Everything] {
        let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 3)), 2);
        stage.hear(link, Packet::Snap(z(1, 5)));
        let whole = Contents::ending(1, 1, z(1, 5)).with_snapshot(z(1, 5));
        stage.restore(link, whole.snapshots[0].clone());
        for (counter, number) in [(5, 5), (6, 6), (7, 7)] {
            stage.hear(link, proposal(1, counter, number));
            stage.hear(link, Packet::Commit(z(1, counter)));
        }
        stage.sync();
        assert_eq!(stage.durable().last(), z(1, 3), "the old history is whole");
        stage.hear(link, new_leader(2));
        assert_eq!(stage.packets(link), []);
        let mut stage = stage.restarted(survival);
        let (last, floor) = (stage.durable().last(), stage.durable().floor);
        match survival {
            Survival::Nothing => assert_eq!((last, floor), (z(1, 3), Zxid::ZERO)),
            Survival::Prefix | Survival::Any | Survival::Misordered | Survival::Everything => {
                assert_eq!((last, floor), (z(1, 7), z(1, 5)));
            }
        }
        assert_eq!(stage.status().last, last, "it votes with what it has");
        assert_eq!(stage.asked(), [], "and delivers nothing before it is told to");
    }
}

/// After a snapshot was acknowledged and before it was synced the power went: a torn snapshot, and a log
/// on top of a hole (ZOOKEEPER-2872). The acknowledgement waits for the install; until then the server
/// has what it had.
#[test]
fn s4_an_interrupted_snapshot_leaves_the_old_history() {
    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 9)), 2);
    stage.hear(link, Packet::Snap(z(2, 50)));
    let state = State { label: z(2, 50), count: 59, ..State::default() };
    stage.restore(link, state.clone());
    stage.hear(link, new_leader(2));
    assert_eq!(stage.packets(link), [], "the snapshot is not installed");
    let stage = stage.restarted(Survival::Nothing);
    assert_eq!(stage.status().last, z(1, 9));
    assert_eq!(stage.durable().log.len(), 9);

    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 9)), 2);
    stage.hear(link, Packet::Snap(z(2, 50)));
    stage.restore(link, state);
    stage.hear(link, new_leader(2));
    stage.sync();
    assert_eq!(stage.packets(link), [ack(2)]);
    stage.hear(link, Packet::UpToDate);
    stage.hear(link, proposal(2, 51, 60));
    let stage = stage.restarted(Survival::Everything);
    assert_eq!((stage.status().last, stage.durable().floor), (z(2, 51), z(2, 50)));
}

/// A COMMIT came between the acknowledgement of NEWLEADER and UPTODATE, and the server crashed on it
/// (ZOOKEEPER-4394); the acknowledgement of a proposal overtook that of NEWLEADER, and the leader gave
/// up (ZOOKEEPER-4685).
#[test]
fn s5_proposals_and_commits_around_newleader() {
    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 1)), 2);
    stage.hear(link, Packet::Diff(z(1, 1)));
    stage.hear(link, proposal(2, 1, 2));
    stage.hear(link, Packet::Commit(z(2, 1)));
    stage.hear(link, proposal(2, 2, 3));
    stage.hear(link, new_leader(2));
    stage.hear(link, Packet::Commit(z(2, 2)));
    stage.sync();
    let sent = stage.packets(link);
    assert_eq!(sent.first(), Some(&ack(2)), "first of all");
    stage.hear(link, Packet::UpToDate);
    stage.sync();
    let delivered: Vec<_> = stage
        .asked()
        .into_iter()
        .filter(|output| matches!(output, Output::DeliverThrough(_)))
        .collect();
    assert_eq!(delivered, [Output::DeliverThrough(z(2, 2))], "both, once, in order");
    assert_eq!(stage.durable().last(), z(2, 2));
    assert_eq!(stage.packets(link), [ack(2), Packet::Ack(z(2, 2))]);

    let ensemble = Ensemble::majority(3).with_observers([4]);
    let (mut stage, link) = learner(&ensemble, 4, Contents::ending(1, 1, z(1, 1)), 2);
    stage.hear(link, Packet::Diff(z(1, 1)));
    stage.hear(link, new_leader(2));
    stage.hear(link, Packet::Inform(txn(z(2, 1), 2)));
    stage.sync();
    stage.hear(link, Packet::UpToDate);
    stage.sync();
    assert_eq!(stage.delivered(), Some(z(2, 1)), "an observer is informed in the same window");
    assert_eq!(stage.durable().last(), z(2, 1));
}

/// A learner was cut across an epoch, or sent a difference to what it did not have. Whatever it has, it
/// ends with the leader's history and loses nothing that is in it.
#[test]
fn s6_how_a_late_learner_is_brought_up() {
    let own = || Contents::ending(6, 6, z(4, 5)).and(6).and(6);
    for (last, first) in [
        (z(4, 5), Packet::Diff(z(6, 2))),
        (z(6, 2), Packet::Diff(z(6, 2))),
        (z(6, 9), Packet::Trunc(z(6, 2))),
        (z(4, 5), Packet::Diff(z(6, 2))),
    ] {
        let (mut stage, _) = leader(own(), HistoryLimits::default());
        let link = registers(&mut stage, 2, 6);
        stage.hear(link, Packet::AckEpoch { last, current_epoch: Some(Epoch(6)) });
        let sent = stage.packets(link);
        assert_eq!(sent.get(1), Some(&first), "{last}: {sent:?}");
    }
    // What it has of an epoch that we know otherwise, or not at all, cannot be cut: it gets everything.
    let older = || Contents::ending(6, 6, z(4, 5));
    for (own, last) in [
        (own(), z(4, 7)),
        (own(), z(5, 3)),
        (own(), Zxid::ZERO),
        (older(), z(5, 3)),
        (older(), z(6, 9)),
    ] {
        let (mut stage, _) = leader(own, HistoryLimits::default());
        let link = registers(&mut stage, 2, 6);
        stage.asked();
        stage.hear(link, Packet::AckEpoch { last, current_epoch: Some(Epoch(4)) });
        let snapped = stage.asked().into_iter().any(|o| matches!(o, Output::SendSnapshot { .. }));
        assert!(snapped, "{last}");
    }
}

/// A cut failed on a full disk, the error was swallowed, and the server went on with what should have
/// been given up (ZOOKEEPER-3701); elsewhere, a crash between giving up and having again lost what was
/// committed. Nothing rests on a cut that is not durable, and what the leader has is never cut.
#[test]
fn s7_a_cut_that_does_not_reach_the_disk() {
    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 5)), 2);
    stage.hear(link, Packet::Trunc(z(1, 4)));
    stage.hear(link, proposal(2, 1, 5));
    stage.hear(link, new_leader(2));
    assert_eq!(stage.packets(link), [], "no acknowledgement without the cut");
    let stage = stage.restarted(Survival::Nothing);
    assert_eq!(stage.status().last, z(1, 5), "it has what it had");

    // The leader of its own epoch has what it proposed, and sends it again.
    let own = Contents::ending(1, 1, z(1, 4)).and(2).and(2);
    let own = own.in_epoch(2, 2);
    let (mut stage, link) = follower(own, 2);
    stage.asked();
    stage.hear(link, Packet::Trunc(z(1, 4)));
    let cuts = |o: &Output| matches!(o, Output::Persist { write: Write::Truncate(_), .. });
    assert!(!stage.asked().iter().any(cuts), "what this very leader proposed stays");
    stage.hear(link, proposal(2, 1, 5));
    stage.hear(link, proposal(2, 2, 6));
    stage.hear(link, new_leader(2));
    stage.sync();
    assert_eq!(stage.durable().last(), z(2, 2));
    assert_eq!(stage.durable().log.len(), 6, "nothing twice");
}

/// A follower's log writer went on after its role had ended and logged what a new leader had cut
/// (ZOOKEEPER-4712, -4541). A server looks for a leader when its writes are on disk, not before, and
/// what belongs to the old link is never sent.
#[test]
fn s8_writes_of_an_old_role_end_before_the_next_vote() {
    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 3)), 2);
    stage.hear(link, Packet::Diff(z(1, 3)));
    stage.hear(link, new_leader(2));
    stage.sync();
    stage.hear(link, Packet::UpToDate);
    stage.hear(link, proposal(2, 1, 4));
    stage.packets(link);
    stage.reports();
    stage.close(link);
    let round = stage.status().round;
    stage.pass(SECOND);
    assert_eq!(stage.status().round, round, "no vote while a write is under way");
    stage.sync();
    stage.pass(SECOND);
    assert!(stage.status().round > round);
    assert_eq!(stage.status().vote.zxid, z(2, 1), "it votes with all that it has");
    assert_eq!(stage.packets(link), [], "and says nothing to the old leader");
}

/// What was applied while a server was brought up went another way than what came later, and sessions
/// stayed behind that were closed everywhere else (ZOOKEEPER-1367, -2355). However a server got
/// something, and however often its link broke meanwhile, its state is that of the others.
#[test]
fn s9_however_a_server_gets_it_its_state_is_the_same() {
    for seed in 0..20 {
        let mut world = world(seed, 3);
        world.start_all([1, 2, 3]);
        settles(&mut world, &[1, 2, 3]);
        world.crash(1, CrashKind::Power).unwrap();
        for cell in 0..30 {
            world.propose(2, cell % 7).unwrap();
            world.run_for(MILLI).unwrap();
        }
        world.start(1);
        for _ in 0..10 {
            world.run_for(4 * MILLI).unwrap();
            world.cut(1, 3);
        }
        settles(&mut world, &[1, 2, 3]);
        level(&mut world);
        assert_eq!(world.applied(1), world.applied(3), "seed {seed}");
        // It leads, and nobody notices a difference.
        world.crash(3, CrashKind::Power).unwrap();
        settles(&mut world, &[1, 2]);
        writes(&mut world, 1);
    }
}

// ---- broadcast ----

/// A leader that sent proposals only to those that had acknowledged NEWLEADER lost what was committed
/// between the two; one that sent them to all sent some twice. A learner is a cursor: it has each
/// transaction before the COMMIT of it, once.
#[test]
fn b1_a_learner_that_joins_meanwhile_misses_nothing_and_gets_nothing_twice() {
    for write_at in 0..3 {
        let (mut stage, first) = leader(Contents::ending(1, 1, z(1, 1)), HistoryLimits::default());
        let second = registers(&mut stage, 2, 1);
        if write_at == 0 {
            stage.write();
        }
        let last = z(1, 1);
        stage.hear(second, Packet::AckEpoch { last, current_epoch: Some(Epoch(1)) });
        if write_at == 1 {
            stage.write();
        }
        stage.hear(first, Packet::Ack(z(2, 1)));
        assert_eq!(stage.delivered(), (write_at < 2).then_some(z(2, 1)).or(Some(z(1, 1))));
        stage.hear(second, ack(2));
        if write_at == 2 {
            stage.write();
            stage.hear(first, Packet::Ack(z(2, 1)));
        }
        let sent = stage.packets(second);
        let at = |name| sent.iter().position(|packet: &Packet| packet.name() == name);
        assert!(at("PROPOSAL") < at("COMMIT"), "{:?}", names(&sent));
        for name in ["PROPOSAL", "COMMIT", "NEWLEADER", "UPTODATE"] {
            let count = sent.iter().filter(|packet| packet.name() == name).count();
            assert_eq!(count, 1, "{name} in {:?}", names(&sent));
        }
    }
}

/// Acknowledgements that were given before a link broke were counted after it, or for what had never
/// been proposed, and made a quorum that was none. They count in order, once, from voters, on the link
/// on which the transaction went out.
#[test]
fn b2_acknowledgements_that_count_for_nothing() {
    let (mut stage, first) = leader(Contents::ending(1, 1, z(1, 3)), HistoryLimits::default());
    let observer = stage.accept(Plane::Quorum, 0);
    stage.sync_at_once = false;
    stage.write();
    stage.write();
    stage.asked();
    for nonsense in [z(1, 2), z(2, 0), z(2, 9), z(7, 1)] {
        stage.hear(first, Packet::Ack(nonsense));
        assert_eq!(stage.delivered(), None, "{nonsense}");
    }
    stage.hear(observer, Packet::ObserverInfo(learner_info(9, 1)));
    stage.hear(observer, Packet::Ack(z(2, 1)));
    stage.hear(first, Packet::Ack(z(2, 2)));
    assert_eq!(stage.delivered(), None, "the one before is not acknowledged");
    stage.hear(first, Packet::Ack(z(2, 1)));
    assert_eq!(stage.delivered(), None, "one voter, and our own disk has nothing yet");
    // Its link ends, and with it all that it has said.
    stage.close(first);
    stage.sync();
    assert_eq!(stage.delivered(), None, "its acknowledgements are gone, ours is one of three");
    let again = registers(&mut stage, 1, 2);
    stage.hear(again, Packet::AckEpoch { last: z(2, 2), current_epoch: None });
    stage.hear(again, ack(2));
    assert_eq!(stage.delivered(), None, "NEWLEADER says nothing of what is not committed");
    stage.hear(again, Packet::Ack(z(2, 1)));
    assert_eq!(stage.delivered(), Some(z(2, 1)));
    stage.hear(again, Packet::Ack(z(2, 1)));
    assert_eq!(stage.delivered(), Some(z(2, 1)), "once is not twice");
    stage.hear(again, Packet::Ack(z(2, 2)));
    assert_eq!(stage.delivered(), Some(z(2, 2)));
}

fn appends(output: &Output) -> bool {
    matches!(output, Output::Persist { write: Write::Append(_), .. })
}

/// A leader whose disk failed led on without being able to log anything; a follower applied what its own
/// disk had not taken, and had a hole in its log after a restart (ZOOKEEPER-2247, -4882). A disk that
/// fails ends its server, and what it did not take is brought again.
#[test]
fn b3_a_disk_that_fails_ends_its_server_and_leaves_no_hole() {
    for victim in [1, 3] {
        let disk = DiskConfig { survival: Survival::Nothing, ..DiskConfig::default() };
        let timing = Timing { tick: 200 * MILLI, ..Timing::default() };
        let ensemble = Ensemble::majority(3);
        let config = WorldConfig { disk, timing, ..WorldConfig::new(ensemble) };
        let mut world = World::new(2247, config);
        world.start_all([1, 2, 3]);
        assert_eq!(settles(&mut world, &[1, 2, 3]), 3);
        writes(&mut world, 2);
        world.crash_after(victim, appends);
        world.propose(2, 1).unwrap();
        world.run_for(20 * MILLI).unwrap();
        assert!(!world.is_up(victim), "its disk has failed");
        let others: Vec<i64> = (1..=3).filter(|id| *id != victim).collect();
        settles(&mut world, &others);
        writes(&mut world, 2);
        assert_eq!(world.durable(victim).unwrap().last(), z(1, 1), "it has no more than it has");
        world.start(victim);
        settles(&mut world, &[1, 2, 3]);
        writes(&mut world, victim);
        level(&mut world);
    }
}

// ---- coming back ----

/// An old leader came back with a transaction that nobody else had; its number was below the new
/// leader's, so it was sent a difference, and kept it for ever (ZOOKEEPER-1154, -1156).
#[test]
fn j1_what_an_old_leader_alone_has_logged_is_given_up() {
    for committed in [false, true] {
        let mut world = with_an_orphan(1154);
        if committed {
            writes(&mut world, 1);
        }
        let before = world.coverage();
        world.start(3);
        settles(&mut world, &[1, 2, 3]);
        let happened = |class| world.coverage().of(class) > before.of(class);
        assert_eq!(happened(FaultClass::SyncTrunc), !committed, "cut while that is all");
        assert_eq!(happened(FaultClass::SyncSnap), committed, "no cut into another epoch");
        assert!(world.durable(3).unwrap().get(z(1, 5)).is_none());
        writes(&mut world, 3);
        level(&mut world);
        assert_eq!(world.applied(3), world.applied(1));
    }
}

/// The same without a restart: a leader out of touch gives up by itself, and confirms nothing before.
#[test]
fn j1_an_isolated_leader_confirms_nothing() {
    let mut world = world(1156, 3);
    world.start_all([1, 2, 3]);
    assert_eq!(settles(&mut world, &[1, 2, 3]), 3);
    for _ in 0..7 {
        writes(&mut world, 3);
    }
    world.partition(&[&[1, 2], &[3]]);
    let request = world.propose(3, 1).unwrap().unwrap();
    let read = world.read(3).unwrap().unwrap();
    let limit = 2 * SECOND;
    let gone = world.run_until(|w| w.brief(3).is_some_and(|b| b.state == Looking), limit).unwrap();
    assert!(gone.is_some(), "it leads without a quorum after syncLimit");
    assert_eq!(world.checker().outcome(request), Some(Outcome::Accepted));
    assert_eq!(world.checker().answer(3, read), Some(quorate_sim::Answer::Refused));
    settles(&mut world, &[1, 2]);
    assert_eq!(writes(&mut world, 1), z(2, 1));
    world.heal();
    settles(&mut world, &[1, 2, 3]);
    writes(&mut world, 3);
    level(&mut world);
    assert_ne!(world.checker().outcome(request), Some(Outcome::Applied(z(1, 8))));
}

/// What a learner was sent and from where on it was forwarded were read under different locks
/// (ZOOKEEPER-962); the log on disk and the list in memory did not meet (ZOOKEEPER-2418). A follower
/// joins at each moment of a stream of writes, with hardly anything in memory; and a learner refuses a
/// hole rather than log it.
#[test]
fn j2_a_follower_that_joins_at_any_moment_has_no_hole() {
    for moment in 0..60 {
        let history = HistoryLimits {
            window_count: 1 + moment % 4,
            size_percent: Some(1_000_000),
            pace_bytes: 200,
            ..HistoryLimits::default()
        };
        let config = WorldConfig { history, ..WorldConfig::new(Ensemble::majority(3)) };
        let mut world = World::new(962, config);
        world.start_all([2, 3]);
        settles(&mut world, &[2, 3]);
        world.start_after(1, Duration::from_micros(500 * moment as u64));
        for _ in 0..80 {
            world.propose(2, 1).unwrap();
            world.run_for(MILLI / 2).unwrap();
        }
        settles(&mut world, &[1, 2, 3]);
        level(&mut world);
    }
    let (mut stage, link) = follower(Contents::ending(1, 1, z(1, 3)), 2);
    stage.hear(link, Packet::Diff(z(1, 8)));
    stage.hear(link, proposal(1, 7, 7));
    assert!(matches!(stage.hang_up_of(link), Some(Hangup::Hole { .. })));
    assert_eq!(stage.status().last, z(1, 3), "nothing of it is logged");
}

/// Bringing a server up took longer than the limits, so it was dropped, looked for a leader, and began
/// anew, for ever; where it was needed, the leader gave up with it (ZOOKEEPER-2678, -1697). What moves is
/// not silent.
#[test]
fn j3_a_slow_snapshot_is_no_silence() {
    for needed in [false, true] {
        let timing = Timing { tick: 50 * MILLI, ..Timing::default() };
        let network = NetworkConfig {
            stream_gap_min: 50 * MILLI,
            stream_gap_max: 100 * MILLI,
            ..NetworkConfig::default()
        };
        let history = HistoryLimits {
            snap_count: 20,
            window_count: 5,
            size_percent: None,
            ..HistoryLimits::default()
        };
        let config =
            WorldConfig { timing, network, history, ..WorldConfig::new(Ensemble::majority(3)) };
        let mut world = World::new(2678 + u64::from(needed), config);
        world.start_all([2, 3]);
        settles(&mut world, &[2, 3]);
        for cell in 0..=255 {
            world.propose(2, cell).unwrap();
            world.run_for(3 * MILLI).unwrap();
        }
        let leader = world.leader().unwrap().0;
        if needed {
            world.crash(5 - leader, CrashKind::Process).unwrap();
            world.crash(leader, CrashKind::Process).unwrap();
            world.start(leader);
        }
        let before = world.coverage().of(FaultClass::SyncSnap);
        let started = world.now();
        world.start(1);
        let among = if needed { vec![1, leader] } else { vec![1, 2, 3] };
        assert_eq!(settles(&mut world, &among), leader);
        let took = world.now() - started;
        assert!(took > 500 * MILLI, "the snapshot took {took:?}, longer than the limits");
        assert_eq!(world.coverage().of(FaultClass::SyncSnap) - before, 1, "once is enough");
        writes(&mut world, 1);
    }
}
