//! Numbers that cannot be mixed up: servers, links and write tickets.
//!
//! A server id names a member of the ensemble for as long as it exists. Link numbers and tickets are
//! never used twice, so that nothing which belongs to an old connection or an old write can be
//! credited to a new one.

use core::fmt;

/// A member of the ensemble (ZooKeeper's `myid`, *sid*).
///
/// Configuration accepts 1..=255, because the id is the top byte of ZooKeeper session ids; the wire
/// carries a signed 64-bit number and ids compare as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub i64);

impl ServerId {
    /// The id that stands for no server: what an observer proposes, so that it never wins.
    pub const NONE: Self = Self(i64::MIN);
    /// The id with which ZooKeeper observers may introduce themselves without having one of their own.
    pub const ANONYMOUS_OBSERVER: Self = Self(i64::MAX);
    /// The ids that configuration accepts.
    pub const CONFIGURABLE: core::ops::RangeInclusive<i64> = 1..=255;
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE { f.write_str("nobody") } else { self.0.fmt(f) }
    }
}

/// One TCP connection, numbered by the driver; a number never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A caller at this server.
    Here,
    /// A client of the service at this server.
    Service,
    /// A learner.
    Learner(LinkId),
}

/// One read that waits for its turn, numbered by the driver; a number never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// One question whether those who do what only a leader may are gone, numbered by the core; a number never
/// comes back, so an answer to an earlier one is none to this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseId(pub u64);

/// One write to the disk, numbered by the core in ascending order; a number never comes back.
///
/// Reporting a ticket as durable reports every earlier one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ticket {}", self.0)
    }
}
