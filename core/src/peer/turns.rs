//! What becomes of a server's role, when an election or a machine says so.
//!
//! ```text
//!            ┌────────────────────── leave ◄───────────────────┐
//!            ▼                                                 │
//!   rest ─► look ─► elect or poll ─► on_decided ─► a role ─► obey ─► serve
//!            ▲                                                 │
//!            └──────────────── on_appointed ◄──────────────────┘
//! ```
//!
//! Nothing is judged here: a decision comes from the election, a [`Verdict`] from the role.

use core::time::Duration;

use crate::context::{Context, Parked, Verdict};
use crate::election::ElectorEvent;
use crate::generation::{ClockEvent, Cue};
use crate::id::ServerId;
use crate::leader::Leader;
use crate::learner::Learner;
use crate::output::Output;
use crate::peer::electing::Electing;
use crate::peer::instruments::Instruments;
use crate::peer::letters::{After, cue_of};
use crate::peer::role::Role;
use crate::peer::{Peer, early};
use crate::reasons::Refusal;
use crate::report::{Change, Reason};
use crate::status::Phase;
use crate::timers::Timer;
use crate::vote::{Round, ServerState, Standing, Vote};

impl Peer {
    /// Begins an election, once everything that the vote tells is on disk.
    pub(super) fn look(&mut self) {
        self.instruments.timers.stop(Timer::Backoff);
        if !self.instruments.fence() {
            self.role = Role::Fencing;
            return;
        }
        self.role = Role::Looking;
        self.vote();
    }

    /// Begins to look, or does so with another vote: what was durable when we began still is.
    pub(super) fn vote(&mut self) {
        let patience = self.instruments.config.timing.init_time();
        if self.instruments.concessions.nominee.is_some() {
            // Those who do not know the next membership cannot follow whom we propose: not for ever.
            self.instruments.timers.after(Timer::Backoff, self.instruments.now, patience);
        }
        let may_lead = self.instruments.may_stand(patience);
        self.elect(ElectorEvent::MayLead(may_lead));
        self.poll(ClockEvent::MayLead(may_lead));
        let (own, cue) = (self.instruments.own_vote(), self.instruments.take_cue());
        self.elect(ElectorEvent::Look(own));
        self.poll(ClockEvent::Look { own, cue });
    }

    /// Hands something to the fast election, if we take part in one, and does what it wants.
    #[inline]
    pub(super) fn elect(&mut self, event: ElectorEvent) {
        let Instruments { elector, now, told, .. } = &mut self.instruments;
        let Electing::Fast(elector) = elector else { return };
        elector.step_into(*now, event, told);
        if !told.is_empty() {
            self.carry_out();
        }
    }

    /// Hands something to an election by generation, if we take part in one, and does what it wants.
    pub(super) fn poll(&mut self, event: ClockEvent) {
        let after = self.instruments.poll(event);
        self.follow(after);
    }

    /// What follows from an election by generation.
    pub(super) fn follow(&mut self, after: After) {
        match after {
            After::Nothing => {}
            After::Decided(standing, why) => self.on_decided(standing, why),
            After::Leave(reason) => {
                if let (Role::Leading(leader), mut cx) = self.lend() {
                    leader.give_up(&mut cx);
                }
                self.leave(reason, Duration::ZERO);
            }
        }
    }

    /// Does what the election wants; if it is over, there is a role for us.
    pub(super) fn carry_out(&mut self) {
        if let Some((decision, why)) = self.instruments.carry_out() {
            self.on_decided(decision.standing, why);
        }
    }

    /// Builds the role that the election has found. Observers that look are told: they ask less and
    /// less often, and no other server tells them.
    pub(super) fn on_decided(&mut self, standing: Standing, why: Option<Reason>) {
        self.instruments.timers.stop(Timer::Backoff);
        self.instruments.listening.on_decided();
        self.instruments.tell_observers(standing);
        let support = self.instruments.elector.support().clone();
        let (role, mut cx) = self.lend();
        let members = support.members(cx.quorum).collect();
        let quorum = Reason::Quorum { members, leader: standing.vote.leader };
        let change = Change::Phase { from: Phase::Election, to: Phase::Discovery };
        cx.outbox.report(change, why.unwrap_or(quorum));
        let verdict = if standing.state == ServerState::Leading {
            let (leader, verdict) = Leader::new(&mut cx, standing, support);
            *role = Role::Leading(leader);
            verdict
        } else {
            cx.concessions.promise.clear();
            let (learner, verdict) = Learner::new(&mut cx, standing, support);
            *role = Role::Learning(learner);
            early::dismiss(&mut self.instruments.lend());
            verdict
        };
        self.obey(verdict);
    }

