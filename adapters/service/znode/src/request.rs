//! The bodies of the requests that change nodes, decoded; nothing is allocated but for names that are not UTF-8.
//!
//! ```text
//!   create, create2, createContainer   path, data, acl, int flags
//!   createTTL                          the same, long milliseconds
//!   delete, check                      path, int version
//!   setData, setACL                    path, data or acl, int version
//!   deleteContainer                    path
//!   multi                              (int kind, boolean false, int, body) …   int, boolean true, int
//! ```
//!
//! What follows behind is not looked at.

use std::borrow::Cow;

use quorate_core::prepared::Rejected;

use crate::access::Given;
use crate::jute::{Fault, Malformed, Reader};
use crate::refusal::MARSHALLING;
use crate::rules::Rules;
use crate::txn::kind;

/// What a client asks to be done to one node.
#[derive(Debug)]
pub(crate) enum Write<'a> {
    Create(Create<'a>),
    Delete { path: Cow<'a, str>, version: i32 },
    SetData { path: Cow<'a, str>, data: Option<&'a [u8]>, version: i32 },
    SetAcl { path: Cow<'a, str>, acl: Given<'a>, version: i32 },
    Check { path: Cow<'a, str>, version: i32 },
    DeleteContainer { path: Cow<'a, str> },
}

/// What a client wants to have created.
#[derive(Debug)]
pub(crate) struct Create<'a> {
    /// The kind of transaction that is to come of it.
    pub(crate) kind: i32,
    pub(crate) path: Cow<'a, str>,
    pub(crate) data: Option<&'a [u8]>,
    pub(crate) acl: Given<'a>,
    pub(crate) flags: i32,
    /// In milliseconds; 0 where there is none.
    pub(crate) ttl: i64,
}

impl Create<'_> {
    /// Whether such a node may be asked for by this kind of request.
    pub(crate) const fn flags_fit(&self) -> bool {
        match self.kind {
            kind::CREATE_CONTAINER => self.flags == CONTAINER,
            kind::CREATE_TTL => matches!(self.flags, TTL | TTL_SEQUENTIAL),
            // Of the flags of a container every server makes a persistent node here.
            _ => matches!(self.flags, 0..=CONTAINER),
        }
    }

    pub(crate) const fn is_ephemeral(&self) -> bool {
        matches!(self.flags, EPHEMERAL | EPHEMERAL_SEQUENTIAL)
    }

    pub(crate) const fn is_sequential(&self) -> bool {
        matches!(self.flags, SEQUENTIAL | EPHEMERAL_SEQUENTIAL | TTL_SEQUENTIAL)
    }

    /// In a multi the flags say what is created, whichever request is named.
    fn in_multi(&mut self, rules: Rules) -> bool {
        self.kind = match self.flags {
            0..=EPHEMERAL_SEQUENTIAL if self.kind == kind::CREATE2 && rules.create2_in_multi => {
                kind::CREATE2
            }
            0..=EPHEMERAL_SEQUENTIAL => kind::CREATE,
            CONTAINER => kind::CREATE_CONTAINER,
            TTL | TTL_SEQUENTIAL if self.kind == kind::CREATE_TTL => kind::CREATE_TTL,
            _ => return false,
        };
        true
    }
}

/// Decodes a request for one node; none if `op` is another.
pub(crate) fn write<'a>(op: i32, reader: &mut Reader<'a>) -> Result<Option<Write<'a>>, Fault> {
    Ok(Some(match op {
        kind::CREATE | kind::CREATE2 | kind::CREATE_CONTAINER | kind::CREATE_TTL => {
            let (path, data, acl) = (path(reader)?, reader.buffer()?, Given::read(reader)?);
            let flags = reader.int()?;
            let ttl = if op == kind::CREATE_TTL { reader.long()? } else { 0 };
            Write::Create(Create { kind: op, path, data, acl, flags, ttl })
        }
        kind::DELETE => Write::Delete { path: path(reader)?, version: reader.int()? },
        kind::SET_DATA => {
            let (path, data) = (path(reader)?, reader.buffer()?);
            Write::SetData { path, data, version: reader.int()? }
        }
        kind::SET_ACL => {
            let (path, acl) = (path(reader)?, Given::read(reader)?);
            Write::SetAcl { path, acl, version: reader.int()? }
        }
        kind::CHECK => Write::Check { path: path(reader)?, version: reader.int()? },
        kind::DELETE_CONTAINER => Write::DeleteContainer { path: path(reader)? },
        _ => return Ok(None),
    }))
}

/// Decodes a multi as a whole: if one element may not be there, there is nothing to judge.
pub(crate) fn multi<'a>(reader: &mut Reader<'a>, rules: Rules) -> Result<Vec<Write<'a>>, Rejected> {
    let mut writes = Vec::new();
    loop {
        let op = reader.int().map_err(unreadable)?;
        let done = reader.boolean().map_err(unreadable)?;
        reader.int().map_err(unreadable)?;
        if done {
            return Ok(writes);
        }
        if matches!(op, kind::SET_ACL | kind::DELETE_CONTAINER) {
            return Err(MARSHALLING);
        }
        let mut write = write(op, reader).map_err(unreadable)?.ok_or(MARSHALLING)?;
        if let Write::Create(create) = &mut write {
            if !create.in_multi(rules) {
                return Err(MARSHALLING);
            }
        }
        writes.push(write);
    }
}

/// A path that was not judged yet; what is not UTF-8 in it is replaced, as in Java.
fn path<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, Fault> {
    let null = reader.fault(Malformed::NullPath);
    Ok(String::from_utf8_lossy(reader.buffer()?.ok_or(null)?))
}

pub(crate) fn unreadable(_: Fault) -> Rejected {
    MARSHALLING
}

/// Flags of a create.
const EPHEMERAL: i32 = 1;
const SEQUENTIAL: i32 = 2;
const EPHEMERAL_SEQUENTIAL: i32 = 3;
const CONTAINER: i32 = 4;
const TTL: i32 = 5;
const TTL_SEQUENTIAL: i32 = 6;
