//! The simulated network: connections that behave as TCP's do, good days and bad.
//!
//! ```text
//!   dial ── SYN ──► refused     the process is down, its machine is up
//!              ├──► lost        partition, black hole, machine down; repeated after 1 s and 3 s, then
//!              │                the dial times out
//!              └──► accepted ── bytes in order, each way by itself ──► closed, reset, silent
//! ```
//!
//! On one connection bytes arrive in order or not at all; between connections anything goes. A
//! connection across a partition stalls: it goes on afterwards, breaks, or both ends give it up as
//! silent. Messages are lost only with their connection, as on a real one, and at any point of it.
//! Every message is encoded, carried as bytes (in one piece or two) and decoded by the core's codec.
//!
//! Nothing here knows what a message means.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, LinkUp, Plane, Unreadable};
use quorate_core::links::Mailbox;
use quorate_core::message::{Introduction, Message, Packet};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::wire;

use crate::application::State as Snapshot;
use crate::ensemble::Ensemble;
use crate::faults::{Coverage, FaultClass};

/// The dialling end of a connection.
const DIALLER: usize = 0;
/// The accepting end.
const ACCEPTOR: usize = 1;
/// How long TCP waits before it repeats a SYN, first and second time.
const SYN_AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// How long what was sent may take to be written after a link was hung up.
const HANGUP_MAX: Duration = Duration::from_millis(200);
/// How often both ends of a snapshot are told that it moves.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// How long a TCP that has sent into the void takes to hear from a machine that came back.
const RETRANSMIT_MAX: Duration = Duration::from_secs(1);

/// How the network behaves. Chances are in 65536ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// The shortest way.
    pub latency_min: Duration,
    /// The longest way on a good day.
    pub latency_max: Duration,
    /// The chance that a message takes much longer.
    pub spike: u64,
    /// How much longer, at most.
    pub spike_max: Duration,
    /// The chance, per message, that the connection breaks around it.
    pub reset: u64,
    /// The chance that a notification arrives twice.
    pub duplicate: u64,
    /// The chance that a message arrives in two pieces.
    pub split: u64,
    /// Whether packets that have come together are read as runs.
    pub runs: bool,
    /// The shortest pause between two pieces of a snapshot.
    pub stream_gap_min: Duration,
    /// The longest. Between two of the log it is a hundredth of that.
    pub stream_gap_max: Duration,
    /// The longest that writing a notification to its socket takes.
    pub write_max: Duration,
    /// When a dial that hears nothing is given up (`cnxTimeout`).
    pub dial_timeout: Duration,
    /// The soonest that an end gives up a connection on which nothing is acknowledged.
    pub silent_min: Duration,
    /// The latest.
    pub silent_max: Duration,
    /// The chance that a connection which carried something across a partition goes on after it.
    pub resume: u64,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            latency_min: Duration::from_micros(100),
            latency_max: Duration::from_millis(2),
            spike: 0,
            spike_max: Duration::from_millis(200),
            reset: 0,
            duplicate: 0,
            split: 0,
            runs: true,
            stream_gap_min: Duration::ZERO,
            stream_gap_max: Duration::from_micros(200),
            write_max: Duration::from_micros(50),
            dial_timeout: Duration::from_secs(5),
            silent_min: Duration::from_secs(1),
            silent_max: Duration::from_secs(8),
            resume: 0x8000,
        }
    }
}

/// Something that the network will do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NetworkEvent {
    /// A SYN reaches the other machine, or does not.
    Syn { conn: u64, attempt: usize },
    /// The dialler hears that it was accepted.
    Established { conn: u64 },
    /// The dialler hears that nobody listens.
    Refused { conn: u64 },
    /// The dialler has waited long enough.
    DialTimeout { conn: u64 },
    /// Bytes may have come to this end.
    Arrive { conn: u64, to: usize },
    /// The notification that this end was writing is written.
    Written { conn: u64, from: usize },
    /// This end learns that its connection is over.
    Down { conn: u64, side: usize, cause: Cause },
    /// If the connection has been stalled all the time, both ends give it up.
    StallCheck { conn: u64, from: usize, since: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    Closed,
}

#[derive(Debug)]
enum Segment {
    Bytes(Bytes),
    End(Cause),
    /// The sender is told when everything before this has been taken over by the other end's system.
    Told(Told),
}

