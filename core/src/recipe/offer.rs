//! Leadership by offers: one node for each candidate, in a row.
//!
//! ```text
//!   /election   n_0000000003   n_0000000007   n_0000000012
//!                  leads    ◄───── watches ◄───── watches
//! ```
//!
//! Every candidate makes an *offer*: a node that goes with its session and that the store numbers. The lowest
//! leads. Each other candidate watches the one next to it, and not the leader, so that one that goes wakes one: with
//! a hundred candidates a naive watch on the leader wakes ninety-nine, which all list the children. If the one
//! that went did not lead, the one that was woken watches the next (ZooKeeper's recipes page, *Leader Election*;
//! `LeaderElectionSupport` in its contrib).
//!
//! ```text
//!   Start ──► Offer ──► Determine ──┬── first, and ours by the same read ─────► Elected
//!              ▲            ▲       └── behind a neighbour ──────────────► Ready     │
//!              │            └─────────────── it has gone ──────────────────┘       │
//!              ├── our own has gone ◄───────────────────────────────────────────────┤
//!            Failed ◄── session over, not confirmed in time, refused ◄──────────────┘
//! ```
//!
//! # The rules
//!
//! - **Our node, our session.** What leads is a node whose owner is the present session, as one read of that
//!   node says. A new session first ends leadership, then makes a new offer; what the old one left behind is
//!   deleted, not used (CURATOR-696).
//! - **One offer.** If no answer comes to a create, the children are listed behind everything that the store
//!   has done (`sync`), and our own found by name and owner. Another is made only when there is none
//!   (ZooKeeper's recipes page on GUIDs; CURATOR-45). One that turns up late is deleted.
//! - **A missing neighbour is a reason to list**, never to make a new offer: two candidates that do that
//!   overtake each other for ever (CURATOR-644).
//! - **A watch is left only on what is there**, with the read of it. One for a node to appear would stay on a
//!   node that never does (kazoo: *Lock: Don't leak watches*).
//! - **A deleted offer ends leadership**, at once: our own node is watched too.
//! - **One offer for each leadership.** When leadership is over for whatever reason its node is deleted, once the
//!   guards are gone, and the next offer stands at the end of the row with a greater token.
//! - **A delete is repeated** until the store has confirmed it or the session is over. Where a name can come
//!   back it says which node is meant: one that arrives late must not take the next (etcd's keys are named by
//!   leases, and calls of one client may overtake each other).
//!
//! # What it does not promise
//!
//! That a process which leads does its work: one that cannot do it has to stop its candidate. That an election is
//! quick: each step waits for the store, [`Config::call_deadline`] at most.

mod answers;
mod boundary;
mod names;
mod row;
mod session;

use alloc::string::String;
use alloc::vec::Vec;

use crate::recipe::backoff::Backoff;
use crate::recipe::boundary::{
    Attempt, ConfigError, Failure, LeadershipChange, Loss, SessionId, Token,
};
use crate::recipe::leadership::Leadership;
pub use crate::recipe::offer::boundary::{
    Answer, Call, Config, Event, Input, Notice, Output, Session, State,
};
pub use crate::recipe::offer::names::{Entry, Naming, queue};
use crate::recipe::offer::row::{Live, Own, Pending, Phase, Place, Root, Stray, What};
use crate::time::Instant;

