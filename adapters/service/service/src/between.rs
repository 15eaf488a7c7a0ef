//! Clients between two leaders: they wait a moment for the next one.
//!
//! ```text
//!   Serving ─► Retired ──────── a tick, a second at most ────────►│
//!                 who comes now waits ──┬─ Serving: heard          │ who still waits, and who comes now, is closed
//!                 who asks nothing      ├─ Stopping: closed        │
//!                       stays and waits └─ Replaced: who has stayed is closed
//! ```
//!
//! ZooKeeper closes every client when a leadership ends, and all of them are at the next server within a millisecond.
//! Sent away there they come back again and again, which takes the machines' time from the election they wait for, or
//! stay away for as long as their library lets pass (a second in ZooKeeper's) when they have tried all servers.
//!
//! So a session stays at its server if nothing is under way for it: it has been told nothing that the server does not have,
//! and what the next leader adds is applied here one transaction after the other, each with its events. Its watches stay.
//! The next leader knows every session of the tree, and that of a learner's client is its own again with the first request
//! (`SessionTrackerImpl.checkSession`). Four things end it:
//! - a leader that leaves no [marks](crate::marks), as ZooKeeper's do: a session of its may be anywhere, and nobody would know;
//! - a transaction of its own that was not asked for here, such a mark above all: its client is elsewhere, and what it left
//!   here must not come behind;
//! - a snapshot: nothing tells which watched nodes have changed;
//! - the same leader, found again by another link: to it the session is still at the one that is gone, and its requests would
//!   be refused as moved. To claim it could take it from the server that its client is at by now: so it comes anew.

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

    /// The leader is lost: sessions for which nothing is under way stay, all others end. So does one that a leader was about
    /// to end: what it has asked for since was not heard, and its end may be lost with that leader.
    pub(crate) fn part(&mut self, step: &mut Step<'_>) {
        let stays = self.between_until().is_some() && self.is_marked;
        let all: Vec<_> = self.clients.keys().copied().collect();
        for client in all {
            let Some(connection) = self.clients.get_mut(&client) else { continue };
            let session = connection.session().filter(|_| stays && connection.is_idle());
            match session {
                Some(session) => connection.state = State::Kept { session },
                None => self.close(step.out, client, Close::AfterWriting),
            }
        }
    }

    /// There is a leader again: those that wait are heard, in the order in which they came. `again`: it is the one that was
    /// lost, by another link. It hears of those that have stayed, which come anew.
    pub(crate) fn end_between(&mut self, step: &mut Step<'_>, again: bool) {
        self.retired = None;
        let serves = self.serves();
        for client in self.who_waits(true) {
            self.touch(step.at, client);
            let Some(connection) = self.clients.get_mut(&client) else { continue };
            connection.state = match connection.session() {
                None => State::New,
                Some(session)
                    if serves && !again && step.state.tree().session(session).is_some() =>
                {
                    State::Open { session }
                }
                Some(_) => {
                    self.close(step.out, client, Close::AfterWriting);
                    continue;
                }
            };
            connection.queued = 0;
            let early = core::mem::take(&mut connection.early);
            for frame in early {
                self.on_frame(step, client, frame);
            }
            self.has_moved(client);
        }
    }

    /// There will be none here, or not soon: those that wait go elsewhere.
    pub(crate) fn give_up_between(&mut self, step: &mut Step<'_>) {
        self.retired = None;
        for client in self.who_waits(true) {
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    /// Those that have stayed come anew.
    pub(crate) fn let_go_kept(&mut self, step: &mut Step<'_>) {
        for client in self.who_waits(false) {
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    /// A transaction of this session is applied that was not asked for here: its client is elsewhere, or was before it came.
    pub(crate) fn on_foreign_txn(&mut self, step: &mut Step<'_>, session: i64) {
        let Some(&client) = self.by_session.get(&session) else { return };
        let Some(connection) = self.clients.get_mut(&client) else { return };
        if let State::Asking { foreign, .. } = &mut connection.state {
            *foreign += 1;
            return;
        }
        connection.parts = true;
        // Nothing of it is under way here, nor has it just come.
        if matches!(connection.state, State::Kept { .. }) {
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    /// Those that have stayed, and those that have come if they are asked for, too.
    fn who_waits(&self, came: bool) -> Vec<ClientId> {
        let waits = self.clients.iter().filter(|(_, connection)| match connection.state {
            State::Kept { .. } => true,
            State::Between => came,
            State::New | State::Opening { .. } | State::Asking { .. } | State::Open { .. } => false,
        });
        waits.map(|(client, _)| *client).collect()
    }
}

/// How long a client waits at most.
const LONGEST: Duration = Duration::from_secs(1);
