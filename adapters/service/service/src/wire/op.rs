//! The numbers of operations: the second field of a request.

/// Creates a node; answered with its path.
pub const CREATE: i32 = 1;
/// Deletes a node.
pub const DELETE: i32 = 2;
/// Asks whether a node exists.
pub const EXISTS: i32 = 3;
/// Reads a node's data.
pub const GET_DATA: i32 = 4;
/// Sets a node's data.
pub const SET_DATA: i32 = 5;
/// Reads a node's access list.
pub const GET_ACL: i32 = 6;
/// Sets a node's access list.
pub const SET_ACL: i32 = 7;
/// Lists a node's children.
pub const GET_CHILDREN: i32 = 8;
/// Waits until the server has what the leader had.
pub const SYNC: i32 = 9;
/// Shows that the client is alive.
pub const PING: i32 = 11;
/// Lists a node's children, with its stat.
pub const GET_CHILDREN2: i32 = 12;
/// Checks a node's version, as an element of a multi.
pub const CHECK: i32 = 13;
/// Several changes, all or none.
pub const MULTI: i32 = 14;
/// Creates a node; answered with its path and its stat.
pub const CREATE2: i32 = 15;
/// Changes the members of the ensemble.
pub const RECONFIG: i32 = 16;
/// Asks whether the connection has a watch.
pub const CHECK_WATCHES: i32 = 17;
/// Removes a watch of the connection.
pub const REMOVE_WATCHES: i32 = 18;
/// Creates a container.
pub const CREATE_CONTAINER: i32 = 19;
/// Deletes a container without children: of servers, not of clients.
pub const DELETE_CONTAINER: i32 = 20;
/// Creates a TTL node.
pub const CREATE_TTL: i32 = 21;
/// Several reads.
pub const MULTI_READ: i32 = 22;
/// Adds an identity to the connection.
pub const AUTH: i32 = 100;
/// Sets watches again, after a reconnect.
pub const SET_WATCHES: i32 = 101;
/// A token of a SASL exchange.
pub const SASL: i32 = 102;
/// Lists the session's ephemeral nodes.
pub const GET_EPHEMERALS: i32 = 103;
/// Counts a node's descendants.
pub const GET_ALL_CHILDREN_NUMBER: i32 = 104;
/// [`SET_WATCHES`] with persistent and recursive ones.
pub const SET_WATCHES2: i32 = 105;
/// Adds a persistent or recursive watch.
pub const ADD_WATCH: i32 = 106;
/// Lists the connection's identities.
pub const WHO_AM_I: i32 = 107;
/// Opens a session: of servers, not of clients.
pub const CREATE_SESSION: i32 = -10;
/// Ends the session.
pub const CLOSE_SESSION: i32 = -11;

/// In the place of an operation: the result of an element that failed, and the end of a multi.
pub const ERROR: i32 = -1;

/// Whether an operation may be an element of a [`MULTI`].
pub const fn in_multi(op: i32) -> bool {
    matches!(op, CREATE | CREATE2 | CREATE_CONTAINER | CREATE_TTL | DELETE | SET_DATA | CHECK)
}

/// Whether an operation may be an element of a [`MULTI_READ`].
pub const fn in_multi_read(op: i32) -> bool {
    matches!(op, GET_DATA | GET_CHILDREN)
}
