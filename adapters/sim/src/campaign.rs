//! Elections by the thousand: a seed makes an ensemble, what its disks hold, and a run of accidents.
//!
//! ```text
//!   seed ─► 3 to 9 servers, observers, weights, histories
//!        ─► they start, more or less together
//!        ─► accidents: crashes, partitions, pauses, broken links, slow disks …
//!        ─► everything is repaired ──► a leader that all follow, soon
//!        ─► that leader crashes    ──► another one, soon; the old one returns and follows it
//! ```
//!
//! Safety is tested after every step of it, by the checker; that there is a leader, at the two marks on
//! the right. Where histories differ, servers cannot catch up yet (no transactions are transferred), so
//! a leader is demanded only if a quorum shares the newest history.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::config::Timing;
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;
use quorate_core::zxid::{Counter, Epoch, Zxid};

use crate::checker::Violation;
use crate::disk::{Contents, DiskConfig, Survival};
use crate::ensemble::Ensemble;
use crate::faults::Coverage;
use crate::network::{NetworkConfig, up_to};
use crate::world::{CrashKind, World, WorldConfig};

/// How long an election may take once those that are needed can hear one another and know it.
pub const ELECTION_MAX: Duration = Duration::from_secs(3);
/// How long a new leader is watched for staying one.
const WATCH: Duration = Duration::from_secs(1);

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The steps that servers took.
    pub steps: u64,
    /// The time that passed in the simulated world.
    pub time: Duration,
    /// Elections that were won.
    pub elected: u64,
    /// Leaders that were established.
    pub established: usize,
    /// How long it may take to notice that a link or a leader is gone.
    pub noticing: Duration,
    /// How long after the repair a leader was established.
    pub repaired: Option<Duration>,
    /// How long after the repair all servers served.
    pub settled: Option<Duration>,
    /// How long after a crash of the leader all others served under another one, if they were enough;
    /// without the time for noticing if its machine lost power.
    pub failover: Option<Duration>,
    /// Which faults happened.
    pub coverage: Coverage,
    /// The hash of everything that happened.
    pub trace_hash: u64,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A rule was broken.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// No leader that all follow, long after everything was repaired.
    #[error("{what} after {limit:?}:\n{state}")]
    NoLeader {
        /// What was waited for.
        what: &'static str,
        /// How long.
        limit: Duration,
        /// Where the servers stand.
        state: String,
    },
    /// A leader gave up, or was replaced, although nothing happened.
    #[error("the leader changed without a reason:\n{state}")]
    Unstable {
        /// Where the servers stand.
        state: String,
    },
}

/// Runs a seed.
///
/// # Errors
///
/// If a rule is broken, or there is no leader where one must be.
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
    /// Whether every server's history ends at the same zxid.
    same_history: bool,
    ids: Vec<i64>,
    /// Whether a server with an empty disk lacks nothing.
    empty_history: bool,
}

impl Run {
    fn new(seed: u64, keep_log: bool) -> Self {
        let mut rng = Rng::new(seed ^ 0x5151_5151);
        let ensemble = ensemble(&mut rng);
        let same_history = rng.below(10) < 7;
        let network = network(&mut rng);
        let tick = [100, 200, 200, 400, 2000][pick(&mut rng, 5)];
        let timing = Timing { tick: Duration::from_millis(tick), ..Timing::default() };
        let ids: Vec<i64> = ensemble.ids().map(|id| id.0).collect();
        let disks = histories(&mut rng, &ensemble, same_history);
        let empty_history = disks.values().all(|contents| contents.last() == Zxid::ZERO);
        let config = WorldConfig {
            disks,
            timing: timing.clone(),
            finish_when_settled: rng.below(8) > 0,
            network: network.clone(),
            disk: disk(&mut rng),
            keep_log,
            ..WorldConfig::new(ensemble)
        };
        let world = World::new(rng.next_u64(), config);
        Self {
            rng,
            world,
            timing,
            silent_max: network.silent_max,
            same_history,
            ids,
            empty_history,
        }
    }

