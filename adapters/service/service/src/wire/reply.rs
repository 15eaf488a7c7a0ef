//! Replies, and what stands in their bodies.
//!
//! | operation | body, if `err` is 0 |
//! |---|---|
//! | create | path |
//! | create2, createContainer, createTTL | path, stat |
//! | exists, setData, setACL | stat |
//! | getData, reconfig | data, stat |
//! | getChildren, getEphemerals | children |
//! | getChildren2 | children, stat |
//! | getACL | access list, stat |
//! | sync | path, or null |
//! | multi, multiRead | results of the elements, see [`put_multi`] |
//! | addWatch, getAllChildrenNumber | number; 0 for addWatch |
//! | whoAmI | identities |
//! | sasl | data, or null |
//! | delete, ping, auth, setWatches, setWatches2, checkWatches, removeWatches, closeSession | nothing |

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_znode::stat::Stat;

use super::header::ReplyHeader;
use super::op;
use super::primitive::{Malformed, Reader, framed, names, put_data, put_text, put_vector};

/// A whole frame, with its length. `body` writes what is behind the header, and is only asked if `err` is 0: a reply
/// with an error has no body.
pub fn reply(header: ReplyHeader, body: impl FnOnce(&mut BytesMut)) -> Bytes {
    framed(ReplyHeader::BYTES + USUAL_BYTES, |out| {
        header.put(out);
        if header.err == 0 {
            body(out);
        }
    })
}

/// A stat and some data: most replies have no more, and are built without being moved.
const USUAL_BYTES: usize = 236;

/// The one reply with an error that has a body: a token that is null, at the end of a SASL exchange that failed. The
/// whole frame, with its length.
pub fn failed_sasl(header: ReplyHeader) -> Bytes {
    framed(ReplyHeader::BYTES + 4, |out| {
        header.put(out);
        put_data(out, None);
    })
}

/// Appends a path.
pub fn put_path(out: &mut BytesMut, path: &str) {
    put_text(out, Some(path));
}

/// Appends a stat: 68 bytes.
pub fn put_stat(out: &mut BytesMut, stat: &Stat) {
    out.put_i64(stat.czxid.0);
    out.put_i64(stat.mzxid.0);
    out.put_i64(stat.ctime);
    out.put_i64(stat.mtime);
    out.put_i32(stat.version);
    out.put_i32(stat.cversion);
    out.put_i32(stat.aversion);
    out.put_i64(stat.ephemeral_owner);
    out.put_i32(stat.data_length);
    out.put_i32(stat.num_children);
    out.put_i64(stat.pzxid.0);
}

/// Appends the names of children, or the paths of ephemeral nodes. Their order is the caller's; clients must not
/// depend on it.
pub fn put_children(out: &mut BytesMut, names: impl IntoIterator<Item = impl AsRef<str>>) {
    put_vector(out, names, |out, name| put_text(out, Some(name.as_ref())));
}

/// Appends the identities of a connection: scheme and user.
pub fn put_who_am_i(
    out: &mut BytesMut,
    identities: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
) {
    put_vector(out, identities, |out, (scheme, user)| {
        put_text(out, Some(scheme.as_ref()));
        put_text(out, Some(user.as_ref()));
    });
}

/// Appends the answer to addWatch, 0, or to getAllChildrenNumber.
pub fn put_number(out: &mut BytesMut, number: i32) {
    out.put_i32(number);
}

/// What became of one element of a multi or of a multiRead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultiResult {
    /// A node was created by `create`; of ZooKeeper before 3.7.2 and 3.8.2 also by `create2`.
    Created {
        /// The node.
        path: String,
    },
    /// A node was created by `create2`, `createContainer` or `createTTL`: all three are answered as `create2`.
    Created2 {
        /// The node.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// A node was deleted.
    Deleted,
    /// Data were set.
    DataSet {
        /// The node's stat behind this element, not behind the whole multi.
        stat: Stat,
    },
    /// The version was right.
    Checked,
    /// Data that were read.
    Data {
        /// The node's data; none is not the same as empty.
        data: Option<Bytes>,
        /// Its stat.
        stat: Stat,
    },
    /// Children that were listed.
    Children {
        /// Their names.
        names: Vec<String>,
    },
    /// It was not carried out. If one element of a multi fails, so do all: those before it with 0, it with its code,
    /// those behind it with [`RUNTIME_INCONSISTENCY`](super::code::RUNTIME_INCONSISTENCY). Elements of a multiRead
    /// fail one by one.
    Failed {
        /// Why, see [`code`](super::code).
        err: i32,
    },
}

/// What stands before an element of a multi, and, with `done`, at the end.
pub(super) fn put_multi_head(out: &mut BytesMut, op: i32, done: bool, err: i32) {
    out.put_i32(op);
    out.put_u8(u8::from(done));
    out.put_i32(err);
}

/// The end of a multi, in a request and in a reply.
pub(super) fn put_multi_end(out: &mut BytesMut) {
    put_multi_head(out, op::ERROR, true, -1);
}

/// Appends the results of a multi or of a multiRead, in the order of their elements. The reply's own `err` is 0 even
/// if the multi failed.
///
/// ```text
///   i32 op, u8 0, i32 0 │ body of the operation's reply        i32 -1, u8 0, i32 err │ i32 err
///   … and at the end: i32 -1, u8 1, i32 -1
/// ```
pub fn put_multi<'a>(out: &mut BytesMut, results: impl IntoIterator<Item = &'a MultiResult>) {
    for result in results {
        let (op, err) = match result {
            MultiResult::Created { .. } => (op::CREATE, 0),
            MultiResult::Created2 { .. } => (op::CREATE2, 0),
            MultiResult::Deleted => (op::DELETE, 0),
            MultiResult::DataSet { .. } => (op::SET_DATA, 0),
            MultiResult::Checked => (op::CHECK, 0),
            MultiResult::Data { .. } => (op::GET_DATA, 0),
            MultiResult::Children { .. } => (op::GET_CHILDREN, 0),
            MultiResult::Failed { err } => (op::ERROR, *err),
        };
        put_multi_head(out, op, false, err);
        match result {
            MultiResult::Created { path } => put_path(out, path),
            MultiResult::Created2 { path, stat } => {
                put_path(out, path);
                put_stat(out, stat);
            }
            MultiResult::Deleted | MultiResult::Checked => {}
            MultiResult::DataSet { stat } => put_stat(out, stat),
            MultiResult::Data { data, stat } => {
                put_data(out, data.as_deref());
                put_stat(out, stat);
            }
            MultiResult::Children { names } => put_children(out, names),
            MultiResult::Failed { err } => out.put_i32(*err),
        }
    }
    put_multi_end(out);
}

impl MultiResult {
    /// Reads what [`put_multi`] writes.
    pub(super) fn decode_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let mut results = Vec::new();
        loop {
            let (op, done, _) = (reader.int()?, reader.boolean()?, reader.int()?);
            if done {
                return Ok(results);
            }
            results.push(match op {
                op::CREATE => Self::Created { path: reader.path()? },
                op::CREATE2 => Self::Created2 { path: reader.path()?, stat: reader.stat()? },
                op::DELETE => Self::Deleted,
                op::SET_DATA => Self::DataSet { stat: reader.stat()? },
                op::CHECK => Self::Checked,
                op::GET_DATA => Self::Data { data: reader.data()?, stat: reader.stat()? },
                op::GET_CHILDREN => Self::Children { names: names(reader)? },
                op::ERROR => Self::Failed { err: reader.int()? },
                other => return Err(Malformed::NotAnElement(other)),
            });
        }
    }
}
