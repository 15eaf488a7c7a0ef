//! Background faults, drawn for the campaigns of elections and of histories: connections, disks and clocks that are
//! worse than they should be, servers of older versions, and non-members that connect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::config::{Election, Generations, Ties};
use quorate_core::id::ServerId;

use crate::campaign::case::{Case, Condition, Draw, Purpose, Story};
use crate::disk::{DiskConfig, Survival};
use crate::network::{Dialect, NetworkConfig};
use crate::world::WorldConfig;

/// What may be wrong with connections.
pub(super) fn network(draw: &mut Draw<'_>, fair: NetworkConfig) -> NetworkConfig {
    let often = if draw.case.is_heaped() { 5 } else { 1 };
    let mut seldom = |of, condition, chance| if draw.one_in(of, condition) { chance } else { 0 };
    let linger = seldom(3, Condition::LingeringLinks, 0x8000);
    let slow_link = seldom(4, Condition::SlowLinks, 0x4000);
    let slow_dial = seldom(4, Condition::SlowDials, 0x2000);
    let damage = seldom(4, Condition::DamagedMessages, 30 * often);
    NetworkConfig {
        linger,
        linger_max: Duration::from_millis(draw.pick(&[30, 300, 1500])),
        slow_link,
        slow_rate: draw.pick(&[2, 20, 200]),
        slow_dial,
        damage,
        ..fair
    }
}

/// What may be wrong with disks, and what a crash leaves of them.
pub(super) fn disk(draw: &mut Draw<'_>, fair: DiskConfig) -> DiskConfig {
    let any = draw.one_in(2, Condition::EpochFilesLostFirst);
    let misordered = draw.one_in(3, Condition::WritesLostFirst);
    let survival = match (misordered, any) {
        (true, _) => Survival::Misordered,
        (false, true) => Survival::Any,
        (false, false) => Survival::Prefix,
    };
    let failing = if draw.one_in(5, Condition::FailingDisk) { 60 } else { 0 };
    DiskConfig { survival, failing, ..fair }
}

/// What may be wrong with clocks, with what servers say, and with who comes by.
pub(super) fn world(draw: &mut Draw<'_>, fair: WorldConfig) -> WorldConfig {
    let drift = match (draw.one_in(3, Condition::Drift), draw.one_in(6, Condition::FarOffClocks)) {
        (_, true) => 400_000,
        (true, false) => 50_000,
        (false, false) => 0,
    };
    let mut old = BTreeMap::new();
    let ids: Vec<ServerId> = fair.ensemble.ids().collect();
    for id in ids {
        match draw.rng.below(4) {
            0 => drop(old.insert(id, Dialect::V34)),
            1 => drop(old.insert(id, Dialect::V35)),
            2 => drop(old.insert(id, Dialect::V38)),
            _ => {}
        }
    }
    if !draw.one_in(4, Condition::OldVersions) {
        old.clear();
    }
    // Before there were changes of the membership, no server knew what to make of one.
    if fair.may_change {
        old.values_mut().for_each(|dialect| *dialect = Dialect::V38);
    }
    // Drawn by itself, so that whatever else a seed has stays as it is.
    let old_elect = draw.case.fork(Purpose::Reference, 0).below(2) == 0;
    let every = Duration::from_millis(draw.pick(&[3, 30, 300]));
    let non_members = draw.one_in(4, Condition::NonMembers).then_some(every);
    WorldConfig { drift, old, old_elect, non_members, ..fair }
}

/// How servers and applications come to know of changes of the membership, where there are any.
pub(super) fn memberships(draw: &mut Draw<'_>, fair: WorldConfig) -> WorldConfig {
    if !fair.may_change {
        return fair;
    }
    let mut rng = draw.case.fork(Purpose::Memberships, 1);
    let ids: Vec<ServerId> = fair.ensemble.ids().chain(fair.spares.iter().copied()).collect();
    let tells = draw.note(rng.below(2) == 0, Condition::StateTellsMembership);
    let slow = draw.note(rng.below(2) == 0, Condition::SlowSnapshots);
    let gap = Duration::from_millis(1 + rng.below(60));
    let mut some = |of: u64| -> BTreeSet<ServerId> {
        let any = rng.below(of) == 0;
        ids.iter().copied().filter(|_| rng.below(3) == 0 && any).collect()
    };
    let (mut unwilling, mut earlier) = (some(4), some(4));
    if !draw.note(!unwilling.is_empty(), Condition::Unwilling) {
        unwilling.clear();
    }
    if !draw.note(!earlier.is_empty(), Condition::EarlierVersions) {
        earlier.clear();
    }
    let mut old = fair.old;
    for id in earlier {
        old.entry(id).or_insert(Dialect::Earlier);
    }
    let mut network = fair.network;
    if slow {
        network.stream_gap_max = network.stream_gap_max.max(gap);
    }
    WorldConfig { tells, unwilling, old, network, ..fair }
}

/// How servers elect. Those of older versions know one way only, and so do those who come by. What else is drawn
/// is the same in both.
pub(super) fn election(case: &Case, fair: WorldConfig) -> WorldConfig {
    if !case.generation {
        return fair;
    }
    let timeout = Duration::from_millis(400);
    let rules = Generations {
        // Without it a server that comes back may depose the leader, which the other story forbids.
        pre_vote: case.story == Story::Elections || case.seed % 5 > 0,
        ties: if case.seed % 2 == 0 { Ties::BetterRanked } else { Ties::FirstCome },
        ..Generations::within(timeout, 2 * timeout)
    };
    let election = Election::Generation(rules);
    let old = fair.old.into_iter().filter(|(_, dialect)| *dialect == Dialect::Earlier).collect();
    WorldConfig { election, old, non_members: None, ..fair }
}
