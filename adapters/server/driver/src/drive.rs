//! The loop: wait for something to happen, step, carry out.
//!
//! One task owns the `Peer`, and all that happens to a server passes through here one after another.
//! The loop never waits for the network, for the disk or for an application that is slow. It takes what
//! has gathered in one go, and wakes each task that has something to do once: a burst of votes costs one
//! notification to each peer, and a burst of requests one write to each socket.
//!
//! What it does not do: decide. Every `match` arm below hands something on.

mod clients;
mod inputs;
mod leaving;
mod notes;
mod outage;
mod outputs;
mod publish;
#[cfg(feature = "tls")]
mod renewing;

pub(crate) use clients::{ClientLinks, Place};
pub(crate) use outage::{Outage, Reopen, Reopened};
#[cfg(feature = "tls")]
pub(crate) use renewing::Renewing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use quorate_application::Application;
use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ReleaseId, ServerId};
use quorate_core::input::{Event, Input};
use quorate_core::membership::Member;
use quorate_core::output::Output;
use quorate_core::peer::Peer;
use quorate_core::reasons::TransferRefused;
use quorate_core::recorder::Recorder;
use quorate_core::report::Report;
use quorate_core::time::Instant as CoreInstant;
use quorate_leadership::LeadershipGate;

use crate::disk::{Disk, Faults};
use crate::error::ServerError;
use crate::host::callers::Ask;
use crate::host::proposal::ProposeError;
use crate::host::replica::{Replica, ReplicaOutput};
use crate::inbox::Inbox;
use crate::net::dial::Dialler;
use crate::net::events::{LoopEvent, Shared};
use crate::net::listen::Listeners;
use crate::net::outbound::Outbound;
use crate::net::tls::Secure;
use crate::proposals::{Proposals, Seen};
use crate::runtime::Runtime;
use crate::status::Published;
use crate::wall_clock::Steps;

/// One server, assembled.
pub(crate) struct Driver<R: Runtime, A: Application> {
    pub(crate) runtime: R,
    pub(crate) peer: Peer,
    /// The flight recorder, if there is one.
    pub(crate) recorder: Option<Box<dyn Recorder>>,
    /// The origin of the core's time.
    pub(crate) origin: Instant,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: Receiver<LoopEvent>,
    pub(crate) quit: Receiver<Quit>,
    pub(crate) disk: Disk,
    pub(crate) dialler: Dialler<R>,
    pub(crate) links: BTreeMap<LinkId, Outbound>,
    pub(crate) replica: Replica<A>,
    pub(crate) clients: ClientLinks,
    /// Within what time clients leave before it ends; zero if they need not.
    pub(crate) client_shed: Duration,
    pub(crate) asks: Asks<A>,
    pub(crate) published: Arc<Published>,
    pub(crate) gate: Arc<LeadershipGate>,
    /// The core waits until the guards are released, and asked with this.
    pub(crate) releasing: Option<ReleaseId>,
    /// Where the outcome of the leadership transfer under way goes.
    pub(crate) transfer: Option<Sender<Result<ServerId, TransferRefused>>>,
    /// What is measured of transactions.
    pub(crate) proposals: Proposals,
    /// When to warn next that an election lasts.
    pub(crate) warn_at: Option<Instant>,
    /// When to publish what has changed since it was published last.
    pub(crate) publish_at: Option<Instant>,
    /// Whether the wall clock was set.
    pub(crate) wall_steps: Steps,
    /// It ends gracefully, and transfers its leadership before.
    pub(crate) ending: bool,
    /// The disk has failed, and this server is out of service until it works again.
    pub(crate) outage: Option<Outage<A>>,
    pub(crate) reopen: Reopen<A>,
    pub(crate) disk_faults: Faults,
    /// How long after a failure the disk is tried.
    pub(crate) disk_retry: Duration,
    /// What the oracle said last.
    pub(crate) oracle: Option<bool>,
    /// TLS between servers; none where they speak without it.
    pub(crate) secure: Option<Arc<Secure>>,
    /// The versions of the memberships by which certificates are judged.
    pub(crate) known: (i64, Option<i64>),
    /// Links whose keys are nearly worn.
    #[cfg(feature = "tls")]
    pub(crate) renewing: Renewing,
    /// The ports of this server.
    pub(crate) listeners: Listeners<R>,
    /// Where its introductions say that it listens for elections.
    pub(crate) elections_at: Vec<HostPort>,
    /// Whether they name all of its addresses (`multiAddress.enabled`).
    pub(crate) multi_address: bool,
}

/// Where a server with this line is said to listen for elections.
pub(crate) fn elections_at(own: &Member, all: bool) -> Vec<HostPort> {
    let said = if all { usize::MAX } else { 1 };
    own.addresses.iter().take(said).map(|address| address.election.clone()).collect()
}

/// The loop's end of the callers' inbox. Dropping it tells the callers that the server has ended.
pub(crate) struct Asks<A: Application> {
    pub(crate) inbox: Arc<Inbox<Ask<A>>>,
    pub(crate) taken: Vec<Ask<A>>,
}

impl<A: Application> Drop for Asks<A> {
    fn drop(&mut self) {
        for ask in self.inbox.close() {
            if let Ask::Propose { answer, .. } = ask {
                drop(answer.send(Err(ProposeError::Ended)));
            }
        }
    }
}

