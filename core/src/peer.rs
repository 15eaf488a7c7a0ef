//! One server: holds its role and routes what happens to the machine that decides.
//!
//! ```text
//!   Input ──►  Peer  ──► Elector     votes                      looking
//!               │   ├──► Leader      discovery, synchronization, broadcast   leading
//!               │   ├──► Learner     the same from the other side            following, observing
//!               │   └──► Links       who is connected
//!   Output ◄────┘
//! ```
//!
//! The machines do not know one another. An election returns a decision, a role returns a
//! [`Verdict`]; what follows from either is built here, and nothing else is decided here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::config::{Config, ConfigError};
use crate::context::{Adrift, Concessions, Context, Verdict};
use crate::durable::{Durable, Epochs};
use crate::election::{Decision, Elector, ElectorConfig, ElectorEvent, ElectorOutput, Recipient};
use crate::history::History;
use crate::id::{LinkId, ReadId, ServerId};
use crate::input::{Cause, Event, Input, LinkUp, Plane};
use crate::leader::Leader;
use crate::leader::hand_over::Purpose;
use crate::learner::Learner;
use crate::lease::Lease;
use crate::links::{Links, Place};
use crate::membership::{Membership, Role as MemberRole};
use crate::message::{Message, Notification, Packet, Request};
use crate::outbox::Outbox;
use crate::output::{Hangup, Kept, Output, Refusal, Write};
use crate::report::{Change, Phase, Reason, Status};
use crate::rng::Rng;
use crate::time::Instant;
use crate::timers::{Timer, Timers};
use crate::vote::{Round, ServerState, Standing, Vote};
use crate::zxid::{Epoch, Zxid};

/// One server's protocol, complete: hand it inputs, carry out its outputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    config: Config,
    elector: Elector,
    role: Role,
    epochs: Epochs,
    history: History,
    links: Links,
    timers: Timers,
    outbox: Outbox,
    rng: Rng,
    concessions: Concessions,
    now: Instant,
    /// The epoch in which this server serves.
    serving: Option<Epoch>,
    /// How often in a row a leader has turned us away before we served.
    turned_away: u32,
    /// What we have promised to a leader.
    lease: Lease,
    /// The seat was given to another server, or to us, and the new reign has not begun.
    appointed: bool,
    /// What was asked for meanwhile.
    adrift: VecDeque<Adrift>,
    /// Others vote now, and the election does not know yet.
    reseated: bool,
    /// Outputs of the elector on their way; empty between steps, kept for its memory.
    told: Vec<ElectorOutput>,
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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// Not started yet.
    Idle,
    /// About to look, as soon as its writes are on disk: a vote tells what they say.
    Fencing,
    /// About to look, after a rest.
    Resting,
    Looking,
    Leading(Leader),
    Learning(Learner),
    Stopped,
}

