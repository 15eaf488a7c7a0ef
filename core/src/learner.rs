//! A follower or observer, from the end of the election until it loses its leader.
//!
//! ```text
//!              connected         promised               UPTODATE
//!   settled ──► reaching ──► discovery ──► synchronization ──► broadcast (serving)
//!                  │ connect limit  │ initLimit    │ syncLimit      │ syncLimit, link ends
//!                  └────────────────┴──────────────┴────────────────┴──► LOOKING
//! ```
//!
//! The leader's side of each phase stands in the file of the same name under
//! [`leader`](crate::leader). Here the phases follow one another, and what the leader says is handed to the
//! one that it is meant for; whom to follow was decided by the election.

pub mod breach;
pub mod broadcast;
pub mod discovery;
mod packets;
pub mod reconfiguration;
pub mod synchronization;

use alloc::boxed::Box;
use core::time::Duration;

use bytes::Bytes;

use crate::context::{Context, RoleChange};
use crate::generation_message::Cue;
use crate::id::{LinkId, ReadId, ServerId};
use crate::input::{Cause, Located, Place};
use crate::learner::broadcast::Broadcast;
use crate::learner::synchronization::{Synchronization, new_leader};
use crate::message::{Message, Packet, Request};
use crate::output::Output;
use crate::quorum::Support;
use crate::reasons::{Hangup, Refusal};
use crate::report::Reason;
use crate::status;
use crate::timers::Timer;
use crate::vote::{ServerState, Standing};
use crate::zxid::{Epoch, Zxid};

/// The learner's side of Zab.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Learner {
    leader: ServerId,
    observer: bool,
    /// Where we stood when the election ended.
    settled: Standing,
    /// On whose word the election rests.
    supporters: Support,
    phase: Phase,
    /// Our log could not be cut where the leader wants it: we come back as if we had nothing.
    blank: bool,
    /// The leader wants to know whether we may lead.
    asked: bool,
    /// The leader leaves a mark in the log of each session that comes to a server.
    pub(crate) marks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Dialling; the wait before the next try, and whether one has failed.
    Reaching {
        wait: Duration,
        refused: bool,
    },
    Discovery(LinkId),
    Synchronization(LinkId, Box<Synchronization>),
    Broadcast(LinkId, Broadcast),
}

impl Learner {
    /// Sets out for the leader that the election found, which `supporters` decided.
    pub fn new(cx: &mut Context<'_>, settled: Standing, supporters: Support) -> (Self, RoleChange) {
        let leader = settled.vote.leader;
        let observer = settled.state == ServerState::Observing;
        let phase = Phase::Reaching { wait: cx.config.timing.connect_retry_min, refused: false };
        let learner = Self {
            leader,
            observer,
            settled,
            supporters,
            phase,
            blank: false,
            asked: false,
            marks: false,
        };
        cx.timers.after(Timer::ConnectLimit, cx.now, cx.config.timing.connect_time());
        let role_change = learner.dial(cx);
        (learner, role_change)
    }

    /// Whom we follow.
    pub const fn leader(&self) -> ServerId {
        self.leader
    }

    /// How far we have come.
    pub const fn phase(&self) -> status::Phase {
        match self.phase {
            Phase::Reaching { .. } | Phase::Discovery(_) => status::Phase::Discovery,
            Phase::Synchronization(..) => status::Phase::Synchronization,
            Phase::Broadcast(..) => status::Phase::Broadcast,
        }
    }

    /// The leader's quorum port has answered.
    pub fn on_link_up(&mut self, cx: &mut Context<'_>, link: LinkId, peer: ServerId) -> RoleChange {
        if peer != self.leader || !matches!(self.phase, Phase::Reaching { .. }) {
            cx.links.hangup(link, Hangup::Unwanted, cx.outbox);
            return RoleChange::Stay;
        }
        cx.timers.stop(Timer::Connect);
        cx.timers.stop(Timer::ConnectLimit);
        cx.timers.after(Timer::Silence, cx.now, cx.config.timing.init_time());
        discovery::introduce(cx, link, self.observer);
        self.phase = Phase::Discovery(link);
        RoleChange::Stay
    }

