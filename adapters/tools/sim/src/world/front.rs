//! ZooKeeper in front of a server of the world: the shipped tree and service, in the order in which a driver runs them.
//!
//! ```text
//!   core: Deliver, Adopt, Prepare, Abandon ─┐
//!   core: Serving, Retired, Pinged, … ──────┼─► orders, one by one ─► ZooKeeper, Service ─► Prepared, Submit, … ─► core
//!   connections of clients ─────────────────┘                                         └─► Send, Close ─► clients
//! ```
//!
//! What is ordered is done a moment later, as on a driver's other thread, and at the latest when something depends on it: a
//! snapshot, or telling the core how far it is applied.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{
    ClientId, Clients, Event as Told, Frame, Host, Input, Output as Wants, SyncId,
};
use quorate_application::{Application, Facts, Prepared, Restore, TxnTimes};
use quorate_core::id::{Origin, ReadId, ServerId};
use quorate_core::message::Request;
use quorate_core::output::Output;
use quorate_core::time::Instant;
use quorate_core::txn::{Draft, Txn, TxnHeader};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_service::wire::op;
use quorate_service::{ClientFraming, Options, Service, ZooKeeper};
use quorate_znode::{Applied, DigestCheck};

use crate::faults::FaultClass;
use crate::java_leader::{Leader, poison};
use crate::network::up_to;
use crate::rule::{Rule, Violation, broken};
use crate::world::told::{attaches, ends, holds_back, is_of, shows_what_is_applied};
use crate::world::{What, World};

/// How many ticks a leader waits between two looks at what is due.
pub(super) const LOOKS_EVERY: u32 = 3;

/// What is to be done, in order.
#[derive(Debug)]
pub(super) enum Order {
    Apply(Txn),
    /// A state with this label and these bytes takes the place of the tree; it may hold more than the label says if it is not
    /// whole.
    Adopt {
        label: Zxid,
        tree: Bytes,
        whole: bool,
    },
    Prepare(Epoch, Zxid, Origin, Request),
    Abandon,
    /// The service is told.
    Tell(Told),
}

/// The application of a server and its service.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) zookeeper: ZooKeeper,
    pub(super) service: Service,
    pub(super) tick: Duration,
    /// It is a server of ZooKeeper; and while that leads, its model.
    pub(super) is_java: bool,
    pub(super) leader: Option<Box<Leader>>,
    /// The sessions that were opened, at whichever server, since the leader asked last: a learner of ZooKeeper tells of
    /// them once, as if it had heard them. `LearnerSessionTracker.commitSession`.
    pub(super) created: BTreeMap<i64, i32>,
    /// In which it serves, or did last.
    pub(super) epoch: Epoch,
    /// It leads, or did when it served last.
    leads: bool,
    orders: VecDeque<Order>,
    /// What takes frames off the bytes of each connection that has not ended.
    pub(super) open: BTreeMap<ClientId, ClientFraming>,
    /// Frames of those that are not read from.
    pub(super) held: BTreeMap<ClientId, Vec<Frame>>,
    /// How much of what each connection asked for is not answered.
    pub(super) asked: BTreeMap<ClientId, usize>,
    /// Until when a server that is about to stop waits for answers.
    pub(super) drains: Option<Instant>,
    /// Clients are served.
    pub(super) serves: bool,
    /// Whom an answer to a read is for.
    reads: BTreeMap<ReadId, SyncId>,
    /// Those of the transactions that it prepares.
    times: TxnTimes,
    /// How far the wall clock is ahead of the monotonic one, in milliseconds.
    pub(super) wall: i64,
    /// When the wall clock was last set forward by more than leaders wait between two looks at what is due, and by how much.
    pub(super) set_forward: Option<(Instant, i64)>,
    /// When the service stepped last.
    pub(super) stepped: Instant,
    /// When there is something to do, if that is entered.
    pub(super) wakes: Option<Instant>,
    pub(super) wants: Vec<Wants>,
}

impl Front {
    /// That of a server that starts.
    pub(super) fn new(
        id: ServerId,
        tick: Duration,
        remembered: Option<i64>,
        is_java: bool,
    ) -> Self {
        let interval = tick * LOOKS_EVERY;
        let options =
            Options { extended_types: true, container_interval: interval, ..Options::default() };
        let mut zookeeper = ZooKeeper::with(options);
        let host =
            Host { id, tick, frame_bytes_max: 0xf_ffff, txn_bytes_max: Txn::BYTES_MAX, remembered };
        let service = zookeeper.clients(host);
        Self {
            zookeeper,
            service,
            tick,
            is_java,
            leader: None,
            created: BTreeMap::new(),
            epoch: Epoch::ZERO,
            leads: false,
            orders: VecDeque::new(),
            open: BTreeMap::new(),
            held: BTreeMap::new(),
            asked: BTreeMap::new(),
            drains: None,
            serves: false,
            reads: BTreeMap::new(),
            times: TxnTimes::new(),
            wall: 0,
            set_forward: None,
            stepped: Instant::ORIGIN,
            wakes: None,
            wants: Vec::new(),
        }
    }

