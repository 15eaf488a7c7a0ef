//! A server with little room on its disk: it offers its leadership to one that has more, and is offered none.
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

use std::time::Duration;

use crate::world::World;
use quorate_core::id::ServerId;
use quorate_core::input::Event;
use quorate_core::reasons::TransferRefused;
use quorate_core::report::Reason;

/// Three servers that serve under 3.
fn three() -> World {
    let mut world = World::new(&[1, 2, 3]);
    world.run(World::all_serve);
    world.pass(Duration::from_secs(30));
    assert_eq!(world.leader(), 3);
    world
}

fn low(world: &mut World, id: i64, low: bool) {
    world.queue.push_back((ServerId(id), Event::DiskLow(low)));
}

fn minute(world: &mut World) {
    world.pass(Duration::from_secs(60));
}

#[test]
fn a_leader_with_little_room_lets_one_lead_that_has_more_and_is_not_given_it_back() {
    let mut world = three();
    world.reasons.clear();
    low(&mut world, 3, true);
    minute(&mut world);
    assert_eq!(world.leader(), 2);
    assert!(world.all_serve());
    let handed = Reason::Transferred { from: ServerId(3), to: ServerId(2) };
    let reasons: Vec<_> = world.reasons.iter().map(|(_, reason)| reason).collect();
    assert!(reasons.contains(&&handed), "{reasons:?}");
    assert!(!reasons.contains(&&Reason::OwnVote), "no election was needed: {reasons:?}");
    low(&mut world, 2, true);
    minute(&mut world);
    assert_eq!(world.leader(), 1, "3 has as little");
    world.queue.push_back((ServerId(1), Event::TransferLeadership(Some(ServerId(3)))));
    minute(&mut world);
    assert_eq!(world.leader(), 1);
    let refused = Err(TransferRefused::Unheard(ServerId(3)));
    assert_eq!(world.handed_over, [(ServerId(1), refused)]);
    low(&mut world, 3, false);
    minute(&mut world);
    assert_eq!(world.leader(), 1, "room alone is no reason for a change");
    low(&mut world, 1, true);
    minute(&mut world);
    assert_eq!(world.leader(), 3);
}

/// To go without a leader would be worse than to be without one when the disk is full.
#[test]
fn a_leader_leads_on_where_all_have_little_room_and_so_does_one_alone() {
    let mut world = three();
    for id in [1, 2, 3] {
        low(&mut world, id, true);
    }
    let epoch = world.status(3).current_epoch;
    minute(&mut world);
    assert_eq!((world.leader(), world.status(3).current_epoch), (3, epoch));
    world.kill(3);
    minute(&mut world);
    assert_eq!(world.leader(), 2, "it is elected as any other");
    let mut alone = World::new(&[1]);
    alone.run(World::all_serve);
    low(&mut alone, 1, true);
    minute(&mut alone);
    assert!(alone.all_serve());
}

/// What is preferred is not what has no room: the leadership would go to and fro.
#[test]
fn a_wish_counts_for_nothing_where_there_is_little_room() {
    let mut world = World::with(&[1, 2, 3], |config| {
        if config.id == ServerId(1) {
            config.priority = 9;
        }
    });
    minute(&mut world);
    assert_eq!(world.leader(), 1);
    low(&mut world, 1, true);
    minute(&mut world);
    let (leader, epoch) = (world.leader(), world.status(2).current_epoch);
    assert_ne!(leader, 1);
    minute(&mut world);
    assert_eq!((world.leader(), world.status(2).current_epoch), (leader, epoch));
    low(&mut world, 1, false);
    minute(&mut world);
    assert_eq!(world.leader(), 1);
}
