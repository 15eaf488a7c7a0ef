//! Sessions through everything that can happen to them: two servers that run the shipped service, two sessions, one name
//! for an ephemeral node, an expiry, a move, and a change of the leader.
//!
//! ```text
//!   client ── says, moves ──► server ── submitted, asked ──► leader ── prepared ──► committed ──► applied, at each server
//!                                ▲── reports whom it has heard ──┘         └─ kept or lost when the leader changes
//! ```
//!
//! The servers cannot be copied: a state is the way that leads to it, gone once more from the beginning. Two ways that come
//! to the same are followed once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{
    ClientId, Clients, Event, Frame, Host, Input, Output, Transport,
};
use quorate_application::{Application, Facts};
use quorate_core::id::{LinkId, Origin, ServerId};
use quorate_core::membership::Membership;
use quorate_core::message::Request as Submission;
use quorate_core::time::Instant;
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::{Counter, Epoch, Zxid};
use quorate_service::wire::{ConnectRequest, Request, op, password};
use quorate_service::{Options, Service, ZooKeeper};
use quorate_znode::Outcome;
use quorate_znode::acl::Acl;

const TICK: Duration = Duration::from_secs(1);
/// As long as a session may be silent: two ticks, the shortest that there is.
const TIMEOUT: Duration = Duration::from_secs(2);
const MEMBERS: &str =
    "server.1=127.0.0.1:1:2:participant\nserver.2=127.0.0.1:3:4:participant\nversion=0";

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// A tick passes at both servers.
    Tick,
    /// A client says that it lives.
    Ping(usize),
    /// A client asks for the ephemeral node.
    Create(usize),
    /// A client goes to the other server; the one that it leaves does not hear of it.
    Move(usize),
    /// A client whose connection was closed comes to the same server again.
    Come(usize),
    /// The learner is asked whom it has heard, and answers.
    Report,
    /// The next of what a server has asked for comes to the leader.
    Arrive(usize),
    /// The next of what is prepared is committed.
    Commit,
    /// A server applies the next of what is committed.
    Apply(usize),
    /// The other server leads; what was prepared is there, or lost.
    Change { kept: bool },
}

/// What may happen, and how often.
pub(crate) type Scope = &'static [(Act, u8)];

/// A session that is silent, another that wants its node, and a change of the leader.
pub(crate) const SILENCE: Scope = &[
    (Act::Tick, 3),
    (Act::Ping(1), 1),
    (Act::Create(0), 1),
    (Act::Create(1), 1),
    (Act::Report, 1),
    (Act::Arrive(0), u8::MAX),
    (Act::Arrive(1), u8::MAX),
    (Act::Commit, u8::MAX),
    (Act::Apply(0), u8::MAX),
    (Act::Apply(1), u8::MAX),
    (Act::Change { kept: true }, 1),
    (Act::Change { kept: false }, 1),
];

/// A session that goes to another server with a write under way, and a change of the leader.
pub(crate) const MOVE: Scope = &[
    (Act::Create(0), 1),
    (Act::Move(0), 1),
    (Act::Come(0), 1),
    (Act::Come(1), 1),
    (Act::Report, 1),
    (Act::Arrive(0), u8::MAX),
    (Act::Arrive(1), u8::MAX),
    (Act::Commit, u8::MAX),
    (Act::Apply(0), u8::MAX),
    (Act::Apply(1), u8::MAX),
    (Act::Change { kept: true }, 1),
    (Act::Change { kept: false }, 1),
];

struct Server {
    zookeeper: ZooKeeper,
    service: Service,
    applied: usize,
    /// Submitted, or asked, and not yet with the leader.
    wants: VecDeque<Output>,
}

struct Client {
    session: i64,
    server: usize,
    /// None if it was closed.
    link: Option<ClientId>,
    /// The server has said that it has its session.
    open: bool,
}

/// What is looked for somewhere, so that the model is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    Expiry,
    ExpiryBehindChange,
    TakenOver,
    MovedWriteRefused,
    WriteOfClosedRefused,
}

const ALL_SEEN: [Seen; 5] = [
    Seen::Expiry,
    Seen::ExpiryBehindChange,
    Seen::TakenOver,
    Seen::MovedWriteRefused,
    Seen::WriteOfClosedRefused,
];

