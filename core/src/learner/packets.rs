//! What the leader says, phase by phase, and what a learner makes of it.
//!
//! ```text
//!   packet ─┬─ discovery ───────► LEADERINFO ─► the epoch, or a refusal
//!           ├─ synchronization ─► history, NEWLEADER, UPTODATE ─► serves
//!           └─ broadcast ───────► PROPOSAL, COMMIT, PING, TRANSFER
//! ```
//!
//! What a packet does stands in the room of its phase; here stands which one it is meant for, and what becomes
//! of us when it is refused there.

use alloc::boxed::Box;

use bytes::Bytes;

use crate::context::{Context, RoleChange};
use crate::id::{LinkId, ServerId};
use crate::learner::breach::Breach;
use crate::learner::discovery::Announced;
use crate::learner::synchronization::{Synchronization, new_leader};
use crate::learner::{Learner, Phase, broadcast, discovery, reconfiguration};
use crate::message::{LearnerInfo, Message, Packet, Run};
use crate::output::Output;
use crate::reasons::{Fault, Hangup};
use crate::report::{Change, Reason};
use crate::status;
use crate::timers::Timer;
use crate::vote::{Round, Vote};
use crate::zxid::{Epoch, Zxid};

impl Learner {
    /// The leader has said something.
    pub fn on_packet(&mut self, cx: &mut Context<'_>, from: LinkId, packet: Packet) -> RoleChange {
        if self.link() != Some(from) {
            return RoleChange::Stay;
        }
        self.heard(cx);
        let brings =
            matches!(packet, Packet::Proposal(_) | Packet::Proposals(_) | Packet::Inform(_));
        if brings && self.is_behind(cx) {
            return self.fall_behind(cx, from);
        }
        self.on_said(cx, packet)
    }

    /// How many bytes of transactions we hold that are not on disk.
    fn unsynced(&self, cx: &Context<'_>) -> usize {
        let pending = match &self.phase {
            Phase::Synchronization(_, synchronization) => synchronization.pending_bytes(),
            Phase::Reaching { .. } | Phase::Discovery(_) | Phase::Broadcast(..) => 0,
        };
        cx.outbox.unsynced_bytes() + pending
    }

    fn is_behind(&self, cx: &Context<'_>) -> bool {
        let most = cx.outbox.room(cx.config.limits.unsynced_bytes);
        self.unsynced(cx) > most
    }

    /// We give up a leader with which our disk does not keep up, before we hold more than there is room for: it sends
    /// what it proposes for as long as we read, and commits it with others. What was logged stays; we come back when
    /// the disk has it. What came beside the history, or without COMMIT, has to come again: so a learner that does not even
    /// serve has twice the room the next time, or what follows a snapshot could be too much for ever.
    fn fall_behind(&self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        let (bytes, most) = (self.unsynced(cx), cx.outbox.room(cx.config.limits.unsynced_bytes));
        if let Phase::Synchronization(..) = self.phase {
            cx.outbox.widen();
        }
        cx.links.hangup(link, Hangup::DiskBehind { bytes, most }, cx.outbox);
        RoleChange::leave(Reason::DiskBehind { bytes, most })
    }

    fn on_said(&mut self, cx: &mut Context<'_>, packet: Packet) -> RoleChange {
        match &mut self.phase {
            Phase::Reaching { .. } => RoleChange::Stay,
            Phase::Discovery(link) => {
                let link = *link;
                self.on_discovery(cx, link, packet)
            }
            Phase::Synchronization(..) => self.on_synchronization(cx, packet),
            Phase::Broadcast(..) => self.on_broadcast(cx, packet),
        }
    }

    pub(super) fn on_discovery(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        packet: Packet,
    ) -> RoleChange {
        let leader = self.leader;
        let Packet::LeaderInfo { epoch, protocol } = packet else {
            return self.misbehaved(cx, link, packet.name());
        };
        if !LearnerInfo::go_together(protocol, cx.config.protocol) {
            cx.links.hangup(link, Hangup::OtherApplication(protocol), cx.outbox);
            return RoleChange::leave(Reason::LeaderMisbehaved { leader, packet: "LEADERINFO" });
        }
        self.asked = LearnerInfo::knows_may_lead(protocol);
        self.marks = LearnerInfo::marks(protocol);
        let accepted = cx.epochs.accepted_epoch;
        match discovery::on_leader_info(cx, link, leader, epoch, self.blank, self.observer) {
            Announced::Accepted => {
                // For a later epoch we have told what we have.
                self.blank &= epoch <= accepted;
                let change = Change::Phase {
                    from: status::Phase::Discovery,
                    to: status::Phase::Synchronization,
                };
                cx.outbox.report(change, Reason::LeaderSaid { leader, epoch });
                self.phase =
                    Phase::Synchronization(link, Box::new(Synchronization::new(cx, epoch)));
                // The leader has its quorum: who of it looks again is the leader's affair.
                self.supporters.clear();
                RoleChange::Stay
            }
            Announced::Refused => {
                let reason = if epoch.is_valid() {
                    Hangup::OldEpoch(epoch)
                } else {
                    Hangup::EpochOutOfRange(epoch)
                };
                cx.links.hangup(link, reason, cx.outbox);
                RoleChange::leave(Reason::OldEpoch { announced: epoch, accepted })
            }
        }
    }

