//! How a store reports what happened: session events, and the answers to calls.

use std::time::{Duration, Instant};

use quorate_core::recipe::offer::Session;
use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::clock::Origin;
use crate::error::StoreError;

/// What a store reported.
#[derive(Debug)]
pub(crate) enum StoreEvent {
    Session(Session),
    Trouble(StoreError),
    Offer {
        attempt: Attempt,
        result: Result<offer::Answer, Failure>,
    },
    Lease {
        attempt: Attempt,
        result: Result<lease::Answer, Failure>,
    },
    Fired {
        attempt: Attempt,
        gone: bool,
    },
    /// There is no session any more, and none will be opened.
    Over,
}

/// How a [`Store`](crate::Store) reports what happened. Once the candidate has ended, reports are dropped.
#[derive(Clone, Debug)]
pub struct Reporter {
    sender: Sender<StoreEvent>,
    origin: Origin,
}

impl Reporter {
    /// A reporter, and where its reports arrive.
    pub(crate) fn new(origin: Origin) -> (Self, Receiver<StoreEvent>) {
        let (sender, events) = channel(CAPACITY);
        (Self { sender, origin }, events)
    }

    /// The session is connected: a new one, or the same again. `timeout` is what the store agreed to.
    pub fn connected(&self, session: SessionId, timeout: Duration) {
        self.send(StoreEvent::Session(Session::Connected { session, timeout }));
    }

    /// The connection is lost, the session perhaps not.
    pub fn suspended(&self) {
        self.send(StoreEvent::Session(Session::Suspended));
    }

    /// The session is over for good.
    pub fn expired(&self) {
        self.send(StoreEvent::Session(Session::Expired));
    }

    /// The store counts the request sent at `sent` (by [`now`](crate::now)), or a later one, as keeping the session alive. With the lease
    /// recipe it surely counts no later one, even if that was answered. A store that counts each request that it
    /// answers does not report it there.
    pub fn renewed(&self, session: SessionId, sent: Instant) {
        // The candidate has not run for long: a renewal that is dropped only confirms less.
        if self.sender.capacity() < CAPACITY / 2 {
            return;
        }
        let sent = self.origin.to_core(sent);
        self.send(StoreEvent::Session(Session::Renewed { session, sent }));
    }

    /// There is no session, and why.
    pub fn trouble(&self, error: StoreError) {
        self.send(StoreEvent::Trouble(error));
    }

    /// The answer to a call of the offer recipe.
    pub fn offer(&self, attempt: Attempt, result: Result<offer::Answer, Failure>) {
        self.send(StoreEvent::Offer { attempt, result });
    }

    /// The answer to a call of the lease recipe.
    pub fn lease(&self, attempt: Attempt, result: Result<lease::Answer, Failure>) {
        self.send(StoreEvent::Lease { attempt, result });
    }

    /// The watch that this call left has fired: the node was deleted, or changed in another way.
    pub fn fired(&self, attempt: Attempt, gone: bool) {
        self.send(StoreEvent::Fired { attempt, gone });
    }

    /// Waits until no task hears these reports any more: the candidate has ended.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    /// No session will be opened any more. Behind all that was reported before, and never dropped.
    pub(crate) async fn over(&self) {
        // Closed: the candidate has ended.
        drop(self.sender.send(StoreEvent::Over).await);
    }

    fn send(&self, event: StoreEvent) {
        // Closed: the candidate has ended. Full: it has not run for very long. To the recipe, an answer that is
        // dropped then is one that never comes.
        if let Err(TrySendError::Full(event)) = self.sender.try_send(event) {
            tracing::error!(
                ?event,
                "the candidate has not run for long: a report of its store is dropped"
            );
        }
    }
}

/// How many reports can wait: a few calls are under way at a time, and a session changes at its pace.
const CAPACITY: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// While the candidate does not run, answers and session events wait up to a bound; renewals leave room.
    #[test]
    fn what_waits_to_be_heard_is_bounded() {
        let begun = Instant::now();
        let (report, mut events) = Reporter::new(Origin::start());
        let session = SessionId(1);
        for _ in 0..10 * CAPACITY {
            report.renewed(session, begun);
        }
        assert!(events.len() <= CAPACITY / 2 + 1, "{}", events.len());
        for attempt in 0..10 * CAPACITY as u64 {
            report.offer(Attempt(attempt), Ok(offer::Answer::Done));
        }
        assert_eq!(events.len(), CAPACITY);
        // Once it runs again, it hears what is reported from then on.
        while events.try_recv().is_ok() {}
        report.expired();
        assert!(matches!(events.try_recv(), Ok(StoreEvent::Session(Session::Expired))));
    }
}
