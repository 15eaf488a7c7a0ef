//! Leadership by a lease: one key that one candidate holds, for as long as it renews it.
//!
//! ```text
//!                    ┌── there is none ──► Put ──► ours ──► lead, and renew ──► Release, Released
//!   Start ──► Read ──┤                      │                   │                     │
//!              ▲     └── another's ─────────┼──► watch it       │ not renewed in      ▼
//!              │                  │         │                   │ time, or taken   give it back
//!              │                  │    conflict, no answer      ▼
//!              └── it goes, or is over ◄────┘                  Lost
//! ```
//!
//! All candidates try to create the key; the store lets one. The others watch it. The holder renews it; if it
//! does not, the key expires. Three functions of a store are enough: compare-and-swap, expiry, and being told
//! of a change. Where the store has no expiry of its own (Kubernetes: `coordination.k8s.io` Lease), the other
//! candidates count the silence of the holder: see [`Expiry`].
//!
//! One key wakes all candidates when it goes. Where many wait, [offers](crate::recipe::offer) wake one.
//!
//! # The rules
//!
//! - **The holder stops first.** It counts from when it *sent* the last renewal that was acknowledged, stops a
//!   margin before the lease is over, and does not wait for calls that are under way (Gray, Cheriton: *Leases*,
//!   1989; kubernetes/client-go `RenewDeadline`, below `LeaseDuration`).
//! - **A renewal names the version** that it renews. One that comes too late fails, however long it was on its
//!   way, and the key is read then before anything else is concluded.
//! - **Others count with the holder's duration**, from when they saw its record change, by their own monotonic
//!   clock. No two clocks are compared (kubernetes/kubernetes#67651).
//! - **Our key is known by a number** that one leadership has and no other. After a lost answer it tells whether we
//!   hold the key; what an earlier leadership or an earlier session of ours has left behind is deleted, not used.
//! - **No lost wake-up**: a watch begins with what was read, and what was read is acted upon.
//! - **It is given back when the guarded work has ended**, not before; and marked as such, so that no candidate
//!   waits: after an expiry candidates come spread over [`Config::jitter`], after that at once.
//! - **The token of a leadership is the revision that took the key**: greater than all before, as long as the store
//!   keeps its count.

mod answers;
mod boundary;
mod claim;
mod record;

use alloc::vec::Vec;

use crate::recipe::backoff::Backoff;
use crate::recipe::boundary::{
    Attempt, ConfigError, Failure, Leader, LeadershipChange, Loss, Token,
};
use crate::recipe::leadership::Leadership;
pub use crate::recipe::lease::boundary::{
    Answer, Call, Config, Event, Expiry, Held, Input, Output,
};
use crate::recipe::lease::claim::{Claim, Key, Pending, Phase, What};
pub use crate::recipe::lease::record::Record;
use crate::time::Instant;

