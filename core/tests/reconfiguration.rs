//! The membership changes while the ensemble serves, in a small world of whole servers.

use std::time::Duration;

use crate::support::*;
use crate::world::*;
use bytes::Bytes;
use quorate_core::config::{Config, Election, Generations};
use quorate_core::input::Event;
use quorate_core::membership::{Member, Membership};
use quorate_core::message::Request;
use quorate_core::reasons::TransferRefused;
use quorate_core::reconfiguration::{Reconfiguration, Unchanged, body_of};
use quorate_core::report::Reason;
use quorate_core::txn::Txn;
use quorate_core::vote::ServerState;
use quorate_core::zxid::Epoch;

/// Nothing comes about in so long that has not come about by then. Miri has time for less.
const LONG: Duration = Duration::from_secs(if cfg!(miri) { 10 } else { 120 });

// --- growing and shrinking ---

#[test]
fn an_ensemble_grows_to_five_and_shrinks_to_three_while_everybody_writes() {
    let mut world = World::new(&[1, 2, 3]);
    assert_eq!(world.status(1).voters, 3);
    let mut asked: Vec<i32> = Vec::new();
    let steps = [
        (Some(4), join(&[4]), vec![1, 2, 3, 4]),
        (Some(5), join(&[5]), vec![1, 2, 3, 4, 5]),
        (None, leave(&[1, 2]), vec![3, 4, 5]),
    ];
    for (new, change, expected) in steps {
        if let Some(id) = new {
            world.add(id, &voters(&[1, 2, 3, id]));
            world.run(World::all_serve);
            assert!(!world.status(id).voter, "it follows, and has no vote yet");
        }
        asked.extend((0..10).map(|n| world.propose(1 + n % 3)));
        let change = world.ask(2, &change);
        asked.extend((0..10).map(|n| world.propose(1 + n % 3)));
        world.run(|world| world.outcome(change).is_some());
        assert_eq!(world.settle(), expected);
    }
    assert!(asked.iter().all(|cxid| world.outcome(*cxid).is_some_and(|txn| txn.header.kind == 5)));
    assert_eq!(world.status(3).current_epoch.0, 1, "nobody noticed");
    assert_eq!(world.leader(), 3);

    // Those that are left are enough, and those that left follow without a vote.
    world.kill(4);
    world.run(World::all_serve);
    let cxid = world.propose(5);
    world.run(|world| world.outcome(cxid).is_some());
    assert!(!world.status(1).voter && world.status(1).serving);
    world.kill(5);
    world.run(|world| !world.status(3).serving);
}

#[test]
fn the_version_is_the_zxid_and_the_text_the_same_everywhere() {
    let mut world = World::new(&[1, 2, 3]);
    let first = world.peers[&s(2)].config().membership.version();
    assert_eq!(first, start(1).0, "the first membership got its version with the first epoch");
    world.propose(1);
    let version = world.reconfigure(1, &Reconfiguration::change([], []).if_version(first));
    assert_eq!(version, Ok(z(1, 2).0), "the same members, another version");
    world.settle();
    let text = String::from_utf8(world.disks[&s(1)].membership.text().to_vec()).unwrap();
    assert!(text.ends_with("version=100000002"), "{text}");
    let txn = world.agreed.last().unwrap();
    assert_eq!(txn.body, body_of(&world.disks[&s(1)].membership));
}

