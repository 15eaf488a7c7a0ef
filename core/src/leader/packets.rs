//! What learners say, stage by stage, and who of the leader's rooms hears it.
//!
//! ```text
//!   packet ─┬─ silent, told ──────► introductions    FOLLOWERINFO, ACKEPOCH
//!           ├─ syncing ───────────► synchronization  ACK of NEWLEADER
//!           └─ serving ───────────► broadcast        ACK, PING, REQUEST, REVALIDATE
//! ```
//!
//! Out of turn is whatever the learner's stage does not know; who says that is hung up.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::context::{Context, RoleChange};
use crate::id::LinkId;
use crate::leader::progress::{Progress, Stage, send};
use crate::leader::state::Phase;
use crate::leader::{Leader, introductions};
use crate::message::{Packet, Request, Run};
use crate::output::Output;
use crate::reasons::Hangup;
use crate::report::{Change, Reason};
use crate::time::Instant;

impl Leader {
    /// A learner has said something.
    pub fn on_packet(&mut self, cx: &mut Context<'_>, link: LinkId, packet: Packet) -> RoleChange {
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        learner.heard = cx.now;
        if let (Packet::Ack(zxid), Stage::Serving) = (&packet, learner.stage) {
            // The most frequent of all.
            return self.on_ack(cx, link, Run::one(*zxid));
        }
        match (learner.stage, packet) {
            (Stage::Silent, Packet::FollowerInfo(info)) => {
                introductions::on_info(cx, &mut self.state, link, info, true)
            }
            (Stage::Silent, Packet::ObserverInfo(info)) => {
                introductions::on_info(cx, &mut self.state, link, info, false)
            }
            (Stage::Told, Packet::AckEpoch { last, current_epoch }) => {
                introductions::on_ack_epoch(cx, &mut self.state, link, last, current_epoch)
            }
            (Stage::Syncing, Packet::Ack(zxid))
                if learner.cursor.new_leader
                    && zxid.is_epoch_start()
                    && Some(zxid.epoch()) == self.state.phase.epoch() =>
            {
                self.on_history_ack(cx, link)
            }
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Ack(zxid)) => {
                self.on_ack(cx, link, Run::one(zxid))
            }
            (Stage::Syncing | Stage::Acknowledged | Stage::Serving, Packet::Acks(run)) => {
                self.on_ack(cx, link, run)
            }
            (Stage::Serving, Packet::Ping { sessions, .. }) => {
                self.on_pong(cx, link, false, sessions.unwrap_or_default())
            }
            (Stage::Serving, Packet::Lease { sessions, .. }) => {
                self.on_pong(cx, link, true, sessions)
            }
            (Stage::Serving, Packet::MayLead(yes)) => {
                learner.may_lead = yes.then_some(cx.now);
                self.move_on(cx)
            }
            (Stage::Serving, Packet::Request(request)) => self.on_request(cx, link, request),
            (Stage::Serving, Packet::Revalidate(body)) => self.on_revalidate(cx, link, body),
            (Stage::Acknowledged, Packet::Ping { .. }) => RoleChange::Stay,
            (_, packet) => {
                self.state.drop_learner(cx, link, Hangup::OutOfTurn(packet.name()));
                RoleChange::Stay
            }
        }
    }

    /// ACK of NEWLEADER: it has our history.
    pub(super) fn on_history_ack(&mut self, cx: &mut Context<'_>, link: LinkId) -> RoleChange {
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        learner.stage = Stage::Acknowledged;
        let (id, votes) = (learner.id, learner.votes);
        cx.outbox.report(
            Change::Learner { id, synced: true },
            Reason::Acknowledged { members: Vec::from([id]) },
        );
        match &mut self.state.phase {
            Phase::Synchronization(synchronization) => {
                if votes {
                    synchronization.on_ack(cx, id);
                }
                self.state.advance(cx)
            }
            Phase::Broadcast(_) => {
                self.state.welcome(cx, link);
                self.move_on(cx)
            }
            Phase::Discovery(_) => RoleChange::Stay,
        }
    }

    /// ACK of transactions. Those of the history that it was brought, which ZooKeeper's learners send,
    /// say nothing new.
    pub(super) fn on_ack(&mut self, cx: &mut Context<'_>, link: LinkId, run: Run) -> RoleChange {
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        let outdated = run.last <= self.state.inherited.max(learner.acks.through());
        if outdated || run.last.is_epoch_start() {
            return RoleChange::Stay;
        }
        let may = learner.follower || run.last <= cx.history.committed();
        if run.last > learner.cursor.reach() || !may {
            if !core::mem::replace(&mut self.warned, true) {
                let (id, zxid) = (learner.id, run.last);
                cx.outbox.report(Change::Ignored { id, zxid }, Reason::NotProposed);
            }
            return RoleChange::Stay;
        }
        if learner.acks.on_ack(run) && learner.votes && learner.stage == Stage::Serving {
            if let Phase::Broadcast(broadcast) = &mut self.state.phase {
                let (id, through) = (learner.id, learner.acks.through());
                broadcast.on_ack(cx, &mut self.state.learners, id, through);
            }
        }
        self.move_on(cx)
    }

    /// PING or LEASE: it has answered a ping, and has heard from these sessions.
    fn on_pong(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        promises: bool,
        sessions: Bytes,
    ) -> RoleChange {
        let Some(learner) = self.state.learners.get_mut(link) else { return RoleChange::Stay };
        let promises = promises && learner.leases;
        let asked = learner.beats.on_answer(promises);
        let leases = learner.leases;
        // A learner that answers with a ping what asks for a promise does not promise so long ones.
        learner.leases &= promises || asked.is_none();
        if cx.config.keeps_sessions {
            let asked = asked.unwrap_or(Instant::ORIGIN);
            cx.outbox.push(Output::Touched { from: link, asked, sessions });
        }
        if let (Some(_), Phase::Broadcast(broadcast)) = (asked, &mut self.state.phase) {
            if leases {
                broadcast.renew(cx, &self.state.learners);
            }
            broadcast.serve_reads(cx, &mut self.state.learners);
        }
        self.move_on(cx)
    }

    /// The service says whether a session lives of which a learner has asked.
    pub fn on_revalidated(&self, cx: &mut Context<'_>, to: LinkId, body: Bytes) -> RoleChange {
        let serves = |learner: &Progress| learner.stage == Stage::Serving;
        if self.state.learners.get(to).is_some_and(serves) {
            send(cx, to, Packet::Revalidate(body));
        }
        RoleChange::Stay
    }

    /// REQUEST of a learner's client.
    pub(super) fn on_request(
        &mut self,
        cx: &mut Context<'_>,
        link: LinkId,
        mut request: Request,
    ) -> RoleChange {
        let Some(learner) = self.state.learners.get(link) else { return RoleChange::Stay };
        let (id, rule) = (learner.id, cx.config.strangers);
        if !cx.config.is_member(id) && rule.look_at(&mut request).is_err() {
            self.state.drop_learner(cx, link, Hangup::ForgedIdentity(id));
            return RoleChange::Stay;
        }
        let Phase::Broadcast(broadcast) = &mut self.state.phase else { return RoleChange::Stay };
        if !broadcast.on_request(cx, &mut self.state.learners, link, request) {
            self.state.drop_learner(cx, link, Hangup::TooManyRequests);
        }
        RoleChange::Stay
    }

    /// A client has come to a learner with its session.
    fn on_revalidate(&mut self, cx: &mut Context<'_>, link: LinkId, body: Bytes) -> RoleChange {
        if let (true, Phase::Broadcast(broadcast)) =
            (cx.config.keeps_sessions, &mut self.state.phase)
        {
            if !broadcast.on_revalidate(cx, link, body) {
                self.state.drop_learner(cx, link, Hangup::TooManyRequests);
            }
        }
        RoleChange::Stay
    }
}
