//! Synchronization, the leader's side: everybody takes over our history.
//!
//! ```text
//!   ACKEPOCH ─► how? ─► DIFF │ TRUNC │ SNAP ─► what is missing, with COMMIT ─► NEWLEADER
//!            ─► (the learner's disk) ─► ACK ─► a quorum? established ─► UPTODATE
//! ```
//!
//! The whole history that we bring into our leadership goes out with COMMIT, committed or not: otherwise a
//! learner would acknowledge NEWLEADER without having it on disk.
//!
//! Acknowledgements belong to the link they came on and are withdrawn when it ends: only a learner
//! that is still there holds the history now. Our own counts when our current epoch is on disk.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::context::Context;
use crate::history::plan::Plan;
use crate::id::{LinkId, ServerId, Ticket};
use crate::input::Located;
use crate::leader::progress::{Busy, Cursor, LeaderProgress, Progress, Stage, send};
use crate::message::Packet;
use crate::output::{Output, Write};
use crate::quorum::Support;
use crate::reconfiguration::with_snapshot;
use crate::report::{Change, How, Reason};
use crate::timers::Timer;
use crate::zxid::{Epoch, Zxid};

/// The leader's synchronization, until it is established.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Synchronization {
    /// The epoch that begins.
    pub epoch: Epoch,
    /// Our current epoch on its way to the disk, behind the last of our log.
    written: Ticket,
    acknowledged: Support,
}

impl Synchronization {
    /// A quorum has promised `epoch`: from now on it is our current one.
    pub fn begin(cx: &mut Context<'_>, epoch: Epoch, promised: Vec<ServerId>) -> Self {
        if cx.config.reconfig_enabled && cx.config.last_seen().version() == 0 {
            // From here on memberships have versions.
            let version = Zxid::start_of(epoch).0;
            cx.see(Some(cx.config.membership.with_version(version)));
        }
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
    /// established in one epoch otherwise. And not while we promise another leader to establish no other.
    pub fn count_own(&mut self, cx: &mut Context<'_>) {
        if !cx.outbox.is_durable(self.written) {
            return;
        }
        match cx.lease.forbids(self.epoch, cx.now) {
            Some(until) => cx.timers.set(Timer::Lease, until),
            None => {
                self.acknowledged.add(cx.quorum, cx.config.id);
            }
        }
    }

    /// Whether a quorum including ourselves has our history; who.
    pub fn established(&self, cx: &Context<'_>) -> Option<Vec<ServerId>> {
        let enough = self.acknowledged.contains(cx.quorum, cx.config.id)
            && self.acknowledged.is_enough(cx.quorum);
        enough.then(|| self.members(cx))
    }

    /// Whether it is worth waiting for this voter: its acknowledgement would count, and with everybody
    /// who is `here` there would be a quorum.
    pub fn needs(
        &self,
        cx: &Context<'_>,
        voter: ServerId,
        here: impl Iterator<Item = ServerId>,
    ) -> bool {
        let mut hope = self.acknowledged.clone();
        hope.add(cx.quorum, cx.config.id);
        for id in here {
            hope.add(cx.quorum, id);
        }
        self.acknowledged.lacks(cx.quorum, voter) && hope.is_enough(cx.quorum)
    }

    /// Who has it.
    pub fn members(&self, cx: &Context<'_>) -> Vec<ServerId> {
        self.acknowledged.members(cx.quorum).collect()
    }
}

/// What comes of the attempt to begin bringing a learner up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begun {
    /// It is under way: what the learner gets next.
    Under,
    /// The disk was asked where the learner stands.
    Asked,
    /// It needs a snapshot, and must wait for its turn.
    Waits,
}

/// What decides beside the two histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How far we have come.
    pub ours: LeaderProgress,
    /// Whether we are established.
    pub established: bool,
    /// Whether one more snapshot may be sent to this learner.
    pub room: bool,
    /// The disk's answer, once it was asked.
    pub located: Option<Located>,
}

/// Says how a learner whose history ends at `last` is brought to ours, and sets its cursor where that
/// begins.
pub fn begin(
    cx: &mut Context<'_>,
    link: LinkId,
    learner: &mut Progress,
    last: Zxid,
    terms: Terms,
) -> Begun {
    let Terms { ours, established, room, located } = terms;
    let start = Zxid::start_of(ours.epoch);
    let plan = cx.history.plan(last, established.then_some(ours.epoch), located);
    let processed = if established { ours.committed.max(start) } else { ours.committed };
    let how = match plan {
        Plan::Diff { label, after } => {
            learner.cursor = Cursor::at(after, after.min(processed), false);
            send(cx, link, Packet::Diff(label));
            How::Diff
        }
        Plan::Trunc { to } => {
            learner.cursor = Cursor::at(to, to.min(processed), true);
            send(cx, link, Packet::Trunc(to));
            How::Trunc
        }
        Plan::Snap if !room => return Begun::Waits,
        Plan::Snap => {
            // An established leader's state is that of its epoch's start at least; the label must be
            // later than the log of a learner that is beyond our last, see `History::plan`.
            let position = cx.history.position();
            let label = if established { position.max(start) } else { position };
            learner.cursor.busy = Busy::Snapshot(label);
            let next = cx.config.next_membership.as_ref();
            let memberships = with_snapshot(&cx.config.membership, next, label);
            let memberships = if learner.collects { memberships } else { Bytes::new() };
            // Which state that is shows when it is its turn.
            let staged = false;
            cx.for_application(Output::SendSnapshot { link, label, memberships, staged });
            How::Snap
        }
        Plan::Locate => {
            learner.cursor.busy = Busy::Locating;
            cx.outbox.push(Output::Locate { link, zxid: last });
            return Begun::Asked;
        }
    };
    cx.outbox.report(Change::Sync { id: learner.id, how }, Reason::EndsAt(last));
    learner.stage = Stage::Syncing;
    Begun::Under
}
