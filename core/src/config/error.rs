//! Why a configuration cannot work: the field, what it says, and what would do.

use core::time::Duration;

use thiserror::Error;

use crate::id::ServerId;

/// Why a [`Config`](crate::config::Config) cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A duration below a millisecond would make a server spin.
    #[error("{field} is {value:?}, at least 1 ms is needed")]
    TooShort {
        /// The field of [`Timing`](crate::config::Timing).
        field: &'static str,
        /// What it says.
        value: Duration,
    },
    /// A limit of no ticks gives up before it begins.
    #[error("{field} is 0 ticks, at least 1 is needed")]
    NoTicks {
        /// The field of [`Timing`](crate::config::Timing).
        field: &'static str,
    },
    /// The first wait is longer than the longest.
    #[error("{field}_min is {min:?}, more than {field}_max, which is {max:?}")]
    MinAboveMax {
        /// The pair of fields of [`Timing`](crate::config::Timing).
        field: &'static str,
        /// The first wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
    },
    /// A bound of 0, which would admit nothing.
    #[error("the limit of {field} is 0, at least 1 is needed")]
    NoRoom {
        /// The field of [`Limits`](crate::config::Limits) or [`HistoryLimits`](crate::config::HistoryLimits).
        field: &'static str,
    },
    /// Transactions that others could not read, or too short for anything.
    #[error("transactions of {bytes} bytes at most, {min} to {max} would do")]
    TxnBytes {
        /// What [`Limits::txn_bytes`](crate::config::Limits::txn_bytes) says.
        bytes: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// A lease that pings cannot renew in time, or that outlasts the patience of others.
    #[error("the lease is {lease:?}, {min:?} to {max:?} would do (a tick to syncLimit)")]
    Lease {
        /// What it says.
        lease: Duration,
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A leader that says so seldom that it lives is given up though it does.
    #[error(
        "the heartbeat is {heartbeat:?}, at most {max:?} would do (half of the shortest time-out)"
    )]
    Heartbeat {
        /// What it says.
        heartbeat: Duration,
        /// The longest.
        max: Duration,
    },
    /// Negative ids and the largest belong to observers without an id.
    #[error("server id {0} is reserved")]
    ReservedId(ServerId),
}