/// What has gathered for one turn of the loop, and what comes of it.
struct Turn {
    /// When it began.
    seen: Seen,
    /// For the core, in order.
    events: Vec<Event>,
    outputs: Vec<Output>,
    reports: Vec<Report>,
    /// Links that have something to write.
    queued: Vec<LinkId>,
    replica: ReplicaOutput,
    /// How the leadership transfer has ended.
    transferred: Option<Result<ServerId, TransferRefused>>,
}

impl Turn {
    fn new(now: Instant) -> Self {
        Self {
            seen: Seen::at(now),
            events: Vec::new(),
            outputs: Vec::new(),
            reports: Vec::new(),
            queued: Vec::new(),
            replica: ReplicaOutput::default(),
            transferred: None,
        }
    }
}

/// How a server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quit {
    /// Say goodbye, write what is under way, close.
    Gracefully,
    /// At once, as if the process had been killed.
    AtOnce,
}

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Runs the server until it is told to quit, or has to.
    pub(crate) async fn drive(&mut self) -> Result<Quit, ServerError> {
        let mut turn = Turn::new(self.runtime.now());
        loop {
            if let Some(quit) = self.gather(&mut turn.events).await? {
                return Ok(quit);
            }
            self.step(&mut turn)?;
        }
    }

    /// Hands the core what has happened, and does what it says; leaves what happens thereby for the
    /// next turn.
    fn step(&mut self, turn: &mut Turn) -> Result<(), ServerError> {
        let now = self.runtime.now();
        let at = CoreInstant::from_origin(now.saturating_duration_since(self.origin));
        turn.seen = Seen::at(now);
        self.published.measures.turns(now);
        self.replica.begin_turn(turn.seen);
        let before = self.outage.as_ref().map(|_| self.peer.status().state);
        let mut events = std::mem::take(&mut turn.events);
        for event in events.drain(..) {
            self.note_event(&event, turn);
            self.advance(Input { at, event }, &mut turn.outputs);
        }
        turn.events = events;
        before.into_iter().for_each(|before| self.report_outage(before, turn));
        if self.peer.deadline().is_some_and(|(due, _)| due <= at) {
            self.advance(Input { at, event: Event::Tick }, &mut turn.outputs);
        }
        let mut outputs = std::mem::take(&mut turn.outputs);
        for output in outputs.drain(..) {
            self.carry_out(output, turn)?;
        }
        turn.outputs = outputs;
        self.proposals.put(turn.seen);
        if let Some(release) = self.releasing.take_if(|_| self.gate.is_released()) {
            turn.events.push(Event::Released(release));
        }
        // The others first: they have further to go.
        self.wake_links(&mut turn.queued, now);
        self.run_application(at, turn)?;
        self.wake_links(&mut turn.queued, now);
        #[cfg(feature = "tls")]
        self.renew_worn(turn);
        self.publish_in_time(&mut turn.reports, now);
        // A caller that is told that another server leads finds nothing here that says otherwise.
        if let (Some(outcome), Some(answer)) = (turn.transferred.take(), self.transfer.as_ref()) {
            // The caller may have stopped waiting.
            let _ = answer.try_send(outcome);
            self.transfer = None;
        }
        Ok(())
    }

    /// One step of the core; the recorder, if there is one, is given all of them.
    fn advance(&mut self, input: Input, outputs: &mut Vec<Output>) {
        let Some(recorder) = &mut self.recorder else {
            return self.peer.step_into(input, outputs);
        };
        let said = outputs.len();
        recorder.hears(&input);
        self.peer.step_into(input, outputs);
        recorder.does(&outputs[said..]);
    }

    /// Lets the application do what it can do at once.
    fn run_application(&mut self, at: CoreInstant, turn: &mut Turn) -> Result<(), ServerError> {
        self.replica.tick(at);
        self.replica.run(&mut turn.replica)?;
        turn.events.append(&mut turn.replica.events);
        self.serve_clients(&mut turn.replica.clients);
        for (link, pieces) in std::mem::take(&mut turn.replica.streams) {
            self.stream(link, pieces, turn);
        }
        let counters = &self.shared.counters;
        counters.set(self.replica.applied(), self.replica.requests.len());
        Ok(())
    }

    /// Lets another server lead, if this one does and another can, before it ends. Returns early if it
    /// is to end at once.
    async fn give_way(&mut self) -> Result<Quit, ServerError> {
        let mut turn = Turn::new(self.runtime.now());
        // A caller may be waiting for another transfer; the outcome of that one will do.
        if self.transfer.is_none() {
            self.transfer = Some(bounded(1).0);
            turn.events.push(Event::TransferLeadership(None));
        }
        self.ending = true;
        loop {
            self.step(&mut turn)?;
            if self.transfer.is_none() {
                return Ok(Quit::Gracefully);
            }
            if let Some(quit) = self.gather(&mut turn.events).await? {
                return Ok(quit);
            }
        }
    }

    /// Hangs up every link, in order.
    pub(crate) async fn say_goodbye(&mut self) {
        // It ends in any case.
        let mut turn = Turn::new(self.runtime.now());
        turn.events.push(Event::Shutdown);
        drop(self.step(&mut turn));
    }

    /// A time of the core's.
    fn time(&self, at: CoreInstant) -> Instant {
        self.origin + at.since_origin()
    }

    /// When something is due; none if nothing is.
    fn due(&self) -> Option<Instant> {
        let core = self.peer.deadline().map(|(at, _)| self.time(at));
        let service = self.replica.deadline().map(|at| self.time(at));
        let words = self.replica.words_due().map(|at| self.time(at));
        [core, service, words, self.warn_at, self.publish_at].into_iter().flatten().min()
    }
}
