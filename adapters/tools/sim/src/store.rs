//! A modelled store, for the recipes that elect through one, and the people who use it.
//!
//! ```text
//!   client ── FIFO ──► server ── FIFO ──► leader      writes and `sync`: one order, in the log
//!     ▲                  │ ▲                 │        sessions: who was silent for too long
//!     └── FIFO ──────────┘ └──── lags ───────┘
//!         answers, watches, pongs      reads: what this server has applied by now
//! ```
//!
//! It promises what ZooKeeper does and no more. Writes are linearisable. Reads are not: a server may lag, so
//! that what one client has written another does not see. A client sees its own past: it connects to no
//! server that is behind what it has seen. A watch is told before the state that it was left for, and ends with
//! the connection. A write whose connection has broken may still take effect, until the session is
//! connected elsewhere (*Sessions* and *Consistency Guarantees* in ZooKeeper's Programmer's Guide). A server that
//! is cut off from the leader serves what it has for a while, as a follower does for `syncLimit` ticks, and then
//! sends its clients away. Where the [`Plan`] says so, a server tells the leader only now and then whom it has
//! heard, as ZooKeeper's followers do with their answers to its pings: what the leader has confirmed in between,
//! it does not count.
//!
//! [`Election`] has candidates elect through it, with clocks of their own, and accidents from a seed or from a
//! story.

mod candidates;
mod election;

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::recipe::{Attempt, Failure, SessionId};

pub use crate::call::{Node, Op, Reply};
pub use candidates::{Happening, Lease, Offers, Recipe, Wish};
pub use election::{Election, Plan, SYNC_LIMIT, Standing};
pub(crate) use election::{Errand, Mishap, Part, Stand};

/// One write: this node is so now.
#[derive(Clone, Debug)]
struct Change {
    name: String,
    node: Option<Node>,
}

/// A client's session, as the leader knows it.
#[derive(Clone, Copy, Debug)]
struct Session {
    /// On which connection it is.
    link: u64,
    heard: u64,
}

/// A server: a copy that lags, and the watches that were left with it.
#[derive(Clone, Debug, Default)]
struct Server {
    applied: usize,
    /// Until when nothing comes through between it and the leader.
    cut_until: u64,
    /// Whom it has heard since it told the leader last, and on which connection.
    heard: BTreeSet<(SessionId, u64)>,
    nodes: BTreeMap<String, Node>,
    /// By name: connection, and the call that left it.
    watches: BTreeMap<String, BTreeSet<(u64, Attempt)>>,
}

/// A watch that fires: on which connection, left by which call, and whether the node is gone.
type Fired = (u64, Attempt, bool);

/// The store.
#[derive(Clone, Debug)]
pub struct Store {
    root: bool,
    counter: i32,
    nodes: BTreeMap<String, Node>,
    log: Vec<Change>,
    sessions: BTreeMap<SessionId, Session>,
    last_session: i64,
    servers: Vec<Server>,
    /// How long a session may be silent, in nanoseconds.
    timeout: u64,
    /// Sessions that are over and whose nodes are there still, while the store is late with that.
    late: Option<Vec<SessionId>>,
}

impl Store {
    /// So many servers, and a counter that begins here.
    pub fn new(servers: usize, counter: i32, timeout: u64) -> Self {
        Self {
            root: false,
            counter,
            nodes: BTreeMap::new(),
            log: Vec::new(),
            sessions: BTreeMap::new(),
            last_session: 0x1000,
            servers: vec![Server::default(); servers],
            timeout,
            late: None,
        }
    }

    /// The nodes, by name, as the last write has left them.
    pub const fn nodes(&self) -> &BTreeMap<String, Node> {
        &self.nodes
    }

    /// Whether a session is alive.
    pub fn is_alive(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// A client connects: its session goes on, or a new one begins; none if it is over.
    fn attach(&mut self, session: Option<SessionId>, link: u64, now: u64) -> Option<SessionId> {
        let id = session.unwrap_or_else(|| {
            self.last_session += 1;
            self.sessions.insert(SessionId(self.last_session), Session { link, heard: now });
            SessionId(self.last_session)
        });
        let session = self.sessions.get_mut(&id)?;
        *session = Session { link, heard: now };
        Some(id)
    }

    /// Whether this is the connection of this session.
    fn is_on(&self, session: SessionId, link: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.link == link)
    }

    /// Something of this session has arrived on this connection; whether that is where it is.
    fn hear(&mut self, session: SessionId, link: u64, now: u64) -> bool {
        let session = self.sessions.get_mut(&session).filter(|session| session.link == link);
        session.is_some_and(|session| {
            session.heard = now;
            true
        })
    }

    /// Ends the sessions that were silent for too long.
    fn expire(&mut self, now: u64) {
        let over = |session: &Session| session.heard + self.timeout <= now;
        let over: Vec<_> =
            self.sessions.iter().filter(|(_, s)| over(s)).map(|(id, _)| *id).collect();
        for session in over {
            self.end(session);
        }
    }

    /// Ends a session, and with it what is its.
    fn end(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        match &mut self.late {
            Some(late) => late.push(session),
            None => self.remove_all_of(session),
        }
    }

