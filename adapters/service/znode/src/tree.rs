//! The data tree: nodes, sessions, access lists, and the indexes of ephemeral, container and TTL nodes.
//!
//! ```text
//!   request ─► prepare ─► transaction ─► apply ─► Tree ─► snapshot
//!              (leader)                  (all)
//! ```
//!
//! Here it is held and looked at. It is changed by `apply` alone, the same on every server; what a leader makes
//! of requests stands in `prepare`, bytes on disk in `snapshot`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use bytes::Bytes;
use quorate_core::membership::Membership;
use quorate_core::zxid::Zxid;

use crate::acl::{self, Acl, AclTable};
use crate::map::Map;
use crate::node::{Node, NodeRef};
use crate::outcome::ErrorCode;
use crate::path;
use crate::stat::{Owner, StoredStat};

/// ZooKeeper's data tree.
///
/// Nodes are shared with the snapshots that were taken of them: taking one is a matter of reference
/// counts, and then the first change of a node copies it, the nodes above it, and of each of these
/// the page of names (at most 64) that leads to it. Nothing is copied twice for one snapshot.
pub struct Tree {
    pub(crate) root: Arc<Node>,
    pub(crate) acls: AclTable,
    pub(crate) sessions: Map<i64, i32>,
    pub(crate) last_zxid: Zxid,
    pub(crate) digest: u64,
    /// Up to this transaction it has some effects of later ones: no digest of before says anything.
    pub(crate) whole_at: Zxid,
    /// How many nodes there are.
    pub(crate) len: usize,
    /// How many bytes their paths and data have.
    pub(crate) size: usize,
    pub(crate) ephemerals: BTreeMap<i64, BTreeSet<Arc<str>>>,
    /// How many nodes these are.
    pub(crate) ephemeral_count: usize,
    pub(crate) containers: BTreeSet<Arc<str>>,
    pub(crate) ttls: BTreeSet<Arc<str>>,
    /// The paths that are under quota.
    pub(crate) quotas: BTreeSet<String>,
}

/// The stat of nodes that no transaction made.
const UNMADE: StoredStat = StoredStat::new(Zxid::ZERO, 0, 0);

impl Tree {
    /// The tree of a server that starts for the first time: the root, `/zookeeper`, and below it
    /// `config`, which every client may read, and `quota`.
    pub fn new() -> Self {
        let node = |path| Node::new(path, Some([].as_slice().into()), acl::OPEN, UNMADE);
        let mut tree = Self::with_root(node(""));
        for path in [path::ZOOKEEPER, path::QUOTA] {
            tree.attach(path, node(path));
        }
        tree.add_config_node();
        tree
    }

    /// A tree of one node.
    pub(crate) fn with_root(root: Node) -> Self {
        Self {
            digest: root.digest(""),
            size: root.data_len(),
            root: root.into(),
            acls: AclTable::default(),
            sessions: Map::default(),
            last_zxid: Zxid::ZERO,
            whole_at: Zxid::ZERO,
            len: 1,
            ephemerals: BTreeMap::new(),
            ephemeral_count: 0,
            containers: BTreeSet::new(),
            ttls: BTreeSet::new(),
            quotas: BTreeSet::new(),
        }
    }

    /// Puts a node where it belongs; nothing but the digest and the indexes notes it. False, and
    /// nothing happens, if its parent is missing or it is there already.
    pub(crate) fn attach(&mut self, path: &str, node: Node) -> bool {
        let Some((parent, name)) = path::split(path) else { return false };
        let Some(parent) = Node::find_mut(&mut self.root, parent) else { return false };
        let (digest, owner) = (node.digest(path), Owner::from_stored(node.stat.owner));
        let size = path.len() + node.data_len();
        if let Some(before) = parent.children.insert(name.into(), node.into()) {
            parent.children.insert(name.into(), before);
            return false;
        }
        self.digest = self.digest.wrapping_add(digest);
        self.size += size;
        self.len += 1;
        self.index(path, owner);
        true
    }

    fn add_config_node(&mut self) -> bool {
        let acl = self.acls.acquire(Some(vec![Acl::world(1)]));
        let stat = StoredStat { aversion: -1, ..UNMADE };
        let node = Node::new(path::CONFIG, Some([].as_slice().into()), acl, stat);
        let added = self.attach(path::CONFIG, node);
        if !added {
            self.acls.release(acl);
        }
        added
    }

    /// Writes the configuration that this server has active into `/zookeeper/config`, as every server
    /// does for itself after a start and after a synchronisation: its text, its version, and the
    /// server's own clock in milliseconds since 1970. False if there is no `/zookeeper`.
    pub fn set_configuration(&mut self, text: &str, version: i64, time: i64) -> bool {
        let data = Some(text.as_bytes());
        let version = Zxid(version);
        match self.set_data(path::CONFIG, data, -1, version, time) {
            Err(ErrorCode::NO_NODE) => {
                self.add_config_node()
                    && self.set_data(path::CONFIG, data, -1, version, time).is_ok()
            }
            done => done.is_ok(),
        }
    }

    /// The text of the configuration in `/zookeeper/config`, if the ensemble wrote it: a reconfiguration, or a server for
    /// itself, leaves the version of the data at -1 and the zxid that is the configuration's version. What a client
    /// with every right writes there is its own.
    pub fn configuration(&self) -> Option<&[u8]> {
        let node = self.get(path::CONFIG)?;
        let (data, stat) = (node.data()?, node.stat());
        let membership = Membership::parse(Bytes::copy_from_slice(data)).ok()?;
        let written = stat.version == -1 && stat.mzxid.0 == membership.version();
        written.then_some(data)
    }

