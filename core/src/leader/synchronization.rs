//! Synchronization, the leader's side: everybody takes over our history.
//!
//! ```text
//!   ACKEPOCH ─► DIFF, NEWLEADER ─► (the learner's disk) ─► ACK ─► a quorum? established ─► UPTODATE
//! ```
//!
//! Acknowledgements belong to the link they came on and are withdrawn when it ends: only a learner
//! that is still there holds the history now. Our own counts when our current epoch is on disk.

use alloc::vec::Vec;

use crate::context::Context;
use crate::history::Plan;
use crate::id::{LinkId, ServerId, Ticket};
use crate::leader::progress::send;
use crate::message::Packet;
use crate::output::Write;
use crate::quorum::Support;
use crate::report::{Change, Reason};
use crate::zxid::{Epoch, Zxid};

/// The leader's synchronization, until it is established.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Synchronization {
    /// The epoch that begins.
    pub epoch: Epoch,
    /// Our current epoch on its way to the disk.
    written: Ticket,
    acknowledged: Support,
}

impl Synchronization {
    /// A quorum has promised `epoch`: from now on it is our current one.
    pub fn begin(cx: &mut Context<'_>, epoch: Epoch, promised: Vec<ServerId>) -> Self {
        let written = cx.outbox.persist(Write::CurrentEpoch(epoch));
        cx.epochs.current_epoch = epoch;
        cx.outbox.report(Change::CurrentEpoch(epoch), Reason::Promised { members: promised });
        Self { epoch, written, acknowledged: cx.quorum.support() }
    }

    /// Counts the ACK of a voter.
    pub fn on_ack(&mut self, cx: &Context<'_>, voter: ServerId) {
        self.acknowledged.add(cx.quorum, voter);
    }

    /// Withdraws it.
    pub fn on_lost(&mut self, cx: &Context<'_>, voter: ServerId) {
        self.acknowledged.remove(cx.quorum, voter);
    }

    /// Counts ourselves as soon as our current epoch is durable, not before: two leaders could be
    /// established in one epoch otherwise.
    pub fn count_own(&mut self, cx: &Context<'_>) {
        if cx.outbox.is_durable(self.written) {
            self.acknowledged.add(cx.quorum, cx.config.id);
        }
    }

    /// Whether a quorum including ourselves has our history; who.
    pub fn established(&self, cx: &Context<'_>) -> Option<Vec<ServerId>> {
        let enough = self.acknowledged.contains(cx.quorum, cx.config.id)
            && self.acknowledged.is_enough(cx.quorum);
        enough.then(|| self.members(cx))
    }

    /// Who has it.
    pub fn members(&self, cx: &Context<'_>) -> Vec<ServerId> {
        self.acknowledged.members(cx.quorum).collect()
    }
}

/// Brings a learner whose history ends at `last` to ours and asks for its acknowledgement; returns
/// whether that can be done.
pub fn synchronise(cx: &mut Context<'_>, link: LinkId, epoch: Epoch, last: Zxid) -> bool {
    match cx.history.plan(last) {
        Plan::Diff(label) => {
            send(cx, link, Packet::Diff(label));
            let config = cx.config.membership.text().clone();
            send(cx, link, Packet::NewLeader { zxid: Zxid::start_of(epoch), config });
            true
        }
        Plan::Unsupported => false,
    }
}
