//! What an operator has a running server do: take a snapshot, send clients elsewhere, take fewer or more of them.

use std::time::Duration;

use futures_channel::oneshot;
use quorate_application::Application;
use quorate_application::clients::Note;
use quorate_core::zxid::Zxid;

use crate::host::callers::Ask;
use crate::host::proposal::TakeSnapshotError;
use crate::runtime::Runtime;
use crate::server::handle::Server;

impl<R: Runtime, A: Application> Server<R, A> {
    /// Takes a snapshot now, of everything that is to be applied by now at this server, rather than when the next one is
    /// due; returns its label, under which it is in the data directory: `version-2/snapshot.LABEL`. Where the newest one
    /// there has all of that, none is taken. Older ones are kept and removed as usual.
    ///
    /// It takes as long as the state is large; dropping the future does not cancel it.
    ///
    /// # Errors
    ///
    /// A [`TakeSnapshotError`].
    pub async fn take_snapshot(&self) -> Result<Zxid, TakeSnapshotError> {
        let (answer, outcome) = oneshot::channel();
        if self.handle.asks.put(Ask::TakeSnapshot(answer)).is_err() {
            return Err(TakeSnapshotError::Ended);
        }
        outcome.await.unwrap_or(Err(TakeSnapshotError::Ended))
    }

    /// Sends so many in a hundred of the clients that are here now elsewhere, each behind its last reply, spread over about
    /// `within`. The server goes on, and serves who comes, these clients among them if they come again. The service does
    /// it, and knows how far it is.
    pub fn shed(&self, percent: u8, within: Duration) {
        // No loop is left: it has ended, and they are gone.
        drop(self.handle.asks.put(Ask::Shed { percent, within }));
    }

    /// Has the audit log of the service tell what an operator has had this server do, if it tells such things.
    pub fn note(&self, note: Note) {
        // No loop is left: it has ended, and so has the log.
        drop(self.handle.asks.put(Ask::Note(note)));
    }

    /// Looks now whether the stores of TLS, between servers and for clients, and the JAAS file of servers have changed, rather
    /// than at the next of the looks that their settings ask for, or where they ask for none.
    pub fn look_at_stores(&self) {
        self.handle.shared.looks.ask();
    }

    /// From now on there may be so many connections of clients: of one address
    /// ([`ServerConfig::max_client_connections`](crate::ServerConfig::max_client_connections)) and of all together
    /// ([`ServerConfig::max_connections`](crate::ServerConfig::max_connections)), zero for any number. Those that are open
    /// stay.
    pub fn limit_clients(&self, of_one_address: usize, of_all: usize) {
        self.handle.client_limit.set(of_one_address, of_all);
    }
}