#[test]
fn what_cannot_be_is_refused_in_its_turn_and_says_why() {
    let mut world = World::new(&[1, 2, 3]);
    let refused = |world: &mut World, asked: Reconfiguration| world.reconfigure(1, &asked).err();
    let twice = Member::parse(s(4), "host1:2888:4888").unwrap();
    let twice = Reconfiguration::change([twice], []);
    assert_eq!(refused(&mut world, twice), Some(Unchanged::Unsuitable));
    assert_eq!(refused(&mut world, leave(&[1, 2])), Some(Unchanged::Unsuitable), "one is too few");
    assert_eq!(refused(&mut world, leave(&[1]).if_version(7)), Some(Unchanged::Version));
    let non_members = Reconfiguration::whole(voters(&[3, 8, 9]));
    assert_eq!(refused(&mut world, non_members), Some(Unchanged::NoQuorum));
    let cxid = world.request(2, Request::RECONFIGURE, Bytes::from_static(b"nonsense"));
    world.run(|world| world.outcome(cxid).is_some());
    assert_eq!(world.outcome(cxid).unwrap().header.kind, Txn::REJECTED);
    assert_eq!(world.settle(), [1, 2, 3]);

    // Two at once: the second comes while the first is under way.
    let (first, second) = (world.ask(3, &leave(&[1])), world.ask(3, &leave(&[2])));
    world.run(|world| world.outcome(second).is_some());
    assert_eq!(world.outcome(first).unwrap().header.kind, Txn::RECONFIGURATION);
    let code = Unchanged::Underway.code().to_be_bytes();
    assert_eq!(world.outcome(second).unwrap().body, code[..]);
    assert_eq!(world.settle(), [2, 3]);

    let mut world = World::with(&[1, 2, 3], |config| config.reconfig_enabled = false);
    assert_eq!(refused(&mut world, join(&[4])), Some(Unchanged::Disabled));
    assert_eq!(world.peers[&s(1)].config().membership.version(), 0, "it stays as it was told");
}

// --- the leader leaves ---

/// The next leader is named, and takes over without an election; whoever asks waits a little.
#[test]
fn a_leader_removes_itself_and_follows_without_a_vote() {
    let mut world = World::new(&[1, 2, 3, 4]);
    assert_eq!(world.leader(), 4);
    let before: Vec<_> = (0..5).map(|_| world.propose(4)).collect();
    let gone = world.ask(1, &leave(&[4]));
    let after: Vec<_> = (0..5).map(|n| world.propose(1 + n % 4)).collect();
    let now = world.now;
    world.run(|world| world.outcome(gone).is_some());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!(world.now, now, "nothing was waited for");
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 2));
    assert_eq!(world.status(4).state, ServerState::Following);
    assert!(before.iter().all(|cxid| world.outcome(*cxid).is_some()));
    // What came through a follower may have been lost with its link, and is not known to be done.
    let own = after.iter().zip(0..).filter(|(_, n)| 1 + n % 4 == 4);
    assert!(own.map(|(cxid, _)| cxid).all(|cxid| world.outcome(*cxid).is_some()), "its own waited");
    let handed = world.reasons.iter().filter(
        |(_, reason)| matches!(reason, Reason::Transferred { from, to } if (from.0, to.0) == (4, 3)),
    );
    assert!(handed.count() >= 4, "everybody was told");

    world.kill(4);
    let cxid = world.propose(1);
    world.run(|world| world.outcome(cxid).is_some());
    assert_eq!(world.leader(), 3);
}

#[test]
fn a_leader_that_becomes_an_observer_observes_the_next_one() {
    let mut world = World::new(&[1, 2, 3]);
    let asked = Reconfiguration::change([member(3, "observer")], []);
    assert!(world.reconfigure(3, &asked).is_ok());
    assert_eq!(world.settle(), [1, 2]);
    assert_eq!((world.leader(), world.status(3).state), (2, ServerState::Observing));
    let back = Reconfiguration::change([member(3, "participant")], []);
    assert!(world.reconfigure(1, &back).is_ok());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!((world.leader(), world.status(3).state), (2, ServerState::Following));
}

/// The next leader does not begin before those have ended who do at this one what only a leader may; or before
/// they had time enough: their loss was told when that began.
#[test]
fn a_leader_that_leaves_waits_for_those_who_do_what_only_a_leader_may() {
    for ends in [true, false] {
        let mut world = World::new(&[1, 2, 3]);
        world.guarded = true;
        let begun = world.now;
        let cxid = world.ask(1, &leave(&[3]));
        world.run(|world| !world.sent_away.is_empty());
        let &[(id, release)] = &world.sent_away[..] else { panic!("{:?}", world.sent_away) };
        assert_eq!(id, s(3));
        assert!(world.outcome(cxid).is_none() && world.status(3).serving, "it still leads");
        if ends {
            world.queue.push_back((s(3), Event::Released(release)));
            world.run(|world| world.outcome(cxid).is_some());
            assert_eq!(world.now, begun, "nothing else was waited for");
        }
        assert_eq!(world.settle(), [1, 2]);
        assert_eq!(world.leader(), 2);
        assert_eq!(world.now >= begun + Duration::from_secs(1), !ends);
        assert_eq!(world.sent_away, [(s(3), release)], "once");
    }
}

