//! ZooKeeper as a replicated [`Application`]: what a server runs.

use bytes::{Bytes, BytesMut};
use quorate_application::clients::Host;
use quorate_application::{
    Application, Facts, Prepared, Restore, RestoreError, Snapshot, SnapshotError,
};
use quorate_core::id::Origin;
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use quorate_znode::{Applied, ApplyError, DigestCheck, Pieces, Restoring, Tree};

use crate::service::Service;
use crate::zookeeper::ZooKeeper;

impl Application for ZooKeeper {
    type Snapshot = TreeSnapshot;
    type Staged = Tree;
    type Restore = RestoreTree;
    type Effect = Result<Applied, ApplyError>;
    type Clients = Service;

    const PROTOCOL: i32 = LearnerInfo::PROTOCOL;

    fn clients(&mut self, host: Host) -> Service {
        Service::new(host, self.options.clone())
    }

    fn prepare(&mut self, request: &Request, origin: Origin, facts: &Facts) -> Prepared {
        self.preparer.prepare(&self.tree, request, origin, facts)
    }

    /// Never: what would be too long is refused before it is noted.
    fn void(&mut self) {
        debug_assert!(false, "what is prepared is no longer than it may be");
    }

    fn apply(&mut self, txn: &Txn) -> Self::Effect {
        self.preparer.on_applied();
        let effect = self.tree.apply(txn);
        match &effect {
            Ok(applied) => {
                if let DigestCheck::Differs { leader, ours } = applied.digest {
                    tracing::warn!(
                        event = "tree.differs",
                        zxid = %txn.zxid, leader = format_args!("{leader:x}"),
                        ours = format_args!("{ours:x}"), "our data tree differs from the leader's"
                    );
                }
            }
            Err(error) if error.may_differ() => {
                tracing::error!(event = "txn.unknown", zxid = %txn.zxid, %error, "a transaction is not understood");
            }
            Err(error) => {
                tracing::warn!(event = "txn.without_effect", zxid = %txn.zxid, %error, "a transaction without effect")
            }
        }
        effect
    }

    /// Empty: what a client is told depends on more than the transaction.
    fn reply(_: &Self::Effect) -> Bytes {
        Bytes::new()
    }

    fn abandon(&mut self) {
        self.preparer.abandon();
    }

    fn snapshot(&self) -> TreeSnapshot {
        TreeSnapshot::of(&self.tree)
    }

    fn restore(label: Zxid) -> RestoreTree {
        RestoreTree(Restoring::new(label))
    }

    fn staged_snapshot(staged: &Tree) -> TreeSnapshot {
        TreeSnapshot::of(staged)
    }

    fn staged_whole_at(staged: &mut Tree, zxid: Option<Zxid>) {
        staged.is_whole_at(zxid.unwrap_or(Zxid(i64::MAX)));
    }

    fn staged_membership(staged: &Tree) -> Option<Bytes> {
        staged.configuration().map(Bytes::copy_from_slice)
    }

    fn adopt(&mut self, staged: Tree) {
        self.replace(staged);
    }

    fn set_configuration(&mut self, text: &str, version: i64, now: i64) {
        self.tree.set_configuration(text, version, now);
    }
}

/// The tree at one moment, being written.
#[derive(Debug)]
pub struct TreeSnapshot {
    pieces: Pieces,
    is_whole: bool,
}

impl TreeSnapshot {
    fn of(tree: &Tree) -> Self {
        Self { pieces: tree.snapshot().pieces(), is_whole: tree.is_whole() }
    }
}

impl Snapshot for TreeSnapshot {
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
        Ok(self.pieces.next(out)?)
    }

    /// None where the tree has effects of transactions behind the last one: who reads it is not to take it for that tree.
    fn digest(&self) -> Option<u64> {
        self.is_whole.then(|| self.pieces.snapshot().digest())
    }
}

/// A tree that is being made from the bytes of a snapshot.
#[derive(Debug)]
pub struct RestoreTree(Restoring);

impl Restore for RestoreTree {
    type State = Tree;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<Tree>, RestoreError> {
        Ok(self.0.push(bytes)?)
    }
}
