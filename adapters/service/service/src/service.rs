//! The service of one server: its clients, their sessions and watches, and what is under way for them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close, Host, Output, SyncId};
use quorate_core::id::ServerId;
use quorate_core::time::Instant;
use quorate_core::txn::RequestId;
use quorate_core::zxid::Epoch;

use crate::audit::Asked;
use crate::connection::{Connection, State};
use crate::containers::Containers;
use crate::digests::Digests;
use crate::log_limit::LogLimit;
use crate::marks::Marks;
use crate::options::Options;
use crate::pauses::Pauses;
use crate::proofs::Proofs;
use crate::replies::{Latencies, Replies};
use crate::sessions::Sessions;
use crate::shares::{Shares, Shedding};
use crate::tracker::Tracker;
use crate::watches::Watches;
use crate::zookeeper::ZooKeeper;

/// The clients of one ZooKeeper server.
#[derive(Debug)]
pub struct Service {
    pub(crate) id: ServerId,
    pub(crate) tick: Duration,
    pub(crate) frame_bytes_max: usize,
    pub(crate) txn_bytes_max: usize,
    pub(crate) options: Options,
    pub(crate) clients: BTreeMap<ClientId, Connection>,
    /// It has stepped.
    pub(crate) has_started: bool,
    /// Who has a session open here, or asks for it.
    pub(crate) by_session: BTreeMap<i64, ClientId>,
    pub(crate) sessions: Sessions,
    /// Of which sessions the leader is asked whether they live, and how often that is not answered.
    pub(crate) asked: BTreeMap<i64, u32>,
    pub(crate) watches: Watches,
    /// What was submitted and is not applied, oldest first.
    pub(crate) submitted: VecDeque<Submitted>,
    /// Clients with writes that wait for room among those.
    pub(crate) waiting: VecDeque<ClientId>,
    /// Read points that were asked for, and who waits for them.
    pub(crate) syncs: BTreeMap<SyncId, ClientId>,
    pub(crate) next_sync: u64,
    /// How many writes may be under way: this server's part.
    pub(crate) outstanding_max: usize,
    pub(crate) role: Role,
    /// The epoch in which it serves, or has served last.
    pub(crate) epoch: Epoch,
    pub(crate) counters: Counters,
    pub(crate) proofs: Proofs,
    pub(crate) latencies: Latencies,
    pub(crate) digests: Digests,
    /// Of those that have seen more than this server has.
    pub(crate) said_ahead: LogLimit,
    /// Of those that do not take their events.
    pub(crate) said_cut_off: LogLimit,
    /// Of those that have not logged in, and have to.
    pub(crate) said_logins: LogLimit,
    /// Of those that guess.
    pub(crate) said_guesses: LogLimit,
    /// Of long replies.
    pub(crate) said_long: LogLimit,
    /// Of too many watches.
    pub(crate) said_watches: LogLimit,
    /// Clients that are told more of an answer, each in its turn.
    pub(crate) telling: VecDeque<ClientId>,
    /// Clients whose queues have moved in this step, in the order in which they did; some more than once.
    pub(crate) moved: VecDeque<ClientId>,
    pub(crate) pauses: Pauses,
    /// Pings of the leader that wait until what came during a pause is read.
    pub(crate) pings_owed: u32,
    /// When it has ceased to serve, until it serves again, or has waited for that long enough.
    pub(crate) retired: Option<Instant>,
    /// The leader, or the last one, leaves a mark of each session that comes to a server.
    pub(crate) is_marked: bool,
    /// Clients leave, perhaps since the server is about to stop.
    pub(crate) shares: Option<Shares>,
    /// How that has ended the last time, where the server went on.
    pub(crate) shed: Shedding,
}

/// What this server is to its clients.
#[derive(Debug)]
pub(crate) enum Role {
    /// It serves none.
    Idle,
    /// The leader is another server; `observes`: and we do not vote.
    Learner { observes: bool },
    /// It leads.
    Leader(Box<Leading>),
}

use alloc::boxed::Box;

/// What only a leader keeps.
#[derive(Debug)]
pub(crate) struct Leading {
    pub(crate) tracker: Tracker,
    /// Whether other servers vote.
    pub(crate) alone: bool,
    pub(crate) containers: Containers,
    pub(crate) marks: Marks,
}

/// A request on its way to the leader and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    pub(crate) id: RequestId,
    pub(crate) client: ClientId,
    /// What the audit log is to tell of it.
    pub(crate) audited: Option<Box<Asked>>,
}

/// What is counted since the start, or since an operator set it back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) replies: Replies,
    pub(crate) requests: u64,
    pub(crate) latency_sum_ms: u64,
    pub(crate) latency_min_ms: Option<u64>,
    pub(crate) latency_max_ms: u64,
    /// Clients that have seen more than this server has.
    pub(crate) ahead: u64,
    /// Connections that were closed because their sessions are at others.
    pub(crate) moved: u64,
    /// Events that were sent, and those that were not because their clients may not read the node.
    pub(crate) events: u64,
    pub(crate) events_kept_back: u64,
    /// Clients that did not take their events.
    pub(crate) cut_off: u64,
    /// Replies that are longer than a frame may be.
    pub(crate) long_replies: u64,
    /// Watches that were one too many, and connections that were closed since theirs were.
    pub(crate) watches_refused: u64,
    /// Connections that ended by themselves: not by us, and not by a client that had closed its session.
    pub(crate) dropped: u64,
}

