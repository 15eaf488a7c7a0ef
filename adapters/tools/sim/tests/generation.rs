//! Ensembles that elect by generation, through what has gone wrong with such elections elsewhere, at every moment
//! at which it could. What a single message may do stands beside the clock; what random accidents do, in `campaign`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use quorate_core::config::{Election, Generations};
use quorate_core::generation_message::{Body, Generation, GrantedVote};
use quorate_core::id::ServerId;
use quorate_core::message::Message;
use quorate_core::output::{Output, Write};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::{Contents, CrashKind, Ensemble, World, WorldConfig};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_millis(300);

fn config(servers: i64) -> WorldConfig {
    let election = Election::Generation(Generations::within(150 * MILLI, TIMEOUT));
    WorldConfig { election, ..WorldConfig::new(Ensemble::majority(servers)) }
}

fn started(seed: u64, config: WorldConfig) -> World {
    let mut world = World::new(seed, config);
    for id in world.ensemble().ids().collect::<Vec<_>>() {
        world.start(id.0);
    }
    world
}

fn settles(world: &mut World, among: &[i64], limit: Duration) -> i64 {
    let ids: Vec<_> = among.iter().map(|id| ServerId(*id)).collect();
    let took = world.run_until(|w| w.is_settled_among(ids.iter().copied()), limit).unwrap();
    assert!(took.is_some(), "{among:?} do not settle within {limit:?}");
    world.leader().unwrap().0
}

fn grants(output: &Output) -> bool {
    matches!(output, Output::Persist { write: Write::GrantedVote { .. }, .. })
}

fn tells(output: &Output) -> bool {
    let Output::Send { message: Message::Generation(message), .. } = output else { return false };
    matches!(message.body, Body::VoteResponse { granted: true, .. })
}

fn others(of: i64, servers: i64) -> Vec<i64> {
    (1..=servers).filter(|id| *id != of).collect()
}

/// Every voter crashes just before, and just after, its vote is on its way to the disk, and to the candidate. The
/// checker knows what each has told, and what its disk has.
#[test]
fn voters_crash_around_their_votes() {
    for at in [grants, tells] {
        for seed in 0..40 {
            let mut world = started(seed, config(3));
            let old = settles(&mut world, &[1, 2, 3], 10 * SECOND);
            let rest = others(old, 3);
            if seed % 2 == 0 {
                world.crash_before(rest[0], at);
            } else {
                world.crash_after(rest[1], at);
            }
            world.crash(old, CrashKind::Power).unwrap();
            world.run_for(SECOND).unwrap();
            for id in 1..=3 {
                world.start(id);
            }
            settles(&mut world, &[1, 2, 3], 10 * SECOND);
        }
    }
}

/// All lose power at once, whatever they are doing; votes that were told are there again.
#[test]
fn all_crash_at_once() {
    for seed in 0..60 {
        let mut world = started(seed, config(3));
        world.run_for(Duration::from_millis(150 + 3 * seed)).unwrap();
        for id in 1..=3 {
            world.crash(id, CrashKind::Power).unwrap();
        }
        for id in 1..=3 {
            world.start(id);
        }
        settles(&mut world, &[1, 2, 3], 10 * SECOND);
    }
}

/// One is behind by many generations, and one by a transaction; the third is gone.
#[test]
fn a_late_generation_and_a_longer_log() {
    let z = |counter| Zxid::new(Epoch(5), Counter(counter));
    for seed in 0..40 {
        let voted = |generation, vote, last| {
            let mut contents = Contents::ending(5, 5, last);
            contents.granted_vote =
                GrantedVote { generation: Generation(generation), vote: ServerId(vote) };
            contents
        };
        let mut config = config(3);
        for (id, contents) in [(1, voted(9, 1, z(2))), (2, voted(7, 2, z(9)))] {
            config = config.with_disk(id, contents);
        }
        let mut world = World::new(seed, config.with_disk(3, voted(9, 1, z(2))));
        world.start(1);
        world.start(2);
        assert_eq!(settles(&mut world, &[1, 2], 4 * TIMEOUT), 2);
    }
}

/// Cut off for twenty time-outs, and back: the same leader, in the same generation.
#[test]
fn whoever_was_cut_off_deposes_nobody() {
    for seed in 0..30 {
        let mut world = started(seed, config(3));
        let leader = settles(&mut world, &[1, 2, 3], 10 * SECOND);
        let round = world.brief(leader).unwrap().round;
        let cut = others(leader, 3)[usize::try_from(seed % 2).unwrap()];
        let rest = others(cut, 3);
        world.partition(&[&[cut], &rest]);
        world.run_for(20 * TIMEOUT).unwrap();
        assert_eq!(world.brief(leader).unwrap().round, round);
        world.heal();
        assert_eq!(settles(&mut world, &[1, 2, 3], 10 * SECOND), leader);
        assert_eq!(world.brief(cut).unwrap().round, round);
    }
}

/// The leadership is given to a server that dies: there is a leader again within two time-outs, and whoever is left
/// notices it in time.
#[test]
fn the_leadership_is_given_to_one_that_dies() {
    for after in 0..40 {
        let mut world = started(after, config(3));
        let leader = settles(&mut world, &[1, 2, 3], 10 * SECOND);
        let rest = others(leader, 3);
        world.transfer(leader, Some(rest[0])).unwrap();
        world.run_for(Duration::from_micros(250 * after)).unwrap();
        world.crash(rest[0], CrashKind::Process).unwrap();
        // The leader waits for the one it has offered the leadership to, no longer than a second.
        settles(&mut world, &[leader, rest[1]], SECOND + 2 * TIMEOUT);
        assert!(world.check_history().is_ok());
    }
}

/// A leader is cut off; it gives up by its own clock, and answers no read that misses what the others have written.
#[test]
fn a_leader_that_is_cut_off_gives_up_and_answers_nobody() {
    for seed in 0..30 {
        let mut world = started(seed, config(3));
        let old = settles(&mut world, &[1, 2, 3], 10 * SECOND);
        let rest = others(old, 3);
        world.partition(&[&[old], &rest]);
        for _ in 0..12 {
            world.read_cell(old, 1).unwrap();
            world.propose(rest[0], 1).unwrap();
            world.run_for(100 * MILLI).unwrap();
        }
        assert_ne!(settles(&mut world, &rest, 2 * SECOND), old);
        assert_eq!(world.brief(old).unwrap().leader, None, "it knows by its own clock");
        world.heal();
        settles(&mut world, &[1, 2, 3], 10 * SECOND);
        world.check_history().unwrap();
    }
}

/// The operations of the example in `linear`, through a leader, which dies at each moment of the write: a later
/// read never misses what an earlier one has seen.
#[test]
fn through_a_leader_the_same_operations_have_an_order() {
    for outputs in 1..60 {
        let mut world = started(outputs, config(3));
        let leader = settles(&mut world, &[1, 2, 3], 10 * SECOND);
        let rest = others(leader, 3);
        world.propose(leader, 1).unwrap();
        world.run_for(20 * MILLI).unwrap();
        world.crash_after_outputs(leader, outputs, Some(SECOND));
        world.propose(leader, 1).unwrap();
        for turn in 0..40 {
            world.read_cell(rest[turn % 2], 1).unwrap();
            world.run_for(50 * MILLI).unwrap();
        }
        world.start(leader);
        settles(&mut world, &[1, 2, 3], 10 * SECOND);
        assert!(world.check_history().unwrap() > 1);
    }
}
