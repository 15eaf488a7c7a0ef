//! Whether the ports of a server accept connections.
//!
//! ```text
//!   a socket  ok │ fails ──┐
//!   a socket  fails ───────┼─► the port fails when all of its sockets do ──► the core, once for each change
//! ```
//!
//! A socket fails from an error until an attempt to accept succeeds or has to wait for a connection. What follows
//! from a port that fails is the core's decision.

use std::collections::BTreeMap;
use std::sync::Mutex;

use quorate_core::input::{Event, Plane};

use crate::lock::locked;

/// The sockets of all ports.
#[derive(Debug, Default)]
pub(crate) struct PortHealth {
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

impl PortHealth {
    /// What has changed about a port since the core heard of it.
    pub(crate) fn news(&self, plane: Plane) -> Option<Event> {
        let mut sockets = locked(&self.sockets);
        let mut of_it = sockets.fails.iter().filter(|((of, _), _)| *of == plane).peekable();
        let fails = of_it.peek().is_some() && of_it.all(|(_, fails)| *fails);
        let before = sockets.told.insert(plane, fails).unwrap_or(false);
        (fails != before).then_some(match fails {
            true => Event::ListenFailed(plane),
            false => Event::Listening(plane),
        })
    }

    /// How a port is, for a core that knows nothing of it yet.
    pub(crate) fn state(&self, plane: Plane) -> Event {
        match locked(&self.sockets).told.get(&plane) {
            Some(true) => Event::ListenFailed(plane),
            Some(false) | None => Event::Listening(plane),
        }
    }

    /// One more socket, which works; returns its number.
    pub(crate) fn add(&self, plane: Plane) -> u64 {
        let mut sockets = locked(&self.sockets);
        let number = sockets.next;
        sockets.next += 1;
        sockets.fails.insert((plane, number), false);
        number
    }

    /// Takes note of whether a socket fails; returns whether it did.
    pub(crate) fn note(&self, plane: Plane, number: u64, failing: bool) -> Option<bool> {
        locked(&self.sockets).fails.insert((plane, number), failing)
    }

    /// A socket is gone.
    pub(crate) fn remove(&self, plane: Plane, number: u64) {
        locked(&self.sockets).fails.remove(&(plane, number));
    }
}
