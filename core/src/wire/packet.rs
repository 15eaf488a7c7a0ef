//! What every packet of the quorum port has: its type, its zxid, the length of its data, and often a transaction.
//!
//! ```text
//!   type  i32 │ zxid  i64 │ length  i32 │ data …        the head is 16 bytes
//! ```
//!
//! Which packet has which data is said in the tables of the codec, not here.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::ops::Range;

use super::error::DecodeError;
use crate::txn::Txn;
use crate::zxid::Zxid;

/// Type, zxid and length of the data.
pub(super) const HEAD: usize = 16;

/// The types, as numbers.
pub(super) mod kind {
    pub(in super::super) const REQUEST: i32 = 1;
    pub(in super::super) const PROPOSAL: i32 = 2;
    pub(in super::super) const ACK: i32 = 3;
    pub(in super::super) const COMMIT: i32 = 4;
    pub(in super::super) const PING: i32 = 5;
    pub(in super::super) const REVALIDATE: i32 = 6;
    pub(in super::super) const SYNC: i32 = 7;
    pub(in super::super) const INFORM: i32 = 8;
    pub(in super::super) const COMMIT_AND_ACTIVATE: i32 = 9;
    pub(in super::super) const NEW_LEADER: i32 = 10;
    pub(in super::super) const FOLLOWER_INFO: i32 = 11;
    pub(in super::super) const UP_TO_DATE: i32 = 12;
    pub(in super::super) const DIFF: i32 = 13;
    pub(in super::super) const TRUNC: i32 = 14;
    pub(in super::super) const SNAP: i32 = 15;
    pub(in super::super) const OBSERVER_INFO: i32 = 16;
    pub(in super::super) const LEADER_INFO: i32 = 17;
    pub(in super::super) const ACK_EPOCH: i32 = 18;
    pub(in super::super) const INFORM_AND_ACTIVATE: i32 = 19;
    /// Far from any number that ZooKeeper may come to use.
    pub(in super::super) const TRANSFER: i32 = 0x7100_0001;
    pub(in super::super) const LEASE: i32 = 0x7100_0002;
    pub(in super::super) const MAY_LEAD: i32 = 0x7100_0003;
}

/// Appends the head of a packet.
#[inline]
pub(super) fn put_head(out: &mut BytesMut, kind: i32, zxid: Zxid, length: i32) {
    let mut head = [0; HEAD];
    let mut rest = &mut head[..];
    rest.put_i32(kind);
    rest.put_i64(zxid.0);
    rest.put_i32(length);
    out.extend_from_slice(&head);
}

/// Takes the packet that ends at `end` off the buffer and returns what lies in `range` of it.
pub(super) fn take(buf: &mut BytesMut, range: Range<usize>, end: usize) -> Bytes {
    if range.is_empty() {
        buf.advance(end);
        return Bytes::new();
    }
    let mut packet = buf.split_to(end).freeze();
    packet.truncate(range.end);
    packet.advance(range.start);
    packet
}

/// The transaction in a packet, which says its zxid too.
pub(super) fn txn(packet: &'static str, zxid: Zxid, data: Bytes) -> Result<Txn, DecodeError> {
    let length = data.len();
    let txn = Txn::decode(data).map_err(|_| {
        let least = Txn::HEADER_BYTES;
        DecodeError::PacketData { packet, length, least }
    })?;
    if txn.zxid == zxid {
        Ok(txn)
    } else {
        Err(DecodeError::TwoZxids { packet, outside: zxid, inside: txn.zxid })
    }
}