    fn story(&mut self) -> Result<Outcome, Failure> {
        self.start();
        let calm_start = self.rng.below(8) == 0;
        if calm_start {
            self.world.calm();
        }
        if self.rng.below(2) == 0 && !calm_start {
            let chance = 1 + self.rng.below(300);
            self.world.crash_within_steps(chance);
        }
        self.run_up_to(Duration::from_millis(1500))?;
        let accidents = if calm_start { 0 } else { self.rng.below(7) };
        for _ in 0..accidents {
            self.accident()?;
            self.run_up_to(Duration::from_millis(1200))?;
        }
        self.repair()?;

        // What is still to be noticed: a leader without a quorum, links that broke or will break.
        let noticing = self.timing.init_time().max(self.silent_max);
        let (mut repaired, mut settled, mut failover) = (None, None, None);
        if self.same_history {
            let start = self.world.now();
            let limit = noticing + ELECTION_MAX;
            let led = self.world.run_until(|w| w.leader().is_some(), limit)?;
            repaired = Some(self.found("no leader", limit, led)?);
            let limit = noticing + self.silent_max + ELECTION_MAX;
            let all = self.world.run_until(is_settled, limit)?;
            self.found("not all follow", limit, all)?;
            settled = Some(self.world.now() - start);
            self.world.run_for(self.silent_max + WATCH)?;
            let all = self.world.run_until(is_settled, limit)?;
            self.found("not all follow in the end", limit, all)?;
            self.stays()?;
            failover = self.fail_over(noticing)?;
        } else {
            // An unlucky election may give a minority's leader a later epoch, and nobody else the history
            // to follow it; so the question is asked again in the end.
            let demanded = self.newest_is_a_quorum();
            let limit = if demanded { 2 * noticing + ELECTION_MAX } else { ELECTION_MAX };
            let led = self.world.run_until(|w| w.leader().is_some(), limit)?;
            if demanded && self.newest_is_a_quorum() {
                self.found("no leader of the newest", limit, led)?;
            }
        }
        Ok(Outcome {
            steps: self.world.steps(),
            time: self.world.now().since_origin(),
            elected: self.world.checker().elected(),
            established: self.world.checker().leaders().len(),
            noticing,
            repaired,
            settled,
            failover,
            coverage: self.world.coverage(),
            trace_hash: self.world.trace_hash(),
        })
    }

    fn start(&mut self) {
        let late = self.rng.below(3) == 0;
        for at in 0..self.ids.len() {
            let mut wait = up_to(&mut self.rng, Duration::from_millis(300));
            if late && at == 0 {
                wait += Duration::from_millis(800);
            }
            self.world.start_after(self.ids[at], wait);
        }
    }

