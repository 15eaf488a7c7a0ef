//! Clients that come between two leaders: they wait a moment for the next one.
//!
//! ```text
//!   Serving ─► Retired ──────── a tick, a second at most ────────►│
//!                 who comes now waits ──┬─ Serving: heard          │ who still waits, and who comes now, is closed
//!                                       └─ Stopping: closed        │
//! ```
//!
//! When a leadership ends every server closes its clients, and all of them are at the next server within a millisecond.
//! Sent away there they come back again and again, which takes the machines' time from the election they wait for, or
//! stay away for as long as their library lets pass (a second in ZooKeeper's) when they have tried all servers.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close};
use quorate_core::time::Instant;

use crate::connection::State;
use crate::service::{Role, Service, Step};

impl Service {
    /// Until when clients wait for a leader; none while there is one, and where there was none lately.
    pub(crate) fn between_until(&self) -> Option<Instant> {
        let idle = matches!(self.role, Role::Idle) && !self.stops();
        self.retired.filter(|_| idle).map(|at| at + self.tick.min(LONGEST))
    }

    /// Whether clients that come now wait for a leader.
    pub(crate) fn keeps_arrivals(&self, at: Instant) -> bool {
        self.between_until().is_some_and(|until| at < until)
    }

    /// The first frame of a client that this server does not serve now. Returns whether it waits.
    pub(crate) fn wait_between(&mut self, at: Instant, client: ClientId, frame: &Bytes) -> bool {
        let waits = self.between_until().is_some_and(|until| at < until);
        let Some(connection) = self.clients.get_mut(&client).filter(|_| waits) else {
            return false;
        };
        connection.state = State::Between;
        connection.queued += frame.len();
        connection.early.push_back(frame.clone());
        true
    }

    /// There is a leader again: those that wait are heard, in the order in which they came.
    pub(crate) fn end_between(&mut self, step: &mut Step<'_>) {
        self.retired = None;
        for client in self.who_waits() {
            let Some(connection) = self.clients.get_mut(&client) else { continue };
            connection.state = State::New;
            connection.queued = 0;
            for frame in core::mem::take(&mut connection.early) {
                self.on_frame(step, client, frame);
            }
            self.has_moved(client);
        }
    }

    /// There will be none here, or not soon: those that wait go elsewhere.
    pub(crate) fn give_up_between(&mut self, step: &mut Step<'_>) {
        self.retired = None;
        for client in self.who_waits() {
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    fn who_waits(&self) -> Vec<ClientId> {
        let waits =
            self.clients.iter().filter(|(_, connection)| connection.state == State::Between);
        waits.map(|(client, _)| *client).collect()
    }
}

/// How long a client waits at most.
const LONGEST: Duration = Duration::from_secs(1);
