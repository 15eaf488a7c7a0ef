//! Damage: connections that break in the middle of a message, late remains of them, corrupted bytes.

use bytes::{Bytes, BytesMut};
use quorate_core::id::LinkId;
use quorate_core::input::{Cause, Event, Plane};
use quorate_core::message::Message;
use quorate_core::time::Instant;

use crate::faults::FaultClass;
use crate::network::connection::{Segment, State, Told};
use crate::network::{ACCEPTOR, DIALLER, Network, NetworkEvent, pack, unpack};

/// Where the length of a packet's data stands.
const PACKET_LENGTH: usize = 12;
/// A length that nothing has.
const NO_LENGTH: [u8; 4] = [0x80, 0, 0, 0];
/// A state that no server is in.
const NO_STATE: [u8; 4] = [0, 0, 0, 77];

impl Network {
    /// Breaks a connection at some point of what is under way on it.
    pub(super) fn break_connection(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.broken || !connection.is_open() {
            return;
        }
        connection.broken = true;
        self.coverage.hit(FaultClass::LinkReset);
        for from in [DIALLER, ACCEPTOR] {
            self.lose_tail(conn, from);
            self.push(now, conn, from, Segment::End(Cause::Reset));
            self.linger(conn, from);
        }
    }

    /// Loses what is under way from an end, from some byte on.
    pub(super) fn lose_tail(&mut self, conn: u64, from: usize) {
        let under_way = self.connections.get(&conn).map_or(0, |c| c.ends[from].outgoing.len());
        let kept = self.pick(under_way + 1);
        if kept == under_way {
            return;
        }
        let (inside, cut) = (self.chance(self.config.cut_inside), self.rng.next_u64());
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let mut gone = connection.ends[from].outgoing.drain(kept..);
        let first = gone.next();
        let streamed =
            |(_, segment): &(_, Segment)| matches!(segment, Segment::Told(Told::Streamed(_)));
        if first.iter().any(streamed) || gone.any(|item| streamed(&item)) {
            self.coverage.hit(FaultClass::StreamCut);
        }
        drop(gone);
        self.coverage.hit(FaultClass::MessageLost);
        if let Some((ready, Segment::Bytes(bytes))) = first.filter(|_| inside) {
            let length = usize::try_from(cut % bytes.len().max(1) as u64).unwrap_or(0);
            if length > 0 {
                self.coverage.hit(FaultClass::CutInside);
                let part = Segment::Bytes(bytes.slice(..length));
                connection.ends[from].outgoing.push_back((ready, part));
            }
        }
    }

    /// Lets what is under way from an end take long, perhaps: by then there may be another connection.
    pub(super) fn linger(&mut self, conn: u64, from: usize) {
        if !self.chance(self.config.linger) {
            return;
        }
        let late = self.up_to(self.config.linger_max);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        end.lingers = true;
        end.last_ready = end.last_ready + late;
        for (ready, _) in &mut end.outgoing {
            *ready = *ready + late;
            self.scheduled.push((*ready, NetworkEvent::Arrive { conn, to: 1 - from }));
        }
    }

    /// Bytes have come from an end that was over: there may be a newer connection by now.
    pub(super) fn overtaken(&mut self, conn: u64, from: usize) {
        let Some(old) = self.connections.get(&conn).filter(|c| c.ends[from].lingers) else {
            return;
        };
        let newer = self.connections.range(conn + 1..);
        if newer.filter(|(_, c)| c.is_open()).any(|(_, c)| c.is_beside(old)) {
            self.coverage.hit(FaultClass::LinkLingered);
        }
    }

    /// What becomes of bytes on their way, and which of their messages can still be read.
    pub(super) fn damage(
        &mut self,
        conn: u64,
        from: usize,
        bytes: Bytes,
        mut messages: Vec<Message>,
    ) -> (Bytes, Vec<Message>) {
        if !self.chance(self.config.damage) {
            return (bytes, messages);
        }
        let leave_out = self.chance(0x8000);
        let Some(connection) = self.connections.get_mut(&conn) else { return (bytes, messages) };
        let mut damaged = BytesMut::from(&bytes[..]);
        let (at, by) = match (connection.plane, messages.is_empty()) {
            // A part of a snapshot: the application's, who has its own seal.
            (Plane::Quorum, true) => return (bytes, messages),
            (Plane::Quorum, false) => (PACKET_LENGTH, NO_LENGTH),
            (Plane::Election, false) if leave_out => {
                messages.clear();
                (4, NO_STATE)
            }
            (Plane::Election, _) => (0, NO_LENGTH),
        };
        damaged[at..at + 4].copy_from_slice(&by);
        connection.ends[1 - from].damaged = true;
        (damaged.freeze(), messages)
    }

    /// What has come cannot be read: the connection is over, as soon as the server knows.
    pub(super) fn refuse(&mut self, now: Instant, conn: u64, to: usize) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let strange = connection.is_strange();
        let end = &mut connection.ends[to];
        end.close();
        end.refused = true;
        if end.up {
            let down = Event::LinkDown { link: pack(conn, to), cause: Cause::Garbled };
            self.arrivals.push_back((end.server, down));
        } else {
            self.let_go(now, pack(conn, to));
        }
        self.coverage.hit(if strange {
            FaultClass::StrangeBytes
        } else {
            FaultClass::DamagedMessage
        });
    }

    /// A server knows that a connection is over on which it has read what cannot be: it is closed. Not before,
    /// since the other end may be free of a promise then.
    pub(super) fn let_go(&mut self, now: Instant, link: LinkId) {
        let (conn, from) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if !std::mem::take(&mut connection.ends[from].refused) {
            return;
        }
        let cause = if self.chance(0x8000) { Cause::Closed } else { Cause::Reset };
        if cause == Cause::Reset {
            self.lose_tail(conn, from);
        }
        self.push(now, conn, from, Segment::End(cause));
        self.sweep(conn);
    }

    /// A non-member has had time to say something that can be read.
    pub(super) fn on_patience(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[ACCEPTOR];
        if connection.introduced || end.up || end.state != State::Open {
            return;
        }
        end.close();
        self.push(now, conn, ACCEPTOR, Segment::End(Cause::Closed));
        self.sweep(conn);
    }

    /// Connections carry as much as is wanted again, and nothing is late any more.
    pub(crate) fn hasten(&mut self, now: Instant) {
        for (conn, connection) in &mut self.connections {
            connection.rate = None;
            for from in [DIALLER, ACCEPTOR] {
                let end = &mut connection.ends[from];
                let mut last = now + self.config.latency_max;
                if end.last_ready <= last {
                    continue;
                }
                for (ready, _) in &mut end.outgoing {
                    *ready = last.min(*ready);
                    last = last + std::time::Duration::from_nanos(1);
                    self.scheduled
                        .push((*ready, NetworkEvent::Arrive { conn: *conn, to: 1 - from }));
                }
                end.last_ready = last;
            }
        }
    }
}