/// What a step has at hand beside the service itself.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) at: Instant,
    pub(crate) wall_ms: i64,
    pub(crate) state: &'a mut ZooKeeper,
    pub(crate) out: &'a mut Vec<Output>,
}

impl Service {
    pub(crate) fn new(host: Host, options: Options) -> Self {
        Self {
            id: host.id,
            tick: host.tick,
            frame_bytes_max: host.frame_bytes_max,
            txn_bytes_max: host.txn_bytes_max,
            options,
            clients: BTreeMap::new(),
            has_started: false,
            by_session: BTreeMap::new(),
            sessions: Sessions::new(host.id, host.remembered),
            asked: BTreeMap::new(),
            watches: Watches::default(),
            submitted: VecDeque::new(),
            waiting: VecDeque::new(),
            syncs: BTreeMap::new(),
            next_sync: 0,
            outstanding_max: 0,
            role: Role::Idle,
            epoch: Epoch::ZERO,
            counters: Counters::default(),
            proofs: Proofs::default(),
            latencies: Latencies::default(),
            digests: Digests::default(),
            said_ahead: LogLimit::default(),
            said_cut_off: LogLimit::default(),
            said_logins: LogLimit::default(),
            said_guesses: LogLimit::default(),
            said_long: LogLimit::default(),
            said_watches: LogLimit::default(),
            telling: VecDeque::new(),
            moved: VecDeque::new(),
            pauses: Pauses::new(host.tick),
            pings_owed: 0,
            retired: None,
            is_marked: false,
            shares: None,
            shed: Shedding::default(),
        }
    }

    /// Whether clients are served.
    pub(crate) const fn serves(&self) -> bool {
        match &self.role {
            Role::Idle => false,
            Role::Learner { .. } => true,
            Role::Leader(leading) => leading.alone || self.options.leader_serves,
        }
    }

    /// What a leader keeps, if this is one.
    pub(crate) const fn leading(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            Role::Leader(leading) => Some(leading),
            Role::Idle | Role::Learner { .. } => None,
        }
    }

    /// The shortest and the longest time-out of a session, in milliseconds.
    pub(crate) fn timeouts(&self) -> (i32, i32) {
        let millis = |set: Option<Duration>, ticks: u32| {
            let set = set.unwrap_or(self.tick * ticks);
            i32::try_from(set.as_millis()).unwrap_or(i32::MAX)
        };
        let (min, max) = (self.options.session_timeout_min, self.options.session_timeout_max);
        (millis(min, 2), millis(max, 20))
    }

    /// Sends something to a client that is not closed.
    pub(crate) fn send(&mut self, out: &mut Vec<Output>, client: ClientId, bytes: Bytes) {
        self.put(out, client, bytes, None);
    }

    /// Sends an event. A client that does not take its events is cut off.
    pub(crate) fn send_event(&mut self, step: &mut Step<'_>, client: ClientId, bytes: Bytes) {
        self.put(step.out, client, bytes, Some(step.at));
        let unwritten = self.clients.get(&client).map(|connection| &connection.unwritten);
        if unwritten.is_some_and(|unwritten| unwritten.is_too_much(step.at)) {
            self.cut_off(step, client, "a client does not take its events: cut off");
        }
    }

    /// Ends the connection of a client that does not read.
    pub(crate) fn cut_off(&mut self, step: &mut Step<'_>, client: ClientId, why: &str) {
        self.counters.cut_off += 1;
        if let Some(suppressed) = self.said_cut_off.permit(step.at) {
            tracing::warn!(event = "client.closed", client = client.0, suppressed, "{why}");
        }
        self.close(step.out, client, Close::Reset);
    }

    fn put(
        &mut self,
        out: &mut Vec<Output>,
        client: ClientId,
        bytes: Bytes,
        event: Option<Instant>,
    ) {
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let now = event.unwrap_or(self.pauses.stepped());
        connection.unwritten.sent(event.is_some(), bytes.len(), now);
        connection.figures.sent += 1;
        self.counters.sent += 1;
        out.push(Output::Send { client, bytes });
    }

    /// Ends a connection: nothing more is heard from it, its watches are gone; its session lives.
    pub(crate) fn close(&mut self, out: &mut Vec<Output>, client: ClientId, how: Close) {
        if self.forget(client) {
            out.push(Output::Close { client, how });
        }
    }

    /// Forgets a connection that has ended. What it has submitted may still come to pass.
    pub(crate) fn forget(&mut self, client: ClientId) -> bool {
        let Some(connection) = self.clients.remove(&client) else { return false };
        let session = match connection.state {
            State::Open { session }
            | State::Kept { session }
            | State::Opening { session, .. }
            | State::Asking { session, .. } => session,
            State::New | State::Between => 0,
        };
        // A newer connection of the session is not touched.
        if self.by_session.get(&session) == Some(&client) {
            self.by_session.remove(&session);
        }
        self.watches.drop_client(client);
        true
    }

    /// A session was heard from, by a request of this connection.
    pub(crate) fn touch(&mut self, now: Instant, client: ClientId) {
        let Some(connection) = self.clients.get(&client) else { return };
        let Some(session) = connection.session() else { return };
        let timeout_ms = connection.timeout_ms;
        match &mut self.role {
            Role::Leader(leading) => leading.tracker.touch(now, session, timeout_ms, None),
            Role::Learner { .. } => self.sessions.touch(session, timeout_ms),
            Role::Idle => {}
        }
    }
}
