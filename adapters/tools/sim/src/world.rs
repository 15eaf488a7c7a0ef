//! The world: servers, their disks, the network between them, and time.
//!
//! One [`World::step`] is one thing that happens to one server: time moves to it, the server's `Peer`
//! hears of it, the checker looks at the result, and the outputs are carried out in order. A crash may
//! be placed between any two outputs of a step: what was carried out before it has happened, the rest
//! never does.

mod clock;
mod config;
mod crashes;
mod deliveries;
mod hands;
mod leaving;
mod outputs;
mod reference;
mod server;
mod storage;
mod strangers;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_core::config::{Config, Election, Limits};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Input, Place};
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Leadership, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reasons::Hangup;
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::vote::ServerState;
use quorate_core::zxid::{Epoch, Zxid};

use crate::agenda::Agenda;
use crate::application::{Application, State};
use crate::brief::Brief;
use crate::checker::{Checker, Standing};
use crate::disk::{Disk, DiskConfig};
use crate::faults::{Coverage, CrashKind, FaultClass};
use crate::network::{Network, NetworkEvent, hit, up_to};
use crate::record::{Found, What as Told};
use crate::rule::{Rule, Violation, broken};
use crate::trace::Trace;
use crate::world::clock::Clock;
pub use crate::world::config::WorldConfig;
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

/// Something that will happen.
#[derive(Debug)]
enum What {
    Start {
        id: ServerId,
    },
    Tick {
        id: ServerId,
        token: u64,
    },
    Network(NetworkEvent),
    /// A non-member comes by.
    Stranger,
    Synced {
        id: ServerId,
        incarnation: u64,
    },
    /// The application or the disk answers.
    Answer {
        id: ServerId,
        incarnation: u64,
        event: Box<Event>,
    },
    /// An application reads the log, and applies what it finds.
    Replay {
        id: ServerId,
        incarnation: u64,
        after: Zxid,
        through: Zxid,
    },
    /// The application has prepared all that it was asked to.
    Prepared {
        id: ServerId,
        incarnation: u64,
    },
    Locate {
        id: ServerId,
        incarnation: u64,
        link: LinkId,
        zxid: Zxid,
    },
    /// A snapshot that was taken is ready to be put on disk.
    Publish {
        id: ServerId,
        incarnation: u64,
        state: Box<State>,
    },
    Restored {
        id: ServerId,
        incarnation: u64,
        link: LinkId,
        state: Box<State>,
    },
}
/// Where a crash has been laid.
#[derive(Clone, Copy, Debug)]
struct Trap {
    at: fn(&Output) -> bool,
    after: bool,
}

