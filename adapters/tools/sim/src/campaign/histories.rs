//! Nothing is lost: clients write and read at every server all the time, and in the end they are served.
//!
//! Windows are small, snapshots frequent, applications slow, and patience short, so that servers fall
//! behind and are brought up in every way there is. In the end everybody follows one leader, has applied
//! everything, and a write at each server is seen by a read at each other.

use std::time::Duration;

use quorate_core::config::{HistoryLimits, Limits, Timing};
use quorate_core::id::ServerId;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::campaign::accidents::{Course, Kind};
use crate::campaign::case::{Case, Condition, Disturbance, Draw, Purpose, pick};
use crate::campaign::run::{Clients, Run, can, is_settled};
use crate::campaign::{Failure, Outcome, background};
use crate::disk::{Contents, DiskConfig};
use crate::ensemble::Ensemble;
use crate::ledger::{Answer, Outcome as Told};
use crate::network::{NetworkConfig, up_to};
use crate::world::{World, WorldConfig};

/// How long a write or a read may take when nothing is wrong.
const SERVICE_MAX: Duration = Duration::from_secs(2);

/// How likely each accident is.
const ACCIDENTS: &[(Kind, u64)] = &[
    (Kind::Crash, 2),
    (Kind::LeaderCrash, 2),
    (Kind::EverybodyCrashes, 1),
    (Kind::Partition, 1),
    (Kind::LeaderIsAlone, 1),
    (Kind::Heal, 2),
    (Kind::Pause, 1),
    (Kind::Cuts, 1),
    (Kind::LongAbsence, 1),
    (Kind::Transfer, 2),
    (Kind::Wipe, 1),
    (Kind::Forgetting, 1),
    (Kind::ClockJump, 1),
    (Kind::Suspension, 1),
    (Kind::FullDisk, 1),
    (Kind::HangingDisk, 1),
    (Kind::Star, 1),
];

/// The same where the membership changes.
const ACCIDENTS_AND_CHANGES: &[(Kind, u64)] = &[
    (Kind::Crash, 2),
    (Kind::LeaderCrash, 2),
    (Kind::EverybodyCrashes, 1),
    (Kind::Partition, 1),
    (Kind::LeaderIsAlone, 1),
    (Kind::Heal, 2),
    (Kind::Pause, 1),
    (Kind::Cuts, 1),
    (Kind::LongAbsence, 1),
    (Kind::Transfer, 2),
    (Kind::ClockJump, 1),
    (Kind::Suspension, 1),
    (Kind::FullDisk, 1),
    (Kind::HangingDisk, 1),
    (Kind::Star, 1),
    (Kind::MembersChange, 14),
    (Kind::Forgetting, 2),
];

pub(super) fn disturbances(case: &Case) -> Vec<Disturbance> {
    begin(case, false).disturbances
}

pub(super) fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    let mut run = begin(case, keep_log);
    let outcome = run.history();
    (outcome, run.world)
}

fn begin(case: &Case, keep_log: bool) -> Run {
    let mut draw = Draw::new(case);
    let ensemble = ensemble(&mut draw);
    let ids: Vec<i64> = ensemble.ids().map(|id| id.0).collect();
    let tick = Duration::from_millis(draw.pick(&[100, 200, 400]));
    let ticks = 1 + u32::try_from(draw.rng.below(5)).unwrap_or(0);
    let lease = (draw.rng.below(3) == 0).then(|| tick * ticks);
    let heaped = case.is_heaped();
    let may_change = if heaped { draw.rng.below(4) > 0 } else { draw.rng.below(2) == 0 };
    let changes = may_change && ensemble.is_plain() && ids.len() > 2;
    let first = ids.last().map_or(1, |last| last + 1);
    let more = i64::try_from(draw.rng.below(3)).unwrap_or(0);
    let spares = if changes { (first..first + more).map(ServerId).collect() } else { Vec::new() };
    let mut config = WorldConfig {
        spares,
        timing: Timing { tick, ..Timing::default() },
        lease,
        may_change: changes,
        history: history(&mut draw),
        application_max: Duration::from_micros(draw.pick(&[50, 1_000, 10_000])),
        network: network(&mut draw),
        disk: disk(&mut draw),
        keep_log,
        ..WorldConfig::new(ensemble)
    };
    // Some ensembles have a long past, of which no log is left.
    if draw.rng.below(6) == 0 {
        let last = Zxid::new(Epoch(1), Counter(Counter::LAST.0));
        for id in &ids {
            config = config.with_disk(*id, Contents::ending(1, 1, last));
        }
    }
    let mut config = promised(&mut draw, config);
    let anew = lease.is_some() && case.fork(Purpose::Leases, 0).below(2) == 0;
    config.leases_change = draw.note(anew, Condition::LeasesChange);
    let mut room = case.fork(Purpose::Room, 0);
    let little = room.below(4) == 0;
    if draw.note(little, Condition::LittleRoom) {
        config.unsynced_bytes = [3_000, 20_000, 100_000][pick(&mut room, 3)];
    }
    let config = background::world(&mut draw, config);
    let config = background::memberships(&mut draw, config);
    let config = background::election(case, config);
    let clients = Clients {
        pause_max: Duration::from_millis(draw.pick(&[1, 5, 30])),
        padding: draw.pick(&[0, 30, 300]),
        cells: draw.pick(&[1, 4, 16, 256]),
    };
    let clients = draw.note(true, Condition::Clients).then_some(clients);
    let drawn = case.fork(Purpose::Application, 0).below(3) == 0;
    let expands = draw.note(drawn, Condition::ExpandingApplication);
    let expands = expands.then_some(Limits::TXN_BYTES_MIN);
    let config = WorldConfig { expands, keeps_sessions: true, ..config };
    let accidents = if changes { ACCIDENTS_AND_CHANGES } else { ACCIDENTS };
    let course = if heaped { Course::heaped(accidents) } else { Course::dense(accidents, 8) };
    Run::new(draw, config, clients, &course)
}

