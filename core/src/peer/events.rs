//! What happens to a server, each thing handed to whom it concerns.
//!
//! ```text
//!   Received ──► by the place of its link ─┬─► the election      notifications, messages
//!   LinkUp, LinkDown, DialFailed ──► Links ─┼─► Leader            learners' packets, requests
//!   Propose, Read, Persisted, Tick ─────────┴─► Learner           the leader's packets
//! ```
//!
//! What does not fit who we are just now is refused here. What comes of the rest is the machines' business;
//! what they make of the role stands in `turns`.

use crate::context::{Parked, RoleChange};
use crate::election::ElectorEvent;
use crate::generation::ClockEvent;
use crate::generation_message::{Body, GenerationMessage};
use crate::id::{LinkId, ReadId, ServerId};
use crate::input::{Cause, LinkUp, Plane};
use crate::leader::pending::Purpose;
use crate::links::{Fate, Place, Position};
use crate::message::{Mark, Message, Notification, Packet, Request};
use crate::output::{Output, Write};
use crate::peer::electing::Electing;
use crate::peer::role::Role;
use crate::peer::shared::SharedParts;
use crate::peer::{Peer, early};
use crate::reasons::{Hangup, Refusal, TransferRefused};
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{Round, ServerState, Standing, Vote};
use crate::zxid::Epoch;

impl Peer {
    #[inline]
    pub(super) fn on_received(&mut self, link: LinkId, message: Message) {
        let Some((at, place)) = self.shared.links.place(link) else {
            // Of a link that we have hung up meanwhile, or of one that is held.
            let SharedParts { links, outbox, .. } = &mut self.shared;
            return links.on_unplaced(link, message, outbox);
        };
        // The most frequent of all inputs: a message is large, and handed on as it lies.
        match message {
            Message::Notification(notification) => match place {
                Place::Election(from) => self.on_notification(at, link, from, &notification),
                Place::Leader(_) | Place::Learner => self.on_misplaced(link, "notification"),
            },
            Message::Generation(message) => match place {
                Place::Election(from) => self.on_generation_message(at, link, from, message),
                Place::Leader(_) | Place::Learner => self.on_misplaced(link, "message"),
            },
            Message::Probe(probe) => match place {
                Place::Election(_) => {
                    let SharedParts { links, now, .. } = &mut self.shared;
                    links.on_probe(*now, at, probe);
                }
                Place::Leader(_) | Place::Learner => self.on_misplaced(link, "probe"),
            },
            Message::Packet(packet) => match place {
                Place::Leader(_) => {
                    if let (Role::Learning(learner), mut cx) = self.context() {
                        let role_change = learner.on_packet(&mut cx, link, packet);
                        self.change_role(role_change);
                    }
                }
                Place::Learner => self.on_learner_packet(link, packet),
                Place::Election(_) => self.on_misplaced(link, packet.name()),
            },
        }
    }

    /// A message on the plane of the other kind.
    #[cold]
    pub(super) fn on_misplaced(&mut self, link: LinkId, name: &'static str) {
        self.end_link(link, Cause::Garbled, Hangup::OutOfTurn(name));
    }

    #[inline]
    pub(super) fn on_notification(
        &mut self,
        at: Position,
        link: LinkId,
        from: ServerId,
        notification: &Notification,
    ) {
        if let Electing::Generation(_) = self.shared.elector {
            return self.on_misplaced(link, "notification");
        }
        let Notification { standing, version, config, mark } = notification;
        let (standing, version) = (*standing, *version);
        let knows_probes = mark.says(Mark::KNOWS_PROBES);
        if self.shared.links.on_marked(self.shared.now, at, knows_probes) {
            self.on_first_word(from);
        }
        if self.shared.config.reconfig_enabled
            && matches!(self.role, Role::Looking)
            && self.shared.adopt(from, config)
        {
            return self.look();
        }
        let at_once = mark.says(Mark::SETTLES_AT_ONCE);
        let heard = ElectorEvent::Heard { from, standing, versioned: version > 0, at_once };
        if matches!(self.role, Role::Looking) {
            return self.elect(heard);
        }
        let role_change = match self.context() {
            (Role::Leading(leader), mut cx) if cx.quorum.is_voter(from) => {
                leader.on_looking(&mut cx, from, standing)
            }
            (Role::Learning(learner), cx) => learner.on_standing(&cx, from, standing),
            _ => RoleChange::Stay,
        };
        // A server that is to go on in the round that we go back into must not hear first that we have settled.
        if let RoleChange::GoBack { .. } = role_change {
            self.change_role(role_change);
            self.elect(heard);
        } else {
            self.elect(heard);
            self.change_role(role_change);
        }
    }

