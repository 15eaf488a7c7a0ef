//! The bodies of replies as clients read them.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use quorate_znode::acl::Acl;
use quorate_znode::stat::Stat;

use super::op;
use super::primitive::{Malformed, Reader, TEXT_MIN, names, put_acl_or_null, put_data, put_text};
use super::reply::{
    MultiResult, put_children, put_multi, put_number, put_path, put_stat, put_who_am_i,
};

/// What a reply without error says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Nothing more than that it was done.
    Done,
    /// To create: the node, with its suffix.
    Created {
        /// The node.
        path: String,
    },
    /// To create2, createContainer and createTTL.
    Created2 {
        /// The node, with its suffix.
        path: String,
        /// Its stat.
        stat: Stat,
    },
    /// To exists, setData and setACL.
    Stat(Stat),
    /// To getData; to reconfig, whose data are the new configuration.
    Data {
        /// The data; none is not the same as empty.
        data: Option<Bytes>,
        /// The node's stat.
        stat: Stat,
    },
    /// To getChildren and getEphemerals, in no order.
    Children(Vec<String>),
    /// To getChildren2.
    Children2 {
        /// The names of the children, in no order.
        names: Vec<String>,
        /// The node's stat.
        stat: Stat,
    },
    /// To getACL.
    Acl {
        /// The access list.
        acl: Option<Vec<Acl>>,
        /// The node's stat.
        stat: Stat,
    },
    /// To sync: the path of the request.
    Synced {
        /// The path.
        path: Option<String>,
    },
    /// To multi and multiRead.
    Multi(Vec<MultiResult>),
    /// To addWatch, 0, and to getAllChildrenNumber.
    Number(i32),
    /// To whoAmI: schemes and users, in no order.
    Identities(Vec<(String, String)>),
    /// To sasl: the server's token, none when it has no more to say.
    Token(Option<Bytes>),
}

impl Response {
    /// Reads the body of a reply without error to operation `op`; none if there is no such operation for clients.
    ///
    /// # Errors
    ///
    /// If the body ends before its fields do, announces more than it has, or lacks a string.
    pub fn decode(op: i32, body: &Bytes) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new(body);
        Ok(Some(match op {
            op::DELETE | op::CHECK | op::PING | op::AUTH | op::CLOSE_SESSION => Self::Done,
            op::SET_WATCHES | op::SET_WATCHES2 | op::CHECK_WATCHES | op::REMOVE_WATCHES => {
                Self::Done
            }
            op::CREATE => Self::Created { path: reader.path()? },
            op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                Self::Created2 { path: reader.path()?, stat: reader.stat()? }
            }
            op::EXISTS | op::SET_DATA | op::SET_ACL => Self::Stat(reader.stat()?),
            op::GET_DATA | op::RECONFIG => {
                Self::Data { data: reader.data()?, stat: reader.stat()? }
            }
            op::GET_CHILDREN | op::GET_EPHEMERALS => Self::Children(names(&mut reader)?),
            op::GET_CHILDREN2 => {
                Self::Children2 { names: names(&mut reader)?, stat: reader.stat()? }
            }
            op::GET_ACL => Self::Acl { acl: reader.acl()?, stat: reader.stat()? },
            op::SYNC => Self::Synced { path: reader.text()? },
            op::MULTI | op::MULTI_READ => Self::Multi(MultiResult::decode_all(&mut reader)?),
            op::ADD_WATCH | op::GET_ALL_CHILDREN_NUMBER => Self::Number(reader.int()?),
            op::WHO_AM_I => Self::Identities(identities(&mut reader)?),
            op::SASL => Self::Token(reader.data()?),
            _ => return Ok(None),
        }))
    }

    /// Appends the body of the reply.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Done => {}
            Self::Created { path } => put_path(out, path),
            Self::Created2 { path, stat } => {
                put_path(out, path);
                put_stat(out, stat);
            }
            Self::Stat(stat) => put_stat(out, stat),
            Self::Data { data, stat } => {
                put_data(out, data.as_deref());
                put_stat(out, stat);
            }
            Self::Children(names) => put_children(out, names),
            Self::Children2 { names, stat } => {
                put_children(out, names);
                put_stat(out, stat);
            }
            Self::Acl { acl, stat } => {
                put_acl_or_null(out, acl.as_deref());
                put_stat(out, stat);
            }
            Self::Synced { path } => put_text(out, path.as_deref()),
            Self::Multi(results) => put_multi(out, results),
            Self::Number(number) => put_number(out, *number),
            Self::Identities(all) => {
                put_who_am_i(out, all.iter().map(|(scheme, user)| (scheme, user)));
            }
            Self::Token(token) => put_data(out, token.as_deref()),
        }
    }
}

fn identities(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>, Malformed> {
    let identity = |reader: &mut Reader<'_>| {
        let scheme = reader.text()?.ok_or(Malformed::NullText)?;
        Ok((scheme, reader.text()?.ok_or(Malformed::NullText)?))
    };
    Ok(reader.vector(2 * TEXT_MIN, identity)?.unwrap_or_default())
}