    pub(super) fn on_synchronization(
        &mut self,
        cx: &mut Context<'_>,
        packet: Packet,
    ) -> RoleChange {
        let leader = self.leader;
        let Phase::Synchronization(link, synchronization) = &mut self.phase else {
            return RoleChange::Stay;
        };
        let (link, start, name) = (*link, Zxid::start_of(synchronization.epoch), packet.name());
        let (acknowledging, epoch) = (synchronization.acknowledging, synchronization.epoch);
        let acknowledged = synchronization.acknowledged;
        let (zxid, taken) = match packet {
            // Who said that it is unknown what it has must get everything: that still lies there.
            Packet::Diff(zxid) | Packet::Trunc(zxid) if self.blank => {
                (zxid, Err(Breach::OutOfTurn))
            }
            Packet::Diff(label) => (label, synchronization.on_diff(cx, label)),
            Packet::Trunc(zxid) => (zxid, synchronization.on_trunc(cx, link, zxid)),
            Packet::Snap { label, memberships } => {
                (label, synchronization.on_snap(cx, link, label, &memberships))
            }
            Packet::Proposal(txn) => (txn.zxid, synchronization.on_proposal(cx, txn)),
            Packet::Proposals(txns) => {
                let mut last = (start, Ok(()));
                for txn in &*txns {
                    last = (txn.zxid, synchronization.on_proposal(cx, txn.clone()));
                    if last.1.is_err() {
                        break;
                    }
                }
                last
            }
            Packet::Commit(zxid) | Packet::CommitAndActivate { zxid, .. } => {
                (zxid, synchronization.on_commit(cx, zxid))
            }
            Packet::Commits(run) => (run.last, synchronization.on_commit(cx, run.last)),
            Packet::Inform(txn) | Packet::InformAndActivate { txn, .. } => {
                (txn.zxid, synchronization.on_inform(cx, txn))
            }
            Packet::NewLeader { zxid, config } if zxid == start => {
                let taken = if synchronization.on_config(&config) {
                    new_leader::on_new_leader(cx, link, leader, synchronization)
                } else {
                    Err(Breach::OutOfTurn)
                };
                (zxid, taken)
            }
            Packet::UpToDate
                if acknowledged && acknowledging.is_some_and(|t| cx.outbox.is_durable(t)) =>
            {
                return self.on_up_to_date(cx);
            }
            Packet::NewLeader { zxid, .. } => (zxid, Err(Breach::OutOfTurn)),
            Packet::UpToDate => (start, Err(Breach::OutOfTurn)),
            // Java ignores everything else here, pings too, and so its leaders expect no answer.
            Packet::FollowerInfo(_)
            | Packet::ObserverInfo(_)
            | Packet::LeaderInfo { .. }
            | Packet::AckEpoch { .. }
            | Packet::Ack(_)
            | Packet::Acks(_)
            | Packet::Ping { .. }
            | Packet::Request(_)
            | Packet::Revalidate(_)
            | Packet::Transfer { .. }
            | Packet::Lease { .. }
            | Packet::MayLead(_)
            | Packet::Sync { .. } => (start, Ok(())),
        };
        // A change that comes behind NEWLEADER may give us a vote before our acknowledgement has left.
        let below = acknowledging.is_some() && epoch < cx.epochs.accepted_epoch;
        let taken = if taken.is_ok() && below && reconfiguration::gives_vote(cx, None) {
            Err(Breach::WouldVote)
        } else {
            taken
        };
        self.judge(cx, link, zxid, name, taken)
    }

