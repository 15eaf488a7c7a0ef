//! Reading requests.

use alloc::vec::Vec;

use bytes::Bytes;

use super::op;
use super::primitive::{Malformed, Reader, texts};
use super::request::Request;

impl Request {
    /// Reads the body of an operation; none if there is no such operation for clients, and for deleteContainer, which
    /// servers alone may ask for. What stands behind the last field is ignored.
    ///
    /// # Errors
    ///
    /// If the body ends before its fields do, announces more than it has, lacks a path, or has an element in a multi
    /// that may not be there.
    pub fn decode(op: i32, body: &Bytes) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new(body);
        Ok(Some(match op {
            op::MULTI => Self::Multi(elements(&mut reader, op::in_multi)?),
            op::MULTI_READ => Self::MultiRead(elements(&mut reader, op::in_multi_read)?),
            _ => return single(op, &mut reader),
        }))
    }
}

/// The elements of a multi, up to the mark of their end. None of them is a multi: this does not nest.
fn elements(
    reader: &mut Reader<'_>,
    allowed: impl Fn(i32) -> bool,
) -> Result<Vec<Request>, Malformed> {
    let mut elements = Vec::new();
    loop {
        let (op, done, _) = (reader.int()?, reader.boolean()?, reader.int()?);
        if done {
            return Ok(elements);
        }
        let element = if allowed(op) { single(op, reader)? } else { None };
        elements.push(element.ok_or(Malformed::NotAnElement(op))?);
    }
}

/// A request that is no multi. A table: the fields of each in their order.
fn single(op: i32, reader: &mut Reader<'_>) -> Result<Option<Request>, Malformed> {
    Ok(Some(match op {
        op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => Request::Create {
            op,
            path: reader.path()?,
            data: reader.data()?,
            acl: reader.acl()?,
            flags: reader.int()?,
            ttl: if op == op::CREATE_TTL { Some(reader.long()?) } else { None },
        },
        op::DELETE => Request::Delete { path: reader.path()?, version: reader.int()? },
        op::SET_DATA => {
            Request::SetData { path: reader.path()?, data: reader.data()?, version: reader.int()? }
        }
        op::SET_ACL => {
            Request::SetAcl { path: reader.path()?, acl: reader.acl()?, version: reader.int()? }
        }
        op::CHECK => Request::Check { path: reader.path()?, version: reader.int()? },
        op::RECONFIG => Request::Reconfig {
            joining: reader.text()?,
            leaving: reader.text()?,
            members: reader.text()?,
            version: reader.long()?,
        },
        op::EXISTS => Request::Exists { path: reader.path()?, watch: reader.boolean()? },
        op::GET_DATA => Request::GetData { path: reader.path()?, watch: reader.boolean()? },
        op::GET_CHILDREN => Request::GetChildren { path: reader.path()?, watch: reader.boolean()? },
        op::GET_CHILDREN2 => {
            Request::GetChildren2 { path: reader.path()?, watch: reader.boolean()? }
        }
        op::GET_ACL => Request::GetAcl { path: reader.path()? },
        op::GET_EPHEMERALS => Request::GetEphemerals { prefix: reader.text()? },
        op::GET_ALL_CHILDREN_NUMBER => Request::GetAllChildrenNumber { path: reader.path()? },
        op::WHO_AM_I => Request::WhoAmI,
        op::SYNC => Request::Sync { path: reader.text()? },
        op::PING => Request::Ping,
        op::AUTH => Request::Auth {
            kind: reader.int()?,
            scheme: reader.text()?,
            auth: reader.data()?.unwrap_or_default(),
        },
        op::SASL => Request::Sasl { token: reader.data()?.unwrap_or_default() },
        op::SET_WATCHES | op::SET_WATCHES2 => set_watches(op, reader)?,
        op::ADD_WATCH => Request::AddWatch { path: reader.path()?, mode: reader.int()? },
        op::CHECK_WATCHES => Request::CheckWatches { path: reader.path()?, kind: reader.int()? },
        op::REMOVE_WATCHES => Request::RemoveWatches { path: reader.path()?, kind: reader.int()? },
        op::CREATE_SESSION => Request::CreateSession { timeout_ms: reader.int()? },
        op::CLOSE_SESSION => Request::CloseSession,
        _ => return Ok(None),
    }))
}

fn set_watches(op: i32, reader: &mut Reader<'_>) -> Result<Request, Malformed> {
    let relative_zxid = reader.zxid()?;
    let (data, exist, child) = (texts(reader)?, texts(reader)?, texts(reader)?);
    let (persistent, recursive) = if op == op::SET_WATCHES2 {
        (texts(reader)?, texts(reader)?)
    } else {
        (Vec::new(), Vec::new())
    };
    Ok(Request::SetWatches { op, relative_zxid, data, exist, child, persistent, recursive })
}
