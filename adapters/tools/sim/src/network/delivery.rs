//! Delivery: bytes on their way between two ends, decoded at the other and compared with what was sent.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::id::ServerId;
use quorate_core::input::{Cause, Event, LinkUp, Plane};
use quorate_core::message::{Introduction, Message, Packet};
use quorate_core::time::Instant;
use quorate_core::wire::{self, DecodeError};

use crate::application::State as Snapshot;
use crate::ensemble::Ensemble;
use crate::faults::FaultClass;
use crate::network::connection::{Connection, Reading, Segment, State, Told, each};
use crate::network::{ACCEPTOR, DIALLER, Network, NetworkEvent, PROGRESS_EVERY, hit, pack, remote};

/// The longest first packet of a learner that a driver waits for.
const FIRST_PACKET_BYTES_MAX: usize = 4096;

impl Network {
    /// Puts bytes on their way, and with them the messages that the other end is to read.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        conn: u64,
        from: usize,
        bytes: Bytes,
        messages: Vec<Message>,
    ) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.broken {
            self.coverage.hit(FaultClass::MessageLost);
            return;
        }
        let (bytes, messages) = self.damage(conn, from, bytes, messages);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        connection.ends[1 - from].expected.extend(messages);
        let mut bytes = bytes;
        if bytes.len() > 1 && self.chance(self.config.split) {
            let at = 1 + self.pick(bytes.len() - 1);
            let head = bytes.split_to(at);
            self.coverage.hit(FaultClass::SplitMessage);
            self.push(now, conn, from, Segment::Bytes(head));
        }
        self.push(now, conn, from, Segment::Bytes(bytes));
        if self.chance(self.config.reset) {
            self.break_connection(now, conn);
        }
    }

    /// Puts something behind what is on its way.
    pub(super) fn push(&mut self, now: Instant, conn: u64, from: usize, segment: Segment) {
        let ready = now + self.latency();
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let takes = connection.takes(&segment);
        let end = &mut connection.ends[from];
        let turn = end.last_ready + takes.max(Duration::from_nanos(1));
        if !takes.is_zero() && turn > ready {
            self.coverage.hit(FaultClass::SlowLink);
        }
        let ready = ready.max(turn);
        end.last_ready = ready;
        end.outgoing.push_back((ready, segment));
        self.schedule(ready, NetworkEvent::Arrive { conn, to: 1 - from });
    }

    /// Takes out what has come.
    pub(super) fn on_arrive(&mut self, now: Instant, conn: u64, to: usize) {
        let from = 1 - to;
        loop {
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            let (sender, receiver) = connection.servers(from);
            let due = connection.ends[from].outgoing.front().is_some_and(|(at, _)| *at <= now);
            if !due || self.blocked.contains_key(&(sender, receiver)) {
                return;
            }
            let Some((_, segment)) = connection.ends[from].outgoing.pop_front() else { return };
            if Ensemble::is_non_member(receiver) {
                if let Segment::End(cause) = segment {
                    self.on_down(conn, to, cause);
                }
                continue;
            }
            if !self.hosts.get(&receiver).is_some_and(|host| host.powered) {
                connection.unanswered = true;
                continue;
            }
            match segment {
                Segment::Bytes(bytes) if connection.ends[to].state == State::Open => {
                    let end = &mut connection.ends[to];
                    end.incoming.extend_from_slice(&bytes);
                    if end.reading == Reading::Snapshot && now.since(end.progress) >= PROGRESS_EVERY
                    {
                        end.progress = now;
                        self.arrivals.push_back((receiver, Event::Progress(pack(conn, to))));
                    }
                    self.decode(now, conn, to);
                    self.overtaken(conn, from);
                }
                Segment::Told(told) => {
                    let open = connection.ends.iter().all(|end| end.state == State::Open);
                    let link = pack(conn, from);
                    let event = match told {
                        Told::Drained => Event::Drained(link),
                        Told::Progress => Event::Progress(link),
                        Told::Streamed(outcome) => Event::Streamed { link, outcome },
                    };
                    if open && connection.ends[from].up {
                        self.arrivals.push_back((sender, event));
                    }
                }
                Segment::Bytes(_) => {
                    if connection.ends[to].crashed {
                        self.coverage.hit(FaultClass::HalfOpen);
                    }
                    let at = now + self.latency();
                    self.schedule(at, NetworkEvent::Down { conn, side: from, cause: Cause::Reset });
                }
                Segment::End(cause) => self.on_down(conn, to, cause),
            }
        }
    }

    /// A notification has left its socket: the next one may follow.
    pub(super) fn on_written(&mut self, now: Instant, conn: u64, from: usize) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let stalled = self.blocked.contains_key(&connection.servers(from));
        let end = &mut connection.ends[from];
        if stalled {
            end.stuck = true;
            return;
        }
        end.writing = false;
        if end.state == State::Open && !end.mailbox.is_empty() {
            self.write_newest(now, conn, from);
        }
    }

    /// An end learns that its connection is over.
    pub(super) fn on_down(&mut self, conn: u64, side: usize, cause: Cause) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let end = &mut connection.ends[side];
        if end.state == State::Open {
            end.close();
            if end.up {
                let down = Event::LinkDown { link: pack(conn, side), cause };
                self.arrivals.push_back((end.server, down));
            }
        }
        self.sweep(conn);
    }

    /// Nothing has been acknowledged for long: both ends give the connection up, if that is still so.
    pub(super) fn on_stall_check(&mut self, now: Instant, conn: u64, from: usize, since: u64) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if self.blocked.get(&connection.servers(from)) != Some(&since) || !connection.is_open() {
            return;
        }
        self.coverage.hit(FaultClass::StallSilent);
        for side in [DIALLER, ACCEPTOR] {
            let at = now + self.up_to(Duration::from_millis(500));
            self.schedule(at, NetworkEvent::Down { conn, side, cause: Cause::Silent });
        }
    }

    /// Decodes what has come to an end, and compares it with what was sent.
    pub(super) fn decode(&mut self, now: Instant, conn: u64, to: usize) {
        if !self.decode_introduction(now, conn, to) || self.decode_snapshot(conn, to) {
            return;
        }
        while let Some(message) = self.decode_message(now, conn, to) {
            let Some(connection) = self.connections.get_mut(&conn) else { return };
            let (receiver, link) = (connection.servers(to).0, pack(conn, to));
            let is_snapshot = matches!(message, Message::Packet(Packet::Snap { .. }));
            if connection.is_strange() {
                connection.introduced = true;
                self.coverage.hit(match connection.plane {
                    Plane::Election => FaultClass::StrangeNotification,
                    Plane::Quorum => FaultClass::StrangePacket,
                });
                if is_snapshot {
                    // It is restored nowhere; nothing more is read.
                    connection.ends[to].reading = Reading::Restoring;
                }
                self.arrivals.push_back((receiver, Event::Received { link, message }));
            } else {
                if is_snapshot {
                    connection.ends[to].reading = Reading::Snapshot;
                }
                if !self.deliver(conn, to, message) {
                    return;
                }
            }
            if self.decode_snapshot(conn, to) {
                return;
            }
        }
    }

    /// Decodes the introduction with which a connection to an election port begins; whether messages may follow.
    fn decode_introduction(&mut self, now: Instant, conn: u64, to: usize) -> bool {
        let Some(connection) = self.connections.get_mut(&conn) else { return false };
        let (receiver, sender) = connection.servers(to);
        let (plane, strange) = (connection.plane, connection.is_strange());
        let end = &mut connection.ends[to];
        if plane != Plane::Election || to != ACCEPTOR || connection.introduced {
            return true;
        }
        let introduction = if self.messages {
            wire::decode_generation_introduction(&mut end.incoming)
        } else {
            wire::decode_introduction(&mut end.incoming)
        };
        match introduction {
            Ok(None) => false,
            Ok(Some(Introduction { id, addresses })) => {
                connection.introduced = true;
                if strange {
                    self.coverage.hit(FaultClass::StrangeIntroduction);
                }
                end.up = true;
                let up = LinkUp {
                    link: pack(conn, to),
                    plane,
                    dialled: false,
                    peer: Some(id),
                    advertised: addresses.into_iter().next(),
                    remote: remote(sender),
                };
                self.arrivals.push_back((receiver, Event::LinkUp(up)));
                true
            }
            Err(_) if strange || end.damaged => {
                self.refuse(now, conn, to);
                false
            }
            Err(error) => {
                self.problem = Some(format!("the introduction of {sender}: {error}"));
                false
            }
        }
    }

    /// Whether an end reads a snapshot, or waits until one is restored, and no messages: then what has come of it is
    /// decoded.
    fn decode_snapshot(&mut self, conn: u64, to: usize) -> bool {
        let Some(connection) = self.connections.get_mut(&conn) else { return true };
        let (receiver, sender) = connection.servers(to);
        let end = &mut connection.ends[to];
        match end.reading {
            Reading::Messages => return false,
            Reading::Restoring => {}
            Reading::Snapshot => match Snapshot::decode(&mut end.incoming) {
                Ok(Some(state)) => {
                    end.reading = Reading::Restoring;
                    self.snapshots.push_back((receiver, pack(conn, to), state));
                }
                Ok(None) => {}
                Err(error) => self.problem = Some(format!("from {sender}: {error}")),
            },
        }
        true
    }

    /// Decodes the next message that has come whole; what is damaged is passed over, or ends the connection.
    fn decode_message(&mut self, now: Instant, conn: u64, to: usize) -> Option<Message> {
        let (messages, runs) = (self.messages, self.config.runs);
        loop {
            let connection = self.connections.get_mut(&conn)?;
            let (plane, strange) = (connection.plane, connection.is_strange());
            let sender = connection.servers(to).1;
            let end = &mut connection.ends[to];
            let suspect = strange || end.damaged;
            match take(&mut end.incoming, plane, messages, runs) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {
                    let first = strange && plane == Plane::Quorum && !connection.introduced;
                    if first && end.incoming.len() > FIRST_PACKET_BYTES_MAX {
                        self.refuse(now, conn, to);
                    }
                    return None;
                }
                Err(error) if suspect && error.is_fatal() => {
                    self.refuse(now, conn, to);
                    return None;
                }
                Err(_) if suspect => self.coverage.hit(if strange {
                    FaultClass::StrangeBytes
                } else {
                    FaultClass::DamagedNotification
                }),
                Err(error) => {
                    self.problem = Some(format!("a message of {sender}: {error}"));
                    return None;
                }
            }
        }
    }

    /// A server of ZooKeeper, or of one of ours the leader's, pairs what is said to it with what it has forwarded.
    fn pairs(&mut self, conn: u64, to: usize, message: &Message) {
        if to != DIALLER || !self.is_paired(conn) {
            return;
        }
        let (Some(connection), Message::Packet(packet)) =
            (self.connections.get_mut(&conn), message)
        else {
            return;
        };
        let learner = connection.ends[to].server;
        for part in each(packet.clone()) {
            let Message::Packet(part) = part else { continue };
            let before = connection.queue.paired;
            if let Err(why) = connection.queue.hears(&part) {
                self.unpaired = Some((learner, why));
                return;
            }
            self.coverage.hits(FaultClass::Paired, connection.queue.paired - before);
        }
    }

    /// Whether one end of a connection is a server of ZooKeeper: between those there is one queue, and of tags nothing is known.
    pub(super) fn is_paired(&self, conn: u64) -> bool {
        let connection = self.connections.get(&conn);
        connection.is_some_and(|c| c.ends.iter().any(|end| self.is_java(end.server)))
    }

    /// A server that has forwarded what its leader has not answered, though nothing is on its way.
    pub(crate) fn has_forwarded_in_vain(&self) -> Option<ServerId> {
        let waits =
            |c: &&Connection| c.is_open() && c.ends.iter().all(|end| end.up) && !c.queue.is_empty();
        self.connections.values().find(waits).map(|c| c.ends[DIALLER].server)
    }

    /// Hands a message over as its receiver understands it, if it is what was sent; perhaps twice.
    fn deliver(&mut self, conn: u64, to: usize, message: Message) -> bool {
        let Some(connection) = self.connections.get_mut(&conn) else { return false };
        let (receiver, sender) = connection.servers(to);
        let (plane, link) = (connection.plane, pack(conn, to));
        let end = &mut connection.ends[to];
        let parts = match &message {
            Message::Packet(packet) => each(packet.clone()),
            Message::Notification(_) | Message::Generation(_) | Message::Probe(_) => {
                vec![message.clone()]
            }
        };
        for part in parts {
            let sent = end.expected.pop_front();
            if sent.as_ref() != Some(&part) {
                self.problem = Some(format!("{sender} sent {sent:?}, arrived is {part:?}"));
                return false;
            }
        }
        let heard = match self.old.get(&receiver) {
            None => Ok(message),
            Some(dialect) => dialect.heard(message.clone()).ok_or(message),
        };
        let message = match heard {
            Ok(message) => {
                self.pairs(conn, to, &message);
                message
            }
            // Shorter than a notification: `FastLeaderElection.Messenger.WorkerReceiver` passes over it.
            Err(Message::Probe(_)) if self.were_ours.contains(&receiver) => return true,
            Err(message) => {
                let what = format!("{sender} says what {receiver} does not know: {message:?}");
                self.problem = Some(what);
                return false;
            }
        };
        let twice = plane == Plane::Election && hit(&mut self.rng, self.config.duplicate);
        if twice {
            self.coverage.hit(FaultClass::DuplicateNotification);
            let again = Event::Received { link, message: message.clone() };
            self.arrivals.push_back((receiver, again));
        }
        self.arrivals.push_back((receiver, Event::Received { link, message }));
        true
    }
}

/// Takes the next message from what has come, if it is there whole.
fn take(
    incoming: &mut BytesMut,
    plane: Plane,
    messages: bool,
    runs: bool,
) -> Result<Option<Message>, DecodeError> {
    let probe = match plane {
        Plane::Election => wire::take_probe(incoming),
        Plane::Quorum => None,
    };
    match plane {
        Plane::Election if probe.is_some() => Ok(probe.map(Message::Probe)),
        Plane::Election if messages => {
            wire::take_generation(incoming).map(|l| l.map(Message::Generation))
        }
        Plane::Election => wire::take_notification(incoming).map(|n| n.map(Message::Notification)),
        Plane::Quorum if runs => {
            wire::take_packet(incoming, wire::MAX_DATA).map(|p| p.map(Message::Packet))
        }
        Plane::Quorum => {
            wire::decode_packet(incoming, wire::MAX_DATA).map(|p| p.map(Message::Packet))
        }
    }
}
