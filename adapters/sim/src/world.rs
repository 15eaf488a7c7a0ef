//! The world: servers, their disks, the network between them, and time.
//!
//! One [`World::step`] is one thing that happens to one server: time moves to it, the server's `Peer`
//! hears of it, the checker looks at the result, and the outputs are carried out in order. A crash may
//! be placed between any two outputs of a step: what was carried out before it has happened, the rest
//! never does.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use quorate_core::address::HostPort;
use quorate_core::config::{Config, HistoryLimits, Limits, Timing};
use quorate_core::id::{LinkId, ReadId, ServerId};
use quorate_core::input::{Event, Input, Place, Plane, Unreadable};
use quorate_core::message::{Message, Packet, Request};
use quorate_core::output::{Form, Output, Write};
use quorate_core::peer::Peer;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::report::{Phase, Status};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, RequestId, Txn};
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::agenda::Agenda;
use crate::application::{Application, KIND, State};
use crate::checker::{Checker, Rule, Violation, broken, is_beginning};
use crate::disk::{Contents, Disk, DiskConfig, Survival};
use crate::ensemble::Ensemble;
use crate::faults::{Coverage, FaultClass};
use crate::network::{Network, NetworkConfig, NetworkEvent, Piece, hit, up_to};
use crate::trace::{Done, Happened, Opened, Trace};

/// More steps than this without any time passing, and a server spins.
const STEPS_AT_ONCE_MAX: u32 = 100_000;
/// How many bytes of a snapshot are written at once.
const SNAPSHOT_PIECE: usize = 64;
/// How many lines a failing world prints.
const LINES_SHOWN: usize = 300;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Who takes part.
    pub ensemble: Ensemble,
    /// What the disks hold at first; empty where nothing is said.
    pub disks: BTreeMap<ServerId, Contents>,
    /// Servers whose configuration shows them another ensemble.
    pub views: BTreeMap<ServerId, Ensemble>,
    /// The durations of all servers.
    pub timing: Timing,
    /// The lease that voters promise their leader, if any.
    pub lease: Option<Duration>,
    /// Whether the membership may change.
    pub may_change: bool,
    /// How much history the servers keep at hand.
    pub history: HistoryLimits,
    /// The longest that an application takes for anything.
    pub application_max: Duration,
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
            disks: BTreeMap::new(),
            views: BTreeMap::new(),
            timing: Timing::default(),
            lease: None,
            may_change: false,
            history: HistoryLimits::default(),
            application_max: Duration::from_millis(1),
            finish_when_settled: true,
            network: NetworkConfig::default(),
            disk: DiskConfig::default(),
            keep_log: true,
        }
    }

    /// The same with a server whose log ends at `last`; its epochs are that of `last`.
    #[must_use]
    pub fn with_history(self, id: i64, last: Zxid) -> Self {
        let epoch = last.epoch().0;
        self.with_disk(id, Contents::ending(epoch, epoch, last))
    }

    /// The same with a server whose disk holds this.
    #[must_use]
    pub fn with_disk(mut self, id: i64, contents: Contents) -> Self {
        self.disks.insert(ServerId(id), contents);
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
    Start {
        id: ServerId,
    },
    Tick {
        id: ServerId,
        token: u64,
    },
    Network(NetworkEvent),
    Synced {
        id: ServerId,
        incarnation: u64,
    },
    /// The application or the disk answers.
    Answer {
        id: ServerId,
        incarnation: u64,
        event: Event,
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
        state: State,
    },
    Restored {
        id: ServerId,
        incarnation: u64,
        link: LinkId,
        state: State,
    },
}

/// What a server was when it said what it wants done.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// It served as a leader before: what it commits last may end its reign.
    led: bool,
    leads: bool,
    serving: bool,
    epoch: Epoch,
}

impl Standing {
    /// Whether it may have given a transaction its number.
    fn mints(self, txn: &Txn) -> bool {
        self.leads && self.serving && self.epoch == txn.zxid.epoch()
    }
}

impl Server {
    /// Whether it runs and has not been restarted.
    fn is(&self, incarnation: u64) -> bool {
        self.peer.is_some() && self.incarnation == incarnation
    }
}

