//! What an operator may look at beside the figures: connections, watches, sessions, digests; and who may.
//!
//! All but the digests walk over what they tell of, in one piece.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use quorate_core::message::Identity;
use quorate_core::time::Instant;
use quorate_znode::access::permitted;

use crate::connection::Connection;
use crate::identities::digest;
use crate::service::{Counters, Role, Service};
use crate::words::op_name;
use crate::zookeeper::ZooKeeper;

/// One connection, as `cons` and the admin server tell of it (`ServerCnxn.getConnectionInfo`).
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionView {
    /// Where its client is.
    pub remote: SocketAddr,
    /// Whether it goes through TLS.
    pub secure: bool,
    /// Whether anything is read from it.
    pub reads: bool,
    /// Requests that are not answered.
    pub outstanding: usize,
    /// Frames that came.
    pub received: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// What else is known once it has a session.
    pub session: Option<SessionView>,
}

/// The session of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionView {
    /// Its number.
    pub id: i64,
    /// The last operation, in ZooKeeper's short words.
    pub last_operation: &'static str,
    /// When the connection came, in milliseconds since 1970.
    pub established_ms: i64,
    /// The time-out, in milliseconds.
    pub timeout_ms: i32,
    /// The number of its last request.
    pub last_xid: i32,
    /// What it was told last.
    pub last_zxid: i64,
    /// How long the last answer took, the quickest, the slowest one and all of them on average: in milliseconds.
    pub latencies_ms: [u64; 4],
}

/// Why an operator may not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// What was said proves nothing.
    NotAuthenticated,
    /// It proves an identity that lacks some right on `/`.
    NotAuthorized,
}

impl Service {
    /// Whether clients are served.
    pub const fn is_serving(&self) -> bool {
        self.serves()
    }

    /// Whether a client that comes from there and says this of itself has every right on `/`, as ZooKeeper's admin
    /// server asks for (`AuthRequest` of `Commands`). Who guesses too often at the password of the one that may do
    /// everything has to wait, as on a connection of a client.
    ///
    /// # Errors
    ///
    /// A [`Denied`].
    pub fn authorize(
        &mut self,
        at: Instant,
        state: &ZooKeeper,
        (scheme, proof): (&str, &str),
        from: IpAddr,
    ) -> Result<(), Denied> {
        let identity = |scheme: &str, id: &str| Identity { scheme: scheme.into(), id: id.into() };
        let mut identities = Vec::from([identity("ip", &from.to_string())]);
        match scheme {
            "digest" => {
                let id = digest(proof.as_bytes(), self.options.digest_algorithm);
                if self.may_do_everything(at, from, &id) {
                    identities.push(identity("super", ""));
                }
                identities.push(identity("digest", &id));
            }
            "ip" => {}
            _ => return Err(Denied::NotAuthenticated),
        }
        let root = state.tree().get("/");
        let list = root.as_ref().and_then(|root| root.acl());
        let each = [1, 2, 4, 8, 16];
        let all = each.iter().all(|right| permitted(list, *right, Some(&identities)));
        if all || self.options.skip_acl { Ok(()) } else { Err(Denied::NotAuthorized) }
    }

    /// All connections.
    pub fn connections_view(&self) -> Vec<ConnectionView> {
        self.clients.values().map(view).collect()
    }

    /// How many connections watch, how many paths are watched, and how many watches there are.
    pub fn watch_summary(&self) -> (usize, usize, usize) {
        self.watches.summary()
    }

    /// The sessions that watch each path.
    pub fn watchers(&self) -> BTreeMap<String, Vec<i64>> {
        let mut by_path = BTreeMap::new();
        for (path, clients) in self.watches.by_path() {
            let session = |client| self.clients.get(&client).and_then(Connection::session);
            by_path.insert(path.to_string(), clients.into_iter().filter_map(session).collect());
        }
        by_path
    }

    /// The sessions and when they expire, as milliseconds from now on; on a leader alone.
    pub fn expiries(&self, now: Instant) -> BTreeMap<u128, BTreeSet<i64>> {
        let mut sets: BTreeMap<u128, BTreeSet<i64>> = BTreeMap::new();
        if let Role::Leader(leading) = &self.role {
            for (at, session) in leading.tracker.by_deadline() {
                sets.entry(at.since(now).as_millis()).or_default().insert(session);
            }
        }
        sets
    }

    /// The digests that were compared with the leader's, with the zxids that they are of, oldest first.
    pub fn digests(&self) -> Vec<(i64, u64)> {
        self.digests.kept().map(|(zxid, digest)| (zxid.0, digest)).collect()
    }

    /// Sets the figures of all connections back.
    pub fn reset_connections(&mut self) {
        self.clients.values_mut().for_each(|connection| connection.figures.reset());
    }

    /// Sets the figures of the server back.
    pub fn reset_figures(&mut self) {
        self.counters = Counters::default();
        self.proofs.reset();
    }
}

fn view(connection: &Connection) -> ConnectionView {
    let figures = &connection.figures;
    let latencies = &figures.latencies;
    ConnectionView {
        remote: connection.remote,
        secure: connection.secure,
        reads: !connection.paused,
        outstanding: connection.queue.len(),
        received: figures.received,
        sent: figures.sent,
        session: connection.session().map(|id| SessionView {
            id,
            last_operation: op_name(figures.last_op),
            established_ms: figures.established_ms,
            timeout_ms: connection.timeout_ms,
            last_xid: figures.last_xid,
            last_zxid: figures.last_zxid,
            latencies_ms: [latencies.last, latencies.min(), latencies.max, latencies.average()],
        }),
    }
}