/// Nobody else may lead: it leads on, at its new address.
#[test]
fn a_leader_that_moves_where_the_others_weigh_nothing_stays_in_its_leadership() {
    let mut world = World::new(&[1, 2, 3]);
    let text = ensemble(&[1, 2, 3]).replace("host3", "elsewhere").replace("version=0", "");
    let text = text + "group.1=1:2:3\nweight.1=0\nweight.2=0\nweight.3=1";
    let moved = world.ask(1, &Reconfiguration::whole(Membership::parse(text).unwrap()));
    let waits = world.propose(3);
    world.run(|world| world.outcome(moved).is_some() && world.outcome(waits).is_some());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 1));
}

/// Behind its own address it leads on no longer: another that may lead takes the leadership.
#[test]
fn a_leader_that_moves_hands_its_leadership_on_to_a_voter_with_weight() {
    let mut world = World::new(&[1, 2, 3]);
    let text = ensemble(&[1, 2, 3]).replace("host3", "elsewhere").replace("version=0", "");
    let text = text + "group.1=1:2:3\nweight.1=1\nweight.2=0\nweight.3=1";
    let moved = world.ask(1, &Reconfiguration::whole(Membership::parse(text).unwrap()));
    world.run(|world| world.outcome(moved).is_some());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!((world.leader(), world.status(1).current_epoch.0), (1, 2), "2 weighs nothing");
}

/// It could not be elected any more, and is: it does what it did.
#[test]
fn a_leader_that_weighs_nothing_from_now_on_leads_on() {
    let mut world = World::new(&[1, 2, 3]);
    let text = ensemble(&[1, 2, 3]).replace("version=0", "");
    let text = text + "group.1=1:2:3\nweight.1=1\nweight.2=1\nweight.3=0";
    assert!(
        world.reconfigure(1, &Reconfiguration::whole(Membership::parse(text).unwrap())).is_ok()
    );
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 1));
}

// --- roles change ---

#[test]
fn followers_become_observers_and_observers_followers_without_an_election() {
    let mut world = World::new(&[1, 2, 3]);
    world.add(4, &Membership::parse(with_observers(&[1, 2, 3], &[4])).unwrap());
    world.run(World::all_serve);
    let observer = Reconfiguration::change([member(4, "observer")], []);
    let now = world.now;
    assert!(world.reconfigure(2, &observer).is_ok());
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!(world.status(4).state, ServerState::Observing);
    let swap = Reconfiguration::change([member(4, "participant"), member(1, "observer")], []);
    assert!(world.reconfigure(4, &swap).is_ok());
    assert_eq!(world.settle(), [2, 3, 4]);
    assert_eq!(world.status(4).state, ServerState::Following);
    assert_eq!(world.status(1).state, ServerState::Observing);
    assert_eq!(world.now, now, "nothing was waited for");
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 1));
}

// --- both quorums ---

/// Asked for at a leader of 1, 2, 3 whom 4 and 5 follow; they go before it is proposed to them.
fn to_those_who_have_gone() -> World {
    let mut world = World::new(&[1, 2, 3]);
    for id in [4, 5] {
        world.add(id, &voters(&[1, 2, 3, id]));
    }
    world.run(World::all_serve);
    let asked = Reconfiguration::whole(voters(&[3, 4, 5]));
    world.ask(3, &asked);
    while world.disks[&s(3)].next.is_none() {
        let (id, event) = world.queue.pop_front().unwrap();
        world.step(id, event);
    }
    world.cut_off(4);
    world.cut_off(5);
    world
}

