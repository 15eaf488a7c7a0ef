//! By which way the requests of each session come: a leader's knowledge, which ends with its leadership.
//!
//! A session belongs to the server that its client is connected to, that is to one link, or to the leader itself.
//! Requests that are still under way from the server that the client has left are refused, so that none of them can
//! be carried out after one that the client sends by its new way. A new leader knows no owners: the first request of
//! a session tells. Link numbers never come back, so what belonged to a link that is gone can only be taken over by
//! [`set`](Owners::set).

use std::collections::BTreeMap;

use quorate_core::id::Origin;
use quorate_core::prepared::Rejected;

use crate::refusal::SESSION_MOVED;

/// The owners of the sessions, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Owners(BTreeMap<i64, Origin>);

impl Owners {
    /// Whether a request of an open session may come by `origin`. If the owner is not known yet, it is this.
    pub(crate) fn check(&mut self, session: i64, origin: Origin) -> Result<(), Rejected> {
        let owner = *self.0.entry(session).or_insert(origin);
        if owner == origin { Ok(()) } else { Err(SESSION_MOVED) }
    }

    /// By which way the requests of a session come, if it is known.
    pub(crate) fn get(&self, session: i64) -> Option<Origin> {
        self.0.get(&session).copied()
    }

    /// The client is connected there now.
    pub(crate) fn set(&mut self, session: i64, origin: Origin) {
        self.0.insert(session, origin);
    }

    /// The session ends, or its owner is not known any more.
    pub(crate) fn forget(&mut self, session: i64) {
        self.0.remove(&session);
    }
}
