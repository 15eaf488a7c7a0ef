//! The loop of a candidate: wait for something to happen, step, carry out.
//!
//! What it does not do: decide. Time is looked at before each step, so that a process that was paused
//! hears of its own lateness before anything else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::recipe::offer::Session;
use quorate_core::recipe::{Loss, Seat as Said};
use quorate_core::time::Instant as CoreInstant;
use quorate_leadership::{FencingToken, LeadershipGate};
use tokio::sync::mpsc;
use tokio::sync::{Notify, broadcast, watch};

use crate::contender::Contender;
use crate::designation::Designation;
use crate::news::{Event, Status};
use crate::recipe::{Input, Machine, Output};
use crate::settings::{Settings, StartError};
use crate::store::{HEARD_MAX, Happened, Store, Teller};

/// How many events wait for somebody who reads slowly.
const EVENTS_MAX: usize = 256;

/// Who is designated, after a while; for ever if nobody can be. Apart from the loop, since a page takes its time.
fn look(designation: Option<Designation>) -> Look {
    Box::pin(async move {
        let Some(designation) = designation else { return std::future::pending().await };
        tokio::time::sleep(LOOK_EVERY).await;
        tokio::task::spawn_blocking(move || designation.read().ok()).await.ok().flatten()
    })
}

type Look = Pin<Box<dyn Future<Output = Option<(Contender, Duration)>> + Send>>;

/// How often a designation is looked for while the store is out of reach.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The candidate is to end.
#[derive(Debug)]
pub(crate) struct Stop;