/// One candidate among those that make offers under one root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    config: Config,
    now: Instant,
    backoff: Backoff,
    last_attempt: u64,
    phase: Phase,
    /// As it was published last.
    state: State,
    session: Option<Live>,
    own: Own,
    /// Nodes of ours that are to be deleted.
    strays: Vec<Stray>,
    root: Root,
    place: Place,
    /// DETERMINE_START was said, and DETERMINE_COMPLETE was not.
    determining: bool,
    leadership: Leadership,
    pending: Option<Pending>,
    retry_at: Option<Instant>,
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
            backoff: Backoff::new(config.backoff_min, config.backoff_max, config.seed),
            last_attempt: 0,
            phase: Phase::Idle,
            state: State::Stop,
            session: None,
            own: Own::None,
            strays: Vec::new(),
            root: Root::Assumed,
            place: Place::STALE,
            determining: false,
            leadership: Leadership::default(),
            pending: None,
            retry_at: None,
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
        // The guards cannot know what happens in this step: for a leadership that went on when they reported, the
        // report means nothing, even if that leadership ends now.
        if matches!(input.event, Event::Released) {
            tell(self.leadership.on_released(), out);
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
        let confirmed = self.leadership.until();
        let due = self.pending.as_ref().and_then(|pending| pending.due);
        [confirmed, due, self.retry_at].into_iter().flatten().min()
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

    /// Our token, if we lead.
    pub fn leads(&self) -> Option<Token> {
        self.leadership.token()
    }

    /// Until when our leadership is confirmed; none if we do not lead, or contact is lost.
    pub fn confirmed_until(&self) -> Option<Instant> {
        self.leadership.confirmed()
    }

    // --- start and stop ---

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
        self.retry_at = None;
        self.abandon();
        tell(self.leadership.release(), out);
    }

    // --- the clock ---

    fn on_tick(&mut self, out: &mut Vec<Output>) {
        if self.retry_at.is_some_and(|at| at <= self.now) {
            self.retry_at = None;
        }
        if self.pending.as_ref().and_then(|pending| pending.due).is_some_and(|at| at <= self.now) {
            self.answered(Err(Failure::Unknown), out);
        }
    }

    fn expire_by_clock(&mut self, out: &mut Vec<Output>) {
        if self.leadership.until().is_some_and(|until| until <= self.now) {
            self.lose(Loss::Unconfirmed, out);
        }
    }

    // --- the end of leadership, or of an offer ---

    /// Leadership is over. Its node goes when the guards are gone, and is not used again: the next leadership has a
    /// token of its own.
    fn lose(&mut self, loss: Loss, out: &mut Vec<Output>) {
        if let Some(change) = self.leadership.lose(loss) {
            out.push(Output::Leadership(change));
            self.fail(out);
        }
    }

    /// The candidate starts again, or waits to be started.
    fn fail(&mut self, out: &mut Vec<Output>) {
        self.abandon();
        self.forsake();
        if self.is_running() {
            self.phase = Phase::Failed { again: self.config.restart };
            (self.state, self.determining) = (State::Failed, false);
            out.push(Output::Notice(Notice::Failed));
        }
    }

    /// Our offer is to be deleted.
    fn forsake(&mut self) {
        self.place = Place::STALE;
        let Own::Held { name, created, .. } = &self.own else { return };
        if created.is_none() && self.config.naming.comes_back() {
            // It has to be read first, so that no other node of its name is deleted.
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

    /// Waits for no answer any more but that to a create: whether it took effect has to be known.
    fn abandon(&mut self) {
        if !matches!(self.pending, Some(Pending { what: What::Create, .. })) {
            self.pending = None;
        }
        if let Own::Unknown { claims } = &mut self.own {
            // The one that was being read may be ours.
            *claims = None;
        }
    }

    // --- what is next ---

    /// Takes the next step, unless an answer, a session or a delay is waited for.
    fn proceed(&mut self, out: &mut Vec<Output>) {
        if self.pending.is_some() {
            return;
        }
        if matches!(self.phase, Phase::Stopping { .. }) && self.is_clear() {
            return self.finish(out);
        }
        let Some(live) = self.session.filter(|live| live.connected) else { return };
        if self.retry_at.is_some() {
            return;
        }
        if matches!(self.phase, Phase::Failed { again: true }) && self.is_clear() {
            self.begin(out);
        }
        if self.leadership.is_held() {
            return self.verify(out);
        }
        // Guarded work of an earlier leadership still runs: its node is given back after that.
        if self.leadership.is_winding_up() {
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

    /// One step on the way to leadership.
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

    /// Reads which session owns our node, and watches it, if it is not watched.
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

    /// No offer is before ours, and the node is ours: we lead, if that is confirmed for a while.
    fn take(&mut self, created: Option<Token>, out: &mut Vec<Output>) {
        let (Some(token), Some(until)) = (created, self.confirmed()) else { return };
        self.state = State::Elected;
        self.backoff.reset();
        out.push(Output::Notice(Notice::ElectedStart));
        out.push(Output::Leadership(self.leadership.take(token, until)));
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

    /// No node of ours is in the store, and no guard of ours exists.
    fn is_clear(&self) -> bool {
        matches!(self.own, Own::None) && self.strays.is_empty() && !self.leadership.is_guarded()
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

fn tell(change: Option<LeadershipChange>, out: &mut Vec<Output>) {
    out.extend(change.map(Output::Leadership));
}
