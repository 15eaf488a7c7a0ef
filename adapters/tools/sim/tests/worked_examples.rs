//! Elections small enough to be followed on paper, where one run of them is not enough. Those that are told
//! by one are in `scenarios/`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::time::Instant;
use quorate_core::timers::Timer;
use quorate_core::vote::{Round, ServerState};
use quorate_sim::{Contents, Ensemble, Stage, World, WorldConfig};

const SECOND: Duration = Duration::from_secs(1);

fn world(servers: i64) -> World {
    World::new(42, WorldConfig::new(Ensemble::majority(servers)))
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
