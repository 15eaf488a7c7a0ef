//! Connections of those who are no servers of this ensemble: they say what they want, and hear nothing.
//!
//! What a server's driver does about them is done here: what cannot be read ends the connection, and so
//! does saying nothing for too long. What the server itself does about them is its own.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::input::{Cause, Plane};
use quorate_core::time::Instant;

use crate::network::connection::{Connection, Segment};
use crate::network::{DIALLER, Host, Network, NetworkEvent};

/// A non-member connects.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// Where it comes from.
    pub(crate) non_member: ServerId,
    /// Whom it dials.
    pub(crate) target: ServerId,
    /// Which port.
    pub(crate) plane: Plane,
    /// What it says, each piece a while after the one before.
    pub(crate) script: Vec<(Duration, Bytes)>,
    /// Whether it takes connections itself, and then keeps silent.
    pub(crate) listens: bool,
}

impl Network {
    /// A non-member dials a server.
    pub(crate) fn visit(&mut self, now: Instant, visit: Visit) {
        let Visit { non_member, target, plane, script, listens } = visit;
        self.hosts.insert(non_member, Host { powered: true, running: listens });
        self.issued += 1;
        let conn = self.issued;
        let connection =
            Connection { script, ..Connection::new(plane, target, non_member, target) };
        self.connections.insert(conn, connection);
        let at = now + self.latency();
        self.schedule(at, NetworkEvent::Syn { conn, attempt: 0 });
        self.schedule(now + self.config.dial_timeout, NetworkEvent::DialTimeout { conn });
    }

    /// Its dial has come through: it says everything, and goes.
    pub(super) fn recite(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let script = std::mem::take(&mut connection.script);
        for (wait, bytes) in script {
            if let Some(connection) = self.connections.get_mut(&conn) {
                let end = &mut connection.ends[DIALLER];
                end.last_ready = end.last_ready.max(now) + wait;
            }
            if !bytes.is_empty() {
                self.push(now, conn, DIALLER, Segment::Bytes(bytes));
            }
        }
        let cause = if self.chance(0x8000) { Cause::Closed } else { Cause::Reset };
        self.push(now, conn, DIALLER, Segment::End(cause));
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.ends[DIALLER].close();
        }
    }
}