struct World {
    servers: [Server; 2],
    clients: Vec<Client>,
    leader: usize,
    epoch: Epoch,
    now: Instant,
    log: Vec<Txn>,
    prepared: VecDeque<Txn>,
    next: Counter,
    /// How many connections there were.
    links: u64,
    /// Since when the leader knows a session to have been heard; and when it was heard at the learner since the report.
    heard: BTreeMap<i64, Instant>,
    unreported: BTreeMap<i64, Instant>,
    /// Where each session is, as the leader was asked last.
    owner: BTreeMap<i64, usize>,
    /// What came from a server that its session had left.
    stale: BTreeSet<Zxid>,
    closed: BTreeSet<i64>,
    /// What both servers have behind each transaction.
    states: BTreeMap<usize, (u64, Vec<(i64, i32)>)>,
    broken: Option<String>,
    seen: BTreeSet<Seen>,
}

impl World {
    /// Server 1 leads; one session is at each server.
    fn new() -> Self {
        let server = |id| {
            let mut zookeeper = ZooKeeper::with(Options::default());
            let host = Host {
                id: ServerId(id),
                tick: TICK,
                frame_bytes_max: 1 << 20,
                txn_bytes_max: 2 << 20,
                remembered: None,
            };
            let service = zookeeper.clients(host);
            Server { zookeeper, service, applied: 0, wants: VecDeque::new() }
        };
        let mut world = Self {
            servers: [server(1), server(2)],
            clients: Vec::new(),
            leader: 0,
            epoch: Epoch(0),
            now: Instant::ORIGIN,
            log: Vec::new(),
            prepared: VecDeque::new(),
            next: Counter(0),
            links: 0,
            heard: BTreeMap::new(),
            unreported: BTreeMap::new(),
            owner: BTreeMap::new(),
            stale: BTreeSet::new(),
            closed: BTreeSet::new(),
            states: BTreeMap::new(),
            broken: None,
            seen: BTreeSet::new(),
        };
        world.lead(0);
        for server in 0..2 {
            let link = Some(world.connect(server, 0));
            world.settle();
            let sessions = world.servers[0].zookeeper.tree().sessions();
            let known: Vec<i64> = world.clients.iter().map(|client| client.session).collect();
            let new = sessions.map(|(id, _)| id).find(|id| !known.contains(id));
            world.clients.push(Client { session: new.unwrap_or(0), server, link, open: true });
        }
        world
    }

    fn settle(&mut self) {
        while [Act::Arrive(0), Act::Arrive(1), Act::Commit, Act::Apply(0), Act::Apply(1)]
            .into_iter()
            .any(|act| self.act(act))
        {}
    }

    fn learner(&self) -> usize {
        1 - self.leader
    }

    fn link(&self) -> LinkId {
        LinkId(self.epoch.0.unsigned_abs())
    }

    /// A server leads from here on, and the other follows; both have everything.
    fn lead(&mut self, leader: usize) {
        for at in 0..2 {
            self.tell(at, Event::Retired);
            self.servers[at].zookeeper.abandon();
            self.servers[at].wants.clear();
            while self.act(Act::Apply(at)) {}
        }
        (self.leader, self.epoch, self.next) = (leader, Epoch(self.epoch.0 + 1), Counter(0));
        self.owner.clear();
        self.unreported.clear();
        let sessions = self.servers[leader].zookeeper.tree().sessions();
        self.heard = sessions.map(|(id, _)| (id, self.now)).collect();
        for at in [leader, 1 - leader] {
            let membership = Box::new(Membership::parse(MEMBERS.as_bytes()).expect("a membership"));
            let (epoch, leads) = (self.epoch, at == leader);
            self.tell(at, Event::Serving { epoch, leads, marks: true, membership });
        }
    }

    fn tell(&mut self, at: usize, event: Event) {
        let Server { zookeeper, service, .. } = &mut self.servers[at];
        let mut out = Vec::new();
        service.step_into(Input { at: self.now, wall_ms: 0, event }, zookeeper, &mut out);
        self.carry_out(at, out);
    }

