//! Preparing requests at the leader: each becomes a transaction, or the transaction that refuses it. Known are those that
//! a client needs to keep a session and to create, set and delete nodes.
//!
//! ```text
//!   request ──► judged by: what was prepared before it and is not applied yet ── else the tree
//!           ──► a transaction that every server can carry out without judging, or an error's
//! ```
//!
//! What it does not do yet: multi, setACL, check, containers and TTL nodes (they are refused as
//! unimplemented), quotas, and the digest in transactions, which is optional.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::message::{Identity, Request};
use quorate_core::prepared::{Prepared, Rejected};

use crate::acl::{Acl, Acls};
use crate::jute::{Fault, Reader};
use crate::outstanding::{Changes, Outstanding, Record};
use crate::path;
use crate::stat::Owner;
use crate::tree::Tree;
use crate::txn::kind;

/// Turns requests into transactions, at the leader: beside the tree, which holds what is applied, it keeps how the
/// nodes and sessions will be that it has prepared for.
#[derive(Debug, Default)]
pub struct Preparer {
    outstanding: Outstanding,
}

impl Preparer {
    /// Makes a transaction of a request, on top of everything in the tree and everything prepared since the last
    /// [`abandon`](Self::abandon); its body has at most `bytes_max` bytes. One that is refused becomes a
    /// transaction, too ([`Prepared::rejected`]).
    pub fn prepare(&mut self, tree: &Tree, request: &Request, bytes_max: usize) -> Prepared {
        let mut changes = Changes::default();
        let judge = Judge { tree, outstanding: &self.outstanding };
        let prepared = judge.judge(request, bytes_max, &mut changes);
        let prepared = prepared.and_then(|prepared| {
            let fits = prepared.body.len() <= bytes_max;
            if fits { Ok(prepared) } else { Err(Rejected::TOO_LONG) }
        });
        let changes = if prepared.is_ok() { changes } else { Changes::default() };
        self.outstanding.prepared(changes);
        prepared.unwrap_or_else(Prepared::rejected)
    }

    /// The oldest transaction that was prepared is applied to the tree. One that comes while there is none was not
    /// prepared here.
    pub fn on_applied(&mut self) {
        self.outstanding.on_applied();
    }

    /// Forgets what was prepared and not applied: this server leads no more.
    pub fn abandon(&mut self) {
        self.outstanding = Outstanding::default();
    }
}

/// What a request is judged by.
struct Judge<'a> {
    tree: &'a Tree,
    outstanding: &'a Outstanding,
}

