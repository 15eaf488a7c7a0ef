//! Accidents of real ensembles, replayed at every moment at which they could happen; each says what happened
//! and what must happen instead. Those that are told by one run are in `scenarios/`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{LearnerInfo, Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::reasons::Hangup;
use quorate_core::vote::ServerState::{Leading, Looking};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::stage::{learner_info, says};
use quorate_sim::{
    Contents, CrashKind, DiskConfig, Ensemble, NetworkConfig, Stage, Survival, World, WorldConfig,
};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

fn durable(accepted: i64, current: i64, last: i64) -> Contents {
    Contents::ending(accepted, current, Zxid(last))
}

fn zxid(epoch: i64, counter: u32) -> i64 {
    Zxid::new(Epoch(epoch), Counter(counter)).0
}

fn settles(world: &mut World, among: &[i64], limit: Duration) -> i64 {
    let ids: Vec<_> = among.iter().map(|id| ServerId(*id)).collect();
    let done = |w: &World| w.is_settled_among(ids.iter().copied());
    let took = world.run_until(done, limit).unwrap();
    assert!(took.is_some(), "{among:?} do not settle within {limit:?}");
    world.leader().unwrap().0
}

/// Server 3 of three, elected by all of them in round 1, with what its disk holds.
fn elected(own: Contents) -> Stage {
    let (epoch, last) = (own.current_epoch.0, own.last().0);
    let mut stage = Stage::new(&Ensemble::majority(3), 3, own);
    for peer in [1, 2] {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, epoch, last, 1));
    }
    assert_eq!(stage.status().state, Leading);
    stage
}

/// A learner connects to the quorum port of a leader and registers.
fn registers(stage: &mut Stage, info: LearnerInfo) -> LinkId {
    let link = stage.accept(Plane::Quorum, 0);
    stage.hear(link, Packet::FollowerInfo(info));
    link
}

fn leader_info(stage: &mut Stage, link: LinkId) -> Option<i64> {
    stage.packets(link).into_iter().find_map(|packet| {
        if let Packet::LeaderInfo { epoch, .. } = packet { Some(epoch.0) } else { None }
    })
}

// ---- votes ----

// ---- connections ----

/// Two servers with one id, or an address that leads back to its owner: refused, by name.
#[test]
fn a_link_with_ones_own_id_is_refused() {
    let mut stage = Stage::new(&Ensemble::majority(3), 2, Contents::default());
    let link = stage.accept(Plane::Election, 2);
    assert_eq!(stage.hang_up_of(link), Some(Hangup::OwnId(ServerId(2))));
}

/// Both ends dialled at once and both kept the connection, or both dropped it; old workers leaked; the
/// vote on the dropped one was lost (ZOOKEEPER-880, -2836). Exactly one stays, however often it breaks.
#[test]
fn exactly_one_connection_between_two_servers() {
    let timing = Timing { tick: 200 * MILLI, ..Timing::default() };
    let ensemble = Ensemble::majority(2);
    let config = WorldConfig { keep_log: false, timing, ..WorldConfig::new(ensemble) };
    let mut world = World::new(880, config);
    world.start_all([1, 2]);
    settles(&mut world, &[1, 2], 5 * SECOND);
    let mut most = 0;
    for round in 0..10_000u32 {
        world.cut(1, 2);
        world.run_for(MILLI * (round % 40)).unwrap();
        most = most.max(world.connections());
        if round % 100 == 0 {
            world.run_for(2 * SECOND).unwrap();
            settles(&mut world, &[1, 2], 5 * SECOND);
            world.run_for(2 * SECOND).unwrap();
            assert_eq!(world.links_between(1, 2, Plane::Election), 1);
            assert_eq!(world.links_between(1, 2, Plane::Quorum), 1);
            assert_eq!(world.connections(), 2, "nothing leaks");
        }
    }
    assert!(most < 30, "{most} connections at once");
}

/// A path that died without a word left one side believing in a connection, and its peer, restarted
/// meanwhile, could not get a new one (ZOOKEEPER-3340's kin). The newer introduction wins.
#[test]
fn a_half_open_connection_does_not_keep_its_peer_out() {
    for restarted in [1, 2] {
        let network = NetworkConfig {
            silent_min: 3_000 * SECOND,
            silent_max: 4_000 * SECOND,
            ..NetworkConfig::default()
        };
        let config = WorldConfig { network, ..WorldConfig::new(Ensemble::majority(3)) };
        let mut world = World::new(3340, config);
        world.start_all([1, 2, 3]);
        settles(&mut world, &[1, 2, 3], 5 * SECOND);
        world.partition(&[&[1, 3], &[2]]);
        world.crash(restarted, CrashKind::Power).unwrap();
        world.run_for(600 * SECOND).unwrap();
        world.heal();
        world.start(restarted);
        let joined = |w: &World| w.links_between(1, 2, Plane::Election) == 1;
        let took = world.run_until(joined, 10 * SECOND).unwrap();
        assert!(took.is_some_and(|took| took <= 3 * SECOND), "{restarted} restarted: {took:?}");
        settles(&mut world, &[1, 2, 3], 40 * SECOND);
    }
}

