//! Elections small enough to be followed on paper, with their figures, in the simulated world.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::vote::{Round, ServerState};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::{Contents, CrashKind, Ensemble, Stage, World, WorldConfig};

const SECOND: Duration = Duration::from_secs(1);

fn world(servers: i64) -> World {
    World::new(42, WorldConfig::new(Ensemble::majority(servers)))
}

/// A world whose servers' logs end at these counters of epoch 1.
fn world_at(counters: &[u32]) -> World {
    let servers = i64::try_from(counters.len()).unwrap();
    let mut config = WorldConfig::new(Ensemble::majority(servers));
    for (id, counter) in (1..).zip(counters) {
        config = config.with_history(id, Zxid::new(Epoch(1), Counter(*counter)));
    }
    World::new(42, config)
}

/// Runs until a server has won its election and these follow it; returns how long that took.
fn elects(world: &mut World, leader: i64, followers: &[i64]) -> Duration {
    let state = |w: &World, id| w.brief(id).map(|b| (b.state, b.leader));
    let leads = Some((ServerState::Leading, Some(ServerId(leader))));
    let follows = Some((ServerState::Following, Some(ServerId(leader))));
    let done = |w: &World| {
        state(w, leader) == leads && followers.iter().all(|id| state(w, *id) == follows)
    };
    world.run_until(done, 10 * SECOND).unwrap().unwrap_or_else(|| panic!("{leader} is not elected"))
}

fn settles(world: &mut World, leader: i64, among: &[i64]) {
    let ids: Vec<_> = among.iter().map(|id| ServerId(*id)).collect();
    let done = |w: &World| w.is_settled_among(ids.iter().copied());
    let took = world.run_until(done, 20 * SECOND).unwrap();
    assert!(took.is_some(), "{among:?} do not settle");
    assert_eq!(world.leader(), Some(ServerId(leader)));
}

fn rounds(world: &World, ids: &[i64]) -> Vec<i64> {
    ids.iter().map(|id| world.brief(*id).map_or(-1, |brief| brief.round.0)).collect()
}

fn is_looking(world: &World, id: i64) -> bool {
    world.brief(id).is_some_and(|brief| brief.state == ServerState::Looking)
}

#[test]
fn two_of_three_start() {
    let mut world = world(3);
    world.start(1);
    world.run_for(5 * SECOND).unwrap();
    assert!(is_looking(&world, 1), "one of three is no quorum");
    world.start(2);
    elects(&mut world, 2, &[1]);
    assert_eq!(rounds(&world, &[1, 2]), [1, 1]);
    settles(&mut world, 2, &[1, 2]);
}

/// A server that hears nobody waits 200, 400, 800, … 60,000 ms between its attempts, for ever.
#[test]
fn one_of_three_looks_for_ever_and_waits_longer_and_longer() {
    let mut stage = Stage::new(&Ensemble::majority(3), 1, Contents::default());
    let mut due = Vec::new();
    for _ in 0..6_000 {
        let met = stage.pass(Duration::from_millis(100));
        due.extend(met.into_iter().filter(|(_, timer)| *timer == Timer::Notification));
        for peer in [2, 3] {
            stage.refuse(Plane::Election, peer);
        }
    }
    let mut before = Instant::ORIGIN;
    let waits: Vec<u128> =
        due.iter().map(|(at, _)| (*at - std::mem::replace(&mut before, *at)).as_millis()).collect();
    let expected =
        [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000, 60_000];
    assert_eq!(waits[..expected.len()], expected);
    assert!(stage.is_looking());
    assert_eq!(stage.status().round, Round(1), "one election, one round");
}

#[test]
fn the_third_comes_late_and_follows_although_its_id_is_larger() {
    let mut world = world(3);
    world.start_all([1, 2]);
    settles(&mut world, 2, &[1, 2]);
    let reign = world.brief(2);
    world.start(3);
    let took = world.run_until(World::is_settled, 10 * SECOND).unwrap().expect("3 joins");
    assert!(took <= SECOND, "3 joined after {took:?}");
    assert_eq!(world.brief(2), reign, "the leader was not disturbed");
}

/// In every order of messages, provided that no two finish before the third is heard.
#[test]
fn all_three_start_together_and_the_largest_id_leads() {
    for seed in 0..200 {
        let mut world = World::new(seed, WorldConfig::new(Ensemble::majority(3)));
        world.start_all([1, 2, 3]);
        let took = elects(&mut world, 3, &[1, 2]);
        assert_eq!(rounds(&world, &[1, 2, 3]), [1, 1, 1]);
        // Once all votes are in nothing is waited for: half a dozen ways of at most 2 ms.
        assert!(took < Duration::from_millis(200), "seed {seed}: {took:?}");
        settles(&mut world, 3, &[1, 2, 3]);
    }
}