impl Peer {
    /// A server that finds `durable` on its disk. Its first election begins with the first
    /// [`Event::Tick`], which [`Peer::deadline`] asks for at once.
    ///
    /// # Errors
    ///
    /// If `config` cannot work.
    pub fn new(config: Config, durable: Durable) -> Result<Self, ConfigError> {
        config.check()?;
        let mut durable = durable;
        let mut rng = Rng::new(config.seed);
        let Durable { accepted_epoch, current_epoch, .. } = durable;
        let mut timers = Timers::default();
        timers.set(Timer::Start, Instant::ORIGIN);
        Ok(Self {
            elector: Elector::new(elector_config(&config)),
            role: Role::Idle,
            history: History::new(&mut durable, config.history.clone(), &mut rng),
            epochs: Epochs { accepted_epoch, current_epoch },
            links: Links::new(&config),
            timers,
            outbox: Outbox::default(),
            rng,
            concessions: Concessions::default(),
            now: Instant::ORIGIN,
            serving: None,
            turned_away: 0,
            lease: Lease::default(),
            appointed: false,
            adrift: VecDeque::new(),
            reseated: false,
            told: Vec::new(),
            config,
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
        self.now = self.now.max(input.at);
        self.outbox.swap(outputs);
        match input.event {
            Event::Received { link, message } => self.on_received(link, message),
            Event::Tick => self.on_tick(),
            Event::LinkUp(up) => self.on_link_up(&up),
            Event::LinkDown { link, cause } => self.on_link_down(link, cause),
            Event::DialFailed { plane, peer } => self.on_dial_failed(plane, peer),
            Event::Persisted(ticket) => {
                self.outbox.on_persisted(ticket);
                self.history.on_persisted(&self.outbox);
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
            Event::SnapshotTaken(_) => self.history.on_snapshot_taken(),
            Event::Oracle(yes) => self.elect(ElectorEvent::Oracle(yes)),
            Event::StepDown => {
                if self.serving.is_some() {
                    let purpose = Purpose::StepDown;
                    self.with_leader(|leader, cx| leader.on_hand_over(cx, None, purpose));
                } else if matches!(self.role, Role::Leading(_)) {
                    self.leave(Reason::Asked, Duration::ZERO);
                }
            }
            Event::HandOver(to) => {
                if matches!(self.role, Role::Leading(_)) {
                    self.with_leader(|leader, cx| leader.on_hand_over(cx, to, Purpose::Asked));
                } else {
                    self.outbox.push(Output::HandedOver(Err(Kept::NotLeading)));
                }
            }
            Event::Released => self.with_leader(|leader, cx| leader.on_released(cx)),
            Event::Shutdown => {
                self.end_role();
                self.refuse_adrift();
                self.links.hangup_all(Hangup::Shutdown, &mut self.outbox);
                self.role = Role::Stopped;
                self.serving = None;
            }
        }
        if self.outbox.is_halted() {
            self.role = Role::Stopped;
            self.serving = None;
        }
        self.outbox.swap(outputs);
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// The earliest time at which a [`Event::Tick`] is due, and what for. A stopped server has none.
    pub fn deadline(&self) -> Option<(Instant, Timer)> {
        if matches!(self.role, Role::Stopped) {
            return None;
        }
        let redial = self.links.deadline().map(|at| (at, Timer::Redial));
        let election = self.elector.deadline();
        [self.timers.next(), redial, election].into_iter().flatten().min()
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        let standing = self.elector.standing();
        let (phase, learners, leader) = match &self.role {
            Role::Leading(leader) => (leader.phase(), leader.seats(), Some(self.config.id)),
            Role::Learning(learner) => (learner.phase(), Vec::new(), Some(learner.leader())),
            Role::Idle | Role::Fencing | Role::Resting | Role::Looking | Role::Stopped => {
                (Phase::Election, Vec::new(), None)
            }
        };
        Status {
            id: self.config.id,
            state: if leader.is_some() { standing.state } else { ServerState::Looking },
            phase,
            round: standing.round,
            vote: standing.vote,
            leader,
            accepted_epoch: self.epochs.accepted_epoch,
            current_epoch: self.epochs.current_epoch,
            last: self.history.last(),
            processed: self.serving.map_or(self.history.last(), |epoch| {
                Zxid::start_of(epoch).max(self.history.committed())
            }),
            serving: self.serving.is_some(),
            voter: self.config.is_voter(),
            voters: self.elector.quorum().voters().len(),
            learners,
            linked: self.links.linked().collect(),
        }
    }

    /// The reign of this server, if it leads an established ensemble.
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
        self.elector.standing()
    }

    /// What this server was told, with the configuration as it is now.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What always holds; called after every step in debug builds.
    ///
    /// # Panics
    ///
    /// If an invariant of ours is broken.
    pub fn check(&self) {
        let (epochs, last) = (&self.epochs, self.history.last());
        assert!(epochs.current_epoch <= epochs.accepted_epoch, "no epoch is current unpromised");
        assert!(last.epoch() <= epochs.accepted_epoch, "nothing is logged of an epoch unpromised");
        if let Some(epoch) = self.serving {
            assert_eq!(epoch, epochs.current_epoch, "a server serves in its current epoch");
        }
        self.history.check();
        let looking = matches!(self.role, Role::Looking);
        assert!(
            looking == self.elector.is_looking() || matches!(self.role, Role::Stopped),
            "the role and the election agree"
        );
        assert!(self.told.is_empty(), "nothing of the election is left undone");
        if let Role::Leading(_) = self.role {
            assert_eq!(self.elector.standing().vote.leader, self.config.id);
        }
    }

    // --- what happens ---

    #[inline]
    fn on_received(&mut self, link: LinkId, message: Message) {
        // Of a link that we have hung up meanwhile.
        let Some(place) = self.links.place(link) else { return };
        // The most frequent of all inputs: a message is large, and handed on as it lies.
        match message {
            Message::Notification(notification) => match place {
                Place::Election(from) => self.on_notification(from, &notification),
                Place::Leader(_) | Place::Learner => self.on_misplaced(link, "notification"),
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
        self.outbox.hangup(link, Hangup::OutOfTurn(name));
    }

    #[inline]
    fn on_notification(&mut self, from: ServerId, notification: &Notification) {
        let Notification { standing, version, config } = notification;
        let (standing, version) = (*standing, *version);
        if self.config.reconfig_enabled && self.adopt(from, config) {
            return;
        }
        self.elect(ElectorEvent::Heard { from, standing, versioned: version > 0 });
        if matches!(self.role, Role::Looking) {
            return;
        }
        if self.elector.quorum().is_voter(from) {
            self.with_leader(|leader, cx| leader.on_looking(cx, from, standing));
        }
        self.with_learner(|learner, _| learner.on_standing(from, standing));
    }

    /// Something from a link that was accepted on the quorum port.
    fn on_learner_packet(&mut self, link: LinkId, packet: Packet) {
        if let (Role::Leading(leader), mut cx) = self.lend() {
            // Nobody waits for one who leads.
            let verdict = leader.on_packet(&mut cx, link, packet);
            return self.obey(verdict);
        }
        let mut waiting = self.links.waiting_mut().iter_mut();
        match waiting.find(|waiting| waiting.link == link) {
            Some(waiting) if waiting.first.is_none() => waiting.first = Some(packet),
            Some(_) => {
                let reason = Hangup::OutOfTurn(packet.name());
                self.links.hangup(link, reason, &mut self.outbox);
            }
            None => {}
        }
    }

    fn on_link_up(&mut self, up: &LinkUp) {
        let link = up.link;
        match (up.plane, up.dialled, up.peer) {
            (Plane::Election, _, _) => {
                let (now, links) = (self.now, &mut self.links);
                let kept = links.on_election_up(now, up, &mut self.rng, &mut self.outbox);
                let Some(peer) = kept else { return };
                self.elect(ElectorEvent::Reachable(peer));
                if self.elector.has_standing() && self.is_member(peer) {
                    // What was under way on an earlier link may have been lost with it.
                    self.notify(link, self.elector.standing());
                }
            }
            (Plane::Quorum, true, Some(peer)) => {
                self.links.on_leader_up(link, peer);
                if let Role::Learning(_) = self.role {
                    self.with_learner(|learner, cx| learner.on_link_up(cx, link, peer));
                } else {
                    self.links.hangup(link, Hangup::Unwanted, &mut self.outbox);
                }
            }
            (Plane::Quorum, _, _) => self.on_learner_up(link),
        }
    }

    /// Somebody comes to learn. A leader takes it in; while we look with ourselves as proposal it
    /// may only be early, and waits a little; so it may be while the membership changes, and the next
    /// leader is about to be named.
    fn on_learner_up(&mut self, link: LinkId) {
        self.links.on_learner_up(link);
        if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_link_up(cx, link));
        } else if (matches!(self.role, Role::Looking) && self.proposes_itself())
            || (self.serving.is_some() && self.config.next_membership.is_some())
        {
            self.links.wait(self.now, link, &mut self.outbox);
            self.arm_introduction();
        } else {
            self.links.hangup(link, Hangup::NotLeading, &mut self.outbox);
        }
    }

    fn on_link_down(&mut self, link: LinkId, cause: Cause) {
        match self.links.on_down(self.now, link, &mut self.rng, &mut self.outbox) {
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
                let (now, rng) = (self.now, &mut self.rng);
                if self.links.on_election_dial_failed(now, peer, rng, &mut self.outbox) {
                    self.elect(ElectorEvent::Unreachable(peer));
                    self.with_learner(|learner, _| learner.on_unreachable(peer));
                }
            }
            Plane::Quorum => {
                self.links.on_leader_dial_over(peer);
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

    fn on_propose(&mut self, request: Request) {
        let (id, length) = (request.id, request.body.len());
        if length > Request::BODY_BYTES_MAX {
            self.outbox.push(Output::Refused { id, reason: Refusal::TooLong(length) });
        } else if self.is_adrift() {
            self.adrift.push_back(Adrift::Propose(request));
        } else if self.serving.is_none() {
            self.outbox.push(Output::Refused { id, reason: Refusal::NotServing });
        } else if let Role::Leading(_) = self.role {
            self.with_leader(|leader, cx| leader.on_propose(cx, request));
        } else {
            self.with_learner(|learner, cx| learner.on_propose(cx, request));
        }
    }

    fn on_read(&mut self, read: ReadId) {
        if self.is_adrift() {
            self.adrift.push_back(Adrift::Read(read));
        } else if self.serving.is_none() {
            self.outbox.push(Output::ReadRefused { read, reason: Refusal::NotServing });
        } else {
            self.with_leader(|leader, cx| leader.on_read(cx, read));
            self.with_learner(|learner, cx| learner.on_read(cx, read));
        }
    }

    fn on_tick(&mut self) {
        self.links.on_tick(self.now, &mut self.outbox);
        if self.elector.deadline().is_some_and(|(at, _)| at <= self.now) {
            self.elect(ElectorEvent::Tick);
        }
        while let Some((_, timer)) = self.timers.next().filter(|(at, _)| *at <= self.now) {
            self.timers.stop(timer);
            match timer {
                Timer::Start => {
                    self.lease = Lease::begin(self.now, self.config.lease);
                    self.look();
                }
                Timer::Rest => self.look(),
                Timer::Introduction => self.on_introduction_late(),
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
                Timer::Notification | Timer::Finalize | Timer::Redial => {}
            }
        }
    }

    // --- what follows ---

    /// Begins an election, once everything that the vote tells is on disk: a promise made with what
    /// only memory holds could be broken by a crash.
    fn look(&mut self) {
        self.timers.stop(Timer::Rest);
        let last = self.history.last().epoch();
        if self.epochs.current_epoch < last {
            // A synchronisation was interrupted. A transaction of an epoch is logged only behind all
            // that its leader brought into it, so we have that.
            self.outbox.persist(Write::CurrentEpoch(last));
            self.epochs.current_epoch = last;
            self.outbox.report(Change::CurrentEpoch(last), Reason::Started);
        }
        self.forget_unlogged();
        if !self.outbox.is_settled() {
            self.role = Role::Fencing;
            return;
        }
        self.role = Role::Looking;
        let own = self.own_vote();
        self.elect(ElectorEvent::Look(own));
    }

    /// A configuration that we have seen binds us from when we may have said so: when its transaction is
    /// logged, or the epoch that it came with is ours. One that is neither, or was cut, came to nothing.
    fn forget_unlogged(&mut self) {
        let next = self.config.next_membership.as_ref().filter(|_| self.config.reconfig_enabled);
        let known = self.history.last().max(Zxid::start_of(self.epochs.current_epoch));
        if next.is_some_and(|next| next.version() > known.0) {
            let (_, mut cx) = self.lend();
            cx.see(None);
            self.reseated = false;
            self.elector.reseat(observes(&self.config));
        }
    }

    /// The vote for ourselves; nobody in particular if we may not be elected.
    fn own_vote(&self) -> Vote {
        let (peer_epoch, zxid) = (self.epochs.current_epoch, self.history.claim());
        match self.config.membership.member(self.config.id).map(|member| member.role) {
            Some(MemberRole::Participant) => Vote { peer_epoch, zxid, leader: self.config.id },
            Some(MemberRole::Observer) if !self.elector.quorum().is_voter(self.config.id) => {
                Vote::ABSTENTION
            }
            Some(MemberRole::Observer) | None => {
                Vote { peer_epoch, zxid, leader: ServerId::NOBODY }
            }
        }
    }

    /// Hands something to the election, and does what it wants.
    #[inline]
    fn elect(&mut self, event: ElectorEvent) {
        self.elector.step_into(self.now, event, &mut self.told);
        if !self.told.is_empty() {
            self.carry_out();
        }
    }

    /// Does what the election wants.
    fn carry_out(&mut self) {
        let mut told = core::mem::take(&mut self.told);
        let mut decision = None;
        let mut why = None;
        for output in told.drain(..) {
            match output {
                ElectorOutput::Notify { to: Recipient::Voters, standing } => {
                    let message = self.notification(standing);
                    for link in self.links.to_voters() {
                        self.outbox.send(link, message.clone());
                    }
                }
                ElectorOutput::Notify { to: Recipient::One(peer), standing } => {
                    if let Some(link) = self.links.to_answer(peer, self.now) {
                        self.notify(link, standing);
                    }
                }
                ElectorOutput::Redial => self.links.sweep(self.now, &mut self.outbox),
                ElectorOutput::Changed(change, reason) => {
                    if let Reason::HandedOver { .. } | Reason::Reconfigured { .. } = reason {
                        why = Some(reason.clone());
                    }
                    self.outbox.report(change, reason);
                }
                ElectorOutput::Decided(decided) => decision = Some(decided),
            }
        }
        self.told = told;
        if let Some(decision) = decision {
            self.on_decided(decision, why);
        } else if !self.proposes_itself() {
            self.dismiss_early(Hangup::NotLeading);
        }
    }

    /// Builds the role that the election has found. Observers that look are told: they ask less and
    /// less often, and nobody else tells them.
    fn on_decided(&mut self, decision: Decision, why: Option<Reason>) {
        let standing = decision.standing;
        let message = self.notification(standing);
        for link in self.links.to_observers() {
            self.outbox.send(link, message.clone());
        }
        let support = self.elector.support().clone();
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
            self.dismiss_early(Hangup::NotLeading);
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
        let cx = Context {
            now: self.now,
            config: &mut self.config,
            quorum: self.elector.quorum_mut(),
            reseated: &mut self.reseated,
            epochs: &mut self.epochs,
            history: &mut self.history,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
            links: &mut self.links,
            rng: &mut self.rng,
            concessions: &mut self.concessions,
            lease: &mut self.lease,
            adrift: &mut self.adrift,
        };
        (&mut self.role, cx)
    }

    /// Tells those who wait for something of the role that it is over, and the application that what
    /// it prepared or began to receive comes to nothing.
    fn end_role(&mut self) {
        match self.lend() {
            (Role::Leading(leader), mut cx) => leader.end(&mut cx),
            (Role::Learning(learner), mut cx) => learner.end(&mut cx),
            (Role::Idle | Role::Fencing | Role::Resting | Role::Looking | Role::Stopped, _) => {
                return;
            }
        }
        self.outbox.push(Output::Abandon);
    }

    #[inline]
    fn obey(&mut self, verdict: Verdict) {
        if self.reseated || verdict != Verdict::Stay {
            self.turn(verdict);
        }
    }

    /// Something becomes of the role: seldom, and kept out of the way of what is not.
    #[cold]
    fn turn(&mut self, verdict: Verdict) {
        if core::mem::take(&mut self.reseated) {
            self.elector.reseat(observes(&self.config));
        }
        match verdict {
            Verdict::Stay => {}
            Verdict::Serve(epoch) => {
                self.serving = Some(epoch);
                self.turned_away = 0;
                self.concessions.history.clear();
                self.elector.establish(epoch);
                self.appointed = false;
                for adrift in core::mem::take(&mut self.adrift) {
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
        let old = self.elector.standing();
        let (from, to) = (old.vote.leader, vote.leader);
        let reason = if from == to {
            Reason::Reconfigured { version: self.config.membership.version() }
        } else {
            Reason::HandedOver { from, to }
        };
        self.end_role();
        (self.serving, self.appointed) = (None, true);
        self.elector.quorum_mut().need_oracle(true);
        self.timers.stop_role();
        self.links.hangup_quorum(Hangup::RoleEnded, &mut self.outbox);
        let change = Change::Phase { from: Phase::Broadcast, to: Phase::Election };
        self.outbox.report(change, reason.clone());
        self.elector.appoint(self.now, vote, round, reason, &mut self.told);
        self.carry_out();
    }

    /// Whether what is asked for now has to wait for a reign that is about to begin.
    fn is_adrift(&self) -> bool {
        self.appointed && self.serving.is_none() && self.adrift.len() < self.config.history.requests
    }

    /// No reign is about to begin: what waits for one is refused.
    fn refuse_adrift(&mut self) {
        self.appointed = false;
        let reason = Refusal::ReignOver;
        for adrift in core::mem::take(&mut self.adrift) {
            self.outbox.push(match adrift {
                Adrift::Propose(request) => Output::Refused { id: request.id, reason },
                Adrift::Read(read) => Output::ReadRefused { read, reason },
            });
        }
    }

    /// Gives up the role; looks for a leader again, an observer a little later than the voters.
    fn leave(&mut self, reason: Reason, rest: Duration) {
        let from = self.elector.standing().state;
        let phase = self.status().phase;
        let served = self.serving.is_some();
        self.end_role();
        self.refuse_adrift();
        self.role = Role::Resting;
        self.serving = None;
        self.elector.retire();
        self.elector.quorum_mut().need_oracle(true);
        self.timers.stop_role();
        self.links.hangup_quorum(Hangup::RoleEnded, &mut self.outbox);
        let to = ServerState::Looking;
        self.outbox.report(Change::State { from, to }, reason.clone());
        self.outbox.report(Change::Phase { from: phase, to: Phase::Election }, reason);
        let delay = if from == ServerState::Observing {
            let most = self.config.timing.observer_delay.as_nanos();
            Duration::from_nanos(self.rng.below(u64::try_from(most).unwrap_or(u64::MAX)))
        } else {
            Duration::ZERO
        };
        let rest = rest.max(delay).max(self.respite(served, from));
        if rest.is_zero() {
            self.look();
        } else {
            self.timers.after(Timer::Rest, self.now, rest);
        }
    }

    /// How long a learner waits that was turned away again and again. A leader that will not have it
    /// closes each link at once, and coming back at the speed of the network would cost every voter
    /// an exchange of votes each time. Being turned away a few times is what happens to those who are
    /// early, and costs nothing.
    fn respite(&mut self, served: bool, from: ServerState) -> Duration {
        const EARLY: u32 = 3;
        if served || from == ServerState::Leading {
            return Duration::ZERO;
        }
        self.turned_away = self.turned_away.saturating_add(1);
        let Some(times) = self.turned_away.checked_sub(EARLY) else { return Duration::ZERO };
        let (min, max) = (self.config.timing.redial_min, self.config.timing.redial_max);
        self.rng.around(min.saturating_mul(1 << times.min(16)).min(max))
    }

    /// Takes over a newer configuration that a peer knows, while we look; returns whether the
    /// election begins anew because the members differ.
    fn adopt(&mut self, from: ServerId, text: &[u8]) -> bool {
        if !matches!(self.role, Role::Looking)
            || text.is_empty()
            || text == &self.config.membership.text()[..]
        {
            return false;
        }
        let Ok(newer) = Membership::parse(text) else { return false };
        if newer.version() <= self.config.membership.version() {
            return false;
        }
        let same = newer.same_members(&self.config.membership);
        self.outbox.persist(Write::Membership(newer.text().clone()));
        let change = Change::Configuration(newer.version());
        self.outbox.report(change, Reason::NewerConfiguration { from });
        if self.config.next_membership.as_ref().is_some_and(|n| n.version() <= newer.version()) {
            self.config.next_membership = None;
        }
        self.config.membership = newer;
        if let Some(next) = &self.config.next_membership {
            self.outbox.persist(Write::NextMembership(Some(next.text().clone())));
        }
        if same {
            return false;
        }
        self.elector.reconfigure(elector_config(&self.config));
        self.links.reconfigure(&self.config, &mut self.outbox);
        self.look();
        true
    }

    /// Hangs up those that came early and waited long enough.
    fn on_introduction_late(&mut self) {
        let limit = self.config.timing.early_learner_max;
        let now = self.now;
        let late: Vec<_> = self
            .links
            .waiting_mut()
            .iter()
            .filter(|waiting| now.since(waiting.since) >= limit)
            .map(|waiting| waiting.link)
            .collect();
        for link in late {
            self.links.hangup(link, Hangup::NotLeading, &mut self.outbox);
        }
        self.arm_introduction();
    }

    fn arm_introduction(&mut self) {
        let limit = self.config.timing.early_learner_max;
        match self.links.waiting_mut().first() {
            Some(oldest) => self.timers.set(Timer::Introduction, oldest.since + limit),
            None => self.timers.stop(Timer::Introduction),
        }
    }

    /// Hangs up those that came early: we will not lead.
    fn dismiss_early(&mut self, reason: Hangup) {
        if self.links.waiting_mut().is_empty() {
            return;
        }
        for waiting in self.links.take_waiting() {
            self.links.hangup(waiting.link, reason, &mut self.outbox);
        }
        self.timers.stop(Timer::Introduction);
    }

    fn proposes_itself(&self) -> bool {
        self.elector.standing().vote.leader == self.config.id
    }

    fn is_member(&self, peer: ServerId) -> bool {
        let next = self.config.next_membership.as_ref();
        self.config.membership.member(peer).is_some()
            || next.is_some_and(|next| next.member(peer).is_some())
    }

    fn notification(&self, standing: Standing) -> Message {
        Message::Notification(Notification {
            standing,
            version: Notification::VERSION,
            config: self.config.membership.text().clone(),
        })
    }

    fn notify(&mut self, link: LinkId, standing: Standing) {
        let message = self.notification(standing);
        self.outbox.send(link, message);
    }
}

fn elector_config(config: &Config) -> ElectorConfig {
    ElectorConfig {
        id: config.id,
        observer: observes(config),
        quorum: config.quorum(),
        notification_min: config.timing.notification_min,
        notification_max: config.timing.notification_max,
        finalize_wait: config.timing.finalize_wait,
        finish_when_settled: config.finish_when_settled,
        may_change: config.reconfig_enabled,
    }
}

/// Whether we follow without a vote. A server that is no member follows as if it had one.
fn observes(config: &Config) -> bool {
    let role = config.membership.member(config.id).map(|member| member.role);
    role == Some(MemberRole::Observer)
}
