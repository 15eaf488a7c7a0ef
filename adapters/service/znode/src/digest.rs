//! ZooKeeper's digest of a tree, version 2: equal on servers that hold the same.
//!
//! The sum, modulo 2^64, of the CRC-32 of each node's path, data and stat. The root counts once, with
//! the path `""`; nodes below `/zookeeper/` do not count, since servers may differ there (the
//! configuration node, statistics of quotas). Access lists are not part of it.
//!
//! A node keeps the CRC of its path and data, so a change of its stat costs 60 bytes of CRC, however
//! long the data is: each creation changes the stat of a parent.

use crc32fast::Hasher;

use crate::stat::StoredStat;

/// How many bytes it takes behind the body of a transaction: its version and itself.
pub(crate) const BYTES: usize = 12;

/// The version of the digest that this is; others cannot be compared.
pub(crate) const VERSION: i32 = 2;

/// Whether the node at `path` is part of the digest.
fn counts(path: &str) -> bool {
    !path.starts_with("/zookeeper/")
}

/// The CRC of a node's path and data; 0 where the node does not count.
pub(crate) fn of_content(path: &str, data: &[u8]) -> u32 {
    if !counts(path) {
        return 0;
    }
    // The root goes by two names and counts by the first.
    let path = if path == "/" { "" } else { path };
    let mut hasher = Hasher::new();
    hasher.update(path.as_bytes());
    hasher.update(data);
    hasher.finalize()
}

/// What the node at `path` adds to the digest; `content` is the CRC of its path and data.
pub(crate) fn of(path: &str, content: u32, stat: &StoredStat) -> u64 {
    if !counts(path) {
        return 0;
    }
    // The order is not that of snapshots: the three zxids come first.
    let mut bytes = [0; 60];
    bytes[..8].copy_from_slice(&stat.czxid.0.to_be_bytes());
    bytes[8..16].copy_from_slice(&stat.mzxid.0.to_be_bytes());
    bytes[16..24].copy_from_slice(&stat.pzxid.0.to_be_bytes());
    bytes[24..32].copy_from_slice(&stat.ctime.to_be_bytes());
    bytes[32..40].copy_from_slice(&stat.mtime.to_be_bytes());
    bytes[40..44].copy_from_slice(&stat.version.to_be_bytes());
    bytes[44..48].copy_from_slice(&stat.cversion.to_be_bytes());
    bytes[48..52].copy_from_slice(&stat.aversion.to_be_bytes());
    bytes[52..].copy_from_slice(&stat.owner.to_be_bytes());
    let mut hasher = Hasher::new_with_initial(content);
    hasher.update(&bytes);
    u64::from(hasher.finalize())
}
