//! Which call of a candidate a story has in mind, and what becomes of it on its way.

use std::time::Duration;

use super::world::nanos;
use crate::call::Op;

/// Of which kind a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
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
pub(crate) enum Part {
    /// To the store.
    Request,
    /// Back.
    Answer,
}

/// What becomes of a call there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// It is lost with its connection.
    Lost,
    /// It takes so much longer: a request holds up what is behind it, an answer comes whatever has become of its
    /// connection.
    Late(Duration),
}

impl Errand {
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

impl Mishap {
    /// How much longer it takes.
    pub(super) fn nanos(self) -> u64 {
        match self {
            Self::Lost => 0,
            Self::Late(by) => nanos(by),
        }
    }
}