    /// What is of sessions that are over stays, or goes at last.
    fn linger(&mut self, on: bool) {
        let over = if on { None } else { self.late.take() };
        self.late = on.then(|| self.late.take().unwrap_or_default());
        over.into_iter().flatten().for_each(|session| self.remove_all_of(session));
    }

    fn remove_all_of(&mut self, session: SessionId) {
        let its = self.nodes.iter().filter(|(_, node)| node.owner == Some(session));
        let its: Vec<_> = its.map(|(name, _)| name.clone()).collect();
        for name in its {
            self.change(name, None);
        }
    }

    fn change(&mut self, name: String, node: Option<Node>) {
        match &node {
            Some(node) => self.nodes.insert(name.clone(), node.clone()),
            None => self.nodes.remove(&name),
        };
        self.log.push(Change { name, node });
    }

    /// Does at the leader what is done there; what only reads is answered by a server.
    fn write(&mut self, op: &Op) -> Result<Reply, Failure> {
        let zxid = self.log.len() as u64 + 1;
        match op {
            Op::Root => self.root = true,
            Op::Create { name, numbered, owner, data } => {
                if !self.root && *numbered {
                    return Err(Failure::Absent);
                }
                if owner.is_some_and(|owner| !self.is_alive(owner)) {
                    return Err(Failure::Expired);
                }
                let mut name = name.clone();
                if *numbered {
                    name.push_str(&format!("{:010}", self.counter));
                    self.counter = self.counter.wrapping_add(1);
                } else if self.nodes.contains_key(&name) {
                    return Err(Failure::Exists);
                }
                let node = Node { data: data.clone(), owner: *owner, created: zxid, version: zxid };
                self.change(name.clone(), Some(node.clone()));
                return Ok(Reply::Made(name, node));
            }
            Op::Write { name, data, version } => {
                let node = self.nodes.get(name).cloned().ok_or(Failure::Absent)?;
                if node.version != *version {
                    return Err(Failure::Conflict);
                }
                let node = Node { data: data.clone(), version: zxid, ..node };
                self.change(name.clone(), Some(node.clone()));
                return Ok(Reply::Made(name.clone(), node));
            }
            Op::Delete { name, version, created } => {
                let node = self.nodes.get(name).ok_or(Failure::Absent)?;
                if created.is_some_and(|created| node.created != created) {
                    return Err(Failure::Absent);
                }
                if version.is_some_and(|version| node.version != version) {
                    return Err(Failure::Conflict);
                }
                self.change(name.clone(), None);
            }
            Op::Read { .. } | Op::List { .. } | Op::Ping => {}
        }
        Ok(Reply::Done)
    }

    /// What one server answers, from what it has applied.
    fn read(&mut self, server: usize, op: &Op, link: u64, by: Attempt) -> Result<Reply, Failure> {
        let server = &mut self.servers[server];
        match op {
            Op::Read { name, watch } => {
                let node = server.nodes.get(name).cloned().ok_or(Failure::Absent)?;
                if *watch {
                    server.watches.entry(name.clone()).or_default().insert((link, by));
                }
                Ok(Reply::Read(node))
            }
            Op::List { .. } if !self.root => Err(Failure::Absent),
            Op::List { .. } => {
                let listed = server.nodes.iter().map(|(name, node)| (name.clone(), node.created));
                Ok(Reply::Listed(listed.collect()))
            }
            Op::Root | Op::Create { .. } | Op::Write { .. } | Op::Delete { .. } | Op::Ping => {
                Ok(Reply::Done)
            }
        }
    }

    /// A server applies the log up to here; tells which watches fire.
    fn apply(&mut self, server: usize, end: usize) -> Vec<Fired> {
        let server = &mut self.servers[server];
        let mut fired = Vec::new();
        for change in self.log.get(server.applied..end).unwrap_or_default() {
            let watches = server.watches.remove(&change.name).unwrap_or_default();
            fired.extend(watches.iter().map(|(link, by)| (*link, *by, change.node.is_none())));
            match &change.node {
                Some(node) => server.nodes.insert(change.name.clone(), node.clone()),
                None => server.nodes.remove(&change.name),
            };
        }
        server.applied = server.applied.max(end);
        fired
    }

    /// A connection has ended, and the watches that were left on it.
    fn forget(&mut self, link: u64) {
        for server in &mut self.servers {
            for watches in server.watches.values_mut() {
                watches.retain(|(on, _)| *on != link);
            }
            server.watches.retain(|_, watches| !watches.is_empty());
        }
    }

    /// Whether a watch was left on this connection, and has not fired.
    fn watches_on(&self, link: u64) -> bool {
        let mut all = self.servers.iter().flat_map(|server| server.watches.values());
        all.any(|watches| watches.iter().any(|(on, _)| *on == link))
    }

    /// How many watches wait, and how many of them on what is not there.
    pub fn watches(&self) -> (usize, usize) {
        let all = self.servers.iter().flat_map(|server| &server.watches);
        all.fold((0, 0), |(waiting, idle), (name, watches)| {
            let gone = if self.nodes.contains_key(name) { 0 } else { watches.len() };
            (waiting + watches.len(), idle + gone)
        })
    }
}