    pub(super) fn order(&mut self, order: Order) {
        self.orders.push_back(order);
    }

    pub(super) const fn tree(&self) -> &quorate_znode::Tree {
        self.zookeeper.tree()
    }

    /// What the service asked to read has been reached, or never is.
    pub(super) fn answer(&mut self, read: ReadId, answered: bool) {
        if let Some(sync) = self.reads.remove(&read) {
            self.order(Order::Tell(if answered {
                Told::Synced(sync)
            } else {
                Told::SyncRefused(sync)
            }));
        }
    }

    /// When there is something to do, if nothing is ordered before.
    fn due(&self) -> Option<Instant> {
        let leader = self.leader.as_ref().and_then(|leader| leader.deadline());
        self.service.deadline().into_iter().chain(leader).min()
    }

    fn adopt(&mut self, label: Zxid, bytes: &Bytes, whole: bool) -> bool {
        if label == Zxid::ZERO {
            self.zookeeper.adopt(quorate_znode::Tree::new());
            return true;
        }
        let mut restore = ZooKeeper::restore(label);
        match restore.push(&mut &bytes[..]) {
            Ok(Some(mut tree)) => {
                if !whole {
                    ZooKeeper::staged_whole_at(&mut tree, None);
                }
                self.zookeeper.adopt(tree);
            }
            Ok(None) | Err(_) => return false,
        }
        true
    }

    fn tell(&mut self, at: Instant, event: Told) {
        self.stepped = self.stepped.max(at);
        let input = Input { at: self.stepped, wall_ms: self.wall_ms(self.stepped), event };
        self.service.step_into(input, &mut self.zookeeper, &mut self.wants);
    }

    fn prepare(&mut self, facts: &Facts, origin: Origin, request: &Request) -> Draft {
        let Prepared { kind, body } = self.zookeeper.prepare(request, origin, facts);
        let (client, cxid) = (request.id.client, request.id.cxid);
        let draft = Draft { header: TxnHeader { client, cxid, time: facts.now_ms, kind }, body };
        draft.fit(facts.bytes_max + Txn::HEADER_BYTES).unwrap_or_else(|refusal| {
            self.zookeeper.void();
            refusal
        })
    }
}

