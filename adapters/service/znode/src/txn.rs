//! Decoding the bodies of transactions; every length is checked against the bytes that are there.
//!
//! ```text
//!   body of the kind │ perhaps: i32 digest version, i64 digest of the tree afterwards
//! ```
//!
//! Older servers wrote shorter bodies, and those are still in logs: a create without the parent's
//! `cversion`, a closeSession without paths, no digest at all. What follows behind is not looked at.

use thiserror::Error;

use crate::acl::Acl;
use crate::digest;
use crate::jute::{Fault, Malformed, Reader};
use crate::stat::{MAX_TTL, Owner};

/// A transaction that was not applied.
///
/// Its zxid is taken all the same, everything else is as before, and the next can be applied. That is
/// the same on every server of ours, since it depends on the bytes alone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// A check that is not within a multi. Java servers before 3.8.5 and 3.9.3 let a client cause one;
    /// it has no effect.
    #[error("a check that is not within a multi; it has no effect")]
    LoneCheck,
    /// A TTL node that could not be. A Java leader lets a client cause one; it creates nothing.
    #[error("a TTL of {ttl} ms; nothing is created")]
    Ttl {
        /// What was asked for, in milliseconds.
        ttl: i64,
    },
    /// A kind of transaction that is not known.
    #[error("a transaction of the unknown kind {kind}")]
    UnknownKind {
        /// The kind.
        kind: i32,
    },
    /// A multi with an element that may not be in one.
    #[error("element {index} of a multi is of kind {kind}, which may not be there")]
    NotInMulti {
        /// Which element.
        index: usize,
        /// Its kind.
        kind: i32,
    },
    /// A body that is not what the kind has.
    #[error("a transaction of kind {kind} cannot be read at byte {offset} of its body: {reason}")]
    Malformed {
        /// The kind.
        kind: i32,
        /// Where in the body.
        offset: usize,
        /// What is wrong there.
        reason: Malformed,
    },
    /// An element of a multi whose body is not what its kind has.
    #[error("element {index} of a multi cannot be read at byte {offset} of its body: {reason}")]
    MalformedElement {
        /// Which element.
        index: usize,
        /// Where in its body.
        offset: usize,
        /// What is wrong there.
        reason: Malformed,
    },
}

impl ApplyError {
    /// Whether another server might have made something of it, a newer one for instance. Then to go on
    /// may be to differ from the others, and it is for the caller to say whether that is better than
    /// to stop. The rest no server can apply, and nothing is lost.
    pub const fn may_differ(&self) -> bool {
        match self {
            Self::LoneCheck | Self::Ttl { .. } => false,
            Self::UnknownKind { .. }
            | Self::NotInMulti { .. }
            | Self::Malformed { .. }
            | Self::MalformedElement { .. } => true,
        }
    }
}

/// The kinds of transactions, as in [`TxnHeader::kind`](quorate_core::txn::TxnHeader::kind).
pub mod kind {
    /// Creates a node; clients are told its path.
    pub const CREATE: i32 = 1;
    /// Deletes a node.
    pub const DELETE: i32 = 2;
    /// Sets a node's data.
    pub const SET_DATA: i32 = 5;
    /// Sets a node's access list.
    pub const SET_ACL: i32 = 7;
    /// Checks a node's version; within a multi only.
    pub const CHECK: i32 = 13;
    /// Several of the others, all or none.
    pub const MULTI: i32 = 14;
    /// Creates a node; clients are told its path and stat.
    pub const CREATE2: i32 = 15;
    /// Changes the ensemble: sets the data of `/zookeeper/config`.
    pub const RECONFIG: i32 = 16;
    /// Creates a container.
    pub const CREATE_CONTAINER: i32 = 19;
    /// Deletes a container or a TTL node that is due.
    pub const DELETE_CONTAINER: i32 = 20;
    /// Creates a TTL node.
    pub const CREATE_TTL: i32 = 21;
    /// Opens a session.
    pub const CREATE_SESSION: i32 = -10;
    /// Ends a session and deletes its ephemeral nodes.
    pub const CLOSE_SESSION: i32 = -11;
    /// A request that failed; it changes nothing.
    pub const ERROR: i32 = -1;
}

/// A transaction's effect, still borrowed from its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Create(Create<'a>),
    Delete {
        path: &'a str,
    },
    SetData {
        path: &'a str,
        data: Option<&'a [u8]>,
        version: i32,
    },
    SetAcl {
        path: &'a str,
        acl: Option<Vec<Acl>>,
        version: i32,
    },
    Check {
        path: &'a str,
    },
    Multi(Vec<Self>),
    /// The codes of the elements; nothing is carried out.
    FailedMulti(Vec<i32>),
    CreateSession {
        timeout: i32,
    },
    /// The nodes that the leader found to be the session's, if it said so.
    CloseSession {
        paths: Option<Vec<&'a str>>,
    },
    Error(i32),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Create<'a> {
    pub(crate) path: &'a str,
    pub(crate) data: Option<&'a [u8]>,
    pub(crate) acl: Option<Vec<Acl>>,
    /// None: the session that asked.
    pub(crate) owner: Option<Owner>,
    /// The parent's `cversion` afterwards; -1 for one more than it is.
    pub(crate) parent_cversion: i32,
    /// Whether the parent's `cversion` is raised although the node exists.
    pub(crate) raises: bool,
}

