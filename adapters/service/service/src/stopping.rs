//! A server that is about to stop, or is to have fewer clients: they leave it a share at a time, none in the middle of what
//! it asks.
//!
//! ```text
//!   Stopping ──► a share ──10 ms──► a share ──► … ──► none left, or twice the time is over ──► Vacated
//!                  │ nothing under way: closed
//!                  └ else nothing more is read, and it is closed behind its last reply
//! ```
//!
//! Clients that lose a server come to another within milliseconds: all at once, if they lose it at once. Who comes
//! meanwhile is sent away by a server that stops, and served by one that goes on.

use core::time::Duration;

use quorate_application::clients::{ClientId, Close, Output};

use crate::connection::{Connection, State};
use crate::service::{Service, Step};
use crate::shares::{Shares, Shedding};

impl Service {
    /// This server is about to stop.
    pub(crate) fn on_stopping(&mut self, step: &mut Step<'_>, within: Duration) {
        self.give_up_between(step);
        self.shares = Some(Shares::new(step.at, within, self.clients.len(), true));
    }

    /// An operator sends so many in a hundred of the clients elsewhere; not while others leave. The oldest connections go,
    /// so that no client that comes again is met twice.
    pub(crate) fn on_shed(&mut self, step: &Step<'_>, percent: u8, within: Duration) {
        if self.shares.is_some() {
            return;
        }
        let goal = (self.clients.len() * usize::from(percent.min(100))).div_ceil(100);
        let last = self.clients.keys().next_back().copied().unwrap_or(ClientId(0));
        let mut shares = Shares::new(step.at, within, goal, false);
        shares.last = last;
        self.shares = Some(shares);
        self.shed = Shedding { goal, ..Shedding::default() };
    }

    /// Whether no client is taken in any more.
    pub(crate) fn stops(&self) -> bool {
        self.shares.as_ref().is_some_and(|shares| shares.stops)
    }

    /// How far the clients have gone that an operator has sent elsewhere last.
    pub fn shedding(&self) -> Shedding {
        let under_way = self.shares.as_ref().filter(|shares| !shares.stops);
        match under_way {
            Some(Shares { told, leaving, .. }) => {
                Shedding { under_way: true, gone: told - leaving.len(), ..self.shed }
            }
            None => self.shed,
        }
    }

    /// Closes the connections whose time has come.
    pub(crate) fn shed(&mut self, step: &mut Step<'_>) {
        let Some(mut shares) = self.shares.take() else { return };
        if !shares.over {
            self.go(step, &mut shares);
        }
        if shares.stops || !shares.over {
            self.shares = Some(shares);
        } else {
            self.stay(step, &shares);
        }
    }

    fn go(&mut self, step: &mut Step<'_>, shares: &mut Shares) {
        shares.leaving.retain(|client| self.clients.contains_key(client));
        let may_stay = shares.may_stay(step.at);
        while self.to_tell(shares) > may_stay {
            let mut rest = self.clients.range_mut(shares.next..);
            let next = rest.next().filter(|(client, _)| **client <= shares.last);
            let Some((&client, connection)) = next else { break };
            shares.next = ClientId(client.0 + 1);
            shares.told += 1;
            shares.leaving.insert(client);
            connection.leaves = true;
            self.hold(step, client);
        }
        for client in &shares.leaving {
            if self.clients.get(client).is_some_and(|connection| !is_busy(connection)) {
                self.close(step.out, *client, Close::AfterWriting);
            }
        }
        shares.leaving.retain(|client| self.clients.contains_key(client));
        let gone = match shares.stops {
            true => self.clients.is_empty(),
            false => shares.leaving.is_empty() && (may_stay == 0 || shares.next > shares.last),
        };
        if gone || shares.end() <= step.at {
            shares.over = true;
            step.out.extend(shares.stops.then_some(Output::Vacated));
        }
    }

    /// How many are to go and were not told to.
    fn to_tell(&self, shares: &Shares) -> usize {
        match shares.stops {
            true => self.clients.len() - shares.leaving.len(),
            false => shares.goal - shares.told,
        }
    }

    /// Those that were sent elsewhere are gone; a client that still waits for a reply is served on.
    fn stay(&mut self, step: &mut Step<'_>, shares: &Shares) {
        self.shed.gone = shares.told - shares.leaving.len();
        for client in &shares.leaving {
            if let Some(connection) = self.clients.get_mut(client) {
                connection.leaves = false;
            }
            self.hold(step, *client);
        }
    }
}

/// Whether something is under way for a client.
fn is_busy(connection: &Connection) -> bool {
    match connection.state {
        State::New => connection.telling.is_some(),
        State::Between | State::Kept { .. } => false,
        State::Opening { .. } | State::Asking { .. } => true,
        State::Open { .. } => !connection.queue.is_empty(),
    }
}
