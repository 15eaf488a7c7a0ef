//! The oracle: the committed history, applied to one tree, against which everything is judged that clients are told.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::Zxid;
use quorate_service::wire::event::{CHILDREN_CHANGED, CREATED, DATA_CHANGED, DELETED};
use quorate_service::wire::{Stat, WatcherEvent};
use quorate_znode::{Outcome, Tree};

use crate::clients::sessions::Sessions;
use crate::hash::Mix;
use crate::rule::{Rule, Violation, broken};

/// A node at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) data: Option<Bytes>,
    pub(crate) stat: Stat,
    pub(crate) children: BTreeSet<String>,
}

/// A committed transaction.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) outcome: Outcome,
    /// What it changed, as watches are told of it.
    changes: Vec<WatcherEvent>,
    /// The tree and the table of sessions behind it.
    digest: (u64, u64),
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
    /// The greatest zxid that a client has seen.
    pub(crate) seen: Zxid,
    /// What is counted.
    pub(crate) replies: u64,
    pub(crate) events: u64,
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
    ) -> impl Iterator<Item = (Zxid, &WatcherEvent)> {
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
        let Ok(applied) = self.tree.apply(txn) else {
            return broken(Rule::SameTree, server, format!("{zxid} is not understood"));
        };
        let outcome = applied.outcome;
        let failed = outcome.error().is_some();
        if failed && digest(&self.tree) != before {
            let detail = format!("{zxid} failed, and has changed something: {outcome:?}");
            return broken(Rule::Multi, server, detail);
        }
        let mut changes = Vec::new();
        if !failed {
            changes_of(&outcome, &mut changes);
        }
        for WatcherEvent { path, .. } in &changes {
            let now = seen(&self.tree, path);
            let versions = self.nodes.entry(path.clone()).or_default();
            versions.retain(|(at, _)| *at != zxid);
            versions.push((zxid, now));
        }
        self.sessions.on_committed(server, zxid, header, &outcome)?;
        owners_live(server, &self.tree)?;
        if header.client != 0 && header.cxid != 0 {
            self.by_request.insert(header.request(), zxid);
        }
        let digest = digest(&self.tree);
        self.entries.insert(zxid, Entry { outcome, changes, digest });
        Ok(())
    }

    /// A server has applied everything through a transaction, or taken over a state: it has the same as all.
    pub(crate) fn same(&self, server: ServerId, tree: &Tree) -> Result<(), Violation> {
        owners_live(server, tree)?;
        let at = tree.last_zxid();
        let known = self.entries.range(..=at).next_back();
        let expected = known.map_or_else(|| digest(&Tree::new()), |(_, entry)| entry.digest);
        if digest(tree) == expected {
            return Ok(());
        }
        broken(Rule::SameTree, server, format!("has another tree or other sessions at {at}"))
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

fn seen(tree: &Tree, path: &str) -> Option<Seen> {
    tree.get(path).map(|node| Seen {
        data: node.data().cloned(),
        stat: node.stat(),
        children: node.children().map(str::to_owned).collect(),
    })
}

/// What watches are told of, in order.
fn changes_of(outcome: &Outcome, changes: &mut Vec<WatcherEvent>) {
    match outcome {
        Outcome::Created { path, .. } => {
            changes.push(event(CREATED, path));
            changes.push(event(CHILDREN_CHANGED, parent(path)));
        }
        Outcome::Deleted(gone) => {
            changes.push(event(DELETED, &gone.path));
            changes.push(event(CHILDREN_CHANGED, parent(&gone.path)));
        }
        Outcome::DataSet { path, .. } => changes.push(event(DATA_CHANGED, path)),
        Outcome::SessionClosed { deleted } => {
            for gone in deleted {
                changes.push(event(DELETED, &gone.path));
                changes.push(event(CHILDREN_CHANGED, parent(&gone.path)));
            }
        }
        Outcome::Multi(outcomes) => outcomes.iter().for_each(|one| changes_of(one, changes)),
        Outcome::AclSet { .. }
        | Outcome::Checked { .. }
        | Outcome::SessionOpened { .. }
        | Outcome::Failed(_) => {}
    }
}

pub(crate) fn event(kind: i32, path: &str) -> WatcherEvent {
    WatcherEvent { kind, path: path.to_owned() }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent })
}
