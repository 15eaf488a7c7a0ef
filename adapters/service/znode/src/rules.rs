//! What a leader judges requests by, beside the tree: the operator's settings.

use quorate_core::message::Identity;

use crate::access;
use crate::acl::Acls;

/// The operator's settings. They should be the same on all servers: any of them may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Whether there may be nodes with a time to live, ZooKeeper's `extendedTypesEnabled`.
    pub extended_types: bool,
    /// Whether every client may do everything, ZooKeeper's `skipACL`.
    pub skip_acl: bool,
    /// Whether a create2 in a multi becomes a transaction of its own kind. Java servers before 3.7.2 and 3.8.2 do
    /// not know it there: they apply what stands before it and no more. Without, it becomes a create.
    pub create2_in_multi: bool,
    /// After how long, in milliseconds, a container is due that never had a child; never, if there is none.
    pub container_unused_ms: Option<i64>,
    /// Whether transactions carry the digest of the tree behind them, ZooKeeper's `digest.enabled`: every server then
    /// finds out by itself whether it holds what the leader holds.
    pub digest: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            extended_types: false,
            skip_acl: false,
            create2_in_multi: false,
            container_unused_ms: None,
            digest: true,
        }
    }
}

impl Rules {
    /// Whether a client with these identities has a [permission](access) on a node with this list, see
    /// [`access::permitted`].
    pub fn permit(
        self,
        list: Option<&Acls>,
        permission: i32,
        identities: Option<&[Identity]>,
    ) -> bool {
        self.skip_acl || access::permitted(list, permission, identities)
    }
}
