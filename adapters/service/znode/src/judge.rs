//! Judging what is to be done to nodes, and writing the transaction that does it.
//!
//! The first check that fails is what the client is told, so their order is part of the protocol:
//!
//! | request | checks |
//! |---|---|
//! | create … | flags; TTL nodes allowed; time; *session*; path; list; parent; CREATE there; full path; no node; no ephemeral parent |
//! | delete | *session*; path; parent; DELETE there; node; version; no children |
//! | setData | *session*; path; node; WRITE; version |
//! | setACL | *session*; path; list; node; ADMIN; version |
//! | check | *session*; path; node; READ; version |
//! | deleteContainer | path; node; no children; due; parent |

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use quorate_core::id::Origin;
use quorate_core::message::{Identity, Request};
use quorate_core::prepared::{Facts, Prepared, Rejected};

use crate::access::{self, Given, granted};
use crate::digest;
use crate::encode::{put_acl, put_buffer, put_text};
use crate::outstanding::{Outstanding, Record};
use crate::owners::Owners;
use crate::path;
use crate::quota;
use crate::refusal::{
    BAD_ARGUMENTS, BAD_VERSION, NO_AUTH, NO_CHILDREN_FOR_EPHEMERALS, NO_NODE, NODE_EXISTS,
    NOT_EMPTY, SESSION_EXPIRED, UNIMPLEMENTED,
};
use crate::request::{Create, Write};
use crate::rules::Rules;
use crate::stat::{MAX_TTL, Owner, StoredStat};
use crate::tree::Tree;
use crate::txn::kind;

/// A request, and what it is judged by.
pub(crate) struct Judge<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) outstanding: &'a mut Outstanding,
    pub(crate) owners: &'a mut Owners,
    pub(crate) request: &'a Request,
    pub(crate) origin: Origin,
    pub(crate) rules: Rules,
    pub(crate) facts: &'a Facts,
    /// The digest of the tree behind what is prepared.
    pub(crate) digest: u64,
}

/// Whether a session is open, as far as anything was prepared.
pub(crate) fn is_open(tree: &Tree, outstanding: &Outstanding, session: i64) -> bool {
    outstanding.session(session).unwrap_or_else(|| tree.session(session).is_some())
}

