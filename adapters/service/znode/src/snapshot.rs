//! A snapshot of the tree at one moment: the tree goes on, this can be looked at, written and sent.

use std::sync::Arc;

use quorate_core::zxid::Zxid;

use crate::acl::Acls;
use crate::map::Map;
use crate::node::{Node, NodeRef};
use crate::tree::Tree;
use crate::walk::Walk;

/// A tree at a point in time. The tree goes on; this stays as it was, and can be sent elsewhere.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) root: Arc<Node>,
    pub(crate) lists: Map<i64, Acls>,
    pub(crate) sessions: Map<i64, i32>,
    pub(crate) zxid: Zxid,
    pub(crate) digest: u64,
    pub(crate) len: usize,
}

impl Snapshot {
    /// The last transaction in it: its label.
    pub const fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// ZooKeeper's digest of the tree, version 2.
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// How many nodes it has, the root among them.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never: there is always the root.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The sessions by id, with their timeouts in milliseconds.
    pub fn sessions(&self) -> impl Iterator<Item = (i64, i32)> {
        self.sessions.iter().map(|(id, timeout)| (*id, *timeout))
    }

    /// The access lists by key.
    pub fn acls(&self) -> impl Iterator<Item = (i64, &Acls)> {
        self.lists.iter().map(|(key, list)| (*key, list))
    }

    /// Shows every node with its path, each before its children and these sorted; the root's path is
    /// `""`.
    ///
    /// # Errors
    ///
    /// The first of `show`, which ends the walk.
    pub fn walk<E>(
        &self,
        mut show: impl FnMut(&str, NodeRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut walk = Walk::begin(&self.root);
        while let Some((path, node)) = walk.next() {
            show(path, NodeRef { node, lists: &self.lists })?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("zxid", &self.zxid)
            .field("digest", &self.digest)
            .field("nodes", &self.len)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

impl Tree {
    /// The tree as it is now, whatever is applied later; see the type for what that costs.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            root: Arc::clone(&self.root),
            lists: self.acls.lists().clone(),
            sessions: self.sessions.clone(),
            zxid: self.last_zxid,
            digest: self.digest,
            len: self.len,
        }
    }
}