/// Decodes the body of a transaction of `kind`, and the digest behind it.
pub(crate) fn decode(kind: i32, body: &[u8]) -> Result<(Op<'_>, Option<u64>), ApplyError> {
    let mut reader = Reader::new(body);
    let malformed =
        |fault: Fault| ApplyError::Malformed { kind, offset: fault.offset, reason: fault.reason };
    let op = match kind {
        kind::CHECK => return Err(ApplyError::LoneCheck),
        kind::MULTI => multi(&mut reader)?,
        kind::CREATE_SESSION => Op::CreateSession { timeout: reader.int().map_err(malformed)? },
        kind::CLOSE_SESSION => close_session(&mut reader),
        kind::RECONFIG => set_data(&mut reader).map_err(malformed)?,
        kind::SET_ACL => set_acl(&mut reader).map_err(malformed)?,
        _ => element(kind, &mut reader)
            .map_err(malformed)?
            .ok_or(ApplyError::UnknownKind { kind })?,
    };
    check_ttl(&op)?;
    Ok((op, digest(&mut reader)))
}

/// What may also stand in a multi; none if the kind is another.
fn element<'a>(kind: i32, reader: &mut Reader<'a>) -> Result<Option<Op<'a>>, Fault> {
    Ok(Some(match kind {
        kind::CREATE | kind::CREATE2 | kind::CREATE_CONTAINER | kind::CREATE_TTL => {
            Op::Create(create(kind, reader)?)
        }
        kind::DELETE | kind::DELETE_CONTAINER => Op::Delete { path: reader.path()? },
        kind::SET_DATA => set_data(reader)?,
        kind::CHECK => Op::Check { path: reader.path()? },
        kind::ERROR => Op::Error(reader.int()?),
        _ => return Ok(None),
    }))
}

fn create<'a>(kind: i32, reader: &mut Reader<'a>) -> Result<Create<'a>, Fault> {
    let (path, data, acl) = (reader.path()?, reader.buffer()?, reader.acl()?);
    let owner = match kind {
        kind::CREATE_CONTAINER | kind::CREATE_TTL => Some(Owner::Container),
        _ if reader.boolean()? => None,
        _ => Some(Owner::None),
    };
    // Very old servers did not write it.
    let old = kind == kind::CREATE && reader.left() == 0;
    let parent_cversion = if old { -1 } else { reader.int()? };
    let owner = if kind == kind::CREATE_TTL { Some(Owner::Ttl(reader.long()?)) } else { owner };
    Ok(Create { path, data, acl, owner, parent_cversion, raises: kind == kind::CREATE })
}

fn set_data<'a>(reader: &mut Reader<'a>) -> Result<Op<'a>, Fault> {
    let (path, data) = (reader.path()?, reader.buffer()?);
    Ok(Op::SetData { path, data, version: reader.int()? })
}

fn set_acl<'a>(reader: &mut Reader<'a>) -> Result<Op<'a>, Fault> {
    let (path, acl) = (reader.path()?, reader.acl()?);
    Ok(Op::SetAcl { path, acl, version: reader.int()? })
}

/// A body that is not a list of paths is no body: what follows the header then is a digest at most.
fn close_session<'a>(reader: &mut Reader<'a>) -> Op<'a> {
    // No list of two paths fits into the bytes of a digest.
    let mut ahead = *reader;
    let digest_only = ahead.left() == 12 && ahead.int() == Ok(digest::VERSION);
    if !digest_only {
        if let Ok(paths) = ahead.vector(Reader::path) {
            *reader = ahead;
            return Op::CloseSession { paths };
        }
    }
    Op::CloseSession { paths: None }
}

/// All elements are decoded before any is carried out. None of them is a multi: this does not nest.
fn multi<'a>(reader: &mut Reader<'a>) -> Result<Op<'a>, ApplyError> {
    let malformed = |fault: Fault| ApplyError::Malformed {
        kind: kind::MULTI,
        offset: fault.offset,
        reason: fault.reason,
    };
    let elements = reader
        .vector(|reader| {
            let kind = reader.int()?;
            let null = reader.fault(Malformed::NoBody);
            Ok((kind, reader.buffer()?.ok_or(null)?))
        })
        .map_err(malformed)?
        .unwrap_or_default();
    let within = |index, fault: Fault| ApplyError::MalformedElement {
        index,
        offset: fault.offset,
        reason: fault.reason,
    };
    if elements.iter().any(|(kind, _)| *kind == kind::ERROR) {
        // What stands before the one that failed is reported as 0, what follows as not reached.
        let mut code = 0;
        let codes = elements.iter().enumerate().map(|(index, (kind, body))| {
            if *kind != kind::ERROR {
                return Ok(code);
            }
            code = crate::outcome::ErrorCode::RUNTIME_INCONSISTENCY.0;
            Reader::new(body).int().map_err(|fault| within(index, fault))
        });
        return Ok(Op::FailedMulti(codes.collect::<Result<_, _>>()?));
    }
    let ops = elements.iter().enumerate().map(|(index, (kind, body))| {
        let op = element(*kind, &mut Reader::new(body)).map_err(|fault| within(index, fault))?;
        let op = op.ok_or(ApplyError::NotInMulti { kind: *kind, index })?;
        check_ttl(&op)?;
        Ok(op)
    });
    Ok(Op::Multi(ops.collect::<Result<_, _>>()?))
}

fn check_ttl(op: &Op<'_>) -> Result<(), ApplyError> {
    let Op::Create(Create { owner: Some(Owner::Ttl(ttl)), .. }) = op else { return Ok(()) };
    if (1..=MAX_TTL).contains(ttl) { Ok(()) } else { Err(ApplyError::Ttl { ttl: *ttl }) }
}

fn digest(reader: &mut Reader<'_>) -> Option<u64> {
    let (version, digest) = (reader.int().ok()?, reader.long().ok()?);
    (version == digest::VERSION).then_some(digest as u64)
}
