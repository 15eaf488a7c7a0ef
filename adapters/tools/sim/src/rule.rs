//! The rules that a simulation checks, and the violation that it ends with.

use std::fmt;

use quorate_core::id::ServerId;

/// What was broken; the table on the page of the crate tells what each holds.
///
/// The specification of Zab in TLA+ that comes with ZooKeeper (`zookeeper-specifications`) has eight safety properties,
/// named as in the Zab paper. Each of them is checked here, most of them finer: not only where a transaction is
/// delivered, but where it is logged, acknowledged and proposed.
///
/// | property | rule here |
/// |---|---|
/// | `Leadership` | [`Leadership`](Self::Leadership): of established leaders, and of elected and promised ones as well |
/// | `PrefixConsistency`, `Agreement`, `TotalOrder` | [`PrefixConsistency`](Self::PrefixConsistency): each server applies a prefix of one sequence, from which all three follow |
/// | `Integrity` | [`Integrity`](Self::Integrity): of everything logged, not only of what is delivered |
/// | `LocalPrimaryOrder` | [`PrimaryIntegrity`](Self::PrimaryIntegrity) where the leader proposes, [`Contiguous`](Self::Contiguous) where a server logs, [`PrefixConsistency`](Self::PrefixConsistency) where it delivers |
/// | `GlobalPrimaryOrder` | [`PrimaryIntegrity`](Self::PrimaryIntegrity) and [`PrefixConsistency`](Self::PrefixConsistency), in the same way |
/// | `PrimaryIntegrity` | [`PrimaryIntegrity`](Self::PrimaryIntegrity): a leader proposes only behind all that was committed in earlier epochs |
///
/// The other rules have no counterpart there. They hold of disks, bytes, clients, leases and the boundary of a server,
/// which the specification leaves out, or tell a mistake earlier than the property that it would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `Leadership`: two leaders of one epoch, established or promised by a quorum, or one that may not lead.
    Leadership,
    /// A promise that the disk does not hold. No counterpart.
    Promise,
    /// A disk that went back. No counterpart.
    Durability,
    /// A server that refuses to start after nothing worse than a crash. No counterpart.
    Start,
    /// A decision without a quorum. No counterpart.
    Quorum,
    /// A leader that lacks history. No counterpart.
    Newest,
    /// A round that went back. No counterpart.
    Rounds,
    /// A round that ended at once, though some that it needs go on for a while. No counterpart.
    Haste,
    /// A learner that serves without an established leader of its epoch. No counterpart.
    Service,
    /// An output that makes no sense. No counterpart.
    Boundary,
    /// A message that does not survive its bytes. No counterpart.
    Codec,
    /// A server that spins, or stopped. No counterpart.
    Progress,
    /// `Integrity`: a transaction that no established leader of its epoch has proposed, or two of one zxid.
    Integrity,
    /// A committed transaction that is not on a quorum of disks, is missing at a leader, or is cut. No counterpart.
    Committed,
    /// `PrefixConsistency`, `Agreement`, `TotalOrder`: a server that applies something else than the next of the one
    /// committed sequence, or before it is committed.
    PrefixConsistency,
    /// An acknowledgement of NEWLEADER without the leader's history. No counterpart.
    Synchronised,
    /// A log with a hole: `LocalPrimaryOrder` of what is logged.
    Contiguous,
    /// A snapshot that holds something else than its label says. No counterpart.
    Snapshot,
    /// A read that misses what was acknowledged before. No counterpart.
    Read,
    /// A client was told what is not so. No counterpart.
    Outcome,
    /// Work that only one may do begins at a leader while another can still count on its lease; or a voter
    /// helps to establish a leader while it is bound to another. No counterpart.
    Lease,
    /// Work that only one may do begins with a token that is not higher than those before. No counterpart.
    Token,
    /// Something was sent that its receiver has to refuse. No counterpart.
    Conduct,
    /// `PrimaryIntegrity`, and `LocalPrimaryOrder` and `GlobalPrimaryOrder` where they begin: a leader that proposes out of
    /// order, or before it has delivered what earlier leaders committed.
    PrimaryIntegrity,
    /// A request that came to pass twice. No counterpart.
    Once,
    /// Reads and writes of a cell that no order explains. No counterpart.
    Linear,
    /// A change of the membership in a server's history that is neither seen nor in force, or an older one that is
    /// not in force; or one in force that was never committed. No counterpart.
    Membership,
    /// A link between two servers that both live and can reach each other ends because a non-member claims to be one of
    /// them. No counterpart.
    Claims,
    /// A server that heaps things up. No counterpart.
    Bounds,
    /// A session's replies are not in the order of its requests. No counterpart, nor have those below: they are what
    /// ZooKeeper promises its clients.
    ReplyOrder,
    /// A session is shown an older state than before, on this connection or another, or one that its server has not
    /// applied.
    View,
    /// A session is not shown what it has written.
    OwnWrite,
    /// A sync that does not show what any client was shown before.
    SyncPoint,
    /// An event behind a reply that shows its change, events out of order, or one that nothing has caused.
    EventOrder,
    /// A change that is watched and not told, on this connection or over a reconnect.
    Watch,
    /// An ephemeral node without its session.
    Ephemeral,
    /// A session that ends although it was heard in time, or that is said not to be there.
    Expiry,
    /// A session that lives though it was not heard for long.
    Silence,
    /// A session that writes, or is welcomed, behind its end; or an id that comes twice.
    Closed,
    /// A request that was refused, and has changed something.
    Multi,
    /// A reply that says what is not so.
    Reply,
    /// A server whose tree or sessions are not those of the committed history.
    SameTree,
    /// A write by a connection that its session has left for another server, or that was carried out behind the welcome on a
    /// newer one.
    Owner,
    /// A session was permitted what a node's access list forbids.
    Access,
    /// A quota counts something else than is there.
    Quota,
    /// A transaction is earlier than the one before it of the same leader. No counterpart: ZooKeeper's go by the wall clock.
    Times,
    /// A container or a TTL node was removed that was not due, or stays though it is.
    Due,
    /// A server of ZooKeeper is told of a commit of its own, or a SYNC, for which the head of its queue does not wait; or
    /// never of what the head waits for.
    Paired,
    /// Replies are written on to a client that does not read.
    HeldBack,
    /// A server that serves, about to stop or not, ends a connection in the middle of what its client asks.
    Unanswered,
    /// What ends servers of ZooKeeper is passed on to one by a server of ours, or has an effect.
    Poison,
}

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule:?} broken by server {server}: {detail}")]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The server that broke it.
    pub server: ServerId,
    /// How.
    pub detail: String,
}

pub(crate) fn broken<T>(rule: Rule, server: ServerId, detail: String) -> Result<T, Violation> {
    Err(Violation { rule, server, detail })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
