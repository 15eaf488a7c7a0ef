//! Accidents of real ensembles, replayed; each says what happened and what must happen instead.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::Timing;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{LearnerInfo, Message, Packet};
use quorate_core::output::{Hangup, Output, Write};
use quorate_core::report::{Phase, Reason};
use quorate_core::vote::{Round, ServerState};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::stage::{learner_info, says};
use quorate_sim::{
    Contents, CrashKind, DiskConfig, Ensemble, NetworkConfig, Stage, Survival, World, WorldConfig,
};

use ServerState::{Following, Leading, Looking};

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

fn ack_epoch(current: i64, last: i64) -> Packet {
    Packet::AckEpoch { last: Zxid(last), current_epoch: Some(Epoch(current)) }
}

/// Server 1 of three, which 2 and 3 have drawn to leader 3 in round 1; the link to the leader's quorum
/// port is up.
fn follower(own: Contents) -> (Stage, LinkId) {
    let (epoch, last) = (own.current_epoch.0, own.last().0);
    let mut stage = Stage::new(&Ensemble::majority(3), 1, own);
    for peer in [2, 3] {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, epoch, last, 1));
    }
    assert_eq!(stage.status().state, Following);
    let link = stage.answer(Plane::Quorum, 3);
    (stage, link)
}

// ---- votes ----

/// A server that a quorum had told "we follow you" believed it again later, with its round turned back
/// to theirs; later electors used the higher round and nobody could assemble a quorum
/// (ZOOKEEPER-1514). For "you lead" the round must be our own.
#[test]
fn v2_backward_round_and_stale_self_election() {
    let mut stage = Stage::new(&Ensemble::majority(3), 1, Contents::default());
    let links = [stage.meet(2), stage.meet(3)];
    for link in links {
        stage.hear(link, says(Following, 1, 0, 0, 1));
    }
    assert_eq!(stage.status().state, Leading, "in its own round it may be told so");
    let limit = 31 * SECOND;
    stage.pass(limit);
    assert!(stage.is_looking(), "nobody came");
    assert_eq!(stage.status().round, Round(2));
    for _ in 0..10 {
        for link in links {
            stage.hear(link, says(Following, 1, 0, 0, 1));
        }
    }
    stage.pass(SECOND);
    assert!(stage.is_looking(), "the same news, one round late");
    assert_eq!(stage.status().round, Round(2));
}

/// A server that looked for a leader believed followers that had not noticed yet that theirs was gone,
/// elected the corpse, could not connect, and looked again, for ever (ZOOKEEPER-569, -480). An
/// ensemble at work is joined only if its leader says itself that it leads.
#[test]
fn v4_electing_a_leader_that_is_already_dead() {
    let mut stage = Stage::new(&Ensemble::majority(5), 1, Contents::default());
    let links = [2, 3, 4].map(|peer| stage.meet(peer));
    for _ in 0..100 {
        for link in links {
            stage.hear(link, says(Following, 5, 1, 0, 1));
            stage.hear(link, says(Following, 5, 1, 0, 7));
        }
        stage.pass(10 * MILLI);
        assert!(stage.is_looking(), "followed a leader that nobody has heard");
    }
    let leader = stage.meet(5);
    stage.hear(leader, says(Leading, 5, 1, 0, 7));
    assert_eq!(stage.status().state, Following, "and follows as soon as it is heard");
    assert_eq!(stage.status().round, Round(7));

    // The whole ensemble: the leader loses power, one server notices long before the others.
    let network = NetworkConfig {
        silent_min: 5 * SECOND,
        silent_max: 5 * SECOND,
        ..NetworkConfig::default()
    };
    let config = WorldConfig { network, ..WorldConfig::new(Ensemble::majority(5)) };
    let mut world = World::new(569, config);
    world.start_all(1..=5);
    assert_eq!(settles(&mut world, &[1, 2, 3, 4, 5], 5 * SECOND), 5);
    world.crash(5, CrashKind::Power).unwrap();
    world.crash(1, CrashKind::Process).unwrap();
    world.start(1);
    assert_eq!(settles(&mut world, &[1, 2, 3, 4], 20 * SECOND), 4);
}

