//! Nodes that a leader removes by itself: containers that are empty, TTL nodes that are old, what dead sessions have left.
//!
//! | | is due when it has no children and |
//! |---|---|
//! | a container | had some; or never had any, for longer than the operator allows |
//! | a TTL node | was not changed for longer than its TTL, by the leader's wall clock |

use crate::node::{Node, NodeRef};
use crate::stat::Owner;
use crate::tree::Tree;

impl Tree {
    /// The containers and TTL nodes that are due at this time, in milliseconds since 1970. `unused_ms`: how long a container
    /// may have had no child at all; for ever, if there is none.
    pub fn due(&self, now_ms: i64, unused_ms: Option<i64>) -> impl Iterator<Item = &str> {
        let empty = |path: &str| self.get(path).filter(|node| node.node.children.is_empty());
        let age = move |node: NodeRef<'_>| now_ms.saturating_sub(node.stored_stat().mtime);
        let containers = self.containers().filter(move |path| {
            empty(path).is_some_and(|node| {
                let used = node.stored_stat().cversion > 0;
                used || unused_ms.is_some_and(|max| age(node) > max)
            })
        });
        let ttls = self.ttls().filter(move |path| {
            empty(path).is_some_and(|node| match node.owner() {
                Owner::Ttl(ttl) => age(node) > ttl,
                Owner::None | Owner::Container | Owner::Session(_) => false,
            })
        });
        containers.chain(ttls)
    }

    /// Sessions that are closed and have ephemeral nodes all the same, left by a snapshot that a Java server took while
    /// they were closed. A leader closes them once more when it begins.
    pub fn orphans(&self) -> impl Iterator<Item = i64> {
        self.owners().filter(|session| {
            // The mark of TTL nodes and containers: not a session, whatever the setting of this server says.
            let marked = (*session as u64) >> 56 == 0xff || *session == i64::MIN;
            !marked && self.session(*session).is_none()
        })
    }
}

impl NodeRef<'_> {
    /// How many nodes there are below this one, at any depth.
    pub fn descendants(&self) -> usize {
        let (mut count, mut left): (usize, Vec<&Node>) = (0, vec![self.node]);
        while let Some(node) = left.pop() {
            count += node.children.len();
            left.extend(node.children.iter().map(|(_, child)| &**child));
        }
        count
    }
}
