//! The oracle: the committed history, applied to one tree, against which everything is judged that clients are told.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::{Epoch, Zxid};
use quorate_service::wire::event::{CHILDREN_CHANGED, CREATED, DATA_CHANGED, DELETED};
use quorate_service::wire::{Stat, WatcherEvent, code};
use quorate_znode::acl::Acls;
use quorate_znode::stat::Owner;
use quorate_znode::{ErrorCode, Gone, NodeRef, Outcome, Tree, kind};

use crate::clients::access::{ADMIN, CREATE, DELETE, READ, WRITE, Who};
use crate::clients::keeping::{Kept, quota_is_right};
use crate::clients::sessions::Sessions;
use crate::hash::Mix;
use crate::java_leader::poison;
use crate::linear;
use crate::rule::{Rule, Violation, broken};

/// A node at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) data: Option<Bytes>,
    pub(crate) stat: Stat,
    pub(crate) children: BTreeSet<String>,
    pub(crate) acl: Option<Acls>,
    pub(crate) owner: Owner,
}

/// What watches are told of, and who may hear it: each client that may read a node with this list.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) event: WatcherEvent,
    pub(crate) acl: Option<Acls>,
}

/// A committed transaction.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) outcome: Outcome,
    /// What it changed, as watches are told of it.
    changes: Vec<Change>,
    /// The tree and the table of sessions behind it.
    digest: (u64, u64),
    /// Access lists, for some.
    lists: Option<u64>,
}

/// What is committed, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    tree: Tree,
    entries: BTreeMap<Zxid, Entry>,
    by_request: BTreeMap<RequestId, Zxid>,
    /// Each node that was ever there, at each of its changes.
    nodes: BTreeMap<String, Vec<(Zxid, Option<Seen>)>>,
    pub(crate) sessions: Sessions,
    pub(crate) kept: Kept,
    /// What clients asked for and were told; and what of it was never answered.
    pub(crate) linear: linear::sessions::Sessions,
    pub(crate) unanswered: Vec<(RequestId, usize)>,
    /// Who the clients of sessions are.
    pub(crate) who: BTreeMap<i64, Who>,
    /// The greatest zxid that a client has seen.
    pub(crate) seen: Zxid,
    /// Servers of ZooKeeper are among the servers: a leader answers their syncs without asking whether it still leads.
    pub(crate) beside_java: bool,
    /// No server is of ZooKeeper, nor becomes one: leaders see to it that what was left on an older connection is done, or never
    /// will be, before a newer one has the session.
    pub(crate) is_ours_alone: bool,
    /// The epochs in which a server of ZooKeeper has prepared transactions, and whether it miscounts their digests.
    by_java: BTreeMap<Epoch, bool>,
    /// The last time of a transaction of each epoch.
    times: BTreeMap<Epoch, i64>,
    /// What is counted.
    pub(crate) replies: u64,
    pub(crate) events: u64,
    pub(crate) hidden: u64,
    pub(crate) denied: u64,
    pub(crate) set_again: u64,
    pub(crate) screened: u64,
    /// How many connections there were.
    pub(crate) links: u64,
}

impl Judge {
    /// The last committed transaction.
    pub(crate) const fn last(&self) -> Zxid {
        self.tree.last_zxid()
    }

    /// Everything that is committed, in one tree.
    pub(crate) const fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn entry(&self, zxid: Zxid) -> Option<&Entry> {
        self.entries.get(&zxid)
    }

    pub(crate) fn of_request(&self, id: RequestId) -> Option<Zxid> {
        self.by_request.get(&id).copied()
    }

    /// A leader of ZooKeeper makes a transaction of a request.
    pub(crate) fn prepared_by_java(&mut self, epoch: Epoch, miscounts: bool) {
        *self.by_java.entry(epoch).or_default() |= miscounts;
    }

    /// Whether a leader of ZooKeeper has made transactions of requests in this epoch.
    pub(crate) fn is_by_java(&self, epoch: Epoch) -> bool {
        self.by_java.contains_key(&epoch)
    }

    /// Whether the digests in transactions of this epoch may be others than those of the trees behind them.
    pub(crate) fn miscounts(&self, epoch: Epoch) -> bool {
        self.by_java.get(&epoch).is_some_and(|miscounts| *miscounts)
    }

    /// Whether nothing has changed between these: the later one is the start of an epoch, at which a server shows the history
    /// of those before.
    pub(crate) fn is_alike(&self, zxid: Zxid, later: Zxid) -> bool {
        let between = Zxid(zxid.0.saturating_add(1))..=later;
        later.is_epoch_start() && self.entries.range(between).next().is_none()
    }

    /// A node behind the transaction `zxid`.
    pub(crate) fn node(&self, path: &str, zxid: Zxid) -> Option<&Seen> {
        let versions = self.nodes.get(path)?;
        let at = versions.partition_point(|(since, _)| *since <= zxid);
        at.checked_sub(1).and_then(|at| versions[at].1.as_ref())
    }

