//! Encoding jute, ZooKeeper's encoding of records, into the body of a transaction; `jute` is the way back.

use bytes::{BufMut, BytesMut};

use crate::acl::Acl;

/// How many items follow, or bytes.
pub(crate) fn put_count(body: &mut BytesMut, count: usize) {
    body.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

/// A buffer or a string; none is null.
pub(crate) fn put_buffer(body: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => body.put_i32(-1),
        Some(bytes) => {
            put_count(body, bytes.len());
            body.put_slice(bytes);
        }
    }
}

pub(crate) fn put_text(body: &mut BytesMut, text: &str) {
    put_buffer(body, Some(text.as_bytes()));
}

pub(crate) fn put_acl(body: &mut BytesMut, list: &[Acl]) {
    put_count(body, list.len());
    for Acl { perms, scheme, id } in list {
        body.put_i32(*perms);
        put_text(body, scheme);
        put_text(body, id);
    }
}