    /// A server that elects by generation has said something.
    pub(super) fn on_generation_message(
        &mut self,
        at: Position,
        link: LinkId,
        from: ServerId,
        message: GenerationMessage,
    ) {
        if let Electing::Fast(_) = self.shared.elector {
            return self.on_misplaced(link, "message");
        }
        if self.shared.links.on_marked(self.shared.now, at, message.knows_probes) {
            self.on_first_word(from);
        }
        if self.shared.config.reconfig_enabled
            && matches!(self.role, Role::Looking)
            && self.shared.adopt(from, &message.config)
        {
            return self.look();
        }
        let (body, round) = (message.body, Round(message.generation.0));
        self.on_clock(ClockEvent::Heard { from, message });
        if let (Body::Heartbeat { leader, .. }, Role::Learning(_)) = (body, &self.role) {
            // A server that does not lead any more does not lead this generation again.
            let state = ServerState::Following;
            let standing = Standing { state, vote: Vote { leader, ..Vote::ABSTENTION }, round };
            self.with_learner(|learner, cx| learner.on_standing(cx, from, standing));
        }
    }

    /// Something from a link that was accepted on the quorum port.
    pub(super) fn on_learner_packet(&mut self, link: LinkId, packet: Packet) {
        if let (Role::Leading(leader), mut cx) = self.context() {
            // No learner's link waits while this server leads.
            let role_change = leader.on_packet(&mut cx, link, packet);
            return self.change_role(role_change);
        }
        early::on_packet(&mut self.shared.context(), link, packet);
    }

    pub(super) fn on_link_up(&mut self, up: &LinkUp) {
        let link = up.link;
        match (up.plane, up.dialled, up.peer) {
            (Plane::Election, _, _) => {
                let (_, cx) = self.context();
                match cx.links.on_election_up(cx.now, up, cx.rng, cx.outbox) {
                    Fate::Over => {}
                    Fate::Kept(peer) => self.on_linked(link, peer),
                    Fate::Held { peer, old } => self.on_claimed(old, peer),
                }
            }
            (Plane::Quorum, true, Some(peer)) => {
                self.shared.links.on_leader_up(link, peer);
                if let Role::Learning(_) = self.role {
                    self.with_learner(|learner, cx| learner.on_link_up(cx, link, peer));
                } else {
                    self.shared.hangup(link, Hangup::Unwanted);
                }
            }
            (Plane::Quorum, _, _) => self.on_learner_up(link),
        }
    }