    /// The last transaction that was applied, or what the snapshot was labelled.
    pub const fn last_zxid(&self) -> Zxid {
        self.last_zxid
    }

    /// It was restored from a snapshot that was written while transactions up to this one went on: it has effects of some of
    /// them, and is what it should be when all have been applied again. Where nobody knows up to which: the greatest zxid that
    /// there is, and another call when all are known to be applied.
    pub const fn is_whole_at(&mut self, zxid: Zxid) {
        self.whole_at = zxid;
    }

    /// Whether it is what the transactions up to the last one have made, and no later one.
    pub const fn is_whole(&self) -> bool {
        self.whole_at.0 <= self.last_zxid.0
    }

    /// ZooKeeper's digest of the tree, version 2: equal on servers that hold the same.
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// How many nodes there are, the root among them.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// How many bytes the paths and the data of all nodes have (`DataTree.approximateDataSize`).
    pub const fn data_size(&self) -> usize {
        self.size
    }

    /// Never: there is always the root.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The node at `path`; `"/"` and `""` are the root.
    pub fn get(&self, path: &str) -> Option<NodeRef<'_>> {
        self.root.find(path).map(|node| NodeRef { node, lists: self.acls.lists() })
    }

    /// The names of the children of `path`, sorted; none if there is no such node.
    pub fn children(&self, path: &str) -> Option<impl Iterator<Item = &str>> {
        self.get(path).map(|node| node.children())
    }

    /// The sessions by id, with their timeouts in milliseconds.
    pub fn sessions(&self) -> impl Iterator<Item = (i64, i32)> {
        self.sessions.iter().map(|(id, timeout)| (*id, *timeout))
    }

    /// The timeout of a session in milliseconds, if it is open.
    pub fn session(&self, id: i64) -> Option<i32> {
        self.sessions.get(&id).copied()
    }

    /// The paths of a session's ephemeral nodes, sorted.
    pub fn ephemerals(&self, session: i64) -> impl Iterator<Item = &str> {
        self.ephemerals.get(&session).into_iter().flatten().map(|path| &**path)
    }

    /// How many ephemeral nodes there are, of all sessions.
    pub const fn ephemeral_count(&self) -> usize {
        self.ephemeral_count
    }

    /// How many sessions are open.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// The open session with the next id, or the first, with its timeout in milliseconds.
    pub fn session_behind(&self, behind: Option<i64>) -> Option<(i64, i32)> {
        let mut rest = match behind {
            Some(id) => self.sessions.iter_behind(&id),
            None => self.sessions.iter(),
        };
        rest.next().map(|(id, timeout)| (*id, *timeout))
    }

    /// How many sessions have ephemeral nodes.
    pub fn owner_count(&self) -> usize {
        self.ephemerals.len()
    }

    /// The one of them with the next id, or the first.
    pub fn owner_behind(&self, behind: Option<i64>) -> Option<i64> {
        let from = behind.map_or(Unbounded, Excluded);
        self.ephemerals.range((from, Unbounded)).next().map(|(session, _)| *session)
    }

    /// The next path of a session's ephemeral nodes, or the first.
    pub fn ephemeral_behind(&self, session: i64, behind: Option<&str>) -> Option<&Arc<str>> {
        let from = behind.map_or(Unbounded, Excluded);
        self.ephemerals.get(&session)?.range::<str, _>((from, Unbounded)).next()
    }

    /// The sessions that have ephemeral nodes. One that is not among [`sessions`](Self::sessions) died
    /// with a leader that could not say so; a new leader closes it.
    pub fn owners(&self) -> impl Iterator<Item = i64> {
        self.ephemerals.keys().copied()
    }

    /// The paths of all containers, sorted.
    pub fn containers(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().map(|path| &**path)
    }

    /// The paths of all TTL nodes, sorted.
    pub fn ttls(&self) -> impl Iterator<Item = &str> {
        self.ttls.iter().map(|path| &**path)
    }

    /// Changes a node and the digest with it.
    pub(crate) fn change<T>(
        &mut self,
        path: &str,
        change: impl FnOnce(&mut AclTable, &mut Node) -> T,
    ) -> Result<T, ErrorCode> {
        let node = Node::find_mut(&mut self.root, path).ok_or(ErrorCode::NO_NODE)?;
        let (before, bytes) = (node.digest(path), node.data_len());
        let changed = change(&mut self.acls, node);
        self.size = self.size - bytes + node.data_len();
        self.digest = self.digest.wrapping_sub(before).wrapping_add(node.digest(path));
        Ok(changed)
    }

    pub(crate) fn index(&mut self, path: &str, owner: Owner) {
        match owner {
            Owner::None => {}
            Owner::Container => drop(self.containers.insert(path.into())),
            Owner::Ttl(_) => drop(self.ttls.insert(path.into())),
            Owner::Session(session) => {
                let new = self.ephemerals.entry(session).or_default().insert(path.into());
                self.ephemeral_count += usize::from(new);
            }
        }
    }

    pub(crate) fn unindex(&mut self, path: &str, owner: Owner) {
        match owner {
            Owner::None => {}
            Owner::Container => drop(self.containers.remove(path)),
            Owner::Ttl(_) => drop(self.ttls.remove(path)),
            Owner::Session(session) => {
                let Some(paths) = self.ephemerals.get_mut(&session) else { return };
                self.ephemeral_count -= usize::from(paths.remove(path));
                if paths.is_empty() {
                    self.ephemerals.remove(&session);
                }
            }
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("last_zxid", &self.last_zxid)
            .field("digest", &self.digest)
            .field("nodes", &self.len)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
