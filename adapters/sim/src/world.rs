//! The world: servers, their disks, the network between them, and time.
//!
//! One [`World::step`] is one thing that happens to one server: time moves to it, the server's `Peer`
//! hears of it, the checker looks at the result, and the outputs are carried out in order. A crash may
//! be placed between any two outputs of a step: what was carried out before it has happened, the rest
//! never does.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::{Config, Limits, Timing};
use quorate_core::durable::Durable;
use quorate_core::id::ServerId;
use quorate_core::input::{Event, Input, Plane};
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::report::{Phase, Status};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::agenda::Agenda;
use crate::checker::{Checker, Rule, Violation, broken};
use crate::disk::{Disk, DiskConfig, Survival};
use crate::ensemble::Ensemble;
use crate::faults::{Coverage, FaultClass};
use crate::network::{Network, NetworkConfig, NetworkEvent, hit, up_to};
use crate::trace::{Done, Happened, Trace};

/// More steps than this without any time passing, and a server spins.
const STEPS_AT_ONCE_MAX: u32 = 100_000;
/// How many lines a failing world prints.
const LINES_SHOWN: usize = 300;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Who takes part.
    pub ensemble: Ensemble,
    /// What the disks hold at first; empty where nothing is said.
    pub durable: BTreeMap<ServerId, Durable>,
    /// Servers whose configuration shows them another ensemble.
    pub views: BTreeMap<ServerId, Ensemble>,
    /// The durations of all servers.
    pub timing: Timing,
    /// Whether elections end as soon as nothing can change them.
    pub finish_when_settled: bool,
    /// How the network behaves.
    pub network: NetworkConfig,
    /// How the disks behave.
    pub disk: DiskConfig,
    /// Whether a line is kept of each event, to be printed if the test fails.
    pub keep_log: bool,
}

impl WorldConfig {
    /// A friendly world for an ensemble: empty disks, a fast network, no faults.
    pub fn new(ensemble: Ensemble) -> Self {
        Self {
            ensemble,
            durable: BTreeMap::new(),
            views: BTreeMap::new(),
            timing: Timing::default(),
            finish_when_settled: true,
            network: NetworkConfig::default(),
            disk: DiskConfig::default(),
            keep_log: true,
        }
    }

    /// The same with a server whose log ends at `last`; its epochs are that of `last`.
    #[must_use]
    pub fn with_history(mut self, id: i64, last: Zxid) -> Self {
        let epoch = last.epoch();
        let durable = Durable { accepted_epoch: epoch, current_epoch: epoch, last_zxid: last };
        self.durable.insert(ServerId(id), durable);
        self
    }
}

/// How a server crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// The process ends: its system closes its connections and refuses new ones.
    Process,
    /// The machine loses power: nobody hears anything.
    Power,
}

/// Where one server stands, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// What it is doing.
    pub state: ServerState,
    /// How far it has come.
    pub phase: Phase,
    /// Whether it serves.
    pub serving: bool,
    /// Who leads, as it believes.
    pub leader: Option<ServerId>,
    /// Its round.
    pub round: Round,
    /// Its vote.
    pub vote: Vote,
    /// The epoch it has promised.
    pub accepted_epoch: Epoch,
    /// The epoch whose history it has.
    pub current_epoch: Epoch,
}

impl Brief {
    fn of(status: &Status) -> Self {
        Self {
            state: status.state,
            phase: status.phase,
            serving: status.serving,
            leader: status.leader,
            round: status.round,
            vote: status.vote,
            accepted_epoch: status.accepted_epoch,
            current_epoch: status.current_epoch,
        }
    }
}

#[derive(Debug)]
enum What {
    Start { id: ServerId },
    Tick { id: ServerId, token: u64 },
    Network(NetworkEvent),
    Synced { id: ServerId, incarnation: u64 },
}

#[derive(Debug)]
struct Server {
    config: Config,
    peer: Option<Peer>,
    brief: Option<Brief>,
    disk: Disk,
    incarnation: u64,
    paused: bool,
    backlog: VecDeque<Event>,
    tick: Option<Instant>,
    token: u64,
}

/// Where a crash has been laid.
#[derive(Clone, Copy, Debug)]
struct Trap {
    id: ServerId,
    at: fn(&Output) -> bool,
    after: bool,
}

/// Servers in a simulated world.
#[derive(Debug)]
pub struct World {
    seed: u64,
    rng: Rng,
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
    trap: Option<Trap>,
    outputs: Vec<Output>,
    steps: u64,
    steps_at_once: u32,
    ensemble: Ensemble,
}

