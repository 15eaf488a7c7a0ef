//! Leading: the guard of a leadership, and giving the leadership away.

use std::time::Duration;

use async_channel::bounded;
use futures_lite::future::or;
use quorate_application::Application;
use quorate_core::id::ServerId;
use quorate_core::input::Event;
use quorate_leadership::LeadershipError;

use crate::host::callers::Ask;
use crate::host::proposal::HandOverError;
use crate::net::events::Happened;
use crate::runtime::{Leadership, OnRuntime, Runtime};
use crate::server::handle::Server;

impl<R: Runtime, A: Application> Server<R, A> {
    /// Waits until this server leads an established ensemble, and keeps the seat until the guard is dropped,
    /// as far as that is up to this server.
    ///
    /// Dropping the future is harmless: nothing is taken before it is ready.
    ///
    /// # Errors
    ///
    /// If the server ends before.
    pub async fn leadership(&self) -> Result<Leadership<R>, LeadershipError> {
        self.handle.seat.acquire(&OnRuntime(self.handle.runtime.clone())).await
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

    /// Hands the seat of the leader over to a follower, which is sent what it lacks before; returns when it
    /// has taken it, its reign about to begin. Requests and reads made here meanwhile wait, no longer than a
    /// few exchanges of messages take. So do reads at other servers; a request that one of them has sent
    /// here too late to be done is [lost](crate::ProposeError::Lost), which is certain, and may be made again.
    ///
    /// The holder of a [`Leadership`] here is told first, and waited for. Dropping the future does not call
    /// the hand-over off.
    ///
    /// # Errors
    ///
    /// Why the seat stays here; then the reign goes on as if nothing had happened.
    pub async fn hand_over(&self, to: ServerId) -> Result<(), HandOverError> {
        let (answer, outcome) = bounded(1);
        if self.handle.asks.put(Ask::HandOver { to: Some(to), answer }).is_err() {
            return Err(HandOverError::Ended);
        }
        outcome.recv().await.map_err(|_| HandOverError::Ended)??;
        Ok(())
    }

    /// Asks a leader to give up its seat: it goes to the follower that is wished most to lead and has most.
    /// Where no follower can take it over, a new election begins, which may elect this server again. Does
    /// nothing elsewhere.
    pub async fn step_down(&self) {
        // No receiver is left: it has ended.
        drop(self.handle.shared.events.send(Happened::Event(Event::StepDown)).await);
    }
}
