//! SYNC of a learner: its place among the requests.
//!
//! ```text
//!   REQUEST set ─► REQUEST sync ─► REQUEST set      one queue for each learner's
//!   PROPOSAL 5 ──► (point 5) ────► PROPOSAL 6       its point: what is proposed when its turn comes
//!   COMMIT 5 ────► SYNC ─────────► COMMIT 6         sent behind its point, before everything later
//! ```
//!
//! A server of ZooKeeper completes its clients' requests in the order in which it forwarded them: one whose SYNC comes
//! before the COMMIT of an earlier write, or behind that of a later one, waits for ever. It is sent without asking
//! a quorum, as ZooKeeper does.
//!
//! To a server of ours it is a linearisable read point: a quorum is asked whether we still lead, see
//! [`reads`](super::reads), and the answer is known by its tag.

use bytes::Bytes;

use crate::context::Context;
use crate::id::{LinkId, Origin};
use crate::leader::broadcast::{Asker, Broadcast};
use crate::leader::learners::Learners;
use crate::leader::progress::Sync;
use crate::message::Request;
use crate::txn::RequestId;

/// What is prepared, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Preparing {
    /// A request, by the application.
    Request(Origin, RequestId),
    /// SYNC of a learner, behind the requests before it; with its tag.
    Sync(LinkId, i32),
}

/// What waits until it is known which server leads next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Held {
    /// A request.
    Request(Origin, Request),
    /// SYNC of a learner, with its tag.
    Sync(LinkId, i32),
    /// REVALIDATE of a learner.
    Revalidate(LinkId, Bytes),
}

impl Broadcast {
    /// A learner asks for a SYNC, which it knows by `tag`: behind all that was asked for before.
    pub(super) fn on_sync(
        &mut self,
        cx: &mut Context<'_>,
        learners: &mut Learners,
        link: LinkId,
        tag: i32,
    ) {
        if self.is_holding() {
            self.held.push_back(Held::Sync(link, tag));
        } else if self.preparing.is_empty() {
            let point = cx.history.last();
            self.sync(cx, learners, link, Sync { point, tag });
        } else {
            self.preparing.push_back(Preparing::Sync(link, tag));
        }
    }

    /// The turn of a SYNC has come.
    pub(super) fn sync(
        &mut self,
        cx: &mut Context<'_>,
        learners: &mut Learners,
        link: LinkId,
        sync: Sync,
    ) {
        let ours = self.progress(cx);
        let Some(learner) = learners.get_mut(link) else { return };
        if learner.is_ours() {
            return self.read(cx, learners, Asker::Learner(link, sync.tag), sync.point);
        }
        learner.syncs.push_back(Sync { tag: 0, ..sync });
        learner.feed(cx, link, ours);
    }
}