    fn carry_out(&mut self, at: usize, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Submit { epoch, request } => {
                    self.is_expiry(at, &request);
                    self.servers[at].wants.push_back(Output::Submit { epoch, request });
                }
                Output::Revalidate(_) => self.servers[at].wants.push_back(output),
                Output::Touch(sessions) => {
                    let heard = std::mem::take(&mut self.unreported);
                    for (session, at) in heard {
                        let known = self.heard.entry(session).or_insert(at);
                        *known = at.max(*known);
                    }
                    let (from, asked) = (self.link(), self.now);
                    self.tell(self.leader, Event::Touched { from, asked, sessions });
                }
                Output::Revalidated { body, .. } => {
                    self.tell(self.learner(), Event::Revalidated(body));
                }
                Output::Send { client, bytes } => {
                    for one in self.clients.iter_mut().filter(|one| one.link == Some(client)) {
                        one.open = true;
                    }
                    self.tell(at, Event::Written { client, bytes: bytes.len() });
                }
                Output::Close { client, .. } => {
                    for one in self.clients.iter_mut().filter(|one| one.link == Some(client)) {
                        (one.link, one.open) = (None, false);
                    }
                }
                Output::Pause(_)
                | Output::Resume(_)
                | Output::Sync(_)
                | Output::Vacated
                | Output::Halt(_)
                | Output::Audit(_)
                | Output::Remember(_) => {}
            }
        }
    }

    /// A leader takes a session for silent: as far as it can know, it was for its time-out.
    fn is_expiry(&mut self, at: usize, request: &Submission) {
        let session = request.id.client;
        let tree = self.servers[at].zookeeper.tree();
        if request.op != op::CLOSE_SESSION
            || request.id.cxid != 0
            || tree.session(session).is_none()
        {
            return;
        }
        self.seen.insert(Seen::Expiry);
        if self.epoch > Epoch(1) {
            self.seen.insert(Seen::ExpiryBehindChange);
        }
        let heard = self.heard.get(&session).copied().unwrap_or(Instant::ORIGIN);
        if self.now.since(heard) < TIMEOUT {
            let silent = self.now.since(heard);
            self.broken = Some(format!("session {session:x} expires, silent for {silent:?}"));
        }
    }

    fn heard_at(&mut self, at: usize, session: i64) {
        if at != self.leader {
            self.unreported.insert(session, self.now);
        } else if self.owner.get(&session).is_none_or(|owner| *owner == at) {
            self.heard.insert(session, self.now);
        }
    }

    fn connect(&mut self, at: usize, session: i64) -> ClientId {
        let client = ClientId(self.links);
        self.links += 1;
        for one in self.clients.iter_mut().filter(|one| one.session == session) {
            (one.server, one.link, one.open) = (at, Some(client), false);
        }
        let (remote, over) = (([10, 0, 0, 7], 4711).into(), Transport::Plain);
        self.tell(at, Event::Connected { client, remote, over });
        let asked = ConnectRequest {
            protocol: 0,
            last_zxid: Zxid::ZERO,
            timeout_ms: 0,
            session,
            password: Bytes::copy_from_slice(&password(session)),
            read_only: Some(false),
        };
        let frames = vec![Frame::Whole(asked.encode().slice(4..))];
        if at == self.leader && session != 0 {
            self.owner.insert(session, at);
        }
        self.tell(at, Event::Received { client, frames });
        client
    }

    fn say(&mut self, client: usize, request: &Request, xid: i32) -> bool {
        let Client { session, server, link, open } = self.clients[client];
        let Some(client) = link.filter(|_| open) else { return false };
        self.heard_at(server, session);
        let frames = vec![Frame::Whole(request.frame(xid).slice(4..))];
        self.tell(server, Event::Received { client, frames });
        true
    }

    /// Lets it happen, if it can.
    fn act(&mut self, act: Act) -> bool {
        match act {
            Act::Tick => {
                self.now = self.now + TICK;
                for at in 0..2 {
                    if self.servers[at].service.deadline().is_some_and(|due| due <= self.now) {
                        self.tell(at, Event::Tick);
                    }
                }
            }
            Act::Ping(client) => return self.say(client, &Request::Ping, -2),
            Act::Create(client) => {
                let (op, path, acl) = (op::CREATE, "/e".to_owned(), Some(vec![Acl::world(31)]));
                let create = Request::Create { op, path, data: None, acl, flags: 1, ttl: None };
                return self.say(client, &create, 1);
            }
            Act::Move(client) => {
                let Client { session, server, .. } = self.clients[client];
                self.connect(1 - server, session);
            }
            Act::Come(client) => {
                let Client { session, server, link, .. } = self.clients[client];
                if link.is_some() {
                    return false;
                }
                self.connect(server, session);
            }
            Act::Report => self.tell(self.learner(), Event::Pinged),
            Act::Arrive(at) => return self.arrive(at),
            Act::Commit => {
                let Some(txn) = self.prepared.pop_front() else { return false };
                self.log.push(txn);
            }
            Act::Apply(at) => return self.apply(at),
            Act::Change { kept } => {
                let prepared = std::mem::take(&mut self.prepared);
                self.log.extend(prepared.into_iter().filter(|_| kept));
                self.lead(self.learner());
            }
        }
        true
    }

    fn arrive(&mut self, at: usize) -> bool {
        let Some(wants) = self.servers[at].wants.pop_front() else { return false };
        let (link, leader) = (self.link(), self.leader);
        let request = match wants {
            Output::Submit { request, .. } => request,
            Output::Revalidate(body) => {
                if let Some(session) = body.first_chunk().copied().map(i64::from_be_bytes) {
                    self.owner.insert(session, at);
                    self.heard.insert(session, self.now);
                }
                self.tell(leader, Event::Revalidate { from: link, body });
                return true;
            }
            Output::Send { .. }
            | Output::Close { .. }
            | Output::Pause(_)
            | Output::Resume(_)
            | Output::Sync(_)
            | Output::Vacated
            | Output::Halt(_)
            | Output::Remember(_)
            | Output::Audit(_)
            | Output::Touch(_)
            | Output::Revalidated { .. } => return true,
        };
        let origin = if at == leader { Origin::Service } else { Origin::Learner(link) };
        self.next = Counter(self.next.0 + 1);
        let zxid = Zxid::new(self.epoch, self.next);
        let facts = Facts { zxid, now_ms: 0, bytes_max: 1 << 20 };
        let prepared = self.servers[leader].zookeeper.prepare(&request, origin, &facts);
        let moved = self.owner.get(&request.id.client).is_some_and(|owner| *owner != at);
        if moved && request.op != op::CLOSE_SESSION {
            self.stale.insert(zxid);
        }
        let (client, cxid, kind) = (request.id.client, request.id.cxid, prepared.kind);
        let header = TxnHeader { client, cxid, time: 0, kind };
        self.prepared.push_back(Txn { zxid, header, body: prepared.body });
        true
    }

    fn apply(&mut self, at: usize) -> bool {
        let now = self.now;
        let server = &mut self.servers[at];
        let Some(txn) = self.log.get(server.applied).cloned() else { return false };
        server.applied += 1;
        let effect = server.zookeeper.apply(&txn);
        let mut out = Vec::new();
        server.service.on_applied(now, &txn, &effect, &mut server.zookeeper, &mut out);
        let (applied, tree) = (server.applied, server.zookeeper.tree());
        let state = (tree.digest(), tree.sessions().collect::<Vec<_>>());
        if let Some(owner) = tree.owners().find(|owner| tree.session(*owner).is_none()) {
            self.broken = Some(format!("an ephemeral node is left of session {owner:x}"));
        }
        let first = self.states.insert(applied, state.clone());
        if first.as_ref().is_some_and(|first| *first != state) {
            self.broken = Some(format!("two trees, or tables of sessions, at {}", txn.zxid));
        }
        if first.is_none() {
            let outcome = effect.map(|applied| applied.outcome);
            self.is_rightful(&txn, outcome.ok().as_ref());
        }
        self.carry_out(at, out);
        true
    }

    /// A transaction is of a session that lives, and came from where that is.
    fn is_rightful(&mut self, txn: &Txn, outcome: Option<&Outcome>) {
        let session = txn.header.client;
        let (stale, closed) = (self.stale.contains(&txn.zxid), self.closed.contains(&session));
        match outcome {
            Some(Outcome::SessionClosed { .. }) => drop(self.closed.insert(session)),
            Some(Outcome::SessionOpened { .. }) => drop(self.heard.insert(session, self.now)),
            Some(Outcome::Created { .. }) => {
                if stale || closed {
                    let why = if stale { "has left its server" } else { "has ended" };
                    self.broken =
                        Some(format!("{} is of session {session:x}, which {why}", txn.zxid));
                }
                if self.closed.iter().any(|other| *other != session) {
                    self.seen.insert(Seen::TakenOver);
                }
            }
            _ if stale => drop(self.seen.insert(Seen::MovedWriteRefused)),
            _ if closed => drop(self.seen.insert(Seen::WriteOfClosedRefused)),
            _ => {}
        }
    }

    /// What tells this state from others; not how much was counted on the way.
    fn hashed(&self, left: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for server in &self.servers {
            let text = format!("{:?} {:?}", server.service, server.wants);
            for part in text.split("counters: ") {
                let rest = part.split_once('}').filter(|_| part.starts_with("Counters"));
                let rest = rest.map_or(part, |(_, rest)| rest);
                for part in rest.split("figures: ") {
                    let rest = part.split_once('}').filter(|_| part.starts_with("Figures"));
                    rest.map_or(part, |(_, rest)| rest).hash(&mut hasher);
                }
            }
            server.applied.hash(&mut hasher);
        }
        format!("{:?} {:?} {:?}", self.log, self.prepared, self.unreported).hash(&mut hasher);
        (left, self.leader, self.now, &self.heard, &self.owner).hash(&mut hasher);
        let clients = self.clients.iter().map(|one| (one.server, one.link, one.open));
        clients.collect::<Vec<_>>().hash(&mut hasher);
        hasher.finish()
    }
}