    fn accident(&mut self) -> Result<(), Violation> {
        let id = self.any();
        let kind = if self.rng.below(2) == 0 { CrashKind::Process } else { CrashKind::Power };
        match self.rng.below(14) {
            0 | 1 => {
                self.world.crash(id, kind)?;
                if self.rng.below(3) > 0 {
                    let wait = up_to(&mut self.rng, Duration::from_secs(1));
                    self.world.start_after(id, wait);
                }
            }
            2 => {
                let leader = self.world.leader().map_or(id, |leader| leader.0);
                self.world.crash(leader, kind)?;
                let wait = up_to(&mut self.rng, Duration::from_millis(1500));
                self.world.start_after(leader, wait);
            }
            3 | 4 => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                for id in &self.ids {
                    if self.rng.below(2) == 0 { left.push(*id) } else { right.push(*id) }
                }
                self.world.partition(&[&left, &right]);
            }
            5 => {
                let others: Vec<i64> = self.ids.iter().copied().filter(|o| *o != id).collect();
                self.world.partition(&[&others]);
            }
            6 => {
                let other = self.any();
                self.world.block(id, other);
            }
            7 => self.world.heal(),
            8 => {
                self.world.pause(id);
                self.run_up_to(Duration::from_secs(2))?;
                self.world.resume(id)?;
            }
            9 => {
                for _ in 0..=self.rng.below(8) {
                    self.world.cut_any();
                }
            }
            10 => {
                let on = self.rng.below(2) == 0;
                self.world.black_hole(id, on);
            }
            11 | 12 => {
                let leader = self.world.leader().map_or(id, |leader| leader.0);
                let to = (self.rng.below(2) == 0).then_some(id);
                self.world.hand_over(leader, to)?;
                if self.rng.below(2) == 0 {
                    // Somewhere on its way.
                    let outputs = self.rng.below(12);
                    let again = up_to(&mut self.rng, Duration::from_secs(1));
                    let victim = if self.rng.below(2) == 0 { leader } else { id };
                    self.world.crash_after_outputs(victim, outputs, Some(again));
                }
            }
            _ => {
                // Only who is in no quorum may forget its promises.
                let observer = self.world.ensemble().seats().iter().find(|seat| !seat.voter);
                if let Some(id) = observer.map(|seat| seat.id.0).filter(|_| self.empty_history) {
                    self.world.crash(id, kind)?;
                    self.world.wipe(id);
                    self.world.start(id);
                }
            }
        }
        Ok(())
    }

    fn repair(&mut self) -> Result<(), Violation> {
        self.world.calm();
        self.world.heal();
        for id in self.ids.clone() {
            self.world.black_hole(id, false);
            self.world.resume(id)?;
            self.world.start(id);
        }
        Ok(())
    }

    /// The leader of a settled ensemble crashes; the others go on, and it comes back to follow.
    fn fail_over(&mut self, noticing: Duration) -> Result<Option<Duration>, Failure> {
        let Some(old) = self.world.leader() else { return Ok(None) };
        if !self.world.ensemble().is_quorum(|id| id != old) {
            return Ok(None);
        }
        let power = self.rng.below(4) == 0;
        self.world.crash(old.0, if power { CrashKind::Power } else { CrashKind::Process })?;
        let noticing = if power { noticing } else { Duration::ZERO };
        let limit = noticing + ELECTION_MAX;
        let others: Vec<_> = self.world.ensemble().ids().filter(|id| *id != old).collect();
        let settled =
            |w: &World| w.is_settled_among(others.iter().copied().filter(|id| can(w, *id)));
        let found = self.world.run_until(settled, limit)?;
        let failover = self.found("no other leader", limit, found)?;
        let new = self.world.leader();
        self.world.start(old.0);
        let limit = noticing + ELECTION_MAX;
        let found = self.world.run_until(is_settled, limit)?;
        self.found("the old leader does not follow", limit, found)?;
        if self.world.leader() != new {
            return Err(Failure::Unstable { state: self.state() });
        }
        Ok(Some(failover.saturating_sub(noticing)))
    }

    /// A leader that all follow stays one.
    fn stays(&mut self) -> Result<(), Failure> {
        let epoch = |w: &World| w.leader().and_then(|id| w.brief(id.0)).map(|b| b.current_epoch);
        let before = (self.world.leader(), epoch(&self.world));
        self.world.run_for(WATCH)?;
        if (self.world.leader(), epoch(&self.world)) != before || !is_settled(&self.world) {
            return Err(Failure::Unstable { state: self.state() });
        }
        Ok(())
    }

    /// Whether those whose history ends where the best vote's does are a quorum by themselves.
    fn newest_is_a_quorum(&self) -> bool {
        let ensemble = self.world.ensemble();
        let of = |id: ServerId| self.world.durable(id.0).cloned().unwrap_or_default();
        let best = ensemble
            .ids()
            .filter(|id| ensemble.may_lead(*id))
            .map(|id| (of(id).current_epoch, of(id).last()))
            .max();
        ensemble.is_quorum(|id| best.is_some_and(|(_, last)| of(id).last() == last))
    }

    fn found(
        &self,
        what: &'static str,
        limit: Duration,
        found: Option<Duration>,
    ) -> Result<Duration, Failure> {
        found.ok_or_else(|| Failure::NoLeader { what, limit, state: self.state() })
    }

    fn state(&self) -> String {
        self.ids.iter().fold(format!("{:?}\n", self.world.ensemble()), |all, id| {
            let durable = self.world.durable(*id);
            all + &format!("  {id}: {:?} on {durable:?}\n", self.world.brief(*id))
        })
    }

    fn run_up_to(&mut self, longest: Duration) -> Result<(), Violation> {
        let wait = up_to(&mut self.rng, longest);
        self.world.run_for(wait)
    }

    fn any(&mut self) -> i64 {
        self.ids[pick(&mut self.rng, self.ids.len())]
    }
}

/// Whether everybody serves who can.
pub(crate) fn is_settled(world: &World) -> bool {
    world.is_settled_among(world.ensemble().ids().filter(|id| can(world, *id)))
}

