//! Applying committed transactions to the tree.
//!
//! | transaction | the node | its parent | otherwise |
//! |---|---|---|---|
//! | create, create2, createContainer, createTTL | is there, all counters 0 | `cversion` as told, if that is more, and then `pzxid` | |
//! | … of a node that exists | gets the access list | create only: as above | no node |
//! | delete, deleteContainer | is gone | `pzxid`, if that is more, also when the node is missing | no node |
//! | setData, reconfig | data, `version` as told, `mzxid`, `mtime` | | no node |
//! | setACL | access list, `aversion` as told | | no node |
//! | createSession | | | the session has this timeout |
//! | closeSession | the listed ones are deleted, then what else is the session's | | the session is gone |
//! | multi | one element after the other; nothing if one of them is an error | | |
//! | error, check | | | |
//!
//! Checks were the leader's. A transaction that cannot be carried out is one that the state already
//! contains, since a Java server's snapshot may hold effects of later transactions: then what can be
//! done is done, and when all of those have been applied the state is as if it had never been so.

use std::collections::BTreeSet;

use bytes::Bytes;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::node::Node;
use crate::outcome::{Applied, DigestCheck, ErrorCode, Gone, Outcome};
use crate::path;
use crate::stat::{Owner, Stat, StoredStat};
use crate::tree::Tree;
use crate::txn::{self, ApplyError, Create, Op};

/// What the elements of a transaction have in common.
#[derive(Clone, Copy)]
struct When {
    session: i64,
    zxid: Zxid,
    time: i64,
}

impl Tree {
    /// Applies a committed transaction.
    ///
    /// Transactions are applied in order. One that was applied before does no harm, as long as all
    /// that came after it follow again.
    ///
    /// # Errors
    ///
    /// If it cannot be understood, see [`ApplyError`]; the tree goes on.
    pub fn apply(&mut self, txn: &Txn) -> Result<Applied, ApplyError> {
        let header = &txn.header;
        let when = When { session: header.client, zxid: txn.zxid, time: header.time };
        let decoded = txn::decode(header.kind, &txn.body);
        self.last_zxid = self.last_zxid.max(txn.zxid);
        let (op, leader) = decoded?;
        let outcome = self.carry_out(when, op);
        let ours = self.digest;
        let digest = match leader {
            // ZooKeeper's servers write while they apply; they do not compare there, either (`DataTree.compareDigest`).
            Some(_) if txn.zxid < self.whole_at => DigestCheck::Absent,
            None => DigestCheck::Absent,
            Some(leader) if leader == ours => DigestCheck::Equal,
            Some(leader) => DigestCheck::Differs { leader, ours },
        };
        Ok(Applied { outcome, digest })
    }

    fn carry_out(&mut self, when: When, op: Op<'_>) -> Outcome {
        let done = match op {
            Op::Create(create) => {
                let path = create.path;
                self.create(when, create).map(|stat| Outcome::Created { path: path.into(), stat })
            }
            Op::Delete { path } => self.delete(when.zxid, path).map(Outcome::Deleted),
            Op::SetData { path, data, version } => self
                .set_data(path, data, version, when.zxid, when.time)
                .map(|stat| Outcome::DataSet { path: path.into(), stat }),
            Op::SetAcl { path, acl, version } => {
                let done = self.change(path, |acls, node| {
                    acls.release(node.acl);
                    node.acl = acls.acquire(acl);
                    node.stat.aversion = version;
                    node.client_stat()
                });
                done.map(|stat| Outcome::AclSet { path: path.into(), stat })
            }
            Op::Check { path } => Ok(Outcome::Checked { path: path.into() }),
            Op::Multi(ops) => {
                Ok(Outcome::Multi(ops.into_iter().map(|op| self.carry_out(when, op)).collect()))
            }
            Op::FailedMulti(codes) => {
                let failed = |code| Outcome::Failed(ErrorCode(code));
                Ok(Outcome::Multi(codes.into_iter().map(failed).collect()))
            }
            Op::CreateSession { timeout } => {
                self.sessions.insert(when.session, timeout);
                Ok(Outcome::SessionOpened { timeout })
            }
            Op::CloseSession { paths } => {
                Ok(Outcome::SessionClosed { deleted: self.close_session(when, paths) })
            }
            Op::Error(code) => Err(ErrorCode(code)),
        };
        done.unwrap_or_else(Outcome::Failed)
    }