#[derive(Debug)]
struct Server {
    config: Config,
    peer: Option<Peer>,
    brief: Option<Brief>,
    /// Whether it leads, with a lease if there is to be one.
    guards: bool,
    disk: Disk,
    application: Application,
    /// Transactions that are prepared, each in its reign.
    drafts: Vec<(Epoch, Draft)>,
    /// Snapshots that were taken, and wait for the log to be durable as far.
    taken: Vec<State>,
    /// When the application has done what it was asked to do.
    busy_until: Instant,
    /// Requests and reads so far.
    asked: u64,
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
    fuse: Option<Fuse>,
    application_max: Duration,
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
                history: config.history.clone(),
                lease: config.lease,
                reconfig_enabled: config.may_change,
                ..Config::new(id, membership)
            };
            let contents = config.disks.get(&id).cloned().unwrap_or_default();
            let server = Server {
                config: own,
                peer: None,
                brief: None,
                guards: false,
                disk: Disk::new(contents),
                application: Application::default(),
                drafts: Vec::new(),
                taken: Vec::new(),
                busy_until: Instant::ORIGIN,
                asked: 0,
                incarnation: 0,
                paused: false,
                backlog: VecDeque::new(),
                tick: None,
                token: 0,
            };
            servers.insert(id, server);
        }
        let mut checker = Checker::new(config.ensemble.clone(), &config.disks);
        checker.may_change = config.may_change;
        checker.ledger.unreadable = config.disk.unreadable > 0;
        Self {
            seed,
            rng,
            agenda: Agenda::new(),
            servers,
            network,
            disk: config.disk,
            checker,
            trace: Trace::new(config.keep_log),
            coverage: Coverage::default(),
            crash_within: 0,
            restart_max: Duration::from_secs(1),
            trap: None,
            fuse: None,
            application_max: config.application_max,
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

    /// The ensemble, as it is now.
    pub fn ensemble(&self) -> &Ensemble {
        self.checker.ensemble()
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
    pub fn durable(&self, id: i64) -> Option<&Contents> {
        Some(self.servers.get(&ServerId(id))?.disk.durable())
    }

    /// What a server has applied; none while it is down.
    pub fn applied(&self, id: i64) -> Option<&State> {
        let server = self.servers.get(&ServerId(id))?;
        server.peer.as_ref().map(|_| &server.application.state)
    }

    /// Whether all servers that run have applied everything that is committed.
    pub fn is_level(&self) -> bool {
        let commits = self.checker.commits();
        let running = self.servers.values().filter(|server| server.peer.is_some());
        let mut counts = running.map(|server| server.application.state.count);
        counts.all(|count| count == commits)
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
        self.coverage.hits(FaultClass::WriteLost, lost.all);
        self.coverage.hits(FaultClass::TornWrite, u64::from(lost.torn));
        server.taken.clear();
        for done in &states {
            self.coverage.hit(FaultClass::WriteSurvived);
            self.checker.on_durable(id, done)?;
        }
        self.checker.ledger.on_crash(id);
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

    /// Somebody at a server asks for a write of a cell; none if the server is down.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn propose(&mut self, id: i64, cell: u8) -> Result<Option<RequestId>, Violation> {
        self.propose_padded(id, cell, 0)
    }

    /// The same with this many bytes more than needed.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn propose_padded(
        &mut self,
        id: i64,
        cell: u8,
        padding: usize,
    ) -> Result<Option<RequestId>, Violation> {
        let mut body = vec![cell; 1 + padding];
        body.extend_from_slice(&self.steps.to_be_bytes());
        self.ask(ServerId(id), KIND, body.into())
    }

    fn ask(&mut self, id: ServerId, op: i32, body: Bytes) -> Result<Option<RequestId>, Violation> {
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.peer.is_some()) else {
            return Ok(None);
        };
        server.asked += 1;
        let client = id.0 << 56 | i64::try_from(server.incarnation).unwrap_or(0);
        let request = RequestId { client, cxid: i32::try_from(server.asked).unwrap_or(0) };
        let at = (id, server.incarnation);
        self.checker.ledger.on_asked(at, request);
        self.feed(id, Event::Propose(Request { id: request, op, body, identities: None }))?;
        Ok(Some(request))
    }

    /// Somebody at a server, perhaps, asks for another membership.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn reconfigure(&mut self, id: i64, asked: &Reconfiguration) -> Result<(), Violation> {
        let op = Request::RECONFIGURE;
        self.ask(ServerId(id), op, asked.encode()).map(|_| ())
    }

    /// Somebody at a server asks to read what is as new as everything acknowledged; none if it is down.
    ///
    /// # Errors
    ///
    /// If a rule is broken.
    pub fn read(&mut self, id: i64) -> Result<Option<ReadId>, Violation> {
        let id = ServerId(id);
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.peer.is_some()) else {
            return Ok(None);
        };
        server.asked += 1;
        let read = ReadId(server.incarnation << 32 | server.asked);
        self.checker.ledger.on_read(id, read);
        self.feed(id, Event::Read(read))?;
        Ok(Some(read))
    }

    /// What clients of a server asked for and have heard nothing about.
    pub fn unanswered(&self, id: i64) -> (Vec<RequestId>, Vec<ReadId>) {
        let incarnation = self.servers.get(&ServerId(id)).map_or(0, |server| server.incarnation);
        self.checker.ledger.unanswered((ServerId(id), incarnation))
    }

    /// Crashes a server instead of letting it carry out another output after so many more of them, reports
    /// not counted; it starts again after a while, if that is said.
    pub fn crash_after_outputs(&mut self, id: i64, count: u64, again: Option<Duration>) {
        self.fuse = Some(Fuse { id: ServerId(id), left: count, again });
    }

    /// Asks a server to hand its seat over, to this server or to the best.
    ///
    /// # Errors
    ///
    /// If what it does about it breaks a rule.
    pub fn hand_over(&mut self, id: i64, to: Option<i64>) -> Result<(), Violation> {
        self.feed(ServerId(id), Event::HandOver(to.map(ServerId)))
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
        self.fuse = None;
        self.disk.unreadable = 0;
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
                self.arrive()?;
                if let Some(problem) = self.network.problem.take() {
                    return broken(Rule::Codec, ServerId::NOBODY, problem);
                }
            }
            What::Synced { id, incarnation } => self.on_synced(id, incarnation)?,
            What::Answer { id, incarnation, event } => {
                if self.is_same(id, incarnation) {
                    self.feed(id, event)?;
                }
            }
            What::Prepared { id, incarnation } => self.on_prepared(id, incarnation)?,
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
                    server.taken.push(state);
                    self.publish(id)?;
                }
            }
            What::Restored { id, incarnation, link, state } => {
                self.on_restored(id, incarnation, link, state)?;
            }
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
        let contents = server.disk.durable();
        let durable = contents.durable(server.config.history.window_count);
        self.trace.line(now, id, format_args!("START {}", Opened(&durable)));
        self.checker.on_start(id, contents);
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
        (server.busy_until, server.asked, server.guards) = (now, 0, false);
        server.drafts.clear();
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
        for done in &states {
            self.checker.on_durable(id, done)?;
        }
        self.publish(id)?;
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
        if let Event::Prepared { epoch, .. } = &event {
            let over = server.brief.is_none_or(|b| !b.serving || b.current_epoch != *epoch);
            if over {
                self.coverage.hit(FaultClass::PreparedInVain);
            }
        }
        let input = Input { at: now, event };
        self.trace.mix(&input);
        let mut outputs = std::mem::take(&mut self.outputs);
        peer.step_into(input, &mut outputs);
        peer.check();
        self.steps += 1;
        let status = peer.status();
        let mut led = server.brief.is_some_and(|b| b.serving && b.state == ServerState::Leading);
        let leading = server.brief.is_some_and(|b| b.state == ServerState::Leading);
        server.brief = Some(Brief::of(&status));
        let guards = peer.reign().is_some_and(|reign| !reign.awaits_lease);
        let begins = guards && !std::mem::replace(&mut server.guards, guards);
        led |= leading && outputs.iter().any(is_beginning);
        self.trace.mix(&outputs);
        if self.trace.keeps_lines() {
            for output in &outputs {
                self.trace.line(now, id, format_args!("  -> {}", Done(output)));
            }
        }
        self.checker.on_step(id, &status, &outputs)?;
        let (leads, epoch) = (status.state == ServerState::Leading, status.current_epoch);
        let (incarnation, serving) = (server.incarnation, status.serving);
        for output in &outputs {
            self.coverage.note(output, leads);
        }
        if begins {
            self.check_leases(id)?;
        }

        let crash_at = (!outputs.is_empty() && hit(&mut self.rng, self.crash_within))
            .then(|| usize::try_from(self.rng.below(outputs.len() as u64 + 1)).unwrap_or(0));
        let mut fallen = false;
        for (at, output) in outputs.drain(..).enumerate() {
            let trap = self.trap.filter(|trap| trap.id == id && (trap.at)(&output));
            if crash_at == Some(at) || trap.is_some_and(|trap| !trap.after) {
                fallen = true;
                break;
            }
            if self.blows(id, &output) {
                fallen = true;
                break;
            }
            self.checker.on_output(id, &output)?;
            self.carry_out(id, output, Standing { led, leads, serving, epoch })?;
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
        if serving {
            let lost = self.checker.ledger.on_serving((id, incarnation), epoch);
            self.coverage.hits(FaultClass::RequestLost, lost);
        }
        self.schedule_tick(id);
        Ok(())
    }

    /// A leader lets those in who do what only one may do, with a lease if there is to be one: nobody else
    /// counts on a lease. One whose last acknowledgement came after the next reign had begun gets none.
    fn check_leases(&mut self, leader: ServerId) -> Result<(), Violation> {
        let now = self.agenda.now();
        for (id, server) in self.servers.iter().filter(|(id, _)| **id != leader) {
            let Some(reign) = server.peer.as_ref().and_then(Peer::reign) else { continue };
            self.coverage.hit(FaultClass::TwoReigns);
            if reign.lease.is_some_and(|until| until > now) {
                let detail = format!("lets work begin while {id} counts on {:?}", reign.lease);
                return broken(Rule::Lease, leader, detail);
            }
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        id: ServerId,
        output: Output,
        standing: Standing,
    ) -> Result<(), Violation> {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let ledger = &mut self.checker.ledger;
        match output {
            Output::Dial { plane, peer, addresses } => {
                self.network.dial(now, id, plane, peer, &addresses);
            }
            Output::Hangup { link, .. } => self.network.hang_up(now, link),
            Output::Send { link, message } => {
                let proposed: &[Txn] = match &message {
                    Message::Packet(Packet::Proposal(txn)) => std::slice::from_ref(txn),
                    Message::Packet(Packet::Proposals(txns)) => txns,
                    Message::Packet(_) | Message::Notification(_) => &[],
                };
                for txn in proposed.iter().filter(|txn| standing.mints(txn)) {
                    ledger.on_logged(id, txn, true)?;
                }
                self.network.send(now, link, message);
            }
            Output::Pace(link) => self.network.pace(now, link),
            Output::Persist { ticket, write } => {
                match &write {
                    Write::Append(txns) => {
                        for txn in &**txns {
                            ledger.on_logged(id, txn, standing.mints(txn))?;
                        }
                    }
                    Write::Beside(txn) => ledger.on_logged(id, txn, standing.mints(txn))?,
                    Write::CurrentEpoch(epoch) if standing.leads => {
                        ledger.on_reign(id, *epoch, server.disk.latest())?;
                    }
                    Write::Install { .. } => {
                        self.coverage.hit(FaultClass::Installed);
                        server.application.apart = server.application.received.take();
                        server.taken.clear();
                    }
                    Write::Truncate(_)
                    | Write::CurrentEpoch(_)
                    | Write::AcceptedEpoch(_)
                    | Write::Membership(_)
                    | Write::NextMembership(_) => {}
                }
                if server.disk.persist(ticket, write) {
                    self.begin_sync(id);
                }
            }
            Output::Locate { link, zxid } => {
                let incarnation = server.incarnation;
                let wait = up_to(&mut self.rng, self.application_max);
                self.agenda.after(wait, What::Locate { id, incarnation, link, zxid });
            }
            Output::StreamLog { link, after, through, form } => {
                self.stream_log(id, link, after, through, form);
            }
            Output::Prepare { epoch, request, .. } => {
                let time = i64::try_from(now.since_origin().as_millis()).unwrap_or(0);
                let draft = server.application.prepare(&request, time);
                server.drafts.push((epoch, draft));
                if server.drafts.len() == 1 {
                    let incarnation = server.incarnation;
                    let wait = up_to(&mut self.rng, self.application_max);
                    self.agenda.after(wait, What::Prepared { id, incarnation });
                }
            }
            Output::DeliverThrough(zxid) => self.deliver(id, zxid, standing)?,
            Output::TakeSnapshot(zxid) => {
                let state = server.application.newest().clone();
                ledger.on_state(id, &state, zxid)?;
                if hit(&mut self.rng, self.disk.unreadable) {
                    self.coverage.hit(FaultClass::SnapshotFailed);
                    self.answer(id, Event::SnapshotTaken(zxid));
                } else {
                    let incarnation = server.incarnation;
                    let wait = up_to(&mut self.rng, 20 * self.application_max);
                    self.agenda.after(wait, What::Publish { id, incarnation, state });
                }
            }
            Output::SendSnapshot { link, label } => {
                if label.is_epoch_start() && label > Zxid::ZERO {
                    self.coverage.hit(FaultClass::SnapOfEpochStart);
                }
                let state = State { label, ..server.application.newest().clone() };
                ledger.on_state(id, &state, label)?;
                self.send_snapshot(link, &state);
            }
            Output::ReceiveSnapshot { link, label } => {
                server.application.receiving = Some((link, label));
                server.application.received = None;
                server.disk.discard();
            }
            Output::Abandon => {
                let application = &server.application;
                if application.receiving.is_some() || application.received.is_some() {
                    self.coverage.hit(FaultClass::SnapshotAbandoned);
                }
                server.application.abandon();
                server.disk.discard();
            }
            Output::Answer(read) => ledger.on_answer(id, read)?,
            Output::Accepted(request) => ledger.on_accepted(id, request, standing.epoch)?,
            Output::Refused { id: request, .. } => ledger.on_refused(id, request)?,
            Output::ReadRefused { read, .. } => ledger.on_read_refused(id, read)?,
            Output::Release => self.answer(id, Event::Released),
            Output::Keep => self.coverage.hit(FaultClass::SeatKept),
            Output::HandedOver(Ok(_)) => self.coverage.hit(FaultClass::SeatGiven),
            Output::HandedOver(Err(_)) | Output::Report(_) | Output::Halt(_) => {}
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
        server.application.received = Some(state.clone());
        server.disk.stage(state);
        self.feed(id, Event::Restored(link))?;
        self.network.read_on(link);
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

    /// The application answers in the order in which it was asked.
    fn answer(&mut self, id: ServerId, event: Event) {
        let wait = up_to(&mut self.rng, self.application_max);
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.busy_until = server.busy_until.max(self.agenda.now()) + wait;
        let incarnation = server.incarnation;
        self.agenda.at(server.busy_until, What::Answer { id, incarnation, event });
    }

    /// Everything through a transaction is committed: the application gets it.
    fn deliver(
        &mut self,
        id: ServerId,
        through: Zxid,
        standing: Standing,
    ) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let Server { application, disk, incarnation, .. } = server;
        let ledger = &mut self.checker.ledger;
        let leads = standing.led || (standing.leads && standing.serving);
        if leads && through > disk.durable().last() {
            self.coverage.hit(FaultClass::CommittedElsewhereFirst);
        }
        ledger.on_deliver(id, through, leads, disk.latest(), &self.ensemble)?;
        if let Some(apart) = application.apart.take() {
            self.coverage.hit(if apart.label > application.state.label {
                FaultClass::Adopted
            } else {
                FaultClass::Overtaken
            });
            if apart.label > application.state.label {
                ledger.on_adopted(id, &apart, through)?;
                application.state = apart;
            }
        }
        let after = application.state.label;
        for txn in disk.latest().range(after, through) {
            let in_turn = application.apply(txn);
            if ledger.on_applied(id, txn, *incarnation, in_turn)? {
                self.coverage.hit(FaultClass::RequestApplied);
            }
        }
        ledger.on_state(id, &application.state, application.state.label)
    }

    /// Puts those snapshots on disk that the log has come up to.
    fn publish(&mut self, id: ServerId) -> Result<(), Violation> {
        let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
        let last = server.disk.durable().last();
        let mut ready = Vec::new();
        server.taken.retain(|state| {
            let now = state.label <= last;
            if now {
                ready.push(state.clone());
            }
            !now
        });
        for state in ready {
            if let Some(server) = self.servers.get_mut(&id) {
                server.disk.publish(&state, self.disk.snapshots);
            }
            self.coverage.hit(FaultClass::SnapshotTaken);
            self.answer(id, Event::SnapshotTaken(state.label));
        }
        Ok(())
    }

    fn stream_log(&mut self, id: ServerId, link: LinkId, after: Zxid, through: Zxid, form: Form) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get(&id) else { return };
        let held = server.disk.durable();
        let packets = |txn: &Txn| match form {
            Form::Proposals => vec![Packet::Proposal(txn.clone())],
            Form::Committed => vec![Packet::Proposal(txn.clone()), Packet::Commit(txn.zxid)],
            Form::Commits => vec![Packet::Commit(txn.zxid)],
            Form::Informs => vec![Packet::Inform(txn.clone())],
        };
        let mut pieces: Vec<_> =
            held.range(after, through).flat_map(packets).map(Piece::packet).collect();
        let mut outcome = Ok(());
        if after < held.floor || held.last() < through {
            pieces.clear();
            outcome = Err(Unreadable);
        } else if hit(&mut self.rng, self.disk.unreadable) {
            let kept = self.rng.below(pieces.len() as u64 + 1);
            pieces.truncate(usize::try_from(kept).unwrap_or(0));
            outcome = Err(Unreadable);
        }
        if outcome.is_err() {
            self.coverage.hit(FaultClass::StreamUnreadable);
        }
        self.coverage.hit(match form {
            Form::Proposals => FaultClass::StreamedProposals,
            Form::Committed => FaultClass::StreamedCommitted,
            Form::Commits => FaultClass::StreamedCommits,
            Form::Informs => FaultClass::StreamedInforms,
        });
        self.network.stream(now, link, pieces, outcome);
    }

    fn send_snapshot(&mut self, link: LinkId, state: &State) {
        let now = self.agenda.now();
        let mut bytes = state.encode();
        let mut pieces = vec![Piece::packet(Packet::Snap(state.label))];
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(SNAPSHOT_PIECE));
            pieces.push(Piece { bytes: piece, messages: Vec::new(), moves: true });
        }
        let mut outcome = Ok(());
        if hit(&mut self.rng, self.disk.unreadable) {
            pieces.pop();
            outcome = Err(Unreadable);
            self.coverage.hit(FaultClass::StreamUnreadable);
        }
        self.network.stream(now, link, pieces, outcome);
    }

    fn is_same(&self, id: ServerId, incarnation: u64) -> bool {
        self.servers.get(&id).is_some_and(|server| server.is(incarnation))
    }

    /// Whether the fuse of a server has burnt down; counts what others could notice.
    fn blows(&mut self, id: ServerId, output: &Output) -> bool {
        let Some(fuse) = self.fuse.as_mut().filter(|fuse| fuse.id == id) else { return false };
        if matches!(output, Output::Report(_)) {
            return false;
        }
        if fuse.left == 0 {
            let again = fuse.again;
            self.fuse = None;
            if let Some(wait) = again {
                self.start_after(id.0, wait);
            }
            return true;
        }
        fuse.left -= 1;
        false
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
