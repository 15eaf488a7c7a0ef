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

use bytes::{BufMut, BytesMut};
use quorate_core::id::Origin;
use quorate_core::message::{Identity, Request};
use quorate_core::prepared::Rejected;

use crate::access::{self, Given, granted};
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
use crate::rules::{Facts, Rules};
use crate::stat::{MAX_TTL, Owner};
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
            Cow::Owned(format!("{asked}{:010}", parent.cversion))
        } else {
            Cow::Borrowed(asked)
        };
        if !path::is_legal(&path) || quota::is_poison(&path, create.data) {
            return Err(BAD_ARGUMENTS);
        }
        // The last number stays where it is: it would be given out again and again.
        let is_used_up = create.is_sequential() && parent.cversion == i32::MAX;
        if is_used_up || self.exists(&path) {
            return Err(NODE_EXISTS);
        }
        if matches!(parent.owner, Owner::Session(_)) {
            return Err(NO_CHILDREN_FOR_EPHEMERALS);
        }
        parent.children += 1;
        parent.cversion = parent.cversion.saturating_add(1);

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
        body.put_i32(parent.cversion);
        if create.kind == kind::CREATE_TTL {
            body.put_i64(create.ttl);
        }
        let node = Record {
            version: 0,
            cversion: 0,
            aversion: 0,
            mtime: self.facts.now_ms,
            owner,
            children: 0,
            acl: Some(acl),
        };
        self.outstanding.put(parent_path, Some(parent));
        self.outstanding.put(&path, Some(node));
        Ok(())
    }

    fn delete(&mut self, path: &str, version: i32, body: &mut BytesMut) -> Result<(), Rejected> {
        let parent_path = deletable(path)?;
        let parent = self.record(parent_path).ok_or(NO_NODE)?;
        self.permit(&parent, access::DELETE)?;
        let node = self.record(path).ok_or(NO_NODE)?;
        expect(version, node.version)?;
        if node.children > 0 {
            return Err(NOT_EMPTY);
        }
        self.note_deletion(path, parent_path, parent, body);
        Ok(())
    }

    /// What the leader found to be due may not be so any more.
    fn delete_container(&mut self, path: &str, body: &mut BytesMut) -> Result<(), Rejected> {
        let parent_path = deletable(path)?;
        let node = self.record(path).ok_or(NO_NODE)?;
        if node.children > 0 {
            return Err(NOT_EMPTY);
        }
        let due = match node.owner {
            // Another of its name may have taken the place of the one that was found empty.
            Owner::Container => node.cversion > 0,
            Owner::Ttl(ttl) => self.facts.now_ms.saturating_sub(node.mtime) > ttl,
            Owner::None | Owner::Session(_) => false,
        };
        if !due {
            return Err(BAD_VERSION);
        }
        let parent = self.record(parent_path).ok_or(NO_NODE)?;
        self.note_deletion(path, parent_path, parent, body);
        Ok(())
    }

    fn note_deletion(
        &mut self,
        path: &str,
        parent_path: &str,
        mut parent: Record,
        body: &mut BytesMut,
    ) {
        put_text(body, path);
        parent.children = parent.children.saturating_sub(1);
        self.outstanding.put(parent_path, Some(parent));
        self.outstanding.put(path, None);
    }

    fn set_data(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
        body: &mut BytesMut,
    ) -> Result<(), Rejected> {
        let path = legal(path)?;
        if quota::is_poison(path, data) {
            return Err(BAD_ARGUMENTS);
        }
        // Only a reconfiguration sets it, whichever rights the client has.
        if path == path::CONFIG {
            return Err(NO_AUTH);
        }
        let mut node = self.record(path).ok_or(NO_NODE)?;
        self.permit(&node, access::WRITE)?;
        expect(version, node.version)?;
        node.version = next(node.version);
        node.mtime = self.facts.now_ms;
        put_text(body, path);
        put_buffer(body, data);
        body.put_i32(node.version);
        self.outstanding.put(key(path), Some(node));
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
        expect(version, node.aversion)?;
        node.aversion = next(node.aversion);
        put_text(body, path);
        put_acl(body, &acl);
        body.put_i32(node.aversion);
        // What is prepared behind this is judged by it: a right that is revoked ends at once.
        node.acl = Some(acl);
        self.outstanding.put(key(path), Some(node));
        Ok(())
    }

    fn check(&self, path: &str, version: i32, body: &mut BytesMut) -> Result<(), Rejected> {
        let path = legal(path)?;
        let node = self.record(path).ok_or(NO_NODE)?;
        self.permit(&node, access::READ)?;
        expect(version, node.version)?;
        put_text(body, path);
        body.put_i32(next(node.version));
        Ok(())
    }

    /// A node as it will be.
    pub(crate) fn record(&self, path: &str) -> Option<Record> {
        if let Some(record) = self.outstanding.node(key(path)) {
            return record.clone();
        }
        let node = self.tree.get(path)?;
        let stat = node.stored_stat();
        Some(Record {
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            mtime: stat.mtime,
            owner: node.owner(),
            children: node.node.children.len(),
            acl: node.acl().cloned(),
        })
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