impl World {
    /// Gives the front of a server something to do, if it has one.
    pub(super) fn order(&mut self, id: ServerId, order: Order) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(front) = &mut server.front else { return };
        front.order(order);
        self.wake_front(id);
    }

    /// What the core says to a service; false if it is nothing for one.
    pub(super) fn tells_front(&mut self, id: ServerId, output: &Output) -> bool {
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are nothing for a service")]
        let told = match output.clone() {
            Output::Serving { epoch, leads, marks, membership } => {
                let server = self.servers.get(&id).and_then(|server| server.front.as_ref());
                // Servers of ZooKeeper leave none, and look for none.
                let marks = marks && server.is_some_and(|front| !front.is_java);
                Told::Serving { epoch, leads, marks, membership: Box::new(membership) }
            }
            Output::Retired => Told::Retired,
            Output::Pinged => Told::Pinged,
            Output::Touched { from, asked, sessions } => Told::Touched { from, asked, sessions },
            Output::Revalidate { from, body } => Told::Revalidate { from, body },
            Output::Revalidated(body) => Told::Revalidated(body),
            Output::Answer(read) | Output::ReadRefused { read, .. } => {
                let server = self.servers.get_mut(&id);
                if let Some(front) = server.and_then(|server| server.front.as_mut()) {
                    front.answer(read, matches!(output, Output::Answer(_)));
                }
                self.wake_front(id);
                return true;
            }
            _ => return false,
        };
        self.order(id, Order::Tell(told));
        true
    }

    /// Enters when the front of a server has something to do.
    pub(super) fn wake_front(&mut self, id: ServerId) {
        let now = self.agenda.now();
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(front) = &mut server.front else { return };
        if server.paused {
            return;
        }
        let due = front.due().map(|due| server.clock.when(due).max(now));
        let at = if front.orders.is_empty() {
            due
        } else {
            Some(now + up_to(&mut self.appliers, self.application_max))
        };
        let Some(at) = at.filter(|at| front.wakes.is_none_or(|wakes| *at < wakes)) else { return };
        front.wakes = Some(at);
        let incarnation = server.incarnation;
        self.agenda.at(at, What::Front { id, incarnation });
    }

    /// The front of a server does what it has to do.
    pub(super) fn work(&mut self, id: ServerId) -> Result<(), Violation> {
        let now = self.agenda.now();
        loop {
            let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
            let shown = server.clock.shows(now);
            let Some(front) = &mut server.front else { return Ok(()) };
            if front.wakes.is_some_and(|wakes| wakes <= now) {
                front.wakes = None;
            }
            if server.paused {
                return Ok(());
            }
            self.expires_as_java(id, shown)?;
            let Some(server) = self.servers.get_mut(&id) else { return Ok(()) };
            let Some(front) = &mut server.front else { return Ok(()) };
            let due = front.service.deadline().is_some_and(|due| due <= shown);
            let order = front.orders.pop_front();
            let Some(order) = order.or(due.then_some(Order::Tell(Told::Tick))) else { break };
            self.perform(id, shown, order)?;
        }
        self.wake_front(id);
        self.enter_clients();
        Ok(())
    }

    fn perform(&mut self, id: ServerId, shown: Instant, order: Order) -> Result<(), Violation> {
        let now = self.agenda.now();
        if let Order::Tell(told) = &order {
            self.note_told(id, shown, told);
        }
        let (Some(server), Some(crowd)) = (self.servers.get_mut(&id), &mut self.crowd) else {
            return Ok(());
        };
        let Some(front) = &mut server.front else { return Ok(()) };
        front.set_wall(shown, server.wall, server.config.timing.tick * LOOKS_EVERY);
        match order {
            Order::Apply(txn) => {
                if front.is_java && poison::ends(&txn, front.tree()) {
                    self.agenda.at(now, What::Ends { id, incarnation: server.incarnation });
                }
                let effect = front.zookeeper.apply(&txn);
                front.stepped = front.stepped.max(shown);
                let (at, wants) = (front.stepped, &mut front.wants);
                front.service.on_applied(at, &txn, &effect, &mut front.zookeeper, wants);
                if let Some(leader) = &mut front.leader {
                    leader.on_applied(&txn);
                }
                if let Ok(applied) = &effect {
                    front.notes_created(&txn, &applied.outcome);
                }
                let counts = !crowd.judge.miscounts(txn.zxid.epoch());
                if let (Ok(Applied { digest: DigestCheck::Differs { leader, ours }, .. }), true) =
                    (effect, counts)
                {
                    let detail = format!("{}: the leader says {leader:x}, not {ours:x}", txn.zxid);
                    return broken(Rule::SameTree, id, detail);
                }
                if front.tree().is_whole() {
                    crowd.judge.same(id, front.tree())?;
                }
            }
            Order::Adopt { label, tree, whole } => {
                if !front.adopt(label, &tree, whole) {
                    let detail = format!("cannot restore {label}");
                    return broken(Rule::Snapshot, id, detail);
                }
                front.tell(shown, Told::Replaced);
                if front.tree().is_whole() {
                    crowd.judge.same(id, front.tree())?;
                }
            }
            Order::Prepare(epoch, zxid, origin, request) => {
                let closes = request.op == op::CLOSE_SESSION;
                crowd.judge.sessions.on_prepared(id, request.id, closes)?;
                let most = server.config.limits.txn_bytes;
                let bytes_max = most.saturating_sub(Txn::HEADER_BYTES);
                let now_ms = front.times.next(front.wall_ms(shown));
                let facts = Facts { zxid, now_ms, bytes_max };
                let draft = front.prepare(&facts, origin, &request);
                let by_java = front.leader_prepares(shown, &facts, origin, &request);
                if let Some(leader) = &front.leader {
                    crowd.judge.prepared_by_java(epoch, leader.miscounts);
                    self.network.by_java.insert(epoch);
                    self.coverage.hit(FaultClass::PreparedByJava);
                }
                let draft = by_java.unwrap_or(draft);
                front.refuses_poison(id, &request, &draft)?;
                server.drafts.push((epoch, draft));
                let incarnation = server.incarnation;
                if server.drafts.len() == 1 {
                    self.agenda.at(now, What::Prepared { id, incarnation });
                }
            }
            Order::Abandon => {
                front.times.forget();
                front.zookeeper.abandon();
                front.leader = None;
            }
            Order::Tell(event) => {
                if let Told::Serving { leads, membership, .. } = &event {
                    let (text, version) = (membership.to_string(), membership.version());
                    let wall_ms = front.wall_ms(shown);
                    front.zookeeper.set_configuration(&text, version, wall_ms);
                    front.leads = *leads;
                    let java = *leads && front.is_java;
                    self.coverage.hits(FaultClass::LedByJava, u64::from(java));
                }
                let client =
                    if let Told::Received { client, .. } = &event { Some(*client) } else { None };
                let session = client.and_then(|client| crowd.session_of(client));
                front.counts_asked(shown, &event);
                front.forgets_created(&event);
                let answer = front.leader_hears(shown, &event, session);
                // ZooKeeper's servers close every client.
                let parts = front.is_java && matches!(event, Told::Retired);
                let serving = matches!(event, Told::Serving { .. });
                front.tell(shown, event);
                if serving {
                    crowd.judge.same(id, front.tree())?;
                    if !front.tree().is_whole() {
                        let detail = "serves, and compares no digest".to_owned();
                        return broken(Rule::SameTree, id, detail);
                    }
                }
                if parts {
                    front.tell(shown, Told::Replaced);
                }
                front.leader_says(answer);
            }
        }
        self.serve(id)
    }

    /// Does what the service of a server wants.
    pub(super) fn serve(&mut self, id: ServerId) -> Result<(), Violation> {
        let now = self.agenda.now();
        let (Some(server), Some(crowd)) = (self.servers.get_mut(&id), &mut self.crowd) else {
            return Ok(());
        };
        let Some(front) = &mut server.front else { return Ok(()) };
        let mut wants = std::mem::take(&mut front.wants).into_iter().peekable();
        while let Some(want) = wants.next() {
            let event = match want {
                Wants::Send { client, bytes } => {
                    front.counts_answered(client, &bytes);
                    let applied = front.zookeeper.tree().last_zxid();
                    shows_what_is_applied(id, crowd.is_answered(client), &bytes, applied)?;
                    if !wants.peek().is_some_and(|next| ends(next, client)) {
                        holds_back(id, crowd, client, &bytes)?;
                    }
                    let length = bytes.len();
                    if let Some(session) = crowd.on_sent(client, bytes, now) {
                        let asked = crowd.session_of(client).unwrap_or(0);
                        let ours = crowd.judge.is_ours_alone;
                        let sessions = &mut crowd.judge.sessions;
                        if session == 0 {
                            sessions.on_refused(id, asked, applied)?;
                        } else {
                            sessions.on_welcome(id, session, applied)?;
                            if ours {
                                sessions.on_moved_here(session, client);
                            }
                        }
                        if front.leads {
                            if let Some(leader) = &mut front.leader {
                                leader.takes_over(session);
                            }
                            sessions.on_moved(id, session, Some(id));
                        }
                    }
                    if crowd.waiting(client).is_none() {
                        front.order(Order::Tell(Told::Written { client, bytes: length }));
                    }
                    continue;
                }
                Wants::Close { client, .. } => {
                    let next = wants.peek().filter(|next| attaches(next, client, crowd));
                    front.ends_between_answers(id, client, crowd, next.is_some())?;
                    front.open.remove(&client);
                    front.held.remove(&client);
                    front.orders.retain(|order| !is_of(order, client));
                    crowd.on_closed(client, now);
                    continue;
                }
                Wants::Pause(client) => {
                    front.held.entry(client).or_default();
                    continue;
                }
                Wants::Resume(client) => {
                    let frames = front.held.remove(&client).unwrap_or_default();
                    front.order(Order::Tell(Told::Received { client, frames }));
                    continue;
                }
                Wants::Submit { epoch, request } => {
                    let expires = request.op == op::CLOSE_SESSION && request.id.cxid == 0;
                    // A leader of ZooKeeper tracks sessions before they are in its tree.
                    let by_java = front.leader.is_some();
                    let known = by_java || front.tree().session(request.id.client).is_some();
                    if expires && known {
                        let session = request.id.client;
                        crowd.judge.sessions.on_expired(id, session, now, by_java)?;
                    }
                    let interval = server.config.timing.tick * LOOKS_EVERY;
                    front.is_confirmed(id, &request, interval)?;
                    quorate_core::input::Event::Submit { epoch, request }
                }
                Wants::Sync(sync) => {
                    server.asked += 1;
                    let read = ReadId(server.incarnation << 32 | server.asked);
                    front.reads.insert(read, sync);
                    self.checker.ledger.on_read(id, read, u8::MAX);
                    quorate_core::input::Event::Read(read)
                }
                // No client has asked for it.
                Wants::Audit(_) => continue,
                Wants::Remember(bound) => {
                    server.remembered = Some(bound);
                    continue;
                }
                Wants::Vacated => {
                    self.agenda.at(now, What::Vacated { id, incarnation: server.incarnation });
                    continue;
                }
                Wants::Halt(reason) => return broken(Rule::Progress, id, reason),
                Wants::Touch(sessions) => {
                    quorate_core::input::Event::Touch(front.tells_of_created(sessions))
                }
                Wants::Revalidate(body) => quorate_core::input::Event::Revalidate(body),
                Wants::Revalidated { to, body } => {
                    quorate_core::input::Event::Revalidated { to, body }
                }
            };
            let (incarnation, event) = (server.incarnation, Box::new(event));
            self.agenda.at(now, What::Answer { id, incarnation, event });
        }
        Ok(())
    }
}