/// Voters changed their minds after they had been counted, and the server that they had elected sat for
/// the whole initLimit waiting for a quorum that would never come (ZOOKEEPER-1270, -3109). It gives up
/// when those that are left are no quorum, told by reports of a later round; others mean nothing.
#[test]
fn v5_a_leader_whose_voters_change_their_minds() {
    let mut stage = Stage::new(&Ensemble::majority(5), 3, Contents::default());
    let links = [stage.meet(1), stage.meet(2)];
    for link in links {
        stage.hear(link, says(Looking, 3, 0, 0, 1));
    }
    stage.pass(SECOND);
    assert_eq!(stage.status().state, Leading, "three of five after the wait");
    for _ in 0..3 {
        stage.hear(links[0], says(Looking, 1, 0, 0, 1));
    }
    assert_eq!(stage.status().state, Leading, "a repeated vote of the same round is no desertion");
    stage.reports();
    stage.hear(links[0], says(Looking, 1, 0, 0, 2));
    assert!(stage.is_looking(), "two of five are no quorum");
    let deserted = |reason: &Reason| *reason == Reason::Deserted { voter: ServerId(1) };
    assert!(stage.reports().iter().any(|report| deserted(&report.reason)));
}

/// The same with all five: one that changes its mind is not needed.
#[test]
fn v5_a_leader_with_voters_to_spare_goes_on() {
    let mut stage = Stage::new(&Ensemble::majority(5), 3, durable(1, 1, zxid(1, 5)));
    let links = [1, 2, 4, 5].map(|peer| stage.meet(peer));
    for link in links {
        stage.hear(link, says(Looking, 3, 1, zxid(1, 5), 1));
    }
    assert_eq!(stage.status().state, Leading, "all five agree");
    stage.hear(links[0], says(Looking, 1, 1, zxid(1, 4), 2));
    assert_eq!((stage.status().state, stage.status().round), (Leading, Round(1)));
}

/// A vote for a server that is in nobody's configuration crashed the receiver (ZOOKEEPER-2988's kin,
/// "leader out of view"). Server 1 does not know server 3, which 2 and 3 elect.
#[test]
fn v6_a_leader_that_is_not_in_ones_configuration() {
    let mut config = WorldConfig::new(Ensemble::majority(3));
    config.views.insert(ServerId(1), Ensemble::majority(3).without(3));
    let mut world = World::new(2988, config);
    world.start_all([2, 3]);
    assert_eq!(settles(&mut world, &[2, 3], 5 * SECOND), 3);
    world.start(1);
    for _ in 0..100 {
        world.run_for(100 * MILLI).unwrap();
        let brief = world.brief(1).unwrap();
        assert_eq!((brief.state, brief.leader), (Looking, None), "follows whom it does not know");
    }
    assert_eq!(world.leader(), Some(ServerId(3)), "and disturbs nobody");
}

/// An observer was elected because its own configuration called it a participant (ZOOKEEPER-769).
#[test]
fn v6_an_observer_that_believes_it_is_a_voter() {
    let base = Ensemble::majority(3).with_demoted(3);
    let mut config = WorldConfig::new(base).with_history(3, Zxid(zxid(9, 9)));
    config.views.insert(ServerId(3), Ensemble::majority(3));
    let mut world = World::new(769, config);
    world.start_all([1, 2, 3]);
    assert_eq!(settles(&mut world, &[1, 2], 5 * SECOND), 2);
    for _ in 0..100 {
        world.run_for(100 * MILLI).unwrap();
        assert_ne!(world.brief(3).unwrap().state, Leading, "elected by those who may not");
        assert_eq!(world.leader(), Some(ServerId(2)));
    }
}

/// A server of weight 0 was elected, as its history was the newest (ZOOKEEPER-491).
#[test]
fn v6_a_server_without_weight_is_never_elected() {
    let groups = Ensemble::hierarchical(&[&[(1, 1), (2, 1), (3, 1)], &[(4, 1), (5, 1), (6, 0)]]);
    let config = WorldConfig::new(groups).with_history(6, Zxid(zxid(1, 7)));
    let mut world = World::new(491, config);
    world.start_all(1..=6);
    assert_eq!(settles(&mut world, &[1, 2, 3, 4, 5], 5 * SECOND), 5);
    assert_ne!(world.brief(6).unwrap().state, Leading);
}

/// Observers were counted in quorums (ZOOKEEPER-764): their registration, promise and acknowledgement
/// count for nothing.
#[test]
fn v6_an_observer_counts_for_no_quorum() {
    let ensemble = Ensemble::majority(3).with_observers([4]);
    let mut stage = Stage::new(&ensemble, 3, Contents::default());
    for peer in [1, 2] {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, 0, 0, 1));
    }
    assert_eq!(stage.status().state, Leading);
    let observer = stage.accept(Plane::Quorum, 4);
    stage.hear(observer, Packet::ObserverInfo(learner_info(4, 0)));
    stage.pass(SECOND);
    assert_eq!(leader_info(&mut stage, observer), None, "one voter and an observer are no quorum");

    let voter = registers(&mut stage, learner_info(1, 0));
    assert_eq!(leader_info(&mut stage, voter), Some(1));
    stage.hear(observer, ack_epoch(0, 0));
    assert_eq!(stage.status().phase, Phase::Discovery, "its promise is no voter's");
    stage.hear(voter, ack_epoch(0, 0));
    assert_eq!(stage.status().phase, Phase::Synchronization);
    stage.hear(observer, Packet::Ack(Zxid(zxid(1, 0))));
    assert!(!stage.status().serving, "nor is its acknowledgement");
    stage.hear(voter, Packet::Ack(Zxid(zxid(1, 0))));
    assert!(stage.status().serving);
}

