//! The words that both recipes use with their adapters.

use core::fmt;

use bytes::Bytes;
use thiserror::Error;

use crate::time::Instant;

/// One call on the store; a number never comes back.
///
/// Whatever answers a call carries its number, and so does a watch that was set by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// Whose nodes vanish together: a session of ZooKeeper, a lease of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A fencing token: a number that every later term's is greater than, by the count of the store.
///
/// ZooKeeper's creation zxid, etcd's revision. A store that is guarded by leadership has to refuse a token
/// that is smaller than one it has seen (Kleppmann: *How to do distributed locking*, 2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who leads, as somebody was told at some time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// What it calls itself: any bytes.
    pub identity: Bytes,
    /// The token of its term. Of one that was designated: what the operator gave.
    pub token: Token,
    /// It was named by hand, and not elected.
    pub designated: bool,
}

/// How a call on the store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Failure {
    /// No answer came: the connection was lost, or it took too long. It may have taken effect, or still do.
    #[error("no answer came: it may or may not have taken effect")]
    Unknown,
    /// There is no such node.
    #[error("there is no such node")]
    Absent,
    /// There is such a node already.
    #[error("there is such a node already")]
    Exists,
    /// It is not of the version that it should be.
    #[error("the version is another one")]
    Conflict,
    /// It is not allowed.
    #[error("the store does not allow it")]
    Denied,
    /// The store does not take us for whom we say we are.
    #[error("authentication failed")]
    Unauthenticated,
    /// The session or lease is over for good.
    #[error("the session is over")]
    Expired,
    /// Something else that asking again at once does not cure.
    #[error("the store refused it")]
    Rejected,
}

/// Why a term of leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Loss {
    /// The store has not confirmed it for so long that somebody else may lead, by our own clock.
    #[error("the store has not confirmed it in time")]
    Unconfirmed,
    /// The session or lease is over.
    #[error("the session is over")]
    Expired,
    /// What it rested on was deleted.
    #[error("the node was deleted")]
    Deleted,
    /// What it rested on belongs to somebody else.
    #[error("the node belongs to somebody else")]
    Taken,
    /// It was given up in good order.
    #[error("it was given up")]
    Stopped,
}

/// What becomes of the leadership of this process: what a guard has to know.
///
/// ```text
///   Taken ──► Confirmed ──► Suspended ──► Confirmed ──► Release ──► Lost(Stopped)
///     └──────────┴──────────────┴─────────────┴────────────┴──────► Lost(…)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seat {
    /// This process leads.
    Taken {
        /// What tells this term from all others.
        token: Token,
        /// Until when that is confirmed, by our own monotonic clock. A guard compares it each time it is
        /// asked: this process may have been paused, and not heard of anything since.
        until: Instant,
    },
    /// It is confirmed for longer, and again if it was [suspended](Self::Suspended).
    Confirmed {
        /// Until when. That is before what was said earlier in this term only where it was suspended, and the
        /// store has given the session a shorter time-out since.
        until: Instant,
    },
    /// Contact with the store is lost: leadership is not confirmed. Before the last `until` either it is
    /// confirmed again, or it is lost; earlier, if the session is taken up again with a shorter time-out.
    Suspended,
    /// The seat is to be given up. It is kept until whoever does what only a leader may has ended that, and
    /// `Released` was said.
    Release,
    /// The term is over. Nothing new is tried until `Released` was said; say it at once if nobody is there.
    Lost(Loss),
}

/// Why a candidate cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ConfigError {
    /// Nobody could tell who leads.
    #[error("a candidate needs an identity, and it is empty")]
    NoIdentity,
    /// A lease that is over when it begins.
    #[error("a lease has to be longer than its margin and than the time between two renewals")]
    TooShort,
    /// Two bounds are the wrong way round, or zero.
    #[error("the shortest rest is zero, or longer than the longest")]
    Backoff,
}
