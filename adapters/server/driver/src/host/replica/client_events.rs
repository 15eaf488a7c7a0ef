//! The service among the orders: what it is told, when it is to step, and where what it wants done goes.

use quorate_application::Application;
use quorate_application::clients::{self, Clients};
use quorate_core::input::Event;
use quorate_core::time::Instant;

use crate::host::reads::Reader;
use crate::host::replica::{Replica, ReplicaOutput};
use crate::host::worker::Order;
use crate::turns::Held;

impl<A: Application> Replica<A> {
    /// Tells the service, in order with everything else.
    pub(crate) fn tell_service(&mut self, event: clients::Event) {
        self.tell_service_holding(event, Held::default());
    }

    /// The same; what the event holds is given back when it has heard.
    pub(crate) fn tell_service_holding(&mut self, event: clients::Event, held: Held) {
        if A::Clients::SERVES {
            self.words.told(&event);
            self.told_service += 1;
            self.orders.push_back(Order::Client(event, held));
        }
    }

    /// Whether the service keeps up: if not, what clients send waits with them.
    pub(crate) const fn hears_clients(&self) -> bool {
        self.told_service - self.heard < CLIENT_EVENTS_MAX
    }

    /// When the service is to step, if nothing happens; while it is on its thread, it will say when it comes back.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.filter(|_| self.worker.is_some() && !self.ticks)
    }

    /// Lets the service step, if it is time.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.words.now = now;
        if self.deadline().is_some_and(|due| due <= now) {
            self.ticks = true;
            self.tell_service(clients::Event::Tick);
        }
    }

    /// What the service wants done: by the core, or at the connections of its clients.
    pub(super) fn route(&mut self, output: clients::Output, then: &mut ReplicaOutput) {
        then.events.push(match output {
            clients::Output::Submit { epoch, request } => {
                self.stages.submit(epoch, request.id);
                Event::Submit { epoch, request }
            }
            clients::Output::Sync(sync) => Event::Read(self.reads.push(Reader::Service(sync))),
            clients::Output::Touch(sessions) => Event::Touch(sessions),
            clients::Output::Revalidate(body) => Event::Revalidate(body),
            clients::Output::Revalidated { to, body } => Event::Revalidated { to, body },
            clients::Output::Halt(reason) => {
                self.halted.get_or_insert(reason.into());
                return;
            }
            output @ (clients::Output::Send { .. }
            | clients::Output::Close { .. }
            | clients::Output::Pause(_)
            | clients::Output::Resume(_)
            | clients::Output::Vacated
            | clients::Output::Audit(_)
            | clients::Output::Remember(_)) => return then.clients.push(output),
        });
    }
}

/// How many events of clients may wait for the service; beyond, they wait with their connections.
const CLIENT_EVENTS_MAX: u64 = 256;