/// One candidate, assembled.
pub(crate) struct Run<S> {
    store: S,
    machine: Machine,
    origin: Instant,
    seat: Arc<LeadershipGate>,
    /// Rung when the last guard has gone.
    bell: Arc<Notify>,
    stops: mpsc::Receiver<Stop>,
    happened: mpsc::Receiver<Happened>,
    tell: Teller,
    events: broadcast::Sender<Event>,
    status: watch::Sender<Status>,
    /// The token of the term, if there is one.
    token: Option<FencingToken>,
    /// The machine waits to hear that nobody does a leader's work any more.
    awaits_release: bool,
    /// When it ends even though the store does not answer.
    patience: Option<tokio::time::Instant>,
    deadline: Duration,
    /// Who says who leads while the store is out of reach.
    designation: Option<Designation>,
    /// The look at it that is under way; whatever else happens does not begin it anew.
    look: Option<Look>,
    identity: Bytes,
    /// Since when the store is out of reach, or was looked for in vain.
    away_since: Option<tokio::time::Instant>,
    /// How long an elected leader may still act after that.
    session_time: Duration,
    /// Until when this candidate leads by designation, if it does.
    designated: Option<tokio::time::Instant>,
    /// A designation has ended, and those whom it let in may still be there.
    lingers: bool,
    /// The store is there again; the machine hears of it when those have gone.
    held_back: Option<Happened>,
    /// What is to become of the candidate when its machine has stopped.
    course: Course,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It competes.
    On,
    /// It gives the leadership up, to queue up again.
    Back,
    /// It has given the leadership up.
    Again,
    /// It ends.
    Out,
    /// It has ended.
    Over,
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
        let origin = tokio::time::Instant::now().into_std();
        let bell = Arc::new(Notify::new());
        let rung = Arc::clone(&bell);
        let (sender, happened) = mpsc::channel(HEARD_MAX);
        Ok(Self {
            store,
            machine,
            origin,
            seat: Arc::new(LeadershipGate::held_by_guards(move || rung.notify_one())),
            bell,
            stops,
            happened,
            tell: Teller { sender, origin },
            events: broadcast::channel(EVENTS_MAX).0,
            status: watch::channel(Status::default()).0,
            token: None,
            awaits_release: false,
            patience: None,
            deadline: settings.deadline,
            designation: settings.designation.clone(),
            look: None,
            identity: settings.identity.clone(),
            away_since: Some(tokio::time::Instant::now()),
            session_time: settings.session_timeout,
            designated: None,
            lingers: false,
            held_back: None,
            course: Course::On,
        })
    }

    pub(crate) fn seat(&self) -> Arc<LeadershipGate> {
        Arc::clone(&self.seat)
    }

    pub(crate) fn events(&self) -> broadcast::WeakSender<Event> {
        self.events.downgrade()
    }

    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Competes until it is told to stop, or nobody could tell it any more.
    pub(crate) async fn until_stopped(mut self) {
        let (store, tell) = (self.store.clone(), self.tell.clone());
        let session = tokio::spawn(async move { store.keep_session(tell).await });
        self.step(Input::Start).await;
        while self.course != Course::Over {
            self.look_at_seat().await;
            let input = self.next().await;
            if let Some(input) = input {
                self.step(input).await;
            }
        }
        session.abort();
        self.store.close().await;
        self.seat.end();
        self.status.send_modify(|status| status.ended = true);
    }

    /// What happens next; none if it is something about the seat.
    async fn next(&mut self) -> Option<Input> {
        let due = self.machine.deadline().map(|at| self.time(at));
        let tick = async move {
            match due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let patience = self.patience;
        let enough = async move {
            match patience {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let stops = self.course != Course::Out;
        let looks = self.away_since.is_some() && !self.lingers;
        let mut looking = self.look.take().unwrap_or_else(|| look(self.designation.clone()));
        let mut looked = false;
        let input = tokio::select! {
            happened = self.happened.recv() => happened.and_then(|happened| self.hear(happened)),
            found = &mut looking, if looks => {
                looked = true;
                self.on_designation(found);
                None
            }
            // Told to, or the last handle is gone.
            _ = self.stops.recv(), if stops => {
                let on = self.course == Course::On;
                self.course = Course::Out;
                on.then_some(Input::Stop)
            }
            () = self.bell.notified() => None,
            () = tick => Some(Input::Tick),
            () = enough => {
                // Without a session nothing of ours is left in the store, or will be before long.
                self.course = Course::Over;
                None
            }
        };
        self.look = Some(looking).filter(|_| !looked);
        input
    }

    /// Tells the machine what became of the guards.
    async fn look_at_seat(&mut self) {
        if self.designated.is_some() {
            // Nobody waits for a place in a row: it is the operator's word, and stays it.
            if self.seat.revoke_if_abandoned() {
                self.seat.reopen();
            }
        } else if self.course == Course::On && self.seat.revoke_if_abandoned() {
            tracing::info!("the last guard is gone: the leadership is given up");
            self.course = Course::Back;
            self.step(Input::Stop).await;
        }
        if !self.seat.has_guards() {
            self.lingers = false;
            if let Some(happened) = self.held_back.take() {
                self.step(Input::Store(happened)).await;
            }
        }
        while self.awaits_release && !self.seat.has_guards() {
            self.awaits_release = false;
            self.step(Input::Released).await;
        }
        if self.course == Course::Again {
            self.course = Course::On;
            self.step(Input::Start).await;
        }
        let is_stopping = self.course == Course::Out && !self.awaits_release;
        self.patience = is_stopping.then(|| {
            let now = tokio::time::Instant::now();
            self.patience.unwrap_or(now + self.deadline)
        });
    }

    /// What a store says, unless it has to wait until nobody leads by designation. It is listened to all the
    /// same: of its comings and goings the last counts.
    fn hear(&mut self, happened: Happened) -> Option<Input> {
        match &happened {
            Happened::Session(Session::Connected { .. }) => {
                self.away_since = None;
                if self.designated.is_some() {
                    tracing::warn!("the store is there again: nobody is designated any more");
                    self.end_designation();
                }
                if self.lingers {
                    self.held_back = Some(happened);
                    return None;
                }
            }
            Happened::Session(Session::Suspended | Session::Expired) => {
                self.away_since.get_or_insert_with(tokio::time::Instant::now);
                self.held_back = None;
            }
            Happened::Session(Session::Renewed { .. })
            | Happened::Trouble(_)
            | Happened::Offer { .. }
            | Happened::Lease { .. }
            | Happened::Fired { .. } => {}
        }
        Some(Input::Store(happened))
    }

    /// The store is out of reach, and this is who is designated. Whoever was elected before has stopped by now.
    fn on_designation(&mut self, found: Option<(Contender, Duration)>) {
        let now = tokio::time::Instant::now();
        let waited = self.away_since.is_some_and(|since| since + self.session_time <= now);
        let elected = self.token.is_some() && self.designated.is_none();
        if !waited || elected {
            return;
        }
        let found = found.filter(|(leader, _)| leader.identity == self.identity);
        let token = found.as_ref().map(|(leader, _)| leader.token);
        if self.designated.is_some() && token != self.token {
            // Whoever is designated next is let in when these have gone.
            return self.end_designation();
        }
        let Some((token, left)) = token.zip(found.map(|(_, left)| left)) else { return };
        if self.token.replace(token).is_none() {
            tracing::warn!(%token, "leads by designation");
            self.publish(Event::Designated(token));
        }
        let until = now + left;
        self.designated = Some(until);
        self.seat.set(self.token, Some(until.into_std()));
        self.status.send_modify(|status| status.leads = Some(token));
    }

    /// Nobody is designated any more: those who are there are told.
    fn end_designation(&mut self) {
        (self.designated, self.token) = (None, None);
        self.lingers = true;
        self.seat.set(None, None);
        self.status.send_modify(|status| status.leads = None);
        self.publish(Event::Lost(Loss::Stopped));
    }

    async fn step(&mut self, input: Input) {
        let at = self.now();
        // First what was due before, if this process was paused meanwhile.
        if !matches!(input, Input::Tick) && self.machine.deadline().is_some_and(|due| due <= at) {
            self.step_once(at, Input::Tick).await;
        }
        self.observe(&input);
        self.step_once(at, input).await;
    }

    async fn step_once(&mut self, at: CoreInstant, input: Input) {
        for output in self.machine.step(at, input) {
            self.carry_out(output).await;
        }
        let (state, offer) = (self.machine.state(), self.machine.offer());
        let until = self.machine.confirmed_until().map(|at| self.time(at));
        let leads = self.token;
        self.status.send_if_modified(|status| {
            let before = status.clone();
            status.state = state;
            if status.offer.as_deref() != offer {
                status.offer = offer.map(str::to_owned);
            }
            status.leads = leads;
            status.until = until.filter(|_| leads.is_some());
            *status != before
        });
    }

    /// What a store says is news of its own.
    fn observe(&self, input: &Input) {
        let Input::Store(happened) = input else { return };
        match happened {
            Happened::Session(Session::Connected { session, timeout }) => {
                tracing::info!(%session, ?timeout, "connected");
                self.status.send_modify(|status| {
                    status.connected = true;
                    status.trouble = None;
                });
            }
            Happened::Session(Session::Suspended | Session::Expired) => {
                self.status.send_modify(|status| status.connected = false);
            }
            Happened::Trouble(error) => {
                tracing::warn!(%error, "no session");
                self.status.send_modify(|status| status.trouble = Some(error.clone()));
                self.publish(Event::Trouble { error: error.clone(), again: None });
            }
            Happened::Session(Session::Renewed { .. })
            | Happened::Offer { .. }
            | Happened::Lease { .. }
            | Happened::Fired { .. } => {}
        }
    }

    async fn carry_out(&mut self, output: Output) {
        match output {
            Output::Offer(attempt, call) => self.store.offer(attempt, call, &self.tell).await,
            Output::Lease(attempt, call) => self.store.lease(attempt, call, &self.tell).await,
            Output::Seat(said) => self.tell_guards(said),
            Output::Notice(notice) => {
                tracing::debug!(?notice);
                self.publish(Event::Notice(notice));
            }
            Output::Leads(leader) => {
                self.publish(Event::Leader(leader.map(|leader| leader.identity)));
            }
            Output::Trouble(failure, again) => {
                tracing::warn!(%failure, ?again, "the election is held up");
                self.status.send_modify(|status| status.trouble = Some(failure.into()));
                self.publish(Event::trouble(failure, again));
            }
            Output::Stopped => match self.course {
                Course::Back => self.course = Course::Again,
                Course::On | Course::Again | Course::Out | Course::Over => {
                    self.course = Course::Over;
                }
            },
        }
    }

    fn tell_guards(&mut self, said: Said) {
        match said {
            Said::Taken { token, until } => {
                let token = FencingToken::elected(token.0);
                tracing::info!(%token, "leads");
                self.token = Some(token);
                self.seat.set(self.token, Some(self.time(until)));
                self.status.send_modify(|status| status.trouble = None);
                self.publish(Event::Elected(token));
            }
            Said::Confirmed { until } => {
                if self.seat.set(self.token, Some(self.time(until))) {
                    self.publish(Event::Confirmed);
                }
            }
            Said::Suspended => {
                self.seat.suspend();
                self.publish(Event::Suspended);
            }
            Said::Release => {
                self.seat.revoke();
                self.awaits_release = true;
            }
            Said::Lost(loss) => {
                tracing::info!(%loss, "leads no more");
                self.token = None;
                self.seat.set(None, None);
                self.awaits_release = true;
                self.publish(Event::Lost(loss));
            }
        }
    }

    fn publish(&self, event: Event) {
        // Nobody listens.
        drop(self.events.send(event));
    }

    fn now(&self) -> CoreInstant {
        let now = tokio::time::Instant::now().into_std();
        CoreInstant::from_origin(now.saturating_duration_since(self.origin))
    }

    fn time(&self, at: CoreInstant) -> Instant {
        // Beyond what the clock can say: as good as never.
        let far = Duration::from_secs(86_400 * 365);
        self.origin + at.since_origin().min(self.origin.elapsed() + far)
    }
}