impl Judge<'_> {
    fn judge(
        &self,
        request: &Request,
        bytes_max: usize,
        changes: &mut Changes,
    ) -> Result<Prepared, Rejected> {
        let (session, kind) = (request.id.client, request.op);
        let mut reader = Reader::new(&request.body);
        let body = match kind {
            kind::CREATE_SESSION => {
                let timeout = reader.int().map_err(unreadable)?;
                changes.session = Some((session, true));
                Bytes::copy_from_slice(&timeout.to_be_bytes())
            }
            kind::CLOSE_SESSION => self.close(session, bytes_max, changes),
            kind::CREATE | kind::CREATE2 => self.create_node(request, &mut reader, changes)?,
            kind::DELETE => self.delete_node(request, &mut reader, changes)?,
            kind::SET_DATA => self.set_node(request, &mut reader, changes)?,
            kind::RECONFIG => {
                self.check_session(request, false)?;
                permitted(&self.record(path::CONFIG).ok_or(NO_NODE)?, WRITE, request)?;
                return Ok(Prepared::reconfiguration(request));
            }
            _ => return Err(Rejected::UNIMPLEMENTED),
        };
        Ok(Prepared { kind, body })
    }

    fn create_node(
        &self,
        request: &Request,
        reader: &mut Reader<'_>,
        changes: &mut Changes,
    ) -> Result<Bytes, Rejected> {
        let asked = path_of(reader)?;
        let (data, acl) = (reader.buffer().map_err(unreadable)?, reader.acl().map_err(unreadable)?);
        let flags = reader.int().map_err(unreadable)?;
        if !(0..=EPHEMERAL | SEQUENTIAL).contains(&flags) {
            return Err(BAD_ARGUMENTS);
        }
        let ephemeral = flags & EPHEMERAL != 0;
        self.check_session(request, ephemeral)?;
        let parent_path = parent_of(&asked)?;
        let acl = granted(acl, request.identities.as_deref())?;
        let mut parent = self.record(parent_path).ok_or(NO_NODE)?;
        permitted(&parent, CREATE, request)?;
        let path = if flags & SEQUENTIAL == 0 {
            Cow::Borrowed(&*asked)
        } else {
            Cow::Owned(format!("{asked}{:010}", parent.cversion))
        };
        if !is_legal(&path) {
            return Err(BAD_ARGUMENTS);
        }
        if self.record(&path).is_some() {
            return Err(NODE_EXISTS);
        }
        if matches!(parent.owner, Owner::Session(_)) {
            return Err(NO_CHILDREN_FOR_EPHEMERALS);
        }
        parent.children += 1;
        parent.cversion = parent.cversion.wrapping_add(1);

        let mut body = BytesMut::with_capacity(path.len() + data.map_or(0, <[u8]>::len) + 64);
        put_buffer(&mut body, Some(path.as_bytes()));
        put_buffer(&mut body, data);
        put_count(&mut body, acl.len());
        for Acl { perms, scheme, id } in &acl {
            body.put_i32(*perms);
            put_buffer(&mut body, Some(scheme.as_bytes()));
            put_buffer(&mut body, Some(id.as_bytes()));
        }
        body.put_u8(u8::from(ephemeral));
        body.put_i32(parent.cversion);

        let owner = if ephemeral { Owner::Session(request.id.client) } else { Owner::None };
        let node = Record { version: 0, cversion: 0, owner, children: 0, acl: acl.into() };
        changes.nodes.push((parent_path.into(), Some(parent)));
        changes.nodes.push((Arc::from(&*path), Some(node)));
        Ok(body.freeze())
    }

    fn delete_node(
        &self,
        request: &Request,
        reader: &mut Reader<'_>,
        changes: &mut Changes,
    ) -> Result<Bytes, Rejected> {
        let (path, version) = (path_of(reader)?, reader.int().map_err(unreadable)?);
        self.check_session(request, false)?;
        let parent_path = parent_of(&path)?;
        if ["/", path::ZOOKEEPER, path::QUOTA, path::CONFIG].contains(&&*path) {
            return Err(BAD_ARGUMENTS);
        }
        let mut parent = self.record(parent_path).ok_or(NO_NODE)?;
        permitted(&parent, DELETE, request)?;
        let node = self.record(&path).ok_or(NO_NODE)?;
        expect(version, node.version)?;
        if node.children > 0 {
            return Err(NOT_EMPTY);
        }
        parent.children = parent.children.saturating_sub(1);
        changes.nodes.push((parent_path.into(), Some(parent)));
        let mut body = BytesMut::with_capacity(path.len() + 4);
        put_buffer(&mut body, Some(path.as_bytes()));
        changes.nodes.push((path.into(), None));
        Ok(body.freeze())
    }

    fn set_node(
        &self,
        request: &Request,
        reader: &mut Reader<'_>,
        changes: &mut Changes,
    ) -> Result<Bytes, Rejected> {
        let (path, data) = (path_of(reader)?, reader.buffer().map_err(unreadable)?);
        let version = reader.int().map_err(unreadable)?;
        self.check_session(request, false)?;
        if !is_legal(&path) {
            return Err(BAD_ARGUMENTS);
        }
        // Only a reconfiguration sets it, whichever rights the client has.
        if path == path::CONFIG {
            return Err(NO_AUTH);
        }
        let mut node = self.record(&path).ok_or(NO_NODE)?;
        permitted(&node, WRITE, request)?;
        expect(version, node.version)?;
        // -1 is what clients say for "any".
        node.version = match node.version.wrapping_add(1) {
            -1 => 0,
            next => next,
        };
        let mut body = BytesMut::with_capacity(path.len() + data.map_or(0, <[u8]>::len) + 12);
        put_buffer(&mut body, Some(path.as_bytes()));
        put_buffer(&mut body, data);
        body.put_i32(node.version);
        changes.nodes.push((key(&path).into(), Some(node)));
        Ok(body.freeze())
    }

    /// Lists what a session will have, so that every server deletes the same. A list that does not fit is cut:
    /// a server that applies it deletes what is listed, and then whatever else is the session's.
    fn close(&self, session: i64, bytes_max: usize, changes: &mut Changes) -> Bytes {
        let mut paths: BTreeSet<Arc<str>> = self
            .tree
            .ephemerals(session)
            .filter(|path| self.outstanding.node(path).is_none())
            .map(Arc::from)
            .collect();
        let owned = |record: Option<&Record>| {
            record.is_some_and(|record| record.owner == Owner::Session(session))
        };
        let created = self.outstanding.nodes().filter(|(_, record)| owned(*record));
        paths.extend(created.map(|(path, _)| Arc::clone(path)));

        let body = list(session, &paths, bytes_max);
        // All of them go, listed or not.
        let mut parents = BTreeMap::new();
        for path in paths {
            if let Some((parent, _)) = path::split(&path) {
                if !parents.contains_key(parent) {
                    parents.insert(parent.to_owned(), self.record(parent));
                }
                if let Some(Some(record)) = parents.get_mut(parent) {
                    record.children = record.children.saturating_sub(1);
                }
            }
            changes.nodes.push((path, None));
        }
        changes.nodes.extend(parents.into_iter().map(|(path, record)| (path.into(), record)));
        changes.session = Some((session, false));
        body
    }

    /// A node as it will be.
    fn record(&self, path: &str) -> Option<Record> {
        if let Some(record) = self.outstanding.node(key(path)) {
            return record.clone();
        }
        let node = self.tree.get(path)?;
        let stat = node.stored_stat();
        Some(Record {
            version: stat.version,
            cversion: stat.cversion,
            owner: node.owner(),
            children: node.node.children.len(),
            // A list that is missing permits nothing.
            acl: node.acl().map_or_else(|| Acls::from([]), Arc::clone),
        })
    }

    /// A client's request comes in a session that is open. The embedding program has none, and may ask
    /// for everything but a node that would end with it.
    fn check_session(&self, request: &Request, needed: bool) -> Result<(), Rejected> {
        let session = request.id.client;
        let prepared = self.outstanding.session(session);
        let open = prepared.unwrap_or_else(|| self.tree.session(session).is_some());
        let asked = needed || request.identities.is_some();
        if asked && !open { Err(SESSION_EXPIRED) } else { Ok(()) }
    }
}

