//! Why leadership is over, or does not come.

use std::time::Duration;

use thiserror::Error;

/// Why leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another leader may be in office already.
    #[error("leadership is over, and another may lead already")]
    Deposed,
    /// Whoever confirms leadership is out of reach. Nobody else leads before what
    /// [`lease`](crate::Leadership::lease) has said last; by then it is confirmed again, or lost for good.
    #[error("leadership is not confirmed at the moment")]
    Unconfirmed,
    /// The seat is to be given up; it is kept until the guards are gone.
    #[error("leadership is about to be given up")]
    Leaving,
    /// Whoever stood for it has ended: the server, or the candidate.
    #[error("leadership is over: whoever stood for it has ended")]
    Ended,
}

/// Why there is no leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LeadershipError {
    /// Whoever stood for it has ended: the server, or the candidate.
    #[error("nobody stands for leadership here any more")]
    Ended,
    /// It did not come to lead in time.
    #[error("leadership did not come within {0:?}")]
    Elapsed(Duration),
}
