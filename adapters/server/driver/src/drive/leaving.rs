//! The end in order, up to the last step: another server leads, then the clients of this one go.
//!
//! Which of them, and when, is their service's decision. The loop goes on meanwhile: what is under way is answered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_lite::future::or;
use quorate_application::Application;
use quorate_application::clients::{Clients, Event};

use crate::drive::{Driver, Quit, Turn};
use crate::error::ServerError;
use crate::runtime::Runtime;

impl<R: Runtime, A: Application> Driver<R, A> {
    /// Does all that is to be done before the links close. Returns early if it is to end at once.
    pub(crate) async fn leave(&mut self) -> Result<Quit, ServerError> {
        self.shared.counters.ending.store(true, Ordering::Relaxed);
        let quit = match self.outage {
            // It has no followers, and is not going to have any.
            Some(_) => Quit::Gracefully,
            None => self.give_way().await?,
        };
        if quit == Quit::AtOnce || !A::Clients::SERVES || self.client_shed.is_zero() {
            return Ok(quit);
        }
        match self.wait_for_clients().await? {
            Quit::AtOnce => Ok(Quit::AtOnce),
            // It may have been made leader meanwhile.
            Quit::Gracefully if self.outage.is_some() => Ok(Quit::Gracefully),
            Quit::Gracefully => self.give_way().await,
        }
    }

    /// Takes no more clients, and waits until the service waits for none; for a service that is stuck not for ever.
    async fn wait_for_clients(&mut self) -> Result<Quit, ServerError> {
        self.clients.stop_listening();
        self.replica.tell_service(Event::Stopping { within: self.client_shed });
        let (runtime, limit) = (self.runtime.clone(), self.client_shed * 2 + STUCK);
        let mut turn = Turn::new(self.runtime.now());
        let leaving = async {
            loop {
                self.step(&mut turn)?;
                if self.clients.is_vacated {
                    return Ok(Quit::Gracefully);
                }
                if let Some(quit) = self.gather(&mut turn.events).await? {
                    return Ok(quit);
                }
            }
        };
        let stuck = async {
            runtime.sleep(limit).await;
            Ok(Quit::Gracefully)
        };
        or(leaving, stuck).await
    }
}

/// How much longer the service may take than it says at most.
const STUCK: Duration = Duration::from_secs(1);
