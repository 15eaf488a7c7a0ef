//! Dials: they succeed, are refused, or hang.
//!
//! Where a certificate is refused, who has dialled the one that it is for finds a dial that has failed. Who has it and
//! dials finds a link, which ends before anything was heard on it: in TLS 1.3 the dialler is done first. The acceptor's
//! machine is told of neither.

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::{Cause, Event, LinkUp, Plane};
use quorate_core::message::Introduction;
use quorate_core::time::Instant;
use quorate_core::wire;

use crate::ensemble::Ensemble;
use crate::faults::FaultClass;
use crate::network::connection::{Connection, Segment, State};
use crate::network::dialect::Dialect;
use crate::network::{ACCEPTOR, DIALLER, Network, NetworkEvent, SYN_AGAIN, pack, remote};

impl Network {
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
        let mut at = now + self.latency();
        let mut connection = Connection::new(plane, peer, from, found.unwrap_or(peer));
        if self.chance(self.config.slow_link) {
            connection.rate = Some(self.config.slow_rate * (1 + self.rng.below(20)));
        }
        if self.chance(self.config.slow_dial) {
            self.coverage.hit(FaultClass::SlowDial);
            at = at + self.up_to(self.config.slow_dial_max);
        }
        self.connections.insert(conn, connection);
        if found.is_some() {
            self.schedule(at, NetworkEvent::Syn { conn, attempt: 0 });
            self.schedule(now + self.config.dial_timeout, NetworkEvent::DialTimeout { conn });
        } else {
            self.schedule(at, NetworkEvent::Refused { conn });
        }
    }

    /// A SYN reaches the other machine, or does not.
    pub(super) fn on_syn(&mut self, now: Instant, conn: u64, attempt: usize) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        let (from, to) = connection.servers(DIALLER);
        let mut host = self.host(to);
        host.running &= connection.plane != Plane::Quorum || !self.shut.contains(&to);
        let passes = !self.is_blocked(from, to) && !self.is_blocked(to, from);
        let plane = connection.plane;
        let refuses =
            self.deaf.get(&to).filter(|_| plane == Plane::Quorum && host.running).copied();
        if refuses.is_some() {
            self.coverage.hit(FaultClass::PortFailsDial);
        }
        let silent = self.black_holes.contains(&to) || refuses == Some(false);
        if !passes || !host.powered || silent {
            if let Some(wait) = SYN_AGAIN.get(attempt) {
                let again = NetworkEvent::Syn { conn, attempt: attempt + 1 };
                self.schedule(now + *wait, again);
            }
            return;
        }
        let at = now + self.latency();
        if !host.running || refuses.is_some() {
            self.schedule(at, NetworkEvent::Refused { conn });
            return;
        }
        if attempt > 0 {
            self.coverage.hit(FaultClass::DialRetried);
        }
        let strange = Ensemble::is_non_member(from);
        if !strange && self.distrusted.contains(&to) {
            self.coverage.hit(FaultClass::CertificateRefusedByDialler);
            self.schedule(at, NetworkEvent::Refused { conn });
            return;
        }
        if self.distrusted.contains(&from) {
            self.coverage.hit(FaultClass::CertificateRefusedByAcceptor);
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            connection.ends[ACCEPTOR].close();
            self.schedule(at, NetworkEvent::Established { conn });
            let at = at + self.latency();
            let refused = NetworkEvent::Down { conn, side: DIALLER, cause: Cause::Closed };
            self.schedule(at, refused);
            return;
        }
        let held = |other: &Connection| {
            other.servers(DIALLER) == (from, to) && other.ends[ACCEPTOR].state == State::Open
        };
        let beside =
            |other: &Connection| self.connections.get(&conn).is_some_and(|c| c.is_beside(other));
        if !strange && self.connections.range(..conn).any(|(_, other)| held(other) && beside(other))
        {
            self.coverage.hit(FaultClass::SecondLink);
        }
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let strange = connection.is_strange();
        let end = &mut connection.ends[ACCEPTOR];
        end.state = State::Open;
        // Whatever the acceptor does next, the dialler first hears that it was accepted.
        end.last_ready = at;
        if connection.plane == Plane::Quorum && !Ensemble::is_non_member(to) {
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
        if strange {
            self.schedule(now + self.config.dial_timeout, NetworkEvent::Patience { conn });
        }
    }

    pub(super) fn on_established(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        if connection.ends[ACCEPTOR].crashed {
            return self.fail_dial(conn);
        }
        let (from, to) = connection.servers(DIALLER);
        connection.ends[DIALLER].state = State::Open;
        if Ensemble::is_non_member(from) {
            return self.recite(now, conn);
        }
        connection.ends[DIALLER].up = true;
        let (plane, target) = (connection.plane, connection.target);
        if plane == Plane::Election {
            let own = Ensemble::address(from, Plane::Election);
            let address = self.advertised.get(&from).cloned().unwrap_or(own);
            let old = self.old.get(&from) == Some(&Dialect::V34);
            let addresses = if old { Vec::new() } else { vec![address] };
            let introduction = Introduction { id: from, addresses };
            let bytes = if self.messages {
                wire::encode_generation_introduction(&introduction)
            } else {
                wire::encode_introduction(&introduction)
            };
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

    pub(super) fn on_dial_timeout(&mut self, now: Instant, conn: u64) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        self.coverage.hit(FaultClass::DialTimedOut);
        self.give_up(now, conn);
    }

    /// The dialler gives up a dial that is under way, if it is.
    pub(crate) fn cancel_dial(
        &mut self,
        now: Instant,
        from: ServerId,
        plane: Plane,
        peer: ServerId,
    ) {
        let hangs = |(_, connection): &(&u64, &Connection)| {
            let end = &connection.ends[DIALLER];
            (end.server, end.state) == (from, State::Opening)
                && (connection.plane, connection.target) == (plane, peer)
        };
        let Some(conn) = self.connections.iter().find(hangs).map(|(conn, _)| *conn) else { return };
        self.coverage.hit(FaultClass::DialCalledOff);
        self.give_up(now, conn);
    }

    /// A dial ends before it has come through for the dialler; for the acceptor it may have.
    fn give_up(&mut self, now: Instant, conn: u64) {
        let open = |connection: &Connection| connection.ends[ACCEPTOR].state == State::Open;
        if self.connections.get(&conn).is_some_and(open) {
            self.push(now, conn, DIALLER, Segment::End(Cause::Reset));
        }
        self.fail_dial(conn);
    }

    pub(super) fn fail_dial(&mut self, conn: u64) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[DIALLER].state != State::Opening {
            return;
        }
        connection.ends[DIALLER].close();
        let failed = Event::DialFailed { plane: connection.plane, peer: connection.target };
        self.arrivals.push_back((connection.ends[DIALLER].server, failed));
        self.sweep(conn);
    }
}
