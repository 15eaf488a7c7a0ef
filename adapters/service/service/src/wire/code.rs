//! The error codes of replies, ZooKeeper's `KeeperException.Code`.

/// No error.
pub const OK: i32 = 0;
/// The server failed.
pub const SYSTEM_ERROR: i32 = -1;
/// In a multi: not carried out because another element failed.
pub const RUNTIME_INCONSISTENCY: i32 = -2;
/// The server found its data inconsistent.
pub const DATA_INCONSISTENCY: i32 = -3;
/// The connection was lost: never sent, clients make it.
pub const CONNECTION_LOSS: i32 = -4;
/// The body of the request cannot be read.
pub const MARSHALLING_ERROR: i32 = -5;
/// The server does not know the operation.
pub const UNIMPLEMENTED: i32 = -6;
/// It took too long: never sent, clients make it.
pub const OPERATION_TIMEOUT: i32 = -7;
/// An argument is not one for this operation.
pub const BAD_ARGUMENTS: i32 = -8;
/// There is no such session: among servers.
pub const UNKNOWN_SESSION: i32 = -12;
/// No quorum of the new members has followed the leader.
pub const NEW_CONFIG_NO_QUORUM: i32 = -13;
/// The ensemble is being reconfigured.
pub const RECONFIG_IN_PROGRESS: i32 = -14;
/// What is smaller is an error of the client's, not of the server's.
pub const API_ERROR: i32 = -100;
/// There is no such node.
pub const NO_NODE: i32 = -101;
/// The access list does not permit it.
pub const NO_AUTH: i32 = -102;
/// The node has another version.
pub const BAD_VERSION: i32 = -103;
/// An ephemeral node has no children.
pub const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
/// There is such a node already.
pub const NODE_EXISTS: i32 = -110;
/// The node has children.
pub const NOT_EMPTY: i32 = -111;
/// The session has ended.
pub const SESSION_EXPIRED: i32 = -112;
/// A callback that is none: clients make it.
pub const INVALID_CALLBACK: i32 = -113;
/// An access list that is none.
pub const INVALID_ACL: i32 = -114;
/// The client did not prove its identity.
pub const AUTH_FAILED: i32 = -115;
/// The session has moved to another server: never sent, the connection is closed.
pub const SESSION_MOVED: i32 = -118;
/// A change, asked of a server in read-only mode.
pub const NOT_READ_ONLY: i32 = -119;
/// A local session has no ephemeral nodes.
pub const EPHEMERAL_ON_LOCAL_SESSION: i32 = -120;
/// There is no such watch.
pub const NO_WATCHER: i32 = -121;
/// No answer came in time: never sent, clients make it.
pub const REQUEST_TIMEOUT: i32 = -122;
/// Reconfiguration is switched off.
pub const RECONFIG_DISABLED: i32 = -123;
/// The server demands authentication, and ends the connection.
pub const SESSION_CLOSED_REQUIRE_AUTH: i32 = -124;
/// A quota does not permit it.
pub const QUOTA_EXCEEDED: i32 = -125;
/// The server has too much to do.
pub const THROTTLED: i32 = -127;
