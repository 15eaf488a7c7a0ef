//! Leadership by offers: one node for each candidate, in a row.
//!
//! ```text
//!   /election   n_0000000003   n_0000000007   n_0000000012
//!                  leads    ◄───── watches ◄───── watches
//! ```
//!
//! Every candidate makes an *offer*: a node that goes with its session and that the store numbers. The lowest
//! leads. Everybody else watches the one next to it, and not the leader, so that one that goes wakes one: with
//! a hundred candidates a naive watch on the leader wakes ninety-nine, who all list the children. If the one
//! that went did not lead, whoever was woken watches the next (ZooKeeper's recipes page, *Leader Election*;
//! `LeaderElectionSupport` in its contrib).
//!
//! ```text
//!   Start ──► Offer ──► Determine ──┬── first, and ours by the same read ─────► Elected
//!              ▲            ▲       └── behind somebody who is there ──► Ready     │
//!              │            └─────────────── it has gone ──────────────────┘       │
//!              ├── our own has gone ◄───────────────────────────────────────────────┤
//!            Failed ◄── session over, not confirmed in time, refused ◄──────────────┘
//! ```
//!
//! # The rules
//!
//! - **Our node, our session.** What leads is a node whose owner is the present session, as one read of that
//!   node says. A new session first ends the term, then makes a new offer; what the old one left behind is
//!   deleted, not used (CURATOR-696).
//! - **One offer.** If no answer comes to a create, the children are listed behind everything that the store
//!   has done (`sync`), and our own found by name and owner. Another is made only when there is none
//!   (ZooKeeper's recipes page on GUIDs; CURATOR-45). One that turns up late is deleted.
//! - **A missing neighbour is a reason to list**, never to make a new offer: two candidates that do that
//!   overtake each other for ever (CURATOR-644).
//! - **A watch is left only on what is there**, with the read of it. One for a node to appear would stay on a
//!   node that never does (kazoo: *Lock: Don't leak watches*).
//! - **A deleted offer ends the term**, at once: our own node is watched too.
//! - **A term has one offer.** When it is over for whatever reason its node is deleted, when the guards are
//!   gone, and the next offer stands at the end of the row with a greater token.
//! - **A delete is repeated** until the store has confirmed it or the session is over. Where a name can come
//!   back it says which node is meant: one that arrives late must not take the next (etcd's keys are named by
//!   leases, and calls of one client may overtake each other).
//!
//! # What it does not promise
//!
//! That a process which leads does its work: one that cannot has to stop its candidate. That an election is
//! quick: each step waits for the store, [`Config::call_deadline`] at most.

mod answers;
mod boundary;
mod names;
mod row;

use alloc::string::String;
use alloc::vec::Vec;

pub use crate::recipe::offer::boundary::{
    Answer, Call, Config, Event, Input, Notice, Output, Session, State,
};
pub use crate::recipe::offer::names::{Entry, Naming, queue};
use crate::recipe::offer::row::{Live, Own, Pending, Phase, Place, Root, Stray, What};
use crate::recipe::pace::Pace;
use crate::recipe::tenure::Tenure;
use crate::recipe::terms::{Attempt, ConfigError, Failure, Loss, Seat, SessionId, Token};
use crate::time::Instant;

/// One candidate among those that make offers under one root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    config: Config,
    now: Instant,
    pace: Pace,
    last_attempt: u64,
    phase: Phase,
    /// As those who listen know it.
    state: State,
    session: Option<Live>,
    own: Own,
    /// Nodes of ours that are to go.
    strays: Vec<Stray>,
    root: Root,
    place: Place,
    /// DETERMINE_START was said, and DETERMINE_COMPLETE was not.
    determining: bool,
    tenure: Tenure,
    pending: Option<Pending>,
    rest_until: Option<Instant>,
}

