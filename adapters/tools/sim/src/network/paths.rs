//! Reachability: machines that go down and come back, and one-way cuts between them.

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Cause;
use quorate_core::time::Instant;

use crate::faults::FaultClass;
use crate::network::connection::{Connection, Segment, State};
use crate::network::{ACCEPTOR, DIALLER, Host, Network, NetworkEvent, RETRANSMIT_MAX, up_to};

impl Network {
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
        self.deaf.remove(&id);
        for conn in self.which(|c| c.ends.iter().any(|end| end.server == id)) {
            for side in [DIALLER, ACCEPTOR] {
                let Some(connection) = self.connections.get_mut(&conn) else { continue };
                let own = connection.ends[side].server == id;
                let begun = side == DIALLER || connection.ends[side].state == State::Open;
                let over = connection.ends[side].state == State::Closed;
                let held = !over || (own && std::mem::take(&mut connection.ends[side].refused));
                if !own || !begun || !held {
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
                    if cause == Cause::Reset {
                        // Its system gives up what was not acknowledged.
                        self.lose_tail(conn, side);
                    }
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
    pub(super) fn resume(&mut self, now: Instant, conn: u64, from: usize) {
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
}
