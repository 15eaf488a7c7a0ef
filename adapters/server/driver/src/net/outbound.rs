//! What waits to be written on a link.
//!
//! On an election link that is the core's `Mailbox`: a peer that reads slowly gets the newest vote, or message of each
//! kind, not all of them. On a quorum link it is a sequence of packets, of marks that tell the core how far the learner
//! has read, and of [streams](crate::disk::Pieces) that are too long to wait in a queue; the core sends no more than a
//! learner reads, and one that stops reading all the same ends its own link and never the loop.
//!
//! Java's name is `queueSendMap`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_channel::Sender;
use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::links::Mailbox;
use quorate_core::message::{Message, Packet, Request};
use quorate_core::report::How;
use quorate_core::txn::Txn;
use quorate_leadership::boot_time;

use crate::disk::{Intake, Pieces};
use crate::lock::locked;
use crate::measures::{OfLink, millis};

/// The loop's end of a link. Dropping it lets the link write what it has, for a second at most, and
/// close: the loop does so when the core has hung it up, or when it ends itself.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) plane: Plane,
    pub(crate) peer: Option<ServerId>,
    pub(crate) remote: SocketAddr,
    pub(super) queue: Arc<Mutex<Queue>>,
    /// Something was queued since the writer was woken last.
    pub(super) queued: bool,
    pub(super) wake: Sender<()>,
    /// The core has been told, or will be next, that it is down: nothing more is written.
    pub(crate) ended: bool,
    /// How many bytes may wait, see [`QUEUE_BYTES_MAX`].
    pub(super) bytes_max: usize,
    /// Where the reader gets what takes a snapshot.
    pub(super) intakes: Sender<Intake>,
    pub(super) known: Arc<AtomicBool>,
    pub(super) _open: Sender<Infallible>,
}

/// What waits to be written.
#[derive(Debug)]
pub(super) enum Queue {
    Newest(Mailbox),
    All(Packets),
}

/// What waits to be written to a learner or its leader, in order.
#[derive(Debug, Default)]
pub(super) struct Packets {
    pub(super) items: VecDeque<Item>,
    pub(super) bytes: usize,
    /// Since when the first of them has waited.
    pub(super) since: Option<Instant>,
    /// Where it is measured for how long, and how much there was until the learner served.
    measured: Option<OfLink>,
    /// How the learner is brought up; none when it has been told to serve.
    sync: Option<How>,
}

#[derive(Debug)]
pub(super) enum Item {
    Packet(Packet),
    /// The core is to be told when everything before it is written.
    NotifyDrained,
    Stream(Pieces),
}

/// The peer does not read: more waits to be written than is allowed.
#[derive(Debug)]
pub(crate) struct Full;

impl Packets {
    /// They are taken to be written.
    pub(super) fn taken(&mut self) {
        if let (Some(since), Some(measured)) = (self.since.take(), &self.measured) {
            let now = boot_time::now();
            measured.waits.saw_at(now, millis(now.saturating_duration_since(since)));
        }
    }

    /// A packet is next: one of them says how the learner is brought up.
    pub(super) const fn begins(&mut self, packet: &Packet) {
        self.sync = match (packet, self.sync) {
            (Packet::Diff(_), None) => Some(How::Diff),
            (Packet::Trunc(_), None) => Some(How::Trunc),
            (Packet::UpToDate, _) => None,
            (_, sync) => sync,
        };
    }

    /// A stream is next: that of a snapshot, which has SNAP at its beginning, unless a packet was there before.
    pub(super) fn streams(&mut self) {
        self.sync.get_or_insert(How::Snap);
    }

    /// So many bytes go to the learner.
    pub(super) fn goes(&self, bytes: usize) {
        if let (Some(how), Some(measured)) = (self.sync, &self.measured) {
            measured.synced.add(how, bytes);
        }
    }
}

impl Outbound {
    /// Queues a message; never waits. Nothing is written before [`Outbound::wake`]. Returns whether
    /// this is the first since then.
    pub(crate) fn send(&mut self, message: Message) -> Result<bool, Full> {
        match (&mut *locked(&self.queue), message) {
            (Queue::Newest(mailbox), Message::Notification(notification)) => {
                mailbox.put(notification);
            }
            (Queue::All(packets), Message::Packet(packet)) => {
                if packets.bytes >= self.bytes_max {
                    return Err(Full);
                }
                if packet == Packet::UpToDate {
                    // A peer that has come so far has proved to be a learner of this ensemble.
                    self.known.store(true, Ordering::Relaxed);
                }
                packets.bytes += cost(&packet);
                packets.items.push_back(Item::Packet(packet));
            }
            (Queue::Newest(mailbox), Message::Generation(message)) => {
                mailbox.post(message);
            }
            (Queue::Newest(mailbox), Message::Probe(probe)) => {
                mailbox.put_probe(probe);
            }
            (Queue::Newest(_), Message::Packet(_))
            | (
                Queue::All(_),
                Message::Notification(_) | Message::Generation(_) | Message::Probe(_),
            ) => {
                debug_assert!(false, "a message on the wrong plane");
            }
        }
        Ok(self.queue_first())
    }

