//! A leader of ZooKeeper, as far as it differs from ours: what it makes of requests, and what it knows of sessions.
//!
//! ```text
//!   it begins to serve ─► clean-up in its own tree, by no transaction; every session has its full time-out
//!   REQUEST, own clients ─► Leader::prepare ─► a transaction each, also of what fails
//!   PING lists, REVALIDATE, own clients ─► Leader::touch, revalidate, own_client ─► by ticks: who is silent ─► closeSession
//!   COMMIT ─► Leader::on_applied: records of that transaction go
//! ```
//!
//! | room | in the Java code |
//! |---|---|
//! | [`preparing`] | `PrepRequestProcessor` |
//! | [`changes`] | `ZooKeeperServer.outstandingChanges`, `ChangeRecord`, `DigestCalculator` |
//! | [`poison`] | what ends servers of ZooKeeper |
//! | [`serializing`] | `DataTree.serialize` |
//! | [`tracker`] | `SessionTrackerImpl`, `ExpiryQueue`, as a `LeaderSessionTracker` without local sessions has them |
//!
//! It is ZooKeeper's 3.8.0, and is written from that, apart from the shipped `Preparer` and tracker, which it does in place of.
//! What is not here it has of ours: proposals, commits and SYNCs as servers of ZooKeeper are told them (`Leader.propose`,
//! `tryToCommit`, `processSync`), clients of its own (`FinalRequestProcessor`), which containers are due (`ContainerManager`).

mod changes;
mod checks;
pub(crate) mod poison;
mod preparing;
pub(crate) mod serializing;
mod tracker;

use std::time::Duration;

use bytes::Bytes;
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_core::time::Instant;
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_service::wire::op;
use quorate_znode::{Tree, kind};

use crate::java_leader::changes::Changes;
use crate::java_leader::tracker::Tracker;

/// A server of ZooKeeper while it leads.
#[derive(Debug)]
pub(crate) struct Leader {
    changes: Changes,
    tracker: Tracker,
    /// It has made a transaction whose digest is not that of the tree behind it: so are those behind, until all are applied.
    pub(crate) miscounts: bool,
}

impl Leader {
    /// It begins to serve: the sessions of the table have their full time-outs, and no owners. `LeaderZooKeeperServer`'s
    /// `createSessionTracker`.
    pub(crate) fn new(now: Instant, tick: Duration, tree: &Tree) -> Self {
        let mut tracker = Tracker::new(tick);
        for (session, timeout_ms) in tree.sessions() {
            tracker.track(now, session, timeout_ms);
        }
        Self { changes: Changes::default(), tracker, miscounts: false }
    }

    /// A transaction is applied. `FinalRequestProcessor.applyRequest`, `ZooKeeperServer.processTxnInSessionTracker`.
    pub(crate) fn on_applied(&mut self, txn: &Txn) {
        self.changes.on_applied(txn.zxid);
        if txn.header.kind == kind::CLOSE_SESSION {
            self.tracker.remove(txn.header.client);
        }
    }

    /// A learner was heard from about this session. `SessionTrackerImpl.touchSession`.
    pub(crate) fn touch(&mut self, now: Instant, session: i64, timeout_ms: i32) {
        self.tracker.touch(now, session, timeout_ms);
    }

    /// A client of its own spoke, which has this session. `ZooKeeperServer.touch`.
    pub(crate) fn touch_own(&mut self, now: Instant, session: i64) {
        self.tracker.touch_own(now, session);
    }

    /// A client has come with a session to a learner. `LeaderZooKeeperServer.checkIfValidGlobalSession`, and `setOwner` in
    /// `Leader.revalidateSession`.
    pub(crate) fn revalidate(
        &mut self,
        now: Instant,
        session: i64,
        timeout_ms: i32,
        by: Origin,
    ) -> bool {
        let valid = self.tracker.touch(now, session, timeout_ms);
        if valid {
            self.tracker.set_owner(session, Some(by));
        }
        valid
    }

    /// A client of its own has come with a session. `LeaderZooKeeperServer.revalidateSession`.
    pub(crate) fn takes_over(&mut self, session: i64) {
        self.tracker.set_owner(session, Some(Origin::Service));
    }

    /// Who is silent for too long by now: their ends are asked for. `SessionTrackerImpl.run`, `ZooKeeperServer.close`.
    pub(crate) fn expire(&mut self, now: Instant) -> impl Iterator<Item = Request> + use<> {
        self.tracker.poll(now).into_iter().map(close_of)
    }

    /// When one is.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.tracker.deadline()
    }
}

/// What a leader that begins to serve does to its own tree and tells no server: ephemeral nodes go whose session is not
/// in its table. `ZooKeeperServer.loadData`, `killSession`.
pub(crate) fn cleans_up(tree: &Tree) -> Vec<Txn> {
    let dead = tree.owners().filter(|owner| tree.session(*owner).is_none());
    let kill = |client| {
        let header = TxnHeader { client, cxid: 0, time: 0, kind: kind::CLOSE_SESSION };
        Txn { zxid: tree.last_zxid(), header, body: Bytes::new() }
    };
    dead.map(kill).collect()
}

fn close_of(client: i64) -> Request {
    let id = RequestId { client, cxid: 0 };
    Request { id, op: op::CLOSE_SESSION, body: Bytes::new(), identities: None }
}