/// What came of looking.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) exhausted: bool,
    /// What was broken, and the way there.
    pub(crate) broken: Option<(String, Vec<String>)>,
    /// What never happened.
    pub(crate) unseen: Vec<Seen>,
}

/// Looks at every way, the short ones first, at so many steps at most.
pub(crate) fn look(scope: Scope, most: usize) -> Found {
    let (mut known, mut seen, mut steps) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut ways: VecDeque<Vec<u8>> = VecDeque::from([Vec::new()]);
    let unseen = |seen: &BTreeSet<Seen>| {
        ALL_SEEN.into_iter().filter(|one| !seen.contains(one)).collect::<Vec<_>>()
    };
    while let Some(way) = ways.pop_front() {
        for (next, (act, most_often)) in scope.iter().enumerate() {
            let often = |at: usize| way.iter().filter(|past| usize::from(**past) == at).count();
            // The leader changes once, in one way or the other.
            let is_change = |act: &Act| matches!(act, Act::Change { .. });
            let before = |past: &u8| is_change(&scope[usize::from(*past)].0);
            let changed = is_change(act) && way.iter().any(before);
            if often(next) >= usize::from(*most_often) || changed {
                continue;
            }
            let mut world = World::new();
            for past in &way {
                world.act(scope[usize::from(*past)].0);
            }
            if !world.act(*act) {
                continue;
            }
            steps += 1;
            seen.append(&mut world.seen);
            let way: Vec<u8> =
                way.iter().copied().chain([u8::try_from(next).unwrap_or(0)]).collect();
            if let Some(broken) = world.broken {
                let told =
                    way.iter().map(|at| format!("{:?}", scope[usize::from(*at)].0)).collect();
                let (states, unseen) = (known.len(), unseen(&seen));
                return Found { states, exhausted: false, broken: Some((broken, told)), unseen };
            }
            let mut left = vec![0; scope.len()];
            for at in way.iter().filter(|at| scope[usize::from(**at)].1 < u8::MAX) {
                left[usize::from(*at)] += 1;
            }
            if known.insert(world.hashed(&left)) {
                ways.push_back(way);
            }
            if steps >= most {
                let (states, unseen) = (known.len(), unseen(&seen));
                return Found { states, exhausted: false, broken: None, unseen };
            }
        }
    }
    Found { states: known.len(), exhausted: true, broken: None, unseen: unseen(&seen) }
}
