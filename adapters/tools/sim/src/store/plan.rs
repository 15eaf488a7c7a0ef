//! The plan of a run from its seed, and what is counted in the run.

use std::time::Duration;

use quorate_core::rng::Rng;

use super::world::pick;

/// For how long a server serves that hears nothing of the leader.
pub const SYNC_LIMIT: Duration = Duration::from_secs(3);

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where all chance comes from.
    pub seed: u64,
    /// How many candidates there are.
    pub candidates: usize,
    /// After how much silence the store ends a session.
    pub timeout: Duration,
    /// For how long accidents happen.
    pub accidents: Duration,
    /// An operator deletes nodes.
    pub deletions: bool,
    /// The counter of the root at the beginning.
    pub counter: i32,
    /// What comes from a connection that is lost takes effect though the session has moved on, as in etcd,
    /// where a lease is on no connection. A candidate that stops ends its session then.
    pub late: bool,
    /// Servers are cut off from the leader now and then.
    pub cuts: bool,
    /// The leader hears of sessions from their servers, every fifth of the time-out.
    pub touches: bool,
    /// A candidate relies on the heartbeat that was answered last, though only earlier ones are sure to be counted.
    pub hasty: bool,
    /// By how much a clock may run faster or slower: so many thousandths.
    pub drift: u64,
}

impl Plan {
    /// Accidents of all kinds, from this seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5707_e5ee_d000_0001);
        Self {
            seed,
            candidates: 2 + pick(&mut rng, 5),
            timeout: Duration::from_secs(10),
            accidents: Duration::from_secs(60 + rng.below(120)),
            deletions: rng.below(4) == 0,
            counter: if rng.below(4) == 0 { i32::MAX - 3 } else { 0 },
            late: false,
            cuts: false,
            touches: false,
            hasty: false,
            drift: 40,
        }
    }

    /// No accident, and clocks that agree.
    pub const fn quiet(candidates: usize) -> Self {
        Self {
            seed: 1,
            candidates,
            timeout: Duration::from_secs(10),
            accidents: Duration::ZERO,
            deletions: false,
            counter: 0,
            late: false,
            cuts: false,
            touches: false,
            hasty: false,
            drift: 0,
        }
    }
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Terms that have begun.
    pub terms: u64,
    /// Watches that have fired, and reached the candidates that left them.
    pub woken: u64,
    /// Calls on the store, without what keeps sessions alive.
    pub calls: u64,
    /// Listings of the children among them.
    pub lists: u64,
    /// Nodes that it was asked for.
    pub creates: u64,
    /// Connections that were made.
    pub connections: u64,
}
