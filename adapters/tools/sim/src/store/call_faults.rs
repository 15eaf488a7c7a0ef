//! Faults of single calls that a story asks for: which call, which way, lost or late.

use std::time::Duration;

use super::world::nanos;
use crate::call::Op;

/// Of which kind a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// Make the root.
    Root,
    /// Make a node.
    Create,
    /// List the nodes.
    List,
    /// Read a node.
    Read,
    /// Write a node that is there.
    Write,
    /// Delete a node.
    Delete,
    /// Be heard.
    Ping,
}

/// The way of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// To the store.
    Request,
    /// Back.
    Answer,
}

/// What becomes of a call there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// It is lost with its connection.
    Lost,
    /// It takes so much longer: a request holds up what is behind it, an answer comes whatever has become of its
    /// connection.
    Late(Duration),
}

impl CallKind {
    pub(super) fn is(self, op: &Op) -> bool {
        self == match op {
            Op::Root => Self::Root,
            Op::Create { .. } => Self::Create,
            Op::Write { .. } => Self::Write,
            Op::Delete { .. } => Self::Delete,
            Op::Read { .. } => Self::Read,
            Op::List { .. } => Self::List,
            Op::Ping => Self::Ping,
        }
    }
}

impl CallFault {
    /// How much longer it takes.
    pub(super) fn nanos(self) -> u64 {
        match self {
            Self::Lost => 0,
            Self::Late(by) => nanos(by),
        }
    }
}
