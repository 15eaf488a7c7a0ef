//! Leadership by a lease: one key that one candidate holds, for as long as it renews it.
//!
//! ```text
//!                    ┌── there is none ──► Put ──► ours ──► lead, and renew ──► Release, Released
//!   Start ──► Read ──┤                      │                   │                     │
//!              ▲     └── somebody's ────────┼──► watch it       │ not renewed in      ▼
//!              │                  │         │                   │ time, or taken   give it back
//!              │                  │    conflict, no answer      ▼
//!              └── it goes, or is over ◄────┘                  Lost
//! ```
//!
//! Everybody tries to create the key; the store lets one. The others watch it. The holder renews it; if it
//! does not, the key expires. Three functions of a store are enough: compare-and-swap, expiry, and being told
//! of a change. Where the store has no expiry of its own (Kubernetes: `coordination.k8s.io` Lease), the other
//! candidates count the silence of the holder: see [`Expiry`].
//!
//! One key wakes everybody when it goes. Where many wait, [offers](crate::recipe::offer) wake one.
//!
//! # The rules
//!
//! - **The holder stops first.** It counts from when it *sent* the last renewal that was acknowledged, stops a
//!   margin before the lease is over, and does not wait for calls that are under way (Gray, Cheriton: *Leases*,
//!   1989; kubernetes/client-go `RenewDeadline`, below `LeaseDuration`).
//! - **A renewal names the version** that it renews. One that comes too late fails, however long it was on its
//!   way, and who holds the key then is read before anything else is concluded.
//! - **Others count with the holder's duration**, from when they saw its record change, by their own monotonic
//!   clock. No two clocks are compared (kubernetes/kubernetes#67651).
//! - **Our key is known by a number** that one term has and no other. After a lost answer it tells whether we
//!   hold the key; what an earlier term or an earlier session of ours has left behind is deleted, not used.
//! - **No lost wake-up**: a watch begins with what was read, and what was read is acted upon.
//! - **It is given back when the guarded work has ended**, not before; and marked as such, so that nobody
//!   waits: after an expiry candidates come spread over [`Config::jitter`], after that at once.
//! - **The token of a term is the revision that took the key**: greater than all before, as long as the store
//!   keeps its count.

mod answers;
mod boundary;
mod record;

use alloc::vec::Vec;

pub use crate::recipe::lease::boundary::{
    Answer, Call, Config, Event, Expiry, Held, Input, Output,
};
pub use crate::recipe::lease::record::Record;
use crate::recipe::pace::Pace;
use crate::recipe::tenure::Tenure;
use crate::recipe::terms::{Attempt, ConfigError, Failure, Leader, Loss, Seat, Token};
use crate::time::Instant;

/// One candidate for one lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    config: Config,
    now: Instant,
    pace: Pace,
    last_attempt: u64,
    phase: Phase,
    tenure: Tenure,
    key: Key,
    /// Which read left a watch on the key.
    watch: Option<Attempt>,
    claim: Claim,
    /// What was sent until then is counted by the store, and later calls perhaps are not; none if all are.
    counted: Option<Instant>,
    /// Who leads, as was told last.
    leader: Option<Leader>,
    pending: Option<Pending>,
    /// How often in a row somebody else was faster.
    races: u32,
    rest_until: Option<Instant>,
    /// When there is something to do, if nothing happens before.
    wake_at: Option<Instant>,
}

/// What Start and Stop have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Running,
    Stopping { again: bool },
}

/// What we know of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// It has to be read.
    Unread,
    /// It has gone: others are after it too, so we look at this time.
    Gone { look_at: Instant },
    /// There is none.
    Free,
    /// It is somebody else's.
    Foreign {
        held: Held,
        /// When it is over, if that is up to us.
        over_at: Option<Instant>,
    },
    /// It has the number of an earlier claim of ours: a write that was on its way for long, or what an earlier
    /// session has left behind.
    Stray { version: u64 },
    /// It has the number of our claim.
    Ours { version: u64, token: Token, released: bool },
}

/// Our attempt to hold the key, from the first write to when the key is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Claim {
    /// The number that no other claim has.
    holder: u128,
    /// A write of ours may have taken effect, or may still: the first was sent then.
    unsure: Option<Instant>,
    /// When what was acknowledged last was sent.
    contact: Option<Instant>,
    /// From when on the store counts, at the earliest.
    counts_from: Option<Instant>,
    /// Its term is over: it is to be given back.
    spent: bool,
}

