//! What a leader holds: how far its leadership has come, and who learns from it.
//!
//! ```text
//!   a learner introduces itself, promises, acknowledges      our own writes become durable
//!                         └───────────────► advance ◄───────────────┘
//!   discovery ── the epoch begins: LEADERINFO to all ─► synchronization ── established: UPTODATE ─► broadcast
//! ```
//!
//! Each phase counts for itself; here one follows the other, and what is true of a learner in all of them
//! is done: it is told, brought up, welcomed and, when its link ends, forgotten. What is said by learners
//! is not judged here, nor does anything here wait for a deadline.

use crate::context::{Context, RoleChange};
use crate::history::plan::Plan;
use crate::id::LinkId;
use crate::input::Located;
use crate::leader::broadcast::Broadcast;
use crate::leader::discovery::Discovery;
use crate::leader::learners::Learners;
use crate::leader::progress::{Busy, LeaderProgress, Stage, send};
use crate::leader::synchronization::{self, Begun, Synchronization, Terms};
use crate::message::{Message, Packet};
use crate::reasons::Hangup;
use crate::report::{Change, How, Reason};
use crate::status;
use crate::timers::Timer;
use crate::zxid::{Epoch, Zxid};

/// The leader's phase and its learners.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaderState {
    pub(super) phase: Phase,
    pub(super) learners: Learners,
    /// Where the history ends that we bring into this leadership.
    pub(super) inherited: Zxid,
}

/// How far the leadership has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Discovery(Discovery),
    Synchronization(Synchronization),
    Broadcast(Broadcast),
}

impl Phase {
    /// The epoch, once it is decided.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Discovery(discovery) => discovery.begun().map(|(epoch, _)| epoch),
            Self::Synchronization(synchronization) => Some(synchronization.epoch),
            Self::Broadcast(broadcast) => Some(broadcast.epoch),
        }
    }
}

impl LeaderState {
    /// No learner has come yet.
    pub(super) fn new(cx: &Context<'_>) -> Self {
        Self {
            phase: Phase::Discovery(Discovery::new(cx)),
            learners: Learners::default(),
            inherited: cx.history.last(),
        }
    }

    /// How far this leadership has come.
    pub(super) const fn phase(&self) -> status::Phase {
        match self.phase {
            Phase::Discovery(_) => status::Phase::Discovery,
            Phase::Synchronization(_) => status::Phase::Synchronization,
            Phase::Broadcast(_) => status::Phase::Broadcast,
        }
    }

