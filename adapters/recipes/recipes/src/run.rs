//! The task of one candidate: wait for an input, step the machine, carry out its outputs.
//!
//! What it does not do: decide. The clock is read before each step, so that a process that was paused
//! learns of its own lateness before anything else.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_core::recipe::{LeadershipChange, Loss};
use quorate_core::time::Instant as CoreInstant;
use quorate_leadership::{FencingToken, LeadershipGate};
use tokio::sync::{Notify, mpsc};

use crate::clock::{Origin, now, until};
use crate::error::StartError;
use crate::events::Event;
use crate::machine::{Input, Machine, Output};
use crate::outage::{Found, Order, Outage};
use crate::publisher::Publisher;
use crate::reporter::{Reporter, StoreEvent};
use crate::settings::Settings;
use crate::store::Store;

/// The candidate is to end.
#[derive(Debug)]
pub(crate) struct Stop;

/// One candidate, assembled.
pub(crate) struct Run<S> {
    store: S,
    machine: Machine,
    origin: Origin,
    pub(crate) gate: Arc<LeadershipGate>,
    /// Notified when the last guard was dropped.
    guards_gone: Arc<Notify>,
    stops: mpsc::Receiver<Stop>,
    reports: mpsc::Receiver<StoreEvent>,
    report: Reporter,
    pub(crate) publisher: Publisher,
    /// The token of the present leadership, elected or designated.
    token: Option<FencingToken>,
    /// The machine waits to hear that the guards of its leadership are gone.
    awaits_release: bool,
    /// When the candidate ends even though the store does not answer.
    ends_at: Option<Instant>,
    deadline: Duration,
    /// There is no session any more, and none will be opened.
    is_over: bool,
    outage: Outage,
    phase: Phase,
}

/// What becomes of the candidate when its machine has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It competes, or leads.
    Competing,
    /// It gives leadership up, to queue up again.
    GivingUp,
    /// It has given leadership up.
    GivenUp,
    /// It ends.
    Stopping,
    /// It has ended.
    Ended,
}

impl<S: Store> Run<S> {
    pub(crate) fn new(
        store: S,
        settings: &Settings,
        stops: mpsc::Receiver<Stop>,
    ) -> Result<Self, StartError> {
        let random = || getrandom::u64().map_err(|e| StartError::NoRandomness(e.to_string()));
        let unique = u128::from(random()?) << 64 | u128::from(random()?);
        let machine = Machine::new(settings, unique)?;
        let origin = Origin::start();
        let guards_gone = Arc::new(Notify::new());
        let wakes = Arc::clone(&guards_gone);
        let (report, reports) = Reporter::new(origin);
        Ok(Self {
            store,
            machine,
            origin,
            gate: Arc::new(LeadershipGate::held_by_guards(move || wakes.notify_one())),
            guards_gone,
            stops,
            reports,
            report,
            publisher: Publisher::new(),
            token: None,
            awaits_release: false,
            ends_at: None,
            deadline: settings.deadline,
            is_over: false,
            outage: Outage::new(settings),
            phase: Phase::Competing,
        })
    }

    /// Competes until it is told to stop, or its last handle is dropped.
    pub(crate) async fn until_stopped(mut self) {
        let (store, report) = (self.store.clone(), self.report.clone());
        let session = tokio::spawn(async move {
            store.keep_session(report.clone()).await;
            report.over().await;
        });
        self.step(Input::Start).await;
        loop {
            self.look_at_guards().await;
            if self.phase == Phase::Ended {
                break;
            }
            let input = self.next().await;
            if let Some(input) = input {
                self.step(input).await;
            }
        }
        session.abort();
        self.store.close().await;
        self.gate.end();
        self.publisher.set_status(|status| status.ended = true);
    }

    /// The next input; none if the guards have to be looked at, or nothing follows.
    async fn next(&mut self) -> Option<Input> {
        let due = self.machine.deadline().map(|at| self.origin.to_std(at));
        let listens_to_stop = self.phase != Phase::Stopping;
        tokio::select! {
            reported = self.reports.recv() => reported.and_then(|event| self.hear(event)),
            found = self.outage.look() => {
                self.on_designation(found);
                None
            }
            // Told to, or the last handle is gone.
            _ = self.stops.recv(), if listens_to_stop => self.begin_to_end(),
            () = self.guards_gone.notified() => None,
            () = at(due) => Some(Input::Tick),
            () = at(self.ends_at) => {
                // Without a session nothing of this candidate is left in the store, or will be before long.
                self.phase = Phase::Ended;
                None
            }
        }
    }

    /// The candidate is to end: tells its machine, unless that is stopping already.
    fn begin_to_end(&mut self) -> Option<Input> {
        let was_competing = self.phase == Phase::Competing;
        self.phase = Phase::Stopping;
        was_competing.then_some(Input::Stop)
    }

