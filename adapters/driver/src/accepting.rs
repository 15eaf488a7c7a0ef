//! Whether the ports of a server accept connections.
//!
//! ```text
//!   a socket  ok │ fails ──┐
//!   a socket  fails ───────┼─► the port fails when all of its sockets do ──► the core, once for each change
//! ```
//!
//! A socket fails from an error until an attempt to accept succeeds or has to wait for a connection. What follows
//! from a port that fails is the core's affair.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_core::input::{Event, Plane};

use crate::link::{Happened, Shared};

/// The sockets of all ports.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    sockets: Mutex<Sockets>,
}

#[derive(Debug, Default)]
struct Sockets {
    next: u64,
    /// Whether each of them fails.
    fails: BTreeMap<(Plane, u64), bool>,
    /// What the core knows.
    told: BTreeMap<Plane, bool>,
}

impl Ports {
    /// What has changed about a port since the core heard of it.
    pub(crate) fn news(&self, plane: Plane) -> Option<Event> {
        let mut sockets = self.locked();
        let mut of_it = sockets.fails.iter().filter(|((of, _), _)| *of == plane).peekable();
        let fails = of_it.peek().is_some() && of_it.all(|(_, fails)| *fails);
        let before = sockets.told.insert(plane, fails).unwrap_or(false);
        (fails != before).then_some(match fails {
            true => Event::ListenFailed(plane),
            false => Event::Listening(plane),
        })
    }

    fn locked(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One socket that listens, or is to. Dropping it takes it away.
#[derive(Debug)]
pub(crate) struct Socket {
    shared: Arc<Shared>,
    plane: Plane,
    number: u64,
}

impl Socket {
    /// One more, which is well.
    pub(crate) fn new(shared: &Arc<Shared>, plane: Plane) -> Self {
        let mut sockets = shared.ports.locked();
        let number = sockets.next;
        sockets.next += 1;
        sockets.fails.insert((plane, number), false);
        drop(sockets);
        Self { shared: Arc::clone(shared), plane, number }
    }

    /// Takes note of how it is.
    pub(crate) async fn is(&self, failing: bool) {
        let key = (self.plane, self.number);
        let before = self.shared.ports.locked().fails.insert(key, failing);
        // Said again for as long as it fails: what a socket that went has changed may have found no room.
        if failing || before != Some(failing) {
            // Nobody listens: the server ends.
            drop(self.shared.events.send(Happened::Ports(self.plane)).await);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.shared.ports.locked().fails.remove(&(self.plane, self.number));
        // Full: what comes next on this port tells. A door that closes is followed by one that opens.
        drop(self.shared.events.try_send(Happened::Ports(self.plane)));
    }
}
