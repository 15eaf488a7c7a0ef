//! What stands before every request, reply and event: who asked for what, and how it went.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::zxid::Zxid;

use super::primitive::{Malformed, Reader};

/// The xid of an event: no request has it.
pub const NOTIFICATION_XID: i32 = -1;
/// The xid of a ping, and of the reply to one whatever xid it had.
pub const PING_XID: i32 = -2;
/// The xid with which clients send auth.
pub const AUTH_XID: i32 = -4;
/// The xid with which clients send setWatches.
pub const SET_WATCHES_XID: i32 = -8;

/// Before the body of a request: 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestHeader {
    /// Chosen by the client, and repeated in the reply. Any number is possible, more than once, too.
    pub xid: i32,
    /// What is asked for, see [`op`](super::op). Any number is possible.
    pub op: i32,
}

impl RequestHeader {
    /// How many bytes it takes.
    pub(super) const BYTES: usize = 8;

    pub(super) fn put(self, out: &mut BytesMut) {
        out.put_i32(self.xid);
        out.put_i32(self.op);
    }
}

/// Before the body of a reply or event: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplyHeader {
    /// That of the request, [`PING_XID`] or [`NOTIFICATION_XID`].
    pub xid: i32,
    /// The last transaction that the server had applied; for a change its own. Clients remember the greatest and
    /// refuse servers that have less, so it must have been applied where it is written.
    pub zxid: Zxid,
    /// 0, or why not, see [`code`](super::code).
    pub err: i32,
}

impl ReplyHeader {
    /// How many bytes it takes.
    pub(super) const BYTES: usize = 16;

    pub(super) fn put(self, out: &mut BytesMut) {
        out.put_i32(self.xid);
        out.put_i64(self.zxid.0);
        out.put_i32(self.err);
    }
}

/// The header of a request and the body behind it, a slice of the frame.
///
/// # Errors
///
/// If the frame is shorter than a header; one that [`Framing`](super::Framing) has taken is not.
pub fn split(frame: Bytes) -> Result<(RequestHeader, Bytes), Malformed> {
    let mut reader = Reader::new(&frame);
    let header = RequestHeader { xid: reader.int()?, op: reader.int()? };
    let body = frame.slice(RequestHeader::BYTES..);
    Ok((header, body))
}

/// The header of a reply or event and the body behind it, a slice of the frame.
///
/// # Errors
///
/// If the frame is shorter than a header.
pub fn split_reply(frame: Bytes) -> Result<(ReplyHeader, Bytes), Malformed> {
    let mut reader = Reader::new(&frame);
    let header = ReplyHeader { xid: reader.int()?, zxid: reader.zxid()?, err: reader.int()? };
    let body = frame.slice(ReplyHeader::BYTES..);
    Ok((header, body))
}
