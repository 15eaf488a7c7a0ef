//! The modelled store: a leader with the log and the sessions, and servers whose copies lag behind it.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::recipe::{Attempt, Failure, SessionId};

use crate::call::{Node, Op, Reply};

/// One write: this node is so now.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) node: Option<Node>,
}

/// A client's session, as the leader knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    /// On which connection it is.
    pub(super) link: u64,
    pub(super) heard: u64,
}

/// A server: a copy that lags, and the watches that were left with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub(super) applied: usize,
    /// Until when nothing comes through between it and the leader.
    pub(super) cut_until: u64,
    /// Whom it has heard since it told the leader last, and on which connection.
    pub(super) heard: BTreeSet<(SessionId, u64)>,
    pub(super) nodes: BTreeMap<String, Node>,
    /// By name: connection, and the call that left it.
    pub(super) watches: BTreeMap<String, BTreeSet<(u64, Attempt)>>,
}

/// A watch that fires: on which connection, left by which call, and whether the node is gone.
pub(super) type Fired = (u64, Attempt, bool);

/// The store.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) root: bool,
    pub(super) counter: i32,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) log: Vec<Change>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) last_session: i64,
    pub(super) servers: Vec<Server>,
    /// How long a session may be silent, in nanoseconds.
    pub(super) timeout: u64,
    /// Sessions that are over and whose nodes are there still, while the store is late with that.
    pub(super) late: Option<Vec<SessionId>>,
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
    pub(super) fn attach(
        &mut self,
        session: Option<SessionId>,
        link: u64,
        now: u64,
    ) -> Option<SessionId> {
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
    pub(super) fn is_on(&self, session: SessionId, link: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.link == link)
    }

    /// Something of this session has arrived on this connection; whether that is where it is.
    pub(super) fn hear(&mut self, session: SessionId, link: u64, now: u64) -> bool {
        let session = self.sessions.get_mut(&session).filter(|session| session.link == link);
        session.is_some_and(|session| {
            session.heard = now;
            true
        })
    }

    /// Ends the sessions that were silent for too long.
    pub(super) fn expire(&mut self, now: u64) {
        let over = |session: &Session| session.heard + self.timeout <= now;
        let over: Vec<_> =
            self.sessions.iter().filter(|(_, s)| over(s)).map(|(id, _)| *id).collect();
        for session in over {
            self.end(session);
        }
    }

    /// Ends a session, and with it what is its.
    pub(super) fn end(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        match &mut self.late {
            Some(late) => late.push(session),
            None => self.remove_all_of(session),
        }
    }

    /// What is of sessions that are over stays, or goes at last.
    pub(super) fn linger(&mut self, on: bool) {
        let over = if on { None } else { self.late.take() };
        self.late = on.then(|| self.late.take().unwrap_or_default());
        over.into_iter().flatten().for_each(|session| self.remove_all_of(session));
    }

    pub(super) fn remove_all_of(&mut self, session: SessionId) {
        let its = self.nodes.iter().filter(|(_, node)| node.owner == Some(session));
        let its: Vec<_> = its.map(|(name, _)| name.clone()).collect();
        for name in its {
            self.change(name, None);
        }
    }

    pub(super) fn change(&mut self, name: String, node: Option<Node>) {
        match &node {
            Some(node) => self.nodes.insert(name.clone(), node.clone()),
            None => self.nodes.remove(&name),
        };
        self.log.push(Change { name, node });
    }

    /// Does at the leader what is done there; what only reads is answered by a server.
    pub(super) fn write(&mut self, op: &Op) -> Result<Reply, Failure> {
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
    pub(super) fn read(
        &mut self,
        server: usize,
        op: &Op,
        link: u64,
        by: Attempt,
    ) -> Result<Reply, Failure> {
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
    pub(super) fn apply(&mut self, server: usize, end: usize) -> Vec<Fired> {
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
    pub(super) fn forget(&mut self, link: u64) {
        for server in &mut self.servers {
            for watches in server.watches.values_mut() {
                watches.retain(|(on, _)| *on != link);
            }
            server.watches.retain(|_, watches| !watches.is_empty());
        }
    }

    /// Whether a watch was left on this connection, and has not fired.
    pub(super) fn watches_on(&self, link: u64) -> bool {
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