    /// Queues a mark: when everything before it is written, the core is told.
    pub(crate) fn notify_drained(&mut self) -> bool {
        self.push(Item::NotifyDrained)
    }

    /// Queues a stream: when it is written, the core is told.
    pub(crate) fn stream(&mut self, pieces: Pieces) -> bool {
        self.push(Item::Stream(pieces))
    }

    fn push(&mut self, item: Item) -> bool {
        match &mut *locked(&self.queue) {
            Queue::All(packets) => packets.items.push_back(item),
            Queue::Newest(_) => debug_assert!(false, "a stream of votes"),
        }
        self.queue_first()
    }

    fn queue_first(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    /// From here on it is measured how long packets wait for this learner, and what brings it up.
    pub(crate) fn measure(&self, measured: OfLink) {
        if let Queue::All(packets) = &mut *locked(&self.queue) {
            packets.measured = Some(measured);
        }
    }

    /// How many packets wait for a learner that is [measured](Self::measure); none for others.
    pub(crate) fn waiting(&self, now: Instant) -> Option<usize> {
        match &mut *locked(&self.queue) {
            Queue::All(packets) if packets.measured.is_some() && !packets.items.is_empty() => {
                packets.since.get_or_insert(now);
                Some(packets.items.len())
            }
            Queue::All(_) | Queue::Newest(_) => None,
        }
    }

    /// Lets the link write what is queued.
    pub(crate) fn wake(&mut self) {
        self.queued = false;
        // Full: the writer has been woken already.
        let _ = self.wake.try_send(());
    }

    /// Hands the bytes behind SNAP to what takes them.
    pub(crate) fn receive(&self, intake: Intake) {
        // Full: a snapshot is coming already; the core asks for one after the other.
        drop(self.intakes.try_send(intake));
    }
}

/// What a queued packet costs, about.
pub(super) fn cost(packet: &Packet) -> usize {
    let payload = match packet {
        Packet::Proposal(txn) | Packet::Inform(txn) | Packet::InformAndActivate { txn, .. } => {
            txn.len()
        }
        Packet::Proposals(txns) => txns.iter().map(|txn| txn.len() + BARE_BYTES).sum(),
        Packet::NewLeader { config, .. } => config.len(),
        Packet::Lease { sessions, .. } => sessions.len(),
        Packet::Ping { sessions, .. } => sessions.as_ref().map_or(0, Bytes::len),
        Packet::Revalidate(body) => body.len(),
        Packet::Snap { memberships, .. } => memberships.len(),
        Packet::Commits(run) | Packet::Acks(run) => {
            BARE_BYTES * usize::try_from(run.last.0 - run.first.0).unwrap_or(0)
        }
        Packet::FollowerInfo(_)
        | Packet::ObserverInfo(_)
        | Packet::LeaderInfo { .. }
        | Packet::AckEpoch { .. }
        | Packet::Diff(_)
        | Packet::Trunc(_)
        | Packet::UpToDate
        | Packet::Ack(_)
        | Packet::Commit(_)
        | Packet::CommitAndActivate { .. }
        // Held by the side that asks, and bounded there.
        | Packet::Request(_)
        | Packet::Transfer { .. }
        | Packet::MayLead(_)
        | Packet::Sync { .. } => 0,
    };
    payload + size_of::<Item>()
}

/// Whether a packet is copied into one buffer with others.
pub(super) fn is_short(packet: &Packet) -> bool {
    let payload = if let Packet::Request(Request { body, .. })
    | Packet::Proposal(Txn { body, .. })
    | Packet::Inform(Txn { body, .. }) = packet
    {
        body.len()
    } else {
        0
    };
    payload < PAYLOAD_COPIED_MAX
}

/// How many bytes may wait for a peer that does not read, each packet counted with what keeping it
/// takes; at least four of the longest packets. The core sends no more than a part of this before it knows that a
/// learner reads; this is the last defence.
pub(super) const QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A packet without data.
const BARE_BYTES: usize = 20;
/// Payloads are copied into one buffer with others up to this length.
pub(super) const PAYLOAD_COPIED_MAX: usize = 64 * 1024;