impl World {
    /// A world in which no server runs yet.
    ///
    /// # Panics
    ///
    /// If the ensemble or a view is none, say without a voter.
    pub fn new(seed: u64, config: WorldConfig) -> Self {
        let mut rng = Rng::new(seed);
        let network = Network::new(config.network, rng.next_u64());
        let mut servers = BTreeMap::new();
        for id in config.ensemble.ids() {
            let view = config.views.get(&id).unwrap_or(&config.ensemble);
            let membership = match view.membership() {
                Ok(membership) => membership,
                Err(error) => panic!("{error}: {view:?}"),
            };
            let own = Config {
                timing: config.timing.clone(),
                finish_when_settled: config.finish_when_settled,
                limits: Limits::default(),
                ..Config::new(id, membership)
            };
            let durable = config.durable.get(&id).cloned().unwrap_or_default();
            let server = Server {
                config: own,
                peer: None,
                brief: None,
                disk: Disk::new(durable),
                incarnation: 0,
                paused: false,
                backlog: VecDeque::new(),
                tick: None,
                token: 0,
            };
            servers.insert(id, server);
        }
        Self {
            seed,
            rng,
            agenda: Agenda::new(),
            servers,
            network,
            disk: config.disk,
            checker: Checker::new(config.ensemble.clone()),
            trace: Trace::new(config.keep_log),
            coverage: Coverage::default(),
            crash_within: 0,
            restart_max: Duration::from_secs(1),
            trap: None,
            outputs: Vec::new(),
            steps: 0,
            steps_at_once: 0,
            ensemble: config.ensemble,
        }
    }

    // ---- what is the case ----

    /// The time.
    pub fn now(&self) -> Instant {
        self.agenda.now()
    }

    /// How many steps servers have taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A number that two runs of one seed have in common, and practically no others.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// The last lines of the log; empty if none is kept.
    pub fn log_tail(&self, lines: usize) -> String {
        self.trace.tail(lines)
    }

    /// How often which fault has happened.
    pub fn coverage(&self) -> Coverage {
        let mut all = self.coverage.clone();
        all.add(&self.network.coverage);
        all
    }

    /// What the checker has seen.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// The ensemble.
    pub fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// Where a server stands; none while it is down.
    pub fn brief(&self, id: i64) -> Option<Brief> {
        self.servers.get(&ServerId(id))?.brief
    }

    /// Everything that a server says of itself; none while it is down.
    pub fn status(&self, id: i64) -> Option<Status> {
        Some(self.servers.get(&ServerId(id))?.peer.as_ref()?.status())
    }

    /// What is durable on a server's disk.
    pub fn durable(&self, id: i64) -> Option<&Durable> {
        Some(self.servers.get(&ServerId(id))?.disk.durable())
    }

    /// Whether a server runs.
    pub fn is_up(&self, id: i64) -> bool {
        self.brief(id).is_some()
    }

    /// How many connections of a plane join two servers, known to both.
    pub fn links_between(&self, a: i64, b: i64, plane: Plane) -> usize {
        self.network.links_between(ServerId(a), ServerId(b), plane)
    }

    /// How many connections there are, whether open, being opened or being closed.
    pub fn connections(&self) -> usize {
        self.network.connections()
    }

    /// The server that leads and serves; the one of the latest epoch if an older one has not noticed.
    pub fn leader(&self) -> Option<ServerId> {
        let leads = |b: &Brief| b.state == ServerState::Leading && b.serving;
        self.servers
            .iter()
            .filter_map(|(id, server)| server.brief.filter(leads).map(|b| (b.current_epoch, *id)))
            .max()
            .map(|(_, id)| id)
    }

    /// Whether one server leads and every other of `ids` serves under it.
    pub fn is_settled_among(&self, ids: impl IntoIterator<Item = ServerId>) -> bool {
        let Some(leader) = self.leader() else { return false };
        let epoch = self.brief(leader.0).map(|brief| brief.current_epoch);
        ids.into_iter().all(|id| {
            self.brief(id.0).is_some_and(|b| {
                b.serving && b.leader == Some(leader) && Some(b.current_epoch) == epoch
            })
        })
    }

    /// Whether one server leads and every other serves under it, all being up.
    pub fn is_settled(&self) -> bool {
        self.is_settled_among(self.servers.keys().copied())
    }

    // ---- what is done to servers ----

    /// Starts a server now.
    pub fn start(&mut self, id: i64) {
        self.start_after(id, Duration::ZERO);
    }

