//! What servers do with links: send, drain, stream, hang up.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Cause, Unreadable};
use quorate_core::message::{Message, Packet};
use quorate_core::time::Instant;
use quorate_core::txn::Txn;
use quorate_core::wire;
use quorate_core::zxid::Epoch;

use crate::faults::FaultClass;
use crate::java_leader::poison;
use crate::network::connection::{Piece, Reading, Segment, State, Told, each};
use crate::network::{DIALLER, HANGUP_MAX, Network, NetworkEvent, PROGRESS_EVERY, unpack};

impl Network {
    pub(crate) fn send(&mut self, now: Instant, link: LinkId, message: Message) {
        let (conn, from) = unpack(link);
        let paired = from == DIALLER && self.is_paired(conn);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[from].state != State::Open {
            return;
        }
        match message {
            Message::Notification(notification) => {
                let end = &mut connection.ends[from];
                if end.mailbox.put(notification) {
                    self.coverage.hit(FaultClass::MailboxReplaced);
                }
                if !end.writing {
                    self.write_newest(now, conn, from);
                }
            }
            Message::Generation(message) => {
                let end = &mut connection.ends[from];
                if end.mailbox.post(message) {
                    self.coverage.hit(FaultClass::MailboxReplaced);
                }
                if !end.writing {
                    self.write_newest(now, conn, from);
                }
            }
            Message::Probe(probe) => {
                let end = &mut connection.ends[from];
                end.mailbox.put_probe(probe);
                if !end.writing {
                    self.write_newest(now, conn, from);
                }
            }
            Message::Packet(Packet::UpToDate)
                if self.old.get(&connection.ends[from].server).is_some_and(|it| it.is_javas()) =>
            {
                connection.ends[from].welcomes = true;
                self.welcoming.push(link);
            }
            Message::Packet(packet) => {
                if !matches!(packet, Packet::Commit(_) | Packet::Commits(_)) {
                    self.welcome(now, link);
                } else if connection.ends[from].welcomes {
                    self.coverage.hit(FaultClass::CommittedBeforeUpToDate);
                }
                self.say(now, link, packet, paired);
            }
        }
    }

    /// UPTODATE of a leader of ZooKeeper, if it has one to say. What such a leader has committed by then it has said before,
    /// with COMMITs that go out like those to all others; ours has them behind UPTODATE, in the same step.
    fn welcome(&mut self, now: Instant, link: LinkId) {
        let (conn, from) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        if std::mem::take(&mut end.welcomes) && end.state == State::Open {
            self.say(now, link, Packet::UpToDate, false);
        }
    }

    /// A step is carried out: what waited for more of it is said.
    pub(crate) fn end_step(&mut self, now: Instant) {
        for link in std::mem::take(&mut self.welcoming) {
            self.welcome(now, link);
        }
    }

    fn say(&mut self, now: Instant, link: LinkId, packet: Packet, paired: bool) {
        let (conn, from) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let sender = connection.ends[from].server;
        if let (Packet::Request(request), true) = (&packet, paired) {
            connection.queue.forwards(request);
        }
        let to = connection.ends[1 - from].server;
        let passes_on =
            self.is_zookeepers && !self.old.contains_key(&sender) && self.old.contains_key(&to);
        if let Some(harm) = harm(&packet, &self.by_java).filter(|_| passes_on) {
            self.poisoned = Some((sender, format!("passes on to {to}: {harm}")));
        }
        let (packet, bytes) = match self.old.get(&sender) {
            Some(dialect) => {
                self.coverage.hit(dialect.class());
                dialect.packet(packet)
            }
            None => {
                let mut bytes = BytesMut::new();
                wire::encode_packet(&packet, &mut bytes);
                (packet, bytes.freeze())
            }
        };
        self.transmit(now, conn, from, bytes, each(packet));
    }

    /// Whether a server is one of ZooKeeper.
    pub(crate) fn is_java(&self, id: ServerId) -> bool {
        self.old.get(&id).is_some_and(|dialect| dialect.is_javas())
    }

    /// Whose the other end of a link is.
    pub(crate) fn other_end(&self, link: LinkId) -> Option<ServerId> {
        let (conn, side) = unpack(link);
        self.connections.get(&conn).map(|connection| connection.servers(side).1)
    }

    /// What a server says with a snapshot of the memberships: an old one nothing.
    pub(crate) fn told_with_snapshot(&self, id: ServerId, memberships: Bytes) -> Bytes {
        if self.old.contains_key(&id) { Bytes::new() } else { memberships }
    }

    /// Tells the server when what it has sent on a link so far is written.
    pub(crate) fn notify_drained(&mut self, now: Instant, link: LinkId) {
        self.welcome(now, link);
        let (conn, from) = unpack(link);
        if self.connections.get(&conn).is_some_and(|c| c.ends[from].state == State::Open) {
            self.push(now, conn, from, Segment::Told(Told::Drained));
        }
    }

