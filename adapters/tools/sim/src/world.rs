//! The world: servers, their disks, the network between them, and time.
//!
//! One [`World::step`] is one thing that happens to one server: time moves to it, the server's `Peer`
//! hears of it, the checker looks at the result, and the outputs are carried out in order. A crash may
//! be placed between any two outputs of a step: what was carried out before it has happened, the rest
//! never does.

mod actions;
mod answers;
mod clock;
mod config;
mod crashes;
mod crowd;
mod deliveries;
mod draining;
mod events;
mod front;
mod java_learner;
mod leaving;
mod led_by_java;
mod non_members;
mod outages;
mod outputs;
mod reference;
mod server;
mod sessions;
mod stepping;
mod storage;
mod told;
mod view;

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::config::{Config, Election, Limits};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Place};
use quorate_core::membership::Membership;
use quorate_core::output::Output;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::txn::Txn;

use crate::agenda::Agenda;
use crate::application::State;
use crate::checker::Checker;
use crate::clients::Crowd;
use crate::disk::DiskConfig;
use crate::faults::{Coverage, FaultClass};
use crate::network::{Network, up_to};
use crate::rule::{Rule, Violation, broken};
use crate::trace::Trace;
use crate::world::clock::Clock;
pub use crate::world::config::WorldConfig;
use crate::world::events::{Fuse, Trap, What};
use crate::world::reference::Reference;
use crate::world::server::Server;

/// More steps than this without any time passing, and a server spins.
const STEPS_AT_ONCE_MAX: u32 = 100_000;
/// How long it takes to look up a name, at most.
const LOOK_UP_MAX: Duration = Duration::from_millis(20);
/// How many bytes of a snapshot are written at once.
const SNAPSHOT_PIECE: usize = 64;
/// How many lines a failing world prints.
const LINES_SHOWN: usize = 300;

/// Servers in a simulated world.
#[derive(Debug)]
pub struct World {
    seed: u64,
    rng: Rng,
    /// For what takes the place of names.
    names: Rng,
    /// For how long applications take to apply.
    appliers: Rng,
    /// For those who claim to be voters.
    claims: Rng,
    agenda: Agenda<What>,
    servers: BTreeMap<ServerId, Server>,
    network: Network,
    disk: DiskConfig,
    checker: Checker,
    trace: Trace,
    coverage: Coverage,
    /// The chance, in 65536ths, that a step with outputs is not carried out to its end.
    crash_within: u64,
    restart_max: Duration,
    traps: BTreeMap<ServerId, Trap>,
    fuse: Option<Fuse>,
    /// The same, of writes that are made durable.
    write_fuse: Option<Fuse>,
    /// What burns when the first of them has burnt down.
    next_fuse: Option<Fuse>,
    next_write_fuse: Option<Fuse>,
    application_max: Duration,
    expands: Option<usize>,
    outputs: Vec<Output>,
    steps: u64,
    /// Notifications and messages that servers have sent.
    election_messages: u64,
    steps_at_once: u32,
    /// How often non-members come by.
    non_members: Option<Duration>,
    lease: Option<Duration>,
    /// Whether the membership may change.
    may_change: bool,
    /// Whether the application's state tells the membership.
    tells: bool,
    /// Whether servers that start again may have been given another one, or none.
    leases_change: bool,
    /// Those that were given another one.
    lease_set: BTreeMap<ServerId, Option<Duration>>,
    /// Whether servers that start again may do so as the other kind.
    kinds_change: bool,
    /// How often a client has asked for what ends servers of ZooKeeper.
    poisons: i32,
    /// Until when a lease may be one that was promised before a clock went wrong.
    leases_void_until: Instant,
    /// The clients of its servers, if these have a service.
    crowd: Option<Box<Crowd>>,
}

impl World {
    /// A world in which no server runs yet.
    ///
    /// # Panics
    ///
    /// If the ensemble or a view is none, say without a voter.
    pub fn new(seed: u64, config: WorldConfig) -> Self {
        let mut rng = Rng::new(seed);
        let mut network = Network::new(config.network.clone(), rng.next_u64());
        network.old.clone_from(&config.old);
        network.is_zookeepers = config.clients > 0;
        network.messages = config.election != Election::Fast;
        let servers = servers_of(seed, &config);
        let checker = checker_of(&config);
        let crowd = crowd::crowd_of(
            seed,
            config.clients,
            config.timing.tick,
            config.ensemble.ids().collect(),
            !config.old.is_empty(),
            config.old.is_empty() && !config.kinds_change,
        );
        let mut agenda = Agenda::new();
        if let Some(every) = config.non_members {
            agenda.after(every, What::NonMember);
        }
        Self {
            seed,
            rng,
            names: Rng::new(seed ^ 0x0a3e_5000),
            appliers: Rng::new(seed ^ 0x00a9_9113),
            claims: Rng::new(seed ^ 0xc1a1_3000),
            agenda,
            servers,
            network,
            disk: config.disk,
            checker,
            trace: Trace::new(config.keep_log),
            coverage: Coverage::default(),
            crash_within: 0,
            restart_max: Duration::from_secs(1),
            traps: BTreeMap::new(),
            fuse: None,
            write_fuse: None,
            next_fuse: None,
            next_write_fuse: None,
            application_max: config.application_max,
            expands: config.expands,
            outputs: Vec::new(),
            steps: 0,
            election_messages: 0,
            steps_at_once: 0,
            non_members: config.non_members,
            lease: config.lease,
            may_change: config.may_change,
            tells: config.tells,
            leases_change: config.leases_change,
            lease_set: BTreeMap::new(),
            leases_void_until: Instant::ORIGIN,
            kinds_change: config.kinds_change,
            poisons: 0,
            crowd,
        }
        .begun()
    }

