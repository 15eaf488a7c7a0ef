//! The outcome of a transaction: enough for the reply to the client, and for watches.
//!
//! The same on every server. Replies themselves, and watches, are a client port's business, and there is none
//! here yet.

use std::fmt;

use crate::acl::Acls;
use crate::stat::Stat;

/// A transaction was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What it did.
    pub outcome: Outcome,
    /// Whether the leader's tree looks the same.
    pub digest: DigestCheck,
}

/// A node that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Where it was.
    pub path: String,
    /// Its last access list: who might not read it is not told that it has gone.
    pub acl: Option<Acls>,
}

/// What a transaction, or an element of a multi, did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A node was created.
    Created {
        /// Where.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// A node was deleted.
    Deleted(Gone),
    /// A node's data was set.
    DataSet {
        /// Where.
        path: String,
        /// Its stat now.
        stat: Stat,
    },
    /// A node's access list was set.
    AclSet {
        /// Where.
        path: String,
        /// Its stat now.
        stat: Stat,
    },
    /// The leader had found a node's version as expected.
    Checked {
        /// Where.
        path: String,
    },
    /// The session of the header was opened.
    SessionOpened {
        /// Its timeout in milliseconds.
        timeout: i32,
    },
    /// The session of the header was closed.
    SessionClosed {
        /// Its ephemeral nodes, in the order in which they were deleted.
        deleted: Vec<Gone>,
    },
    /// What the elements of a multi did.
    Multi(Vec<Self>),
    /// Nothing, for this reason. The leader had refused the request, or the transaction was applied to
    /// a state that already contained it. In a multi that failed as a whole, elements before the one
    /// that made it fail have [`ErrorCode::OK`], and they were not carried out either.
    Failed(ErrorCode),
}

impl Outcome {
    /// Why nothing, or not all, was done; the first reason in a multi.
    pub fn error(&self) -> Option<ErrorCode> {
        match self {
            Self::Failed(code) => Some(*code),
            Self::Multi(outcomes) => {
                outcomes.iter().filter_map(Self::error).find(|code| *code != ErrorCode::OK)
            }
            Self::Created { .. }
            | Self::Deleted(_)
            | Self::DataSet { .. }
            | Self::AclSet { .. }
            | Self::Checked { .. }
            | Self::SessionOpened { .. }
            | Self::SessionClosed { .. } => None,
        }
    }
}

/// The leader's digest of its tree after the transaction, beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestCheck {
    /// The leader sent none; or ours was restored from a Java server's snapshot, and not all that went on while that was
    /// written is applied again ([`Tree::is_whole_at`](crate::Tree::is_whole_at)).
    Absent,
    /// They are equal.
    Equal,
    /// They are not: the trees differ.
    Differs {
        /// The leader's.
        leader: u64,
        /// Ours.
        ours: u64,
    },
}

/// An error code of ZooKeeper's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// No error.
    pub const OK: Self = Self(0);
    /// Not carried out because another element of the multi failed.
    pub const RUNTIME_INCONSISTENCY: Self = Self(-2);
    /// Something that is no path, or not one for this.
    pub const BAD_ARGUMENTS: Self = Self(-8);
    /// There is no such node.
    pub const NO_NODE: Self = Self(-101);
    /// There is such a node already.
    pub const NODE_EXISTS: Self = Self(-110);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OK => f.write_str("no error"),
            Self::RUNTIME_INCONSISTENCY => f.write_str("another element of the multi failed"),
            Self::BAD_ARGUMENTS => f.write_str("not a path for this"),
            Self::NO_NODE => f.write_str("no such node"),
            Self::NODE_EXISTS => f.write_str("the node exists"),
            Self(code) => write!(f, "error {code}"),
        }
    }
}