// ---- epochs ----

fn writes_accepted(output: &Output) -> bool {
    matches!(output, Output::Persist { write: Write::AcceptedEpoch(_), .. })
}

fn writes_current(output: &Output) -> bool {
    matches!(output, Output::Persist { write: Write::CurrentEpoch(_), .. })
}

fn says_leader_info(output: &Output) -> bool {
    matches!(output, Output::Send { message: Message::Packet(Packet::LeaderInfo { .. }), .. })
}

fn says_ack(output: &Output) -> bool {
    matches!(output, Output::Send { message: Message::Packet(Packet::Ack(_)), .. })
}

fn says_new_leader(output: &Output) -> bool {
    matches!(output, Output::Send { message: Message::Packet(Packet::NewLeader { .. }), .. })
}

/// Memory was changed before the file, or two files in the wrong order, and a server refused to start
/// after a crash: "accepted epoch is less than current" (ZOOKEEPER-2307, -1653, -4269). Here every
/// server crashes at each write of an epoch and at each promise that rests on one, and the write
/// survives or does not; it always starts again and the ensemble settles.
#[test]
fn a_crash_at_every_write_of_an_epoch() {
    let mut crashed = 0;
    let points = [writes_accepted, writes_current, says_leader_info, says_ack, says_new_leader];
    for seed in 0..8 {
        for id in 1..=3 {
            for point in points {
                for after in [false, true] {
                    for survival in [Survival::Prefix, Survival::Any] {
                        let disk = DiskConfig { survival, ..DiskConfig::default() };
                        let ensemble = Ensemble::majority(3);
                        let config = WorldConfig { disk, ..WorldConfig::new(ensemble) };
                        let mut world = World::new(seed, config);
                        if after {
                            world.crash_after(id, point);
                        } else {
                            world.crash_before(id, point);
                        }
                        world.start_all([1, 2, 3]);
                        world.run_for(SECOND).unwrap();
                        crashed += u32::from(!world.is_up(id));
                        world.calm();
                        world.start(id);
                        settles(&mut world, &[1, 2, 3], 60 * SECOND);
                    }
                }
            }
        }
    }
    assert!(crashed > 300, "only {crashed} crashes");
}

/// Leaders crashed one after the other without having logged anything, an epoch was derived from the
/// last zxid and used twice, and two transactions got one number (ZOOKEEPER-335). Epochs come from what
/// a quorum has promised; no two leaderships share one.
#[test]
fn no_epoch_is_led_twice() {
    let mut config = WorldConfig::new(Ensemble::majority(3));
    for id in 1..=3 {
        config = config.with_history(id, Zxid(zxid(1, 10)));
    }
    let mut world = World::new(335, config);
    world.start_all([1, 2, 3]);
    for _ in 0..20 {
        let leader = settles(&mut world, &[1, 2, 3], 5 * SECOND);
        world.crash(leader, CrashKind::Process).unwrap();
        let others: Vec<i64> = (1..=3).filter(|id| *id != leader).collect();
        let second = settles(&mut world, &others, 5 * SECOND);
        world.crash(second, CrashKind::Process).unwrap();
        world.start_all([leader, second]);
    }
    settles(&mut world, &[1, 2, 3], 5 * SECOND);
    let epochs: Vec<i64> = world.checker().leaders().keys().map(|epoch| epoch.0).collect();
    assert!(epochs.len() > 40 && epochs[0] == 2, "{epochs:?}");
    assert_eq!(epochs.iter().collect::<BTreeSet<_>>().len(), epochs.len());
}

/// The leader ignored that a follower had promised as much as itself, or more (ZOOKEEPER-1343, -1291).
/// The new epoch is one more than the highest that any of the quorum has promised.
#[test]
fn the_epoch_is_one_more_than_any_promise() {
    for (leaders, followers, new) in [(5, 5, 6), (5, 6, 7), (5, 20, 21), (5, 4, 6), (0, 0, 1)] {
        let mut stage = elected(durable(leaders, 0, 0));
        let link = registers(&mut stage, learner_info(1, followers));
        assert_eq!(leader_info(&mut stage, link), Some(new), "{leaders} and {followers}");
        assert_eq!(stage.durable().accepted_epoch, Epoch(new));
    }
}
