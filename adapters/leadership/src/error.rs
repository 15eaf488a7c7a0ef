//! The errors of a guard: why leadership is over, or cannot be had.

use std::time::Duration;

use thiserror::Error;

/// Why leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another leader may be established already.
    #[error("leadership is over, and another may lead already")]
    Deposed,
    /// What confirms leadership (voters, a store) is out of reach. No other candidate leads before the time that
    /// [`lease`](crate::Leadership::lease) gave last; by then it is confirmed again, or lost for good.
    #[error("leadership is not confirmed at the moment")]
    Unconfirmed,
    /// Leadership is being given up; it is kept until the guards are dropped.
    #[error("leadership is about to be given up")]
    Leaving,
    /// The server or candidate that led has ended.
    #[error("leadership is over: the server or candidate that led has ended")]
    Ended,
}

/// Why leadership cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LeadershipError {
    /// The server or candidate that competed for it has ended.
    #[error("the server or candidate that competed for leadership has ended")]
    Ended,
    /// This candidate did not come to lead in time.
    #[error("leadership did not come within {0:?}")]
    Elapsed(Duration),
}