/// One candidate for one lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    config: Config,
    now: Instant,
    backoff: Backoff,
    last_attempt: u64,
    phase: Phase,
    leadership: Leadership,
    key: Key,
    /// Which read left a watch on the key.
    watch: Option<Attempt>,
    claim: Claim,
    /// The store counts the calls sent until then, and perhaps no later ones; none if it counts all.
    counted: Option<Instant>,
    /// The leader that was reported last.
    leader: Option<Leader>,
    pending: Option<Pending>,
    /// How often in a row another candidate was faster.
    races: u32,
    retry_at: Option<Instant>,
    /// When the next step is due, if nothing happens before.
    wake_at: Option<Instant>,
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
            leadership: Leadership::default(),
            key: Key::Unread,
            watch: None,
            claim: Claim::new(config.unique),
            counted: None,
            leader: None,
            pending: None,
            races: 0,
            retry_at: None,
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
        // The guards cannot know what happens in this step: for a leadership that went on when they reported, the
        // report means nothing, even if that leadership ends now.
        if matches!(input.event, Event::Released) {
            self.on_released(out);
        }
        // Before anything else: we may have been paused.
        if self.leadership.until().is_some_and(|until| until <= self.now) {
            self.lose(Loss::Unconfirmed, out);
        }
        match input.event {
            Event::Tick => self.on_tick(out),
            Event::Start => self.on_start(),
            Event::Stop => self.on_stop(out),
            Event::Released => {}
            Event::Suspended => tell(self.leadership.suspend(), out),
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
        [self.leadership.until(), due, self.retry_at, self.wake_at].into_iter().flatten().min()
    }

    /// Our token, if we lead.
    pub fn leads(&self) -> Option<Token> {
        self.leadership.token()
    }

    /// Until when our leadership is confirmed; none if we do not lead, or contact is lost.
    pub fn confirmed_until(&self) -> Option<Instant> {
        self.leadership.confirmed()
    }

    // --- start, stop, guards, and the clock ---

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
        self.retry_at = None;
        if !self.leadership.is_held() {
            self.abandon();
        }
        tell(self.leadership.release(), out);
    }

    fn on_released(&mut self, out: &mut Vec<Output>) {
        let change = self.leadership.on_released();
        if change.is_some() {
            self.claim.spent = true;
            // A renewal that is under way may change the version.
            self.abandon();
            tell(change, out);
        }
    }

    fn on_tick(&mut self, out: &mut Vec<Output>) {
        if self.retry_at.is_some_and(|at| at <= self.now) {
            self.retry_at = None;
        }
        if self.pending.and_then(|pending| pending.due).is_some_and(|at| at <= self.now) {
            self.answered(Err(Failure::Unknown), out);
        }
    }

    /// Waits for no answer any more but that to a write that may make the key ours.
    fn abandon(&mut self) {
        if !matches!(self.pending, Some(Pending { what: What::Take, .. })) {
            self.pending = None;
        }
    }

    // --- the end of leadership, and of a claim ---

    fn lose(&mut self, loss: Loss, out: &mut Vec<Output>) {
        if let Some(change) = self.leadership.lose(loss) {
            self.claim.spent = true;
            self.abandon();
            self.retry_at = None;
            out.push(Output::Leadership(change));
        }
    }

    /// The key is not ours, and earlier attempts to make it ours do not count any more.
    fn give_up_claim(&mut self) {
        self.claim = Claim::new(self.claim.holder.wrapping_add(1));
    }

    fn on_expired(&mut self, out: &mut Vec<Output>) {
        if self.config.expiry == Expiry::Observed {
            return;
        }
        self.lose(Loss::Expired, out);
        // Our key may stay for a while; it is as good as another candidate's.
        self.give_up_claim();
        (self.key, self.watch, self.pending) = (Key::Unread, None, None);
    }

    // --- for how long ---

    /// Until when the key is ours, by our own clock.
    fn held_until(&self) -> Option<Instant> {
        let until = self.claim.counts_from.map(|sent| sent + self.config.relied_on());
        until.filter(|until| *until > self.now)
    }

    /// The call that was sent then is answered.
    fn hear(&mut self, sent: Instant) {
        self.claim.contact = Some(sent);
        let counts_from = self.counted.map_or(sent, |counted| counted.min(sent));
        self.claim.counts_from = Some(counts_from);
    }

    fn confirm(&mut self, out: &mut Vec<Output>) {
        if let Some(until) = self.held_until() {
            tell(self.leadership.confirm(until), out);
            self.backoff.reset();
        }
    }

    // --- what is next ---

    /// Takes the next step, unless an answer or a delay is waited for.
    fn proceed(&mut self, out: &mut Vec<Output>) {
        if self.pending.is_some() || self.retry_at.is_some() {
            return;
        }
        if self.leadership.is_held() {
            return self.keep(out);
        }
        // Guarded work of an earlier leadership still runs: the key is given back after that.
        if self.leadership.is_winding_up() {
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

    /// Keeps the key on which leadership rests.
    fn keep(&mut self, out: &mut Vec<Output>) {
        let Key::Ours { version, token, .. } = self.key else {
            return self.read(self.config.expiry == Expiry::Store, out);
        };
        let next = self.claim.contact.map(|sent| sent + self.config.period());
        if next.is_none_or(|next| next <= self.now) || self.leadership.confirmed().is_none() {
            self.renew(version, token, out);
        } else if self.watch.is_none() && self.config.expiry == Expiry::Store {
            self.read(true, out);
        } else {
            self.wake_at = next;
        }
    }

    fn take(&mut self, token: Token, until: Instant, out: &mut Vec<Output>) {
        (self.races, self.claim.unsure) = (0, None);
        self.backoff.reset();
        out.push(Output::Leadership(self.leadership.take(token, until)));
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
                // The key stays for the next holder, which may be this candidate.
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

    /// Reports the leader, if that has changed.
    fn announce(&mut self, out: &mut Vec<Output>) {
        let leader = match &self.key {
            _ if self.leadership.is_held() => self.leader_here(),
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
        self.leadership.token().map(|token| Leader { identity, token, designated: false })
    }
}

fn tell(change: Option<LeadershipChange>, out: &mut Vec<Output>) {
    out.extend(change.map(Output::Leadership));
}
