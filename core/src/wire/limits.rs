//! The lengths beyond which nothing is believed, let alone allocated.
//!
//! A sender that announces more is refused by the announcement alone. Each is ZooKeeper's, where it has one.

/// The longest addresses of an introduction, in bytes, all together.
pub const MAX_ADDRESSES: usize = 2048;

/// The longest frame, in bytes, without its length.
pub const MAX_FRAME: usize = 512 * 1024;

/// The longest data of a packet, in bytes, where nothing else is configured: ZooKeeper's `jute.maxbuffer` and the
/// extra size for records around it, both at their defaults. What a server reads:
/// [`Limits::read_bytes`](crate::config::Limits::read_bytes).
pub const MAX_DATA: usize = 2 * 0xf_ffff;

/// The most identities that a packet may carry.
pub const MAX_IDENTITIES: usize = 4096;
