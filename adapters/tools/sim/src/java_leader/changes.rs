//! What a leader of ZooKeeper knows of nodes that transactions change which it has proposed and not applied:
//! `ZooKeeperServer.outstandingChanges`, and the digest of the tree behind each, as `PrepRequestProcessor` counts it beforehand.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use quorate_znode::Tree;
use quorate_znode::acl::Acls;
use quorate_znode::stat::StoredStat;

/// `ZooKeeperServer.ChangeRecord`.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// None: deleted.
    pub(super) stat: Option<StoredStat>,
    pub(super) children: usize,
    pub(super) acl: Option<Acls>,
    pub(super) data: Option<Bytes>,
    /// What the node adds to the digest, and what that of the tree is behind this change.
    pub(super) node_digest: u64,
    pub(super) tree_digest: u64,
}

impl Record {
    /// That of a node that is created.
    pub(super) fn of(stat: StoredStat, acl: Acls, data: Option<Bytes>) -> Self {
        let (node_digest, tree_digest) = (0, 0);
        Self { stat: Some(stat), children: 0, acl: Some(acl), data, node_digest, tree_digest }
    }

    /// That of one that is deleted.
    pub(super) const DELETED: Self =
        Self { stat: None, children: 0, acl: None, data: None, node_digest: 0, tree_digest: 0 };
}

/// A record in the order of transactions.
#[derive(Debug)]
struct Entry {
    serial: u64,
    zxid: Zxid,
    path: String,
    record: Record,
}

/// `outstandingChanges` and `outstandingChangesForPath`.
#[derive(Debug, Default)]
pub(super) struct Changes {
    queue: VecDeque<Entry>,
    /// Of each path the newest; the root is `""`.
    newest: BTreeMap<String, (u64, Record)>,
    serials: u64,
}

impl Changes {
    /// `getRecordForPath`: how a node will be; none if it will not be.
    pub(super) fn get(&self, tree: &Tree, path: &str) -> Option<Record> {
        let path = key(path);
        if let Some((_, record)) = self.newest.get(path) {
            return record.stat.is_some().then(|| record.clone());
        }
        let node = tree.get(if path.is_empty() { "/" } else { path })?;
        let stat = *node.stored_stat();
        let data = node.data().cloned();
        let node_digest = digest(path, data.as_ref(), &stat);
        Some(Record {
            stat: Some(stat),
            children: node.children().count(),
            acl: node.acl().cloned(),
            data,
            node_digest,
            tree_digest: 0,
        })
    }

    /// `addChangeRecord`, behind `precalculateDigest`.
    pub(super) fn add(&mut self, tree: &Tree, zxid: Zxid, path: &str, record: Record) {
        let path = key(path);
        let before = self.get(tree, path).map_or(0, |before| before.node_digest);
        let after = record.stat.as_ref().map_or(0, |stat| digest(path, record.data.as_ref(), stat));
        let tree_digest = self.digest(tree).wrapping_sub(before).wrapping_add(after);
        let record = Record { node_digest: after, tree_digest, ..record };
        self.serials += 1;
        let serial = self.serials;
        self.newest.insert(path.to_owned(), (serial, record.clone()));
        self.queue.push_back(Entry { serial, zxid, path: path.to_owned(), record });
    }

    /// `getCurrentTreeDigest`.
    pub(super) fn digest(&self, tree: &Tree) -> u64 {
        self.queue.back().map_or_else(|| tree.digest(), |last| last.record.tree_digest)
    }

    /// All that is not applied, in order: `pRequest2Txn` goes through it to find what a session has.
    pub(super) fn records(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.queue.iter().map(|entry| (&*entry.path, &entry.record))
    }

    /// `getPendingChanges` and `rollbackPendingChanges`: nothing of this transaction is to be, what was before it is again.
    pub(super) fn roll_back(&mut self, zxid: Zxid) {
        let mut touched = Vec::new();
        while self.queue.back().is_some_and(|last| last.zxid == zxid) {
            touched.extend(self.queue.pop_back().map(|last| last.path));
        }
        for path in touched {
            self.newest.remove(&path);
            if let Some(entry) = self.queue.iter().rev().find(|entry| entry.path == path) {
                self.newest.insert(path, (entry.serial, entry.record.clone()));
            }
        }
    }

    /// `FinalRequestProcessor`: what is applied is in the tree.
    pub(super) fn on_applied(&mut self, zxid: Zxid) {
        while self.queue.front().is_some_and(|first| first.zxid <= zxid) {
            let Some(first) = self.queue.pop_front() else { return };
            if self.newest.get(&first.path).is_some_and(|(serial, _)| *serial == first.serial) {
                self.newest.remove(&first.path);
            }
        }
    }
}

/// The root has two names.
fn key(path: &str) -> &str {
    if path == "/" { "" } else { path }
}

/// `DigestCalculator.calculateDigest`, of version 2: CRC-32 of path, data and stat; nodes below `/zookeeper/` do not count.
fn digest(path: &str, data: Option<&Bytes>, stat: &StoredStat) -> u64 {
    if path.starts_with("/zookeeper/") {
        return 0;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(path.as_bytes());
    hasher.update(data.map_or(&[], |data| &data[..]));
    for long in [stat.czxid.0, stat.mzxid.0, stat.pzxid.0, stat.ctime, stat.mtime] {
        hasher.update(&long.to_be_bytes());
    }
    for int in [stat.version, stat.cversion, stat.aversion] {
        hasher.update(&int.to_be_bytes());
    }
    hasher.update(&stat.owner.to_be_bytes());
    u64::from(hasher.finalize())
}
