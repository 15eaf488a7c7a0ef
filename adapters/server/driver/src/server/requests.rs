//! Asking the ensemble: proposals, reads and changes of the membership.
//!
//! What is refused because there is no leader is asked for again for as long as there is patience; the `try_` twins ask
//! once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures_channel::oneshot;
use quorate_application::Application;
use quorate_core::message::Request;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_core::time::Instant;
use quorate_core::txn::RequestId;

use crate::host::callers::{Ask, look_closure, read_closure, read_result};
use crate::host::proposal::{
    Proposal, ProposeError, Proposed, ReadError, ReconfigureError, UnknownOutcome,
};
use crate::runtime::Runtime;
use crate::server::handle::Server;
use crate::server::patience::Patience;

impl<R: Runtime, A: Application> Server<R, A> {
    /// Asks the ensemble for a transaction, under any leader, and waits until it is agreed on and applied
    /// at this server. What [`read`](Self::read) or [`read_local`](Self::read_local) sees here afterwards has it.
    ///
    /// Without a leader it waits, and what surely did not happen because the leader changed is asked for
    /// again: until [`ServerConfig::patience`](crate::ServerConfig::patience) is over. So what one program asks for at
    /// the same time may come to pass in another order. [`try_propose`](Self::try_propose) asks once. A request that is
    /// under way is waited for however long it takes.
    ///
    /// Waits its turn while as many are under way as
    /// [`HistoryLimits::requests`](quorate_core::config::HistoryLimits::requests) allows. Dropping the
    /// future does not take the request back.
    ///
    /// # Errors
    ///
    /// A [`ProposeError`]. Only [`ProposeError::Unknown`] leaves open whether it happened, and is never asked
    /// for a second time; after any other the request can be made again without being carried out twice.
    pub async fn propose(&self, proposal: impl Into<Proposal>) -> Result<Proposed, ProposeError> {
        let proposal = proposal.into();
        let mut patience = self.patience();
        loop {
            let error = match self.try_propose(proposal.clone()).await {
                Ok(proposed) => return Ok(proposed),
                Err(error) => error,
            };
            let Some(last) = error.setback() else { return Err(error) };
            patience.wait().await.map_err(|waited| ProposeError::Unserved { waited, last })?;
        }
    }

    /// The same, once: where there is no leader it is refused at once, and lost if the leader changes on the way.
    ///
    /// # Errors
    ///
    /// As [`Server::propose`].
    pub async fn try_propose(
        &self,
        proposal: impl Into<Proposal>,
    ) -> Result<Proposed, ProposeError> {
        let Proposal { op, body, identities } = proposal.into();
        let permit = self.handle.permits.take().await;
        let cxid = self.handle.requests.fetch_add(1, Ordering::Relaxed);
        let id = RequestId { client: self.handle.client, cxid };
        let request = Request { id, op, body, identities };
        let (answer, outcome) = oneshot::channel();
        if self.handle.asks.put(Ask::Propose { request, answer, permit }).is_err() {
            return Err(ProposeError::Ended);
        }
        outcome.await.unwrap_or(Err(ProposeError::Unknown(UnknownOutcome::Ended)))
    }

    /// A linearisable read: the closure sees the application when that has everything that was acknowledged anywhere in
    /// the ensemble before this call. Costs an exchange with a quorum, and no write.
    ///
    /// Without a leader it waits, until [`ServerConfig::patience`](crate::ServerConfig::patience) is over;
    /// [`try_read`](Self::try_read) asks once.
    ///
    /// The closure runs once, in order with transactions, and holds them up while it runs.
    ///
    /// # Errors
    ///
    /// A [`ReadError`], if this server does not serve in time, or has ended.
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn read<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        // A try that comes to nothing has not used it.
        let closure = Arc::new(Mutex::new(Some(closure)));
        let mut patience = self.patience();
        loop {
            let closure = Arc::clone(&closure);
            let outcome = self.try_read(move |application| {
                let closure = closure.lock().ok().and_then(|mut closure| closure.take());
                closure.map(|closure| closure(application))
            });
            let error = match outcome.await {
                Ok(seen) => return seen.ok_or(ReadError::Ended),
                Err(error) => error,
            };
            let Some(last) = error.setback() else { return Err(error) };
            patience.wait().await.map_err(|waited| ReadError::Unserved { waited, last })?;
        }
    }

    /// The same, once: where there is no leader it is refused at once.
    ///
    /// # Errors
    ///
    /// A [`ReadError`], if this server does not serve, or ceases to.
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn try_read<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let (read, receiver) = read_closure(self.handle.permits.take().await, closure);
        if self.handle.asks.put(Ask::Read(read)).is_err() {
            return Err(ReadError::Ended);
        }
        read_result(receiver).await
    }

    fn patience(&self) -> Patience<'_, R> {
        Patience::new(&self.handle.runtime, &self.handle.published, self.handle.patience)
    }

    /// Waits until everything that was acknowledged anywhere in the ensemble before this call is applied
    /// here. As ZooKeeper's `sync`, but a leader that was deposed without knowing it does not answer.
    ///
    /// # Errors
    ///
    /// As [`Server::read`].
    pub async fn sync(&self) -> Result<(), ReadError> {
        self.read(|_| ()).await
    }

    /// A stale read: the closure sees the application as it is at this server now, which may be behind other servers, but
    /// never takes a step back. Needs no leader.
    ///
    /// # Errors
    ///
    /// [`ReadError::Behind`] while this server gets a snapshot that is newer than its application, and
    /// [`ReadError::Ended`].
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn read_local<T: Send + 'static>(
        &self,
        closure: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let (read, receiver) = read_closure(self.handle.permits.take().await, closure);
        if self.handle.asks.put(Ask::ReadLocal(read)).is_err() {
            return Err(ReadError::Ended);
        }
        read_result(receiver).await
    }

    /// Shows an operator the service of this server's clients, and the application: as soon as neither is at work, ahead of
    /// all that waits. The closure runs once and holds both up while it runs, so it is to be short; it is given the time
    /// of the service's inputs. At most 64 look at a time; others wait.
    ///
    /// It waits as long as an application takes that is slow; who has less time gives up the future.
    ///
    /// # Errors
    ///
    /// [`ReadError::Ended`].
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub async fn look<T: Send + 'static>(
        &self,
        closure: impl FnOnce(Instant, &mut A::Clients, &mut A) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let (look, receiver) = look_closure(self.handle.looks.take().await, closure);
        if self.handle.asks.put(Ask::Look(look)).is_err() {
            return Err(ReadError::Ended);
        }
        read_result(receiver).await
    }

    /// Changes the membership, whichever server leads, and waits until that is in force at this server;
    /// returns the version of the new membership. The ensemble goes on serving; where the leader leaves, the
    /// next one takes over without an election.
    ///
    /// A server that joins is started before, told its own line and those of the others: it follows without a
    /// vote, and is brought up, until it is made a member. One that leaves follows on without a vote, until
    /// it is shut down.
    ///
    /// # Errors
    ///
    /// A [`ReconfigureError`].
    pub async fn reconfigure(&self, asked: &Reconfiguration) -> Result<i64, ReconfigureError> {
        let (op, body) = (Request::RECONFIGURE, asked.encode());
        match self.propose(Proposal { op, body, identities: None }).await {
            Ok(proposed) => Ok(proposed.zxid.0),
            Err(error) => Err(error.into()),
        }
    }
}
