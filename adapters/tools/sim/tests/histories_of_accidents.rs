//! Accidents of real ensembles in which transactions were lost, doubled or mixed up, replayed at every moment
//! at which they could happen; each says what happened and what must happen instead. Those that are told by
//! one run are in `scenarios/`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use bytes::Bytes;
use quorate_core::config::{HistoryLimits, Timing};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{LearnerInfo, Packet};
use quorate_core::output::Output;
use quorate_core::vote::ServerState::{Leading, Looking};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::stage::{learner_info, says, txn};
use quorate_sim::{
    Contents, CrashKind, Ensemble, FaultClass, Outcome, Stage, Survival, World, WorldConfig,
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
    let (current, last) = (own.current_epoch.0, own.last().0);
    let mut stage = Stage::new(&Ensemble::majority(3), 1, own);
    for peer in [2, 3] {
        let link = stage.meet(peer);
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

// ---- epochs ----

/// An epoch was derived from the last logged zxid: two leaders that never heard of each other gave one
/// number to two transactions (ZOOKEEPER-335). Here each of three leads alone once, logs something and
/// ends; the checker has every zxid that anybody ever logged in its book.
#[test]
fn two_leaders_never_give_one_zxid_to_two_transactions() {
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

/// The numbers of an epoch run out while everybody writes: the leader makes room for a new epoch before
/// one runs over, again and again. Each request is carried out once or refused, and nothing is lost.
#[test]
fn a_leader_whose_numbers_run_out_under_load_makes_room_for_a_new_epoch() {
    const NUMBERS: u32 = 20;
    let timing = Timing { tick: 200 * MILLI, ..Timing::default() };
    let history =
        HistoryLimits { epoch_count: NUMBERS, snap_count: 30, ..HistoryLimits::default() };
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
fn the_last_epoch_is_led_and_nobody_leads_behind_it() {
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

/// The first cure only queued the writes before it acknowledged; a crash between the acknowledgement and
/// the write lost what was committed (ZOOKEEPER-4646). Whatever a crash leaves of the writes under way,
/// nothing was acknowledged that is not there.
#[test]
fn an_acknowledgement_never_overtakes_the_disk() {
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

/// A learner was cut across an epoch, or sent a difference to what it did not have. Whatever it has, it
/// ends with the leader's history and loses nothing that is in it.
#[test]
fn how_a_late_learner_is_brought_up() {
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

/// What was applied while a server was brought up went another way than what came later, and sessions
/// stayed behind that were closed everywhere else (ZOOKEEPER-1367, -2355). However a server got
/// something, and however often its link broke meanwhile, its state is that of the others.
#[test]
fn however_a_server_gets_it_its_state_is_the_same() {
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
fn a_learner_that_joins_meanwhile_misses_nothing_and_gets_nothing_twice() {
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

// ---- coming back ----

/// What a learner was sent and from where on it was forwarded were read under different locks
/// (ZOOKEEPER-962); the log on disk and the list in memory did not meet (ZOOKEEPER-2418). A follower
/// joins at each moment of a stream of writes, with hardly anything in memory; and a learner refuses a
/// hole rather than log it.
#[test]
fn a_follower_that_joins_at_any_moment_has_no_hole() {
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
}
