//! Walking the tree in order, each node before its children and these sorted, from any node on.

use std::sync::Arc;

use crate::map::Iter;
use crate::node::{Name, Node};

type Children<'a> = Iter<'a, Name, Arc<Node>>;

/// A walk through a tree, one node after the other.
pub(crate) struct Walk<'a> {
    path: String,
    /// The root, if it was not shown yet.
    root: Option<&'a Node>,
    /// Of each node on the way: how long its path is, and its children that were not shown.
    below: Vec<(usize, Children<'a>)>,
}

impl<'a> Walk<'a> {
    /// From the root on, whose path is `""`.
    pub(crate) const fn begin(root: &'a Node) -> Self {
        Self { path: String::new(), root: Some(root), below: Vec::new() }
    }

    /// Behind `path`, which was shown.
    pub(crate) fn behind(root: &'a Node, path: &str) -> Self {
        let mut walk = Self { path: path.to_owned(), root: None, below: Vec::new() };
        let (mut node, mut length) = (root, 0);
        for name in path.split('/').skip(1) {
            walk.below.push((length, node.children.iter_behind(name)));
            let Some(child) = node.children.get(name) else { return walk };
            node = child;
            length += 1 + name.len();
        }
        walk.below.push((length, node.children.iter()));
        walk
    }

    /// The next node and its path.
    pub(crate) fn next(&mut self) -> Option<(&str, &'a Node)> {
        if let Some(root) = self.root.take() {
            self.below.push((0, root.children.iter()));
            return Some((&self.path, root));
        }
        while let Some((parent, children)) = self.below.last_mut() {
            self.path.truncate(*parent);
            let Some((name, node)) = children.next() else {
                self.below.pop();
                continue;
            };
            self.path.push('/');
            self.path.push_str(name);
            if !node.children.is_empty() {
                self.below.push((self.path.len(), node.children.iter()));
            }
            return Some((&self.path, node));
        }
        None
    }
}
