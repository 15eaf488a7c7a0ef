//! Histories by the thousand: a seed makes an ensemble, clients that write and read, and accidents.
//!
//! ```text
//!   seed ─► 1 to 7 servers, observers, weights; small windows, frequent snapshots, little patience
//!        ─► clients write and read at every server, all the time
//!        ─► accidents: crashes in the middle of anything, partitions, broken links, slow disks …
//!        ─► everything is repaired ──► a leader that all follow, and nobody lacks anything
//!        ─► a write is applied, and a read sees it, at every server
//! ```
//!
//! Safety is tested after every step, by the checker and its book.

use std::time::Duration;

use quorate_core::config::{HistoryLimits, Timing};
use quorate_core::id::ServerId;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::rng::Rng;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::campaign::{ELECTION_MAX, Failure, can, is_settled, pick};
use crate::checker::Violation;
use crate::disk::{Contents, DiskConfig, Survival};
use crate::ensemble::Ensemble;
use crate::faults::Coverage;
use crate::ledger::{Answer, Outcome as Told};
use crate::network::{NetworkConfig, up_to};
use crate::world::{CrashKind, World, WorldConfig};

/// How long a write or a read may take when nothing is wrong.
const SERVICE_MAX: Duration = Duration::from_secs(2);

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The steps that servers took.
    pub steps: u64,
    /// The time that passed in the simulated world.
    pub time: Duration,
    /// Leaders that were established.
    pub established: usize,
    /// Transactions that were committed.
    pub commits: u64,
    /// Requests that were applied where they were asked.
    pub acknowledged: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Which faults happened, and which paths were taken.
    pub coverage: Coverage,
    /// The hash of everything that happened.
    pub trace_hash: u64,
}

/// Runs a seed.
///
/// # Errors
///
/// If a rule is broken, or the ensemble does not serve when it must.
pub fn run(seed: u64) -> Result<Outcome, Failure> {
    Run::new(seed, false).story()
}

/// Runs a seed with a log; returns what came of it and the last lines.
pub fn explain(seed: u64, lines: usize) -> (Result<Outcome, Failure>, String) {
    let mut run = Run::new(seed, true);
    let outcome = run.story();
    (outcome, run.world.log_tail(lines))
}

struct Run {
    rng: Rng,
    world: World,
    timing: Timing,
    silent_max: Duration,
    ids: Vec<i64>,
    /// The longest pause between two requests.
    pause_max: Duration,
    padding: usize,
    /// How many transactions were committed before.
    past: u64,
    /// Whether the membership changes.
    changes: bool,
}

impl Run {
    fn new(seed: u64, keep_log: bool) -> Self {
        let mut rng = Rng::new(seed ^ 0x7171_7171);
        let ensemble = ensemble(&mut rng);
        let ids: Vec<i64> = ensemble.ids().map(|id| id.0).collect();
        let tick = [100, 200, 400][pick(&mut rng, 3)];
        let timing = Timing { tick: Duration::from_millis(tick), ..Timing::default() };
        let network = network(&mut rng);
        let ticks = 1 + u32::try_from(rng.below(5)).unwrap_or(0);
        let lease = (rng.below(3) == 0).then(|| timing.tick * ticks);
        let changes = rng.below(3) == 0 && ensemble.is_plain() && ids.len() > 2;
        let mut config = WorldConfig {
            timing: timing.clone(),
            lease,
            may_change: changes,
            history: history(&mut rng),
            application_max: Duration::from_micros([50, 1_000, 10_000][pick(&mut rng, 3)]),
            network: network.clone(),
            disk: disk(&mut rng),
            keep_log,
            ..WorldConfig::new(ensemble)
        };
        // Some ensembles have a long past, of which no log is left.
        if rng.below(6) == 0 {
            let last = Zxid::new(Epoch(1), Counter(Counter::LAST.0));
            for id in &ids {
                config = config.with_disk(*id, Contents::ending(1, 1, last));
            }
        }
        let world = World::new(rng.next_u64(), config);
        let pause_max = Duration::from_millis([1, 5, 30][pick(&mut rng, 3)]);
        let padding = [0, 30, 300][pick(&mut rng, 3)];
        let past = world.checker().commits();
        let silent_max = network.silent_max;
        Self { rng, world, timing, silent_max, ids, pause_max, padding, past, changes }
    }