/// A leader without a quorum of the next membership gives up; what was under way binds until that quorum is
/// back, and then it comes to pass.
#[test]
fn a_leader_that_has_lost_the_next_voters_gives_up_and_the_change_comes_to_pass_when_they_are_back()
{
    let mut world = to_those_who_have_gone();
    world.run(|world| !world.status(3).serving);
    let (membership, before) = (world.disks[&s(3)].membership.version(), world.agreed.len());
    world.pass(LONG);
    assert!([1, 2, 3].iter().all(|id| !world.status(*id).serving), "the old ones are not enough");
    assert_eq!((world.disks[&s(3)].membership.version(), world.agreed.len()), (membership, before));
    world.cut_off.clear();
    assert_eq!(world.settle(), [3, 4, 5]);
}

/// Restarted with a change under way, they still need both.
#[test]
fn both_quorums_are_needed_after_a_restart_too() {
    let mut world = to_those_who_have_gone();
    world.run(|world| !world.status(3).serving);
    for id in [1, 2, 3] {
        world.kill(id);
        assert!(world.disks[&s(id)].next.is_some(), "{id} has seen it");
        world.start(id);
    }
    world.pass(LONG);
    assert!([1, 2, 3].iter().all(|id| !world.status(*id).serving));
    // The new ones alone are not enough either.
    world.kill(1);
    world.kill(2);
    world.cut_off.clear();
    world.pass(LONG);
    assert!([3, 4, 5].iter().all(|id| !world.status(*id).serving));
    world.start(1);
    world.run(|world| world.status(3).serving);
    world.start(2);
    assert_eq!(world.settle(), [3, 4, 5]);
}

/// What never reached another disk came to nothing, and the old membership goes on.
#[test]
fn a_change_that_died_with_its_leader_is_forgotten() {
    let mut world = World::new(&[1, 2, 3, 4]);
    world.cut_off(4);
    // It has not noticed yet.
    let before = world.disks[&s(1)].membership.clone();
    world.queue.clear();
    world.ask(4, &leave(&[1]));
    world.kill_after_writing(4);
    world.run(|world| {
        [1, 2, 3]
            .iter()
            .all(|id| world.status(*id).serving && world.status(*id).leader == Some(s(3)))
    });
    let cxid = world.propose(1);
    world.run(|world| world.outcome(cxid).is_some());
    world.cut_off.clear();
    world.start(4);
    assert_eq!(world.settle(), [1, 2, 3, 4]);
    assert_eq!(world.disks[&s(4)].membership, before);
}

/// 1 observes and is made a voter by a quorum of 2 and 3; before it hears of that, 2 is gone.
#[test]
fn a_voter_that_does_not_know_yet_that_it_is_one_votes_when_it_is_asked() {
    let text = with_observers(&[2, 3], &[1]);
    let membership = Membership::parse(text).unwrap();
    let mut world = World::new(&[]);
    [1, 2, 3].iter().for_each(|id| world.add(*id, &membership));
    world.run(World::all_serve);
    assert_eq!(world.leader(), 3);
    // Both voters have it in force, and 1 is told nothing any more.
    world.add(4, &voters(&[2, 3, 4]));
    world.run(World::all_serve);
    let cxid = world.ask(2, &join(&[4]));
    world.run(|world| world.outcome(cxid).is_some());
    assert_eq!(world.settle(), [2, 3, 4]);
    world.kill(1);
    let asked = Reconfiguration::change([member(1, "participant")], [s(4)]);
    assert!(world.reconfigure(2, &asked).is_ok());
    world.kill(4);
    world.run(|world| world.status(2).serving && world.disks[&s(2)].next.is_none());
    assert!(!world.disks[&s(1)].membership.is_participant(s(1)), "it knows nothing");
    world.start(1);
    world.kill(3);
    assert_eq!(world.settle(), [1, 2, 3]);
    assert_eq!(world.leader(), 2);
}

// --- the leadership and the membership ---

