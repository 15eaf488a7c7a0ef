//! One server: holds its role and routes what happens to the machine that decides.
//!
//! ```text
//!   Input ──►  Peer  ──► Elector     votes (or a GenerationClock)   looking
//!               │   ├──► Leader      discovery, synchronization, broadcast   leading
//!               │   ├──► Learner     the same from the other side            following, observing
//!               │   └──► Links       who is connected
//!   Output ◄────┘
//! ```
//!
//! The machines do not know one another. An election returns a decision, a role returns a
//! [`Verdict`]; what follows from either is built here, and nothing else is decided here. What belongs to
//! the server whatever its role stands in `instruments`, and what it says in elections in `voting`.

mod early;
mod electing;
mod instruments;
mod letters;
mod rest;
mod role;
mod voting;

use alloc::vec::Vec;
use core::time::Duration;

use crate::ballot::{Body, Letter};
use crate::config::{Config, ConfigError};
use crate::context::{Adrift, Context, Verdict};
use crate::durable::Durable;
use crate::election::ElectorEvent;
use crate::generation::{ClockEvent, Cue};
use crate::id::{LinkId, ReadId, ServerId};
use crate::input::{Cause, Event, Input, LinkUp, Plane};
use crate::leader::Leader;
use crate::leader::hand_over::Purpose;
use crate::learner::Learner;
use crate::lease::Lease;
use crate::links::Place;
use crate::message::{Message, Notification, Packet, Request};
use crate::output::{Hangup, Kept, Output, Refusal};
use crate::peer::electing::Electing;
use crate::peer::instruments::Instruments;
use crate::peer::letters::{After, cue_of};
use crate::peer::rest::Rest;
use crate::peer::role::Role;
use crate::report::{Change, Phase, Reason, Status};
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::Timer;
use crate::vote::{Round, ServerState, Standing, Vote};
use crate::zxid::{Epoch, Zxid};

/// One server's protocol, complete: hand it inputs, carry out its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    role: Role,
    instruments: Instruments,
    /// The epoch in which this server serves.
    serving: Option<Epoch>,
    rest: Rest,
    /// The seat was given to another server, or to us, and the new reign has not begun.
    appointed: bool,
}

/// The reign of a leader that is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reign {
    /// Its epoch.
    pub epoch: Epoch,
    /// Until when nobody else can be established, if a quorum has promised that.
    pub lease: Option<Instant>,
    /// A quorum is about to promise that for the first time, an exchange of messages after the reign has
    /// begun: whoever needs the promise waits for it.
    pub awaits_lease: bool,
}

impl Peer {
    /// A server that finds `durable` on its disk. Its first election begins with the first
    /// [`Event::Tick`], which [`Peer::deadline`] asks for at once.
    ///
    /// # Errors
    ///
    /// If `config` cannot work.
    pub fn new(config: Config, durable: Durable) -> Result<Self, ConfigError> {
        Ok(Self {
            role: Role::Idle,
            instruments: Instruments::new(config, durable)?,
            serving: None,
            rest: Rest::default(),
            appointed: false,
        })
    }