    /// The leader's quorum port has not answered. We try again: it may not have counted its votes
    /// yet; a Java leader waits 200 ms before it even listens. Whether it lives at all its election
    /// port tells, so that is dialled too.
    pub fn on_dial_failed(&mut self, cx: &mut Context<'_>, peer: ServerId) -> RoleChange {
        if peer != self.leader {
            return RoleChange::Stay;
        }
        if let Phase::Reaching { wait, refused } = &mut self.phase {
            *refused = true;
            cx.timers.after(Timer::Connect, cx.now, cx.rng.around(*wait));
            *wait = (*wait * 2).min(cx.config.timing.connect_retry_max);
            if cx.links.election(peer).is_none() {
                cx.links.dial(cx.now, peer, cx.outbox);
            }
        }
        RoleChange::Stay
    }

    /// A server's election port refuses us. If that is the leader whose quorum port did too, it is gone.
    pub fn on_unreachable(&mut self, peer: ServerId) -> RoleChange {
        if peer == self.leader && matches!(self.phase, Phase::Reaching { refused: true, .. }) {
            RoleChange::leave(Reason::LeaderUnreachable { leader: peer })
        } else {
            RoleChange::Stay
        }
    }

    /// A server has said on the election plane where it stands. If it is the leader that we try to
    /// reach, that may tell that it will never wait for us; or that it has not settled yet, and has a better vote now
    /// than the one we settled on. That vote is ours, too, unless we have its history already.
    pub fn on_standing(&mut self, cx: &Context<'_>, from: ServerId, heard: Standing) -> RoleChange {
        if from != self.leader {
            return self.on_looking(cx, from, heard);
        }
        // A leader that looks takes our connection, and keeps it waiting.
        let waits = matches!(self.phase, Phase::Reaching { .. } | Phase::Discovery(_));
        let reason = Reason::LeaderMovedOn { leader: self.leader, round: heard.round };
        let looks_here = heard.state == ServerState::Looking && heard.round == self.settled.round;
        if looks_here && heard.vote.better_than(&self.settled.vote).is_some() {
            return if self.has_acknowledged() {
                // Its link will end, and we begin another round.
                RoleChange::Stay
            } else {
                RoleChange::GoBack { from, vote: heard.vote, otherwise: reason }
            };
        }
        let moved_on = match heard.state {
            // With less than we settled on it has restarted; as its own candidate it may still lead us.
            ServerState::Looking if looks_here => heard.vote.leader != self.leader,
            ServerState::Looking => heard.round > self.settled.round,
            ServerState::Following | ServerState::Leading | ServerState::Observing => {
                heard.vote.leader != self.leader
            }
        };
        if moved_on && waits { RoleChange::leave(reason) } else { RoleChange::Stay }
    }

    /// One of those who elected our leader looks in a later round. As long as the leader has not told us its epoch,
    /// that tells what it would make of it, too: without a quorum of them it will not lead; and if we have not reached it,
    /// and no link at all to it is up, they know better than we. Where links are broken the leader may never hear it, or
    /// we not hear the leader, and all would wait for a whole initLimit.
    fn on_looking(&mut self, cx: &Context<'_>, voter: ServerId, heard: Standing) -> RoleChange {
        let looks = heard.state == ServerState::Looking && heard.round > self.settled.round;
        let linked = match self.phase {
            Phase::Reaching { .. } => cx.links.election(self.leader).is_some(),
            Phase::Discovery(_) => true,
            Phase::Synchronization(..) | Phase::Broadcast(..) => return RoleChange::Stay,
        };
        if !looks || !self.supporters.remove(cx.quorum, voter) {
            return RoleChange::Stay;
        }
        if linked && self.supporters.is_enough_to_follow(cx.quorum) {
            RoleChange::Stay
        } else {
            RoleChange::leave(Reason::Deserted { voter })
        }
    }

