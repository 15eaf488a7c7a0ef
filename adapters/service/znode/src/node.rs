//! A node of the tree: its data, its stat, its part of the digest, and its children.
//!
//! Shared with snapshots, and copied when it changes. Permissions are not looked at here.

use std::sync::Arc;

use bytes::Bytes;
use compact_str::CompactString;

use crate::acl::{self, Acls};
use crate::digest;
use crate::map::Map;
use crate::path;
use crate::stat::{Owner, Stat, StoredStat};

/// The name of a node below its parent: up to 24 bytes stand in the parent's page itself.
pub(crate) type Name = CompactString;

/// The children of a node, by name.
pub(crate) type Children = Map<Name, Arc<Node>>;

/// A node and, shared, everything below it.
///
/// Not `Debug`: it would print the whole tree, one call deeper for each level.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) data: Option<Bytes>,
    /// The key of its access list.
    pub(crate) acl: i64,
    pub(crate) stat: StoredStat,
    /// The CRC of path and data, see [`digest`]; 0 if the node is not part of the digest.
    pub(crate) content: u32,
    pub(crate) children: Children,
}

impl Node {
    pub(crate) fn new(path: &str, data: Option<Bytes>, acl: i64, stat: StoredStat) -> Self {
        let content = digest::of_content(path, data.as_deref().unwrap_or_default());
        Self { data, acl, stat, content, children: Children::default() }
    }

    /// Sets the data of this node, which stands at `path`.
    pub(crate) fn set_data(&mut self, path: &str, data: Option<Bytes>) {
        self.content = digest::of_content(path, data.as_deref().unwrap_or_default());
        self.data = data;
    }

    /// What this node, which stands at `path`, adds to the digest of the tree.
    pub(crate) fn digest(&self, path: &str) -> u64 {
        digest::of(path, self.content, &self.stat)
    }

    /// How long the data is.
    pub(crate) fn data_len(&self) -> usize {
        self.data.as_ref().map_or(0, Bytes::len)
    }

    /// The stat as clients see it.
    pub(crate) fn client_stat(&self) -> Stat {
        Stat::new(&self.stat, self.data_len(), self.children.len())
    }

    /// The node at `path` in the tree below `self`.
    pub(crate) fn find(&self, path: &str) -> Option<&Self> {
        path::components(path)?.try_fold(self, |node, name| Some(&**node.children.get(name)?))
    }

    /// The node at `path` in the tree below `root`, to be changed; what copies share of the way there
    /// is copied.
    pub(crate) fn find_mut<'a>(root: &'a mut Arc<Self>, path: &str) -> Option<&'a mut Self> {
        path::components(path)?.try_fold(Arc::make_mut(root), |node, name| {
            Some(Arc::make_mut(node.children.get_mut(name)?))
        })
    }
}

/// One level after the other, not one call within the other: a tree may be very deep.
impl Drop for Node {
    fn drop(&mut self) {
        if self.children.is_empty() {
            return;
        }
        let mut left = vec![std::mem::take(&mut self.children)];
        while let Some(children) = left.pop() {
            children.drain_unshared(&mut |child| {
                if let Some(mut child) = Arc::into_inner(child) {
                    if !child.children.is_empty() {
                        left.push(std::mem::take(&mut child.children));
                    }
                }
            });
        }
    }
}

/// A node, to be looked at.
#[derive(Clone, Copy)]
pub struct NodeRef<'a> {
    pub(crate) node: &'a Node,
    pub(crate) lists: &'a Map<i64, Acls>,
}

impl<'a> NodeRef<'a> {
    /// Its data; none is not the same as empty.
    pub fn data(&self) -> Option<&'a Bytes> {
        self.node.data.as_ref()
    }

    /// What clients are told about it.
    pub fn stat(&self) -> Stat {
        self.node.client_stat()
    }

    /// What is stored of that.
    pub const fn stored_stat(&self) -> &'a StoredStat {
        &self.node.stat
    }

    /// Whose it is.
    pub const fn owner(&self) -> Owner {
        Owner::from_stored(self.node.stat.owner)
    }

    /// Its access list. None if the snapshot that the node came from lacked it, which happens while
    /// a Java server's snapshot and the transactions after it are not yet applied: permit nothing then.
    pub fn acl(&self) -> Option<&'a Acls> {
        if self.node.acl == acl::OPEN {
            return Some(&acl::OPEN_LIST);
        }
        self.lists.get(&self.node.acl)
    }

    /// The key of its access list. Keys mean nothing outside of this tree.
    pub const fn acl_key(&self) -> i64 {
        self.node.acl
    }

    /// The names of its children, sorted.
    pub fn children(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.node.children.iter().map(|(name, _)| &**name)
    }
}

impl std::fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeRef")
            .field("data", &self.node.data)
            .field("acl", &self.node.acl)
            .field("stat", &self.node.stat)
            .field("children", &self.node.children.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    /// There are millions of them. Behind two reference counts a node takes 136 bytes, which with its own word an
    /// allocator has in a block of 144; and its parent's page 32, with a name of up to 24.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn nodes_are_small() {
        assert!(size_of::<Node>() <= 120);
        assert_eq!(size_of::<(Name, Arc<Node>)>(), 32);
        assert!(!Name::from("n-000000000000000000000a").is_heap_allocated());
    }
}