    /// What has to be done because of `input`.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.step_into(input, &mut outputs);
        outputs
    }

    /// The same, appended to `outputs`; a notification that changes nothing allocates nothing.
    pub fn step_into(&mut self, input: Input, outputs: &mut Vec<Output>) {
        if matches!(self.role, Role::Stopped) {
            return;
        }
        self.instruments.now = self.instruments.now.max(input.at);
        self.instruments.outbox.swap(outputs);
        match input.event {
            Event::Received { link, message } => self.on_received(link, message),
            Event::Tick => self.on_tick(),
            Event::LinkUp(up) => self.on_link_up(&up),
            Event::LinkDown { link, cause } => self.on_link_down(link, cause),
            Event::DialFailed { plane, peer } => self.on_dial_failed(plane, peer),
            Event::Persisted(ticket) => {
                self.instruments.outbox.on_persisted(ticket);
                self.instruments.history.on_persisted(&self.instruments.outbox);
                while let Some(ballot) = self.instruments.next_kept() {
                    self.poll(ClockEvent::Kept(ballot));
                }
                self.on_persisted();
            }
            Event::Prepared { epoch, drafts } => {
                self.with_leader(|leader, cx| leader.on_prepared(cx, epoch, drafts));
            }
            Event::Propose(request) => self.on_propose(request),
            Event::Read(read) => self.on_read(read),
            Event::Drained(link) => self.with_leader(|leader, cx| leader.on_drained(cx, link)),
            Event::Progress(link) => {
                self.with_leader(|leader, cx| leader.on_progress(cx, link));
                self.with_learner(|learner, cx| learner.on_progress(cx, link));
            }
            Event::Located { link, located } => {
                self.with_leader(|leader, cx| leader.on_located(cx, link, located));
                self.with_learner(|learner, cx| learner.on_located(cx, link, located));
            }
            Event::Streamed { link, outcome } => {
                self.with_leader(|leader, cx| leader.on_streamed(cx, link, outcome));
            }
            Event::Restored(link) => {
                self.with_learner(|learner, cx| learner.on_restored(cx, link));
            }
            Event::SnapshotTaken(_) => self.instruments.history.on_snapshot_taken(),
            Event::Oracle(yes) => {
                self.elect(ElectorEvent::Oracle(yes));
                self.poll(ClockEvent::Oracle(yes));
            }
            Event::StepDown => {
                self.with_leader(|leader, cx| leader.on_hand_over(cx, None, Purpose::StepDown));
            }
            Event::HandOver(to) => self.on_hand_over(to),
            Event::Released => self.with_leader(|leader, cx| leader.on_released(cx)),
            Event::Shutdown => self.on_shutdown(),
        }
        self.conclude(outputs);
    }

    /// The end of a step: `outputs` is what is to be done.
    #[inline]
    fn conclude(&mut self, outputs: &mut Vec<Output>) {
        if self.instruments.outbox.is_halted() {
            self.role = Role::Stopped;
            self.serving = None;
        }
        self.instruments.outbox.swap(outputs);
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// The earliest time at which a [`Event::Tick`] is due, and what for. A stopped server has none.
    pub fn deadline(&self) -> Option<(Instant, Timer)> {
        if matches!(self.role, Role::Stopped) {
            return None;
        }
        self.instruments.deadline()
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        let standing = self.instruments.elector.standing();
        let (phase, leader, learners) = self.role.seen_by(self.instruments.config.id);
        Status {
            id: self.instruments.config.id,
            state: if leader.is_some() { standing.state } else { ServerState::Looking },
            phase,
            round: standing.round,
            vote: standing.vote,
            leader,
            accepted_epoch: self.instruments.epochs.accepted_epoch,
            current_epoch: self.instruments.epochs.current_epoch,
            last: self.instruments.history.last(),
            processed: self.serving.map_or(self.instruments.history.last(), |epoch| {
                Zxid::start_of(epoch).max(self.instruments.history.committed())
            }),
            serving: self.serving.is_some(),
            voter: self.instruments.config.is_voter(),
            voters: self.instruments.elector.quorum().voters().len(),
            learners,
            linked: self.instruments.links.linked().collect(),
        }
    }

    /// The reign of this server, if it leads an established ensemble. Where it has ended by a step, those who do
    /// what only a leader may are told before that step's outputs are carried out: by these, others learn that
    /// somebody else may lead.
    pub const fn reign(&self) -> Option<Reign> {
        match (&self.role, self.serving) {
            (Role::Leading(leader), Some(epoch)) => {
                let (lease, awaits_lease) = (leader.lease(), leader.awaits_lease());
                Some(Reign { epoch, lease, awaits_lease })
            }
            _ => None,
        }
    }

    /// Where this server stands in the election, as it tells others.
    pub const fn standing(&self) -> Standing {
        self.instruments.elector.standing()
    }

    /// What this server was told, with the configuration as it is now.
    pub const fn config(&self) -> &Config {
        &self.instruments.config
    }

    /// What always holds; called after every step in debug builds.
    ///
    /// # Panics
    ///
    /// If an invariant of ours is broken.
    pub fn check(&self) {
        let (epochs, last) = (&self.instruments.epochs, self.instruments.history.last());
        assert!(epochs.current_epoch <= epochs.accepted_epoch, "no epoch is current unpromised");
        assert!(last.epoch() <= epochs.accepted_epoch, "nothing is logged of an epoch unpromised");
        if let Some(epoch) = self.serving {
            assert_eq!(epoch, epochs.current_epoch, "a server serves in its current epoch");
        }
        self.instruments.history.check();
        let looking = matches!(self.role, Role::Looking);
        assert!(
            looking == self.instruments.elector.is_looking() || matches!(self.role, Role::Stopped),
            "the role and the election agree"
        );
        assert!(self.instruments.told.is_empty(), "nothing of the election is left undone");
        if let Role::Leading(_) = self.role {
            assert_eq!(self.instruments.elector.standing().vote.leader, self.instruments.config.id);
        }
    }

    // --- for model checkers ---

    /// When a deadline of this name passes, if there is one. [`Peer::deadline`] tells the earliest of all.
    pub fn due(&self, timer: Timer) -> Option<Instant> {
        match timer {
            Timer::Notification | Timer::Finalize | Timer::Candidacy | Timer::Heartbeat => {
                self.instruments.elector.due(timer)
            }
            Timer::Redial => self.instruments.links.deadline(),
            Timer::Start
            | Timer::Rest
            | Timer::Introduction
            | Timer::Connect
            | Timer::ConnectLimit
            | Timer::Silence
            | Timer::Init
            | Timer::HandOver
            | Timer::Lease
            | Timer::Ping => self.instruments.timers.get(timer),
        }
    }

    /// Lets one deadline pass, whatever else is due and whenever it would be, and the clock stand. None if
    /// there is no such deadline now.
    ///
    /// For model checkers, and for nobody else: a driver says [`Event::Tick`]. A checker wants to see deadlines
    /// pass in every order, and few states. So the time of every input is the same: the deadlines that are
    /// set lie as far ahead as ever, and what asks how long something has lasted finds that it has just
    /// begun. See also [`Peer::rewind`].
    pub fn fire(&mut self, timer: Timer) -> Option<Vec<Output>> {
        let due = self.due(timer)?;
        let mut outputs = Vec::new();
        self.instruments.outbox.swap(&mut outputs);
        if let Timer::Notification | Timer::Finalize | Timer::Candidacy | Timer::Heartbeat = timer {
            let Instruments { elector, now, told, .. } = &mut self.instruments;
            match elector {
                Electing::Fast(elector) => {
                    elector.fire(*now, told);
                    self.carry_out();
                }
                Electing::Generation(by) => {
                    by.clock.fire(*now, &mut by.told);
                    let after = self.instruments.carry_letters();
                    self.follow(after);
                }
            }
        } else if timer == Timer::Redial {
            let (_, cx) = self.lend();
            cx.links.redial(cx.now, due, cx.outbox);
        } else {
            self.on_timer(timer, due);
        }
        self.conclude(&mut outputs);
        Some(outputs)
    }

    /// Jitter begins anew, so that states do not differ by how often it was needed. For model checkers.
    pub fn rewind(&mut self) {
        self.instruments.rng = Rng::new(self.instruments.config.seed);
        self.instruments.elector.rewind();
    }

    // --- what happens ---

    #[inline]
    fn on_received(&mut self, link: LinkId, message: Message) {
        // Of a link that we have hung up meanwhile.
        let Some(place) = self.instruments.links.place(link) else { return };
        // The most frequent of all inputs: a message is large, and handed on as it lies.
        match message {
            Message::Notification(notification) => match place {
                Place::Election(from) => self.on_notification(link, from, &notification),
                Place::Leader(_) | Place::Learner => self.on_misplaced(link, "notification"),
            },
            Message::Letter(letter) => match place {
                Place::Election(from) => self.on_letter(link, from, letter),
                Place::Leader(_) | Place::Learner => self.on_misplaced(link, "letter"),
            },
            Message::Packet(packet) => match place {
                Place::Leader(_) => {
                    if let (Role::Learning(learner), mut cx) = self.lend() {
                        let verdict = learner.on_packet(&mut cx, link, packet);
                        self.obey(verdict);
                    }
                }
                Place::Learner => self.on_learner_packet(link, packet),
                Place::Election(_) => self.on_misplaced(link, packet.name()),
            },
        }
    }

    /// A message on the plane of the other kind.
    #[cold]
    fn on_misplaced(&mut self, link: LinkId, name: &'static str) {
        self.on_link_down(link, Cause::Garbled);
        self.instruments.outbox.hangup(link, Hangup::OutOfTurn(name));
    }

    #[inline]
    fn on_notification(&mut self, link: LinkId, from: ServerId, notification: &Notification) {
        if let Electing::Generation(_) = self.instruments.elector {
            return self.on_misplaced(link, "notification");
        }
        let Notification { standing, version, config } = notification;
        let (standing, version) = (*standing, *version);
        if self.instruments.config.reconfig_enabled
            && matches!(self.role, Role::Looking)
            && self.instruments.adopt(from, config)
        {
            return self.look();
        }
        self.elect(ElectorEvent::Heard { from, standing, versioned: version > 0 });
        if matches!(self.role, Role::Looking) {
            return;
        }
        if self.instruments.elector.quorum().is_voter(from) {
            self.with_leader(|leader, cx| leader.on_looking(cx, from, standing));
        }
        self.with_learner(|learner, _| learner.on_standing(from, standing));
    }

    /// A server that elects by generation has said something.
    fn on_letter(&mut self, link: LinkId, from: ServerId, letter: Letter) {
        if let Electing::Fast(_) = self.instruments.elector {
            return self.on_misplaced(link, "letter");
        }
        if self.instruments.config.reconfig_enabled
            && matches!(self.role, Role::Looking)
            && self.instruments.adopt(from, &letter.config)
        {
            return self.look();
        }
        let (body, round) = (letter.body, Round(letter.generation.0));
        self.poll(ClockEvent::Heard { from, letter });
        if let (Body::Standing { leader, .. }, Role::Learning(_)) = (body, &self.role) {
            // Whoever does not lead any more does not lead this generation again.
            let state = ServerState::Following;
            let standing = Standing { state, vote: Vote { leader, ..Vote::ABSTENTION }, round };
            self.with_learner(|learner, _| learner.on_standing(from, standing));
        }
    }

    /// Something from a link that was accepted on the quorum port.
    fn on_learner_packet(&mut self, link: LinkId, packet: Packet) {
        if let (Role::Leading(leader), mut cx) = self.lend() {
            // Nobody waits for one who leads.
            let verdict = leader.on_packet(&mut cx, link, packet);
            return self.obey(verdict);
        }
        early::on_packet(&mut self.instruments.lend(), link, packet);
    }

    fn on_link_up(&mut self, up: &LinkUp) {
        let link = up.link;
        match (up.plane, up.dialled, up.peer) {
            (Plane::Election, _, _) => {
                let (_, cx) = self.lend();
                let kept = cx.links.on_election_up(cx.now, up, cx.rng, cx.outbox);
                let Some(peer) = kept else { return };
                self.elect(ElectorEvent::Reachable(peer));
                self.instruments.greet(link, peer);
                if self.instruments.config.is_member(peer) {
                    self.poll(ClockEvent::Reachable(peer));
                }
            }
            (Plane::Quorum, true, Some(peer)) => {
                self.instruments.links.on_leader_up(link, peer);
                if let Role::Learning(_) = self.role {
                    self.with_learner(|learner, cx| learner.on_link_up(cx, link, peer));
                } else {
                    self.instruments.hangup(link, Hangup::Unwanted);
                }
            }
            (Plane::Quorum, _, _) => self.on_learner_up(link),
        }
    }

    /// Somebody comes to learn. A leader takes it in; while we look with ourselves as proposal it
    /// may only be early, and waits a little; so it may be while the membership changes, and the next
    /// leader is about to be named.
    fn on_learner_up(&mut self, link: LinkId) {
        self.instruments.links.on_learner_up(link);
        if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_link_up(cx, link));
        } else if (matches!(self.role, Role::Looking) && self.instruments.proposes_itself())
            || (self.serving.is_some() && self.instruments.config.next_membership.is_some())
        {
            early::on_link_up(&mut self.instruments.lend(), link);
        } else {
            self.instruments.hangup(link, Hangup::NotLeading);
        }
    }

    fn on_link_down(&mut self, link: LinkId, cause: Cause) {
        let (_, cx) = self.lend();
        match cx.links.on_down(cx.now, link, cx.rng, cx.outbox) {
            Some(Place::Leader(_)) => {
                self.with_learner(|learner, cx| learner.on_link_down(cx, link, cause));
            }
            Some(Place::Learner) => self.with_leader(|leader, cx| leader.on_link_down(cx, link)),
            Some(Place::Election(_)) | None => {}
        }
    }

    fn on_dial_failed(&mut self, plane: Plane, peer: ServerId) {
        match plane {
            Plane::Election => {
                let (_, cx) = self.lend();
                if cx.links.on_election_dial_failed(cx.now, peer, cx.rng, cx.outbox) {
                    self.elect(ElectorEvent::Unreachable(peer));
                    self.with_learner(|learner, _| learner.on_unreachable(peer));
                }
            }
            Plane::Quorum => {
                self.instruments.links.on_leader_dial_over(peer);
                self.with_learner(|learner, cx| learner.on_dial_failed(cx, peer));
            }
        }
    }

    fn on_persisted(&mut self) {
        if matches!(self.role, Role::Fencing) {
            self.look();
        } else {
            self.with_leader(|leader, cx| leader.on_persisted(cx));
            self.with_learner(|learner, cx| learner.on_persisted(cx));
        }
    }

    /// The operator wants another server to lead.
    fn on_hand_over(&mut self, to: Option<ServerId>) {
        if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_hand_over(cx, to, Purpose::Asked));
        } else {
            self.instruments.outbox.push(Output::HandedOver(Err(Kept::NotLeading)));
        }
    }

    fn on_shutdown(&mut self) {
        self.end_role();
        self.refuse_adrift();
        self.instruments.links.hangup_all(Hangup::Shutdown, &mut self.instruments.outbox);
        self.role = Role::Stopped;
        self.serving = None;
    }

    fn on_propose(&mut self, request: Request) {
        let (id, length) = (request.id, request.body.len());
        if length > Request::BODY_BYTES_MAX {
            self.instruments.outbox.push(Output::Refused { id, reason: Refusal::TooLong(length) });
        } else if self.is_adrift() {
            self.instruments.adrift.push_back(Adrift::Propose(request));
        } else if self.serving.is_none() {
            self.instruments.outbox.push(Output::Refused { id, reason: Refusal::NotServing });
        } else if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_propose(cx, request));
        } else {
            self.with_learner(|learner, cx| learner.on_propose(cx, request));
        }
    }

    fn on_read(&mut self, read: ReadId) {
        if self.is_adrift() {
            self.instruments.adrift.push_back(Adrift::Read(read));
        } else if self.serving.is_none() {
            self.instruments.outbox.push(Output::ReadRefused { read, reason: Refusal::NotServing });
        } else {
            self.with_leader(|leader, cx| leader.on_read(cx, read));
            self.with_learner(|learner, cx| learner.on_read(cx, read));
        }
    }

    fn on_tick(&mut self) {
        let (_, cx) = self.lend();
        cx.links.redial(cx.now, cx.now, cx.outbox);
        let now = self.instruments.now;
        if self.instruments.elector.deadline().is_some_and(|(at, _)| at <= now) {
            self.elect(ElectorEvent::Tick);
            if matches!(self.role, Role::Looking) && self.appointed {
                // Whoever was named has not been elected in time.
                self.refuse_adrift();
            }
            self.poll(ClockEvent::Tick);
        }
        while let Some((due, timer)) = self.instruments.timers.next().filter(|(at, _)| *at <= now) {
            self.on_timer(timer, due);
        }
    }

    /// A deadline of the table has come.
    fn on_timer(&mut self, timer: Timer, due: Instant) {
        self.instruments.timers.stop(timer);
        match timer {
            Timer::Start => {
                let (_, cx) = self.lend();
                *cx.lease = Lease::begin(cx.now, cx.config.lease);
                self.look();
            }
            Timer::Rest => self.look(),
            Timer::Introduction => early::on_late(&mut self.instruments.lend(), due),
            Timer::Lease => {
                self.with_leader(|leader, cx| leader.on_timer(cx, timer));
                self.with_learner(|learner, cx| learner.on_timer(cx, timer));
            }
            Timer::Connect | Timer::ConnectLimit | Timer::Silence => {
                self.with_learner(|learner, cx| learner.on_timer(cx, timer));
            }
            Timer::Init | Timer::HandOver | Timer::Ping => {
                self.with_leader(|leader, cx| leader.on_timer(cx, timer));
            }
            // These belong to the election and the links, not to the table.
            Timer::Notification
            | Timer::Finalize
            | Timer::Candidacy
            | Timer::Heartbeat
            | Timer::Redial => {}
        }
    }

    // --- what follows ---

    /// Begins an election, once everything that the vote tells is on disk.
    fn look(&mut self) {
        self.instruments.timers.stop(Timer::Rest);
        if !self.instruments.fence() {
            self.role = Role::Fencing;
            return;
        }
        self.role = Role::Looking;
        if self.instruments.concessions.nominee.is_some() {
            // Those who do not know the next membership cannot follow whom we propose: not for ever.
            let patience = self.instruments.config.timing.init_time();
            self.instruments.timers.after(Timer::Rest, self.instruments.now, patience);
        }
        let (own, cue) = (self.instruments.own_vote(), self.instruments.take_cue());
        self.elect(ElectorEvent::Look(own));
        self.poll(ClockEvent::Look { own, cue });
    }

    /// Hands something to the fast election, if we take part in one, and does what it wants.
    #[inline]
    fn elect(&mut self, event: ElectorEvent) {
        let Instruments { elector, now, told, .. } = &mut self.instruments;
        let Electing::Fast(elector) = elector else { return };
        elector.step_into(*now, event, told);
        if !told.is_empty() {
            self.carry_out();
        }
    }

    /// Hands something to an election by generation, if we take part in one, and does what it wants.
    fn poll(&mut self, event: ClockEvent) {
        let after = self.instruments.poll(event);
        self.follow(after);
    }

    /// What follows from an election by generation.
    fn follow(&mut self, after: After) {
        match after {
            After::Nothing => {}
            After::Decided(standing, why) => self.on_decided(standing, why),
            After::Leave(reason) => self.leave(reason, Duration::ZERO),
        }
    }

    /// Does what the election wants; if it is over, there is a role for us.
    fn carry_out(&mut self) {
        if let Some((decision, why)) = self.instruments.carry_out() {
            self.on_decided(decision.standing, why);
        } else if !self.instruments.proposes_itself() {
            early::dismiss(&mut self.instruments.lend());
        }
    }

    /// Builds the role that the election has found. Observers that look are told: they ask less and
    /// less often, and nobody else tells them.
    fn on_decided(&mut self, standing: Standing, why: Option<Reason>) {
        self.instruments.timers.stop(Timer::Rest);
        self.instruments.tell_observers(standing);
        let support = self.instruments.elector.support().clone();
        let (role, mut cx) = self.lend();
        let members = support.members(cx.quorum).collect();
        let quorum = Reason::Quorum { members, leader: standing.vote.leader };
        let change = Change::Phase { from: Phase::Election, to: Phase::Discovery };
        cx.outbox.report(change, why.unwrap_or(quorum));
        let verdict = if standing.state == ServerState::Leading {
            let (leader, verdict) = Leader::new(&mut cx, standing.round, support);
            *role = Role::Leading(leader);
            verdict
        } else {
            cx.concessions.promise.clear();
            let (learner, verdict) = Learner::new(&mut cx, standing);
            *role = Role::Learning(learner);
            early::dismiss(&mut self.instruments.lend());
            verdict
        };
        self.obey(verdict);
    }

    /// Lends the instruments to the leader, if we are one, and does what it returns.
    fn with_leader(&mut self, act: impl FnOnce(&mut Leader, &mut Context<'_>) -> Verdict) {
        if let (Role::Leading(leader), mut cx) = self.lend() {
            let verdict = act(leader, &mut cx);
            self.obey(verdict);
        }
    }

    /// Lends the instruments to the learner, if we are one, and does what it returns.
    fn with_learner(&mut self, act: impl FnOnce(&mut Learner, &mut Context<'_>) -> Verdict) {
        if let (Role::Learning(learner), mut cx) = self.lend() {
            let verdict = act(learner, &mut cx);
            self.obey(verdict);
        }
    }

    /// The role, and apart from it everything that its machine may touch.
    #[inline]
    const fn lend(&mut self) -> (&mut Role, Context<'_>) {
        (&mut self.role, self.instruments.lend())
    }

    /// The role is over.
    fn end_role(&mut self) {
        let (role, mut cx) = self.lend();
        role.end(&mut cx);
    }

    #[inline]
    fn obey(&mut self, verdict: Verdict) {
        if self.instruments.reseated || verdict != Verdict::Stay {
            self.turn(verdict);
        }
    }

    /// Something becomes of the role: seldom, and kept out of the way of what is not.
    #[cold]
    fn turn(&mut self, verdict: Verdict) {
        if core::mem::take(&mut self.instruments.reseated) {
            let Instruments { elector, config, now, .. } = &mut self.instruments;
            elector.reseat(config, *now);
        }
        match verdict {
            Verdict::Stay => {}
            Verdict::Serve(epoch) => {
                self.serving = Some(epoch);
                self.rest.on_served();
                self.instruments.concessions.history.clear();
                self.instruments.elector.establish(epoch);
                self.appointed = false;
                for adrift in core::mem::take(&mut self.instruments.adrift) {
                    match adrift {
                        Adrift::Propose(request) => self.on_propose(request),
                        Adrift::Read(read) => self.on_read(read),
                    }
                }
            }
            Verdict::Appointed { vote, round } => self.on_appointed(vote, round),
            Verdict::Leave { reason, rest } => self.leave(reason, rest),
        }
    }

    /// The seat was given to another server, or to us, or we follow the same leader in another role: the next
    /// role begins without an election. Whoever asks for something meanwhile waits.
    fn on_appointed(&mut self, vote: Vote, round: Round) {
        let old = self.instruments.elector.standing();
        let (from, to) = (old.vote.leader, vote.leader);
        let reason = if from == to {
            Reason::Reconfigured { version: self.instruments.config.membership.version() }
        } else {
            Reason::HandedOver { from, to }
        };
        self.end_role();
        (self.serving, self.appointed) = (None, true);
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
                // Whoever was named is elected like any other.
                by.clock.retire();
                by.cue = Cue::Appointed(to);
                self.look();
            }
        }
    }

    /// Whether what is asked for now has to wait for a reign that is about to begin.
    fn is_adrift(&self) -> bool {
        self.appointed
            && self.serving.is_none()
            && self.instruments.adrift.len() < self.instruments.config.history.requests
    }

    /// No reign is about to begin: what waits for one is refused.
    fn refuse_adrift(&mut self) {
        self.appointed = false;
        let reason = Refusal::ReignOver;
        for adrift in core::mem::take(&mut self.instruments.adrift) {
            self.instruments.outbox.push(match adrift {
                Adrift::Propose(request) => Output::Refused { id: request.id, reason },
                Adrift::Read(read) => Output::ReadRefused { read, reason },
            });
        }
    }

    /// Gives up the role; looks for a leader again, an observer a little later than the voters.
    fn leave(&mut self, reason: Reason, rest: Duration) {
        let from = self.instruments.elector.standing().state;
        let phase = self.status().phase;
        let served = self.serving.is_some();
        self.end_role();
        self.refuse_adrift();
        self.instruments.cue(cue_of(&reason));
        self.role = Role::Resting;
        self.serving = None;
        self.instruments.elector.retire();
        self.instruments.clear();
        let to = ServerState::Looking;
        let outbox = &mut self.instruments.outbox;
        outbox.report(Change::State { from, to }, reason.clone());
        outbox.report(Change::Phase { from: phase, to: Phase::Election }, reason);
        let rest = rest.max(self.rest.length(&mut self.instruments.lend(), from, served));
        if rest.is_zero() {
            self.look();
        } else {
            self.instruments.cue(Cue::Fresh);
            let (_, cx) = self.lend();
            cx.timers.after(Timer::Rest, cx.now, rest);
        }
    }
}