// ---- connections ----

/// A server said in its introduction that it listens at 0.0.0.0; the peer with the larger id hung up
/// and dialled back to that, and the server could never join (ZOOKEEPER-2164). A known member is dialled
/// where the configuration says.
#[test]
fn c1_an_advertised_address_that_nobody_can_dial() {
    let useless = [("0.0.0.0", 3888), ("::", 3888), ("10.0.0.1", 0), ("10.0.0.2", 3888)];
    for (host, port) in useless {
        let mut world = World::new(2164, WorldConfig::new(Ensemble::majority(3)));
        world.advertise(1, HostPort { host: host.to_owned(), port });
        world.start_all([2, 3]);
        settles(&mut world, &[2, 3], 5 * SECOND);
        world.start(1);
        assert_eq!(settles(&mut world, &[1, 2, 3], SECOND), 3, "advertised {host}:{port}");
    }
}

/// Two servers with one id, or an address that leads back to its owner: refused, by name.
#[test]
fn c1_a_link_with_ones_own_id_is_refused() {
    let mut stage = Stage::new(&Ensemble::majority(3), 2, Contents::default());
    let link = stage.accept(Plane::Election, 2);
    assert_eq!(stage.hang_up_of(link), Some(Hangup::OwnId(ServerId(2))));
}

/// A peer whose address swallows SYNs blocked every other connection for the whole timeout, so that the
/// election itself timed out (ZOOKEEPER-3756, -822).
#[test]
fn c2_one_black_hole_stalls_nobody_else() {
    for id in 1..=3 {
        let mut world = World::new(3756, WorldConfig::new(Ensemble::majority(3)));
        world.black_hole(id, true);
        let others: Vec<i64> = (1..=3).filter(|other| *other != id).collect();
        world.start_all(others.iter().copied());
        let leader = settles(&mut world, &others, SECOND);
        assert_eq!(Some(leader), others.iter().max().copied());
    }
}

