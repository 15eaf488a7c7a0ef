//! Writing requests.

use alloc::string::String;

use bytes::{BufMut, Bytes, BytesMut};

use super::header::RequestHeader;
use super::op;
use super::primitive::{framed, put_acl_or_null, put_data, put_text, put_vector};
use super::reply::{put_multi_end, put_multi_head, put_path};
use super::request::Request;

impl Request {
    /// Appends the body, without header and length.
    pub fn encode(&self, out: &mut BytesMut) {
        if let Self::Multi(elements) = self {
            put_elements(out, elements, op::in_multi);
        } else if let Self::MultiRead(elements) = self {
            put_elements(out, elements, op::in_multi_read);
        } else {
            put_single(out, self);
        }
    }

    /// The whole frame, with its length.
    pub fn frame(&self, xid: i32) -> Bytes {
        framed(RequestHeader::BYTES + 56, |out| {
            RequestHeader { xid, op: self.op() }.put(out);
            self.encode(out);
        })
    }
}

fn put_elements(out: &mut BytesMut, elements: &[Request], allowed: impl Fn(i32) -> bool) {
    for element in elements.iter().filter(|element| allowed(element.op())) {
        put_multi_head(out, element.op(), false, -1);
        put_single(out, element);
    }
    put_multi_end(out);
}

/// A request that is no multi. A table: the fields of each in their order.
fn put_single(out: &mut BytesMut, request: &Request) {
    match request {
        Request::Create { op, path, data, acl, flags, ttl } => {
            put_path(out, path);
            put_data(out, data.as_deref());
            put_acl_or_null(out, acl.as_deref());
            out.put_i32(*flags);
            if *op == op::CREATE_TTL {
                out.put_i64(ttl.unwrap_or_default());
            }
        }
        Request::SetData { path, data, version } => {
            put_path(out, path);
            put_data(out, data.as_deref());
            out.put_i32(*version);
        }
        Request::SetAcl { path, acl, version } => {
            put_path(out, path);
            put_acl_or_null(out, acl.as_deref());
            out.put_i32(*version);
        }
        Request::Reconfig { joining, leaving, members, version } => {
            for text in [joining, leaving, members] {
                put_text(out, text.as_deref());
            }
            out.put_i64(*version);
        }
        Request::Exists { path, watch }
        | Request::GetData { path, watch }
        | Request::GetChildren { path, watch }
        | Request::GetChildren2 { path, watch } => {
            put_path(out, path);
            out.put_u8(u8::from(*watch));
        }
        Request::GetAcl { path } | Request::GetAllChildrenNumber { path } => put_path(out, path),
        Request::GetEphemerals { prefix: text } | Request::Sync { path: text } => {
            put_text(out, text.as_deref());
        }
        Request::Auth { kind, scheme, auth } => {
            out.put_i32(*kind);
            put_text(out, scheme.as_deref());
            put_data(out, Some(auth));
        }
        Request::Sasl { token } => put_data(out, Some(token)),
        Request::SetWatches { op, relative_zxid, data, exist, child, persistent, recursive } => {
            out.put_i64(relative_zxid.0);
            for texts in [data, exist, child] {
                put_texts(out, texts);
            }
            if *op == op::SET_WATCHES2 {
                put_texts(out, persistent);
                put_texts(out, recursive);
            }
        }
        Request::Delete { path, version: number }
        | Request::Check { path, version: number }
        | Request::AddWatch { path, mode: number }
        | Request::CheckWatches { path, kind: number }
        | Request::RemoveWatches { path, kind: number } => {
            put_path(out, path);
            out.put_i32(*number);
        }
        Request::CreateSession { timeout_ms } => out.put_i32(*timeout_ms),
        Request::WhoAmI | Request::Ping | Request::CloseSession => {}
        // No element of another: nothing is written for it.
        Request::Multi(_) | Request::MultiRead(_) => {}
    }
}

fn put_texts(out: &mut BytesMut, texts: &[Option<String>]) {
    put_vector(out, texts, |out, text| put_text(out, text.as_deref()));
}