    fn begun(mut self) -> Self {
        self.enter_clients();
        self
    }

    /// How many notifications or messages servers have sent to one another.
    pub fn election_messages(&self) -> u64 {
        self.election_messages
    }

    // ---- time ----

    /// Lets the next thing happen; false if nothing is left to happen.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn step(&mut self) -> Result<bool, Violation> {
        let before = self.agenda.now();
        let Some(what) = self.agenda.pop() else { return Ok(false) };
        self.steps_at_once = if self.agenda.now() == before { self.steps_at_once + 1 } else { 0 };
        match what {
            What::Start { id } => self.begin(id)?,
            What::Tick { id, token } => self.on_tick(id, token)?,
            What::Network(event) => {
                self.network.handle(self.agenda.now(), event);
                self.enter_network();
                self.arrive()?;
                if let Some(problem) = self.network.problem.take() {
                    return broken(Rule::Codec, ServerId::NONE, problem);
                }
                if let Some((id, why)) = self.network.unpaired.take() {
                    return broken(Rule::Paired, id, why);
                }
            }
            What::NonMember => self.on_non_member(),
            What::Synced { id, incarnation } => self.on_synced(id, incarnation)?,
            What::Answer { id, incarnation, event } => {
                if self.is_same(id, incarnation) {
                    if matches!(*event, Event::Applied(_)) {
                        self.work(id)?;
                    }
                    self.feed(id, *event)?;
                }
            }
            What::Front { id, incarnation } => {
                if self.is_same(id, incarnation) || self.waits_for_disk(id, incarnation) {
                    self.work(id)?;
                }
            }
            What::Ends { id, incarnation } => self.ends_of_poison(id, incarnation)?,
            What::Vacated { id, incarnation } => self.stops(id, incarnation)?,
            What::Client(news) => self.on_client(news)?,
            What::Prepared { id, incarnation } => self.on_prepared(id, incarnation)?,
            What::Replay { id, incarnation, after, through } => {
                self.on_replay(id, incarnation, after, through)?;
            }
            What::Locate { id, incarnation, link, zxid } => {
                if let Some(server) = self.servers.get(&id).filter(|s| s.is(incarnation)) {
                    let per_txn = self.disk.snapshot_bytes_per_txn;
                    let located = server.disk.durable().locate(zxid, per_txn);
                    self.coverage.hit(match located.place {
                        Place::Held => FaultClass::LocatedHeld,
                        Place::BelowFloor | Place::Absent { .. } | Place::Beyond => {
                            FaultClass::LocatedElsewhere
                        }
                    });
                    self.feed(id, Event::Located { link, located })?;
                }
            }
            What::Publish { id, incarnation, state } => {
                if let Some(server) = self.servers.get_mut(&id).filter(|s| s.is(incarnation)) {
                    server.taken.push(*state);
                    self.publish(id)?;
                }
            }
            What::Restored { id, incarnation, link, state } => {
                self.on_restored(id, incarnation, link, *state)?;
            }
        }
        if let Some((id, why)) = self.network.poisoned.take() {
            return broken(Rule::Poison, id, why);
        }
        if self.steps_at_once > STEPS_AT_ONCE_MAX {
            let detail = format!("time stands still at {:?}", self.now());
            return broken(Rule::Progress, ServerId::NONE, detail);
        }
        Ok(true)
    }

    /// Lets things happen until `done`, or until `limit` has passed; returns how long it took.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn run_until(
        &mut self,
        mut done: impl FnMut(&Self) -> bool,
        limit: Duration,
    ) -> Result<Option<Duration>, Violation> {
        let start = self.now();
        loop {
            if done(self) {
                return Ok(Some(self.now() - start));
            }
            let due = self.agenda.next_at().is_some_and(|at| at <= start + limit);
            if !due {
                self.agenda.advance(start + limit);
                return Ok(None);
            }
            self.step()?;
        }
    }

    /// Lets a while pass.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn run_for(&mut self, duration: Duration) -> Result<(), Violation> {
        self.run_until(|_| false, duration).map(|_| ())
    }

    // ---- inside ----

    /// Lets the servers hear of what has come.
    fn arrive(&mut self) -> Result<(), Violation> {
        loop {
            if let Some((to, event)) = self.network.arrivals.pop_front() {
                self.feed(to, event)?;
            } else if let Some((to, link, mut state)) = self.network.snapshots.pop_front() {
                self.goes_on_meanwhile(link, &mut state);
                let Some(server) = self.servers.get(&to) else { continue };
                let incarnation = server.incarnation;
                let wait = up_to(&mut self.rng, 20 * self.application_max);
                let state = Box::new(state);
                self.agenda.after(wait, What::Restored { id: to, incarnation, link, state });
            } else {
                return Ok(());
            }
        }
    }

    fn on_restored(
        &mut self,
        id: ServerId,
        incarnation: u64,
        link: LinkId,
        state: State,
    ) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id).filter(|s| s.is(incarnation)) else {
            return Ok(());
        };
        if server.application.receiving != Some((link, state.label)) {
            return Ok(());
        }
        server.application.receiving = None;
        let told = state.membership().filter(|_| self.tells);
        let membership = told.map(|membership| membership.text().clone());
        server.application.received = Some(state.clone());
        server.disk.stage(state);
        self.feed(id, Event::Restored { link, membership })?;
        self.network.read_on(self.agenda.now(), link);
        self.arrive()
    }

    fn on_prepared(&mut self, id: ServerId, incarnation: u64) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id).filter(|s| s.is(incarnation)) else {
            return Ok(());
        };
        let drafts = std::mem::take(&mut server.drafts);
        // A leadership that was given up does not stop what was under way in it.
        for of_one in drafts.chunk_by(|(a, _), (b, _)| a == b) {
            let epoch = of_one[0].0;
            let drafts = of_one.iter().map(|(_, draft)| draft.clone()).collect();
            if self.is_same(id, incarnation) {
                self.feed(id, Event::Prepared { epoch, drafts })?;
            }
        }
        Ok(())
    }
    fn is_same(&self, id: ServerId, incarnation: u64) -> bool {
        self.servers.get(&id).is_some_and(|server| server.is(incarnation))
    }

    /// Enters into the agenda what the network has scheduled.
    fn enter_network(&mut self) {
        for (at, event) in self.network.scheduled.drain(..) {
            self.agenda.at(at, What::Network(event));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && self.trace.keeps() {
            eprintln!("seed {} at {:?}\n{}", self.seed, self.now(), self.log_tail(LINES_SHOWN));
        }
    }
}

