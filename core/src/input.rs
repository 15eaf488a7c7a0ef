//! What can happen to a server: half of the boundary.
//!
//! An [`Input`] is an [`Event`] and the time at which it happened, so a whole run is one value (a
//! configuration, what the disk held, a list of inputs) that can be recorded, replayed and shrunk.
//! Local events and messages from the network are different types: no peer can forge a `Persisted`.

use crate::address::HostPort;
use crate::id::{LinkId, ServerId, Ticket};
use crate::message::Message;
use crate::time::Instant;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// When; never before the time of an earlier input.
    pub at: Instant,
    /// What.
    pub event: Event,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time has passed. Due when [`Peer::deadline`](crate::peer::Peer::deadline) says so; a spurious
    /// one is harmless.
    Tick,
    /// A connection is open. On the election plane: the introduction has been written (`dialled`) or
    /// read (otherwise).
    LinkUp(LinkUp),
    /// A connection has ended, by the peer or the network. Not sent for links that the core hung up.
    LinkDown {
        /// Which.
        link: LinkId,
        /// How.
        cause: Cause,
    },
    /// A [`Dial`](crate::output::Output::Dial) came to nothing.
    DialFailed {
        /// The port that was dialled.
        plane: Plane,
        /// The server that was dialled.
        peer: ServerId,
    },
    /// A message has arrived on a link, in the order of that link.
    Received {
        /// Which.
        link: LinkId,
        /// What.
        message: Message,
    },
    /// This write and all before it are durable: a crash no longer undoes them.
    Persisted(Ticket),
    /// What the outside arbiter of a two-server ensemble says now.
    Oracle(bool),
    /// The operator asks a leader to give up its seat.
    StepDown,
    /// The server is to stop. Every link is hung up; nothing happens after.
    Shutdown,
}

/// A connection that has come up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkUp {
    /// Its number, never used before.
    pub link: LinkId,
    /// Which of the two ports it is on.
    pub plane: Plane,
    /// Whether we dialled it.
    pub dialled: bool,
    /// Who is at the other end: whom we dialled, or who introduced itself. None on a quorum link that
    /// was accepted: its first packet tells.
    pub peer: Option<ServerId>,
    /// Where the other end says it listens for elections, if it introduced itself with an address.
    pub advertised: Option<HostPort>,
    /// The other end's address as the network sees it; the port means nothing.
    pub remote: Option<core::net::IpAddr>,
}

/// The two ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plane {
    /// Notifications between all voters (3888 by convention).
    Election,
    /// Packets between a leader and its learners (2888 by convention).
    Quorum,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The peer closed it.
    Closed,
    /// It broke.
    Reset,
    /// The network stopped acknowledging.
    Silent,
    /// The peer sent what cannot be read; the driver closed it.
    Garbled,
}