/// Whether a server can follow the present leader. An observer is not asked when a new epoch is chosen,
/// so the one it promised to a leader that was never established may be later than the present one; it
/// has to wait for the next leader then, as ZooKeeper's observers do.
pub(crate) fn can(world: &World, id: ServerId) -> bool {
    let leader = world.leader().and_then(|leader| world.brief(leader.0));
    let voter = world.ensemble().seat(id).is_some_and(|seat| seat.voter);
    let promised = world.durable(id.0).map(|durable| durable.accepted_epoch);
    voter || leader.is_none_or(|leader| promised <= Some(leader.current_epoch))
}

pub(crate) fn pick(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.below(count as u64)).unwrap_or(0)
}

/// Three to nine servers: mostly equal voters, sometimes with observers, sometimes in weighted groups.
fn ensemble(rng: &mut Rng) -> Ensemble {
    let servers = 3 + i64::try_from(rng.below(7)).unwrap_or(0);
    match rng.below(10) {
        0..6 => Ensemble::majority(servers),
        6 | 7 => {
            let observers = 1 + i64::try_from(rng.below(2)).unwrap_or(0);
            let voters = (servers - observers).max(2);
            Ensemble::majority(voters).with_observers(voters + 1..=servers)
        }
        _ => {
            let mut groups = vec![Vec::new(); 1 + pick(rng, 3)];
            for id in 1..=servers {
                let at = pick(rng, groups.len());
                groups[at].push((id, rng.below(3)));
            }
            groups.retain(|group| !group.is_empty());
            groups[0][0].1 += 1;
            let groups: Vec<&[(i64, u64)]> = groups.iter().map(Vec::as_slice).collect();
            Ensemble::hierarchical(&groups)
        }
    }
}

/// What the disks hold: epochs as some earlier run may have left them. An epoch that anybody took over
/// was promised by a quorum before.
fn histories(rng: &mut Rng, ensemble: &Ensemble, same: bool) -> BTreeMap<ServerId, Contents> {
    let mut all = BTreeMap::new();
    let first = i64::try_from(rng.below(3)).unwrap_or(0);
    let common = Zxid::new(Epoch(first), Counter(u32::from(first > 0) * 7));
    for id in ensemble.ids() {
        let current = first + i64::try_from(rng.below(2)).unwrap_or(0);
        let mut last = common;
        if !same && rng.below(3) == 0 {
            let counter = u32::try_from(rng.below(4)).unwrap_or(0) + 1;
            last = Zxid::new(Epoch(current), Counter(counter));
        }
        // Everybody's history is a part of the common one, or that and some of an epoch behind it.
        let mut contents = Contents::ending(current, current, common.min(last));
        while contents.last() < last {
            contents = contents.and(last.epoch().0);
        }
        all.insert(id, contents);
    }
    let newest = all.values().map(|d| d.current_epoch.0).max().unwrap_or(0);
    let lags: Vec<ServerId> = ensemble.ids().filter(|_| rng.below(4) == 0).collect();
    let may_lag = ensemble.is_quorum(|id| !lags.contains(&id));
    for (id, durable) in &mut all {
        if !(may_lag && lags.contains(id)) {
            durable.accepted_epoch = Epoch(newest + i64::try_from(rng.below(3)).unwrap_or(0));
        }
    }
    all
}

fn network(rng: &mut Rng) -> NetworkConfig {
    let (min, max) = [(100, 1_000), (100, 2_000), (1_000, 8_000), (20_000, 60_000)][pick(rng, 4)];
    let sometimes = |rng: &mut Rng, chance| if rng.below(2) == 0 { chance } else { 0 };
    NetworkConfig {
        latency_min: Duration::from_micros(min),
        latency_max: Duration::from_micros(max),
        spike: sometimes(rng, 800),
        spike_max: Duration::from_millis(300),
        reset: sometimes(rng, 300),
        duplicate: sometimes(rng, 2_000),
        split: sometimes(rng, 4_000),
        write_max: Duration::from_micros([50, 5_000][pick(rng, 2)]),
        silent_min: Duration::from_millis(500),
        silent_max: Duration::from_secs(2),
        ..NetworkConfig::default()
    }
}

fn disk(rng: &mut Rng) -> DiskConfig {
    DiskConfig {
        sync_max: Duration::from_millis([1, 5, 20][pick(rng, 3)]),
        slow: if rng.below(3) == 0 { 6_000 } else { 0 },
        survival: if rng.below(2) == 0 { Survival::Prefix } else { Survival::Any },
        ..DiskConfig::default()
    }
}