/// The body of a transaction that closes a session: its paths, or as many as fit in `bytes_max`. It is never
/// two transactions: a crash between them would leave a session that lives and has lost its locks.
///
/// Of each parent one comes first. A Java server that applies this to a snapshot in which the others are gone
/// already moves the parent's `pzxid` for those that are listed only; for the rest it is enough that every
/// server knows what the session has.
fn list(session: i64, paths: &BTreeSet<Arc<str>>, bytes_max: usize) -> Bytes {
    let takes = |path: &Arc<str>| 4 + path.len();
    let whole = 4 + paths.iter().map(takes).sum::<usize>();
    let mut listed: Vec<&Arc<str>> = Vec::new();
    if whole <= bytes_max {
        listed.extend(paths);
    } else {
        let (mut parents, mut left) = (BTreeSet::new(), bytes_max.saturating_sub(4));
        let (first, others): (Vec<_>, Vec<_>) = paths
            .iter()
            .partition(|path| parents.insert(path::split(path).map(|(parent, _)| parent)));
        let mut take = |path: &Arc<str>| {
            let room = left.checked_sub(takes(path));
            left = room.unwrap_or(left);
            room.is_some()
        };
        listed.extend(first.iter().copied().filter(|path| take(path)));
        if listed.len() < first.len() {
            tracing::warn!(
                session = format_args!("0x{session:x}"),
                ephemerals = paths.len(),
                parents = first.len(),
                listed = listed.len(),
                "a session closes with ephemeral nodes below more parents than a transaction can name: \
                 a Java server that recovers from a snapshot taken meanwhile may keep an older pzxid of the others"
            );
        }
        listed.extend(others.into_iter().filter(|path| take(path)));
    }
    let mut body = BytesMut::with_capacity(whole.min(bytes_max));
    put_count(&mut body, listed.len());
    for path in listed {
        put_buffer(&mut body, Some(path.as_bytes()));
    }
    body.freeze()
}

/// The root has two names.
fn key(path: &str) -> &str {
    if path == "/" { "" } else { path }
}

/// A path that was not judged yet; what is not UTF-8 in it is replaced, as in Java.
fn path_of<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, Rejected> {
    let path = reader.buffer().map_err(unreadable)?.ok_or(MARSHALLING)?;
    Ok(String::from_utf8_lossy(path))
}

/// The path of the parent, if this looks like a path at all.
fn parent_of(path: &str) -> Result<&str, Rejected> {
    let (parent, _) = path.rsplit_once('/').ok_or(BAD_ARGUMENTS)?;
    if path.contains('\0') { Err(BAD_ARGUMENTS) } else { Ok(parent) }
}

