//! What stands before and behind the body of a snapshot file: its header, its seals, and the parts between them.

use quorate_core::zxid::Zxid;

/// What may stand behind a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The digest of the data tree.
    pub digest: Option<Digest>,
    /// The last transaction that was processed.
    pub last_zxid: Option<Zxid>,
}

/// A digest of ZooKeeper's data tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The transaction after which the tree has it; zero if it is not known.
    pub zxid: Zxid,
    /// How it is computed; 2 at present.
    pub version: i32,
    /// The digest.
    pub digest: i64,
}

pub(super) const SNAPSHOT_HEADER: [u8; 16] = *b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";
/// The string "/", with which every seal ends.
pub(super) const SEAL_PATH: [u8; 5] = *b"\0\0\0\x01/";
pub(super) const SEAL_BYTES: usize = 13;
pub(super) const DIGEST_BYTES: usize = 20;
pub(super) const LAST_ZXID_BYTES: usize = 8;
/// How long the first versions of the digest were at most, in hexadecimal.
pub(super) const DIGEST_DIGITS_MAX: usize = 16;