impl Candidate {
    /// A candidate that has not begun.
    ///
    /// # Errors
    ///
    /// If `config` cannot work.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            now: Instant::ORIGIN,
            pace: Pace::new(config.backoff_min, config.backoff_max, config.seed),
            last_attempt: 0,
            phase: Phase::Idle,
            state: State::Stop,
            session: None,
            own: Own::None,
            strays: Vec::new(),
            root: Root::Assumed,
            place: Place::STALE,
            determining: false,
            tenure: Tenure::default(),
            pending: None,
            rest_until: None,
            config,
        })
    }

    /// What has to be done because of `input`.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.step_into(input, &mut outputs);
        outputs
    }

    /// The same, appended to `outputs`.
    pub fn step_into(&mut self, input: Input, out: &mut Vec<Output>) {
        self.now = self.now.max(input.at);
        // Whoever says so knows of nothing that happens in this step: of a term that was going on when it was
        // said it means nothing, though that should be over now.
        if matches!(input.event, Event::Released) {
            tell(self.tenure.on_released(), out);
        }
        // Before anything else: we may have been paused.
        self.expire_by_clock(out);
        match input.event {
            Event::Tick => self.on_tick(out),
            Event::Released => {}
            Event::Start => self.on_start(out),
            Event::Stop => self.on_stop(out),
            Event::Session(session) => self.on_session(session, out),
            Event::Done { attempt, result } => self.on_done(attempt, result, out),
            Event::Fired { attempt, gone } => self.on_fired(attempt, gone, out),
        }
        self.proceed(out);
    }

    /// The earliest time at which a [`Event::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        let confirmed = self.tenure.until();
        let due = self.pending.as_ref().and_then(|pending| pending.due);
        [confirmed, due, self.rest_until].into_iter().flatten().min()
    }

    /// Where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The name of our offer, if we have one.
    pub fn offer(&self) -> Option<&str> {
        match &self.own {
            Own::Held { name, .. } => Some(name),
            Own::None | Own::Unknown { .. } => None,
        }
    }

    /// The token of our term, if we lead.
    pub fn leads(&self) -> Option<Token> {
        self.tenure.token()
    }

    /// Until when our leadership is confirmed; none if we do not lead, or contact is lost.
    pub fn confirmed_until(&self) -> Option<Instant> {
        self.tenure.confirmed()
    }

    // --- what people and guards say ---

    fn on_start(&mut self, out: &mut Vec<Output>) {
        match &mut self.phase {
            Phase::Idle | Phase::Failed { .. } => self.begin(out),
            Phase::Stopping { again } => *again = true,
            Phase::Running => {}
        }
    }

    fn begin(&mut self, out: &mut Vec<Output>) {
        (self.phase, self.state) = (Phase::Running, State::Start);
        self.determining = false;
        out.push(Output::Notice(Notice::Start));
    }

    fn on_stop(&mut self, out: &mut Vec<Output>) {
        if let Phase::Stopping { again } = &mut self.phase {
            *again = false;
            return;
        }
        self.phase = Phase::Stopping { again: false };
        out.push(Output::Notice(Notice::StopStart));
        self.rest_until = None;
        self.abandon();
        tell(self.tenure.release(), out);
    }

    // --- the clock ---

    fn on_tick(&mut self, out: &mut Vec<Output>) {
        if self.rest_until.is_some_and(|at| at <= self.now) {
            self.rest_until = None;
        }
        if self.pending.as_ref().and_then(|pending| pending.due).is_some_and(|at| at <= self.now) {
            self.answered(Err(Failure::Unknown), out);
        }
    }

    fn expire_by_clock(&mut self, out: &mut Vec<Output>) {
        if self.tenure.until().is_some_and(|until| until <= self.now) {
            self.lose(Loss::Unconfirmed, out);
        }
    }

    // --- the session ---

    fn on_session(&mut self, event: Session, out: &mut Vec<Output>) {
        match event {
            Session::Connected { session, timeout } => {
                let known = self.session.map(|live| live.id);
                if known.is_some_and(|known| known != session) {
                    self.expire(out);
                }
                self.disconnect(out);
                let contact = self.session.filter(|live| live.id == session);
                let contact = contact.and_then(|live| live.contact);
                let live = Live { id: session, timeout, connected: true, contact };
                self.session = Some(live);
                self.rest_until = None;
                if let Some(until) = self.relied_on(live) {
                    self.tenure.shorten(until);
                }
            }
            Session::Suspended => self.disconnect(out),
            Session::Expired => self.expire(out),
            Session::Renewed { session, sent } => {
                let sent = sent.min(self.now);
                if let Some(live) = self.session.as_mut().filter(|live| live.id == session) {
                    live.contact = live.contact.max(Some(sent));
                }
                self.confirm(out);
            }
        }
    }

    /// Whatever was watched or read on a connection is not known any more.
    fn disconnect(&mut self, out: &mut Vec<Output>) {
        let Some(live) = self.session.as_mut().filter(|live| live.connected) else { return };
        live.connected = false;
        self.abandon();
        self.place = Place::STALE;
        if let Own::Held { watch, .. } = &mut self.own {
            *watch = None;
        }
        tell(self.tenure.suspend(), out);
    }

    /// The session is over, and with it everything that we have in the store.
    fn expire(&mut self, out: &mut Vec<Output>) {
        if self.session.take().is_none() {
            return;
        }
        let had = !matches!(self.own, Own::None);
        if self.tenure.is_on() {
            self.lose(Loss::Expired, out);
        } else if had {
            self.fail(out);
        }
        self.own = Own::None;
        self.strays.clear();
        self.pending = None;
        self.rest_until = None;
    }

    /// Until when nobody else can lead, if the store keeps its sessions as it says.
    fn confirmed(&self) -> Option<Instant> {
        let live = self.session.filter(|live| live.connected)?;
        self.relied_on(live).filter(|until| *until > self.now)
    }

    /// The same of this session, wherever we are.
    fn relied_on(&self, live: Live) -> Option<Instant> {
        let margin = self.config.margin.unwrap_or(live.timeout / 10);
        live.contact.map(|sent| sent + live.timeout.saturating_sub(margin))
    }

    /// Tells the guards for how long we lead, if our node is known to be there.
    fn confirm(&mut self, out: &mut Vec<Output>) {
        let watched = matches!(self.own, Own::Held { watch: Some(_), .. });
        if let Some(until) = self.confirmed().filter(|_| watched) {
            tell(self.tenure.confirm(until), out);
        }
    }

    // --- the end of a term, or of an offer ---

    /// The term is over. Its node goes when the guards are gone, and is not used again: the next term has a
    /// token of its own.
    fn lose(&mut self, loss: Loss, out: &mut Vec<Output>) {
        if let Some(seat) = self.tenure.lose(loss) {
            out.push(Output::Seat(seat));
            self.fail(out);
        }
    }

    /// It starts again, or waits to be started.
    fn fail(&mut self, out: &mut Vec<Output>) {
        self.abandon();
        self.forsake();
        if self.is_running() {
            self.phase = Phase::Failed { again: self.config.restart };
            (self.state, self.determining) = (State::Failed, false);
            out.push(Output::Notice(Notice::Failed));
        }
    }

    /// Our offer is to go.
    fn forsake(&mut self) {
        self.place = Place::STALE;
        let Own::Held { name, created, .. } = &self.own else { return };
        if created.is_none() && self.config.naming.comes_back() {
            // It has to be read first, so that no other of its name goes.
            self.own = Own::Unknown { claims: None };
            return;
        }
        self.strays.push(Stray { name: name.clone(), created: *created });
        self.own = Own::None;
    }

    /// Our offer is not there any more.
    fn own_is_gone(&mut self, out: &mut Vec<Output>) {
        self.own = Own::None;
        self.place = Place::STALE;
        self.abandon();
        self.lose(Loss::Deleted, out);
    }

    /// Does not wait for an answer any more, but to a create: whether it took effect has to be known.
    fn abandon(&mut self) {
        if !matches!(self.pending, Some(Pending { what: What::Create, .. })) {
            self.pending = None;
        }
        if let Own::Unknown { claims } = &mut self.own {
            // The one that was being looked at may be it.
            *claims = None;
        }
    }

    // --- what is next ---

    /// Does what is to be done next, if that is up to us.
    fn proceed(&mut self, out: &mut Vec<Output>) {
        if self.pending.is_some() {
            return;
        }
        if matches!(self.phase, Phase::Stopping { .. }) && self.is_clear() {
            return self.finish(out);
        }
        let Some(live) = self.session.filter(|live| live.connected) else { return };
        if self.rest_until.is_some() {
            return;
        }
        if matches!(self.phase, Phase::Failed { again: true }) && self.is_clear() {
            self.begin(out);
        }
        if self.tenure.is_on() {
            return self.verify(out);
        }
        // Guarded work of a term that is over still runs: its node is given back after that.
        if self.tenure.is_winding_up() {
            return;
        }
        if !self.is_running() {
            self.forsake();
        }
        if let Own::Unknown { claims } = &mut self.own {
            let Some(claims) = claims else {
                return self.call(What::Search, Call::List { fresh: true }, out);
            };
            if let Some(name) = claims.pop() {
                let call = Call::Read { name: name.clone(), watch: false };
                return self.call(What::Claim(name), call, out);
            }
            self.own = Own::None;
            return self.proceed(out);
        }
        if let Some(stray) = self.strays.last().cloned() {
            let Stray { name, created } = stray.clone();
            return self.call(What::Delete(stray), Call::Delete { name, created }, out);
        }
        if self.is_running() {
            self.advance(live.id, out);
        }
    }

    /// One step on the way to the seat.
    fn advance(&mut self, session: SessionId, out: &mut Vec<Output>) {
        let Own::Held { watch, created, .. } = &self.own else {
            return self.offer_anew(session, out);
        };
        match &self.place {
            Place::Stale { fresh } => {
                let fresh = *fresh;
                if !self.determining {
                    (self.state, self.determining) = (State::Determine, true);
                    out.push(Output::Notice(Notice::DetermineStart));
                }
                self.call(What::List { fresh }, Call::List { fresh }, out);
            }
            Place::First | Place::Behind { .. } if watch.is_none() => self.verify(out),
            Place::First => self.take(*created, out),
            Place::Behind { neighbour, watch: None, .. } => {
                let name = neighbour.clone();
                self.call(What::Watch, Call::Read { name, watch: true }, out);
            }
            Place::Behind { watch: Some(_), .. } => {}
        }
    }

    /// Sees whose our node is, and watches it, if it is not watched.
    fn verify(&mut self, out: &mut Vec<Output>) {
        if let Own::Held { name, watch: None, .. } = &self.own {
            let name = name.clone();
            self.call(What::Verify, Call::Read { name, watch: true }, out);
        }
    }

    fn offer_anew(&mut self, session: SessionId, out: &mut Vec<Output>) {
        if self.state != State::Offer {
            (self.state, self.determining) = (State::Offer, false);
            out.push(Output::Notice(Notice::OfferStart));
        }
        if self.root == Root::Missing {
            return self.call(What::Root, Call::EnsureRoot, out);
        }
        let name = self.prefix(session);
        let data = self.config.identity.clone();
        self.call(What::Create, Call::Create { session, name, data }, out);
    }

    /// Nobody is before us, and the node is ours: we lead, if that is confirmed for a while.
    fn take(&mut self, created: Option<Token>, out: &mut Vec<Output>) {
        let (Some(token), Some(until)) = (created, self.confirmed()) else { return };
        self.state = State::Elected;
        self.pace.reset();
        out.push(Output::Notice(Notice::ElectedStart));
        out.push(Output::Seat(self.tenure.take(token, until)));
        out.push(Output::Notice(Notice::ElectedComplete));
    }

    fn finish(&mut self, out: &mut Vec<Output>) {
        let again = matches!(self.phase, Phase::Stopping { again: true });
        (self.phase, self.state) = (Phase::Idle, State::Stop);
        out.push(Output::Notice(Notice::StopComplete));
        out.push(Output::Stopped);
        if again {
            self.begin(out);
            self.proceed(out);
        }
    }

    /// Nothing of ours is in the store, and no guard of ours is there.
    fn is_clear(&self) -> bool {
        matches!(self.own, Own::None) && self.strays.is_empty() && !self.tenure.is_guarded()
    }

    /// What the names of our offers begin with.
    fn prefix(&self, session: SessionId) -> String {
        self.config.naming.prefix(self.config.guid, session)
    }

    const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    fn call(&mut self, what: What, call: Call, out: &mut Vec<Output>) {
        self.last_attempt += 1;
        let attempt = Attempt(self.last_attempt);
        let due = self.config.call_deadline.map(|wait| self.now + wait);
        self.pending = Some(Pending { attempt, due, what });
        out.push(Output::Call { attempt, call });
    }
}

fn tell(seat: Option<Seat>, out: &mut Vec<Output>) {
    out.extend(seat.map(Output::Seat));
}
