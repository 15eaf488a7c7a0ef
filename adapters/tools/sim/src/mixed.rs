//! Starts of ensembles in which servers of ZooKeeper vote beside servers of ours.
//!
//! ```text
//!   3 voters, one of ours at least ── histories of different ends ── two start at once, the third up to 250 ms later
//! ```
//!
//! Servers of ZooKeeper may lose a round by themselves, and so may one of them among five: its 200 ms are over some
//! milliseconds before a better vote reaches those who elected it, and theirs are not. (Three of them alone: one start
//! in 12,000.)
//!
//! No link breaks and no server ends. A server that is not served soon has taken part in a round that the
//! others left: it waits for them as long as a leadership may take to begin (`initLimit`).

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;
use quorate_core::zxid::{Counter, Epoch, Zxid};
use thiserror::Error;

use crate::disk::Contents;
use crate::ensemble::Ensemble;
use crate::faults::Coverage;
use crate::network::{Dialect, NetworkConfig, up_to};
use crate::rule::Violation;
use crate::world::{World, WorldConfig};

/// How late a server may be: a little more than ZooKeeper waits for a better vote.
const LATE_MAX: Duration = Duration::from_millis(250);
/// How long after the last start all have to be served; an `initLimit` is twice as long.
const SERVED_MAX: Duration = Duration::from_secs(2);

/// What went wrong at a start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StartFailed {
    /// Not every server serves after so long.
    #[error("not served in {limit:?}: {servers}")]
    NotServed {
        /// How long.
        limit: Duration,
        /// How each server stands.
        servers: String,
    },
    /// A rule was broken.
    #[error(transparent)]
    Broken(#[from] Violation),
}

/// One start.
///
/// # Errors
///
/// What went wrong: which server was not served in time, or which rule was broken.
pub fn start(seed: u64) -> Result<Coverage, StartFailed> {
    let mut world = World::new(seed, config(seed));
    let mut rng = Rng::new(seed ^ 0x57a7);
    let ids: Vec<i64> = world.ensemble().ids().map(|id| id.0).collect();
    let late = usize::try_from(rng.below(ids.len() as u64)).unwrap_or(0);
    let wait = up_to(&mut rng, LATE_MAX);
    for (at, id) in ids.iter().enumerate() {
        let wait = if at == late { wait } else { up_to(&mut rng, Duration::from_millis(5)) };
        world.start_after(*id, wait);
    }
    let limit = LATE_MAX + SERVED_MAX;
    let served = |world: &World| ids.iter().all(|id| world.brief(*id).is_some_and(|b| b.serving));
    match world.run_until(served, limit) {
        Ok(Some(_)) => Ok(world.coverage()),
        Ok(None) => {
            let of = |id: &i64| format!("{id}: {:?}", world.brief(*id).map(|b| (b.state, b.phase)));
            let all: Vec<_> = ids.iter().map(of).collect();
            Err(StartFailed::NotServed { limit, servers: all.join(", ") })
        }
        Err(violation) => Err(violation.into()),
    }
}

/// What the start of a seed is made of.
pub fn config(seed: u64) -> WorldConfig {
    let mut rng = Rng::new(seed);
    let voters = 3;
    let ensemble = Ensemble::majority(voters);
    let mut old = BTreeMap::new();
    let mut disks = BTreeMap::new();
    for id in (1..=voters).map(ServerId) {
        if rng.below(2) == 0 {
            old.insert(id, Dialect::V38);
        }
        let common = Zxid::new(Epoch(5), Counter(7));
        let contents = match rng.below(4) {
            0 => Contents::ending(6, 6, common).and(6),
            1 => Contents::ending(6, 6, Zxid::new(Epoch(5), Counter(6))),
            _ => Contents::ending(6, 6, common),
        };
        disks.insert(id, contents);
    }
    if old.len() == ensemble.ids().count() {
        old.remove(&ServerId(1 + i64::try_from(seed % 3).unwrap_or(0)));
    }
    WorldConfig {
        disks,
        old,
        old_elect: true,
        timing: Timing { tick: Duration::from_millis(400), ..Timing::default() },
        network: NetworkConfig {
            latency_max: Duration::from_millis(1),
            ..NetworkConfig::default()
        },
        keep_log: false,
        ..WorldConfig::new(ensemble)
    }
}