/// What a sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Drained,
    Progress,
    Streamed(Result<(), Unreadable>),
}

/// What the bytes that come to an end are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Messages,
    /// A snapshot, which only the application can delimit.
    Snapshot,
    /// One has come; nobody reads on until it is restored.
    Restoring,
}

/// One end, and what is on the way from it.
#[derive(Debug)]
struct End {
    server: ServerId,
    state: State,
    /// Whether the server knows of the link.
    up: bool,
    /// Whether it was closed by a crash.
    crashed: bool,
    outgoing: VecDeque<(Instant, Segment)>,
    last_ready: Instant,
    mailbox: Mailbox,
    writing: bool,
    stuck: bool,
    incoming: BytesMut,
    reading: Reading,
    progress: Instant,
    /// What the other end has sent, to be compared with what is decoded.
    expected: VecDeque<Message>,
}

impl End {
    fn new(server: ServerId) -> Self {
        Self {
            server,
            state: State::Opening,
            up: false,
            crashed: false,
            outgoing: VecDeque::new(),
            last_ready: Instant::ORIGIN,
            mailbox: Mailbox::default(),
            writing: false,
            stuck: false,
            incoming: BytesMut::new(),
            reading: Reading::Messages,
            progress: Instant::ORIGIN,
            expected: VecDeque::new(),
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.mailbox = Mailbox::default();
        self.incoming.clear();
    }
}

#[derive(Debug)]
struct Connection {
    plane: Plane,
    /// Whom the dialler meant.
    target: ServerId,
    ends: [End; 2],
    /// Whether the path itself is gone; what is sent now is lost.
    broken: bool,
    /// Whether something was sent to a machine without power.
    unanswered: bool,
    introduced: bool,
}

impl Connection {
    fn servers(&self, from: usize) -> (ServerId, ServerId) {
        (self.ends[from].server, self.ends[1 - from].server)
    }

    fn is_open(&self) -> bool {
        self.ends.iter().all(|end| end.state == State::Open)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    powered: bool,
    running: bool,
}

/// All connections between the simulated servers.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) config: NetworkConfig,
    rng: Rng,
    connections: BTreeMap<u64, Connection>,
    issued: u64,
    hosts: BTreeMap<ServerId, Host>,
    /// Directed pairs that cannot be passed, each with the number of its blocking.
    blocked: BTreeMap<(ServerId, ServerId), u64>,
    blockings: u64,
    black_holes: BTreeSet<ServerId>,
    /// What a server says of itself instead of its address.
    advertised: BTreeMap<ServerId, HostPort>,
    /// What is to be entered into the agenda.
    pub(crate) scheduled: Vec<(Instant, NetworkEvent)>,
    /// What servers are to be told.
    pub(crate) arrivals: VecDeque<(ServerId, Event)>,
    /// Snapshots that have come whole; to be handed over after the arrivals.
    pub(crate) snapshots: VecDeque<(ServerId, LinkId, Snapshot)>,
    /// What must not happen and did.
    pub(crate) problem: Option<String>,
    pub(crate) coverage: Coverage,
}

impl Network {
    pub(crate) fn new(config: NetworkConfig, seed: u64) -> Self {
        Self {
            config,
            rng: Rng::new(seed),
            connections: BTreeMap::new(),
            issued: 0,
            hosts: BTreeMap::new(),
            blocked: BTreeMap::new(),
            blockings: 0,
            black_holes: BTreeSet::new(),
            advertised: BTreeMap::new(),
            scheduled: Vec::new(),
            arrivals: VecDeque::new(),
            snapshots: VecDeque::new(),
            problem: None,
            coverage: Coverage::default(),
        }
    }

    /// How many connections on a plane two servers both know of.
    pub(crate) fn links_between(&self, a: ServerId, b: ServerId, plane: Plane) -> usize {
        let between = |c: &&Connection| {
            c.plane == plane && (c.servers(DIALLER) == (a, b) || c.servers(DIALLER) == (b, a))
        };
        let known = |c: &&Connection| c.is_open() && c.ends.iter().all(|end| end.up);
        self.connections.values().filter(between).filter(known).count()
    }

    /// How many connections there are in any state.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn advertise(&mut self, id: ServerId, address: HostPort) {
        self.advertised.insert(id, address);
    }

