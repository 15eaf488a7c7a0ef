//! Proposals and reads as callers see them: what is asked for, what comes of it, and why not.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_application::{Rejected, SET_DATA};
use quorate_core::message::Identity;
use quorate_core::reasons::{self, Refusal, TransferRefused};
use quorate_core::reconfiguration::Unchanged;
use quorate_core::zxid::Zxid;
use thiserror::Error;

/// What is proposed, see [`Server::propose`](crate::Server::propose).
///
/// For a [`StateMachine`](crate::StateMachine) it is its bytes: anything that becomes [`Bytes`] will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// ZooKeeper's operation code; `setData` where the application is not ZooKeeper's.
    pub op: i32,
    /// What is asked for.
    pub body: Bytes,
    /// The identities of the client for whom it is asked, if there is one.
    pub identities: Option<Vec<Identity>>,
}

impl<B: Into<Bytes>> From<B> for Proposal {
    fn from(body: B) -> Self {
        Self { op: SET_DATA, body: body.into(), identities: None }
    }
}

/// A request was agreed on, and its transaction applied at this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The number of the transaction.
    pub zxid: Zxid,
    /// What the application replied.
    pub reply: Bytes,
}

/// Why a request was not seen to be applied.
///
/// [`may_have_happened`](Self::may_have_happened) tells which it is: surely not, so that it can be
/// asked for again, or outcome unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// This server did not take it. It surely does not happen.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The application refused it, in its turn with all others. It surely does not happen.
    #[error("transaction {zxid}: {reason}")]
    Rejected {
        /// The transaction that says so.
        zxid: Zxid,
        /// Why.
        reason: Rejected,
    },
    /// The leadership ended under which it was proposed, and the next leader does not know the request. It surely does
    /// not happen.
    #[error("the leadership ended under which it was proposed; it did not happen")]
    Lost,
    /// No leader took it as long as there was patience, see
    /// [`ServerConfig::patience`](crate::ServerConfig::patience). It surely does not happen.
    #[error("waited {waited:?} for a leader that takes it; the last try: {last}")]
    Unserved {
        /// How long.
        waited: Duration,
        /// What came of the last try.
        last: Setback,
    },
    /// This server had ended before it took the request. It surely does not happen.
    #[error("this server has ended")]
    Ended,
    /// It was proposed, and its outcome is unknown: it may have happened, or still may.
    #[error("{0}; whether it happened is not known")]
    Unknown(UnknownOutcome),
}

impl ProposeError {
    /// Whether the request may have been carried out, or may still be.
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

impl ProposeError {
    /// What surely kept it from happening, and may not the next time.
    pub(crate) const fn setback(&self) -> Option<Setback> {
        match self {
            Self::Refused(Refusal::TooLong(_)) => None,
            Self::Refused(refusal) => Some(Setback::Refused(*refusal)),
            Self::Lost => Some(Setback::Lost),
            Self::Rejected { .. } | Self::Unserved { .. } | Self::Ended | Self::Unknown(_) => None,
        }
    }
}

/// What kept a request or a read from being served, and may not the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Setback {
    /// This server did not take it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The leadership ended under which it was proposed, and the next leader does not know it.
    #[error("the leadership ended under which it was proposed; it did not happen")]
    Lost,
    /// This server fell behind and is getting a snapshot.
    #[error("this server fell behind and is being brought up")]
    Behind,
}

/// Why it is unknown whether a request was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownOutcome {
    /// This server ended while the request was under way.
    #[error("this server ended")]
    Ended,
    /// This server was so far behind that it got a snapshot, which does not tell who asked for what.
    #[error("this server got a snapshot of the history that may contain it")]
    Snapshot,
    /// This server lost its connection to a leader that went on to lead.
    #[error("the connection to the leader was lost")]
    Disconnected,
    /// This server gave up its role, since its disk failed.
    #[error("the disk of this server failed")]
    Disk,
}

impl From<reasons::UnknownOutcome> for UnknownOutcome {
    fn from(doubt: reasons::UnknownOutcome) -> Self {
        match doubt {
            reasons::UnknownOutcome::Snapshot => Self::Snapshot,
            reasons::UnknownOutcome::Disconnected => Self::Disconnected,
        }
    }
}

/// Why a read was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// This server cannot tell what is newest now.
    #[error(transparent)]
    Refused(Refusal),
    /// This server fell behind and is getting a snapshot.
    #[error("this server fell behind and is being brought up")]
    Behind,
    /// This server could not tell what is newest as long as there was patience, see
    /// [`ServerConfig::patience`](crate::ServerConfig::patience).
    #[error("waited {waited:?} for a leader to read under; the last try: {last}")]
    Unserved {
        /// How long.
        waited: Duration,
        /// What came of the last try.
        last: Setback,
    },
    /// This server has ended.
    #[error("this server has ended")]
    Ended,
}

impl From<Refusal> for ReadError {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::Behind { Self::Behind } else { Self::Refused(refusal) }
    }
}

impl ReadError {
    /// What kept it from being answered, and may not the next time.
    pub(crate) const fn setback(&self) -> Option<Setback> {
        match self {
            Self::Refused(refusal) => Some(Setback::Refused(*refusal)),
            Self::Behind => Some(Setback::Behind),
            Self::Unserved { .. } | Self::Ended => None,
        }
    }
}

/// Why a [reconfiguration](crate::Server::reconfigure) was not seen to be in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The membership stays as it is.
    #[error(transparent)]
    Unchanged(#[from] Unchanged),
    /// The request came to nothing, or its outcome is unknown.
    #[error(transparent)]
    Propose(ProposeError),
}

impl From<ProposeError> for ReconfigureError {
    fn from(error: ProposeError) -> Self {
        let unchanged = match error {
            ProposeError::Rejected { reason, .. } => Unchanged::from_code(reason.0),
            ProposeError::Refused(_)
            | ProposeError::Lost
            | ProposeError::Unserved { .. }
            | ProposeError::Ended
            | ProposeError::Unknown(_) => None,
        };
        unchanged.map_or(Self::Propose(error), Self::Unchanged)
    }
}

/// Why a [snapshot](crate::Server::take_snapshot) that an operator asked for was not seen to be taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TakeSnapshotError {
    /// It could not be written.
    #[error("cannot take a snapshot: {0}")]
    Failed(Arc<str>),
    /// This server fell behind, and a snapshot of its leader's has taken the place of its history.
    #[error("a snapshot of the leader's took the place of this server's state meanwhile")]
    Replaced,
    /// This server has ended.
    #[error("this server has ended")]
    Ended,
}

impl TakeSnapshotError {
    /// There is no disk to write it to.
    pub(crate) fn disk_failed() -> Self {
        Self::Failed("the disk of this server failed".into())
    }
}

/// Why a [leadership transfer](crate::Server::transfer_leadership) did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The leader goes on leading, or this server does not lead.
    #[error(transparent)]
    Refused(#[from] TransferRefused),
    /// This server has ended.
    #[error("this server has ended")]
    Ended,
}
