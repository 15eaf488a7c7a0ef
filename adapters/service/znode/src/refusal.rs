//! ZooKeeper's codes for requests that a leader refuses.

use quorate_core::prepared::Rejected;

/// The body cannot be read, or what comes of it would be too long.
pub(crate) const MARSHALLING: Rejected = Rejected(-5);
/// No operation for this one.
pub(crate) const UNIMPLEMENTED: Rejected = Rejected::UNIMPLEMENTED;
/// What is no path, no flag, no time to live or no text for a quota.
pub(crate) const BAD_ARGUMENTS: Rejected = Rejected(-8);
pub(crate) const NO_NODE: Rejected = Rejected(-101);
pub(crate) const NO_AUTH: Rejected = Rejected(-102);
pub(crate) const BAD_VERSION: Rejected = Rejected(-103);
pub(crate) const NO_CHILDREN_FOR_EPHEMERALS: Rejected = Rejected(-108);
pub(crate) const NODE_EXISTS: Rejected = Rejected(-110);
pub(crate) const NOT_EMPTY: Rejected = Rejected(-111);
pub(crate) const SESSION_EXPIRED: Rejected = Rejected(-112);
pub(crate) const INVALID_ACL: Rejected = Rejected(-114);
/// The client writes by way of another server now. No client is ever told: the connection is closed.
pub(crate) const SESSION_MOVED: Rejected = Rejected(-118);