    /// What changed after `after` through `through`, in order.
    pub(crate) fn changes(
        &self,
        after: Zxid,
        through: Zxid,
    ) -> impl Iterator<Item = (Zxid, &Change)> {
        let range = Zxid(after.0.saturating_add(1))..=through.max(Zxid(after.0.saturating_add(1)));
        let entries = self.entries.range(range).filter(move |(zxid, _)| **zxid <= through);
        entries.flat_map(|(zxid, entry)| entry.changes.iter().map(|change| (*zxid, change)))
    }

    /// A transaction is committed.
    pub(crate) fn commit(&mut self, server: ServerId, txn: &Txn) -> Result<(), Violation> {
        if self.nodes.is_empty() {
            let root = seen(&self.tree, "/");
            self.nodes.insert("/".to_owned(), vec![(Zxid::ZERO, root)]);
        }
        let before = digest(&self.tree);
        let (zxid, header) = (txn.zxid, txn.header);
        let outcome = match (self.tree.apply(txn), poison::of_txn(txn)) {
            (Ok(applied), None) => applied.outcome,
            (Err(error), Some(_)) if !error.may_differ() => {
                Outcome::Failed(ErrorCode(code::SYSTEM_ERROR))
            }
            (applied, harm) => {
                let detail = format!("{zxid} is {harm:?}, and what came of it is {applied:?}");
                return broken(Rule::Poison, server, detail);
            }
        };
        let by_java = self.is_by_java(zxid.epoch());
        let before_ms = self.times.insert(zxid.epoch(), header.time);
        if let Some(ms) = before_ms.filter(|ms| header.time < *ms && !by_java) {
            let detail = format!("{zxid} is of {}, and the one before it of {ms}", header.time);
            return broken(Rule::Times, server, detail);
        }
        // A leader of ZooKeeper looks at no list there, nor at whether the session ends (`PrepRequestProcessor`).
        let unasked = by_java && header.kind == kind::DELETE_CONTAINER;
        if unasked {
        } else if let Outcome::Multi(outcomes) = &outcome {
            outcomes
                .iter()
                .try_for_each(|one| self.is_permitted(server, zxid, header.client, one))?;
        } else {
            self.is_permitted(server, zxid, header.client, &outcome)?;
        }
        let gone = |gone: &Gone| self.node(&gone.path, zxid);
        let removed = if let Outcome::Deleted(one) = &outcome { gone(one).cloned() } else { None };
        self.kept.on_committed(server, txn, &outcome, removed.as_ref(), &self.tree, by_java)?;
        let failed = outcome.error().is_some();
        if failed && digest(&self.tree) != before {
            let detail = format!("{zxid} failed, and has changed something: {outcome:?}");
            return broken(Rule::Multi, server, detail);
        }
        let changes = if failed { Vec::new() } else { changes_of(&outcome, &self.tree) };
        let lists = if let Outcome::AclSet { path, .. } = &outcome { Some(path) } else { None };
        for path in changes.iter().map(|change| &change.event.path).chain(lists) {
            let now = seen(&self.tree, path);
            let versions = self.nodes.entry(path.clone()).or_default();
            versions.retain(|(at, _)| *at != zxid);
            versions.push((zxid, now));
        }
        if !unasked {
            self.sessions.on_committed(server, zxid, header, &outcome)?;
        }
        owners_live(server, &self.tree)?;
        if header.client != 0 && header.cxid != 0 {
            self.by_request.insert(header.request(), zxid);
        }
        let digest = digest(&self.tree);
        let lists = is_looked_into(zxid).then(|| lists_of(&self.tree));
        self.entries.insert(zxid, Entry { outcome, changes, digest, lists });
        Ok(())
    }

    /// A server has applied everything through a transaction, or taken over a state: it has the same as all.
    pub(crate) fn same(&self, server: ServerId, tree: &Tree) -> Result<(), Violation> {
        owners_live(server, tree)?;
        quota_is_right(server, tree)?;
        let at = tree.last_zxid();
        let known = self.entries.range(..=at).next_back();
        let expected = known.map_or_else(|| digest(&Tree::new()), |(_, entry)| entry.digest);
        if digest(tree) != expected {
            let detail = format!("has another tree or other sessions at {at}");
            return broken(Rule::SameTree, server, detail);
        }
        let lists = known.filter(|(zxid, _)| **zxid == at).and_then(|(_, entry)| entry.lists);
        if lists.is_some_and(|lists| lists != lists_of(tree)) {
            return broken(Rule::SameTree, server, format!("has other access lists at {at}"));
        }
        Ok(())
    }

