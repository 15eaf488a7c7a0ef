//! What a leader's application makes of a request: the transaction, or why there is none.
//!
//! ```text
//!   Request ──► prepare (above the core) ──► Prepared ──► Draft ──► the log
//! ```
//!
//! Values only. They stand here, since both what judges requests and what carries them to the core speak of them.

use core::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use crate::message::Request;
use crate::txn::Txn;
use crate::zxid::Zxid;

/// A transaction but for its number and who asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prepared {
    /// The kind of transaction, ZooKeeper's operation code.
    pub kind: i32,
    /// Its body.
    pub body: Bytes,
}

impl Prepared {
    /// The kind of a transaction that says that a request was refused.
    pub const REJECTED: i32 = Txn::REJECTED;

    /// A request for a [reconfiguration](Request::RECONFIGURE) that the application has nothing against: the
    /// server makes the transaction of it, or refuses it. The transaction is applied like any other, so that
    /// an application that keeps count of what it has prepared finds it there; there is nothing to do.
    pub fn reconfiguration(request: &Request) -> Self {
        Self { kind: Txn::RECONFIGURATION, body: request.body.clone() }
    }

    /// A request for a reconfiguration whose client may not ask for one: it is refused for this reason, unless something
    /// else is wrong with it.
    pub fn reconfiguration_denied(request: &Request, reason: Rejected) -> Self {
        let mut body = BytesMut::with_capacity(4 + request.body.len());
        body.put_i32(reason.0);
        body.put_slice(&request.body);
        Self { kind: Txn::RECONFIGURATION_DENIED, body: body.freeze() }
    }

    /// A refused request: a transaction that changes nothing and carries the reason, so that the answer
    /// comes in order with all others.
    pub fn rejected(reason: Rejected) -> Self {
        Self { kind: Self::REJECTED, body: Bytes::copy_from_slice(&reason.0.to_be_bytes()) }
    }
}

/// What an application prepares a request with, beside its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// The number that the transaction will have.
    pub zxid: Zxid,
    /// The time of the transaction in milliseconds since 1970, which it carries, too: see [`TxnTimes`].
    pub now_ms: i64,
    /// How many bytes the body of the transaction may have.
    pub bytes_max: usize,
}

/// The times of one leader's transactions, in milliseconds since 1970.
///
/// Clients read them as those of nodes (`ctime`, `mtime`). They are the leader's wall clock, but that can be set back, and then
/// what happened later would be earlier: of one leader's transactions none has an earlier time than the one before. Another
/// leader goes by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnTimes {
    last_ms: Option<i64>,
}

impl TxnTimes {
    /// Those of a leader that has made no transaction.
    pub const fn new() -> Self {
        Self { last_ms: None }
    }

    /// The time of the next transaction, where the wall clock shows this.
    pub fn next(&mut self, wall_ms: i64) -> i64 {
        let time_ms = self.last_ms.map_or(wall_ms, |last_ms| last_ms.max(wall_ms));
        self.last_ms = Some(time_ms);
        time_ms
    }

    /// The leadership is over.
    pub const fn forget(&mut self) {
        self.last_ms = None;
    }
}

/// The application refuses a request, with a number that says why. ZooKeeper's are negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejected(pub i32);

impl Rejected {
    /// ZooKeeper's code for an operation that is not implemented.
    pub const UNIMPLEMENTED: Self = Self(-6);
    /// What the request became is longer than a transaction may be. It is ZooKeeper's code for whatever
    /// cannot be written, or read.
    pub const TOO_LONG: Self = Self(Txn::TOO_LONG);

    /// The reason that a transaction carries, if it is that of a refused request.
    pub fn of(txn: &Txn) -> Option<Self> {
        if txn.header.kind != Prepared::REJECTED {
            return None;
        }
        let code = txn.body.first_chunk().copied().map(i32::from_be_bytes);
        Some(Self(code.unwrap_or_default()))
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::TOO_LONG {
            return f.write_str(
                "it cannot be read, or the transaction that comes of it is longer than one may be \
                 (jute.maxbuffer and its extrasize)",
            );
        }
        write!(f, "refused by the application: {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_one_leader_never_go_back() {
        let mut times = TxnTimes::new();
        assert_eq!([7, 9, 3, 9, 10].map(|wall_ms| times.next(wall_ms)), [7, 9, 9, 9, 10]);
        times.forget();
        assert_eq!([-3, -4].map(|wall_ms| times.next(wall_ms)), [-3, -3], "a clock before 1970");
    }
}
