//! Words whose answers may be long, told in portions: with a million watches or sessions no step takes longer for them.
//!
//! ```text
//!   word ──► a portion ──► Tick ──► a portion ──► Tick ──► … ──► all is told: closed
//!                 └── much is unwritten ──► Written ──┘
//! ```
//!
//! What is there from the first portion to the last is told once; what comes, goes or moves meanwhile may be told or not.
//! ZooKeeper tells it as of one moment, and everything else waits that long (CVE-2017-5637).

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::Write as _;
use core::ops::Bound::{Excluded, Unbounded};

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close};
use quorate_core::time::Instant;

use crate::connection::Connection;
use crate::portion::{Expiry, Next, Rest, Sets, Watch};
use crate::service::{Role, Service, Step};
use crate::words;

impl Service {
    /// Time has passed: who waits for more is told more, one at a time.
    pub(crate) fn tell_on(&mut self, step: &mut Step<'_>) {
        while let Some(client) = self.telling.pop_front() {
            let connection = self.clients.get_mut(&client);
            if let Some(next) = connection.and_then(|connection| connection.telling.take()) {
                return self.tell_portion(step, client, *next);
            }
        }
    }

    /// What was told is written, or some of it.
    pub(crate) fn may_be_told_on(&mut self, client: ClientId) {
        let waits = |connection: &Connection| connection.telling.is_some();
        if self.clients.get(&client).is_some_and(|c| waits(c) && !c.is_held_back()) {
            self.telling.push_back(client);
        }
    }

    /// Tells some of an answer; all of it, if it is short.
    pub(crate) fn tell_portion(&mut self, step: &mut Step<'_>, client: ClientId, next: Next) {
        let (mut text, mut next, mut entries) = (String::new(), Some(next), 0);
        while entries < ENTRIES_MAX && text.len() < BYTES_MAX {
            let Some(entry) = next else { break };
            next = self.tell_one(step, entry, &mut text);
            entries += 1;
        }
        if !text.is_empty() {
            self.send(step.out, client, Bytes::from(text));
        }
        let Some(next) = next else {
            return self.close(step.out, client, Close::AfterWriting);
        };
        let Some(connection) = self.clients.get_mut(&client) else { return };
        connection.telling = Some(Box::new(next));
        if !connection.is_held_back() {
            self.telling.push_back(client);
        }
    }

    /// Tells an entry; returns what is next, if anything is.
    fn tell_one(&self, step: &Step<'_>, entry: Next, text: &mut String) -> Option<Next> {
        match entry {
            Next::Connections => Some(Next::Connection { behind: None, whole: true }),
            Next::Status => {
                text.push_str(&words::head());
                text.push_str("Clients:\n");
                Some(Next::Connection { behind: None, whole: false })
            }
            Next::Connection { behind, whole } => self.connection(step, behind, whole, text),
            Next::Watch(entry) => self.tell_watch(entry, text).map(Next::Watch),
            Next::Dump => {
                text.push_str("SessionTracker dump:\n");
                Some(self.sessions_of_dump(step, text))
            }
            Next::Expiry(entry) => Some(match self.tell_expiry(step, entry, text) {
                Some(next) => Next::Expiry(next),
                None => Next::Rest(self.owners_of_dump(step, text)),
            }),
            Next::Rest(entry) => self.tell_rest(step, entry, text).map(Next::Rest),
        }
    }

    fn connection(
        &self,
        step: &Step<'_>,
        behind: Option<ClientId>,
        whole: bool,
        text: &mut String,
    ) -> Option<Next> {
        if let Some((client, connection)) = self.client_behind(behind) {
            words::line_of(connection, whole, text);
            return Some(Next::Connection { behind: Some(client), whole });
        }
        text.push('\n');
        if !whole {
            self.status(step, text);
        }
        None
    }

    fn client_behind(&self, behind: Option<ClientId>) -> Option<(ClientId, &Connection)> {
        let from = behind.map_or(Unbounded, Excluded);
        self.clients.range((from, Unbounded)).next().map(|(client, of)| (*client, of))
    }

    /// Watches of the data table, by path or by session.
    fn tell_watch(&self, entry: Watch, text: &mut String) -> Option<Watch> {
        match entry {
            Watch::Path { behind } => match self.watches.path_behind(behind.as_deref()) {
                Some(path) => {
                    let _ = writeln!(text, "{path}");
                    Some(Watch::Watcher { path: path.clone(), behind: None })
                }
                None => {
                    text.push('\n');
                    None
                }
            },
            Watch::Watcher { path, behind } => {
                let Some(client) = self.watches.client_behind(&path, behind) else {
                    return Some(Watch::Path { behind: Some(path) });
                };
                if let Some(session) = self.clients.get(&client).and_then(Connection::session) {
                    let _ = writeln!(text, "\t0x{session:x}");
                }
                Some(Watch::Watcher { path, behind: Some(client) })
            }
            Watch::Session { behind } => {
                let from = behind.map_or(Unbounded, Excluded);
                let Some((&session, &client)) = self.by_session.range((from, Unbounded)).next()
                else {
                    text.push('\n');
                    return None;
                };
                let has = self.clients.get(&client).and_then(Connection::session).is_some();
                if !has || !self.watches.watches_data(client) {
                    return Some(Watch::Session { behind: Some(session) });
                }
                let _ = writeln!(text, "0x{session:x}");
                Some(Watch::Watched { session, client, behind: None })
            }
            Watch::Watched { session, client, behind } => {
                let Some((path, is_of_data)) = self.watches.of_client(client, behind.as_deref())
                else {
                    return Some(Watch::Session { behind: Some(session) });
                };
                if is_of_data {
                    let _ = writeln!(text, "\t{path}");
                }
                Some(Watch::Watched { session, client, behind: Some(path.clone()) })
            }
        }
    }

