//! A connection: two ends, and what is under way between them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_core::id::ServerId;
use quorate_core::input::{Cause, Plane, Unreadable};
use quorate_core::links::Mailbox;
use quorate_core::message::{Message, Packet};
use quorate_core::time::Instant;
use quorate_core::wire;

use crate::ensemble::Ensemble;
use crate::network::queue::Queue;

/// Where an end stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    Open,
    Closed,
}

/// Something under way.
#[derive(Debug)]
pub(super) enum Segment {
    Bytes(Bytes),
    End(Cause),
    /// The sender is told when everything before this has been taken over by the other end's system.
    Told(Told),
}

/// What a sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Drained,
    Progress,
    Streamed(Result<(), Unreadable>),
}

/// What the bytes that come to an end are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Messages,
    /// A snapshot, which only the application can delimit.
    Snapshot,
    /// One has come; nothing more is read until it is restored.
    Restoring,
}

/// One end, and what is on the way from it.
#[derive(Debug)]
pub(super) struct End {
    pub(super) server: ServerId,
    pub(super) state: State,
    /// Whether the server knows of the link.
    pub(super) up: bool,
    /// Whether it was closed by a crash.
    pub(super) crashed: bool,
    /// What comes to it was damaged on the way.
    pub(super) damaged: bool,
    /// It has read what cannot be; its server has not let go of it yet.
    pub(super) refused: bool,
    /// What is on the way from it takes long, now that it is over.
    pub(super) lingers: bool,
    pub(super) outgoing: VecDeque<(Instant, Segment)>,
    pub(super) last_ready: Instant,
    pub(super) mailbox: Mailbox,
    pub(super) writing: bool,
    /// Its server, one of ZooKeeper that leads, has UPTODATE to say, and COMMITs before.
    pub(super) welcomes: bool,
    pub(super) stuck: bool,
    pub(super) incoming: BytesMut,
    pub(super) reading: Reading,
    pub(super) progress: Instant,
    /// What the other end has sent, to be compared with what is decoded.
    pub(super) expected: VecDeque<Message>,
}

impl End {
    pub(super) fn new(server: ServerId) -> Self {
        Self {
            server,
            state: State::Opening,
            up: false,
            crashed: false,
            damaged: false,
            refused: false,
            lingers: false,
            outgoing: VecDeque::new(),
            last_ready: Instant::ORIGIN,
            mailbox: Mailbox::default(),
            writing: false,
            welcomes: false,
            stuck: false,
            incoming: BytesMut::new(),
            reading: Reading::Messages,
            progress: Instant::ORIGIN,
            expected: VecDeque::new(),
        }
    }

    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.mailbox = Mailbox::default();
        self.incoming.clear();
    }
}

/// Two ends.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) plane: Plane,
    /// Whom the dialler meant.
    pub(super) target: ServerId,
    pub(super) ends: [End; 2],
    /// Whether the path itself is gone; what is sent now is lost.
    pub(super) broken: bool,
    /// How many bytes it carries in a millisecond, if that is little.
    pub(super) rate: Option<u64>,
    /// What a non-member has to say on it, each piece a while after the one before.
    pub(super) script: Vec<(Duration, Bytes)>,
    /// Whether something was sent to a machine without power.
    pub(super) unanswered: bool,
    /// Whether the dialling end has said the first thing that can be read.
    pub(super) introduced: bool,
    /// What the dialling end has forwarded, if it is a server of ZooKeeper.
    pub(super) queue: Queue,
}

impl Connection {
    pub(super) fn new(plane: Plane, target: ServerId, from: ServerId, to: ServerId) -> Self {
        Self {
            plane,
            target,
            ends: [End::new(from), End::new(to)],
            broken: false,
            rate: None,
            script: Vec::new(),
            unanswered: false,
            introduced: false,
            queue: Queue::default(),
        }
    }

    /// Whether it joins the same two servers as another, for the same.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let (a, b) = self.servers(0);
        self.plane == other.plane && (other.servers(0) == (a, b) || other.servers(0) == (b, a))
    }

    /// Whether one end is none of a server.
    pub(super) fn is_strange(&self) -> bool {
        self.ends.iter().any(|end| Ensemble::is_non_member(end.server))
    }

    /// How long a segment takes to get into the network.
    pub(super) fn takes(&self, segment: &Segment) -> Duration {
        match (segment, self.rate) {
            (Segment::Bytes(bytes), Some(rate)) => {
                Duration::from_micros(bytes.len() as u64 * 1000 / rate.max(1))
            }
            _ => Duration::ZERO,
        }
    }

    pub(super) fn servers(&self, from: usize) -> (ServerId, ServerId) {
        (self.ends[from].server, self.ends[1 - from].server)
    }

    pub(super) fn is_open(&self) -> bool {
        self.ends.iter().all(|end| end.state == State::Open)
    }
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    /// The messages that begin in it.
    pub(crate) messages: Vec<Message>,
    /// Whether it is a part of a snapshot.
    pub(crate) moves: bool,
}

impl Piece {
    /// A packet.
    pub(crate) fn packet(packet: Packet) -> Self {
        let mut bytes = BytesMut::new();
        wire::encode_packet(&packet, &mut bytes);
        Self { bytes: bytes.freeze(), messages: each(packet), moves: false }
    }
}

/// The packets that the other end may read one by one.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others are one each")]
pub(super) fn each(packet: Packet) -> Vec<Message> {
    match packet {
        Packet::Acks(run) => run.zxids().map(|z| Message::Packet(Packet::Ack(z))).collect(),
        Packet::Commits(run) => run.zxids().map(|z| Message::Packet(Packet::Commit(z))).collect(),
        Packet::Proposals(txns) => {
            txns.iter().map(|txn| Message::Packet(Packet::Proposal(txn.clone()))).collect()
        }
        packet => vec![Message::Packet(packet)],
    }
}