#[test]
fn the_newer_history_wins_over_the_larger_id() {
    let mut world = world_at(&[123, 123, 122]);
    world.start_all([1, 3]);
    elects(&mut world, 1, &[3]);
}

#[test]
fn of_five_two_fail_and_the_newest_of_the_others_leads() {
    let mut world = world_at(&[9, 9, 9, 8, 8]);
    world.start_all([3, 4, 5]);
    elects(&mut world, 3, &[4, 5]);
}

#[test]
fn two_votes_are_enough_of_three_and_never_of_five() {
    let mut world = world_at(&[98, 100, 100]);
    world.start_all([1, 2]);
    elects(&mut world, 2, &[1]);
    assert_eq!(rounds(&world, &[1, 2]), [1, 1]);

    let mut world = world_at(&[98, 100, 100, 100, 100]);
    world.start_all([1, 2]);
    world.run_for(120 * SECOND).unwrap();
    assert!(is_looking(&world, 1) && is_looking(&world, 2));
    assert_eq!(world.brief(1).map(|b| b.vote.leader), Some(ServerId(2)), "both vote for 2");
}

/// The majority elects; the minority looks, and follows when it can hear the others.
#[test]
fn a_partition_of_five() {
    let mut world = world(5);
    world.partition(&[&[1, 2], &[3, 4, 5]]);
    world.start_all(1..=5);
    settles(&mut world, 5, &[3, 4, 5]);
    world.run_for(100 * SECOND).unwrap();
    assert!(is_looking(&world, 1) && is_looking(&world, 2));
    world.heal();
    let took = world.run_until(World::is_settled, 10 * SECOND).unwrap().expect("they follow");
    assert!(took <= 3 * SECOND, "long waits from before play no part: {took:?}");
    assert_eq!(world.leader(), Some(ServerId(5)));
}

#[test]
fn a_leader_cut_off_with_a_minority_stops_leading() {
    let mut world = world(5);
    world.start_all(1..=5);
    settles(&mut world, 5, &[1, 2, 3, 4, 5]);
    world.partition(&[&[1, 5], &[2, 3, 4]]);
    let limit = 15 * SECOND + 2 * SECOND;
    let stopped = world.run_until(|w| is_looking(w, 5), limit).unwrap();
    assert!(stopped.is_some(), "it leads without a quorum after syncLimit");
    settles(&mut world, 4, &[2, 3, 4]);
    world.heal();
    settles(&mut world, 4, &[1, 2, 3, 4, 5]);
}

/// The rounds of the two sides of a partition cannot be compared; the minority's goes down to join.
#[test]
fn a_minority_in_a_later_round_joins_and_its_round_goes_down() {
    let mut world = world(5);
    world.start_all(1..=5);
    settles(&mut world, 5, &[1, 2, 3, 4, 5]);
    world.partition(&[&[1, 2], &[3, 4, 5]]);
    world.run_for(20 * SECOND).unwrap();
    assert!(is_looking(&world, 1) && is_looking(&world, 2));
    assert_eq!(rounds(&world, &[1, 2, 3, 4, 5]), [2, 2, 1, 1, 1]);
    world.heal();
    settles(&mut world, 5, &[1, 2, 3, 4, 5]);
    assert_eq!(rounds(&world, &[1, 2, 3, 4, 5]), [1; 5]);
}

#[test]
fn a_minority_in_an_earlier_round_joins() {
    let mut world = world(5);
    world.partition(&[&[1, 2], &[3, 4, 5]]);
    world.start_all(1..=5);
    settles(&mut world, 5, &[3, 4, 5]);
    world.crash(5, CrashKind::Process).unwrap();
    world.run_for(SECOND).unwrap();
    world.start(5);
    settles(&mut world, 5, &[3, 4, 5]);
    assert_eq!((rounds(&world, &[3, 4]), rounds(&world, &[1, 2])), (vec![2, 2], vec![1, 1]));
    world.heal();
    settles(&mut world, 5, &[1, 2, 3, 4, 5]);
    assert_eq!(rounds(&world, &[1, 2]), [2, 2]);
}