    /// Lets SYNs to a server vanish, or no longer; what is connected stays so.
    pub(crate) fn black_hole(&mut self, id: ServerId, on: bool) {
        if on {
            self.black_holes.insert(id);
        } else {
            self.black_holes.remove(&id);
        }
    }

    // ---- what servers do ----

    pub(crate) fn dial(
        &mut self,
        now: Instant,
        from: ServerId,
        plane: Plane,
        peer: ServerId,
        addresses: &[HostPort],
    ) {
        self.issued += 1;
        let conn = self.issued;
        let found = addresses.iter().find_map(|address| Ensemble::at(address, plane));
        let at = now + self.latency();
        let connection = Connection {
            plane,
            target: peer,
            ends: [End::new(from), End::new(found.unwrap_or(peer))],
            broken: false,
            unanswered: false,
            introduced: false,
        };
        self.connections.insert(conn, connection);
        if found.is_some() {
            self.schedule(at, NetworkEvent::Syn { conn, attempt: 0 });
            self.schedule(now + self.config.dial_timeout, NetworkEvent::DialTimeout { conn });
        } else {
            self.schedule(at, NetworkEvent::Refused { conn });
        }
    }

    pub(crate) fn send(&mut self, now: Instant, link: LinkId, message: Message) {
        let (conn, from) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[from].state != State::Open {
            return;
        }
        match message {
            Message::Notification(notification) => {
                let end = &mut connection.ends[from];
                if end.mailbox.put(notification) {
                    self.coverage.hit(FaultClass::MailboxReplaced);
                }
                if !end.writing {
                    self.write_newest(now, conn, from);
                }
            }
            Message::Packet(packet) => {
                let mut bytes = BytesMut::new();
                wire::encode_packet(&packet, &mut bytes);
                self.transmit(now, conn, from, bytes.freeze(), each(packet));
            }
        }
    }

    /// Tells the server when what it has sent on a link so far is written.
    pub(crate) fn pace(&mut self, now: Instant, link: LinkId) {
        let (conn, from) = unpack(link);
        if self.connections.get(&conn).is_some_and(|c| c.ends[from].state == State::Open) {
            self.push(now, conn, from, Segment::Told(Told::Drained));
        }
    }

    /// Writes a stream to a link, each piece a while after the one before; then tells the server how it
    /// ended.
    pub(crate) fn stream(
        &mut self,
        now: Instant,
        link: LinkId,
        pieces: Vec<Piece>,
        outcome: Result<(), Unreadable>,
    ) {
        let (conn, from) = unpack(link);
        let range = self.config.stream_gap_max.saturating_sub(self.config.stream_gap_min);
        let gap = self.config.stream_gap_min + self.up_to(range);
        let mut told = now;
        for Piece { bytes, messages, moves } in pieces {
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            let end = &mut connection.ends[from];
            if end.state != State::Open {
                return;
            }
            // The log is read far faster than a state is made into bytes.
            let gap = if moves { gap } else { gap / 100 };
            end.last_ready = end.last_ready.max(now) + gap;
            let ready = end.last_ready;
            self.transmit(now, conn, from, bytes, messages);
            if ready.since(told) >= PROGRESS_EVERY {
                told = ready;
                self.push(now, conn, from, Segment::Told(Told::Progress));
            }
        }
        if self.connections.get(&conn).is_some_and(|c| c.ends[from].state == State::Open) {
            self.push(now, conn, from, Segment::Told(Told::Streamed(outcome)));
        }
    }

    /// A snapshot is restored: what follows it on its link is read.
    pub(crate) fn read_on(&mut self, link: LinkId) {
        let (conn, to) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[to].state == State::Open {
            connection.ends[to].reading = Reading::Messages;
            self.decode(conn, to);
        }
    }

