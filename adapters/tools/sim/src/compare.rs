//! The two ways to elect, beside one another: the same ensembles, the same networks, the same accidents.
//!
//! ```text
//!   all serve ─► the leader's process ends  │  its machine loses power ─► another one serves
//!                └── time without a leader, messages between voters, rounds ──┘
//! ```
//!
//! Timing is alike where it can be: where nothing is closed, both notice a silent leader within
//! [`SILENCE`]. Messages are those of the election port while there is no leader; rounds are by how much
//! the round, or generation, is later then.

use std::time::Duration;

use quorate_core::config::{Election, Generations, Timing};
use quorate_core::id::ServerId;

use crate::ensemble::Ensemble;
use crate::faults::CrashKind;
use crate::rule::Violation;
use crate::world::{World, WorldConfig};

/// After this much silence a leader is given up, at the latest.
pub const SILENCE: Duration = Duration::from_millis(300);

/// How servers elect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ZooKeeper's fast leader election.
    Fast,
    /// One vote for each server and generation.
    Generation,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Fast, Self::Generation];

    /// As configurations say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Generation => "generation",
        }
    }
}

/// How the leader is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// Its process ends, and its system closes its connections.
    Closed,
    /// Its machine loses power: its peers hear nothing.
    Silent,
}

impl Loss {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Closed, Self::Silent];

    /// In two words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "its process ends",
            Self::Silent => "it falls silent",
        }
    }
}

/// What came of one kind, one loss and one size: the middle one of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// How servers elect.
    pub kind: Kind,
    /// How the leader is lost.
    pub loss: Loss,
    /// How many there are.
    pub servers: u8,
    /// How long there was no leader.
    pub without: Duration,
    /// The longest of the runs.
    pub longest: Duration,
    /// Messages between voters meanwhile.
    pub messages: u64,
    /// Rounds that it took.
    pub rounds: i64,
}

/// Runs each combination with so many seeds.
///
/// # Errors
///
/// If a rule is broken, or there is no leader after a minute.
pub fn compare(sizes: &[u8], seeds: u64, done: impl Fn(&Row)) -> Result<Vec<Row>, Failed> {
    let mut rows = Vec::new();
    for servers in sizes {
        for loss in Loss::ALL {
            for kind in Kind::ALL {
                let mut runs = Vec::new();
                for seed in 0..seeds.max(1) {
                    runs.push(run(kind, loss, *servers, seed)?);
                }
                let middle = runs.len() / 2;
                let mut times: Vec<_> = runs.iter().map(|run| run.0).collect();
                let mut messages: Vec<_> = runs.iter().map(|run| run.1).collect();
                let mut rounds: Vec<_> = runs.iter().map(|run| run.2).collect();
                times.sort_unstable();
                messages.sort_unstable();
                rounds.sort_unstable();
                let row = Row {
                    kind,
                    loss,
                    servers: *servers,
                    without: times[middle],
                    longest: times[times.len() - 1],
                    messages: messages[middle],
                    rounds: rounds[middle],
                };
                done(&row);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// A comparison that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// A rule was broken.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// There is no leader.
    #[error("{} servers, {}, seed {seed}: no leader after a minute", servers, kind.name())]
    NoLeader {
        /// How servers elect.
        kind: Kind,
        /// How many there are.
        servers: u8,
        /// Of which run.
        seed: u64,
    },
}

fn run(kind: Kind, loss: Loss, servers: u8, seed: u64) -> Result<(Duration, u64, i64), Failed> {
    let election = match kind {
        Kind::Fast => Election::Fast,
        Kind::Generation => Election::Generation(Generations::within(SILENCE / 2, SILENCE)),
    };
    let timing = Timing { tick: SILENCE / 3, sync_limit: 3, init_limit: 30, ..Timing::default() };
    let ensemble = Ensemble::majority(servers.into());
    let ids: Vec<ServerId> = ensemble.ids().collect();
    let config = WorldConfig { election, timing, keep_log: false, ..WorldConfig::new(ensemble) };
    let mut world = World::new(seed, config);
    for id in &ids {
        world.start(id.0);
    }
    let limit = Duration::from_secs(60);
    let none = Failed::NoLeader { kind, servers, seed };
    let settled = move |w: &World| w.is_settled_among(ids.iter().copied());
    let Some(_) = world.run_until(settled, limit)? else { return Err(none) };
    world.run_for(SILENCE + Duration::from_millis(seed % 100))?;
    let Some(old) = world.leader() else { return Err(none) };
    let round = |w: &World, id: ServerId| w.brief(id.0).map_or(0, |brief| brief.round.0);
    let (before, messages) = (round(&world, old), world.election_messages());
    let crash = match loss {
        Loss::Closed => CrashKind::Process,
        Loss::Silent => CrashKind::Power,
    };
    world.crash(old.0, crash)?;
    let led = |w: &World| w.leader().is_some_and(|leader| leader != old);
    let Some(took) = world.run_until(led, limit)? else { return Err(none) };
    let after = world.leader().map_or(before, |leader| round(&world, leader));
    Ok((took, world.election_messages() - messages, after - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_lead_again_and_one_with_far_fewer_messages() {
        let rows = compare(&[3, 9], 5, |_| {}).unwrap();
        assert_eq!(rows.len(), 8);
        let of = |kind, loss| {
            *rows.iter().find(|r| (r.kind, r.loss, r.servers) == (kind, loss, 9)).unwrap()
        };
        for loss in Loss::ALL {
            let (fast, generation) = (of(Kind::Fast, loss), of(Kind::Generation, loss));
            assert!(generation.messages < fast.messages, "{generation:?} {fast:?}");
            assert!(generation.rounds >= 1 && fast.rounds >= 1);
        }
        let silent = of(Kind::Generation, Loss::Silent);
        assert!(silent.without >= SILENCE / 4 && silent.without < 2 * SILENCE, "{silent:?}");
    }
}
