//! The service in front of the application: its steps, each at its time.
//!
//! A connection that the service has closed says nothing more from that step on, whatever of it waits among the orders.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time;
use std::vec::Drain;

use quorate_application::Application;
use quorate_application::clients::{AtHand, ClientId, Clients, Event, Input, Output};
use quorate_core::time::Instant;
use quorate_core::txn::Txn;

use crate::runtime::Runtime;
use crate::wall_clock::now_ms;

/// The clock of the server, as the core counts time.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The closure of an operator: is given the time of the service, the service, and the application.
pub(crate) type LookClosure<A> =
    Box<dyn FnOnce(Instant, &mut <A as Application>::Clients, &mut A) + Send>;

/// The clock of a runtime, counted from an origin.
pub(crate) fn clock<R: Runtime>(runtime: R, origin: time::Instant) -> Clock {
    Arc::new(move || Instant::from_origin(runtime.now().saturating_duration_since(origin)))
}

/// The clients of this server, and what the service has been told.
pub(super) struct Service<A: Application> {
    clients: A::Clients,
    clock: Clock,
    /// What time it is for it: a clock that two threads read may seem to go back.
    now: Instant,
    /// The clients whose connections have not ended.
    open: BTreeSet<ClientId>,
    /// What it wants done and was not taken yet.
    outputs: Vec<Output>,
}

impl<A: Application> Service<A> {
    pub(super) const fn new(clients: A::Clients, clock: Clock) -> Self {
        Self { clients, clock, now: Instant::ORIGIN, open: BTreeSet::new(), outputs: Vec::new() }
    }

    /// Looks at the clock. Of many orders that are carried out one behind the other the first does so: a look is three calls,
    /// and a transaction takes little more.
    pub(super) fn look_at_clock(&mut self) -> Instant {
        if A::Clients::SERVES {
            self.is_now((self.clock)());
        }
        self.now
    }

    /// So late it is, unless it is later already.
    pub(super) fn is_now(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// Tells the service what has happened.
    pub(super) fn step(&mut self, event: Event, application: &mut A) {
        if A::Clients::SERVES && self.concerns(&event) {
            let input = Input { at: self.now, wall_ms: now_ms(), event };
            self.clients.step_into(input, application, &mut self.outputs);
        }
    }

    /// Tells the service what a transaction has done.
    pub(super) fn on_applied(&mut self, txn: &Txn, effect: &A::Effect, application: &mut A) {
        if A::Clients::SERVES {
            self.clients.on_applied(self.now, txn, effect, application, &mut self.outputs);
        }
    }

    /// When it is to step, if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if A::Clients::SERVES { self.clients.deadline() } else { None }
    }

    /// Lets an operator look.
    pub(super) fn look(&mut self, look: LookClosure<A>, application: &mut A) {
        let now = self.look_at_clock();
        look(now, &mut self.clients, application);
    }

    /// What words are answered with while it is away.
    pub(super) fn at_hand(&mut self, application: &mut A) -> AtHand {
        self.clients.at_hand(application)
    }

    /// What it wants done, since this was asked last. A connection that it closes says nothing more.
    pub(super) fn outputs(&mut self) -> Drain<'_, Output> {
        for output in &self.outputs {
            if let Output::Close { client, .. } = output {
                self.open.remove(client);
            }
        }
        self.outputs.drain(..)
    }

    /// Whether an event is of a connection that has not ended, or of none.
    fn concerns(&mut self, event: &Event) -> bool {
        match event {
            Event::Connected { client, .. } => self.open.insert(*client),
            Event::Disconnected(client) => self.open.remove(client),
            Event::Received { client, .. }
            | Event::Begun(client)
            | Event::Heard(client)
            | Event::Written { client, .. } => self.open.contains(client),
            Event::Tick
            | Event::Serving { .. }
            | Event::Retired
            | Event::Replaced
            | Event::Synced(_)
            | Event::SyncRefused(_)
            | Event::Pinged
            | Event::Touched { .. }
            | Event::Revalidate { .. }
            | Event::Revalidated(_)
            | Event::LinkLost(_)
            | Event::Noted(_)
            | Event::Shed { .. }
            | Event::Stopping { .. } => true,
        }
    }
}
