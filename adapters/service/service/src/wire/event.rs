//! What a server tells without having been asked: that something happened to a node that is watched.

use alloc::string::String;

use bytes::{BufMut, Bytes};
use quorate_core::zxid::Zxid;

use super::header::{NOTIFICATION_XID, ReplyHeader};
use super::primitive::{Malformed, Reader, put_text};
use super::reply::reply;

/// The node was created.
pub const CREATED: i32 = 1;
/// The node was deleted.
pub const DELETED: i32 = 2;
/// The node's data were set.
pub const DATA_CHANGED: i32 = 3;
/// A child of the node was created or deleted.
pub const CHILDREN_CHANGED: i32 = 4;

/// The state that every event carries, "connected": a server has no other to tell.
const SYNC_CONNECTED: i32 = 3;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatcherEvent {
    /// [`CREATED`], [`DELETED`], [`DATA_CHANGED`] or [`CHILDREN_CHANGED`].
    pub kind: i32,
    /// The node that it happened to.
    pub path: String,
}

impl WatcherEvent {
    /// The whole frame, with its length; the same for all connections that are told.
    ///
    /// `zxid` is that of the transaction since ZooKeeper 3.9, and -1 before; also -1 for what is found to have
    /// happened when watches are set again.
    pub fn encode(&self, zxid: Zxid) -> Bytes {
        reply(ReplyHeader { xid: NOTIFICATION_XID, zxid, err: 0 }, |out| {
            out.put_i32(self.kind);
            out.put_i32(SYNC_CONNECTED);
            put_text(out, Some(&self.path));
        })
    }

    /// Reads what stands behind the header of a frame with [`NOTIFICATION_XID`].
    ///
    /// # Errors
    ///
    /// If it ends too early or has no path.
    pub fn decode(body: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let kind = reader.int()?;
        reader.int()?;
        Ok(Self { kind, path: reader.path()? })
    }
}