    /// Whether we have acknowledged the leader's history as ours.
    const fn has_acknowledged(&self) -> bool {
        match &self.phase {
            Phase::Reaching { .. } | Phase::Discovery(_) => false,
            Phase::Synchronization(_, synchronization) => synchronization.acknowledging.is_some(),
            Phase::Broadcast(..) => true,
        }
    }

    /// What we wrote has become durable.
    pub fn on_persisted(&mut self, cx: &mut Context<'_>) -> RoleChange {
        if let Phase::Broadcast(link, broadcast) = &mut self.phase {
            broadcast.on_persisted(cx, *link);
        }
        RoleChange::Stay
    }

    /// The disk knows where the zxid stands to which we are to cut.
    pub fn on_located(
        &mut self,
        cx: &mut Context<'_>,
        from: LinkId,
        located: Located,
    ) -> RoleChange {
        match &mut self.phase {
            Phase::Synchronization(link, synchronization) if *link == from => {
                let link = *link;
                let mut taken = synchronization.on_located(cx, located.place == Place::Held);
                if taken.is_ok() && synchronization.is_due() {
                    taken = new_leader::on_new_leader(cx, link, self.leader, synchronization);
                }
                self.judge(cx, link, Zxid::ZERO, "TRUNC", taken)
            }
            Phase::Reaching { .. }
            | Phase::Discovery(_)
            | Phase::Synchronization(..)
            | Phase::Broadcast(..) => RoleChange::Stay,
        }
    }

    /// The snapshot that the leader sends moves: that is no silence.
    pub fn on_progress(&self, cx: &mut Context<'_>, from: LinkId) -> RoleChange {
        if self.link() == Some(from) {
            self.heard(cx);
        }
        RoleChange::Stay
    }

    /// The snapshot that the leader sends has come whole.
    pub fn on_restored(
        &mut self,
        cx: &mut Context<'_>,
        from: LinkId,
        membership: Option<&Bytes>,
    ) -> RoleChange {
        if self.link() == Some(from) {
            self.heard(cx);
            if let Phase::Synchronization(_, synchronization) = &mut self.phase {
                synchronization.on_restored(cx, membership);
            }
        }
        RoleChange::Stay
    }

    /// A client of the service here asks for a transaction: the leader is asked.
    pub fn on_submit(&self, cx: &mut Context<'_>, request: Request) -> RoleChange {
        if let Phase::Broadcast(link, _) = &self.phase {
            cx.outbox.send(*link, Message::Packet(Packet::Request(request)));
        }
        RoleChange::Stay
    }

    /// A caller here asks for a transaction.
    pub fn on_propose(&self, cx: &mut Context<'_>, request: Request) -> RoleChange {
        if let Phase::Broadcast(link, broadcast) = &self.phase {
            broadcast.on_propose(cx, *link, request);
        } else {
            let (id, reason) = (request.id, Refusal::NotServing);
            cx.outbox.push(Output::Refused { id, reason });
        }
        RoleChange::Stay
    }

    /// A caller here wants to read what is as new as everything acknowledged so far.
    pub fn on_read(&mut self, cx: &mut Context<'_>, read: ReadId) -> RoleChange {
        if let Phase::Broadcast(link, broadcast) = &mut self.phase {
            broadcast.on_read(cx, *link, read);
        } else {
            cx.outbox.push(Output::ReadRefused { read, reason: Refusal::NotServing });
        }
        RoleChange::Stay
    }

    /// Whether a snapshot is coming from the leader, or has come and is not installed.
    pub const fn receives(&self) -> bool {
        match &self.phase {
            Phase::Synchronization(_, synchronization) => synchronization.receives(),
            Phase::Reaching { .. } | Phase::Discovery(_) | Phase::Broadcast(..) => false,
        }
    }