    /// Sessions, on a leader by the time when they expire.
    fn sessions_of_dump(&self, step: &Step<'_>, text: &mut String) -> Next {
        let Role::Leader(leading) = &self.role else {
            let sessions = step.state.tree().session_count();
            let _ = writeln!(text, "Global Sessions({sessions}):");
            return Next::Rest(Rest::Session { behind: None });
        };
        let until = leading.tracker.last_deadline().unwrap_or(Instant::ORIGIN);
        Next::Expiry(Expiry::Counted { sets: Sets::new(), behind: None, until })
    }

    /// None if all are told.
    fn tell_expiry(&self, step: &Step<'_>, entry: Expiry, text: &mut String) -> Option<Expiry> {
        let Role::Leader(leading) = &self.role else { return None };
        let tracker = &leading.tracker;
        Some(match entry {
            Expiry::Counted { mut sets, behind, until } => {
                match tracker.deadline_behind(behind).filter(|(at, _)| *at <= until) {
                    Some((at, session)) => {
                        match sets.back_mut().filter(|(of, _)| *of == at) {
                            Some((_, sessions)) => *sessions += 1,
                            None => sets.push_back((at, 1)),
                        }
                        Expiry::Counted { sets, behind: Some((at, session)), until }
                    }
                    None => {
                        let sessions: usize = sets.iter().map(|(_, sessions)| sessions).sum();
                        let _ = writeln!(text, "Session Sets ({})/({sessions}):", sets.len());
                        Expiry::Set { sets }
                    }
                }
            }
            Expiry::Set { mut sets } => match sets.pop_front() {
                Some((at, sessions)) => {
                    let left = at.since(step.at).as_millis();
                    let _ = writeln!(text, "{sessions} expire in {left}ms:");
                    Expiry::Session { sets, at, behind: None }
                }
                None => return None,
            },
            Expiry::Session { sets, at, behind } => match tracker.session_behind(at, behind) {
                Some(session) => {
                    let _ = writeln!(text, "\t0x{session:x}");
                    Expiry::Session { sets, at, behind: Some(session) }
                }
                None => Expiry::Set { sets },
            },
        })
    }

    fn owners_of_dump(&self, step: &Step<'_>, text: &mut String) -> Rest {
        let owners = step.state.tree().owner_count();
        let _ = writeln!(text, "ephemeral nodes dump:\nSessions with Ephemerals ({owners}):");
        Rest::Owner { behind: None }
    }

    fn tell_rest(&self, step: &Step<'_>, entry: Rest, text: &mut String) -> Option<Rest> {
        let tree = step.state.tree();
        Some(match entry {
            Rest::Session { behind } => match tree.session_behind(behind) {
                Some((session, timeout)) => {
                    let _ = writeln!(text, "0x{session:x}\t{timeout}ms");
                    Rest::Session { behind: Some(session) }
                }
                None => self.owners_of_dump(step, text),
            },
            Rest::Owner { behind } => match tree.owner_behind(behind) {
                Some(session) => {
                    let _ = writeln!(text, "0x{session:x}:");
                    Rest::Owned { session, behind: None }
                }
                None => {
                    let connections = self.clients.len();
                    let _ = writeln!(text, "Connections dump:\nConnections ({connections}):");
                    Rest::Connection { behind: None }
                }
            },
            Rest::Owned { session, behind } => {
                match tree.ephemeral_behind(session, behind.as_deref()) {
                    Some(path) => {
                        let _ = writeln!(text, "\t{path}");
                        Rest::Owned { session, behind: Some(path.clone()) }
                    }
                    None => Rest::Owner { behind: Some(session) },
                }
            }
            Rest::Connection { behind } => {
                let (client, connection) = self.client_behind(behind)?;
                let session = connection.session().unwrap_or(0);
                let _ = writeln!(text, "\tip: /{} sessionId: 0x{session:x}", connection.remote);
                Rest::Connection { behind: Some(client) }
            }
        })
    }
}

/// How many entries a portion has, at most: some tenths of a millisecond.
const ENTRIES_MAX: usize = 512;
/// Nor is one begun behind so many bytes.
const BYTES_MAX: usize = 64 << 10;
