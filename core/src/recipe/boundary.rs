//! The boundary that both recipes share: attempts, tokens, failures, and what guards have to be told.

use core::fmt;

use bytes::Bytes;
use thiserror::Error;

use crate::time::Instant;

/// One call on the store; a number never comes back.
///
/// The answer to a call carries its number, and so does the watch that it set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// A session of ZooKeeper or a lease of etcd: the nodes of one session vanish together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A fencing token: a number that grows with each leadership, by the count of the store.
///
/// ZooKeeper's creation zxid, etcd's revision. The resource that is guarded by leadership has to refuse a token
/// smaller than the greatest it has seen (Kleppmann: *How to do distributed locking*, 2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The leader, as the store showed it at some time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// What it calls itself: any bytes.
    pub identity: Bytes,
    /// Its token. Of a leader that was designated: the operator's number.
    pub token: Token,
    /// It was designated by hand, not elected.
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
    /// The node has another version than expected.
    #[error("the version is another one")]
    Conflict,
    /// It is not allowed.
    #[error("the store does not allow it")]
    Denied,
    /// The store does not accept the credentials.
    #[error("authentication failed")]
    Unauthenticated,
    /// The session or lease is over for good.
    #[error("the session is over")]
    Expired,
    /// Something else; another attempt at once would fail, too.
    #[error("the store refused it")]
    Rejected,
}

/// Why leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Loss {
    /// The store has not confirmed it for so long that another candidate may lead, by our own clock.
    #[error("the store has not confirmed it in time")]
    Unconfirmed,
    /// The session or lease is over.
    #[error("the session is over")]
    Expired,
    /// The node that it rested on was deleted.
    #[error("the node was deleted")]
    Deleted,
    /// The node that it rested on belongs to another candidate.
    #[error("the node belongs to another candidate")]
    Taken,
    /// It was given up in order.
    #[error("it was given up")]
    Stopped,
}

/// What becomes of the leadership of this process: what its guards have to be told.
///
/// ```text
///   Taken ──► Confirmed ──► Suspended ──► Confirmed ──► Release ──► Lost(Stopped)
///     └──────────┴──────────────┴─────────────┴────────────┴──────► Lost(…)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeadershipChange {
    /// This process leads.
    Taken {
        /// The fencing token, greater than that of every earlier leadership.
        token: Token,
        /// Until when that is confirmed, by our own monotonic clock. A guard compares it each time it is
        /// asked: this process may have been paused, and have learnt nothing since.
        until: Instant,
    },
    /// It is confirmed for longer, and again if it was [suspended](Self::Suspended).
    Confirmed {
        /// Until when. That is before an earlier time of the same leadership only where it was suspended, and the
        /// store has given the session a shorter time-out since.
        until: Instant,
    },
    /// Contact with the store is lost: leadership is not confirmed. Before the last `until` either it is
    /// confirmed again, or it is lost; earlier, if the session is taken up again with a shorter time-out.
    Suspended,
    /// Leadership is to be given up. It is kept until the leader's work has ended, and `Released` was reported.
    Release,
    /// Leadership is over. No new attempt is made until `Released` was reported; without guards that is due at once.
    Lost(Loss),
}

/// Why a candidate cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ConfigError {
    /// Other candidates could not tell which one leads.
    #[error("a candidate needs an identity, and it is empty")]
    NoIdentity,
    /// A lease that is over when it begins.
    #[error("a lease has to be longer than its margin and than the time between two renewals")]
    TooShort,
    /// Two bounds are the wrong way round, or zero.
    #[error("the shortest back-off is zero, or longer than the longest")]
    Backoff,
}
