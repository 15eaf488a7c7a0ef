//! Servers with clients: ZooKeeper's sessions, watches and ephemeral nodes, through everything that happens to an ensemble.
//!
//! Three to six clients share a small tree. In the end all of them are served; then they vanish, and their sessions with
//! them. What they are told is judged as it comes, see the [page of the crate](crate#what-is-checked).

use std::time::Duration;

use quorate_core::config::Timing;

use crate::campaign::accidents::{Course, Kind};
use crate::campaign::case::{Case, Condition, Disturbance, Draw};
use crate::campaign::run::{Run, is_settled};
use crate::campaign::{Failure, Outcome, histories};
use crate::ensemble::Ensemble;
use crate::network::up_to;
use crate::world::{World, WorldConfig};

/// How likely each accident is. No clock jumps: sessions go by the leader's.
const ACCIDENTS: &[(Kind, u64)] = &[
    (Kind::Crash, 3),
    (Kind::LeaderCrash, 3),
    (Kind::EverybodyCrashes, 1),
    (Kind::Partition, 1),
    (Kind::LeaderIsAlone, 2),
    (Kind::Heal, 3),
    (Kind::Pause, 3),
    (Kind::Cuts, 2),
    (Kind::LongAbsence, 1),
    (Kind::Transfer, 2),
    (Kind::Wipe, 1),
    (Kind::Suspension, 1),
    (Kind::FullDisk, 1),
    (Kind::HangingDisk, 1),
    (Kind::Star, 1),
];

/// The most ticks for which a client asks that its session lives.
const TICKS_MAX: u32 = 6;

pub(super) fn disturbances(case: &Case) -> Vec<Disturbance> {
    begin(case, false).disturbances
}

pub(super) fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    let mut run = begin(case, keep_log);
    let outcome = run.clients();
    (outcome, run.world)
}

fn begin(case: &Case, keep_log: bool) -> Run {
    let mut draw = Draw::new(case);
    let voters = draw.pick(&[3, 3, 3, 5, 1]);
    let ensemble = match case.servers.map(i64::from) {
        Some(wanted) => Ensemble::majority(wanted),
        None if draw.rng.below(3) == 0 => {
            Ensemble::majority(voters).with_observers(voters + 1..=voters + 1)
        }
        None => Ensemble::majority(voters),
    };
    let tick = Duration::from_millis(draw.pick(&[100, 200, 400]));
    let count = 3 + usize::try_from(draw.rng.below(4)).unwrap_or(0);
    let config = WorldConfig {
        timing: Timing { tick, ..Timing::default() },
        history: histories::history(&mut draw),
        application_max: Duration::from_micros(draw.pick(&[50, 1_000, 10_000])),
        network: histories::network(&mut draw),
        disk: histories::disk(&mut draw),
        keep_log,
        clients: if draw.note(true, Condition::Clients) { count } else { 0 },
        ..WorldConfig::new(ensemble)
    };
    let drift = if draw.one_in(2, Condition::Drift) { 50_000 } else { 0 };
    let course = Course::dense(ACCIDENTS, 10);
    Run::new(draw, WorldConfig { drift, ..config }, None, &course)
}

impl Run {
    fn clients(&mut self) -> Result<Outcome, Failure> {
        for id in self.ids.clone() {
            let wait = up_to(&mut self.rng, Duration::from_millis(200));
            self.world.start_after(id, wait);
        }
        let first = up_to(&mut self.rng, Duration::from_secs(4));
        self.pass(first)?;
        self.meet_accidents()?;
        self.repair()?;
        let mut times = self.times();
        // A learner at the end of what was written may be fed a transaction at a time.
        let written = u32::try_from(self.world.checker().commits()).unwrap_or(u32::MAX);
        let limit = self.election_limit() + self.round_trip_max * written;
        let settled = self.world.run_until(is_settled, limit)?;
        times.settled = Some(self.found("not all follow", limit, settled)?);
        self.are_served()?;
        let more = up_to(&mut self.rng, Duration::from_secs(1));
        self.pass(more)?;
        self.world.clients_vanish();
        self.pass(self.patience())?;
        self.found(
            "not all have applied everything",
            limit,
            self.world.trees_are_level().then_some(()),
        )?;
        self.world.check_clients()?;
        let outcome = Outcome::of(&self.world, self.past, times);
        let replies = self.world.judge().map_or(0, |judge| judge.replies);
        Ok(Outcome { acknowledged: replies, ..outcome })
    }

    /// Every client is served, as soon as it has noticed what was broken.
    fn are_served(&mut self) -> Result<(), Failure> {
        let (since, limit) = (self.world.now(), self.patience());
        let served = self.world.run_until(|world| world.clients_are_served(since), limit)?;
        self.found("not all clients are served", limit, served).map(|_| ())
    }

    /// As long as a session may live that is not heard: twice its time-out, `syncLimit`, two ticks, and an election. A client
    /// that was told nothing comes back in that time, too.
    fn patience(&self) -> Duration {
        let tick = self.sync_time / Timing::default().sync_limit;
        2 * TICKS_MAX * tick + self.sync_time + 2 * tick + self.election_limit()
    }
}