/// A call that has not been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pending {
    attempt: Attempt,
    sent: Instant,
    due: Option<Instant>,
    what: What,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Read { watch: bool },
    Take,
    Renew,
    Mark,
    Delete,
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
            tenure: Tenure::default(),
            key: Key::Unread,
            watch: None,
            claim: Claim::new(config.unique),
            counted: None,
            leader: None,
            pending: None,
            races: 0,
            rest_until: None,
            wake_at: None,
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
            self.on_released(out);
        }
        // Before anything else: we may have been paused.
        if self.tenure.until().is_some_and(|until| until <= self.now) {
            self.lose(Loss::Unconfirmed, out);
        }
        match input.event {
            Event::Tick => self.on_tick(out),
            Event::Start => self.on_start(),
            Event::Stop => self.on_stop(out),
            Event::Released => {}
            Event::Suspended => tell(self.tenure.suspend(), out),
            Event::Expired => self.on_expired(out),
            Event::Counted { sent } => self.counted = Some(sent),
            Event::Done { attempt, result } => {
                if self.pending.is_some_and(|pending| pending.attempt == attempt) {
                    self.answered(result, out);
                }
            }
            Event::Fired { attempt, gone } => self.on_fired(attempt, gone, out),
        }
        self.wake_at = None;
        self.proceed(out);
        self.announce(out);
    }

    /// The earliest time at which a [`Event::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        let due = self.pending.and_then(|pending| pending.due);
        [self.tenure.until(), due, self.rest_until, self.wake_at].into_iter().flatten().min()
    }

    /// The token of our term, if we lead.
    pub fn leads(&self) -> Option<Token> {
        self.tenure.token()
    }

    /// Until when our leadership is confirmed; none if we do not lead, or contact is lost.
    pub fn confirmed_until(&self) -> Option<Instant> {
        self.tenure.confirmed()
    }

    // --- what people and guards say, and the clock ---

    const fn on_start(&mut self) {
        match &mut self.phase {
            Phase::Idle => self.phase = Phase::Running,
            Phase::Stopping { again } => *again = true,
            Phase::Running => {}
        }
    }

    fn on_stop(&mut self, out: &mut Vec<Output>) {
        if let Phase::Stopping { again } = &mut self.phase {
            *again = false;
            return;
        }
        self.phase = Phase::Stopping { again: false };
        self.rest_until = None;
        if !self.tenure.is_on() {
            self.abandon();
        }
        tell(self.tenure.release(), out);
    }

    fn on_released(&mut self, out: &mut Vec<Output>) {
        let seat = self.tenure.on_released();
        if seat.is_some() {
            self.claim.spent = true;
            // A renewal that is under way may change the version.
            self.abandon();
            tell(seat, out);
        }
    }

    fn on_tick(&mut self, out: &mut Vec<Output>) {
        if self.rest_until.is_some_and(|at| at <= self.now) {
            self.rest_until = None;
        }
        if self.pending.and_then(|pending| pending.due).is_some_and(|at| at <= self.now) {
            self.answered(Err(Failure::Unknown), out);
        }
    }

    /// Does not wait for an answer any more, but to a write that may make the key ours.
    fn abandon(&mut self) {
        if !matches!(self.pending, Some(Pending { what: What::Take, .. })) {
            self.pending = None;
        }
    }

    // --- the end of a term, and of a claim ---

    fn lose(&mut self, loss: Loss, out: &mut Vec<Output>) {
        if let Some(seat) = self.tenure.lose(loss) {
            self.claim.spent = true;
            self.abandon();
            self.rest_until = None;
            out.push(Output::Seat(seat));
        }
    }

    /// The key is not ours, and what we did to make it ours does not count any more.
    fn give_up_claim(&mut self) {
        self.claim = Claim::new(self.claim.holder.wrapping_add(1));
    }

    fn on_expired(&mut self, out: &mut Vec<Output>) {
        if self.config.expiry == Expiry::Observed {
            return;
        }
        self.lose(Loss::Expired, out);
        // Our key may still be there for a while; it is as good as somebody else's.
        self.give_up_claim();
        (self.key, self.watch, self.pending) = (Key::Unread, None, None);
    }

    // --- for how long ---

    /// Until when the key is ours, by our own clock.
    fn held_until(&self) -> Option<Instant> {
        let until = self.claim.counts_from.map(|sent| sent + self.config.relied_on());
        until.filter(|until| *until > self.now)
    }

    /// What was sent then is answered.
    fn hear(&mut self, sent: Instant) {
        self.claim.contact = Some(sent);
        let counts_from = self.counted.map_or(sent, |counted| counted.min(sent));
        self.claim.counts_from = Some(counts_from);
    }

    fn confirm(&mut self, out: &mut Vec<Output>) {
        if let Some(until) = self.held_until() {
            tell(self.tenure.confirm(until), out);
            self.pace.reset();
        }
    }

    // --- what is next ---

    /// Does what is to be done next, if that is up to us.
    fn proceed(&mut self, out: &mut Vec<Output>) {
        if self.pending.is_some() || self.rest_until.is_some() {
            return;
        }
        if self.tenure.is_on() {
            return self.keep(out);
        }
        // Guarded work of a term that is over still runs: the key is given back after that.
        if self.tenure.is_winding_up() {
            return;
        }
        if matches!(self.phase, Phase::Idle) {
            return;
        }
        let stops = matches!(self.phase, Phase::Stopping { .. });
        match &self.key {
            Key::Ours { version, released, .. } if stops || self.claim.spent => {
                let (version, released) = (*version, *released);
                self.give_back(version, released, out);
            }
            Key::Stray { version } => {
                let version = *version;
                self.call(What::Delete, Call::Delete { version }, out);
            }
            Key::Unread if stops && self.claim.is_open() => self.read(false, out),
            _ if stops => self.finish(out),
            _ if self.claim.spent && !matches!(self.key, Key::Unread) => {
                self.give_up_claim();
                self.proceed(out);
            }
            Key::Unread => self.read(true, out),
            Key::Gone { look_at } if *look_at <= self.now => self.read(true, out),
            Key::Gone { look_at } => self.wake_at = Some(*look_at),
            Key::Free => self.put(None, out),
            Key::Foreign { held, over_at: Some(over_at) } if *over_at <= self.now => {
                let version = held.version;
                self.put(Some(version), out);
            }
            Key::Foreign { .. } if self.watch.is_none() => self.read(true, out),
            Key::Foreign { over_at, .. } => self.wake_at = *over_at,
            Key::Ours { version, token, .. } => {
                let (version, token) = (*version, *token);
                match self.held_until() {
                    Some(until) => self.take(token, until, out),
                    None => self.renew(version, token, out),
                }
            }
        }
    }

    /// Keeps what we lead with.
    fn keep(&mut self, out: &mut Vec<Output>) {
        let Key::Ours { version, token, .. } = self.key else {
            return self.read(self.config.expiry == Expiry::Store, out);
        };
        let next = self.claim.contact.map(|sent| sent + self.config.period());
        if next.is_none_or(|next| next <= self.now) || self.tenure.confirmed().is_none() {
            self.renew(version, token, out);
        } else if self.watch.is_none() && self.config.expiry == Expiry::Store {
            self.read(true, out);
        } else {
            self.wake_at = next;
        }
    }

    fn take(&mut self, token: Token, until: Instant, out: &mut Vec<Output>) {
        (self.races, self.claim.unsure) = (0, None);
        self.pace.reset();
        out.push(Output::Seat(self.tenure.take(token, until)));
        self.keep(out);
    }

    fn give_back(&mut self, version: u64, released: bool, out: &mut Vec<Output>) {
        match (released, self.config.expiry) {
            (false, _) => {
                let record = Record { released: true, ..self.record(0) };
                self.call(What::Mark, Call::Put { record, expect: Some(version) }, out);
            }
            (true, Expiry::Store) => self.call(What::Delete, Call::Delete { version }, out),
            (true, Expiry::Observed) => {
                // It stays there for whoever comes next, as we may.
                self.give_up_claim();
                self.key = Key::Unread;
                self.proceed(out);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Output>) {
        let again = matches!(self.phase, Phase::Stopping { again: true });
        self.give_up_claim();
        (self.key, self.watch) = (Key::Unread, None);
        self.phase = if again { Phase::Running } else { Phase::Idle };
        out.push(Output::Stopped);
        self.proceed(out);
    }

    fn record(&self, taken: u64) -> Record {
        let (holder, duration) = (self.claim.holder, self.config.duration);
        Record { holder, identity: self.config.identity.clone(), duration, taken, released: false }
    }

    fn read(&mut self, watch: bool, out: &mut Vec<Output>) {
        self.call(What::Read { watch }, Call::Read { watch }, out);
    }

    fn put(&mut self, expect: Option<u64>, out: &mut Vec<Output>) {
        let record = self.record(0);
        self.call(What::Take, Call::Put { record, expect }, out);
    }

    fn renew(&mut self, version: u64, token: Token, out: &mut Vec<Output>) {
        let record = self.record(token.0);
        self.call(What::Renew, Call::Renew { version, record }, out);
    }

    fn call(&mut self, what: What, call: Call, out: &mut Vec<Output>) {
        self.last_attempt += 1;
        let (attempt, sent) = (Attempt(self.last_attempt), self.now);
        let due = self.config.call_deadline.map(|wait| sent + wait);
        self.pending = Some(Pending { attempt, sent, due, what });
        out.push(Output::Call { attempt, call });
    }

    /// Tells who leads, if that has changed.
    fn announce(&mut self, out: &mut Vec<Output>) {
        let leader = match &self.key {
            _ if self.tenure.is_on() => self.leader_here(),
            Key::Unread => return,
            Key::Foreign { held, .. } => held.leader(),
            Key::Gone { .. } | Key::Free | Key::Stray { .. } | Key::Ours { .. } => None,
        };
        if leader != self.leader {
            self.leader.clone_from(&leader);
            out.push(Output::Leads(leader));
        }
    }

    fn leader_here(&self) -> Option<Leader> {
        let identity = self.config.identity.clone();
        self.tenure.token().map(|token| Leader { identity, token, designated: false })
    }
}

impl Claim {
    const fn new(holder: u128) -> Self {
        Self { holder, unsure: None, contact: None, counts_from: None, spent: false }
    }

    /// Whether a key in the store may be of this claim.
    const fn is_open(&self) -> bool {
        self.unsure.is_some() || self.contact.is_some()
    }
}

fn tell(seat: Option<Seat>, out: &mut Vec<Output>) {
    out.extend(seat.map(Output::Seat));
}
