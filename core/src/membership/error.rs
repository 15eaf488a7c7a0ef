//! Why a set of lines is no membership.
//!
//! Each says which line, or which servers, and what is wrong: an operator reads it. What is wrong within one
//! line says [`LineError`]; what is done about it is up to the caller that reads the lines.

use alloc::format;
use alloc::string::String;
use core::fmt;

use thiserror::Error;

use crate::address::HostPort;
use crate::id::ServerId;
use crate::membership::member::{LineError, TEXT_BYTES_MAX, excerpt};
use crate::properties::EscapeError;

/// Why a set of lines is no membership.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MembershipError {
    /// The text is longer than [`Membership::TEXT_BYTES_MAX`](super::Membership::TEXT_BYTES_MAX).
    #[error("the membership takes {bytes} bytes, at most {} are possible", TEXT_BYTES_MAX)]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The text is no UTF-8.
    #[error("byte {offset} of the membership is not UTF-8")]
    NotText {
        /// Where it ceases to be.
        offset: usize,
    },
    /// A line breaks the rules of properties files.
    #[error(transparent)]
    Escape(#[from] EscapeError),
    /// A line is none of the membership's.
    #[error("line {line}: {key:?} is not a key of a membership")]
    UnknownKey {
        /// Its number, from 1.
        line: usize,
        /// Its key.
        key: String,
    },
    /// A line cannot be read.
    #[error("{}{key}={value}: {error}", Numbered(*line))]
    Line {
        /// Its number, from 1; 0 if it never stood in a text.
        line: usize,
        /// Its key.
        key: String,
        /// Its value, shortened if it is long.
        value: String,
        /// What is wrong with it.
        #[source]
        error: LineError,
    },
    /// There is no voter.
    #[error("none of the {members} servers is a participant, so none could vote")]
    NoParticipants {
        /// How many servers there are.
        members: usize,
    },
    /// Two listeners of one or two servers would share a port.
    #[error("server.{first} and server.{second} both use {address}", first = first.0, second = second.0)]
    DuplicatePort {
        /// The host, in lower case, and the port.
        address: HostPort,
        /// The server with the smaller id.
        first: ServerId,
        /// The other one, or the same.
        second: ServerId,
    },
    /// A group names a server that does not exist.
    #[error("group.{group} names server {id}, but there is no server.{id}")]
    UnknownInGroup {
        /// The server.
        id: ServerId,
        /// The group.
        group: i64,
    },
    /// A group names a server that has no vote to count.
    #[error("group.{group} names server {id}, which is an observer and has no vote")]
    ObserverInGroup {
        /// The server.
        id: ServerId,
        /// The group.
        group: i64,
    },
    /// There are groups or weights, but this participant is in no group.
    #[error("server.{id} is in no group; with groups or weights every participant must be in one")]
    InNoGroup {
        /// The server.
        id: ServerId,
    },
    /// A weight belongs to no server.
    #[error("weight.{id} is set, but there is no server.{id}")]
    UnknownWeight {
        /// The server.
        id: ServerId,
    },
    /// The sum of the weights of a group exceeds a signed 64-bit number.
    #[error("the weights of group.{group} add up to more than {}", i64::MAX)]
    GroupTooHeavy {
        /// The group.
        group: i64,
    },
    /// All weights are 0, so that nothing could ever be a quorum.
    #[error("no group has any weight, so no quorum is possible")]
    NoWeight,
}

impl MembershipError {
    /// The key of a configuration line that this error is about, for those who know the numbers of
    /// the lines; none if it is about the whole.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::UnknownKey { key, .. } | Self::Line { key, .. } => Some(key.clone()),
            Self::DuplicatePort { second: id, .. } | Self::InNoGroup { id } => {
                Some(format!("server.{}", id.0))
            }
            Self::UnknownInGroup { group, .. }
            | Self::ObserverInGroup { group, .. }
            | Self::GroupTooHeavy { group } => Some(format!("group.{group}")),
            Self::UnknownWeight { id } => Some(format!("weight.{}", id.0)),
            Self::TooLong { .. }
            | Self::NotText { .. }
            | Self::Escape(_)
            | Self::NoParticipants { .. }
            | Self::NoWeight => None,
        }
    }

    pub(super) fn line(line: usize, key: String, value: &str, error: LineError) -> Self {
        Self::Line { line, key: excerpt(&key), value: excerpt(value), error }
    }
}

/// Displays "line N: " for a line that has a number.
struct Numbered(usize);

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "line {}: ", self.0) }
    }
}