    /// We leave the leader: tells those who wait for something here.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        if let Phase::Broadcast(_, broadcast) = &mut self.phase {
            broadcast.end(cx);
        }
    }

    /// The connection to the leader has ended. A leader that closes it has done without our promise before,
    /// or its process has ended; but only once it has told us its epoch does it know that this link is ours.
    pub fn on_link_down(&mut self, cx: &mut Context<'_>, link: LinkId, cause: Cause) -> RoleChange {
        if self.link() != Some(link) {
            return RoleChange::Stay;
        }
        let closed = cause == Cause::Closed;
        if let (Some(epoch), true) = (self.epoch(), closed) {
            cx.lease.release(epoch, cx.now);
        }
        RoleChange::leave_on(Reason::LeaderLost { leader: self.leader, cause }, Cue::Closed)
    }

    /// A deadline has passed.
    pub fn on_timer(&mut self, cx: &mut Context<'_>, timer: Timer) -> RoleChange {
        match timer {
            Timer::Connect => self.dial(cx),
            Timer::ConnectLimit => {
                RoleChange::leave(Reason::LeaderUnreachable { leader: self.leader })
            }
            Timer::Silence => {
                if let Some(link) = self.link() {
                    cx.links.hangup(link, Hangup::Silent(self.leader), cx.outbox);
                }
                RoleChange::leave_on(Reason::LeaderSilent { leader: self.leader }, Cue::Silence)
            }
            Timer::Lease => {
                if let Phase::Synchronization(link, synchronization) = &mut self.phase {
                    new_leader::acknowledge(cx, *link, synchronization);
                }
                RoleChange::Stay
            }
            Timer::Start
            | Timer::Backoff
            | Timer::Notification
            | Timer::Finalize
            | Timer::Redial
            | Timer::Claim
            | Timer::Candidacy
            | Timer::Heartbeat
            | Timer::Introduction
            | Timer::Init
            | Timer::Transfer
            | Timer::Listening
            | Timer::Ping => RoleChange::Stay,
        }
    }

    /// Says whether the leadership may be offered to us, where the leader knows what that is: here and nowhere else.
    fn tell_whether_we_may_lead(&self, cx: &mut Context<'_>, link: LinkId) {
        if self.asked && !self.observer {
            let packet = Packet::MayLead(cx.may_lead());
            cx.outbox.send(link, Message::Packet(packet));
        }
    }

    /// Puts off the deadline of silence.
    #[inline]
    fn heard(&self, cx: &mut Context<'_>) {
        let timing = &cx.config.timing;
        let limit = match &self.phase {
            Phase::Reaching { .. } | Phase::Discovery(_) => timing.init_time(),
            Phase::Synchronization(_, s) if s.acknowledging.is_none() => timing.init_time(),
            Phase::Synchronization(..) => timing.sync_time(),
            Phase::Broadcast(_, broadcast) => broadcast.patience,
        };
        cx.timers.after(Timer::Silence, cx.now, limit);
    }

    fn dial(&self, cx: &mut Context<'_>) -> RoleChange {
        cx.timers.stop(Timer::Connect);
        let next = cx.config.next_membership.as_ref();
        let mut memberships = core::iter::once(&cx.config.membership).chain(next);
        let Some(member) = memberships.find_map(|m| m.member(self.leader)) else {
            return RoleChange::leave(Reason::LeaderUnreachable { leader: self.leader });
        };
        let addresses = member.addresses.iter().map(|address| address.quorum.clone()).collect();
        cx.links.dial_leader(self.leader, addresses, cx.outbox);
        RoleChange::Stay
    }

    /// The epoch of the leader, once it has told us.
    const fn epoch(&self) -> Option<Epoch> {
        match &self.phase {
            Phase::Reaching { .. } | Phase::Discovery(_) => None,
            Phase::Synchronization(_, synchronization) => Some(synchronization.epoch),
            Phase::Broadcast(_, broadcast) => Some(broadcast.epoch),
        }
    }

    const fn link(&self) -> Option<LinkId> {
        match self.phase {
            Phase::Reaching { .. } => None,
            Phase::Discovery(link)
            | Phase::Synchronization(link, _)
            | Phase::Broadcast(link, _) => Some(link),
        }
    }
}
