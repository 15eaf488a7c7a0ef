//! What becomes of a server's role, when an election or a machine says so.
//!
//! ```text
//!            ┌────────────────────── leave ◄───────────────────┐
//!            ▼                                                 │
//!   back-off ─► look ─► elect, or hear the clock ─► on_decided ─► a role ─► change_role ─► serve
//!            ▲                                                 │
//!            └──────────────── on_appointed ◄──────────────────┘
//! ```
//!
//! Nothing is judged here: a decision comes from the election, a [`RoleChange`] from the role.

use core::time::Duration;

use crate::context::{Context, Parked, RoleChange};
use crate::election::ElectorEvent;
use crate::generation::{ClockEvent, Cue};
use crate::id::ServerId;
use crate::leader::Leader;
use crate::learner::Learner;
use crate::output::Output;
use crate::peer::electing::Electing;
use crate::peer::generations::After;
use crate::peer::role::Role;
use crate::peer::shared::SharedParts;
use crate::peer::{Peer, early};
use crate::reasons::Refusal;
use crate::report::{Change, Reason};
use crate::status::Phase;
use crate::timers::Timer;
use crate::vote::{Round, ServerState, Standing, Vote};

impl Peer {
    /// Begins an election, once everything that the vote tells is on disk.
    pub(super) fn look(&mut self) {
        self.shared.timers.stop(Timer::Backoff);
        if !self.shared.fence() {
            self.role = Role::Fencing;
            return;
        }
        self.role = Role::Looking;
        self.vote();
    }

    /// Begins to look, or does so with another vote: what was durable when we began still is.
    pub(super) fn vote(&mut self) {
        let patience = self.shared.config.timing.init_time();
        if self.shared.concessions.nominee.is_some() {
            // Those who do not know the next membership cannot follow whom we propose: not for ever.
            self.shared.timers.after(Timer::Backoff, self.shared.now, patience);
        }
        let may_lead = self.shared.may_stand(patience);
        self.elect(ElectorEvent::MayLead(may_lead));
        self.on_clock(ClockEvent::MayLead(may_lead));
        let (own, cue) = (self.shared.own_vote(), self.shared.take_cue());
        self.elect(ElectorEvent::Look(own));
        self.on_clock(ClockEvent::Look { own, cue });
    }

    /// Hands something to the fast election, if we take part in one, and does what it wants.
    #[inline]
    pub(super) fn elect(&mut self, event: ElectorEvent) {
        let SharedParts { elector, now, told, .. } = &mut self.shared;
        let Electing::Fast(elector) = elector else { return };
        elector.step_into(*now, event, told);
        if !told.is_empty() {
            self.carry_out();
        }
    }

    /// Hands something to an election by generation, if we take part in one, and does what it wants.
    pub(super) fn on_clock(&mut self, event: ClockEvent) {
        let after = self.shared.on_clock(event);
        self.follow(after);
    }

    /// What follows from an election by generation.
    pub(super) fn follow(&mut self, after: After) {
        match after {
            After::Nothing => {}
            After::Decided(standing, why) => self.on_decided(standing, why),
            After::Leave(reason, cue) => {
                if let (Role::Leading(leader), mut cx) = self.context() {
                    leader.give_up(&mut cx);
                }
                self.leave(reason, Duration::ZERO, cue);
            }
        }
    }

    /// Does what the election wants; if it is over, there is a role for us.
    pub(super) fn carry_out(&mut self) {
        if let Some((decision, why)) = self.shared.carry_out() {
            self.on_decided(decision.standing, why);
        }
    }

    /// Builds the role that the election has found. Observers that look are told: they ask less and
    /// less often, and no other server tells them.
    pub(super) fn on_decided(&mut self, standing: Standing, why: Option<Reason>) {
        self.shared.timers.stop(Timer::Backoff);
        self.shared.listening.on_decided();
        self.shared.tell_observers(standing);
        let support = self.shared.elector.support().clone();
        let (role, mut cx) = self.context();
        let members = support.members(cx.quorum).collect();
        let quorum = Reason::Quorum { members, leader: standing.vote.leader };
        let change = Change::Phase { from: Phase::Election, to: Phase::Discovery };
        cx.outbox.report(change, why.unwrap_or(quorum));
        let role_change = if standing.state == ServerState::Leading {
            let (leader, role_change) = Leader::new(&mut cx, standing, support);
            *role = Role::Leading(leader);
            role_change
        } else {
            cx.concessions.promise.clear();
            let (learner, role_change) = Learner::new(&mut cx, standing, support);
            *role = Role::Learning(learner);
            early::dismiss(&mut self.shared.context());
            role_change
        };
        self.change_role(role_change);
    }

