//! What a server wants done: the other half of the boundary.
//!
//! The whole rule for a driver: carry out every output at once and in order; perform writes in order;
//! report the last durable ticket. What must wait for the disk is held back inside the core and comes
//! out when its ticket has been reported.

use alloc::vec::Vec;

use thiserror::Error;

use crate::address::HostPort;
use crate::id::{LinkId, ServerId, Ticket};
use crate::input::Plane;
use crate::message::Message;
use crate::report::Report;
use crate::zxid::{Epoch, Zxid};
use bytes::Bytes;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Connect to a server: try the addresses in order, resolving each name anew. On the election
    /// plane write our introduction first. Answer with `LinkUp` or `DialFailed`; until then no other
    /// dial for this plane and peer comes.
    Dial {
        /// The port.
        plane: Plane,
        /// The server.
        peer: ServerId,
        /// Where, never empty.
        addresses: Vec<HostPort>,
    },
    /// Close a link, after what was sent on it before has been written (bounded in time). Nothing more
    /// is to come from it, not even a `LinkDown`.
    Hangup {
        /// Which.
        link: LinkId,
        /// Why.
        reason: Hangup,
    },
    /// Write a message to a link. On the election plane only the newest that was not yet written
    /// counts (see [`Mailbox`](crate::links::Mailbox)).
    Send {
        /// Which.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// Make something durable, after the writes before it, and answer with `Persisted`.
    Persist {
        /// The number to answer with.
        ticket: Ticket,
        /// What.
        write: Write,
    },
    /// Something has changed, and why. For people: nothing needs to be done.
    Report(Report),
    /// Stop, and keep the data: going on would be unsafe. Every step after this returns nothing.
    Halt(Fault),
}

/// Something to make durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// The highest epoch promised (`acceptedEpoch`).
    AcceptedEpoch(Epoch),
    /// The epoch whose history is taken over (`currentEpoch`).
    CurrentEpoch(Epoch),
    /// The text of a newer configuration (the dynamic configuration file).
    Membership(Bytes),
}

/// Why the core ends a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Hangup {
    /// Between two servers the one with the larger id dials: this link only asked it to.
    #[error("server {0} has the larger id and dials back")]
    PeerDials(ServerId),
    /// Between two servers the one with the larger id dials: we dial back.
    #[error("server {0} has the smaller id, we dial back")]
    WeDial(ServerId),
    /// A newer link of the same server takes its place.
    #[error("a newer link of server {0} takes its place")]
    Replaced(ServerId),
    /// Somebody introduced itself with our own id: two servers have the same `myid`.
    #[error("server {0} introduced itself with our own id")]
    OwnId(ServerId),
    /// Somebody introduced itself with an id that is reserved.
    #[error("id {0} is reserved")]
    ReservedId(ServerId),
    /// More strangers are connected than are allowed.
    #[error("too many links of servers that are no members")]
    TooManyStrangers,
    /// More quorum links have not introduced themselves than are allowed.
    #[error("too many links without an introduction")]
    TooManyUnintroduced,
    /// More learners are connected than are allowed.
    #[error("too many learners")]
    TooManyLearners,
    /// We do not lead.
    #[error("this server does not lead")]
    NotLeading,
    /// We are no longer in the role that the link belonged to.
    #[error("the reign that this link belonged to is over")]
    RoleEnded,
    /// The link was dialled for something that has passed.
    #[error("no longer needed")]
    Unwanted,
    /// The other end said nothing for too long.
    #[error("silent for too long")]
    Silent,
    /// A message that has no place at this point, or on this plane.
    #[error("{0} out of turn")]
    OutOfTurn(&'static str),
    /// An epoch that cannot be.
    #[error("epoch {0} is out of range")]
    EpochOutOfRange(Epoch),
    /// The learner knows a newer configuration than we do.
    #[error("configuration version {theirs:x} is newer than ours, {ours:x}")]
    NewerConfiguration {
        /// The learner's.
        theirs: i64,
        /// Ours.
        ours: i64,
    },
    /// The learner's protocol is older than ZooKeeper 3.4.
    #[error("protocol {0:#x} is older than 0x10000")]
    OldProtocol(i32),
    /// The learner's history is newer than ours, and no election can settle that.
    #[error("its history ends at {0}, beyond ours")]
    NewerHistory(Zxid),
    /// The learner needs history brought to it or cut from it, which this version cannot do yet.
    #[error("its history ends at {0}, and this version transfers no history yet")]
    HistoryUnsupported(Zxid),
    /// The leader offers history, which this version cannot take over yet.
    #[error("the leader offers history, and this version takes over none yet")]
    HistoryOffered,
    /// The leader's epoch is older than our promise.
    #[error("epoch {0} is older than our promise")]
    OldEpoch(Epoch),
    /// This server stops.
    #[error("this server stops")]
    Shutdown,
}

/// Why going on would be unsafe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// No epoch is left to begin.
    #[error("epoch {0} is the last that zxids have room for; no new epoch can begin")]
    EpochsExhausted(Epoch),
}
