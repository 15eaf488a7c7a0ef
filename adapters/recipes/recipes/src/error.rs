//! The errors of a candidate: why it cannot start, why its store fails, why a question has no answer.

use std::time::Duration;

use quorate_core::recipe::{ConfigError, Failure};
use thiserror::Error;

/// Why a candidate cannot start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address of a server of the store is missing or empty.
    #[error("no store to elect through: the address of a server is missing")]
    NoStore,
    /// No election can be held under this path or key.
    #[error("{path:?} is no place for an election: {fault}")]
    Path {
        /// The path or key.
        path: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// What is asked for belongs to a session of the candidate's own, and this one stands in another's.
    #[error("{0} cannot be had in a session that is not the candidate's own")]
    NotOwnSession(&'static str),
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// The system gives no random numbers, which tell candidates apart.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
}

/// Why no election can be held under a path or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum PathFault {
    /// The empty prefix: every key begins with it.
    #[error("it is empty, and would be all keys")]
    Empty,
    /// The root of the store.
    #[error("the root of all nodes cannot be an election's")]
    Root,
    /// A path of ZooKeeper that does not begin with a slash.
    #[error("a path of ZooKeeper begins with /")]
    NotAbsolute,
    /// A prefix that ends with the slash that is appended to it.
    #[error("a / is put behind it, and stands there already")]
    TrailingSlash,
    /// Two slashes in a row, or one at the end.
    #[error("there is nothing between two /, or behind the last")]
    EmptyName,
    /// A name that is `.` or `..`.
    #[error("ZooKeeper knows no relative paths")]
    Relative,
    /// A character that ZooKeeper does not allow in names.
    #[error("it has a control character")]
    ControlCharacter,
}

/// Why the store does not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// It did not answer in time.
    #[error("the store did not answer within {0:?}")]
    Elapsed(Duration),
    /// It does not allow what an election needs.
    #[error("the store does not allow it")]
    Denied,
    /// It does not accept the credentials.
    #[error("authentication failed")]
    Unauthenticated,
    /// The session is over; another one is opened, unless it was not the candidate's own.
    #[error("the session is over")]
    Expired,
    /// Something else.
    #[error("the store refused it: {0}")]
    Refused(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unknown => Self::Unreachable(failure.to_string()),
            Failure::Denied => Self::Denied,
            Failure::Unauthenticated => Self::Unauthenticated,
            Failure::Expired => Self::Expired,
            Failure::Absent | Failure::Exists | Failure::Conflict | Failure::Rejected => {
                Self::Refused(failure.to_string())
            }
        }
    }
}

/// Why the question which candidates compete has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] StartError),
    /// The store does not do what it should.
    #[error(transparent)]
    Store(#[from] StoreError),
}
