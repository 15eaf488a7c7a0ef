//! A server that is about to stop: its clients leave it a share at a time, none in the middle of what it asks.
//!
//! ```text
//!   Stopping ──► a share ──10 ms──► a share ──► … ──► none left, or twice the time is over ──► Vacated
//!                  │ nothing under way: closed
//!                  └ else nothing more is read, and it is closed behind its last reply
//! ```
//!
//! Clients that lose a server come to another within milliseconds: all at once, if they lose it at once. Who comes
//! meanwhile is sent away.

use core::time::Duration;

use quorate_application::clients::{ClientId, Close, Output};

use crate::connection::{Connection, State};
use crate::service::{Service, Step};
use crate::shares::Shares;

impl Service {
    /// This server is about to stop.
    pub(crate) fn on_stopping(&mut self, step: &mut Step<'_>, within: Duration) {
        self.give_up_between(step);
        self.shares = Some(Shares::new(step.at, within, self.clients.len()));
    }

    /// Closes the connections whose time has come.
    pub(crate) fn shed(&mut self, step: &mut Step<'_>) {
        let Some(mut shares) = self.shares.take() else { return };
        if !shares.over {
            self.go(step, &mut shares);
        }
        self.shares = Some(shares);
    }

    fn go(&mut self, step: &mut Step<'_>, shares: &mut Shares) {
        shares.leaving.retain(|client| self.clients.contains_key(client));
        let may_stay = shares.may_stay(step.at);
        while self.clients.len() - shares.leaving.len() > may_stay {
            let Some((&client, connection)) = self.clients.range_mut(shares.next..).next() else {
                break;
            };
            shares.next = ClientId(client.0 + 1);
            shares.leaving.insert(client);
            connection.leaves = true;
            self.hold(step, client);
        }
        for client in &shares.leaving {
            if self.clients.get(client).is_some_and(|connection| !is_busy(connection)) {
                self.close(step.out, *client, Close::AfterWriting);
            }
        }
        if self.clients.is_empty() || shares.end() <= step.at {
            shares.over = true;
            step.out.push(Output::Vacated);
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
