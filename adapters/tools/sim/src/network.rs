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
//! silent. Messages are lost only with their connection, as on a real one, and at any byte of it; what was
//! on its way may come when a newer connection is in use. Every message is encoded, carried as bytes (in
//! one piece or two) and decoded by the core's codec; what that refuses ends the connection, as the driver
//! does it.
//!
//! | room | |
//! |---|---|
//! | `connection` | two ends, and what is under way between them |
//! | `dials` | how they come to be |
//! | `links` | what servers do with them |
//! | `delivery` | what becomes of bytes |
//! | `damage` | what breaks, lingers, or arrives damaged |
//! | `paths` | machines that come and go, ways that are blocked |
//! | `dialect` | what older versions say |
//! | `queue` | what they have forwarded, and what is at its head |
//! | `non_members` | who is no server, and says something all the same |
//!
//! Nothing here knows what a message means, but for what its own version of the protocol has to leave out.

mod config;
mod connection;
mod damage;
mod delivery;
mod dialect;
mod dials;
mod links;
mod non_members;
mod paths;
mod queue;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Event, Plane};
use quorate_core::rng::Rng;
use quorate_core::time::Instant;
use quorate_core::zxid::Epoch;

use crate::application::State as Snapshot;
use crate::ensemble::Ensemble;
use crate::faults::{Coverage, FaultClass};
pub use crate::network::config::NetworkConfig;
pub(crate) use crate::network::connection::Piece;
use crate::network::connection::{Connection, State};
pub use crate::network::dialect::Dialect;
pub(crate) use crate::network::non_members::Visit;

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