/// Whether a node may have this path.
fn is_legal(path: &str) -> bool {
    let legal = |character: char| {
        !matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
    };
    let Some(below) = path.strip_prefix('/') else { return false };
    let fine =
        |name: &str| !name.is_empty() && name != "." && name != ".." && name.chars().all(legal);
    below.is_empty() || below.split('/').all(fine)
}

/// The access list that a new node gets for what its creator asked for.
fn granted(asked: Option<Vec<Acl>>, identities: Option<&[Identity]>) -> Result<Vec<Acl>, Rejected> {
    let mut list: Vec<Acl> = Vec::new();
    let mut add = |acl: Acl| {
        if !list.contains(&acl) {
            list.push(acl);
        }
    };
    for acl in asked.unwrap_or_default() {
        match &*acl.scheme {
            "world" if &*acl.id == "anyone" => add(acl),
            "digest" if acl.id.split(':').count() == 2 => add(acl),
            "ip" if network(&acl.id).is_some() => add(acl),
            "auth" => {
                let own = identities.unwrap_or_default().iter();
                let own = own.filter(|identity| AUTHENTICATING.contains(&&*identity.scheme));
                let mut any = false;
                for Identity { scheme, id } in own {
                    let (scheme, id) = (scheme.as_str().into(), id.as_str().into());
                    add(Acl { perms: acl.perms, scheme, id });
                    any = true;
                }
                if !any {
                    return Err(INVALID_ACL);
                }
            }
            _ => return Err(INVALID_ACL),
        }
    }
    if list.is_empty() { Err(INVALID_ACL) } else { Ok(list) }
}

/// Whether the client's identities, if it is a client, permit this.
fn permitted(node: &Record, permission: i32, request: &Request) -> Result<(), Rejected> {
    let Some(identities) = &request.identities else { return Ok(()) };
    let matches = |acl: &Acl| match &*acl.scheme {
        "world" => &*acl.id == "anyone",
        "ip" => network(&acl.id).is_some_and(|(network, bits)| {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            identities.iter().filter(|identity| identity.scheme == "ip").any(|identity| {
                let address = identity.id.parse::<Ipv4Addr>();
                address.is_ok_and(|address| (address.to_bits() ^ network.to_bits()) & mask == 0)
            })
        }),
        scheme => identities.iter().any(|own| own.scheme == scheme && *own.id == *acl.id),
    };
    let allowed = identities.iter().any(|own| own.scheme == "super")
        || node.acl.iter().any(|acl| acl.perms & permission != 0 && matches(acl));
    if allowed { Ok(()) } else { Err(NO_AUTH) }
}

/// An address and how many of its bits count: `10.0.0.0/8`.
fn network(text: &str) -> Option<(Ipv4Addr, u32)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    Some((address.parse().ok()?, bits.parse().ok().filter(|bits| *bits <= 32)?))
}

fn expect(asked: i32, version: i32) -> Result<(), Rejected> {
    if asked == -1 || asked == version { Ok(()) } else { Err(BAD_VERSION) }
}

fn put_count(body: &mut BytesMut, count: usize) {
    body.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

fn put_buffer(body: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => body.put_i32(-1),
        Some(bytes) => {
            put_count(body, bytes.len());
            body.put_slice(bytes);
        }
    }
}

fn unreadable(_: Fault) -> Rejected {
    MARSHALLING
}

/// Flags of a create.
const EPHEMERAL: i32 = 1;
const SEQUENTIAL: i32 = 2;
/// Permissions of an access list.
const WRITE: i32 = 2;
const CREATE: i32 = 4;
const DELETE: i32 = 8;
/// The schemes whose identities a client has proved to have.
const AUTHENTICATING: [&str; 3] = ["digest", "sasl", "x509"];

/// ZooKeeper's codes.
const MARSHALLING: Rejected = Rejected(-5);
const BAD_ARGUMENTS: Rejected = Rejected(-8);
const NO_NODE: Rejected = Rejected(-101);
const NO_AUTH: Rejected = Rejected(-102);
const BAD_VERSION: Rejected = Rejected(-103);
const NO_CHILDREN_FOR_EPHEMERALS: Rejected = Rejected(-108);
const NODE_EXISTS: Rejected = Rejected(-110);
const NOT_EMPTY: Rejected = Rejected(-111);
const SESSION_EXPIRED: Rejected = Rejected(-112);
const INVALID_ACL: Rejected = Rejected(-114);
