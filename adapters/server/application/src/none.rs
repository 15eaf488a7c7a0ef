//! No application: servers that only elect.

use core::iter;

use bytes::{Bytes, BytesMut};
use quorate_core::id::Origin;
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::prepared::{Facts, Prepared, Rejected};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::application::clients::{Host, NoClients};
use crate::application::{Application, Restore, RestoreError, Snapshot, SnapshotError};
use crate::framing::{Frame, Frames, frame};

/// Nothing is replicated: the servers elect a leader, and that is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoApplication;

/// The state of no application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

impl Snapshot for Nothing {
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
        frame(&mut iter::empty(), out)
    }
}

/// Makes sure that there is no state.
#[derive(Debug, Default)]
pub struct RestoreNothing(Frames);

impl Restore for RestoreNothing {
    type State = Nothing;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<Nothing>, RestoreError> {
        match self.0.next(bytes)? {
            None => Ok(None),
            Some(Frame::End) => Ok(Some(Nothing)),
            // A server that took over a state and forgot it could give none to the next learner.
            Some(Frame::Piece(_)) => Err(UnwantedState.into()),
        }
    }
}

/// A snapshot holds a state, and this server has no application for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is a state, and no application for it")]
pub struct UnwantedState;

impl Application for NoApplication {
    type Snapshot = Nothing;
    type Staged = Nothing;
    type Restore = RestoreNothing;
    type Effect = ();
    type Clients = NoClients;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn clients(&mut self, _: Host) -> NoClients {
        NoClients
    }

    fn prepare(&mut self, request: &Request, _: Origin, _: &Facts) -> Prepared {
        if request.op == Request::RECONFIGURE {
            return Prepared::reconfiguration(request);
        }
        Prepared::rejected(Rejected::UNIMPLEMENTED)
    }

    fn void(&mut self) {}

    fn apply(&mut self, _txn: &Txn) {}

    fn reply((): &()) -> Bytes {
        Bytes::new()
    }

    fn abandon(&mut self) {}

    fn snapshot(&self) -> Nothing {
        Nothing
    }

    fn restore(_label: Zxid) -> RestoreNothing {
        RestoreNothing::default()
    }

    fn staged_snapshot(_staged: &Nothing) -> Nothing {
        Nothing
    }

    fn adopt(&mut self, _staged: Nothing) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_application_takes_over_no_state() {
        let mut bytes = BytesMut::new();
        assert!(!NoApplication.snapshot().next(&mut bytes).unwrap());
        let restore = |mut bytes: &[u8]| NoApplication::restore(Zxid::ZERO).push(&mut bytes);
        assert_eq!(restore(&bytes).unwrap(), Some(Nothing));
        assert!(restore(b"\0\0\0\x01\x01\0\0\0\0").is_err());
    }
}