impl Judge<'_> {
    /// Whether it is asked for in a session that is open, and by its way. The embedding program's requests are in
    /// none, and need none unless a node shall end with it.
    pub(crate) fn check_session(&mut self, needed: bool) -> Result<(), Rejected> {
        let (session, in_session) = (self.request.id.client, self.request.identities.is_some());
        if (in_session || needed) && !is_open(self.tree, self.outstanding, session) {
            return Err(SESSION_EXPIRED);
        }
        if in_session { self.owners.check(session, self.origin) } else { Ok(()) }
    }

    /// One write: its checks, its records, and its body behind what `body` holds. What is refused may leave
    /// behind a part of the body.
    pub(crate) fn write(&mut self, write: &Write<'_>, body: &mut BytesMut) -> Result<(), Rejected> {
        let mut ephemeral = false;
        if let Write::Create(create) = write {
            self.check_mode(create)?;
            ephemeral = create.is_ephemeral();
        }
        // The leader asks for this itself, in no session.
        if !matches!(write, Write::DeleteContainer { .. }) {
            self.check_session(ephemeral)?;
        }
        match write {
            Write::Create(create) => self.create(create, body),
            Write::Delete { path, version } => self.delete(path, *version, body),
            Write::SetData { path, data, version } => self.set_data(path, *data, *version, body),
            Write::SetAcl { path, acl, version } => self.set_acl(path, acl, *version, body),
            Write::Check { path, version } => self.check(path, *version, body),
            Write::DeleteContainer { path } => self.delete_container(path, body),
        }
    }

    fn check_mode(&self, create: &Create<'_>) -> Result<(), Rejected> {
        if !create.flags_fit() {
            return Err(BAD_ARGUMENTS);
        }
        if create.kind != kind::CREATE_TTL {
            return Ok(());
        }
        if !self.rules.extended_types {
            return Err(UNIMPLEMENTED);
        }
        if (1..=MAX_TTL).contains(&create.ttl) { Ok(()) } else { Err(BAD_ARGUMENTS) }
    }

    fn create(&mut self, create: &Create<'_>, body: &mut BytesMut) -> Result<(), Rejected> {
        let asked = &*create.path;
        let parent_path = path::parent(asked).ok_or(BAD_ARGUMENTS)?;
        let acl = granted(&create.acl, self.identities(), self.facts.bytes_max)?;
        let mut parent = self.record(parent_path).ok_or(NO_NODE)?;
        self.permit(&parent, access::CREATE)?;
        let path = if create.is_sequential() {
            Cow::Owned(format!("{asked}{:010}", parent.stat.cversion))
        } else {
            Cow::Borrowed(asked)
        };
        if !path::is_legal(&path) || quota::is_poisoned_quota(&path, create.data) {
            return Err(BAD_ARGUMENTS);
        }
        // The last number stays where it is: it would be given out again and again.
        let cversion = parent.stat.cversion;
        let is_used_up = create.is_sequential() && cversion == i32::MAX;
        if is_used_up || self.exists(&path) {
            return Err(NODE_EXISTS);
        }
        if matches!(parent.owner(), Owner::Session(_)) {
            return Err(NO_CHILDREN_FOR_EPHEMERALS);
        }
        let (before, zxid) = (parent.digest(parent_path), self.facts.zxid);
        parent.children += 1;
        if let Some(next) = cversion.checked_add(1) {
            (parent.stat.cversion, parent.stat.pzxid) = (next, zxid);
        }
        let cversion = parent.stat.cversion;

        let ephemeral = create.is_ephemeral();
        put_text(body, &path);
        put_buffer(body, create.data);
        put_acl(body, &acl);
        let owner = match create.kind {
            kind::CREATE_CONTAINER => Owner::Container,
            kind::CREATE_TTL => Owner::Ttl(create.ttl),
            // As the tree will read it.
            _ if ephemeral => Owner::from_stored(self.request.id.client),
            _ => Owner::None,
        };
        if matches!(create.kind, kind::CREATE | kind::CREATE2) {
            body.put_u8(u8::from(ephemeral));
        }
        body.put_i32(cversion);
        if create.kind == kind::CREATE_TTL {
            body.put_i64(create.ttl);
        }
        let node = Record {
            stat: StoredStat::new(zxid, self.facts.now_ms, owner.to_stored()),
            content: self.content(&path, create.data),
            children: 0,
            acl: Some(acl),
        };
        self.put(parent_path, before, Some(parent));
        self.put(&path, 0, Some(node));
        Ok(())
    }

    fn delete(&mut self, path: &str, version: i32, body: &mut BytesMut) -> Result<(), Rejected> {
        let parent_path = deletable(path)?;
        let parent = self.record(parent_path).ok_or(NO_NODE)?;
        self.permit(&parent, access::DELETE)?;
        let node = self.record(path).ok_or(NO_NODE)?;
        expect(version, node.stat.version)?;
        if node.children > 0 {
            return Err(NOT_EMPTY);
        }
        self.note_deletion((path, &node), (parent_path, parent), body);
        Ok(())
    }

    /// What the leader found to be due may not be so any more.
    fn delete_container(&mut self, path: &str, body: &mut BytesMut) -> Result<(), Rejected> {
        let parent_path = deletable(path)?;
        let node = self.record(path).ok_or(NO_NODE)?;
        if node.children > 0 {
            return Err(NOT_EMPTY);
        }
        let age = self.facts.now_ms.saturating_sub(node.stat.mtime);
        let due = match node.owner() {
            // Another of its name may have taken the place of the one that was found empty.
            Owner::Container => {
                node.stat.cversion > 0
                    || self.rules.container_unused_ms.is_some_and(|max| age > max)
            }
            Owner::Ttl(ttl) => age > ttl,
            Owner::None | Owner::Session(_) => false,
        };
        if !due {
            return Err(BAD_VERSION);
        }
        let parent = self.record(parent_path).ok_or(NO_NODE)?;
        self.note_deletion((path, &node), (parent_path, parent), body);
        Ok(())
    }

    fn note_deletion(
        &mut self,
        (path, node): (&str, &Record),
        (parent_path, mut parent): (&str, Record),
        body: &mut BytesMut,
    ) {
        put_text(body, path);
        let before = parent.digest(parent_path);
        parent.children = parent.children.saturating_sub(1);
        parent.stat.pzxid = parent.stat.pzxid.max(self.facts.zxid);
        self.put(parent_path, before, Some(parent));
        self.put(path, node.digest(path), None);
    }

    fn set_data(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
        body: &mut BytesMut,
    ) -> Result<(), Rejected> {
        let path = legal(path)?;
        if quota::is_poisoned_quota(path, data) {
            return Err(BAD_ARGUMENTS);
        }
        let mut node = self.record(path).ok_or(NO_NODE)?;
        self.permit(&node, access::WRITE)?;
        expect(version, node.stat.version)?;
        let before = node.digest(path);
        node.stat.version = next(node.stat.version);
        (node.stat.mzxid, node.stat.mtime) = (self.facts.zxid, self.facts.now_ms);
        node.content = self.content(path, data);
        put_text(body, path);
        put_buffer(body, data);
        body.put_i32(node.stat.version);
        self.put(key(path), before, Some(node));
        Ok(())
    }

    fn set_acl(
        &mut self,
        path: &str,
        acl: &Given<'_>,
        version: i32,
        body: &mut BytesMut,
    ) -> Result<(), Rejected> {
        let path = legal(path)?;
        let acl = granted(acl, self.identities(), self.facts.bytes_max)?;
        let mut node = self.record(path).ok_or(NO_NODE)?;
        self.permit(&node, access::ADMIN)?;
        expect(version, node.stat.aversion)?;
        let before = node.digest(key(path));
        node.stat.aversion = next(node.stat.aversion);
        put_text(body, path);
        put_acl(body, &acl);
        body.put_i32(node.stat.aversion);
        // What is prepared behind this is judged by it: a right that is revoked ends at once.
        node.acl = Some(acl);
        self.put(key(path), before, Some(node));
        Ok(())
    }

    fn check(&self, path: &str, version: i32, body: &mut BytesMut) -> Result<(), Rejected> {
        let path = legal(path)?;
        let node = self.record(path).ok_or(NO_NODE)?;
        self.permit(&node, access::READ)?;
        expect(version, node.stat.version)?;
        put_text(body, path);
        body.put_i32(next(node.stat.version));
        Ok(())
    }

    /// A node as it will be.
    pub(crate) fn record(&self, path: &str) -> Option<Record> {
        if let Some(record) = self.outstanding.node(key(path)) {
            return record.clone();
        }
        let node = self.tree.get(path)?;
        Some(Record {
            stat: *node.stored_stat(),
            content: node.node.content,
            children: node.node.children.len(),
            acl: node.acl().cloned(),
        })
    }

    /// Notes how a node will be, which adds so much to the digest now.
    pub(crate) fn put(&mut self, path: &str, before: u64, record: Option<Record>) {
        let after = record.as_ref().map_or(0, |record| record.digest(path));
        self.digest = self.digest.wrapping_sub(before).wrapping_add(after);
        self.outstanding.put(path, record);
    }

    /// Notes that a node will not be.
    pub(crate) fn forget(&mut self, path: &Arc<str>) {
        let before = self.record(path).map_or(0, |record| record.digest(path));
        self.digest = self.digest.wrapping_sub(before);
        self.outstanding.put_shared(Arc::clone(path), None);
    }

    /// Nothing of what is prepared for this request shall be.
    pub(crate) fn undo(&mut self) {
        self.outstanding.undo();
        self.digest = self.outstanding.digest(self.tree.digest());
    }

    /// The transaction, with the digest of the tree behind it; where there is no room, without.
    pub(crate) fn made(&self, kind: i32, mut body: BytesMut) -> Prepared {
        if self.rules.digest && body.len() + digest::BYTES <= self.facts.bytes_max {
            body.put_i32(digest::VERSION);
            body.put_u64(self.digest);
        }
        Prepared { kind, body: body.freeze() }
    }

    fn content(&self, path: &str, data: Option<&[u8]>) -> u32 {
        if self.rules.digest { digest::of_content(path, data.unwrap_or_default()) } else { 0 }
    }

    fn exists(&self, path: &str) -> bool {
        let prepared = self.outstanding.node(key(path)).map(Option::is_some);
        prepared.unwrap_or_else(|| self.tree.get(path).is_some())
    }

    fn identities(&self) -> Option<&[Identity]> {
        self.request.identities.as_deref()
    }

    pub(crate) fn permit(&self, node: &Record, permission: i32) -> Result<(), Rejected> {
        let allowed = self.rules.permit(node.acl.as_ref(), permission, self.identities());
        if allowed { Ok(()) } else { Err(NO_AUTH) }
    }
}

/// The root has two names.
fn key(path: &str) -> &str {
    if path == "/" { "" } else { path }
}

fn legal(path: &str) -> Result<&str, Rejected> {
    if path::is_legal(path) { Ok(path) } else { Err(BAD_ARGUMENTS) }
}

/// The parent of what may be deleted.
fn deletable(path: &str) -> Result<&str, Rejected> {
    let parent = path::parent(path).ok_or(BAD_ARGUMENTS)?;
    let kept = ["/", path::ZOOKEEPER, path::QUOTA, path::CONFIG].contains(&path);
    if kept { Err(BAD_ARGUMENTS) } else { Ok(parent) }
}

fn expect(asked: i32, version: i32) -> Result<(), Rejected> {
    if asked == -1 || asked == version { Ok(()) } else { Err(BAD_VERSION) }
}

/// The version after this. -1 is what clients say for "any".
const fn next(version: i32) -> i32 {
    match version.wrapping_add(1) {
        -1 => 0,
        next => next,
    }
}