    /// UPTODATE: a quorum has the leader's history; we serve.
    pub(super) fn on_up_to_date(&mut self, cx: &mut Context<'_>) -> RoleChange {
        let Phase::Synchronization(link, synchronization) = &mut self.phase else {
            return RoleChange::Stay;
        };
        let link = *link;
        let (leader, epoch) = (self.leader, synchronization.epoch);
        let (from, to) = (status::Phase::Synchronization, status::Phase::Broadcast);
        let change = Change::Phase { from, to };
        cx.outbox.report(change, Reason::LeaderSaid { leader, epoch });
        let observer = self.observer;
        let (committed, pending) = synchronization.end(cx);
        let covered = synchronization.covered();
        cx.commit(committed);
        // Before what is pending brings another one.
        let committed = committed.max(Zxid::start_of(epoch));
        let role_change = reconfiguration::activate(cx, committed, None, self.settled, observer);
        let broadcast = broadcast::on_up_to_date(cx, link, observer, epoch, covered, pending);
        self.phase = Phase::Broadcast(link, broadcast);
        self.tell_whether_we_may_lead(cx, link);
        if role_change == RoleChange::Stay { RoleChange::Serve(epoch) } else { role_change }
    }

    pub(super) fn on_broadcast(&mut self, cx: &mut Context<'_>, packet: Packet) -> RoleChange {
        let Phase::Broadcast(link, broadcast) = &mut self.phase else { return RoleChange::Stay };
        let (link, name) = (*link, packet.name());
        let mut next = None;
        let (zxid, taken) = match packet {
            Packet::Proposal(txn) => (txn.zxid, broadcast.on_proposals(cx, txn.into())),
            Packet::Proposals(txns) => {
                (txns.last().map_or(Zxid::ZERO, |last| last.zxid), broadcast.on_proposals(cx, txns))
            }
            Packet::Commit(zxid) => (zxid, broadcast.on_commit(cx, Run::one(zxid))),
            Packet::CommitAndActivate { zxid, leader } => {
                next = Some(leader);
                (zxid, broadcast.on_commit(cx, Run::one(zxid)))
            }
            Packet::Commits(run) => (run.last, broadcast.on_commit(cx, run)),
            Packet::Inform(txn) => (txn.zxid, broadcast.on_inform(cx, txn)),
            Packet::InformAndActivate { txn, leader } => {
                next = Some(leader);
                (txn.zxid, broadcast.on_inform(cx, txn))
            }
            Packet::Ping { zxid, .. } => {
                broadcast.on_ping(cx, link, zxid);
                return self.on_beat(cx, link);
            }
            Packet::Lease { zxid, length, .. } => {
                broadcast.on_lease(cx, link, zxid, length);
                return self.on_beat(cx, link);
            }
            Packet::Sync { tag } => {
                broadcast.on_sync(cx, tag);
                return RoleChange::Stay;
            }
            Packet::Revalidate(body) => {
                if cx.config.keeps_sessions {
                    cx.for_application(Output::Revalidated(body));
                }
                return RoleChange::Stay;
            }
            Packet::Transfer { vote, round } => return self.on_transfer(cx, vote, round),
            // Java ignores everything else, and so do we.
            Packet::FollowerInfo(_)
            | Packet::ObserverInfo(_)
            | Packet::LeaderInfo { .. }
            | Packet::AckEpoch { .. }
            | Packet::Diff(_)
            | Packet::Trunc(_)
            | Packet::Snap { .. }
            | Packet::NewLeader { .. }
            | Packet::UpToDate
            | Packet::Ack(_)
            | Packet::Acks(_)
            | Packet::Request(_)
            | Packet::MayLead(_) => return RoleChange::Stay,
        };
        if taken.is_err() {
            return self.judge(cx, link, zxid, name, taken);
        }
        if cx.config.next_membership.is_some() { self.activate(cx, next) } else { RoleChange::Stay }
    }

    /// TRANSFER: follows the leader of this vote, or leads.
    fn on_transfer(&mut self, cx: &mut Context<'_>, vote: Vote, round: Round) -> RoleChange {
        let Phase::Broadcast(link, broadcast) = &mut self.phase else { return RoleChange::Stay };
        let link = *link;
        let has = vote.zxid <= cx.history.last();
        let able = cx.quorum.weight(cx.config.id) > 0 && has;
        // We are to lead without a vote, or with what we do not have; or it gives its leadership to itself.
        if vote.leader == cx.config.id && !able || vote.leader == self.leader {
            return self.misbehaved(cx, link, "TRANSFER");
        }
        if vote.leader == cx.config.id && !cx.accepts {
            // No learner could come to follow us. The leader keeps its leadership when it has waited in vain.
            return RoleChange::Stay;
        }
        if vote.leader != cx.config.id {
            let patience = cx.config.timing.init_time();
            cx.concessions.transfers.on_given(cx.now, vote.leader, patience);
        }
        cx.lease.release(broadcast.epoch, cx.now);
        broadcast.hand_on(cx);
        RoleChange::Appointed { vote, round }
    }