    /// Closes a link in order: what was sent on it before still arrives, unless that takes too long.
    pub(crate) fn hang_up(&mut self, now: Instant, link: LinkId) {
        let (conn, from) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        if end.state != State::Open {
            return;
        }
        let last = now + HANGUP_MAX;
        end.outgoing.retain(|(ready, _)| *ready <= last);
        end.last_ready = end.last_ready.min(last);
        if !connection.ends[from].mailbox.is_empty() {
            self.write_newest(now, conn, from);
        }
        self.push(now, conn, from, Segment::End(Cause::Closed));
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.ends[from].close();
        }
        self.sweep(conn);
    }

    fn write_newest(&mut self, now: Instant, conn: u64, from: usize) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        let Some(notification) = end.mailbox.take() else { return };
        end.writing = true;
        let mut bytes = BytesMut::new();
        wire::encode_notification(&notification, &mut bytes);
        let message = vec![Message::Notification(notification)];
        self.transmit(now, conn, from, bytes.freeze(), message);
        let at = now + self.up_to(self.config.write_max);
        self.schedule(at, NetworkEvent::Written { conn, from });
    }

    // ---- what happens to bytes ----

    fn transmit(
        &mut self,
        now: Instant,
        conn: u64,
        from: usize,
        mut bytes: Bytes,
        messages: Vec<Message>,
    ) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.broken {
            self.coverage.hit(FaultClass::MessageLost);
            return;
        }
        connection.ends[1 - from].expected.extend(messages);
        if bytes.len() > 1 && self.chance(self.config.split) {
            let at = 1 + self.pick(bytes.len() - 1);
            let head = bytes.split_to(at);
            self.coverage.hit(FaultClass::SplitMessage);
            self.push(now, conn, from, Segment::Bytes(head));
        }
        self.push(now, conn, from, Segment::Bytes(bytes));
        if self.chance(self.config.reset) {
            self.break_connection(now, conn);
        }
    }

    fn push(&mut self, now: Instant, conn: u64, from: usize, segment: Segment) {
        let ready = now + self.latency();
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        let ready = ready.max(end.last_ready + Duration::from_nanos(1));
        end.last_ready = ready;
        end.outgoing.push_back((ready, segment));
        self.schedule(ready, NetworkEvent::Arrive { conn, to: 1 - from });
    }

    /// Breaks a connection at some point of what is under way on it.
    fn break_connection(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if connection.broken || !connection.is_open() {
            return;
        }
        self.coverage.hit(FaultClass::LinkReset);
        for from in [DIALLER, ACCEPTOR] {
            let under_way = self.connections.get(&conn).map_or(0, |c| c.ends[from].outgoing.len());
            let kept = self.pick(under_way + 1);
            if let Some(connection) = self.connections.get_mut(&conn) {
                connection.broken = true;
                let gone = connection.ends[from].outgoing.drain(kept..);
                let streamed = |(_, segment): &(_, Segment)| {
                    matches!(segment, Segment::Told(Told::Streamed(_)))
                };
                if gone.filter(streamed).count() > 0 {
                    self.coverage.hit(FaultClass::StreamCut);
                }
            }
            if kept < under_way {
                self.coverage.hit(FaultClass::MessageLost);
            }
            self.push(now, conn, from, Segment::End(Cause::Reset));
        }
    }

    /// Breaks every connection between two servers.
    pub(crate) fn break_between(&mut self, now: Instant, a: ServerId, b: ServerId) {
        let concerned =
            |c: &Connection| matches!(c.servers(DIALLER), p if p == (a, b) || p == (b, a));
        for conn in self.which(concerned) {
            self.break_connection(now, conn);
        }
    }

    /// Breaks one connection somewhere.
    pub(crate) fn break_any(&mut self, now: Instant) {
        let open = self.which(Connection::is_open);
        if !open.is_empty() {
            let at = self.pick(open.len());
            self.break_connection(now, open[at]);
        }
    }

    pub(crate) fn handle(&mut self, now: Instant, event: NetworkEvent) {
        match event {
            NetworkEvent::Syn { conn, attempt } => self.on_syn(now, conn, attempt),
            NetworkEvent::Established { conn } => self.on_established(now, conn),
            NetworkEvent::Refused { conn } => {
                self.coverage.hit(FaultClass::DialRefused);
                self.fail_dial(conn);
            }
            NetworkEvent::DialTimeout { conn } => self.on_dial_timeout(now, conn),
            NetworkEvent::Arrive { conn, to } => self.on_arrive(now, conn, to),
            NetworkEvent::Written { conn, from } => self.on_written(now, conn, from),
            NetworkEvent::Down { conn, side, cause } => self.on_down(conn, side, cause),
            NetworkEvent::StallCheck { conn, from, since } => {
                self.on_stall_check(now, conn, from, since);
            }
        }
    }

    fn on_syn(&mut self, now: Instant, conn: u64, attempt: usize) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        let (from, to) = connection.servers(DIALLER);
        let host = self.host(to);
        let passes = !self.is_blocked(from, to) && !self.is_blocked(to, from);
        if !passes || !host.powered || self.black_holes.contains(&to) {
            if let Some(wait) = SYN_AGAIN.get(attempt) {
                let again = NetworkEvent::Syn { conn, attempt: attempt + 1 };
                self.schedule(now + *wait, again);
            }
            return;
        }
        let at = now + self.latency();
        if !host.running {
            self.schedule(at, NetworkEvent::Refused { conn });
            return;
        }
        if attempt > 0 {
            self.coverage.hit(FaultClass::DialRetried);
        }
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[ACCEPTOR];
        end.state = State::Open;
        // Whatever the acceptor does next, the dialler first hears that it was accepted.
        end.last_ready = at;
        if connection.plane == Plane::Quorum {
            end.up = true;
            let up = LinkUp {
                link: pack(conn, ACCEPTOR),
                plane: Plane::Quorum,
                dialled: false,
                peer: None,
                advertised: None,
                remote: remote(from),
            };
            self.arrivals.push_back((to, Event::LinkUp(up)));
        }
        self.schedule(at, NetworkEvent::Established { conn });
    }

    fn on_established(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        if connection.ends[ACCEPTOR].crashed {
            return self.fail_dial(conn);
        }
        let (from, to) = connection.servers(DIALLER);
        connection.ends[DIALLER].state = State::Open;
        connection.ends[DIALLER].up = true;
        let (plane, target) = (connection.plane, connection.target);
        if plane == Plane::Election {
            let own = Ensemble::address(from, Plane::Election);
            let address = self.advertised.get(&from).cloned().unwrap_or(own);
            let introduction = Introduction { id: from, addresses: vec![address] };
            let bytes = wire::encode_introduction(&introduction);
            self.transmit(now, conn, DIALLER, bytes, Vec::new());
        }
        let up = LinkUp {
            link: pack(conn, DIALLER),
            plane,
            dialled: true,
            peer: Some(target),
            advertised: None,
            remote: remote(to),
        };
        self.arrivals.push_back((from, Event::LinkUp(up)));
    }

    fn on_dial_timeout(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        self.coverage.hit(FaultClass::DialTimedOut);
        if connection.ends[ACCEPTOR].state == State::Open {
            self.push(now, conn, DIALLER, Segment::End(Cause::Reset));
        }
        self.fail_dial(conn);
    }

    fn fail_dial(&mut self, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        connection.ends[DIALLER].close();
        let failed = Event::DialFailed { plane: connection.plane, peer: connection.target };
        self.arrivals.push_back((connection.ends[DIALLER].server, failed));
        self.sweep(conn);
    }

    fn on_arrive(&mut self, now: Instant, conn: u64, to: usize) {
        let from = 1 - to;
        loop {
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            let (sender, receiver) = connection.servers(from);
            let due = connection.ends[from].outgoing.front().is_some_and(|(at, _)| *at <= now);
            if !due || self.blocked.contains_key(&(sender, receiver)) {
                return;
            }
            let Some((_, segment)) = connection.ends[from].outgoing.pop_front() else { return };
            if !self.hosts.get(&receiver).is_some_and(|host| host.powered) {
                connection.unanswered = true;
                continue;
            }
            match segment {
                Segment::Bytes(bytes) if connection.ends[to].state == State::Open => {
                    let end = &mut connection.ends[to];
                    end.incoming.extend_from_slice(&bytes);
                    if end.reading == Reading::Snapshot && now.since(end.progress) >= PROGRESS_EVERY
                    {
                        end.progress = now;
                        self.arrivals.push_back((receiver, Event::Progress(pack(conn, to))));
                    }
                    self.decode(conn, to);
                }
                Segment::Told(told) => {
                    let open = connection.ends.iter().all(|end| end.state == State::Open);
                    let link = pack(conn, from);
                    let event = match told {
                        Told::Drained => Event::Drained(link),
                        Told::Progress => Event::Progress(link),
                        Told::Streamed(outcome) => Event::Streamed { link, outcome },
                    };
                    if open && connection.ends[from].up {
                        self.arrivals.push_back((sender, event));
                    }
                }
                Segment::Bytes(_) => {
                    if connection.ends[to].crashed {
                        self.coverage.hit(FaultClass::HalfOpen);
                    }
                    let at = now + self.latency();
                    self.schedule(at, NetworkEvent::Down { conn, side: from, cause: Cause::Reset });
                }
                Segment::End(cause) => self.on_down(conn, to, cause),
            }
        }
    }

    fn on_written(&mut self, now: Instant, conn: u64, from: usize) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let stalled = self.blocked.contains_key(&connection.servers(from));
        let end = &mut connection.ends[from];
        if stalled {
            end.stuck = true;
            return;
        }
        end.writing = false;
        if end.state == State::Open && !end.mailbox.is_empty() {
            self.write_newest(now, conn, from);
        }
    }

    fn on_down(&mut self, conn: u64, side: usize, cause: Cause) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[side];
        if end.state == State::Open {
            end.close();
            if end.up {
                let down = Event::LinkDown { link: pack(conn, side), cause };
                self.arrivals.push_back((end.server, down));
            }
        }
        self.sweep(conn);
    }

    fn on_stall_check(&mut self, now: Instant, conn: u64, from: usize, since: u64) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if self.blocked.get(&connection.servers(from)) != Some(&since) || !connection.is_open() {
            return;
        }
        self.coverage.hit(FaultClass::StallSilent);
        for side in [DIALLER, ACCEPTOR] {
            let at = now + self.up_to(Duration::from_millis(500));
            self.schedule(at, NetworkEvent::Down { conn, side, cause: Cause::Silent });
        }
    }

    /// Decodes what has come to an end, and compares it with what was sent.
    fn decode(&mut self, conn: u64, to: usize) {
        let (duplicate, runs) = (self.config.duplicate, self.config.runs);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let (receiver, sender) = connection.servers(to);
        let (plane, link) = (connection.plane, pack(conn, to));
        let end = &mut connection.ends[to];
        if plane == Plane::Election && to == ACCEPTOR && !connection.introduced {
            match wire::decode_introduction(&mut end.incoming) {
                Ok(None) => return,
                Ok(Some(Introduction { id, addresses })) => {
                    connection.introduced = true;
                    end.up = true;
                    let up = LinkUp {
                        link,
                        plane,
                        dialled: false,
                        peer: Some(id),
                        advertised: addresses.into_iter().next(),
                        remote: remote(sender),
                    };
                    self.arrivals.push_back((receiver, Event::LinkUp(up)));
                }
                Err(error) => {
                    self.problem = Some(format!("the introduction of {sender}: {error}"));
                    return;
                }
            }
        }
        loop {
            match end.reading {
                Reading::Messages => {}
                Reading::Restoring => return,
                Reading::Snapshot => {
                    match Snapshot::decode(&mut end.incoming) {
                        Ok(Some(state)) => {
                            end.reading = Reading::Restoring;
                            self.snapshots.push_back((receiver, link, state));
                        }
                        Ok(None) => {}
                        Err(error) => self.problem = Some(format!("from {sender}: {error}")),
                    }
                    return;
                }
            }
            let decoded = match plane {
                Plane::Election => {
                    wire::take_notification(&mut end.incoming).map(|n| n.map(Message::Notification))
                }
                Plane::Quorum if runs => {
                    wire::take_packet(&mut end.incoming).map(|p| p.map(Message::Packet))
                }
                Plane::Quorum => {
                    wire::decode_packet(&mut end.incoming).map(|p| p.map(Message::Packet))
                }
            };
            let message = match decoded {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(error) => {
                    self.problem = Some(format!("a message of {sender}: {error}"));
                    return;
                }
            };
            let parts = match &message {
                Message::Packet(packet) => each(packet.clone()),
                Message::Notification(_) => vec![message.clone()],
            };
            for part in parts {
                let sent = end.expected.pop_front();
                if sent.as_ref() != Some(&part) {
                    self.problem = Some(format!("{sender} sent {sent:?}, arrived is {part:?}"));
                    return;
                }
            }
            if let Message::Packet(Packet::Snap(_)) = message {
                end.reading = Reading::Snapshot;
            }
            let twice = plane == Plane::Election && hit(&mut self.rng, duplicate);
            if twice {
                self.coverage.hit(FaultClass::DuplicateNotification);
                let again = Event::Received { link, message: message.clone() };
                self.arrivals.push_back((receiver, again));
            }
            self.arrivals.push_back((receiver, Event::Received { link, message }));
        }
    }

    // ---- what happens to machines and paths ----

    /// A server's process begins; its machine has power.
    pub(crate) fn host_up(&mut self, now: Instant, id: ServerId) {
        self.hosts.insert(id, Host { powered: true, running: true });
        for conn in self.which(|c| c.unanswered) {
            let Some(connection) = self.connections.get(&conn) else { continue };
            for side in [DIALLER, ACCEPTOR] {
                if connection.ends[1 - side].server == id && connection.ends[1 - side].crashed {
                    let at = now + up_to(&mut self.rng, RETRANSMIT_MAX);
                    let down = NetworkEvent::Down { conn, side, cause: Cause::Reset };
                    self.scheduled.push((at, down));
                }
            }
        }
    }

    /// A server's process ends, or its machine with it.
    pub(crate) fn host_down(&mut self, now: Instant, id: ServerId, power: bool) {
        self.hosts.insert(id, Host { powered: !power, running: false });
        for conn in self.which(|c| c.ends.iter().any(|end| end.server == id)) {
            for side in [DIALLER, ACCEPTOR] {
                let Some(connection) = self.connections.get_mut(&conn) else { continue };
                let own = connection.ends[side].server == id;
                let begun = side == DIALLER || connection.ends[side].state == State::Open;
                if !own || !begun || connection.ends[side].state == State::Closed {
                    continue;
                }
                connection.ends[side].close();
                connection.ends[side].crashed = true;
                let other = &mut connection.ends[1 - side];
                if side == DIALLER && other.state == State::Opening {
                    other.close();
                }
                if power {
                    let wait = self.silence();
                    let cause = Cause::Silent;
                    let down = NetworkEvent::Down { conn, side: 1 - side, cause };
                    self.schedule(now + wait, down);
                } else {
                    let cause = if self.chance(0x8000) { Cause::Closed } else { Cause::Reset };
                    self.push(now, conn, side, Segment::End(cause));
                }
            }
            self.sweep(conn);
        }
    }

    pub(crate) fn is_blocked(&self, from: ServerId, to: ServerId) -> bool {
        self.blocked.contains_key(&(from, to))
    }

    /// Nothing passes from one server to another any more.
    pub(crate) fn block(&mut self, now: Instant, from: ServerId, to: ServerId) {
        if from == to || self.is_blocked(from, to) {
            return;
        }
        self.blockings += 1;
        let since = self.blockings;
        self.blocked.insert((from, to), since);
        let opposite = self.is_blocked(to, from);
        self.coverage.hit(if opposite {
            FaultClass::Partition
        } else {
            FaultClass::OneWayPartition
        });
        for conn in self.which(Connection::is_open) {
            for side in [DIALLER, ACCEPTOR] {
                if self.connections.get(&conn).is_some_and(|c| c.servers(side) == (from, to)) {
                    let at = now + self.silence();
                    self.schedule(at, NetworkEvent::StallCheck { conn, from: side, since });
                }
            }
        }
    }

    /// The way is free again: stalled connections go on or break.
    pub(crate) fn unblock(&mut self, now: Instant, from: ServerId, to: ServerId) {
        if self.blocked.remove(&(from, to)).is_none() {
            return;
        }
        for conn in self.which(|c| c.ends.iter().any(|end| end.server == from)) {
            for side in [DIALLER, ACCEPTOR] {
                let concerned = |c: &Connection| c.servers(side) == (from, to);
                if self.connections.get(&conn).is_some_and(concerned) {
                    self.resume(now, conn, side);
                }
            }
        }
    }

    /// Lets what is stalled on one direction of a connection go on, or breaks the connection.
    fn resume(&mut self, now: Instant, conn: u64, from: usize) {
        let first = now + self.latency();
        let goes_on = self.chance(self.config.resume);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let open = connection.is_open() && !connection.broken;
        let end = &mut connection.ends[from];
        let stalled = end.outgoing.front().is_some_and(|(at, _)| *at <= now) || end.stuck;
        if !stalled {
            return;
        }
        let mut ready = first;
        let mut wakes = Vec::new();
        for (at, _) in &mut end.outgoing {
            *at = ready.max(*at);
            ready = *at + Duration::from_nanos(1);
            wakes.push(*at);
        }
        end.last_ready = end.last_ready.max(ready);
        if std::mem::take(&mut end.stuck) {
            self.scheduled.push((first, NetworkEvent::Written { conn, from }));
        }
        for at in wakes {
            self.scheduled.push((at, NetworkEvent::Arrive { conn, to: 1 - from }));
        }
        if goes_on || !open {
            self.coverage.hit(FaultClass::StallResumed);
        } else {
            self.break_connection(now, conn);
        }
    }

    // ---- small things ----

    fn host(&self, id: ServerId) -> Host {
        self.hosts.get(&id).copied().unwrap_or_default()
    }

    fn which(&self, concerned: impl Fn(&Connection) -> bool) -> Vec<u64> {
        self.connections.iter().filter(|(_, c)| concerned(c)).map(|(conn, _)| *conn).collect()
    }

    /// Forgets a connection of which nobody holds an end.
    fn sweep(&mut self, conn: u64) {
        let over = |c: &Connection| match (c.ends[DIALLER].state, c.ends[ACCEPTOR].state) {
            (State::Closed, State::Closed | State::Opening) => true,
            (State::Closed | State::Opening | State::Open, _) => false,
        };
        if self.connections.get(&conn).is_some_and(over) {
            self.connections.remove(&conn);
        }
    }

    fn schedule(&mut self, at: Instant, event: NetworkEvent) {
        self.scheduled.push((at, event));
    }

    fn chance(&mut self, of_65536: u64) -> bool {
        hit(&mut self.rng, of_65536)
    }

    fn pick(&mut self, count: usize) -> usize {
        usize::try_from(self.rng.below(count as u64)).unwrap_or(0)
    }

    fn up_to(&mut self, longest: Duration) -> Duration {
        up_to(&mut self.rng, longest)
    }

    fn latency(&mut self) -> Duration {
        let range = self.config.latency_max.saturating_sub(self.config.latency_min);
        let usual = self.config.latency_min + self.up_to(range);
        if !self.chance(self.config.spike) {
            return usual;
        }
        self.coverage.hit(FaultClass::DelaySpike);
        usual + self.up_to(self.config.spike_max)
    }

    fn silence(&mut self) -> Duration {
        let range = self.config.silent_max.saturating_sub(self.config.silent_min);
        self.config.silent_min + self.up_to(range)
    }
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    /// The messages that begin in it.
    pub(crate) messages: Vec<Message>,
    /// Whether it is a part of a snapshot.
    pub(crate) moves: bool,
}

