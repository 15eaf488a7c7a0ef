//! A learner of ZooKeeper: which sessions it tells its leader of.
//!
//! ```text
//!   createSession, whoever's ─► applied ─┐
//!   its own clients are heard ───────────┴─► table ─► the next PING tells of all, once
//! ```
//!
//! `LearnerSessionTracker.commitSession`: so a leader that took the last who told of a session for its server would wait
//! for the wrong one.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_application::clients::Event as Told;
use quorate_core::txn::Txn;
use quorate_znode::Outcome;

use crate::world::front::Front;

impl Front {
    /// A session is opened, at whichever server.
    pub(super) fn notes_created(&mut self, txn: &Txn, outcome: &Outcome) {
        if let (Outcome::SessionOpened { timeout }, true) = (outcome, self.is_java) {
            self.created.insert(txn.header.client, *timeout);
        }
    }

    /// Another leader is told of none that was opened under this one.
    pub(super) fn forgets_created(&mut self, told: &Told) {
        if matches!(told, Told::Serving { .. } | Told::Retired) {
            self.created.clear();
        }
    }

    /// What it has heard, and what was opened since it was asked last.
    pub(super) fn tells_of_created(&mut self, heard: Bytes) -> Bytes {
        if self.created.is_empty() {
            return heard;
        }
        let mut list = BytesMut::from(&heard[..]);
        for (session, timeout) in std::mem::take(&mut self.created) {
            list.put_i64(session);
            list.put_i32(timeout);
        }
        list.freeze()
    }
}
