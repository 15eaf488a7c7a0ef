//! What a story is set in: everything that is fixed before anything starts.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::config::{Config, Election, HistoryLimits, Timing};
use quorate_core::id::ServerId;
use quorate_core::rng::Rng;

use super::command::Setting;
use crate::disk::{Contents, DiskConfig, Survival};
use crate::ensemble::Ensemble;
use crate::network::{Dialect, NetworkConfig, up_to};
use crate::stage::Stage;
use crate::world::{World, WorldConfig};

/// How long every way takes, and every write to a disk.
const STEP: Duration = Duration::from_millis(1);
/// The longest that any way takes where stories are perturbed: much less than the 200 ms for which an elected
/// server waits for a better vote.
const LONGEST_WAY: Duration = Duration::from_millis(20);
/// The longest that any write to a disk takes there.
const LONGEST_SYNC: Duration = Duration::from_millis(40);
/// After which silence a connection to a machine without power is given up.
const SILENCE: Duration = Duration::from_secs(5);
/// After which silence a store ends a session.
const SESSION: Duration = Duration::from_secs(10);
/// Certain, in 65536ths.
const ALWAYS: u64 = 0x1_0000;

/// What is set so far.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) ensemble: Ensemble,
    views: BTreeMap<ServerId, Ensemble>,
    pub(super) spares: Vec<ServerId>,
    disks: BTreeMap<ServerId, Contents>,
    old: BTreeMap<ServerId, Dialect>,
    seed: u64,
    timing: Timing,
    history: HistoryLimits,
    network: NetworkConfig,
    disk: DiskConfig,
    settle: bool,
    election: Election,
    reconfig: bool,
    by_hand: bool,
    /// After how much silence a store ends a session, or a lease.
    pub(super) session: Duration,
    /// How long the leases of some candidates last where others observe them.
    pub(super) leases: BTreeMap<usize, Duration>,
    /// By how much candidates stop before that, if it is not a tenth.
    pub(super) margin: Option<Duration>,
    /// The counter of a store's offers.
    pub(super) counter: i32,
    /// The seed of another world than the one in which the story was written.
    otherwise: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ensemble: Ensemble::majority(3),
            views: BTreeMap::new(),
            spares: Vec::new(),
            disks: BTreeMap::new(),
            old: BTreeMap::new(),
            seed: 1,
            timing: Timing { tick: Duration::from_secs(2), ..Timing::default() },
            history: HistoryLimits::default(),
            network: NetworkConfig {
                latency_min: STEP,
                latency_max: STEP,
                write_max: Duration::ZERO,
                stream_gap_max: Duration::ZERO,
                silent_min: SILENCE,
                silent_max: SILENCE,
                resume: ALWAYS,
                ..NetworkConfig::default()
            },
            disk: DiskConfig { sync_min: STEP, sync_max: STEP, ..DiskConfig::default() },
            settle: true,
            election: Election::Fast,
            reconfig: false,
            by_hand: false,
            session: SESSION,
            leases: BTreeMap::new(),
            margin: None,
            counter: 0,
            otherwise: None,
        }
    }
}