    /// A server comes to learn. A leader takes it in; while we look it may only be early, and waits a little; so it
    /// may be while the membership changes, and the next
    /// leader is about to be named.
    pub(super) fn on_learner_up(&mut self, link: LinkId) {
        self.shared.links.on_learner_up(link);
        if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_link_up(cx, link));
        } else if (matches!(self.role, Role::Looking) && self.shared.may_lead())
            || (self.serving.is_some() && self.shared.config.next_membership.is_some())
        {
            early::on_link_up(&mut self.shared.context(), link);
        } else {
            self.shared.hangup(link, Hangup::NotLeading);
        }
    }

    /// A link has ended: its place is free, and its hang-up answers, behind which the driver closes it. Never before:
    /// the peer at the other end may be free of a promise when it sees that.
    pub(super) fn on_link_down(&mut self, link: LinkId, cause: Cause) {
        self.end_link(link, cause, Hangup::Ended);
    }

    fn end_link(&mut self, link: LinkId, cause: Cause, reason: Hangup) {
        let (_, cx) = self.context();
        match cx.links.on_down(cx.now, link, reason, cx.rng, cx.outbox) {
            Some(Place::Leader(_)) => {
                self.with_learner(|learner, cx| learner.on_link_down(cx, link, cause));
            }
            Some(Place::Learner) => self.with_leader(|leader, cx| leader.on_link_down(cx, link)),
            Some(Place::Election(peer)) => {
                let (_, cx) = self.context();
                if let Some(admitted) = cx.links.succeed(cx.now, peer, cx.outbox) {
                    self.on_admitted(admitted);
                }
            }
            None => {}
        }
    }

    pub(super) fn on_dial_failed(&mut self, plane: Plane, peer: ServerId) {
        match plane {
            Plane::Election => {
                let (_, cx) = self.context();
                let failed = cx.links.on_election_dial_failed(cx.now, peer, cx.rng, cx.outbox);
                if let Some(dialled) = failed {
                    self.elect(ElectorEvent::Unreachable { peer, dialled });
                    self.with_learner(|learner, _| learner.on_unreachable(peer));
                }
            }
            Plane::Quorum => {
                self.shared.links.on_leader_dial_over(peer);
                self.with_learner(|learner, cx| learner.on_dial_failed(cx, peer));
            }
        }
    }

    pub(super) fn on_persisted(&mut self) {
        if matches!(self.role, Role::Fencing) {
            self.look();
        } else {
            self.with_leader(|leader, cx| leader.on_persisted(cx));
            self.with_learner(|learner, cx| learner.on_persisted(cx));
        }
    }

    /// The operator wants another server to lead.
    pub(super) fn on_transfer(&mut self, to: Option<ServerId>) {
        if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_transfer(cx, to, Purpose::Asked));
        } else {
            self.shared.outbox.push(Output::Transferred(Err(TransferRefused::NotLeading)));
        }
    }

    pub(super) fn on_shutdown(&mut self) {
        self.retire();
        self.end_role();
        self.refuse_adrift();
        self.shared.links.hangup_all(Hangup::Shutdown, &mut self.shared.outbox);
        self.role = Role::Stopped;
    }

    pub(super) fn on_propose(&mut self, request: Request) {
        let (id, length) = (request.id, request.body.len());
        if length > self.shared.config.limits.request_bytes {
            self.shared.outbox.push(Output::Refused { id, reason: Refusal::TooLong(length) });
        } else if self.is_adrift() {
            self.shared.parked.push_back(Parked::Propose(request));
        } else if self.serving.is_none() {
            self.shared.outbox.push(Output::Refused { id, reason: Refusal::NotServing });
        } else if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_propose(cx, request));
        } else {
            self.with_learner(|learner, cx| learner.on_propose(cx, request));
        }
    }

    /// What cannot go to a leader is dropped: the service hears that it serves no longer. So is what it has asked for in an
    /// earlier epoch, and comes only now: an expiry that the last leadership found is none of this one, in which every
    /// session has its time again.
    pub(super) fn on_submit(&mut self, epoch: Epoch, request: Request) {
        if self.serving == Some(epoch)
            && request.body.len() <= self.shared.config.limits.request_bytes
        {
            if let Role::Leading(_) = self.role {
                self.with_leader(|leader, cx| leader.on_submit(cx, request));
            } else {
                self.with_learner(|learner, cx| learner.on_submit(cx, request));
            }
        }
    }

    pub(super) fn on_read(&mut self, read: ReadId) {
        if self.is_adrift() {
            self.shared.parked.push_back(Parked::Read(read));
        } else if self.serving.is_none() {
            self.shared.outbox.push(Output::ReadRefused { read, reason: Refusal::NotServing });
        } else {
            self.with_leader(|leader, cx| leader.on_read(cx, read));
            self.with_learner(|learner, cx| learner.on_read(cx, read));
        }
    }

    pub(super) fn on_tick(&mut self) {
        let (_, cx) = self.context();
        cx.links.redial(cx.now, cx.now, cx.outbox);
        let now = self.shared.now;
        self.settle_claims(now);
        if self.shared.elector.deadline().is_some_and(|(at, _)| at <= now) {
            self.elect(ElectorEvent::Tick);
            if matches!(self.role, Role::Looking) && self.appointed {
                // The server that was named has not been elected in time.
                self.refuse_adrift();
            }
            self.on_clock(ClockEvent::Tick);
        }
        while let Some((due, timer)) = self.shared.timers.next().filter(|(at, _)| *at <= now) {
            self.on_timer(timer, due);
        }
    }

    /// A deadline of the table has come.
    pub(super) fn on_timer(&mut self, timer: Timer, due: Instant) {
        self.shared.timers.stop(timer);
        match timer {
            Timer::Start => {
                let (_, cx) = self.context();
                // The election waits for it, as for all that is written.
                if let Some(longest) = cx.lease.begin(cx.now, cx.config.lease) {
                    cx.outbox.persist(Write::Lease(longest));
                }
                self.look();
            }
            Timer::Backoff if matches!(self.role, Role::Looking) => self.vote(),
            Timer::Backoff => self.look(),
            Timer::Introduction => early::on_late(&mut self.shared.context(), due),
            Timer::Listening => self.on_unreachable(),
            Timer::Lease => {
                self.with_leader(|leader, cx| leader.on_timer(cx, timer));
                self.with_learner(|learner, cx| learner.on_timer(cx, timer));
            }
            Timer::Connect | Timer::ConnectLimit | Timer::Silence => {
                self.with_learner(|learner, cx| learner.on_timer(cx, timer));
            }
            Timer::Init | Timer::Transfer | Timer::Ping => {
                self.with_leader(|leader, cx| leader.on_timer(cx, timer));
            }
            // These belong to the election and the links, not to the table.
            Timer::Notification
            | Timer::Finalize
            | Timer::Candidacy
            | Timer::Heartbeat
            | Timer::Redial
            | Timer::Claim => {}
        }
    }
}
