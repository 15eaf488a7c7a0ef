//! The settings of a story: everything that is fixed before the first server starts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::config::{Config, Election, HistoryLimits, Timing};
use quorate_core::id::ServerId;
use quorate_core::recipe::lease::Expiry;
use quorate_core::recipe::offer::Naming;
use quorate_core::rng::Rng;

use super::Problem;
use super::command::{Means, Setting, Whom};
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
    /// What a story has set, and whom it changes.
    given: Vec<(&'static str, Whom)>,
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
            given: Vec::new(),
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
        self.given.push(setting.about());
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
    ///
    /// # Errors
    ///
    /// If they do not fit one another, or are not for a world.
    pub(super) fn world(&self) -> Result<World, Problem> {
        let ids: BTreeSet<ServerId> = self.ensemble.ids().chain(self.spares.clone()).collect();
        self.check("among real servers", |whom| match whom {
            Whom::All | Whom::Servers | Whom::World => true,
            Whom::Server(id) => ids.contains(&ServerId(id)),
            Whom::Stage | Whom::Candidates | Whom::Offers | Whom::Observer(_) => false,
        })?;
        if let Some(old) = self.old.keys().find(|id| !ids.contains(id)) {
            return Err(Problem::Impossible(format!("there is no server {old}")));
        }
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
        for id in ids {
            if let Err(error) = config.membership_of(id) {
                return Err(Problem::Impossible(format!("what server {id} knows: {error}")));
            }
        }
        Ok(World::new(self.seed(), config))
    }

    /// Whether all that was set is for a server here.
    fn check(&self, here: &str, is_for: impl Fn(Whom) -> bool) -> Result<(), Problem> {
        match self.given.iter().find(|(_, whom)| !is_for(*whom)) {
            Some((name, _)) => {
                Err(Problem::Impossible(format!("a `{name}` before it changes nothing {here}")))
            }
            None => Ok(()),
        }
    }

    /// A stage for one server.
    ///
    /// # Errors
    ///
    /// If there is no such server, or something was set that is not for a stage.
    pub(super) fn stage(&self, id: i64) -> Result<Stage, Problem> {
        if self.ensemble.member(ServerId(id)).is_none() {
            return Err(Problem::Impossible(format!("there is no server {id}")));
        }
        self.check("on a stage for one server", |whom| match whom {
            Whom::All | Whom::Servers | Whom::Stage => true,
            Whom::Server(of) => of == id,
            Whom::World | Whom::Candidates | Whom::Offers | Whom::Observer(_) => false,
        })?;
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
        Ok(stage)
    }

    /// Whether they are for so many candidates that use these means.
    ///
    /// # Errors
    ///
    /// If one is not.
    pub(super) fn fit(&self, candidates: i64, means: Means) -> Result<(), Problem> {
        let (counts, observes) = match means {
            Means::Offers(naming) => (naming != Naming::Lease, false),
            Means::Lease(expiry) => (false, expiry == Expiry::Observed),
        };
        self.check("for the candidates of such a store", |whom| match whom {
            Whom::All | Whom::Candidates => true,
            Whom::Offers => counts,
            Whom::Observer(id) => observes && id <= candidates,
            Whom::Servers | Whom::World | Whom::Server(_) | Whom::Stage => false,
        })
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
