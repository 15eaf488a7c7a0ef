//! Leading: the leadership guard, leadership transfer and stepping down.

use std::time::Duration;

use async_channel::bounded;
use futures_lite::future::or;
use quorate_application::Application;
use quorate_core::id::ServerId;
use quorate_core::input::Event;
use quorate_leadership::LeadershipError;

use crate::host::callers::Ask;
use crate::host::proposal::TransferError;
use crate::net::events::LoopEvent;
use crate::runtime::{Leadership, OnRuntime, Runtime};
use crate::server::handle::Server;

impl<R: Runtime, A: Application> Server<R, A> {
    /// Waits until this server leads an established ensemble, and keeps leading until the guard is
    /// dropped, as far as that is up to this server.
    ///
    /// Dropping the future is harmless: nothing is taken before it is ready.
    ///
    /// # Errors
    ///
    /// If the server ends before.
    pub async fn leadership(&self) -> Result<Leadership<R>, LeadershipError> {
        self.handle.gate.acquire(&OnRuntime(self.handle.runtime.clone())).await
    }

    /// The same, for a limited time.
    ///
    /// # Errors
    ///
    /// If the server ends before, or does not come to lead within `limit`.
    pub async fn leadership_within(
        &self,
        limit: Duration,
    ) -> Result<Leadership<R>, LeadershipError> {
        let elapsed = async {
            self.handle.runtime.sleep(limit).await;
            Err(LeadershipError::Elapsed(limit))
        };
        or(self.leadership(), elapsed).await
    }

    /// Leadership transfer: from this server to a follower, which is sent what it lacks before. Returns when the
    /// follower has taken over, its own leadership about to begin. Requests and reads made here meanwhile wait, no longer
    /// than a few exchanges of messages take. So do reads at other servers; a request that one of them has sent here too
    /// late to be done is [lost](crate::ProposeError::Lost), which is certain, and may be made again.
    ///
    /// The holder of a [`Leadership`] here is told first, and waited for. Dropping the future does not cancel the
    /// transfer.
    ///
    /// # Errors
    ///
    /// A [`TransferError`]: why this server goes on leading, as if nothing had happened, or that it does not lead.
    pub async fn transfer_leadership(&self, to: ServerId) -> Result<(), TransferError> {
        self.transfer(Some(to)).await.map(|_| ())
    }

    /// The same to the best follower that there is: that with the highest `quorate.priority`, of several the most
    /// up-to-date one. Returns which.
    ///
    /// # Errors
    ///
    /// As [`transfer_leadership`](Self::transfer_leadership).
    pub async fn hand_over(&self) -> Result<ServerId, TransferError> {
        self.transfer(None).await
    }

    async fn transfer(&self, to: Option<ServerId>) -> Result<ServerId, TransferError> {
        let (answer, outcome) = bounded(1);
        if self.handle.asks.put(Ask::TransferLeadership { to, answer }).is_err() {
            return Err(TransferError::Ended);
        }
        Ok(outcome.recv().await.map_err(|_| TransferError::Ended)??)
    }

    /// Makes a leader give up its leadership: it is transferred to the follower with the highest `quorate.priority`, and
    /// of several to the most up-to-date one. Where no follower can take over, a new election begins, which may elect
    /// this server again. Does nothing on a server that does not lead.
    pub async fn step_down(&self) {
        // No receiver is left: it has ended.
        drop(self.handle.shared.events.send(LoopEvent::Event(Event::StepDown)).await);
    }
}