    fn story(&mut self) -> Result<Outcome, Failure> {
        for at in 0..self.ids.len() {
            let wait = up_to(&mut self.rng, Duration::from_millis(200));
            self.world.start_after(self.ids[at], wait);
        }
        if self.rng.below(2) == 0 {
            let chance = 1 + self.rng.below(300);
            self.world.crash_within_steps(chance);
        }
        self.traffic_up_to(Duration::from_secs(1))?;
        for _ in 0..self.rng.below(9) {
            self.accident()?;
            self.traffic_up_to(Duration::from_millis(1200))?;
        }
        self.repair()?;
        self.serves()?;
        self.traffic_up_to(Duration::from_millis(300))?;
        self.serves()?;
        Ok(Outcome {
            steps: self.world.steps(),
            time: self.world.now().since_origin(),
            established: self.world.checker().leaders().len(),
            commits: self.world.checker().commits() - self.past,
            acknowledged: self.world.checker().acknowledged(),
            reads: self.world.checker().reads_answered(),
            coverage: self.world.coverage(),
            trace_hash: self.world.trace_hash(),
        })
    }

    /// Clients write and read for a while.
    fn traffic_up_to(&mut self, longest: Duration) -> Result<(), Violation> {
        let end = self.world.now() + up_to(&mut self.rng, longest);
        while self.world.now() < end {
            let id = self.any();
            if self.rng.below(5) == 0 {
                self.world.read(id)?;
            } else {
                // Some ask in bursts.
                for _ in 0..=self.rng.below(8).saturating_sub(4) {
                    let cell = self.rng.next_u64().to_be_bytes()[0];
                    let padding = pick(&mut self.rng, self.padding + 1);
                    self.world.propose_padded(id, cell, padding)?;
                }
            }
            let wait = up_to(&mut self.rng, self.pause_max);
            self.world.run_for(wait + Duration::from_micros(1))?;
        }
        Ok(())
    }

