//! One connection of a client: what it is, and what it waits for.
//!
//! ```text
//!   New ──ConnectRequest──► Opening ──createSession applied──► Open ──the leader is lost──► Kept ──the next──► Open ──► …
//!                     └───► Asking ───the leader says valid──► Open
//!
//!   queue:   done │ read │ write, submitted │ read │ sync │ write, waiting …
//!            replies leave at this end      reached ──────┘ nothing behind an open sync is begun
//! ```
//!
//! Replies of a session leave in the order of its requests. Writes are submitted as they come, one behind the other, and a
//! read waits for those before it; a sync holds up whatever is behind it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use bytes::Bytes;
use quorate_application::clients::SyncId;
use quorate_core::message::{Identity, Request as Submitted};
use quorate_core::time::Instant;
use quorate_sasl::Acceptor;

use crate::audit::Asked;
use crate::latencies::Latencies;
use crate::portion::Next;
use crate::unwritten::Unwritten;
use crate::wire::Request;

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) remote: SocketAddr,
    /// It goes through TLS.
    pub(crate) secure: bool,
    pub(crate) state: State,
    /// Who its client is: its address, and what it has proved since.
    pub(crate) identities: Vec<Identity>,
    /// Its login by SASL, from the first token on.
    pub(crate) login: Option<Box<Acceptor>>,
    /// The time-out that was agreed, in milliseconds.
    pub(crate) timeout_ms: i32,
    /// Its requests, oldest first.
    pub(crate) queue: VecDeque<Entry>,
    /// How many of them, from the front, are begun: reads that only wait for their turn among them.
    pub(crate) reached: usize,
    /// How many of those are reads that have not been carried out.
    pub(crate) reads_ahead: usize,
    /// It is among those that wait for room for their writes.
    pub(crate) waits: bool,
    /// It was, until now.
    pub(crate) waited: bool,
    /// Frames that wait for the session, or from the ConnectRequest on for a leader.
    pub(crate) early: VecDeque<Bytes>,
    /// How many bytes these and those of the queue have.
    pub(crate) queued: usize,
    pub(crate) unwritten: Unwritten,
    /// Nothing is read from it.
    pub(crate) paused: bool,
    /// It ends behind its last reply: the server is about to stop.
    pub(crate) leaves: bool,
    /// It ends with this leader: something that it asked for is never answered, since this leader ends its session; or its
    /// client was elsewhere meanwhile, and may be.
    pub(crate) parts: bool,
    /// How far the answer to its word is told, if there is more.
    pub(crate) telling: Option<Box<Next>>,
    pub(crate) figures: Figures,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not asked for a session.
    New,
    /// It has, where no leader was; its frames wait.
    Between,
    /// Its session is being opened. `read_only`: the byte of that name, if its client knows it.
    Opening { session: i64, read_only: Option<bool> },
    /// The leader is asked whether its session lives. `foreign`: how many transactions of it were applied meanwhile that
    /// nobody here has asked for.
    Asking { session: i64, read_only: Option<bool>, foreign: u32 },
    /// It has a session.
    Open { session: i64 },
    /// It has, where no leader is now; its frames wait.
    Kept { session: i64 },
}

/// A request of a connection.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) xid: i32,
    pub(crate) op: i32,
    pub(crate) came: Instant,
    /// How many it came in.
    pub(crate) bytes: usize,
    pub(crate) work: Work,
}

/// What there is to do about it.
#[derive(Debug)]
pub(crate) enum Work {
    /// It is answered from the tree.
    Read(Request),
    /// It waits to be submitted. `parts`: the operations of a multi. `audited`: what is to be told of it.
    Waiting { request: Submitted, parts: Vec<i32>, audited: Option<Box<Asked>> },
    /// It is submitted.
    Underway { parts: Vec<i32> },
    /// It waits for a read point.
    Sync { path: Option<alloc::string::String>, id: Option<SyncId>, done: bool },
    /// It is refused here, in its turn: as of what is applied then.
    Refused(i32),
    /// Its reply is known.
    Done(Bytes),
}