/// How many more outputs of a server are carried out before it crashes.
#[derive(Clone, Copy, Debug)]
struct Fuse {
    id: ServerId,
    left: u64,
    again: Option<Duration>,
}

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
    /// Notifications and letters that servers have sent.
    election_messages: u64,
    steps_at_once: u32,
    /// How often strangers come by.
    strangers: Option<Duration>,
    lease: Option<Duration>,
    /// Whether the membership may change.
    may_change: bool,
    /// Whether the application's state tells the membership.
    tells: bool,
    /// Whether servers that start again may have been given another one, or none.
    leases_change: bool,
    /// Those that were given another one.
    lease_set: BTreeMap<ServerId, Option<Duration>>,
    /// Until when a lease may be one that was promised before a clock went wrong.
    leases_void_until: Instant,
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
        network.letters = config.election != Election::Fast;
        let mut drifts = Rng::new(seed ^ 0xc10c);
        let mut servers = BTreeMap::new();
        let txn_bytes = config.expands.unwrap_or(Txn::BYTES_MAX);
        for id in config.ensemble.ids().chain(config.spares.iter().copied()) {
            let membership = match config.membership_of(id) {
                Ok(membership) => membership,
                Err(error) => panic!("{error}: {config:?}"),
            };
            let refers = config.old_elect && config.old.contains_key(&id);
            let timing = &config.timing;
            let own = Config {
                limits: Limits {
                    txn_bytes,
                    unsynced_bytes: config.unsynced_bytes,
                    ..Limits::default()
                },
                timing: if refers { reference::timing(timing) } else { timing.clone() },
                finish_when_settled: config.finish_when_settled && !refers,
                history: config.history.clone(),
                election: config.election.clone(),
                priority: config.priorities.get(&id).copied().unwrap_or(0),
                lease: config.lease.filter(|_| !network.old.contains_key(&id)),
                reconfig_enabled: config.may_change && !config.unwilling.contains(&id),
                ..Config::new(id, membership)
            };
            let contents = config.disks.get(&id).cloned().unwrap_or_default();
            let server = Server {
                config: own,
                recorder: None,
                peer: None,
                brief: None,
                leadership: None,
                disk: Disk::new(contents),
                disk_full: false,
                application: Application::default(),
                drafts: Vec::new(),
                taken: Vec::new(),
                busy_until: Instant::ORIGIN,
                committed: Zxid::ZERO,
                handed: None,
                asked: 0,
                incarnation: 0,
                disk_hangs: false,
                largest: 0,
                fell_behind: 0,
                paused: false,
                reference: refers.then(Reference::default),
                clock: Clock::new(clock::TRUE - config.drift + drifts.below(2 * config.drift + 1)),
                suspended: None,
                backlog: VecDeque::new(),
                tick: None,
                token: 0,
            };
            servers.insert(id, server);
        }
        let mut checker = Checker::new(config.ensemble.clone(), &config.disks);
        checker.may_change = config.may_change;
        checker.untold = config.old.keys().copied().collect();
        checker.foreign = config.old.keys().copied().collect();
        checker.spares =
            config.spares.iter().filter_map(|id| Some((*id, config.of_spare(*id)?))).collect();
        checker.by_generation = config.election != Election::Fast;
        checker.txn_bytes = txn_bytes;
        checker.ledger.unreadable = config.disk.unreadable > 0;
        let mut agenda = Agenda::new();
        if let Some(every) = config.strangers {
            agenda.after(every, What::Stranger);
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
            strangers: config.strangers,
            lease: config.lease,
            may_change: config.may_change,
            tells: config.tells,
            leases_change: config.leases_change,
            lease_set: BTreeMap::new(),
            leases_void_until: Instant::ORIGIN,
        }
    }

    /// How many notifications or letters servers have sent to one another.
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
            }
            What::Stranger => self.on_stranger(),
            What::Synced { id, incarnation } => self.on_synced(id, incarnation)?,
            What::Answer { id, incarnation, event } => {
                if self.is_same(id, incarnation) {
                    self.feed(id, *event)?;
                }
            }
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

    fn begin(&mut self, id: ServerId) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.peer.is_some() {
            return Ok(());
        }
        if let Some(refused) = server.disk.refused() {
            return broken(Rule::Start, id, format!("refuses to start: {refused}"));
        }
        server.incarnation += 1;
        // Every incarnation jitters in its own way, as if seeded by the system.
        let seed = (self.seed ^ (id.0 as u64) << 48).wrapping_add(server.incarnation);
        server.config.seed = Rng::new(seed).next_u64();
        if self.leases_change && server.incarnation > 1 && !self.network.old.contains_key(&id) {
            let set = self.lease_set.get(&id).copied();
            let drawn = || another_lease(&server.config, self.lease);
            server.config.lease = set.unwrap_or_else(drawn);
            self.coverage.hit(FaultClass::LeaseChanged);
        }
        let contents = server.disk.durable();
        let mut durable = contents.durable(server.config.history.window_count);
        durable.changes.extend(contents.told_by_state().filter(|_| self.tells));
        if server.reference.is_some() {
            server.reference = Some(Reference::default());
            self.network.listens(id, false);
        }
        self.trace.note(now, id, || Told::Start(Found::from(&durable)));
        self.checker.on_start(id, contents)?;
        if durable.current_epoch < durable.last_zxid.epoch() {
            self.coverage.hit(FaultClass::SyncInterrupted);
        }
        if let Some(membership) = &contents.membership {
            server.config.membership = membership.clone();
        }
        server.config.next_membership.clone_from(&contents.next_membership);
        if contents.next_membership.is_some() {
            self.coverage.hit(FaultClass::ChangeUnderway);
        }
        server.application = Application::new(contents.snapshots.last().cloned());
        (server.busy_until, server.asked, server.leadership) = (now, 0, None);
        (server.committed, server.handed) = (Zxid::ZERO, None);
        server.drafts.clear();
        if let Some(recorder) = &mut server.recorder {
            recorder.starts(&server.config, &durable);
        }
        let peer = match Peer::new(server.config.clone(), durable) {
            Ok(peer) => peer,
            Err(error) => panic!("server {id} refuses to start: {error}"),
        };
        server.brief = Some(Brief::of(&peer.status()));
        server.peer = Some(peer);
        if let Some(odd) = server.odd_clock() {
            self.coverage.hit(odd);
        }
        if server.incarnation > 1 {
            self.coverage.hit(FaultClass::Restart);
        } else if self.leader().is_some() {
            self.coverage.hit(FaultClass::LateStart);
        }
        self.network.host_up(now, id);
        self.enter_network();
        self.schedule_tick(id);
        Ok(())
    }

    fn on_tick(&mut self, id: ServerId, token: u64) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.token != token || server.tick.take().is_none() {
            return Ok(());
        }
        let shown = server.clock.shows(now);
        if server.deadline().is_some_and(|at| at <= shown) {
            return self.feed(id, Event::Tick);
        }
        self.schedule_tick(id);
        Ok(())
    }

    fn schedule_tick(&mut self, id: ServerId) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.paused {
            return;
        }
        let Some(at) = server.deadline() else { return };
        let at = server.clock.when(at).max(now);
        // A tick that is entered already for an earlier time will look again.
        if server.tick.is_none_or(|entered| at < entered) {
            server.token += 1;
            server.tick = Some(at);
            self.agenda.at(at, What::Tick { id, token: server.token });
        }
    }
    /// Lets a server hear of something, and carries out what it answers.
    fn feed(&mut self, id: ServerId, event: Event) -> Result<(), Violation> {
        if self.withholds(id, &event) {
            self.enter_network();
            self.schedule_tick(id);
            return Ok(());
        }
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let Some(peer) = server.peer.as_mut() else { return Ok(()) };
        if server.paused {
            server.backlog.push_back(event);
            return Ok(());
        }
        self.trace.note(now, id, || Told::Hear(event.clone()));
        self.checker.on_event(id, &event);
        self.trace.mix(&id);
        if let Event::Prepared { epoch, .. } = &event {
            let over = server.brief.is_none_or(|b| !b.serving || b.current_epoch != *epoch);
            if over {
                self.coverage.hit(FaultClass::PreparedInVain);
            }
        }
        let up = if let Event::LinkUp(up) = &event { Some(up.link) } else { None };
        let mut garbled = None;
        if let Event::LinkDown { link, cause: Cause::Garbled } = &event {
            garbled = Some(*link);
        }
        server.largest = server.largest.max(brought_by(&event));
        let shown = server.clock.shows(now);
        self.checker.leases.on_event(id, shown, &event);
        let input = Input { at: shown, event };
        self.trace.mix(&input);
        if let Some(recorder) = &mut server.recorder {
            recorder.hears(&input);
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        peer.step_into(input, &mut outputs);
        if let Some(recorder) = &mut server.recorder {
            recorder.does(&outputs);
        }
        self.steps += 1;
        let status = peer.status();
        let served =
            server.brief.is_some_and(|b| b.serving && b.current_epoch == status.current_epoch);
        if status.serving && !served && status.accepted_epoch > status.current_epoch {
            self.coverage.hit(FaultClass::ServedBelowPromise);
        }
        let follows = matches!(status.state, ServerState::Following | ServerState::Observing);
        let takes = outputs.iter().map(held_of).sum::<usize>();
        let waits = server.disk.unsynced_bytes() + takes;
        // Besides what there is room for, the packet that came last; and twice the room for one that did not serve.
        let most = server.config.limits.unsynced_bytes << server.fell_behind.min(16);
        if follows && takes > 0 && waits > most + server.largest {
            let detail = format!("holds {waits} bytes that are not on disk, and {most} may be");
            return broken(Rule::Bounds, id, detail);
        }
        let behind = |output: &Output| {
            matches!(output, Output::Hangup { reason: Hangup::DiskBehind { .. }, .. })
        };
        server.fell_behind += u32::from(outputs.iter().any(behind));
        if status.serving {
            server.fell_behind = 0;
        }
        let standing = Standing::of(server.brief, &status, &outputs);
        server.brief = Some(Brief::of(&status));
        self.trace.mix(&outputs);
        self.checker.on_step(id, &status, &outputs)?;
        let Standing { leads, epoch, .. } = standing;
        for output in &outputs {
            self.coverage.note(output, leads);
        }
        self.after_reference(id, up, &mut outputs);
        // What a leader commits is committed, whatever becomes of its outputs.
        if standing.commits() {
            self.judge_commits(id, standing)?;
        }
        let crash_at = (!outputs.is_empty() && hit(&mut self.rng, self.crash_within))
            .then(|| usize::try_from(self.rng.below(outputs.len() as u64 + 1)).unwrap_or(0));
        let mut fallen = false;
        for (at, output) in outputs.drain(..).enumerate() {
            let trap = self.traps.get(&id).copied().filter(|trap| (trap.at)(&output));
            if crash_at == Some(at) || trap.is_some_and(|trap| !trap.after) {
                fallen = true;
                break;
            }
            if self.blows(id, &output) {
                fallen = true;
                break;
            }
            self.trace.note(now, id, || Told::Do(output.clone()));
            self.checker.on_output(id, &output)?;
            self.checker.leases.on_output(id, shown, epoch, &output)?;
            self.carry_out(id, output, standing)?;
            if trap.is_some() {
                fallen = true;
                break;
            }
        }
        self.outputs = outputs;
        if let Some(link) = garbled {
            self.network.let_go(now, link);
        }
        if !fallen {
            self.judge_commits(id, standing)?;
            self.will_say_applied(id);
        }
        self.enter_network();
        if fallen {
            self.coverage.hit(FaultClass::CrashInsideStep);
            self.traps.remove(&id);
            let power = self.rng.below(2) == 0;
            self.crash(id.0, if power { CrashKind::Power } else { CrashKind::Process })?;
            if crash_at.is_some() {
                let wait = up_to(&mut self.rng, self.restart_max);
                self.start_after(id.0, wait);
            }
            return Ok(());
        }
        if let Some(server) = self.servers.get(&id).filter(|_| self.may_change) {
            if let Some(peer) = &server.peer {
                self.checker.on_bound(id, &server.disk, peer.config())?;
            }
        }
        self.schedule_tick(id);
        Ok(())
    }

    /// A leader lets those in who do what only one may do, with a lease if there is to be one: no other server
    /// counts on a lease. One whose last acknowledgement came after the next reign had begun gets none.
    pub(crate) fn check_leases(&mut self, leader: ServerId, epoch: Epoch) -> Result<(), Violation> {
        let (now, hold) = (self.agenda.now(), self.leases_hold());
        // Old servers promise nothing, and a server that was started without a lease counts on none.
        let old = !self.network.old.is_empty() || self.leases_change;
        let all_promise = self.lease.is_some() && !old;
        self.checker.leases.on_begun(leader, epoch, hold && all_promise)?;
        for (id, server) in self.servers.iter().filter(|(id, _)| **id != leader) {
            let Some(Leadership { lease, .. }) = server.leadership else { continue };
            self.coverage.hit(FaultClass::TwoReigns);
            let shown = server.clock.shows(now);
            if hold && lease.is_some_and(|until| until > shown) {
                let detail = format!("lets work begin while {id} counts on {lease:?}");
                return broken(Rule::Lease, leader, detail);
            }
        }
        Ok(())
    }
    /// Lets the servers hear of what has come.
    fn arrive(&mut self) -> Result<(), Violation> {
        loop {
            if let Some((to, event)) = self.network.arrivals.pop_front() {
                self.feed(to, event)?;
            } else if let Some((to, link, state)) = self.network.snapshots.pop_front() {
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
        // A reign that was given up does not stop what was under way in it.
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

/// How many bytes of transactions are held because of this until they are on disk.
fn held_of(output: &Output) -> usize {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others carry none")]
    match output {
        Output::Persist { write: Write::Append(txns), .. } => txns.iter().map(Txn::len).sum(),
        Output::Persist { write: Write::AppendStaged(txn), .. } => txn.len(),
        _ => 0,
    }
}

/// How many bytes of transactions a server is sent at once.
fn brought_by(event: &Event) -> usize {
    let Event::Received { message: Message::Packet(packet), .. } = event else { return 0 };
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others bring none")]
    match packet {
        Packet::Proposal(txn) | Packet::Inform(txn) => txn.len(),
        Packet::Proposals(txns) => txns.iter().map(Txn::len).sum(),
        _ => 0,
    }
}

/// What an operator sets who tries out leases: as long as at first, as short as can be, something between, or none.
fn another_lease(config: &Config, first: Option<Duration>) -> Option<Duration> {
    // A draw of its own, so that all others stay what they are.
    let mut rng = Rng::new(config.seed ^ 0x1ea5e);
    let tick = config.timing.tick;
    match rng.below(4) {
        0 => None,
        1 => first,
        2 => Some(tick),
        _ => first.map(|first| (first / 2).max(tick)),
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && self.trace.keeps() {
            eprintln!("seed {} at {:?}\n{}", self.seed, self.now(), self.log_tail(LINES_SHOWN));
        }
    }
}
