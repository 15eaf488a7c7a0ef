//! The rules, and how it is told that one was broken.

use std::fmt;

use quorate_core::id::ServerId;

/// What was broken; see the tables of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Two leaders of one epoch, established or promised by a quorum, or one that may not lead.
    Leadership,
    /// A promise that the disk does not hold.
    Promise,
    /// A disk that went back.
    Durability,
    /// A server that refuses to start after nothing worse than a crash.
    Start,
    /// A decision without a quorum.
    Quorum,
    /// A leader that lacks history.
    Newest,
    /// A round that went back.
    Rounds,
    /// A round that ended at once, though some that it needs go on for a while.
    Haste,
    /// A learner that serves under nobody.
    Service,
    /// An output that makes no sense.
    Boundary,
    /// A message that does not survive its bytes.
    Codec,
    /// A server that spins, or stopped.
    Progress,
    /// Two transactions of one zxid, or one that no leader proposed.
    Payload,
    /// A committed transaction that is not on a quorum of disks, is missing at a leader, or is cut.
    Committed,
    /// A server that applies what it must not.
    Applied,
    /// An acknowledgement of NEWLEADER without the leader's history.
    Synchronised,
    /// A log with a hole.
    Contiguous,
    /// A snapshot that holds something else than its label says.
    Snapshot,
    /// A read that misses what was acknowledged before.
    Read,
    /// A client was told what is not so.
    Outcome,
    /// Work that only one may do begins at a leader while another can still count on its lease; or a voter
    /// helps to establish a leader while it is bound to another.
    Lease,
    /// Work that only one may do begins with a token that is not higher than those before.
    Token,
    /// Something was sent that its receiver has to refuse.
    Conduct,
    /// A leader that proposes out of order, or before it has delivered what earlier ones committed.
    Order,
    /// A request that came to pass twice.
    Once,
    /// Reads and writes of a cell that no order explains.
    Linear,
    /// A change of the membership in a server's history that is neither seen nor in force, or an older one that is
    /// not in force; or one in force that was never committed.
    Membership,
    /// A link between two servers that both live and can reach each other ends because somebody else claims to be one
    /// of them.
    Claims,
    /// A server that heaps things up.
    Bounds,
}

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule:?} broken by server {server}: {detail}")]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// By whom.
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
