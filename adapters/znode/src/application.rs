//! The tree as what a server replicates.
//!
//! A server of ours with this application stands among Java servers: it logs, applies, sends and takes
//! over the same transactions and snapshots as they do. What a leader makes of requests stands in
//! [`prepare`](crate::prepare); what it does not know yet it answers with ZooKeeper's "unimplemented".

use std::io::{self, Read, Write};

use bytes::Bytes;
use quorate_application::{Application, Prepared, RestoreError};
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::outcome::DigestCheck;
use crate::outstanding::Outstanding;
use crate::snapshot::Snapshot;
use crate::tree::Tree;

impl Application for Tree {
    type Snapshot = Snapshot;
    type Staged = Self;

    const PROTOCOL: i32 = LearnerInfo::PROTOCOL;

    fn prepare(&mut self, request: &Request, _now: i64, bytes_max: usize) -> Prepared {
        self.prepare_request(request, bytes_max)
    }

    /// Never: what would be too long is refused before it is noted.
    fn void(&mut self) {
        debug_assert!(false, "what is prepared is no longer than it may be");
    }

    /// The reply is empty: what a client is told depends on more than the transaction.
    fn apply(&mut self, txn: &Txn) -> Bytes {
        self.outstanding.on_applied();
        match Self::apply(self, txn) {
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
        Bytes::new()
    }

    fn abandon(&mut self) {
        self.outstanding = Outstanding::default();
    }

    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }

    fn restore(label: Zxid, from: &mut dyn Read) -> Result<Self, RestoreError> {
        Ok(Self::restore(from, label)?)
    }

    fn staged_snapshot(staged: &Self) -> Snapshot {
        Self::snapshot(staged)
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

impl quorate_application::Snapshot for Snapshot {
    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        Self::write(&self, to)
    }

    fn digest(&self) -> Option<u64> {
        Some(Self::digest(self))
    }
}
