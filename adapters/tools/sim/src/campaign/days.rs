//! Two days of an ordinary ensemble: five servers with the times that are usual, clients that write now and
//! then, and about every hour an accident.
//!
//! The other stories press as much as they can into seconds. What takes its time is met here: links that
//! stand for hours, notifications that have backed off as far as they do, an ensemble that is without a
//! quorum for an afternoon, a follower that comes back the next day. And it tells how much faster than a
//! clock the simulation is where servers mostly wait, as they do.

use std::time::Duration;

use quorate_core::config::Timing;

use crate::campaign::accidents::{Course, Kind};
use crate::campaign::case::{Case, Condition, Disturbance, Draw, Purpose};
use crate::campaign::run::{Clients, Run};
use crate::campaign::{Failure, Outcome, background, histories};
use crate::disk::DiskConfig;
use crate::ensemble::Ensemble;
use crate::network::up_to;
use crate::world::{World, WorldConfig};

/// How likely each accident is.
const ACCIDENTS: &[(Kind, u64)] = &[
    (Kind::Crash, 3),
    (Kind::LeaderCrash, 3),
    (Kind::EverybodyCrashes, 1),
    (Kind::Partition, 1),
    (Kind::LeaderIsAlone, 1),
    (Kind::Heal, 4),
    (Kind::Pause, 1),
    (Kind::Cuts, 2),
    (Kind::LongAbsence, 1),
    (Kind::Transfer, 2),
    (Kind::ClockJump, 1),
    (Kind::Suspension, 1),
    (Kind::FullDisk, 1),
    (Kind::HangingDisk, 1),
    (Kind::Star, 1),
];

pub(super) fn disturbances(case: &Case) -> Vec<Disturbance> {
    begin(case, false).disturbances
}

pub(super) fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    let mut run = begin(case, keep_log);
    let outcome = run.days();
    (outcome, run.world)
}

fn begin(case: &Case, keep_log: bool) -> Run {
    let mut draw = Draw::new(case);
    let config = WorldConfig {
        // ZooKeeper's usual ones: a tick of two seconds, a ping every second.
        timing: Timing { tick: Duration::from_secs(2), ..Timing::default() },
        history: histories::history(&mut draw),
        network: histories::network(&mut draw),
        // A disk that fails stops its server for good, and in two days all would.
        disk: DiskConfig { failing: 0, ..histories::disk(&mut draw) },
        keep_log,
        may_change: case.fork(Purpose::Memberships, 0).below(2) == 0,
        ..WorldConfig::new(Ensemble::majority(draw.case.servers.map_or(5, i64::from)))
    };
    let config =
        WorldConfig { drift: if draw.one_in(2, Condition::Drift) { 50_000 } else { 0 }, ..config };
    let config = background::memberships(&mut draw, config);
    let clients = Clients { pause_max: Duration::from_secs(60), padding: 300, cells: 16 };
    let clients = draw.note(true, Condition::Clients).then_some(clients);
    let course =
        Course { kinds: ACCIDENTS, count: (40, 60), pause_max: Duration::from_secs(2 * 3600) };
    Run::new(draw, config, clients, &course)
}

impl Run {
    fn days(&mut self) -> Result<Outcome, Failure> {
        for id in &self.ids {
            let wait = up_to(&mut self.rng, Duration::from_secs(1));
            self.world.start_after(*id, wait);
        }
        self.pass(Duration::from_secs(60))?;
        self.meet_accidents()?;
        self.repair()?;
        let mut times = self.times();
        times.settled = Some(self.serves()?);
        let explained = self.world.check_history()? as u64;
        Ok(Outcome { explained, ..Outcome::of(&self.world, self.past, times) })
    }
}