impl Piece {
    /// A packet.
    pub(crate) fn packet(packet: Packet) -> Self {
        let mut bytes = BytesMut::new();
        wire::encode_packet(&packet, &mut bytes);
        Self { bytes: bytes.freeze(), messages: each(packet), moves: false }
    }
}

/// The packets that the other end may read one by one.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others are one each")]
fn each(packet: Packet) -> Vec<Message> {
    match packet {
        Packet::Acks(run) => run.zxids().map(|z| Message::Packet(Packet::Ack(z))).collect(),
        Packet::Commits(run) => run.zxids().map(|z| Message::Packet(Packet::Commit(z))).collect(),
        Packet::Proposals(txns) => {
            txns.iter().map(|txn| Message::Packet(Packet::Proposal(txn.clone()))).collect()
        }
        packet => vec![Message::Packet(packet)],
    }
}

/// True with a chance in 65536ths; draws nothing for a chance of none.
pub(crate) fn hit(rng: &mut Rng, of_65536: u64) -> bool {
    of_65536 > 0 && rng.below(0x1_0000) < of_65536
}

/// A duration from zero to `longest`.
pub(crate) fn up_to(rng: &mut Rng, longest: Duration) -> Duration {
    let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX - 1);
    Duration::from_nanos(rng.below(nanos + 1))
}

fn pack(conn: u64, side: usize) -> LinkId {
    LinkId(conn << 1 | side as u64)
}

fn unpack(link: LinkId) -> (u64, usize) {
    (link.0 >> 1, usize::from(link.0 & 1 == 1))
}

fn remote(id: ServerId) -> Option<IpAddr> {
    Ensemble::address(id, Plane::Election).host.parse().ok()
}