    fn create(&mut self, when: When, create: Create<'_>) -> Result<Stat, ErrorCode> {
        let Create { path, data, acl, owner, parent_cversion, raises } = create;
        let (parent_path, name) = path::split(path).ok_or(ErrorCode::BAD_ARGUMENTS)?;
        let parent = Node::find_mut(&mut self.root, parent_path).ok_or(ErrorCode::NO_NODE)?;
        let before = parent.digest(parent_path);
        let raise = |stat: &mut StoredStat| {
            let cversion = match parent_cversion {
                -1 => stat.cversion.wrapping_add(1),
                told => told,
            };
            if cversion > stat.cversion {
                (stat.cversion, stat.pzxid) = (cversion, when.zxid);
            }
        };
        let acl = self.acls.acquire(acl);
        if let Some(existing) = parent.children.get_mut(name) {
            // The list that a snapshot knows it by may be one that the snapshot lacks.
            let existing = std::sync::Arc::make_mut(existing);
            self.acls.release(std::mem::replace(&mut existing.acl, acl));
            if raises {
                raise(&mut parent.stat);
                self.digest = self.digest.wrapping_sub(before);
                self.digest = self.digest.wrapping_add(parent.digest(parent_path));
            }
            return Err(ErrorCode::NODE_EXISTS);
        }
        let owner = owner.unwrap_or(Owner::Session(when.session));
        let stat = StoredStat::new(when.zxid, when.time, owner.to_stored());
        // A copy: the data came in a buffer with much else, which need not live as long.
        let data = data.map(Bytes::copy_from_slice);
        let node = Node::new(path, data, acl, stat);
        let (added, bytes, client_stat) = (node.digest(path), node.data_len(), node.client_stat());
        raise(&mut parent.stat);
        parent.children.insert(name.into(), node.into());
        self.digest = self.digest.wrapping_sub(before).wrapping_add(added);
        self.digest = self.digest.wrapping_add(parent.digest(parent_path));
        self.len += 1;
        self.size += path.len() + bytes;
        self.index(path, Owner::from_stored(stat.owner));
        self.quota_created(parent_path, name, path, bytes);
        Ok(client_stat)
    }

    fn delete(&mut self, zxid: Zxid, path: &str) -> Result<Gone, ErrorCode> {
        let (parent_path, name) = path::split(path).ok_or(ErrorCode::BAD_ARGUMENTS)?;
        let gone = self.change(parent_path, |_, parent| {
            parent.stat.pzxid = parent.stat.pzxid.max(zxid);
            parent.children.remove(name)
        })?;
        let gone = gone.ok_or(ErrorCode::NO_NODE)?;
        // A leader deletes leaves only. But a state that already contains later transactions may have
        // children here, of a node that is yet to be created again; so are they.
        let acl = self.acls.of(gone.acl).cloned();
        let (mut nodes, mut bytes) = (0, 0);
        let mut left = vec![(path.to_owned(), gone)];
        while let Some((path, node)) = left.pop() {
            self.digest = self.digest.wrapping_sub(node.digest(&path));
            self.size -= path.len() + node.data_len();
            self.acls.release(node.acl);
            self.unindex(&path, Owner::from_stored(node.stat.owner));
            for (name, child) in node.children.iter() {
                left.push((format!("{path}/{name}"), child.clone()));
            }
            self.quota_gone(&path);
            nodes += 1;
            bytes += node.data_len();
        }
        self.len -= nodes;
        self.quota_deleted(path, nodes, bytes);
        Ok(Gone { path: path.into(), acl })
    }

    /// Sets the data of a node.
    pub(crate) fn set_data(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
        zxid: Zxid,
        time: i64,
    ) -> Result<Stat, ErrorCode> {
        let (before, stat) = self.change(path, |_, node| {
            let before = node.data_len();
            node.set_data(path, data.map(Bytes::copy_from_slice));
            (node.stat.version, node.stat.mzxid, node.stat.mtime) = (version, zxid, time);
            (before, node.client_stat())
        })?;
        self.quota_set(path, before, data.map_or(0, <[u8]>::len));
        Ok(stat)
    }

    fn close_session(&mut self, when: When, paths: Option<Vec<&str>>) -> Vec<Gone> {
        self.sessions.remove(&when.session);
        let mut deleted = Vec::new();
        for path in paths.unwrap_or_default() {
            deleted.extend(self.delete(when.zxid, path));
        }
        // Normally there is nothing left, unless the leader did not say what there was.
        let rest: BTreeSet<_> = self.ephemerals.remove(&when.session).unwrap_or_default();
        self.ephemeral_count -= rest.len();
        for path in rest {
            deleted.extend(self.delete(when.zxid, &path));
        }
        deleted
    }
}