/// Both ends dialled at once and both kept the connection, or both dropped it; old workers leaked; the
/// vote on the dropped one was lost (ZOOKEEPER-880, -2836). Exactly one stays, however often it breaks.
#[test]
fn c3_exactly_one_connection_between_two_servers() {
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
fn c3_a_half_open_connection_does_not_keep_its_peer_out() {
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
fn e1_a_crash_at_every_write_of_an_epoch() {
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
/// a quorum has promised; no two reigns share one.
#[test]
fn e2_no_epoch_is_led_twice() {
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
fn e3_the_epoch_is_one_more_than_any_promise() {
    for (leaders, followers, new) in [(5, 5, 6), (5, 6, 7), (5, 20, 21), (5, 4, 6), (0, 0, 1)] {
        let mut stage = elected(durable(leaders, 0, 0));
        let link = registers(&mut stage, learner_info(1, followers));
        assert_eq!(leader_info(&mut stage, link), Some(new), "{leaders} and {followers}");
        assert_eq!(stage.durable().accepted_epoch, Epoch(new));
    }
}

/// An epoch was announced that the leader's own disk did not hold; after a crash it could be given
/// again (ZOOKEEPER-1192's kin). LEADERINFO waits for the disk.
#[test]
fn e3_an_epoch_is_announced_when_it_is_durable() {
    for survive in [0, 1] {
        let mut stage = elected(durable(5, 0, 0));
        stage.sync_at_once = false;
        let link = registers(&mut stage, learner_info(1, 5));
        assert_eq!(leader_info(&mut stage, link), None, "nothing is on the disk yet");
        assert_eq!(stage.writes_under_way(), 1);
        if survive == 0 {
            stage.sync();
            assert_eq!(leader_info(&mut stage, link), Some(6));
        }
        let survival = [Survival::Nothing, Survival::Everything][survive];
        let stage = stage.restarted(survival);
        assert_eq!(stage.durable().accepted_epoch, Epoch(6), "no announced epoch is forgotten");
    }
}

/// A quorum connected but never promised, and the leader used the epoch all the same. It takes over
/// nothing, and looks again when the time is over.
#[test]
fn e3_an_epoch_that_nobody_promised_is_not_used() {
    let mut stage = elected(durable(5, 3, 0));
    let link = registers(&mut stage, learner_info(1, 5));
    assert_eq!(leader_info(&mut stage, link), Some(6));
    stage.pass(29 * SECOND);
    assert_eq!(stage.status().phase, Phase::Discovery);
    stage.pass(3 * SECOND);
    assert!(stage.is_looking());
    assert_eq!(stage.durable().current_epoch, Epoch(3), "current epoch unchanged");
}

/// A learner that had promised the epoch before answers that this is no new promise, and is not counted
/// as one (ZOOKEEPER-1282's kin).
#[test]
fn e3_the_same_promise_is_not_counted_twice() {
    let (mut stage, leader) = follower(durable(6, 3, 0));
    let info = stage.packets(leader);
    assert!(matches!(
        info[..],
        [Packet::FollowerInfo(LearnerInfo { accepted_epoch: Epoch(6), .. })]
    ));
    stage.hear(leader, Packet::LeaderInfo { epoch: Epoch(6), protocol: LearnerInfo::PROTOCOL });
    let again = Packet::AckEpoch { last: Zxid(0), current_epoch: None };
    assert_eq!(stage.packets(leader), std::slice::from_ref(&again));

    let mut stage = Stage::new(&Ensemble::majority(5), 3, durable(5, 0, 0));
    for peer in [1, 2, 4, 5] {
        let link = stage.meet(peer);
        stage.hear(link, says(Looking, 3, 0, 0, 1));
    }
    assert_eq!(stage.status().state, Leading);
    let links = [1, 2].map(|id| registers(&mut stage, learner_info(id, 5)));
    stage.hear(links[0], ack_epoch(0, 0));
    stage.hear(links[1], again);
    let promised = stage.status().phase == Phase::Synchronization;
    assert!(!promised, "the leader and one other are no quorum of five");
}

/// A follower promises when the epoch is on its disk, and acknowledges the leader's history when the
/// current epoch is (ZOOKEEPER-3911, -4646).
#[test]
fn e3_a_follower_promises_what_its_disk_holds() {
    let (mut stage, leader) = follower(durable(5, 5, zxid(5, 2)));
    stage.sync_at_once = false;
    stage.packets(leader);
    stage.hear(leader, Packet::LeaderInfo { epoch: Epoch(6), protocol: LearnerInfo::PROTOCOL });
    assert_eq!(stage.packets(leader), [], "not yet on its disk");
    stage.sync();
    assert_eq!(stage.packets(leader), [ack_epoch(5, zxid(5, 2))]);
    assert_eq!(stage.durable().accepted_epoch, Epoch(6));
    stage.hear(leader, Packet::Diff(Zxid(zxid(5, 2))));
    let start = Zxid(zxid(6, 0));
    stage.hear(leader, Packet::NewLeader { zxid: start, config: bytes::Bytes::new() });
    assert_eq!(stage.packets(leader), []);
    stage.sync();
    assert_eq!(stage.packets(leader), [Packet::Ack(start)]);
    assert_eq!(stage.durable().current_epoch, Epoch(6));
    assert!(!stage.status().serving, "it serves when the leader says so");
    stage.hear(leader, Packet::UpToDate);
    assert!(stage.status().serving);
}

/// A leader overran a follower whose history was newer. Before a quorum has promised it looks again at
/// once; a follower of an older epoch, however long its log, is none of these.
#[test]
fn e3_a_follower_with_newer_history_deposes_a_leader_in_waiting() {
    let own = || durable(4, 4, zxid(4, 6));
    let mut stage = elected(own());
    let link = registers(&mut stage, learner_info(1, 4));
    stage.hear(link, ack_epoch(4, zxid(4, 7)));
    assert!(stage.is_looking(), "it has (4, 4.7), the leader (4, 4.6)");

    let mut stage = elected(own());
    let link = registers(&mut stage, learner_info(1, 4));
    stage.hear(link, ack_epoch(3, zxid(3, 99)));
    assert_eq!(stage.status().state, Leading, "(3, 3.99) is older");
}

/// A leader whose epoch is below our promise is none of ours.
#[test]
fn e3_an_epoch_below_the_promise_is_refused() {
    let (mut stage, leader) = follower(durable(7, 3, 0));
    stage.packets(leader);
    stage.hear(leader, Packet::LeaderInfo { epoch: Epoch(6), protocol: LearnerInfo::PROTOCOL });
    assert_eq!(stage.hang_up_of(leader), Some(Hangup::OldEpoch(Epoch(6))));
    assert_ne!(stage.status().state, Following);
    assert_eq!(stage.packets(leader), []);
    assert_eq!(stage.durable(), &durable(7, 3, 0));
}
