//! One learner as its leader sees it.

use crate::context::Context;
use crate::id::{LinkId, ServerId};
use crate::message::{Message, Packet};
use crate::time::Instant;
use crate::zxid::Zxid;

/// A learner on its way from a bare connection to a synchronised member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Who; a negative number for an observer without an id. Means nothing while
    /// [`Stage::Silent`].
    pub id: ServerId,
    /// Whether it counts in quorums: it has a vote, and came as a follower.
    pub votes: bool,
    /// Whether it came as a follower.
    pub follower: bool,
    /// How far it has come.
    pub stage: Stage,
    /// When it last said something; when it came, if never.
    pub heard: Instant,
}

/// How far a learner has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Connected; FOLLOWERINFO or OBSERVERINFO is awaited.
    Silent,
    /// Introduced; it waits for the new epoch.
    Introduced,
    /// LEADERINFO is sent or on its way to the disk; ACKEPOCH is awaited.
    Told,
    /// Its ACKEPOCH has come, with this last zxid; it waits for the end of discovery.
    Promised(Zxid),
    /// NEWLEADER is sent; its ACK is awaited.
    Syncing,
    /// It has our history; it waits until a quorum has.
    Acknowledged,
    /// UPTODATE is sent.
    Serving,
}

impl Progress {
    /// A learner that has just connected.
    pub const fn new(now: Instant) -> Self {
        let (id, stage) = (ServerId::NOBODY, Stage::Silent);
        Self { id, votes: false, follower: false, stage, heard: now }
    }

    /// Whether it has acknowledged our history.
    pub fn is_synced(&self) -> bool {
        self.stage >= Stage::Acknowledged
    }
}

/// Sends a packet that promises nothing.
pub fn send(cx: &mut Context<'_>, link: LinkId, packet: Packet) {
    cx.outbox.send(link, Message::Packet(packet));
}