    /// The service has heard from these sessions.
    pub fn on_touch(&mut self, cx: &mut Context<'_>, sessions: Bytes) -> RoleChange {
        if let Phase::Broadcast(link, broadcast) = &mut self.phase {
            broadcast.on_touch(cx, *link, sessions);
        }
        RoleChange::Stay
    }

    /// The service wants to know whether a session lives.
    pub fn on_revalidate(&self, cx: &mut Context<'_>, body: Bytes) -> RoleChange {
        if let Phase::Broadcast(link, _) = &self.phase {
            cx.outbox.send(*link, Message::Packet(Packet::Revalidate(body)));
        }
        RoleChange::Stay
    }

    /// The leader has pinged us: that keeps the time of what voters say to one another, too.
    fn on_beat(&self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        cx.probe();
        self.tell_whether_we_may_lead(cx, link);
        RoleChange::Stay
    }

    /// Puts the next membership in force, if it is committed; `leader` leads from then on.
    pub(super) fn activate(
        &mut self,
        cx: &mut Context<'_>,
        leader: Option<ServerId>,
    ) -> RoleChange {
        let committed = cx.history.committed();
        let role_change =
            reconfiguration::activate(cx, committed, leader, self.settled, self.observer);
        if let (Phase::Broadcast(_, broadcast), RoleChange::Appointed { .. }) =
            (&mut self.phase, &role_change)
        {
            broadcast.hand_on(cx);
            if leader.is_some_and(|leader| leader != self.leader) {
                cx.lease.release(broadcast.epoch, cx.now);
            }
        }
        role_change
    }

    /// What becomes of us after a packet of the leader.
    pub(super) fn judge(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        zxid: Zxid,
        packet: &'static str,
        taken: Result<(), Breach>,
    ) -> RoleChange {
        let Err(breach) = taken else { return RoleChange::Stay };
        match breach {
            Breach::OutOfTurn => self.misbehaved(cx, link, packet),
            // It is refused rather than logged (ZOOKEEPER-2418).
            Breach::Hole(after) => {
                cx.links.hangup(link, Hangup::Hole { zxid, after }, cx.outbox);
                RoleChange::leave(Reason::Hole { leader: self.leader, zxid, after })
            }
            Breach::Differs(zxid) => {
                cx.links.hangup(link, Hangup::Differs(zxid), cx.outbox);
                RoleChange::leave(Reason::Differs { leader: self.leader, zxid })
            }
            Breach::OlderMembership(change) => {
                let version = change.0;
                cx.links.hangup(link, Hangup::OlderMembership { version }, cx.outbox);
                RoleChange::leave(Reason::OlderMembership { leader: self.leader, version })
            }
            Breach::CannotCut(zxid) => {
                // To the same leader, without another election: it counts us by what we said first.
                cx.links.hangup(link, Hangup::CannotCut(zxid), cx.outbox);
                let wait = cx.config.timing.connect_retry_min;
                self.phase = Phase::Reaching { wait, refused: false };
                self.blank = true;
                cx.timers.stop(Timer::Silence);
                cx.timers.after(Timer::ConnectLimit, cx.now, cx.config.timing.connect_time());
                let (from, to) = (status::Phase::Synchronization, status::Phase::Discovery);
                cx.outbox.report(Change::Phase { from, to }, Reason::CannotCut { zxid });
                self.dial(cx)
            }
            Breach::WouldVote => {
                let announced = self.epoch().unwrap_or(Epoch::ZERO);
                let accepted = cx.epochs.accepted_epoch;
                cx.links.hangup(link, Hangup::OldEpoch(announced), cx.outbox);
                RoleChange::leave(Reason::OldEpoch { announced, accepted })
            }
            Breach::CommittedCut(zxid) => {
                let (leader, committed) = (self.leader, cx.history.committed());
                cx.outbox.halt(Fault::CommittedCut { leader, zxid, committed });
                RoleChange::Stay
            }
        }
    }

    pub(super) fn misbehaved(
        &self,
        cx: &mut Context<'_>,
        link: LinkId,
        packet: &'static str,
    ) -> RoleChange {
        cx.links.hangup(link, Hangup::OutOfTurn(packet), cx.outbox);
        RoleChange::leave(Reason::LeaderMisbehaved { leader: self.leader, packet })
    }
}