    /// The epoch, once it is decided.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.phase.epoch()
    }

    /// How far we have come, once the epoch has begun.
    pub(super) fn progress(&self, cx: &Context<'_>) -> Option<LeaderProgress> {
        let (epoch, committed) = match &self.phase {
            Phase::Discovery(_) => return None,
            Phase::Synchronization(synchronization) => (synchronization.epoch, self.inherited),
            Phase::Broadcast(broadcast) => return Some(broadcast.progress(cx)),
        };
        Some(LeaderProgress { epoch, inherited: self.inherited, committed, established: false })
    }

    /// Goes on to the next phase as far as what is known allows.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) -> RoleChange {
        if let Phase::Discovery(discovery) = &mut self.phase {
            if discovery.try_begin(cx) {
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
                for link in self.learners.at_stage(|stage| stage == Stage::Introduced) {
                    self.tell(cx, link);
                }
            }
        }
        if let Phase::Discovery(discovery) = &mut self.phase {
            discovery.count_own(cx);
            if let (Some((epoch, _)), Some(members)) = (discovery.begun(), discovery.promised(cx)) {
                let from = self.phase();
                let synchronization = Synchronization::begin(cx, epoch, members.clone());
                self.phase = Phase::Synchronization(synchronization);
                let change = Change::Phase { from, to: self.phase() };
                cx.outbox.report(change, Reason::Promised { members });
                cx.timers.after(Timer::Init, cx.now, cx.config.timing.init_time());
                self.resume(cx);
            }
        }
        if let Phase::Synchronization(synchronization) = &mut self.phase {
            synchronization.count_own(cx);
            if let Some(members) = synchronization.established(cx) {
                let (epoch, from) = (synchronization.epoch, self.phase());
                let change = Change::Phase { from, to: status::Phase::Broadcast };
                cx.outbox.report(change, Reason::Acknowledged { members });
                cx.timers.stop(Timer::Init);
                // A quorum has what we brought along: now, and not before, it is known to be committed.
                cx.commit(self.inherited);
                if cx.is_due(self.inherited.max(Zxid::start_of(epoch))) {
                    cx.activate();
                    self.learners.update_quorum(cx.quorum);
                }
                self.phase = Phase::Broadcast(Broadcast::new(cx, epoch, self.inherited));
                for link in self.learners.at_stage(|stage| stage == Stage::Acknowledged) {
                    self.welcome(cx, link);
                }
                self.resume(cx);
                if !cx.quorum.is_voter(cx.config.id) {
                    // The membership that we brought along is without us.
                    return RoleChange::leave(Reason::Reconfigured {
                        version: cx.config.membership.version(),
                    });
                }
                if cx.config.lease.is_some() {
                    // No caller need wait for the first lease longer than an answer takes.
                    self.ping(cx);
                    if let Phase::Broadcast(broadcast) = &mut self.phase {
                        broadcast.renew(cx, &self.learners);
                    }
                }
                return RoleChange::Serve(epoch);
            }
        }
        RoleChange::Stay
    }

    /// LEADERINFO, when our own promise of the epoch is on disk.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let (Some(epoch), Some(learner)) = (self.epoch(), self.learners.get_mut(link)) else {
            return;
        };
        learner.stage = Stage::Told;
        let packet = Packet::LeaderInfo { epoch, protocol: cx.config.spoken() };
        match &self.phase {
            Phase::Discovery(discovery) => {
                if let Some((_, ticket)) = discovery.begun() {
                    cx.outbox.send_after(ticket, link, Message::Packet(packet));
                }
            }
            // Discovery ended only after our promise was durable.
            Phase::Synchronization(_) | Phase::Broadcast(_) => send(cx, link, packet),
        }
    }

    /// Begins to bring up those that wait: for the end of discovery, for us to be established, or for
    /// their turn to be sent a snapshot.
    pub(super) fn resume(&mut self, cx: &mut Context<'_>) {
        for link in self.learners.at_stage(|stage| matches!(stage, Stage::Promised(_))) {
            let Some(learner) = self.learners.get(link) else { continue };
            if let (Stage::Promised(last), Busy::No) = (learner.stage, learner.cursor.busy) {
                self.synchronise(cx, link, last, None);
            }
        }
    }

    /// Begins to bring one up whose history ends at `last`, unless it has to wait.
    pub(super) fn synchronise(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        last: Zxid,
        located: Option<Located>,
    ) {
        let Some(ours) = self.progress(cx) else { return };
        if !ours.established && self.leaves_to_an_election(cx, link, last, located) {
            return;
        }
        let snapshots = self.learners.observer_snapshots();
        let Some(learner) = self.learners.get_mut(link) else { return };
        let terms = Terms {
            ours,
            established: ours.established,
            room: learner.follower || snapshots < cx.config.history.observer_snapshots,
            located,
        };
        if synchronization::begin(cx, link, learner, last, terms) == Begun::Under {
            learner.feed(cx, link, ours);
        }
    }

    /// Before a quorum follows nothing may wait for a change: that waits for the quorum. So a learner that a snapshot
    /// would bring past one is refused, once, for the election to tell it; where that is in vain it is served, or a
    /// voter that is needed and hears of no change would keep everyone from leading for ever.
    fn leaves_to_an_election(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        last: Zxid,
        located: Option<Located>,
    ) -> bool {
        let Some(learner) = self.learners.get(link) else { return false };
        let (id, version) = (learner.id, cx.config.membership.version());
        let snapshot = cx.history.plan(last, None, located) == Plan::Snap;
        if !snapshot || !learner.misses_a_change(cx) {
            return false;
        }
        let now = cx.now;
        cx.concessions.untold.retain(|_, until| *until > now);
        if cx.concessions.untold.contains_key(&id) {
            let change = Change::Sync { id, how: How::Snap };
            cx.outbox.report(change, Reason::Unprotected { version });
            return false;
        }
        cx.concessions.untold.insert(id, now + cx.config.timing.init_time() * 2);
        self.drop_learner(cx, link, Hangup::Untold { version });
        true
    }

    /// Lets a learner have what it can take.
    pub(super) fn feed_one(&mut self, cx: &mut Context<'_>, link: LinkId) {
        if let (Some(ours), Some(learner)) = (self.progress(cx), self.learners.get_mut(link)) {
            learner.feed(cx, link, ours);
        }
    }

    /// UPTODATE: it serves, and what it has acknowledged counts. If the driver is sending to it, when that
    /// is over.
    pub(super) fn welcome(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(learner) = self.learners.get_mut(link) else { return };
        if learner.cursor.is_streaming() {
            return;
        }
        (learner.stage, learner.heard) = (Stage::Serving, cx.now);
        send(cx, link, Packet::UpToDate);
        if let (Phase::Broadcast(broadcast), true) = (&mut self.phase, learner.votes) {
            let (id, through) = (learner.id, learner.acks.through());
            broadcast.on_ack(cx, &mut self.learners, id, through);
            if broadcast.change.is_some() && cx.config.lease.is_some() {
                // The change waits for what it promises.
                self.learners.ping(cx, broadcast.proposed());
            }
        }
        // The COMMITs that have waited for this.
        self.feed_one(cx, link);
    }

    /// Pings every learner that has our history. Only those that serve answer.
    pub(super) fn ping(&mut self, cx: &mut Context<'_>) {
        let zxid = match &self.phase {
            Phase::Discovery(_) => return,
            Phase::Synchronization(synchronization) => Zxid::start_of(synchronization.epoch),
            Phase::Broadcast(broadcast) => broadcast.proposed(),
        };
        self.learners.ping(cx, zxid);
    }

    /// Ends the link of one, and with it all that it has acknowledged.
    pub(super) fn drop_learner(&mut self, cx: &mut Context<'_>, link: LinkId, reason: Hangup) {
        cx.links.hangup(link, reason, cx.outbox);
        self.forget(cx, link);
    }

    /// The link of one has ended.
    pub(super) fn forget(&mut self, cx: &mut Context<'_>, link: LinkId) {
        let Some(learner) = self.learners.remove(link) else { return };
        if let Busy::Snapshot(_) = learner.cursor.busy {
            self.resume(cx);
        }
        if learner.is_synced() {
            match &mut self.phase {
                Phase::Discovery(_) => {}
                Phase::Synchronization(synchronization) => synchronization.on_lost(cx, learner.id),
                Phase::Broadcast(broadcast) => {
                    broadcast.on_lost(cx, learner.id);
                    if learner.leases {
                        broadcast.renew(cx, &self.learners);
                    }
                }
            }
            let change = Change::Learner { id: learner.id, synced: false };
            cx.outbox.report(change, Reason::LinkEnded);
        }
    }
}