    /// Lends the shared parts to the leader, if we are one, and does what it returns.
    pub(super) fn with_leader(
        &mut self,
        act: impl FnOnce(&mut Leader, &mut Context<'_>) -> RoleChange,
    ) {
        if let (Role::Leading(leader), mut cx) = self.context() {
            let role_change = act(leader, &mut cx);
            self.change_role(role_change);
        }
    }

    /// Lends the shared parts to the learner, if we are one, and does what it returns.
    pub(super) fn with_learner(
        &mut self,
        act: impl FnOnce(&mut Learner, &mut Context<'_>) -> RoleChange,
    ) {
        if let (Role::Learning(learner), mut cx) = self.context() {
            let role_change = act(learner, &mut cx);
            self.change_role(role_change);
        }
    }

    /// The role, and apart from it everything that its machine may touch.
    #[inline]
    pub(super) const fn context(&mut self) -> (&mut Role, Context<'_>) {
        (&mut self.role, self.shared.context())
    }

    /// Serves no longer. Returns whether it did.
    pub(super) fn retire(&mut self) -> bool {
        let served = self.serving.take().is_some();
        // Where it was not told yet that it serves, it is not told that it does no more.
        if served && !self.shared.delivery.withdraw_service() {
            self.shared.outbox.push(Output::Retired);
        }
        served
    }

    /// The role is over.
    pub(super) fn end_role(&mut self) {
        let (role, mut cx) = self.context();
        role.end(&mut cx);
    }

    #[inline]
    pub(super) fn change_role(&mut self, role_change: RoleChange) {
        if self.shared.quorum_changed || role_change != RoleChange::Stay {
            self.turn(role_change);
        }
    }

    /// Something becomes of the role: seldom, and kept out of the way of what is not.
    #[cold]
    pub(super) fn turn(&mut self, role_change: RoleChange) {
        if core::mem::take(&mut self.shared.quorum_changed) {
            let SharedParts { elector, config, now, .. } = &mut self.shared;
            elector.update_quorum(config, *now);
        }
        match role_change {
            RoleChange::Stay => {}
            RoleChange::Serve(epoch) => {
                self.serving = Some(epoch);
                self.backoff.on_served();
                self.shared.outbox.narrow();
                self.shared.concessions.history.clear();
                let leader = self.shared.elector.standing().vote.leader;
                self.shared.concessions.transfers.on_served(self.shared.now, leader);
                self.shared.elector.establish(epoch);
                self.appointed = false;
                let leads = matches!(self.role, Role::Leading(_));
                let marks =
                    if let Role::Learning(learner) = &self.role { learner.marks } else { leads };
                let membership = self.shared.config.membership.clone();
                let SharedParts { outbox, requests, history, delivery, .. } = &mut self.shared;
                delivery.then(Output::Serving { epoch, leads, marks, membership }, history, outbox);
                requests.on_serving(epoch, history.committed(), outbox);
                for parked in core::mem::take(&mut self.shared.parked) {
                    match parked {
                        Parked::Propose(request) => self.on_propose(request),
                        Parked::Read(read) => self.on_read(read),
                    }
                }
            }
            RoleChange::Appointed { vote, round } => self.on_appointed(vote, round),
            RoleChange::GoBack { from, vote, otherwise } => self.go_back(from, vote, otherwise),
            RoleChange::Leave { reason, backoff, cue } => self.leave(reason, backoff, cue),
        }
    }

    /// The leadership was given to another server, or to us, or we follow the same leader in another role: the next
    /// role begins without an election. A caller that asks for something meanwhile waits.
    pub(super) fn on_appointed(&mut self, vote: Vote, round: Round) {
        let old = self.shared.elector.standing();
        let (from, to) = (old.vote.leader, vote.leader);
        let reason = if from == to {
            Reason::Reconfigured { version: self.shared.config.membership.version() }
        } else {
            Reason::Transferred { from, to }
        };
        self.retire();
        self.end_role();
        self.leadership_over();
        self.appointed = true;
        self.shared.clear();
        let change = Change::Phase { from: Phase::Broadcast, to: Phase::Election };
        self.shared.outbox.report(change, reason.clone());
        let SharedParts { elector, now, told, .. } = &mut self.shared;
        match elector {
            Electing::Fast(elector) => {
                elector.appoint(*now, vote, round, reason, told);
                self.carry_out();
            }
            Electing::Generation(by) => {
                if by.clock.appoint(vote, reason, &mut by.told) {
                    let after = self.shared.carry_generations();
                    return self.follow(after);
                }
                // The server that was named is elected like any other.
                by.clock.retire();
                by.cue = Cue::Appointed(to);
                self.look();
            }
        }
    }

    /// The leadership of our leader is over here, if it has begun.
    fn leadership_over(&mut self) {
        let SharedParts { concessions, config, now, .. } = &mut self.shared;
        concessions.transfers.on_leadership_over(*now, config.timing.init_time());
    }

    /// Whether what is asked for now has to wait for a leadership that is about to begin.
    pub(super) fn is_adrift(&self) -> bool {
        self.appointed
            && self.serving.is_none()
            && self.shared.parked.len() < self.shared.config.history.requests
    }

    /// No leadership is about to begin: what waits for one is refused.
    pub(super) fn refuse_adrift(&mut self) {
        self.appointed = false;
        let reason = Refusal::LeadershipOver;
        for parked in core::mem::take(&mut self.shared.parked) {
            self.shared.outbox.push(match parked {
                Parked::Propose(request) => Output::Refused { id: request.id, reason },
                Parked::Read(read) => Output::ReadRefused { read, reason },
            });
        }
    }

    /// Gives up the role and goes back into the round that it came of, with a better vote; where that cannot be,
    /// another round begins.
    fn go_back(&mut self, from: ServerId, vote: Vote, otherwise: Reason) {
        let (old, phase) = (self.shared.elector.standing(), self.status().phase);
        let own = self.shared.own_history();
        let SharedParts { elector, now, told, .. } = &mut self.shared;
        let back = match elector {
            Electing::Fast(elector) => elector.go_back(*now, own, from, vote, told),
            Electing::Generation(_) => false,
        };
        if !back {
            return self.leave(otherwise, Duration::ZERO, Cue::Fresh);
        }
        self.end_role();
        self.refuse_adrift();
        self.role = Role::Looking;
        early::detain(&mut self.shared.context());
        self.shared.clear();
        early::arm(&mut self.shared.context());
        let to = ServerState::Looking;
        let outbox = &mut self.shared.outbox;
        outbox.report(Change::BackIntoRound(old.round), otherwise.clone());
        outbox.report(Change::State { from: old.state, to }, otherwise.clone());
        let change = Change::Phase { from: phase, to: Phase::Election };
        self.shared.outbox.report(change, otherwise);
        self.carry_out();
    }

    /// Gives up the role; looks for a leader again, an observer a little later than the voters.
    pub(super) fn leave(&mut self, reason: Reason, backoff: Duration, cue: Cue) {
        let from = self.shared.elector.standing().state;
        let phase = self.status().phase;
        let reason = self.reason_to_leave(reason);
        let served = self.retire();
        self.end_role();
        self.refuse_adrift();
        self.shared.cue(cue);
        self.role = Role::Resting;
        self.leadership_over();
        self.shared.elector.retire();
        self.shared.clear();
        let to = ServerState::Looking;
        let outbox = &mut self.shared.outbox;
        outbox.report(Change::State { from, to }, reason.clone());
        outbox.report(Change::Phase { from: phase, to: Phase::Election }, reason);
        let backoff = backoff.max(self.backoff.length(&mut self.shared.context(), from, served));
        if backoff.is_zero() {
            self.look();
        } else {
            self.shared.cue(Cue::Fresh);
            let (_, cx) = self.context();
            cx.timers.after(Timer::Backoff, cx.now, backoff);
        }
    }
}
