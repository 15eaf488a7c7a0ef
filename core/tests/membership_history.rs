//! What a history knows of the membership binds its server, at each crash and however the history came: two leaders
//! of one epoch come of a change that is in a log and binds nobody.

use crate::support::*;
use crate::world::*;
use quorate_core::input::Event;
use quorate_core::membership::Membership;
use quorate_core::message::{Message, Packet};
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::vote::ServerState;

fn whole(ids: &[i64]) -> Reconfiguration {
    Reconfiguration::whole(voters(ids))
}

fn leads(world: &World, id: i64) -> bool {
    let Some(peer) = world.peers.get(&s(id)) else { return false };
    let status = peer.status();
    status.state == ServerState::Leading && status.serving
}

fn in_force(world: &World, id: i64, voters: &[i64]) -> bool {
    has(&world.disks[&s(id)].membership, voters)
}

fn has(membership: &Membership, voters: &[i64]) -> bool {
    membership.participants().map(|member| member.id.0).eq(voters.iter().copied())
}

/// 1, 2, 3 vote; 3 has led epoch 1 and died with a transaction that it alone has; 2 leads, and 4 and 5 follow
/// without a vote. 3 comes back and is sent a snapshot, which takes its time.
fn a_snapshot_on_its_way(orphan: impl Fn(&mut World)) -> World {
    let mut world = World::new(&[1, 2, 3]);
    for id in [4, 5] {
        world.add(id, &voters(&[1, 2, 3, id]));
    }
    world.run(World::all_serve);
    let cxid = world.propose(3);
    world.run(|world| world.outcome(cxid).is_some());
    world.cut_off(3);
    world.queue.clear();
    orphan(&mut world);
    world.cut_off.clear();
    let serve =
        |world: &World| [1, 2, 4, 5].iter().all(|id| world.status(*id).serving) && leads(world, 2);
    world.run(serve);
    for _ in 0..3 {
        let cxid = world.propose(2);
        world.run(|world| world.outcome(cxid).is_some());
    }
    world.slow.insert(s(3));
    world.start(3);
    world.step_until(|world| !world.held.is_empty());
    world
}

/// Nothing passes between {1, 3} and {2, 4, 5}: never is there a leader on both sides.
fn the_two_sides_never_lead_both(world: &mut World) {
    for near in [1, 3] {
        for far in [2, 4, 5] {
            world.block(near, far);
        }
    }
    let mut both = (false, false);
    for _ in 0..20_000 {
        if world.next_is_later() > 600 {
            break;
        }
        world.next();
        both.0 |= leads(world, 1) || leads(world, 3);
        both.1 |= [2, 4, 5].iter().any(|id| leads(world, *id));
    }
    assert!(!(both.0 && both.1), "the two sides have led");
    assert!(both.1, "those of the membership in force lead");
}

/// R1 came into force while the snapshot was under way, R2 is proposed when NEWLEADER leaves: that tells of R2 alone.
#[test]
fn of_two_changes_across_a_snapshot_the_first_binds_too() {
    let mut world = a_snapshot_on_its_way(|world| {
        world.propose(3);
        while world.disks[&s(3)].log.len() < 2 {
            let (to, event) = world.queue.pop_front().unwrap();
            if to == s(3) {
                world.step(to, event);
            }
        }
        world.kill(3);
    });
    world.ask(2, &whole(&[2, 4, 5]));
    let activates = |(to, event): &(_, Event)| {
        let Event::Received { message: Message::Packet(packet), .. } = event else { return false };
        *to == s(1) && matches!(packet, Packet::CommitAndActivate { .. })
    };
    world.step_until(|world| world.queue.iter().any(activates));
    world.kill(1);
    world.step_until(|world| [2, 4, 5].iter().all(|id| in_force(world, *id, &[2, 4, 5])));
    world.ask(2, &whole(&[2, 4]));
    world.step_until(|world| world.disks[&s(2)].next.is_some());
    world.block(2, 4);
    world.block(2, 5);
    world.queue.retain(|(to, _)| ![s(4), s(5)].contains(to));
    world.release();
    world.step_until(|world| world.disks[&s(3)].current.0 == 2);
    world.block(2, 3);
    world.unblock(2, 4);
    world.unblock(2, 5);
    world.start(1);
    the_two_sides_never_lead_both(&mut world);
}

/// 3 has an uncommitted change in its log; a crash at the moment when the history that it was sent takes the
/// place of its own must not leave it with the membership of before.
#[test]
fn a_history_and_what_it_knows_of_the_membership_are_installed_in_one_step() {
    let mut world = a_snapshot_on_its_way(|world| {
        world.ask(3, &whole(&[1, 3, 4]));
        world.kill_after_writing(3);
    });
    world.ask(2, &whole(&[2, 4, 5]));
    let activates = |(to, event): &(_, Event)| {
        let Event::Received { message: Message::Packet(packet), .. } = event else { return false };
        *to == s(1) && matches!(packet, Packet::CommitAndActivate { .. })
    };
    world.step_until(|world| world.queue.iter().any(activates));
    world.kill(1);
    world.step_until(|world| [2, 4, 5].iter().all(|id| in_force(world, *id, &[2, 4, 5])));
    let cxid = world.propose(2);
    world.step_until(|world| world.outcome(cxid).is_some());
    world.dies_at_install.insert(s(3));
    world.release();
    world.step_until(|world| !world.peers.contains_key(&s(3)));
    world.start(1);
    world.start(3);
    the_two_sides_never_lead_both(&mut world);
}