/// What prospective leaders leave that died when their LEADERINFO had reached observers alone: a promise above every
/// epoch that a quorum has heard of.
fn promised(draw: &mut Draw<'_>, mut config: WorldConfig) -> WorldConfig {
    let mut rng = draw.case.fork(Purpose::Observers, 0);
    let observers = config.ensemble.members().iter().filter(|member| !member.voter);
    let observers: Vec<ServerId> = observers.map(|member| member.id).collect();
    let drawn = rng.below(2) == 0 && !observers.is_empty();
    if draw.note(drawn, Condition::PromisesOfObservers) {
        for id in observers {
            let contents = config.disks.entry(id).or_default();
            let more = 1 + i64::try_from(rng.below(40)).unwrap_or(0);
            contents.accepted_epoch = Epoch(contents.accepted_epoch.0 + more);
        }
    }
    config
}

impl Run {
    fn history(&mut self) -> Result<Outcome, Failure> {
        let late = self.case.is_heaped() && self.rng.below(2) == 0;
        for (at, id) in self.ids.iter().enumerate() {
            let mut wait = up_to(&mut self.rng, Duration::from_millis(200));
            if late && at == 0 {
                wait += Duration::from_millis(800);
            }
            self.world.start_after(*id, wait);
        }
        let first = up_to(&mut self.rng, Duration::from_secs(1));
        self.pass(first)?;
        self.meet_accidents()?;
        self.repair()?;
        let mut times = self.times();
        let led = self.world.run_until(|w| w.leader().is_some(), self.election_limit())?;
        if led.is_none() && self.is_left_behind() {
            return Ok(Outcome::of(&self.world, self.past, times));
        }
        times.settled = Some(self.serves()?);
        let again = up_to(&mut self.rng, Duration::from_millis(300));
        self.pass(again)?;
        self.serves()?;
        let explained = self.world.check_history()? as u64;
        Ok(Outcome { explained, ..Outcome::of(&self.world, self.past, times) })
    }

    /// Everybody comes to follow one leader and to have what all have; then a write and a read come
    /// through at every server. Returns how long it took until all followed.
    pub(super) fn serves(&mut self) -> Result<Duration, Failure> {
        // A learner at the end of what was written may be fed a transaction at a time.
        let written = self.world.checker().commits() - self.past;
        let feeding = self.round_trip_max * u32::try_from(written).unwrap_or(u32::MAX);
        let limit = self.election_limit() + feeding;
        let settled = self.world.run_until(is_settled, limit)?;
        let took = self.found("not all follow", limit, settled)?;
        // What broke before the repair may still be noticed.
        self.world.run_for(self.silent_max + Duration::from_millis(500))?;
        let settled = self.world.run_until(is_settled, limit)?;
        self.found("not all follow in the end", limit, settled)?;
        for id in self.able() {
            let applied = self.writes(id, limit)?;
            for reader in self.able() {
                let read = self.world.read(reader)?;
                let answer = |w: &World| read.and_then(|read| w.checker().answer(reader, read));
                let is_read =
                    |w: &World| matches!(answer(w), Some(Answer::Read(z)) if z >= applied);
                let told = self.world.run_until(is_read, SERVICE_MAX)?;
                self.found("a read has no answer", SERVICE_MAX, told)?;
            }
        }
        let level = self.world.run_until(is_level, SERVICE_MAX)?;
        self.found("not all have applied everything", SERVICE_MAX, level)?;
        for id in self.able() {
            let (requests, reads) = self.world.unanswered(id);
            let none = requests.is_empty() && reads.is_empty();
            self.found("a caller waits for ever", SERVICE_MAX, none.then_some(()))?;
        }
        Ok(took)
    }

    /// How long it may take from the repair until all follow: what is broken is noticed first.
    pub(super) fn election_limit(&self) -> Duration {
        self.noticing + self.silent_max + 2 * self.election_max
    }

    /// Those that can follow.
    fn able(&self) -> Vec<i64> {
        self.ids.iter().copied().filter(|id| can(&self.world, ServerId(*id))).collect()
    }