    /// Starts servers now, in this order.
    pub fn start_all(&mut self, ids: impl IntoIterator<Item = i64>) {
        for id in ids {
            self.start(id);
        }
    }

    /// Starts a server in a while, unless it runs by then.
    pub fn start_after(&mut self, id: i64, wait: Duration) {
        self.agenda.after(wait, What::Start { id: ServerId(id) });
    }

    /// Crashes a server, if it runs; writes that are not synced may be lost.
    ///
    /// # Errors
    ///
    /// If its disk is left in a state that no crash may leave.
    pub fn crash(&mut self, id: i64, kind: CrashKind) -> Result<(), Violation> {
        let (id, now) = (ServerId(id), self.now());
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let Some(brief) = server.brief.take() else { return Ok(()) };
        self.trace.line(now, id, format_args!("CRASH ({kind:?})"));
        server.peer = None;
        server.paused = false;
        server.backlog.clear();
        server.tick = None;
        let (states, lost) = server.disk.crash(self.disk.survival, &mut self.rng);
        self.coverage.hit(match kind {
            CrashKind::Process => FaultClass::ProcessCrash,
            CrashKind::Power => FaultClass::PowerLoss,
        });
        if brief.serving && brief.state == ServerState::Leading {
            self.coverage.hit(FaultClass::LeaderCrash);
        }
        for _ in 0..lost {
            self.coverage.hit(FaultClass::WriteLost);
        }
        for state in &states {
            self.coverage.hit(FaultClass::WriteSurvived);
            self.checker.on_durable(id, state)?;
        }
        self.network.arrivals.retain(|(to, _)| *to != id);
        self.network.host_down(now, id, kind == CrashKind::Power);
        self.enter_network();
        Ok(())
    }

    /// Empties the disk of a server that is down.
    ///
    /// # Panics
    ///
    /// If the server runs.
    pub fn wipe(&mut self, id: i64) {
        assert!(!self.is_up(id), "server {id} runs; its disk cannot be exchanged");
        if let Some(server) = self.servers.get_mut(&ServerId(id)) {
            server.disk.wipe();
            self.checker.on_wipe(ServerId(id));
            self.coverage.hit(FaultClass::Wipe);
        }
    }

    /// Lets a server stand still: nothing reaches it until it is resumed, nothing gets lost either.
    pub fn pause(&mut self, id: i64) {
        if let Some(server) = self.servers.get_mut(&ServerId(id)) {
            if server.peer.is_some() && !server.paused {
                server.paused = true;
                self.coverage.hit(FaultClass::Pause);
                let now = self.agenda.now();
                self.trace.line(now, ServerId(id), format_args!("PAUSE"));
            }
        }
    }