    /// What a session has done, it was permitted to do, by what was there before.
    fn is_permitted(
        &self,
        server: ServerId,
        zxid: Zxid,
        session: i64,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        let (path, permission) = match outcome {
            Outcome::Created { path, .. } => (parent(path), CREATE),
            Outcome::Deleted(gone) => (parent(&gone.path), DELETE),
            Outcome::DataSet { path, .. } => (&**path, WRITE),
            Outcome::AclSet { path, .. } => (&**path, ADMIN),
            Outcome::Checked { path } => (&**path, READ),
            Outcome::SessionOpened { .. }
            | Outcome::SessionClosed { .. }
            | Outcome::Multi(_)
            | Outcome::Failed(_) => return Ok(()),
        };
        // What is asked for in no session is the leader's, or the operator's.
        let (Some(who), Some(node)) = (self.who.get(&session), self.node(path, zxid)) else {
            return Ok(());
        };
        // A leader of ZooKeeper judges by the list that is applied, while another is on its way.
        let earlier =
            self.nodes.get(path).into_iter().flatten().filter_map(|(_, node)| node.as_ref());
        let earlier = earlier.filter(|_| self.is_by_java(zxid.epoch()));
        if earlier.chain([node]).any(|node| who.may(node.acl.as_ref(), permission)) {
            return Ok(());
        }
        let detail = format!("{zxid}, {outcome:?}, by {who:?}, and {path} permits it not");
        broken(Rule::Access, server, detail)
    }
}

/// An ephemeral node is there only while its session is.
fn owners_live(server: ServerId, tree: &Tree) -> Result<(), Violation> {
    match tree.owners().find(|owner| tree.session(*owner).is_none()) {
        None => Ok(()),
        Some(owner) => {
            let left: Vec<_> = tree.ephemerals(owner).collect();
            let detail = format!("{left:?} are left of session {owner:x} at {}", tree.last_zxid());
            broken(Rule::Ephemeral, server, detail)
        }
    }
}

fn digest(tree: &Tree) -> (u64, u64) {
    let mut mix = Mix::default();
    tree.sessions().for_each(|session| session.hash(&mut mix));
    (tree.digest(), mix.finish())
}

/// Whether the access lists behind a transaction are compared: the digest leaves them out, and to look at all takes long.
fn is_looked_into(zxid: Zxid) -> bool {
    zxid.0 % 16 == 0
}

/// All access lists.
fn lists_of(tree: &Tree) -> u64 {
    let (mut mix, mut left) = (Mix::default(), vec![String::new()]);
    while let Some(path) = left.pop() {
        let Some(node) = tree.get(if path.is_empty() { "/" } else { &path }) else { continue };
        (&path, node.acl()).hash(&mut mix);
        left.extend(node.children().map(|name| format!("{path}/{name}")));
    }
    mix.finish()
}

fn seen(tree: &Tree, path: &str) -> Option<Seen> {
    tree.get(path).map(|node| Seen {
        data: node.data().cloned(),
        stat: node.stat(),
        children: node.children().map(str::to_owned).collect(),
        acl: node.acl().cloned(),
        owner: node.owner(),
    })
}

/// What watches are told of, in order. Who may hear of it is said by the list that the node had at that moment: the one
/// with which it is deleted later in the same transaction, else that which it has now.
fn changes_of(outcome: &Outcome, tree: &Tree) -> Vec<Change> {
    let one = std::slice::from_ref(outcome);
    let all = if let Outcome::Multi(outcomes) = outcome { outcomes } else { one };
    let mut changes = Vec::new();
    for (at, outcome) in all.iter().enumerate() {
        let list_of = |path: &str| {
            let gone = all[at + 1..].iter().find_map(|later| {
                let gone = if let Outcome::Deleted(gone) = later { Some(gone) } else { None };
                gone.filter(|gone| gone.path == path).map(|gone| gone.acl.clone())
            });
            gone.unwrap_or_else(|| tree.get(path).and_then(|node: NodeRef<'_>| node.acl().cloned()))
        };
        let mut tell =
            |kind, path: &str, acl| changes.push(Change { event: event(kind, path), acl });
        match outcome {
            Outcome::Created { path, .. } => {
                tell(CREATED, path, list_of(path));
                tell(CHILDREN_CHANGED, parent(path), list_of(parent(path)));
            }
            Outcome::Deleted(gone) => {
                tell(DELETED, &gone.path, gone.acl.clone());
                tell(CHILDREN_CHANGED, parent(&gone.path), list_of(parent(&gone.path)));
            }
            Outcome::DataSet { path, .. } => tell(DATA_CHANGED, path, list_of(path)),
            Outcome::SessionClosed { deleted } => {
                for gone in deleted {
                    tell(DELETED, &gone.path, gone.acl.clone());
                    tell(CHILDREN_CHANGED, parent(&gone.path), list_of(parent(&gone.path)));
                }
            }
            Outcome::Multi(_)
            | Outcome::AclSet { .. }
            | Outcome::Checked { .. }
            | Outcome::SessionOpened { .. }
            | Outcome::Failed(_) => {}
        }
    }
    changes
}

pub(crate) fn event(kind: i32, path: &str) -> WatcherEvent {
    WatcherEvent { kind, path: path.to_owned() }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent })
}
