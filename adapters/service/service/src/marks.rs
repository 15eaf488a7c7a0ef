//! What a session leaves in the log when it comes to a server: a mark, which every other server sees.
//!
//! ```text
//!   a client comes to server 2 with its session
//!      └─► the leader is asked ─► mark ─► committed ─► the client is told that it has its session
//!                                   └─► applied at server 1, where it was: what it left there does not survive this leader
//! ```
//!
//! Who has a session is known to its leader alone, and is forgotten with it. A server that keeps idle clients from one leader
//! to the [next](crate::between) must know by itself that one of them has gone, since the next leader takes what comes first
//! for what its client wants: a write that it left there on its way would be carried out behind what it does at its new
//! server. So a client is told that it has its session here only when a quorum has the mark, and no leader can be without it.
//!
//! The mark is a transaction of the session that failed, as ZooKeeper's leaders make them of any write that is refused: every
//! kind of server takes it for that, and changes nothing. ZooKeeper's own leaders leave none; see
//! [`Serving`](quorate_application::clients::Event::Serving).

use alloc::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_application::clients::ClientId;
use quorate_core::id::LinkId;
use quorate_core::message::Request;
use quorate_core::txn::{RequestId, TxnHeader};
use quorate_znode::kind;

/// The marks of a leader that are not applied: for whom each is, in their order.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<i64, VecDeque<Comer>>);

/// Who has come with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comer {
    /// A client of this server.
    Client(ClientId),
    /// One of a learner's.
    Learner(LinkId),
}

impl Comer {
    /// The link of the learner at which it is.
    pub(crate) const fn learner(self) -> Option<LinkId> {
        match self {
            Self::Client(_) => None,
            Self::Learner(link) => Some(link),
        }
    }
}

impl Marks {
    /// Somebody has come with this session; its mark is asked for behind those that were asked for before.
    pub(crate) fn put(&mut self, session: i64, comer: Comer) {
        self.0.entry(session).or_default().push_back(comer);
    }

    /// Whether somebody waits for the mark of a session: it lives as long as that.
    pub(crate) fn is_waited_for(&self, session: i64) -> bool {
        self.0.contains_key(&session)
    }

    /// The oldest mark of this session is applied: who is to be told.
    pub(crate) fn take(&mut self, session: i64) -> Option<Comer> {
        let comers = self.0.get_mut(&session)?;
        let comer = comers.pop_front();
        if comers.is_empty() {
            self.0.remove(&session);
        }
        comer
    }
}

/// What asks for the mark of a session.
pub(crate) const fn mark_of(session: i64) -> Request {
    let id = RequestId { client: session, cxid: 0 };
    Request { id, op: kind::ERROR, body: Bytes::new(), identities: None }
}

/// Whether a transaction of a session is a mark, as far as its header tells: a client that gives a write this number, and is
/// refused, is told too early that it has its session, to its own loss.
pub(crate) const fn may_be_mark(header: &TxnHeader) -> bool {
    header.kind == kind::ERROR && header.cxid == 0
}