    /// Lets a paused server go on; it hears at once of everything that happened meanwhile.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn resume(&mut self, id: i64) -> Result<(), Violation> {
        let id = ServerId(id);
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if !std::mem::take(&mut server.paused) {
            return Ok(());
        }
        let incarnation = server.incarnation;
        for event in std::mem::take(&mut server.backlog) {
            let same = self.servers.get(&id).is_some_and(|s| s.incarnation == incarnation);
            if same {
                self.feed(id, event)?;
            }
        }
        self.schedule_tick(id);
        Ok(())
    }

    /// Tells a server something that neither network nor disk would, a request of the operator say.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn tell(&mut self, id: i64, event: Event) -> Result<(), Violation> {
        self.feed(ServerId(id), event)
    }

    /// Crashes a server just before it carries out the first output that `at` accepts.
    pub fn crash_before(&mut self, id: i64, at: fn(&Output) -> bool) {
        self.trap = Some(Trap { id: ServerId(id), at, after: false });
    }

    /// Crashes a server just after it has carried out the first output that `at` accepts.
    pub fn crash_after(&mut self, id: i64, at: fn(&Output) -> bool) {
        self.trap = Some(Trap { id: ServerId(id), at, after: true });
    }

    /// Lets any step that has outputs end in a crash with this chance, in 65536ths; the server starts
    /// again within a second.
    pub fn crash_within_steps(&mut self, of_65536: u64) {
        self.crash_within = of_65536;
    }

    // ---- what is done to the network ----

    /// Cuts the ensemble into groups that cannot hear one another; servers in no group are alone.
    pub fn partition(&mut self, groups: &[&[i64]]) {
        let group_of = |id: ServerId| groups.iter().position(|group| group.contains(&id.0));
        let ids: Vec<_> = self.servers.keys().copied().collect();
        for from in &ids {
            for to in &ids {
                let (a, b) = (group_of(*from), group_of(*to));
                if a.is_none() || a != b {
                    self.block(from.0, to.0);
                }
            }
        }
    }

    /// Lets nothing pass from one server to another; the other direction stays as it is.
    pub fn block(&mut self, from: i64, to: i64) {
        let now = self.now();
        self.network.block(now, ServerId(from), ServerId(to));
        self.trace.line(now, ServerId(from), format_args!("BLOCKED towards {to}"));
        self.enter_network();
    }

    /// Lets everything pass again, everywhere.
    pub fn heal(&mut self) {
        let now = self.now();
        let ids: Vec<_> = self.servers.keys().copied().collect();
        for from in &ids {
            for to in &ids {
                if self.network.is_blocked(*from, *to) {
                    self.trace.line(now, *from, format_args!("UNBLOCKED towards {to}"));
                    self.network.unblock(now, *from, *to);
                }
            }
        }
        self.enter_network();
    }

    /// Breaks every connection between two servers; they may connect again at once.
    pub fn cut(&mut self, a: i64, b: i64) {
        let now = self.now();
        self.trace.line(now, ServerId(a), format_args!("CUT from {b}"));
        self.network.break_between(now, ServerId(a), ServerId(b));
        self.enter_network();
    }

    /// Breaks some connection.
    pub fn cut_any(&mut self) {
        self.network.break_any(self.agenda.now());
        self.enter_network();
    }

    /// Lets attempts to connect to a server vanish without an answer, or no longer.
    pub fn black_hole(&mut self, id: i64, on: bool) {
        self.network.black_hole(ServerId(id), on);
    }

    /// Lets a server say in its introductions that it listens at another address.
    pub fn advertise(&mut self, id: i64, address: HostPort) {
        self.network.advertise(ServerId(id), address);
    }

    /// Makes the network friendly from now on: nothing more breaks, is late or comes twice.
    pub fn calm(&mut self) {
        let config = &mut self.network.config;
        (config.reset, config.spike, config.duplicate) = (0, 0, 0);
        self.disk.slow = 0;
        self.crash_within = 0;
        self.trap = None;
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
            What::Start { id } => self.begin(id),
            What::Tick { id, token } => self.on_tick(id, token)?,
            What::Network(event) => {
                self.network.handle(self.agenda.now(), event);
                self.enter_network();
                while let Some((to, event)) = self.network.arrivals.pop_front() {
                    self.feed(to, event)?;
                }
                if let Some(problem) = self.network.problem.take() {
                    return broken(Rule::Codec, ServerId::NOBODY, problem);
                }
            }
            What::Synced { id, incarnation } => self.on_synced(id, incarnation)?,
        }
        if self.steps_at_once > STEPS_AT_ONCE_MAX {
            let detail = format!("time stands still at {:?}", self.now());
            return broken(Rule::Progress, ServerId::NOBODY, detail);
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

    fn begin(&mut self, id: ServerId) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.peer.is_some() {
            return;
        }
        server.incarnation += 1;
        // Every incarnation jitters in its own way, as if seeded by the system.
        let seed = (self.seed ^ (id.0 as u64) << 48).wrapping_add(server.incarnation);
        server.config.seed = Rng::new(seed).next_u64();
        let durable = server.disk.durable().clone();
        self.trace.line(now, id, format_args!("START {durable:?}"));
        self.checker.on_start(id, &durable);
        let peer = match Peer::new(server.config.clone(), durable) {
            Ok(peer) => peer,
            Err(error) => panic!("server {id} refuses to start: {error}"),
        };
        server.brief = Some(Brief::of(&peer.status()));
        server.peer = Some(peer);
        if server.incarnation > 1 {
            self.coverage.hit(FaultClass::Restart);
        } else if self.leader().is_some() {
            self.coverage.hit(FaultClass::LateStart);
        }
        self.network.host_up(now, id);
        self.enter_network();
        self.schedule_tick(id);
    }

    fn on_tick(&mut self, id: ServerId, token: u64) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.token != token || server.tick.take().is_none() {
            return Ok(());
        }
        let due = server.peer.as_ref().and_then(Peer::deadline).is_some_and(|(at, _)| at <= now);
        if due {
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
        let Some((at, _)) = server.peer.as_ref().and_then(Peer::deadline) else { return };
        let at = at.max(now);
        // A tick that is entered already for an earlier time will look again.
        if server.tick.is_none_or(|entered| at < entered) {
            server.token += 1;
            server.tick = Some(at);
            self.agenda.at(at, What::Tick { id, token: server.token });
        }
    }

    fn on_synced(&mut self, id: ServerId, incarnation: u64) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        if server.incarnation != incarnation || server.peer.is_none() {
            return Ok(());
        }
        let (states, last) = server.disk.complete();
        for state in &states {
            self.checker.on_durable(id, state)?;
        }
        self.begin_sync(id);
        match last {
            Some(ticket) => self.feed(id, Event::Persisted(ticket)),
            None => Ok(()),
        }
    }

    fn begin_sync(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if !server.disk.begin() {
            return;
        }
        let incarnation = server.incarnation;
        let range = self.disk.sync_max.saturating_sub(self.disk.sync_min);
        let mut wait = self.disk.sync_min + up_to(&mut self.rng, range);
        if hit(&mut self.rng, self.disk.slow) {
            wait += up_to(&mut self.rng, self.disk.slow_max);
            self.coverage.hit(FaultClass::SlowDisk);
        }
        self.agenda.after(wait, What::Synced { id, incarnation });
    }

    /// Lets a server hear of something, and carries out what it answers.
    fn feed(&mut self, id: ServerId, event: Event) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let Some(peer) = server.peer.as_mut() else { return Ok(()) };
        if server.paused {
            server.backlog.push_back(event);
            return Ok(());
        }
        if self.trace.keeps_lines() {
            self.trace.line(now, id, format_args!("<- {}", Happened(&event)));
        }
        self.checker.on_event(id, &event);
        self.trace.mix(&id);
        let input = Input { at: now, event };
        self.trace.mix(&input);
        let mut outputs = std::mem::take(&mut self.outputs);
        peer.step_into(input, &mut outputs);
        peer.check();
        self.steps += 1;
        let status = peer.status();
        server.brief = Some(Brief::of(&status));
        self.trace.mix(&outputs);
        if self.trace.keeps_lines() {
            for output in &outputs {
                self.trace.line(now, id, format_args!("  -> {}", Done(output)));
            }
        }
        self.checker.on_step(id, &status, &outputs)?;

        let crash_at = (!outputs.is_empty() && hit(&mut self.rng, self.crash_within))
            .then(|| usize::try_from(self.rng.below(outputs.len() as u64 + 1)).unwrap_or(0));
        let mut fallen = false;
        for (at, output) in outputs.drain(..).enumerate() {
            let trap = self.trap.filter(|trap| trap.id == id && (trap.at)(&output));
            if crash_at == Some(at) || trap.is_some_and(|trap| !trap.after) {
                fallen = true;
                break;
            }
            self.checker.on_output(id, &output)?;
            self.carry_out(id, output);
            if trap.is_some() {
                fallen = true;
                break;
            }
        }
        self.outputs = outputs;
        self.enter_network();
        if fallen {
            self.coverage.hit(FaultClass::CrashInsideStep);
            self.trap = self.trap.filter(|trap| trap.id != id);
            let power = self.rng.below(2) == 0;
            self.crash(id.0, if power { CrashKind::Power } else { CrashKind::Process })?;
            if crash_at.is_some() {
                let wait = up_to(&mut self.rng, self.restart_max);
                self.start_after(id.0, wait);
            }
            return Ok(());
        }
        self.schedule_tick(id);
        Ok(())
    }

    fn carry_out(&mut self, id: ServerId, output: Output) {
        let now = self.agenda.now();
        match output {
            Output::Dial { plane, peer, addresses } => {
                self.network.dial(now, id, plane, peer, &addresses);
            }
            Output::Hangup { link, .. } => self.network.hang_up(now, link),
            Output::Send { link, message } => self.network.send(now, link, message),
            Output::Persist { ticket, write } => {
                let idle = match self.servers.get_mut(&id) {
                    Some(server) => server.disk.persist(ticket, write),
                    None => false,
                };
                if idle {
                    self.begin_sync(id);
                }
            }
            Output::Report(_) | Output::Halt(_) => {}
        }
    }

    /// Enters into the agenda what the network has scheduled.
    fn enter_network(&mut self) {
        for (at, event) in self.network.scheduled.drain(..) {
            self.agenda.at(at, What::Network(event));
        }
    }

    /// How crashes treat writes that are not synced.
    pub fn survival(&mut self, survival: Survival) {
        self.disk.survival = survival;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {} at {:?}\n{}", self.seed, self.now(), self.log_tail(LINES_SHOWN));
        }
    }
}