    /// Tells the machine what became of the guards.
    async fn look_at_guards(&mut self) {
        if self.outage.is_designated() {
            // There is no queue to go back to: the operator designated this candidate, and it stays designated.
            if self.gate.revoke_if_abandoned() {
                self.gate.reopen();
            }
        } else if self.phase == Phase::Competing && self.gate.revoke_if_abandoned() {
            tracing::info!("the last guard is gone: the leadership is given up");
            self.phase = Phase::GivingUp;
            self.step(Input::Stop).await;
        }
        if !self.gate.has_guards() {
            if let Some(event) = self.outage.release() {
                self.step(Input::Store(event)).await;
            }
        }
        while self.awaits_release && !self.gate.has_guards() {
            self.awaits_release = false;
            self.step(Input::Released).await;
        }
        if self.phase == Phase::GivenUp {
            self.phase = Phase::Competing;
            self.step(Input::Start).await;
        }
        // What is left in a session that goes on would stand in the row for as long as that.
        let leaves_nothing = self.is_over || !self.store.is_shared();
        let is_stopping = self.phase == Phase::Stopping && !self.awaits_release && leaves_nothing;
        self.ends_at = is_stopping.then(|| self.ends_at.unwrap_or_else(|| now() + self.deadline));
    }

    /// What the store reported, unless it has to wait until the guards of a designation are gone.
    fn hear(&mut self, event: StoreEvent) -> Option<Input> {
        if matches!(event, StoreEvent::Over) {
            self.publisher.report(&event);
            self.is_over = true;
            return self.begin_to_end();
        }
        if self.outage.note(&event) {
            tracing::warn!("the store is in reach again: leadership by designation ends");
            self.end_designation();
        }
        self.outage.pass(event).map(Input::Store)
    }

    fn on_designation(&mut self, found: Found) {
        match self.outage.judge(found, self.token) {
            Order::Nothing => {}
            Order::End => self.end_designation(),
            Order::Lead { token, until } => {
                if self.token.replace(token).is_none() {
                    tracing::warn!(%token, "leads by designation");
                    self.publisher.event(Event::Designated(token));
                }
                self.gate.set(self.token, Some(until));
                self.publisher.set_status(|status| status.leads = Some(token));
            }
        }
    }

    fn end_designation(&mut self) {
        self.outage.end();
        self.token = None;
        self.gate.set(None, None);
        self.publisher.set_status(|status| status.leads = None);
        self.publisher.event(Event::Lost(Loss::Stopped));
    }

    async fn step(&mut self, input: Input) {
        let at = self.origin.now();
        // First what was due before, if this process was paused meanwhile.
        if !matches!(input, Input::Tick) && self.machine.deadline().is_some_and(|due| due <= at) {
            self.step_once(at, Input::Tick).await;
        }
        if let Input::Store(event) = &input {
            self.publisher.report(event);
        }
        self.step_once(at, input).await;
    }

    async fn step_once(&mut self, at: CoreInstant, input: Input) {
        for output in self.machine.step(at, input) {
            self.carry_out(output).await;
        }
        let (state, offer) = (self.machine.state(), self.machine.offer());
        let until = self.machine.confirmed_until().map(|at| self.origin.to_std(at));
        let leads = self.token;
        self.publisher.refresh_status(|status| {
            status.state = state;
            if status.offer.as_deref() != offer {
                status.offer = offer.map(str::to_owned);
            }
            status.leads = leads;
            status.until = until.filter(|_| leads.is_some());
        });
    }

    async fn carry_out(&mut self, output: Output) {
        match output {
            Output::Offer(attempt, call) => self.store.offer(attempt, call, &self.report).await,
            Output::Lease(attempt, call) => self.store.lease(attempt, call, &self.report).await,
            Output::Leadership(change) => self.tell_guards(change),
            Output::Notice(notice) => {
                tracing::debug!(?notice);
                self.publisher.event(Event::Notice(notice));
            }
            Output::Leads(leader) => {
                self.publisher.event(Event::Leader(leader.map(|leader| leader.identity)));
            }
            Output::Trouble(failure, again) => {
                tracing::warn!(%failure, ?again, "the election is held up");
                self.publisher.set_status(|status| status.trouble = Some(failure.into()));
                self.publisher.event(Event::trouble(failure, again));
            }
            Output::Stopped => match self.phase {
                Phase::GivingUp => self.phase = Phase::GivenUp,
                Phase::Competing | Phase::GivenUp | Phase::Stopping | Phase::Ended => {
                    self.phase = Phase::Ended;
                }
            },
        }
    }

    fn tell_guards(&mut self, change: LeadershipChange) {
        match change {
            LeadershipChange::Taken { token, until } => {
                let token = FencingToken::elected(token.0);
                tracing::info!(%token, "leads");
                self.token = Some(token);
                self.gate.set(self.token, Some(self.origin.to_std(until)));
                self.publisher.set_status(|status| status.trouble = None);
                self.publisher.event(Event::Elected(token));
            }
            LeadershipChange::Confirmed { until } => {
                if self.gate.set(self.token, Some(self.origin.to_std(until))) {
                    self.publisher.event(Event::Confirmed);
                }
            }
            LeadershipChange::Suspended => {
                self.gate.suspend();
                self.publisher.event(Event::Suspended);
            }
            LeadershipChange::Release => {
                self.gate.revoke();
                self.awaits_release = true;
            }
            LeadershipChange::Lost(loss) => {
                tracing::info!(%loss, "leads no more");
                self.token = None;
                self.gate.set(None, None);
                self.awaits_release = true;
                self.publisher.event(Event::Lost(loss));
            }
        }
    }
}

/// Waits until then; for ever if there is no such time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => until(time).await,
        None => pending().await,
    }
}
