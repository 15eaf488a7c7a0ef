//! Changes of the membership beside servers that know less of them: left by earlier versions, or of such a version.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_sim::{Contents, Dialect, Ensemble, FaultClass, World, WorldConfig};

const TICK: Duration = Duration::from_millis(200);
const SECOND: Duration = Duration::from_secs(1);

const fn z(epoch: i64, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), Counter(counter))
}

fn of(voters: &[i64]) -> Membership {
    let gone = (1..=5).filter(|id| !voters.contains(id));
    gone.fold(Ensemble::majority(5), Ensemble::without).membership().unwrap()
}

fn config(spares: &[i64]) -> WorldConfig {
    WorldConfig {
        may_change: true,
        spares: spares.iter().map(|id| ServerId(*id)).collect(),
        timing: Timing { tick: TICK, ..Timing::default() },
        ..WorldConfig::new(Ensemble::majority(3))
    }
}

/// 3 has a history with a change in it, and goes by what was before: 953d248 left servers like that behind when a
/// snapshot came with two changes. 1 has logged that change, and refuses a leader that does not know of it, rather than
/// give the change up and help to make a second leader.
#[test]
fn a_leader_that_does_not_know_of_a_change_is_refused() {
    let history = || Contents::ending(2, 2, z(2, 3)).and_change(2, &of(&[2, 4, 5]));
    let ignorant = history().and(2).with_snapshot(z(2, 5)).with_floor(z(2, 5));
    let config = WorldConfig { old: [(ServerId(3), Dialect::Earlier)].into(), ..config(&[4, 5]) };
    let config = config.with_disk(1, history().bound(false)).with_disk(3, ignorant);
    let both = history().and(2).bound(true);
    let config = [2, 4, 5].into_iter().fold(config, |all, id| all.with_disk(id, both.clone()));
    let mut world = World::new(1, config);
    world.start_all([1, 3]);
    world.run_for(20 * SECOND).unwrap();
    assert_eq!(world.leader(), None);
    assert!(world.coverage().of(FaultClass::OlderMembershipRefused) > 0);
}

/// 1 alone has a second change; 2, which takes no memberships with a snapshot, needs one, and 3 is gone for good. If
/// NEWLEADER waited for the change, the change for a leader, and the leader for 2's acknowledgement, nobody would ever
/// lead.
#[test]
fn who_needs_a_snapshot_and_cannot_be_told_of_a_change_is_served_in_the_end() {
    let first = Ensemble::majority(3).with_observers([4]).membership().unwrap();
    let second = Ensemble::majority(3).membership().unwrap();
    for dialect in [Dialect::Earlier, Dialect::V38] {
        let known = Contents::ending(2, 2, z(2, 3)).and_change(2, &first).bound(true);
        let known = known.with_snapshot(z(2, 4)).with_floor(z(2, 4)).and_change(2, &second);
        let config = WorldConfig { old: [(ServerId(2), dialect)].into(), ..config(&[4]) };
        let config =
            config.with_disk(1, known.bound(false)).with_disk(2, Contents::ending(1, 1, z(1, 2)));
        let mut world = World::new(1, config);
        world.start_all([1, 2]);
        let both = [1, 2].map(ServerId);
        let settled = world.run_until(|w| w.is_settled_among(both), 60 * SECOND).unwrap();
        assert!(settled.is_some(), "{dialect:?}");
        assert!(world.coverage().of(FaultClass::SyncSnap) > 0);
    }
}

/// 1 has logged a change and taken over a later epoch, whose leader died. It was cut elsewhere: 1 gives it up with the
/// transaction, and neither refuses its leader for it, now or later, nor puts it in force when its log is that long.
#[test]
fn a_change_that_was_cut_binds_no_more() {
    let history = || Contents::ending(3, 3, z(3, 5));
    let one = history().and_change(3, &of(&[1, 2, 3, 4])).bound(false).in_epoch(4, 4);
    let config = config(&[4]).with_disk(1, one).with_disk(2, history().in_epoch(5, 5));
    let mut world = World::new(1, config.with_disk(3, history().in_epoch(5, 5)));
    world.start_all(1..=3);
    let all = [1, 2, 3].map(ServerId);
    let settled = |w: &World| w.is_settled_among(all);
    assert!(world.run_until(settled, 20 * SECOND).unwrap().is_some());
    assert!(world.coverage().of(FaultClass::ChangeCut) > 0);
    world.propose(3, 1).unwrap();
    world.run_for(SECOND).unwrap();
    for id in [1, 2] {
        world.crash(id, quorate_sim::CrashKind::Process).unwrap();
        world.start(id);
        assert!(world.run_until(settled, 20 * SECOND).unwrap().is_some(), "{id} follows again");
    }
    let bound = world.durable(1).unwrap();
    assert!(bound.next_membership.is_none());
    assert!(bound.membership.as_ref().is_none_or(|present| !present.is_change()));
}