    /// Lends the instruments to the leader, if we are one, and does what it returns.
    pub(super) fn with_leader(
        &mut self,
        act: impl FnOnce(&mut Leader, &mut Context<'_>) -> Verdict,
    ) {
        if let (Role::Leading(leader), mut cx) = self.lend() {
            let verdict = act(leader, &mut cx);
            self.obey(verdict);
        }
    }

    /// Lends the instruments to the learner, if we are one, and does what it returns.
    pub(super) fn with_learner(
        &mut self,
        act: impl FnOnce(&mut Learner, &mut Context<'_>) -> Verdict,
    ) {
        if let (Role::Learning(learner), mut cx) = self.lend() {
            let verdict = act(learner, &mut cx);
            self.obey(verdict);
        }
    }

    /// The role, and apart from it everything that its machine may touch.
    #[inline]
    pub(super) const fn lend(&mut self) -> (&mut Role, Context<'_>) {
        (&mut self.role, self.instruments.lend())
    }

    /// Serves no longer. Returns whether it did.
    pub(super) fn retire(&mut self) -> bool {
        let served = self.serving.take().is_some();
        // Where it was not told yet that it serves, it is not told that it does no more.
        if served && !self.instruments.delivery.withdraw_service() {
            self.instruments.outbox.push(Output::Retired);
        }
        served
    }

    /// The role is over.
    pub(super) fn end_role(&mut self) {
        let (role, mut cx) = self.lend();
        role.end(&mut cx);
    }

    #[inline]
    pub(super) fn obey(&mut self, verdict: Verdict) {
        if self.instruments.reseated || verdict != Verdict::Stay {
            self.turn(verdict);
        }
    }

    /// Something becomes of the role: seldom, and kept out of the way of what is not.
    #[cold]
    pub(super) fn turn(&mut self, verdict: Verdict) {
        if core::mem::take(&mut self.instruments.reseated) {
            let Instruments { elector, config, now, .. } = &mut self.instruments;
            elector.update_quorum(config, *now);
        }
        match verdict {
            Verdict::Stay => {}
            Verdict::Serve(epoch) => {
                self.serving = Some(epoch);
                self.backoff.on_served();
                self.instruments.outbox.narrow();
                self.instruments.concessions.history.clear();
                let leader = self.instruments.elector.standing().vote.leader;
                self.instruments.concessions.transfers.on_served(self.instruments.now, leader);
                self.instruments.elector.establish(epoch);
                self.appointed = false;
                let leads = matches!(self.role, Role::Leading(_));
                let membership = self.instruments.config.membership.clone();
                let Instruments { outbox, requests, history, delivery, .. } = &mut self.instruments;
                delivery.then(Output::Serving { epoch, leads, membership }, history, outbox);
                requests.on_serving(epoch, history.committed(), outbox);
                for parked in core::mem::take(&mut self.instruments.parked) {
                    match parked {
                        Parked::Propose(request) => self.on_propose(request),
                        Parked::Read(read) => self.on_read(read),
                    }
                }
            }
            Verdict::Appointed { vote, round } => self.on_appointed(vote, round),
            Verdict::GoBack { from, vote, otherwise } => self.go_back(from, vote, otherwise),
            Verdict::Leave { reason, rest } => self.leave(reason, rest),
        }
    }

    /// The seat was given to another server, or to us, or we follow the same leader in another role: the next
    /// role begins without an election. A caller that asks for something meanwhile waits.
    pub(super) fn on_appointed(&mut self, vote: Vote, round: Round) {
        let old = self.instruments.elector.standing();
        let (from, to) = (old.vote.leader, vote.leader);
        let reason = if from == to {
            Reason::Reconfigured { version: self.instruments.config.membership.version() }
        } else {
            Reason::HandedOver { from, to }
        };
        self.retire();
        self.end_role();
        self.reign_over();
        self.appointed = true;
        self.instruments.clear();
        let change = Change::Phase { from: Phase::Broadcast, to: Phase::Election };
        self.instruments.outbox.report(change, reason.clone());
        let Instruments { elector, now, told, .. } = &mut self.instruments;
        match elector {
            Electing::Fast(elector) => {
                elector.appoint(*now, vote, round, reason, told);
                self.carry_out();
            }
            Electing::Generation(by) => {
                if by.clock.appoint(vote, reason, &mut by.told) {
                    let after = self.instruments.carry_letters();
                    return self.follow(after);
                }
                // The server that was named is elected like any other.
                by.clock.retire();
                by.cue = Cue::Appointed(to);
                self.look();
            }
        }
    }

    /// The reign of our leader is over here, if it has begun.
    fn reign_over(&mut self) {
        let Instruments { concessions, config, now, .. } = &mut self.instruments;
        concessions.transfers.on_reign_over(*now, config.timing.init_time());
    }

    /// Whether what is asked for now has to wait for a reign that is about to begin.
    pub(super) fn is_adrift(&self) -> bool {
        self.appointed
            && self.serving.is_none()
            && self.instruments.parked.len() < self.instruments.config.history.requests
    }

    /// No reign is about to begin: what waits for one is refused.
    pub(super) fn refuse_adrift(&mut self) {
        self.appointed = false;
        let reason = Refusal::ReignOver;
        for parked in core::mem::take(&mut self.instruments.parked) {
            self.instruments.outbox.push(match parked {
                Parked::Propose(request) => Output::Refused { id: request.id, reason },
                Parked::Read(read) => Output::ReadRefused { read, reason },
            });
        }
    }

    /// Gives up the role and goes back into the round that it came of, with a better vote; where that cannot be,
    /// another round begins.
    fn go_back(&mut self, from: ServerId, vote: Vote, otherwise: Reason) {
        let (old, phase) = (self.instruments.elector.standing(), self.status().phase);
        let own = self.instruments.own_history();
        let Instruments { elector, now, told, .. } = &mut self.instruments;
        let back = match elector {
            Electing::Fast(elector) => elector.go_back(*now, own, from, vote, told),
            Electing::Generation(_) => false,
        };
        if !back {
            return self.leave(otherwise, Duration::ZERO);
        }
        self.end_role();
        self.refuse_adrift();
        self.role = Role::Looking;
        early::detain(&mut self.instruments.lend());
        self.instruments.clear();
        early::arm(&mut self.instruments.lend());
        let to = ServerState::Looking;
        let outbox = &mut self.instruments.outbox;
        outbox.report(Change::BackIntoRound(old.round), otherwise.clone());
        outbox.report(Change::State { from: old.state, to }, otherwise.clone());
        let change = Change::Phase { from: phase, to: Phase::Election };
        self.instruments.outbox.report(change, otherwise);
        self.carry_out();
    }

    /// Gives up the role; looks for a leader again, an observer a little later than the voters.
    pub(super) fn leave(&mut self, reason: Reason, rest: Duration) {
        let from = self.instruments.elector.standing().state;
        let phase = self.status().phase;
        let served = self.retire();
        self.end_role();
        self.refuse_adrift();
        self.instruments.cue(cue_of(&reason));
        self.role = Role::Resting;
        self.reign_over();
        self.instruments.elector.retire();
        self.instruments.clear();
        let to = ServerState::Looking;
        let outbox = &mut self.instruments.outbox;
        outbox.report(Change::State { from, to }, reason.clone());
        outbox.report(Change::Phase { from: phase, to: Phase::Election }, reason);
        let rest = rest.max(self.backoff.length(&mut self.instruments.lend(), from, served));
        if rest.is_zero() {
            self.look();
        } else {
            self.instruments.cue(Cue::Fresh);
            let (_, cx) = self.lend();
            cx.timers.after(Timer::Backoff, cx.now, rest);
        }
    }
}