#[test]
fn the_leadership_is_not_handed_over_to_who_has_no_vote_nor_while_the_membership_changes() {
    let mut world = World::new(&[1, 2, 3]);
    world.add(4, &voters(&[1, 2, 3, 4]));
    world.run(World::all_serve);
    world.queue.push_back((s(3), Event::TransferLeadership(Some(s(4)))));
    world.run(|world| world.handed_over.len() == 1);
    world.ask(3, &join(&[4]));
    while world.disks[&s(3)].next.is_none() {
        let (id, event) = world.queue.pop_front().unwrap();
        world.step(id, event);
    }
    world.queue.push_front((s(3), Event::TransferLeadership(Some(s(1)))));
    world.settle();
    let refused = [Err(TransferRefused::NoFollower(s(4))), Err(TransferRefused::Reconfiguring)];
    assert_eq!(world.handed_over, refused.map(|outcome| (s(3), outcome)));
    world.queue.push_back((s(3), Event::TransferLeadership(Some(s(4)))));
    world.run(|world| world.handed_over.len() == 3);
    assert_eq!(world.settle(), [1, 2, 3, 4]);
    assert_eq!(world.leader(), 4);
}

/// With leases, the new voters have promised before they count.
#[test]
fn a_leader_with_a_lease_keeps_it_over_a_change() {
    let mut world = World::with(&[1, 2, 3], |config| config.lease = Some(Duration::from_secs(6)));
    for id in [4, 5] {
        world.add(id, &voters(&[1, 2, 3, id]));
        world.run(World::all_serve);
    }
    let lease = |world: &World| world.peers[&s(3)].leadership().and_then(|l| l.lease);
    world.run(|world| lease(world).is_some());
    assert!(world.reconfigure(1, &Reconfiguration::whole(voters(&[3, 4, 5]))).is_ok());
    assert_eq!(world.settle(), [3, 4, 5]);
    assert!(lease(&world) > Some(world.now));
    world.pass(Duration::from_secs(30));
    assert_eq!((world.leader(), world.status(3).current_epoch.0), (3, 1));
}

/// 4 votes in the next membership alone, and has more than 3; 2 and 5 are down. Within `initLimit` it is known that
/// 3 cannot lead, and then 4 does; where they elect by generation it is elected to begin with. On 953d248 it took three times as long, since the followers' patience ended first.
#[test]
fn who_is_named_leads_after_one_patience() {
    let generations = |config: &mut Config| {
        let timeout = Duration::from_millis(400);
        config.election = Election::Generation(Generations::within(timeout, 2 * timeout));
    };
    for settings in [(|_: &mut Config| {}) as fn(&mut Config), generations] {
        let mut world = World::with(&[], settings);
        let next = voters(&[3, 4, 5]).with_version(z(1, 2).0);
        for (id, last) in [(1, 2), (3, 2), (4, 3)] {
            world.add(id, &voters(&[1, 2, 3]).with_version(z(1, 0).0));
            let disk = world.disks.get_mut(&s(id)).unwrap();
            (disk.accepted, disk.current, disk.floor) = (Epoch(1), Epoch(1), z(1, 0));
            disk.log = entries(1, 1, last);
            disk.log[1] = change(z(1, 2), &[3, 4, 5]);
            disk.next = Some(next.clone());
            world.start(id);
        }
        world.run(|world| world.peers.values().any(|peer| peer.leadership().is_some()));
        let took = world.now.since_origin();
        let patience = world.peers[&s(3)].config().timing.init_time();
        assert!(took < patience * 3 / 2, "{took:?}");
        assert_eq!(world.leader(), 4);
    }
}

/// An observer that has promised more than anybody else serves, and becomes a voter: then its leader begins an epoch
/// above that promise, once.
#[test]
fn an_observer_that_has_promised_more_serves_and_may_become_a_voter() {
    let mut world = World::with(&[], |_| {});
    let membership = Membership::parse(with_observers(&[1, 2, 3], &[4])).unwrap();
    (1..=3).for_each(|id| world.add(id, &membership));
    world.run(|world| world.all_serve());
    world.add(4, &membership);
    world.kill(4);
    world.disks.get_mut(&s(4)).unwrap().accepted = Epoch(9);
    world.start(4);
    let leadership = world.status(3).current_epoch;
    world.run(|world| world.all_serve());
    assert_eq!(
        (world.status(4).accepted_epoch, world.status(4).current_epoch),
        (Epoch(9), leadership)
    );
    world.reconfigure(1, &join(&[4])).unwrap();
    assert_eq!(world.settle(), [1, 2, 3, 4]);
    assert_eq!(world.status(4).current_epoch, Epoch(10));
}