/// Something that the network will do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NetworkEvent {
    /// A SYN reaches the other machine, or does not.
    Syn { conn: u64, attempt: usize },
    /// The dialler hears that it was accepted.
    Established { conn: u64 },
    /// The dialler hears that the port is closed.
    Refused { conn: u64 },
    /// The dialler has waited long enough.
    DialTimeout { conn: u64 },
    /// Bytes may have come to this end.
    Arrive { conn: u64, to: usize },
    /// The notification that this end was writing is written.
    Written { conn: u64, from: usize },
    /// This end learns that its connection is over.
    Down { conn: u64, side: usize, cause: Cause },
    /// A non-member that has said nothing by now is hung up.
    Patience { conn: u64 },
    /// If the connection has been stalled all the time, both ends give it up.
    StallCheck { conn: u64, from: usize, since: u64 },
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
    /// Servers whose quorum port accepts nothing, and whether it refuses: there is no socket, or one that no task
    /// takes connections from.
    deaf: BTreeMap<ServerId, bool>,
    /// Servers whose certificates are refused by all others.
    distrusted: BTreeSet<ServerId>,
    /// What a server says of itself instead of its address.
    advertised: BTreeMap<ServerId, HostPort>,
    /// Who speaks as older versions do.
    pub(crate) old: BTreeMap<ServerId, Dialect>,
    /// Those of them that were servers of ours before: peers probe them until they are told.
    pub(crate) were_ours: BTreeSet<ServerId>,
    /// Whose quorum port is closed while its server runs.
    shut: BTreeSet<ServerId>,
    /// Servers elect by generation: what they say on the election port are messages.
    pub(crate) messages: bool,
    /// What is to be entered into the agenda.
    pub(crate) scheduled: Vec<(Instant, NetworkEvent)>,
    /// What servers are to be told.
    pub(crate) arrivals: VecDeque<(ServerId, Event)>,
    /// Snapshots that have come whole; to be handed over after the arrivals.
    pub(crate) snapshots: VecDeque<(ServerId, LinkId, Snapshot)>,
    /// Where UPTODATE is to be said behind what else a step says.
    welcoming: Vec<LinkId>,
    /// What must not happen and did.
    pub(crate) problem: Option<String>,
    /// What a server of ZooKeeper was told that it cannot pair with what it has forwarded.
    pub(crate) unpaired: Option<(ServerId, String)>,
    /// What servers pass on is what clients of ZooKeeper ask for.
    pub(crate) is_zookeepers: bool,
    /// What a server of ours has passed on to one of ZooKeeper that ends of it.
    pub(crate) poisoned: Option<(ServerId, String)>,
    /// The epochs in which a server of ZooKeeper makes the transactions.
    pub(crate) by_java: BTreeSet<Epoch>,
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
            deaf: BTreeMap::new(),
            distrusted: BTreeSet::new(),
            advertised: BTreeMap::new(),
            old: BTreeMap::new(),
            were_ours: BTreeSet::new(),
            shut: BTreeSet::new(),
            messages: false,
            scheduled: Vec::new(),
            arrivals: VecDeque::new(),
            snapshots: VecDeque::new(),
            welcoming: Vec::new(),
            problem: None,
            unpaired: None,
            is_zookeepers: false,
            poisoned: None,
            by_java: BTreeSet::new(),
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

    /// Whether nothing that a server has said is still to be heard.
    pub(crate) fn is_forgotten(&self, id: ServerId) -> bool {
        !self.connections.values().any(|c| c.ends.iter().any(|end| end.server == id))
    }

    /// Whether both ends of a connection know of it, live, and can reach each other.
    pub(crate) fn lives(&self, link: LinkId) -> bool {
        let lives = |c: &Connection| {
            let (a, b) = c.servers(DIALLER);
            let known = c.is_open() && c.ends.iter().all(|end| end.up);
            known && !c.broken && !self.is_blocked(a, b) && !self.is_blocked(b, a)
        };
        self.connections.get(&unpack(link).0).is_some_and(lives)
    }

    /// Which server is at the other end of a link, if the connection is still there.
    pub(crate) fn at_the_other_end(&self, link: LinkId) -> Option<ServerId> {
        let (conn, side) = unpack(link);
        self.connections.get(&conn).map(|connection| connection.servers(side).1)
    }

    /// How many connections there are in any state.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Opens the quorum port of a server, or closes it.
    pub(crate) fn listens(&mut self, id: ServerId, listens: bool) {
        if listens {
            self.shut.remove(&id);
        } else {
            self.shut.insert(id);
        }
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

    /// Lets the quorum port of a server accept nothing, by refusing or by silence, or again.
    pub(crate) fn deafen(&mut self, id: ServerId, refuses: Option<bool>) {
        match refuses {
            Some(refuses) => drop(self.deaf.insert(id, refuses)),
            None => drop(self.deaf.remove(&id)),
        }
    }

    /// Lets all others refuse the certificate of a server on connections to come, or no longer.
    pub(crate) fn distrust(&mut self, id: ServerId, on: bool) {
        if on {
            self.distrusted.insert(id);
        } else {
            self.distrusted.remove(&id);
        }
    }

    /// How many connections were dialled so far.
    pub(crate) const fn dials(&self) -> u64 {
        self.issued
    }

    /// Whether the quorum port of a server accepts nothing.
    pub(crate) fn is_deaf(&self, id: ServerId) -> bool {
        self.deaf.contains_key(&id)
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
            NetworkEvent::Patience { conn } => self.on_patience(now, conn),
            NetworkEvent::StallCheck { conn, from, since } => {
                self.on_stall_check(now, conn, from, since);
            }
        }
    }
    // ---- small things ----

    fn host(&self, id: ServerId) -> Host {
        self.hosts.get(&id).copied().unwrap_or_default()
    }

    fn which(&self, concerned: impl Fn(&Connection) -> bool) -> Vec<u64> {
        self.connections.iter().filter(|(_, c)| concerned(c)).map(|(conn, _)| *conn).collect()
    }

    /// Forgets a connection of which no server holds an end.
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

/// The link of the same connection at its other end.
pub(crate) fn other_end(link: LinkId) -> LinkId {
    LinkId(link.0 ^ 1)
}

fn unpack(link: LinkId) -> (u64, usize) {
    (link.0 >> 1, usize::from(link.0 & 1 == 1))
}

fn remote(id: ServerId) -> Option<IpAddr> {
    Ensemble::address(id, Plane::Election).host.parse().ok()
}