    /// Writes a stream to a link, each piece a while after the one before; then tells the server how it
    /// ended.
    pub(crate) fn stream(
        &mut self,
        now: Instant,
        link: LinkId,
        pieces: Vec<Piece>,
        outcome: Result<(), Unreadable>,
    ) {
        self.welcome(now, link);
        let (conn, from) = unpack(link);
        let range = self.config.stream_gap_max.saturating_sub(self.config.stream_gap_min);
        let gap = self.config.stream_gap_min + self.up_to(range);
        let mut told = now;
        for Piece { bytes, messages, moves } in pieces {
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            let end = &mut connection.ends[from];
            if end.state != State::Open {
                return;
            }
            // The log is read far faster than a state is made into bytes.
            let gap = if moves { gap } else { gap / 100 };
            end.last_ready = end.last_ready.max(now) + gap;
            let ready = end.last_ready;
            self.transmit(now, conn, from, bytes, messages);
            if ready.since(told) >= PROGRESS_EVERY {
                told = ready;
                self.push(now, conn, from, Segment::Told(Told::Progress));
            }
        }
        if self.connections.get(&conn).is_some_and(|c| c.ends[from].state == State::Open) {
            self.push(now, conn, from, Segment::Told(Told::Streamed(outcome)));
        }
    }

    /// A snapshot is restored: what follows it on its link is read.
    pub(crate) fn read_on(&mut self, now: Instant, link: LinkId) {
        let (conn, to) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.ends[to].state == State::Open {
            connection.ends[to].reading = Reading::Messages;
            self.decode(now, conn, to);
        }
    }

    /// Closes a link in order: what was sent on it before still arrives, unless that takes too long.
    pub(crate) fn hang_up(&mut self, now: Instant, link: LinkId) {
        self.welcome(now, link);
        let (conn, from) = unpack(link);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        if end.state != State::Open {
            return self.let_go(now, link);
        }
        let last = now + HANGUP_MAX;
        end.outgoing.retain(|(ready, _)| *ready <= last);
        end.last_ready = end.last_ready.min(last);
        while self.connections.get(&conn).is_some_and(|c| !c.ends[from].mailbox.is_empty()) {
            self.write_newest(now, conn, from);
        }
        self.push(now, conn, from, Segment::End(Cause::Closed));
        self.linger(conn, from);
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.ends[from].close();
        }
        self.sweep(conn);
    }

    pub(super) fn write_newest(&mut self, now: Instant, conn: u64, from: usize) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[from];
        if let Some(mut message) = end.mailbox.take_generation() {
            end.writing = true;
            message.knows_probes &= !self.old.contains_key(&end.server);
            let mut bytes = BytesMut::new();
            wire::encode_generation(&message, &mut bytes);
            self.transmit(now, conn, from, bytes.freeze(), vec![Message::Generation(message)]);
            let at = now + self.up_to(self.config.write_max);
            return self.schedule(at, NetworkEvent::Written { conn, from });
        }
        let Some(notification) = end.mailbox.take() else {
            let Some(probe) = end.mailbox.take_probe() else { return };
            end.writing = true;
            let mut bytes = BytesMut::new();
            wire::encode_probe(&probe, &mut bytes);
            self.transmit(now, conn, from, bytes.freeze(), vec![Message::Probe(probe)]);
            let at = now + self.up_to(self.config.write_max);
            return self.schedule(at, NetworkEvent::Written { conn, from });
        };
        end.writing = true;
        let (notification, bytes) = match self.old.get(&end.server) {
            Some(dialect) => {
                self.coverage.hit(dialect.class());
                dialect.notification(&notification)
            }
            None => {
                let mut bytes = BytesMut::new();
                wire::encode_notification(&notification, &mut bytes);
                (notification, bytes.freeze())
            }
        };
        let message = vec![Message::Notification(notification)];
        self.transmit(now, conn, from, bytes, message);
        let at = now + self.up_to(self.config.write_max);
        self.schedule(at, NetworkEvent::Written { conn, from });
    }
}

/// What ends a server of ZooKeeper that is sent this, if anything does. What another of them has made is history; a request
/// in no session is none of a client.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the others carry neither requests nor transactions"
)]
fn harm(packet: &Packet, by_java: &BTreeSet<Epoch>) -> Option<&'static str> {
    let of = |txn: &Txn| {
        let own = !by_java.contains(&txn.zxid.epoch());
        own.then(|| poison::harms(txn)).flatten()
    };
    match packet {
        Packet::Request(request) if request.identities.is_some() => poison::of_request(request),
        Packet::Proposal(txn) | Packet::Inform(txn) => of(txn),
        Packet::Proposals(txns) => txns.iter().find_map(of),
        _ => None,
    }
}