impl Settings {
    pub(super) fn set(&mut self, setting: &Setting) {
        match setting {
            Setting::Servers(ensemble) => self.ensemble = ensemble.clone(),
            Setting::View(id, ensemble) => {
                self.views.insert(ServerId(*id), ensemble.clone());
            }
            Setting::Spares(ids) => self.spares = ids.iter().copied().map(ServerId).collect(),
            Setting::Speak(dialect, ids) => {
                self.old.extend(ids.iter().map(|id| (ServerId(*id), *dialect)));
            }
            Setting::Disk(id, contents) => {
                self.disks.insert(ServerId(*id), (**contents).clone());
            }
            Setting::Seed(seed) => self.seed = *seed,
            Setting::Tick(tick) => self.timing.tick = *tick,
            Setting::InitLimit(ticks) => self.timing.init_limit = *ticks,
            Setting::SyncLimit(ticks) => self.timing.sync_limit = *ticks,
            Setting::Latency(way) => {
                (self.network.latency_min, self.network.latency_max) = (*way, *way);
            }
            Setting::Silence(after) => {
                (self.network.silent_min, self.network.silent_max) = (*after, *after);
            }
            Setting::Stream(gap) => {
                (self.network.stream_gap_min, self.network.stream_gap_max) = (*gap, *gap);
            }
            Setting::Window(count) => self.history.window_count = *count,
            Setting::Snap(count) => {
                // Who wants to see snapshots wants to see them sent.
                self.history.snap_count = *count;
                self.history.size_percent = None;
            }
            Setting::Crash(survival) => self.disk.survival = *survival,
            Setting::Settle(on) => self.settle = *on,
            Setting::Election(election) => self.election = election.clone(),
            Setting::Reconfig(on) => self.reconfig = *on,
            Setting::DiskByHand => self.by_hand = true,
            Setting::Session(time) => self.session = *time,
            Setting::Lease(id, time) => {
                let number = usize::try_from(id - 1).unwrap_or(0);
                self.leases.insert(number, *time);
            }
            Setting::Margin(time) => self.margin = Some(*time),
            Setting::Counter(counter) => self.counter = *counter,
        }
    }

    /// Everything that the story leaves open is drawn from this seed.
    pub(super) fn perturb(&mut self, seed: u64) {
        self.otherwise = Some(seed);
    }

    /// Whether everything that the story leaves open is drawn.
    pub(super) const fn is_perturbed(&self) -> bool {
        self.otherwise.is_some()
    }

    /// Where it is drawn from.
    pub(super) fn seed(&self) -> u64 {
        self.otherwise.unwrap_or(self.seed)
    }

    /// What crashes leave of writes that are under way.
    pub(super) fn survival(&self) -> Survival {
        self.disk.survival
    }

    /// The world of these settings.
    pub(super) fn world(&self) -> World {
        let mut config = WorldConfig {
            disks: self.disks.clone(),
            views: self.views.clone(),
            old: self.old.clone(),
            spares: self.spares.clone(),
            may_change: self.reconfig,
            timing: self.timing.clone(),
            history: self.history.clone(),
            network: self.network.clone(),
            disk: self.disk.clone(),
            finish_when_settled: self.settle,
            election: self.election.clone(),
            application_max: Duration::ZERO,
            keep_log: true,
            ..WorldConfig::new(self.ensemble.clone())
        };
        if let Some(seed) = self.otherwise {
            perturb(&mut config, &mut Rng::new(seed));
        }
        World::new(self.seed(), config)
    }

    /// A stage for one server.
    pub(super) fn stage(&self, id: i64) -> Stage {
        let contents = self.disks.get(&ServerId(id)).cloned().unwrap_or_default();
        let change = |config: &mut Config| {
            config.timing = self.timing.clone();
            config.history = self.history.clone();
            config.finish_when_settled = self.settle;
            config.election = self.election.clone();
            config.seed = self.seed();
        };
        let ensemble = self.views.get(&ServerId(id)).unwrap_or(&self.ensemble);
        let mut stage = Stage::with(ensemble, id, contents, change);
        stage.sync_at_once = !self.by_hand;
        stage
    }
}

/// Ways, disks and applications of which each takes its own time, anything between nothing and the longest; how
/// long that is depends on the seed, and is often short.
fn perturb(config: &mut WorldConfig, draw: &mut Rng) {
    let mut longest = |bound: Duration| {
        let longest = bound / (1 << draw.below(7));
        (up_to(draw, longest / 2), longest)
    };
    let network = &mut config.network;
    (network.latency_min, network.latency_max) = longest(LONGEST_WAY);
    (_, network.write_max) = longest(STEP);
    (_, config.application_max) = longest(STEP);
    (config.disk.sync_min, config.disk.sync_max) = longest(LONGEST_SYNC);
}