    /// A write at this server comes through. A leader at the end of its numbers gives up its leadership first; and
    /// some writes become too long, if applications make more of them.
    fn writes(&mut self, id: i64, limit: Duration) -> Result<Zxid, Failure> {
        let mut tries = 0..3;
        for _ in 0..100 {
            let request = self.world.propose(id, 1)?;
            let outcome = |w: &World| request.and_then(|request| w.checker().outcome(request));
            let is_told =
                |w: &World| !matches!(outcome(w), None | Some(Told::Asked | Told::Accepted));
            let told = self.world.run_until(is_told, SERVICE_MAX)?;
            self.found("a write has no end", SERVICE_MAX, told)?;
            if let Some(Told::Applied(zxid)) = outcome(&self.world) {
                return Ok(zxid);
            }
            if let Some(Told::TooLong(_)) = outcome(&self.world) {
                continue;
            }
            if tries.next().is_none() {
                break;
            }
            let settled = self.world.run_until(is_settled, limit)?;
            self.found("not all follow after a refusal", limit, settled)?;
        }
        self.found("a write is refused", limit, None)
    }
}

/// Whether everybody who can follow has applied everything.
fn is_level(world: &World) -> bool {
    let mut ids = world.ensemble().ids().filter(|id| can(world, *id));
    let commits = world.checker().commits();
    ids.all(|id| world.applied(id.0).is_some_and(|state| state.count == commits))
}

fn ensemble(draw: &mut Draw<'_>) -> Ensemble {
    let drawn = draw.pick(&[3, 3, 3, 5, 4, 2, 1]);
    let kind = draw.rng.below(8);
    let more = 1 + i64::try_from(draw.rng.below(2)).unwrap_or(0);
    match (kind, draw.case.servers.map(i64::from)) {
        (0..4, wanted) => Ensemble::majority(wanted.unwrap_or(drawn)),
        (4..7, None) => Ensemble::majority(drawn).with_observers(drawn + 1..=drawn + more),
        (4..7, Some(wanted)) => {
            let voters = (wanted - more).max(1);
            Ensemble::majority(voters).with_observers(voters + 1..=wanted)
        }
        (_, None | Some(6..)) => {
            Ensemble::hierarchical(&[&[(1, 1), (2, 1), (3, 0)], &[(4, 2), (5, 1)], &[(6, 1)]])
        }
        (_, Some(wanted)) => Ensemble::majority(wanted),
    }
}

pub(super) fn history(draw: &mut Draw<'_>) -> HistoryLimits {
    HistoryLimits {
        window_count: draw.pick(&[2, 8, 8, 30, 500]),
        window_bytes: draw.pick(&[300, 1 << 20]),
        // A draw of its own, so that all others stay what they are.
        delivery_bytes: [200, 1_000, 1 << 20][pick(&mut draw.case.fork(Purpose::Delivery, 0), 3)],
        size_percent: draw.pick(&[None, Some(33), Some(300), Some(100_000)]),
        snap_count: draw.pick(&[4, 10, 40, 1_000]),
        observer_snapshots: 1 + pick(&mut draw.rng, 2),
        pace_bytes: draw.pick(&[100, 1_000, 1 << 20]),
        requests: draw.pick(&[2, 20, 4096]),
        epoch_count: draw.pick(&[Counter::LAST.0, Counter::LAST.0, 100]),
    }
}

pub(super) fn network(draw: &mut Draw<'_>) -> NetworkConfig {
    let (mut min, mut max) = draw.pick(&[(100, 1_000), (100, 2_000)]);
    if draw.one_in(3, Condition::SlowNetwork) {
        (min, max) = (1_000, 8_000);
    }
    let fair = NetworkConfig {
        latency_min: Duration::from_micros(min),
        latency_max: Duration::from_micros(max),
        spike: draw.sometimes(Condition::DelaySpikes, 400),
        spike_max: Duration::from_millis(200),
        reset: draw.sometimes(Condition::LinkResets, 60),
        duplicate: draw.sometimes(Condition::DuplicateNotifications, 1_000),
        split: draw.sometimes(Condition::SplitMessages, 4_000),
        stream_gap_max: Duration::from_micros(draw.pick(&[50, 2_000, 20_000])),
        runs: draw.rng.below(3) > 0,
        silent_min: Duration::from_millis(300),
        silent_max: Duration::from_secs(1),
        ..NetworkConfig::default()
    };
    background::network(draw, fair)
}

pub(super) fn disk(draw: &mut Draw<'_>) -> DiskConfig {
    let fair = DiskConfig {
        sync_max: Duration::from_millis(draw.pick(&[1, 5, 20])),
        slow: if draw.one_in(3, Condition::SlowDisk) { 4_000 } else { 0 },
        snapshots: 1 + pick(&mut draw.rng, 3),
        snapshot_bytes_per_txn: draw.pick(&[5, 40, 400]),
        unreadable: if draw.one_in(3, Condition::UnreadableDisk) { 3_000 } else { 0 },
        ..DiskConfig::default()
    };
    background::disk(draw, fair)
}
