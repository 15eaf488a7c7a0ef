//! ZooKeeper's state on one server: the tree, and what a leader has prepared on top of it.

use quorate_core::id::{LinkId, Origin};
use quorate_znode::{Preparer, Rules, Tree};

use crate::options::Options;

/// ZooKeeper's state: the [`Tree`] that all servers hold, and what a leader has prepared on top of it.
#[derive(Debug, Default)]
pub struct ZooKeeper {
    pub(crate) tree: Tree,
    pub(crate) preparer: Preparer,
    pub(crate) options: Options,
}

impl ZooKeeper {
    /// That of a server that starts for the first time, see [`Tree::new`], with ZooKeeper's settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other settings.
    pub fn with(options: Options) -> Self {
        let preparer = Preparer::new(rules(&options));
        Self { tree: Tree::new(), preparer, options }
    }

    /// What was applied.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Whether a session lives, at the leader; it belongs to the server then where its client has come to.
    pub(crate) fn revalidate(&mut self, session: i64, origin: Origin) -> bool {
        self.preparer.revalidate(&self.tree, session, origin)
    }

    /// Whether a session lives and belongs to this server, at the leader; if not, the code that says why.
    pub(crate) fn check_owner(&mut self, session: i64, origin: Origin) -> Result<(), i32> {
        self.preparer.check_owner(&self.tree, session, origin).map_err(|rejected| rejected.0)
    }

    /// Whether a session lives, at the leader.
    pub(crate) fn is_open(&self, session: i64) -> bool {
        self.preparer.is_open(&self.tree, session)
    }

    /// The learner by which the requests of a session come, at the leader; none if it is not known, or our own client's.
    pub(crate) fn learner_of(&self, session: i64) -> Option<LinkId> {
        match self.preparer.owner(session) {
            Some(Origin::Learner(link)) => Some(link),
            Some(Origin::Here | Origin::Service) | None => None,
        }
    }

    /// This server serves: all is applied that a snapshot may have had effects of when it was written.
    pub(crate) fn becomes_whole(&mut self) {
        self.tree.is_whole_at(self.tree.last_zxid());
    }

    /// Another tree takes the place of this one.
    pub(crate) fn replace(&mut self, tree: Tree) {
        (self.tree, self.preparer) = (tree, Preparer::new(rules(&self.options)));
    }
}

fn rules(options: &Options) -> Rules {
    Rules {
        extended_types: options.extended_types,
        skip_acl: options.skip_acl,
        create2_in_multi: options.create2_in_multi,
        container_unused_ms: options
            .container_unused_max
            .map(|max| i64::try_from(max.as_millis()).unwrap_or(i64::MAX)),
        digest: options.tree_digests,
    }
}