/// Server 1 returns in an earlier round, restarted or with its memory, and takes the later one.
#[test]
fn rounds_that_differ() {
    for restarted in [true, false] {
        let mut world = world(5);
        world.start_all([1, 2, 3]);
        settles(&mut world, 3, &[1, 2, 3]);
        world.start_all([4, 5]);
        settles(&mut world, 3, &[1, 2, 3, 4, 5]);
        assert_eq!(rounds(&world, &[1, 2, 3, 4, 5]), [1; 5]);
        if restarted {
            world.crash(1, CrashKind::Process).unwrap();
        } else {
            world.partition(&[&[2, 3, 4, 5], &[1]]);
        }
        world.crash(3, CrashKind::Process).unwrap();
        settles(&mut world, 5, &[2, 4, 5]);
        assert_eq!(rounds(&world, &[2, 4, 5]), [2, 2, 2]);
        if !restarted {
            world.run_until(|w| is_looking(w, 1), 20 * SECOND).unwrap().expect("1 is alone");
            assert_eq!(rounds(&world, &[1]), [2]);
        }
        world.crash(5, CrashKind::Process).unwrap();
        world.run_for(SECOND).unwrap();
        assert_eq!(rounds(&world, &[2, 4]), [3, 3]);
        world.start(1);
        world.heal();
        settles(&mut world, 4, &[1, 2, 4]);
        assert_eq!(rounds(&world, &[1, 2, 4]), [3, 3, 3], "restarted: {restarted}");
    }
}

/// A notification is written, and its link breaks before the peer reads it: the vote is sent again on
/// the next link, and the election ends as it would have.
#[test]
fn a_vote_that_was_lost_with_its_link_is_said_again() {
    let mut lost = 0;
    for steps in 1..60 {
        let mut world = world(3);
        world.start_all([1, 2]);
        for _ in 0..steps {
            world.step().unwrap();
        }
        let before = world.coverage().of(quorate_sim::FaultClass::MessageLost);
        world.cut(1, 2);
        lost += world.coverage().of(quorate_sim::FaultClass::MessageLost) - before;
        elects(&mut world, 2, &[1]);
        assert_eq!(rounds(&world, &[1, 2]), [1, 1], "cut after {steps} steps");
        settles(&mut world, 2, &[1, 2]);
    }
    assert!(lost > 0, "no message was ever lost");
}

/// The leader of epoch 1 has logged (1, 5), which nobody else has, and dies; the others elect. It comes
/// back, has a newer zxid but not a newer epoch, and does not win; (1, 5) is delivered nowhere. If it
/// comes back before the next epoch it wins, and (1, 5) is delivered everywhere.
#[test]
fn an_old_leader_comes_back() {
    let shorter = || Contents::ending(1, 1, Zxid::new(Epoch(1), Counter(4)));
    let longer = || shorter().and(1);
    let after = |world: &World| [1, 2, 3].map(|id| world.applied(id).map(|state| state.count));

    let config = WorldConfig::new(Ensemble::majority(3))
        .with_disk(1, shorter())
        .with_disk(2, shorter())
        .with_disk(3, longer());
    let mut world = World::new(42, config.clone());
    world.start_all([1, 2]);
    settles(&mut world, 2, &[1, 2]);
    world.start(3);
    settles(&mut world, 2, &[1, 2, 3]);
    assert_eq!(after(&world), [Some(4); 3], "(1, 5) is cut");

    // Somebody has written meanwhile: a cut would cross into another epoch, so it gets everything.
    let mut world = World::new(42, config.clone());
    world.start_all([1, 2]);
    settles(&mut world, 2, &[1, 2]);
    world.propose(1, 1).unwrap();
    world.run_for(SECOND).unwrap();
    world.start(3);
    settles(&mut world, 2, &[1, 2, 3]);
    assert_eq!(after(&world), [Some(5); 3]);
    assert_eq!(world.checker().committed(), Zxid::new(Epoch(2), Counter(1)));
    assert!(world.durable(3).unwrap().get(Zxid::new(Epoch(1), Counter(5))).is_none());

    let mut world = World::new(42, config);
    world.start_all([1, 2, 3]);
    settles(&mut world, 3, &[1, 2, 3]);
    assert_eq!(after(&world), [Some(5); 3], "nobody had promised anything newer");
}

/// Server 1 leads epoch 1, commits (1, 5) with its own acknowledgement and that of server 2, and dies;
/// server 3 is at (1, 4). Server 2 must win although 3 is larger, and 3 gets (1, 5).
#[test]
fn a_committed_transaction_survives() {
    let at = |counter| Contents::ending(1, 1, Zxid::new(Epoch(1), Counter(counter)));
    let config = WorldConfig::new(Ensemble::majority(3)).with_disk(2, at(5)).with_disk(3, at(4));
    let mut world = World::new(42, config.with_disk(1, at(5)));
    world.start_all([2, 3]);
    settles(&mut world, 2, &[2, 3]);
    assert_eq!(world.applied(3).map(|state| state.count), Some(5));
    assert_eq!(world.checker().committed(), Zxid::new(Epoch(1), Counter(5)));
}
