//! What a client can ask for.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;

use super::op;

/// A request, as the client wrote it.
///
/// A path that is null is no request, but for sync, which has no use for its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To create a node.
    Create {
        /// [`CREATE`](op::CREATE), [`CREATE2`](op::CREATE2), [`CREATE_CONTAINER`](op::CREATE_CONTAINER) or
        /// [`CREATE_TTL`](op::CREATE_TTL).
        op: i32,
        /// The node, without the suffix of a sequential one.
        path: String,
        /// Its data; none is not the same as empty.
        data: Option<Bytes>,
        /// Its access list.
        acl: Option<Vec<Acl>>,
        /// 0 persistent, 1 ephemeral, 2 and 3 the same but sequential, 4 container, 5 TTL, 6 sequential TTL; any
        /// number is possible.
        flags: i32,
        /// How long a TTL node lives without changes and children, in milliseconds. None for other operations.
        ttl: Option<i64>,
    },
    /// To delete a node.
    Delete {
        /// The node.
        path: String,
        /// Its version, -1 for any.
        version: i32,
    },
    /// To set a node's data.
    SetData {
        /// The node.
        path: String,
        /// The data; none is not the same as empty.
        data: Option<Bytes>,
        /// The node's version, -1 for any.
        version: i32,
    },
    /// To set a node's access list.
    SetAcl {
        /// The node.
        path: String,
        /// The access list.
        acl: Option<Vec<Acl>>,
        /// The version of the access list, -1 for any.
        version: i32,
    },
    /// To check a node's version. As a request of its own it must not reach a leader: those before 3.8.5 and 3.9.3
    /// log a transaction that no server can read.
    Check {
        /// The node.
        path: String,
        /// Its version, -1 for any.
        version: i32,
    },
    /// To do all of these, or nothing: creations, deletions, setData and checks. Elements of other kinds are not
    /// encoded.
    Multi(Vec<Self>),
    /// To change the members of the ensemble.
    Reconfig {
        /// Servers that join or change, `server.N=…`, with commas between them.
        joining: Option<String>,
        /// The ids of servers that leave, with commas between them.
        leaving: Option<String>,
        /// All members, in place of the other two.
        members: Option<String>,
        /// The version of the configuration that is replaced, -1 for any.
        version: i64,
    },
    /// To know whether a node exists.
    Exists {
        /// The node.
        path: String,
        /// Whether to watch it.
        watch: bool,
    },
    /// To read a node's data.
    GetData {
        /// The node.
        path: String,
        /// Whether to watch it.
        watch: bool,
    },
    /// To list a node's children.
    GetChildren {
        /// The node.
        path: String,
        /// Whether to watch its children.
        watch: bool,
    },
    /// To list a node's children and read its stat.
    GetChildren2 {
        /// The node.
        path: String,
        /// Whether to watch its children.
        watch: bool,
    },
    /// To read a node's access list.
    GetAcl {
        /// The node.
        path: String,
    },
    /// To read several times: getData and getChildren. Elements of other kinds are not encoded.
    MultiRead(Vec<Self>),
    /// To list the session's ephemeral nodes.
    GetEphemerals {
        /// How their paths begin; none, blank and `/` are all of them.
        prefix: Option<String>,
    },
    /// To count a node's descendants.
    GetAllChildrenNumber {
        /// The node.
        path: String,
    },
    /// To know the connection's identities.
    WhoAmI,
    /// To see in what follows what the leader had when this came to it.
    Sync {
        /// Comes back in the reply, and means nothing.
        path: Option<String>,
    },
    /// To stay alive.
    Ping,
    /// To add an identity to the connection.
    Auth {
        /// 0, and not looked at.
        kind: i32,
        /// How the client proves it: `digest`, …
        scheme: Option<String>,
        /// The proof; a null one becomes the empty one.
        auth: Bytes,
    },
    /// A step of a SASL exchange.
    Sasl {
        /// The client's token; a null one becomes the empty one.
        token: Bytes,
    },
    /// To set watches again, after a reconnect. In memory the lists can take six times the frame: a string of 4 bytes
    /// there has 24 here.
    SetWatches {
        /// [`SET_WATCHES`](op::SET_WATCHES) or [`SET_WATCHES2`](op::SET_WATCHES2).
        op: i32,
        /// Up to where the client has seen the history: what was changed later is told at once.
        relative_zxid: Zxid,
        /// Nodes with a watch of their data.
        data: Vec<Option<String>>,
        /// Nodes that are awaited.
        exist: Vec<Option<String>>,
        /// Nodes with a watch of their children.
        child: Vec<Option<String>>,
        /// Nodes with a persistent watch; setWatches has none.
        persistent: Vec<Option<String>>,
        /// Nodes with a recursive watch; setWatches has none.
        recursive: Vec<Option<String>>,
    },
    /// To watch a node until the watch is removed.
    AddWatch {
        /// The node, which need not exist.
        path: String,
        /// 0 persistent, 1 recursive; any number is possible.
        mode: i32,
    },
    /// To know whether the connection has a watch.
    CheckWatches {
        /// The node.
        path: String,
        /// 1 children, 2 data, 3 any, 4 persistent, 5 recursive; any number is possible.
        kind: i32,
    },
    /// To remove a watch of the connection.
    RemoveWatches {
        /// The node.
        path: String,
        /// 1 children, 2 data, 3 any, 4 persistent, 5 recursive; any number is possible.
        kind: i32,
    },
    /// To open a session: of servers, not of clients, who have a connect request.
    CreateSession {
        /// How long it shall live without a sign of its client, in milliseconds.
        timeout_ms: i32,
    },
    /// To end the session.
    CloseSession,
}

impl Request {
    /// The number of its operation.
    pub const fn op(&self) -> i32 {
        match self {
            Self::Create { op, .. } | Self::SetWatches { op, .. } => *op,
            Self::Delete { .. } => op::DELETE,
            Self::SetData { .. } => op::SET_DATA,
            Self::SetAcl { .. } => op::SET_ACL,
            Self::Check { .. } => op::CHECK,
            Self::Multi(_) => op::MULTI,
            Self::Reconfig { .. } => op::RECONFIG,
            Self::Exists { .. } => op::EXISTS,
            Self::GetData { .. } => op::GET_DATA,
            Self::GetChildren { .. } => op::GET_CHILDREN,
            Self::GetChildren2 { .. } => op::GET_CHILDREN2,
            Self::GetAcl { .. } => op::GET_ACL,
            Self::MultiRead(_) => op::MULTI_READ,
            Self::GetEphemerals { .. } => op::GET_EPHEMERALS,
            Self::GetAllChildrenNumber { .. } => op::GET_ALL_CHILDREN_NUMBER,
            Self::WhoAmI => op::WHO_AM_I,
            Self::Sync { .. } => op::SYNC,
            Self::Ping => op::PING,
            Self::Auth { .. } => op::AUTH,
            Self::Sasl { .. } => op::SASL,
            Self::AddWatch { .. } => op::ADD_WATCH,
            Self::CheckWatches { .. } => op::CHECK_WATCHES,
            Self::RemoveWatches { .. } => op::REMOVE_WATCHES,
            Self::CreateSession { .. } => op::CREATE_SESSION,
            Self::CloseSession => op::CLOSE_SESSION,
        }
    }
}