    fn accident(&mut self) -> Result<(), Violation> {
        let id = self.any();
        let leader = self.world.leader().map_or(id, |leader| leader.0);
        let kind = if self.rng.below(2) == 0 { CrashKind::Process } else { CrashKind::Power };
        let soon = up_to(&mut self.rng, Duration::from_millis(800));
        let of = if self.changes { 20 } else { 15 };
        match self.rng.below(of) {
            0 | 1 => {
                self.world.crash(id, kind)?;
                self.world.start_after(id, soon);
            }
            2 | 3 => {
                self.world.crash(leader, kind)?;
                self.world.start_after(leader, soon);
            }
            4 => {
                // Everybody at once.
                for id in self.ids.clone() {
                    self.world.crash(id, kind)?;
                    let wait = up_to(&mut self.rng, Duration::from_millis(300));
                    self.world.start_after(id, wait);
                }
            }
            5 => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                for id in &self.ids {
                    if self.rng.below(2) == 0 { left.push(*id) } else { right.push(*id) }
                }
                self.world.partition(&[&left, &right]);
            }
            6 => {
                // The leader goes on alone for a while, and logs what nobody else has.
                let others: Vec<i64> = self.ids.iter().copied().filter(|o| *o != leader).collect();
                self.world.partition(&[&others, &[leader]]);
            }
            7 | 8 => {
                self.world.heal();
                let all = self.ids.clone();
                for id in all {
                    self.world.start_after(id, soon);
                }
            }
            9 => {
                self.world.pause(id);
                self.traffic_up_to(Duration::from_secs(1))?;
                self.world.resume(id)?;
            }
            10 => {
                for _ in 0..=self.rng.below(6) {
                    self.world.cut_any();
                }
            }
            11 => {
                // It is away for long, and the others go on.
                self.world.crash(id, kind)?;
                self.traffic_up_to(Duration::from_secs(2))?;
                self.world.start(id);
            }
            12 | 13 => {
                let leader = self.world.leader().map_or(id, |leader| leader.0);
                let to = (self.rng.below(2) == 0).then_some(id);
                self.world.hand_over(leader, to)?;
                if self.rng.below(2) == 0 {
                    // Somewhere on its way.
                    let outputs = self.rng.below(20);
                    let again = up_to(&mut self.rng, Duration::from_secs(1));
                    let victim = if self.rng.below(2) == 0 { leader } else { id };
                    self.world.crash_after_outputs(victim, outputs, Some(again));
                }
            }
            _ if self.changes => self.change_roles()?,
            _ => {
                // Only who is in no quorum may forget what it has.
                let observer = self.world.ensemble().seats().iter().find(|seat| !seat.voter);
                if let Some(id) = observer.map(|seat| seat.id.0) {
                    self.world.crash(id, kind)?;
                    self.world.wipe(id);
                    self.world.start(id);
                }
            }
        }
        Ok(())
    }

    /// Some become voters, some observers; sometimes one of them crashes on the way.
    fn change_roles(&mut self) -> Result<(), Violation> {
        let mut joining = Vec::new();
        for id in self.ids.clone() {
            if self.rng.below(3) == 0 {
                joining.push(Ensemble::member(ServerId(id), self.rng.below(3) > 0));
            }
        }
        let asked = Reconfiguration::change(joining, []);
        let at = self.any();
        self.world.reconfigure(at, &asked)?;
        if self.rng.below(2) == 0 {
            let victim = if self.rng.below(2) == 0 { self.any() } else { at };
            let outputs = self.rng.below(30);
            let again = up_to(&mut self.rng, Duration::from_secs(1));
            self.world.crash_after_outputs(victim, outputs, Some(again));
        }
        Ok(())
    }

    fn repair(&mut self) -> Result<(), Violation> {
        self.world.calm();
        self.world.heal();
        for id in self.ids.clone() {
            self.world.resume(id)?;
            self.world.start(id);
        }
        Ok(())
    }

    /// Everybody comes to follow one leader and to have what all have; then a write and a read come
    /// through at every server.
    fn serves(&mut self) -> Result<(), Failure> {
        let noticing = self.timing.init_time().max(self.silent_max);
        let limit = noticing + self.silent_max + 2 * ELECTION_MAX;
        let settled = self.world.run_until(is_settled, limit)?;
        self.found("not all follow", limit, settled)?;
        // What broke before the repair may still be noticed.
        self.world.run_for(self.silent_max + Duration::from_millis(500))?;
        let settled = self.world.run_until(is_settled, limit)?;
        self.found("not all follow in the end", limit, settled)?;
        for id in self.ids.clone() {
            if !can(&self.world, ServerId(id)) {
                continue;
            }
            // A leader at the end of its numbers gives up its seat first.
            let mut applied = None;
            for _ in 0..3 {
                let request = self.world.propose(id, 1)?;
                let is_told = |w: &World| {
                    let outcome = request.and_then(|request| w.checker().outcome(request));
                    matches!(outcome, Some(Told::Applied(_) | Told::Refused | Told::Lost))
                };
                let told = self.world.run_until(is_told, SERVICE_MAX)?;
                self.found("a write has no end", SERVICE_MAX, told)?;
                let outcome = request.and_then(|request| self.world.checker().outcome(request));
                applied = match outcome {
                    Some(Told::Applied(zxid)) => Some(zxid),
                    Some(Told::Asked | Told::Accepted | Told::Refused | Told::Lost) | None => None,
                };
                if applied.is_some() {
                    break;
                }
                let settled = self.world.run_until(is_settled, limit)?;
                self.found("not all follow after a refusal", limit, settled)?;
            }
            let applied = self.found("a write is refused", limit, applied)?;
            for reader in self.ids.clone() {
                if !can(&self.world, ServerId(reader)) {
                    continue;
                }
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
        for id in &self.ids {
            if can(&self.world, ServerId(*id)) {
                let (requests, reads) = self.world.unanswered(*id);
                let none = requests.is_empty() && reads.is_empty();
                self.found("somebody waits for ever", SERVICE_MAX, none.then_some(()))?;
            }
        }
        Ok(())
    }

    fn found<T>(&self, what: &'static str, limit: Duration, it: Option<T>) -> Result<T, Failure> {
        it.ok_or_else(|| Failure::NoLeader { what, limit, state: self.state() })
    }

    fn state(&self) -> String {
        self.ids.iter().fold(format!("{:?}\n", self.world.ensemble()), |all, id| {
            let last = self.world.durable(*id).map(Contents::last);
            let count = self.world.applied(*id).map(|state| state.count);
            let brief = self.world.brief(*id);
            all + &format!("  {id}: {brief:?}, ends at {last:?}, applied {count:?}\n")
        })
    }

    fn any(&mut self) -> i64 {
        self.ids[pick(&mut self.rng, self.ids.len())]
    }
}

/// Whether everybody who can follow has applied everything.
fn is_level(world: &World) -> bool {
    let ids = world.ensemble().ids().filter(|id| can(world, *id));
    let commits = world.checker().commits();
    ids.into_iter().all(|id| world.applied(id.0).is_some_and(|state| state.count == commits))
}

fn ensemble(rng: &mut Rng) -> Ensemble {
    let voters = [3, 3, 3, 5, 4, 2, 1][pick(rng, 7)];
    match rng.below(8) {
        0..4 => Ensemble::majority(voters),
        4..7 => {
            let observers = 1 + i64::try_from(rng.below(2)).unwrap_or(0);
            Ensemble::majority(voters).with_observers(voters + 1..=voters + observers)
        }
        _ => Ensemble::hierarchical(&[&[(1, 1), (2, 1), (3, 0)], &[(4, 2), (5, 1)], &[(6, 1)]]),
    }
}

fn history(rng: &mut Rng) -> HistoryLimits {
    HistoryLimits {
        window_count: [2, 8, 8, 30, 500][pick(rng, 5)],
        window_bytes: [300, 1 << 20][pick(rng, 2)],
        size_percent: [None, Some(33), Some(300), Some(100_000)][pick(rng, 4)],
        snap_count: [4, 10, 40, 1_000][pick(rng, 4)],
        observer_snapshots: 1 + pick(rng, 2),
        pace_bytes: [100, 1_000, 1 << 20][pick(rng, 3)],
        requests: [2, 20, 4096][pick(rng, 3)],
        reign_count: [Counter::LAST.0, Counter::LAST.0, 100][pick(rng, 3)],
    }
}

fn network(rng: &mut Rng) -> NetworkConfig {
    let (min, max) = [(100, 1_000), (100, 2_000), (1_000, 8_000)][pick(rng, 3)];
    let sometimes = |rng: &mut Rng, chance| if rng.below(2) == 0 { chance } else { 0 };
    NetworkConfig {
        latency_min: Duration::from_micros(min),
        latency_max: Duration::from_micros(max),
        spike: sometimes(rng, 400),
        spike_max: Duration::from_millis(200),
        reset: sometimes(rng, 60),
        duplicate: sometimes(rng, 1_000),
        split: sometimes(rng, 4_000),
        stream_gap_max: Duration::from_micros([50, 2_000, 20_000][pick(rng, 3)]),
        runs: rng.below(3) > 0,
        silent_min: Duration::from_millis(300),
        silent_max: Duration::from_secs(1),
        ..NetworkConfig::default()
    }
}

fn disk(rng: &mut Rng) -> DiskConfig {
    DiskConfig {
        sync_max: Duration::from_millis([1, 5, 20][pick(rng, 3)]),
        slow: if rng.below(3) == 0 { 4_000 } else { 0 },
        survival: if rng.below(2) == 0 { Survival::Prefix } else { Survival::Any },
        snapshots: 1 + pick(rng, 3),
        snapshot_bytes_per_txn: [5, 40, 400][pick(rng, 3)],
        unreadable: if rng.below(3) == 0 { 3_000 } else { 0 },
        ..DiskConfig::default()
    }
}