/// What a server of a world is told, whose membership is known.
fn config_of(seed: u64, config: &WorldConfig, id: ServerId, membership: Membership) -> Config {
    let old = config.old.contains_key(&id);
    let refers = config.old_elect && old;
    let timing = &config.timing;
    Config {
        limits: Limits {
            txn_bytes: config.expands.unwrap_or(Txn::BYTES_MAX),
            unsynced_bytes: config.unsynced_bytes,
            ..Limits::default()
        },
        timing: if refers { reference::timing(timing) } else { timing.clone() },
        finish_when_settled: config.finish_when_settled && !refers,
        history: config.history.clone(),
        election: config.election.clone(),
        priority: config.priorities.get(&id).copied().unwrap_or(0),
        lease: config.lease.filter(|_| !old),
        reconfig_enabled: config.may_change && !config.unwilling.contains(&id),
        keeps_sessions: config.clients > 0
            || config.keeps_sessions && (seed ^ id.0.unsigned_abs()) % 3 > 0 && !old,
        ..Config::new(id, membership)
    }
}

/// The servers of a world, none of which runs.
fn servers_of(seed: u64, config: &WorldConfig) -> BTreeMap<ServerId, Server> {
    let mut drifts = Rng::new(seed ^ 0xc10c);
    let mut walls = Rng::new(seed ^ 0x3a11);
    let apart = u64::try_from(config.walls_apart.as_millis()).unwrap_or(0);
    let ids = config.ensemble.ids().chain(config.spares.iter().copied());
    let servers = ids.map(|id| {
        let membership = match config.membership_of(id) {
            Ok(membership) => membership,
            Err(error) => panic!("{error}: {config:?}"),
        };
        let refers = config.old_elect && config.old.contains_key(&id);
        let contents = config.disks.get(&id).cloned().unwrap_or_default();
        let drift = clock::TRUE - config.drift + drifts.below(2 * config.drift + 1);
        let mut server =
            Server::new(config_of(seed, config, id, membership), contents, Clock::new(drift));
        server.reference = refers.then(Reference::default);
        server.wall = i64::try_from(walls.below(apart + 1)).unwrap_or(0);
        server.wall_max = server.wall;
        (id, server)
    });
    servers.collect()
}

/// What watches over a world.
fn checker_of(config: &WorldConfig) -> Checker {
    let mut checker = Checker::new(config.ensemble.clone(), &config.disks);
    checker.may_change = config.may_change;
    checker.untold = config.old.keys().copied().collect();
    checker.foreign = config.old.keys().copied().collect();
    if config.kinds_change {
        // Who waits at the end of an election is not what its peers heard before.
        checker.foreign.extend(config.ensemble.ids().chain(config.spares.iter().copied()));
    }
    checker.spares =
        config.spares.iter().filter_map(|id| Some((*id, config.of_spare(*id)?))).collect();
    checker.by_generation = config.election != Election::Fast;
    checker.txn_bytes = config.expands.unwrap_or(Txn::BYTES_MAX);
    checker.ledger.unreadable = config.disk.unreadable > 0;
    checker
}
