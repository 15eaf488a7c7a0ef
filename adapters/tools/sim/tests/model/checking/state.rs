//! A state of the ensemble, and what may happen in one.
//!
//! ```text
//!   servers (by number) · links, each way in order · dials · who led · what is committed · what was used
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};

use quorate_core::id::LinkId;
use quorate_core::input::Plane;
use quorate_core::timers::Timer;

use super::rules::Rule;

/// The most servers.
pub const MOST: usize = 5;
/// The most epochs, and the most generations, with the one before all.
pub(super) const EPOCHS: usize = 8;
/// Which message says that the other end is closed, and which queue is empty, and which history.
pub(super) const NONE: u32 = 0;

/// A connection between two servers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Its port, and who has dialled whom.
    pub key: Key,
    /// Which ends are open.
    pub up: [bool; 2],
    /// What is on the way to each end.
    pub inbound: [u32; 2],
}

/// What tells links apart: the port, who has dialled whom, and which of several between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The port.
    pub plane: Plane,
    /// The dialling server, and the accepting one.
    pub servers: [u8; 2],
    /// Their numbers for it: the least that is free.
    pub(super) slots: [u8; 2],
}

impl Key {
    /// The number by which one end knows the link.
    pub(super) fn id(&self, end: usize) -> LinkId {
        link_id(self.plane, self.servers[1 - end], self.slots[end])
    }

    fn word(&self) -> u64 {
        let [a, b] = self.servers.map(u64::from);
        let [s, t] = self.slots.map(u64::from);
        u64::from(self.plane == Plane::Quorum) << 32 | a << 24 | b << 16 | s << 8 | t
    }
}

/// The number by which a server knows a link with this peer.
pub(super) fn link_id(plane: Plane, peer: u8, slot: u8) -> LinkId {
    let plane = u64::from(plane == Plane::Quorum);
    LinkId(1 + u64::from(slot) + 8 * (u64::from(peer) + 8 * plane))
}

/// With whom a server has the link that it knows by this number.
pub(super) fn link_peer(link: LinkId) -> u8 {
    u8::try_from((link.0 - 1) / 8 % 8).unwrap_or(u8::MAX)
}

impl Link {
    /// Who is at the other end of what this server knows by that number.
    pub fn other(&self, server: usize, link: LinkId) -> Option<usize> {
        let end = self.end(server, link)?;
        Some(usize::from(self.key.servers[1 - end]))
    }

    pub(super) fn end(&self, server: usize, link: LinkId) -> Option<usize> {
        (0..2).find(|end| {
            self.up[*end]
                && usize::from(self.key.servers[*end]) == server
                && self.key.id(*end) == link
        })
    }
}

/// What a run has used of what a [`Scope`] allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spent {
    /// Crashes.
    pub crashes: u8,
    /// Links that broke, and dials that failed.
    pub breaks: u8,
    /// Deadlines that passed without need.
    pub timeouts: u8,
    /// Time-outs after which a server asked to lead, in elections by generation.
    pub candidacies: u8,
    /// Transactions that were asked for.
    pub transactions: u8,
    /// Changes of the membership that were asked for.
    pub changes: u8,
    /// Notifications that were lost, repeated or overtaken, where that is counted.
    pub mischief: u8,
}

/// A state of the ensemble.
#[derive(Clone, PartialEq, Eq)]
pub struct State {
    /// The servers.
    pub servers: [u32; MOST],
    /// The links, in the order of their keys.
    pub links: Vec<Link>,
    /// The dials under way: bits by plane, server and peer.
    pub(super) dials: u64,
    /// Who was established in each epoch: its number plus one.
    pub leaderships: [u8; EPOCHS],
    /// Who was elected in each generation: its number plus one.
    pub led: [u8; EPOCHS],
    /// Which history the leader of each epoch has brought into it.
    pub brought: [u32; EPOCHS],
    /// Which history is committed.
    pub committed: u32,
    /// What was used.
    pub spent: Spent,
    /// What was broken.
    pub broken: Option<Rule>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for pair in self.servers.chunks(2) {
            let low = u64::from(pair[0]);
            hasher.write_u64(pair.get(1).map_or(low, |high| low | u64::from(*high) << 32));
        }
        for link in &self.links {
            let up = u64::from(link.up[0]) | u64::from(link.up[1]) << 1;
            hasher.write_u64(link.key.word() | up << 40);
            hasher.write_u64(u64::from(link.inbound[0]) | u64::from(link.inbound[1]) << 32);
        }
        hasher.write_u64(self.dials);
        hasher.write_u64(u64::from_le_bytes(self.leaderships));
        hasher.write_u64(u64::from_le_bytes(self.led));
        self.brought.iter().for_each(|history| hasher.write_u32(*history));
        let Spent { crashes, breaks, timeouts, candidacies, transactions, changes, mischief } =
            self.spent;
        hasher.write_u32(self.committed);
        hasher.write_u64(u64::from_le_bytes([
            crashes,
            breaks,
            timeouts,
            transactions,
            mischief,
            candidacies,
            changes,
            0,
        ]));
        self.broken.hash(hasher);
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "servers {:?}, {} links", self.servers, self.links.len())
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The next message comes to this end.
    Deliver(Key, u8),
    /// A notification is lost.
    Lose(Key, u8),
    /// A notification comes, and will come again.
    Repeat(Key, u8),
    /// The second notification comes before the first.
    Overtake(Key, u8),
    /// This end learns that the other is closed, and what was under way is lost.
    Cut(Key, u8),
    /// The next write of a server is durable.
    Write(u8),
    /// A deadline of a server passes.
    Due(u8, Timer),
    /// A dial is answered.
    Dial(u8, Plane, u8),
    /// A dial of a server that runs comes to nothing.
    Miss(u8, Plane, u8),
    /// A server ends; so many of its writes under way are durable.
    Crash(u8, u8),
    /// It starts again.
    Start(u8),
    /// A link breaks.
    Break(Key),
    /// A client asks the leader for a transaction.
    Ask(u8),
    /// An operator asks the leader for the next of the changes.
    Change(u8),
    /// The snapshot that a server sends is out.
    Stream(u8),
}

impl Action {
    /// Whether it is nobody's duty to happen.
    pub const fn is_fault(&self) -> bool {
        match self {
            Self::Deliver(..)
            | Self::Write(_)
            | Self::Due(..)
            | Self::Dial(..)
            | Self::Start(_)
            | Self::Stream(_) => false,
            Self::Lose(..)
            | Self::Repeat(..)
            | Self::Overtake(..)
            | Self::Cut(..)
            | Self::Miss(..)
            | Self::Crash(..)
            | Self::Break(_)
            | Self::Ask(_)
            | Self::Change(_) => true,
        }
    }
}