/// What is told about a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) last_op: i32,
    pub(crate) last_xid: i32,
    pub(crate) last_zxid: i64,
    pub(crate) latencies: Latencies,
    /// When it was answered last, in milliseconds since some moment before this server started.
    pub(crate) last_response_ms: u128,
    /// When it came, in milliseconds since 1970.
    pub(crate) established_ms: i64,
}

impl Figures {
    /// It was answered just now.
    pub(crate) fn answered(&mut self, now: Instant) {
        self.last_response_ms = now.since(Instant::ORIGIN).as_millis();
    }

    /// Sets them back, but for when it came.
    pub(crate) fn reset(&mut self) {
        *self = Self { established_ms: self.established_ms, ..Self::default() };
    }
}

impl Connection {
    pub(crate) fn new(remote: SocketAddr, wall_ms: i64) -> Self {
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let id = text_of(remote.ip());
        Self {
            remote,
            secure: false,
            state: State::New,
            identities: alloc::vec![Identity { scheme: "ip".into(), id }],
            login: None,
            timeout_ms: 0,
            queue: VecDeque::new(),
            reached: 0,
            reads_ahead: 0,
            waits: false,
            waited: false,
            early: VecDeque::new(),
            queued: 0,
            unwritten: Unwritten::default(),
            paused: false,
            leaves: false,
            parts: false,
            telling: None,
            figures: Figures { established_ms: wall_ms, ..Figures::default() },
        }
    }

    /// Its session, if it has one.
    pub(crate) const fn session(&self) -> Option<i64> {
        match self.state {
            State::Open { session } | State::Kept { session } => Some(session),
            State::New | State::Between | State::Opening { .. } | State::Asking { .. } => None,
        }
    }

    /// How long its session may be silent.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.timeout_ms).unwrap_or(0))
    }

    /// Adds an identity; twice the same is once. Whether it has room for it.
    #[must_use]
    pub(crate) fn identify(&mut self, scheme: &str, id: &str) -> bool {
        let identity = Identity { scheme: scheme.into(), id: id.into() };
        if self.identities.contains(&identity) {
            return true;
        }
        let bytes = |own: &Identity| own.scheme.len() + own.id.len() + IDENTITY_LENGTHS;
        let own: usize = self.identities.iter().map(bytes).sum();
        let fits = own + bytes(&identity) <= IDENTITIES_BYTES_MAX;
        if fits {
            self.identities.push(identity);
        }
        fits
    }

    /// Whether its client waits for nothing, and may stay.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.parts
    }

    /// Whether replies wait: its client does not read.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.unwritten.bytes() > UNWRITTEN_MAX
    }

    /// Whether no more is to be read for now.
    pub(crate) fn is_full(&self) -> bool {
        self.leaves
            || self.is_held_back()
            || self.queue.len() + self.early.len() >= QUEUE_MAX
            || self.queued > QUEUE_BYTES_MAX
    }
}

/// An address as Java prints it: IPv6 uncompressed.
fn text_of(address: IpAddr) -> alloc::string::String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let groups: Vec<_> =
                address.segments().iter().map(|group| alloc::format!("{group:x}")).collect();
            groups.join(":")
        }
    }
}

/// A write is submitted behind so many reads that wait for their turn, at most: they are carried out before it is applied,
/// even if their replies have to wait here.
pub(crate) const READS_AHEAD_MAX: usize = 16;
/// How long the identities of a connection are together, at most: each of its writes carries them all to the leader.
const IDENTITIES_BYTES_MAX: usize = 16 << 10;
/// The lengths of scheme and id, as a REQUEST has them.
const IDENTITY_LENGTHS: usize = 8;
/// While more bytes than this wait to be written to a client, none of its requests is begun.
const UNWRITTEN_MAX: usize = 1 << 20;
/// How many requests of one connection wait, at most; then nothing is read from it.
const QUEUE_MAX: usize = 1000;
/// How many bytes they may have together before nothing is read.
const QUEUE_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_java_writes_them() {
        let text = |address: &str| text_of(address.parse::<IpAddr>().unwrap());
        assert_eq!(text("10.0.0.1"), "10.0.0.1");
        assert_eq!(text("::1"), "0:0:0:0:0:0:0:1");
        let mapped = Connection::new("[::ffff:10.0.0.1]:7".parse().unwrap(), 0);
        assert_eq!(mapped.identities[0].id, "10.0.0.1");
    }
}
