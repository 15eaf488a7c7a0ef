//! Servers come, go, die between any two writes and come back while the membership changes: all deliver the
//! same, and in the end everybody serves.

use std::time::Duration;

use crate::support::{s, voters, with_observers};
use crate::world::World;
use quorate_core::config::Config;
use quorate_core::membership::Membership;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::rng::Rng;

/// What is different from one story to the other.
struct Cast {
    /// Whether memberships have observers.
    observers: bool,
    settings: fn(&mut Config),
}

/// Whoever was away for long gets a snapshot: so little is in memory.
fn short(config: &mut Config) {
    (config.history.window_count, config.history.size_percent) = (2, None);
}

fn leased(config: &mut Config) {
    config.lease = Some(Duration::from_secs(6));
}

/// Five servers, of which three vote at first.
fn story(seed: u64, cast: &Cast) {
    let mut rng = Rng::new(seed);
    let mut world = World::with(&[1, 2, 3], cast.settings);
    for id in [4, 5] {
        world.add(id, &voters(&[1, 2, 3, id]));
    }
    world.run(World::all_serve);
    for _ in 0..if cfg!(miri) { 8 } else { 40 } {
        let id = 1 + i64::try_from(rng.below(5)).unwrap();
        let running = world.peers.contains_key(&s(id));
        match rng.below(9) {
            0 if running => world.kill(id),
            7 if running => {
                let outputs = usize::try_from(rng.below(8)).unwrap();
                world.kill_amid(id, outputs);
            }
            0..=2 if !running => world.start(id),
            3 | 4 if running => {
                let whole: Vec<_> = (1..=5).filter(|_| rng.below(5) < 3).collect();
                let mut observers: Vec<_> = (1..=5).filter(|id| !whole.contains(id)).collect();
                observers.retain(|_| cast.observers && rng.below(3) == 0);
                if whole.len() >= 2 {
                    let text = with_observers(&whole, &observers);
                    let asked = Reconfiguration::whole(Membership::parse(text).unwrap());
                    world.ask(id, &asked);
                }
            }
            5 if running => world.cut_off(id),
            6 => {
                world.cut_off.pop_first();
            }
            _ if running => drop(world.propose(id)),
            _ => {}
        }
        for _ in 0..rng.below(60) {
            world.next();
        }
    }
    world.cut_off.clear();
    for id in 1..=5 {
        if !world.peers.contains_key(&s(id)) {
            world.start(id);
        }
    }
    world.settle();
}

#[test]
fn random_changes_and_crashes_leave_one_history() {
    for seed in 0..if cfg!(miri) { 1 } else { 300 } {
        let settings = if seed % 2 == 0 { short } else { |_: &mut Config| {} };
        story(seed, &Cast { observers: false, settings });
    }
}

#[test]
fn so_they_do_with_observers() {
    for seed in 0..if cfg!(miri) { 1 } else { 300 } {
        let settings = if seed % 2 == 0 { short } else { |_: &mut Config| {} };
        story(seed, &Cast { observers: true, settings });
    }
}

/// With leases, nobody is established while another counts on its lease; see [`World::step`].
#[test]
fn so_they_do_with_leases() {
    for seed in 0..if cfg!(miri) { 1 } else { 100 } {
        story(seed, &Cast { observers: seed % 2 == 0, settings: leased });
    }
}
