//! The tree as what a server replicates.
//!
//! A server of ours with this application stands among Java servers: it logs, applies, sends and takes
//! over the same transactions and snapshots as they do. What a leader makes of requests stands in
//! [`prepare`](crate::prepare); what it does not know yet it answers with ZooKeeper's "unimplemented".

use bytes::{Bytes, BytesMut};
use quorate_application::{Application, Prepared, Restore, RestoreError, SnapshotError};
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::outcome::{Applied, DigestCheck};
use crate::outstanding::Outstanding;
use crate::pieces::Pieces;
use crate::restore::Restoring;
use crate::tree::Tree;
use crate::txn::ApplyError;

impl Application for Tree {
    type Snapshot = Pieces;
    type Staged = Self;
    type Restore = Restoring;
    type Effect = Result<Applied, ApplyError>;

    const PROTOCOL: i32 = LearnerInfo::PROTOCOL;

    fn prepare(&mut self, request: &Request, _now: i64, bytes_max: usize) -> Prepared {
        self.prepare_request(request, bytes_max)
    }

    /// Never: what would be too long is refused before it is noted.
    fn void(&mut self) {
        debug_assert!(false, "what is prepared is no longer than it may be");
    }

    fn apply(&mut self, txn: &Txn) -> Self::Effect {
        self.outstanding.on_applied();
        let effect = Self::apply(self, txn);
        match &effect {
            Ok(applied) => {
                if let DigestCheck::Differs { leader, ours } = applied.digest {
                    tracing::warn!(
                        zxid = %txn.zxid, leader = format_args!("{leader:x}"),
                        ours = format_args!("{ours:x}"), "our data tree differs from the leader's"
                    );
                }
            }
            Err(error) if error.may_differ() => {
                tracing::error!(zxid = %txn.zxid, %error, "a transaction is not understood");
            }
            Err(error) => tracing::warn!(zxid = %txn.zxid, %error, "a transaction without effect"),
        }
        effect
    }

    /// Empty: what a client is told depends on more than the transaction.
    fn reply(_: &Self::Effect) -> Bytes {
        Bytes::new()
    }

    fn abandon(&mut self) {
        self.outstanding = Outstanding::default();
    }

    fn snapshot(&self) -> Pieces {
        Self::snapshot(self).pieces()
    }

    fn restore(label: Zxid) -> Restoring {
        Restoring::new(label)
    }

    fn staged_snapshot(staged: &Self) -> Pieces {
        Self::snapshot(staged).pieces()
    }

    fn staged_membership(staged: &Self) -> Option<Bytes> {
        staged.configuration().map(Bytes::copy_from_slice)
    }

    fn adopt(&mut self, staged: Self) {
        *self = staged;
    }

    fn set_configuration(&mut self, text: &str, version: i64, now: i64) {
        Self::set_configuration(self, text, version, now);
    }
}

impl quorate_application::Snapshot for Pieces {
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
        Ok(Self::next(self, out)?)
    }

    fn digest(&self) -> Option<u64> {
        Some(self.snapshot().digest())
    }
}

impl Restore for Restoring {
    type State = Tree;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<Tree>, RestoreError> {
        Ok(Self::push(self, bytes)?)
    }
}
