//! What a program can see of a candidate: its events as they occur, and its status.

use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_core::recipe::offer::Notice;
use quorate_core::recipe::{Failure, Loss};
use quorate_leadership::FencingToken;
use tokio::sync::broadcast::{self, Receiver};

use crate::error::StoreError;

/// Something that happened to a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// One of the twelve events of LeaderElectionSupport, in their order; with the offer recipe.
    Notice(Notice),
    /// It leads.
    Elected(FencingToken),
    /// It leads, designated by an operator.
    Designated(FencingToken),
    /// Contact with the store is lost: leadership is not confirmed.
    Suspended,
    /// It is confirmed again.
    Confirmed,
    /// It leads no more.
    Lost(Loss),
    /// The key has another holder now, or none; with the lease recipe.
    Leader(Option<Bytes>),
    /// The store does not do what it should. It is tried again, after `again` if that is known.
    Trouble {
        /// What is wrong.
        error: StoreError,
        /// After how long it is tried again; none if that is up to the session.
        again: Option<Duration>,
    },
}

impl Event {
    pub(crate) fn trouble(failure: Failure, again: Option<Duration>) -> Self {
        Self::Trouble { error: failure.into(), again }
    }
}

/// The events of a candidate, from when it was asked for them.
///
/// A reader that is too slow loses the oldest beyond 256, and can see how many.
#[derive(Debug)]
pub struct Events {
    receiver: Receiver<Event>,
    lost: u64,
}

impl Events {
    pub(crate) const fn new(receiver: Receiver<Event>) -> Self {
        Self { receiver, lost: 0 }
    }

    /// The next one; none when the candidate has ended.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.receiver.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Closed) => return None,
                Err(broadcast::error::RecvError::Lagged(lost)) => self.lost += lost,
            }
        }
    }

    /// How many were lost so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

/// The state of a candidate. The names are those of LeaderElectionSupport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It has not begun, or has ended.
    #[default]
    Stop,
    /// It waits for a session with the store.
    Start,
    /// It makes its offer.
    Offer,
    /// It looks which offer is the oldest.
    Determine,
    /// It leads.
    Elected,
    /// Another candidate leads, and it waits.
    Ready,
    /// The store has refused it, and it will try again.
    Failed,
}

/// The status of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Its state.
    pub state: State,
    /// Whether the store can be reached.
    pub connected: bool,
    /// The name of its offer, with the offer recipe.
    pub offer: Option<String>,
    /// The token of its leadership, if it leads; marked if it was designated by hand.
    pub leads: Option<FencingToken>,
    /// Until when no other candidate can lead, if it leads.
    pub until: Option<Instant>,
    /// What was wrong last, until something works again.
    pub trouble: Option<StoreError>,
    /// It has ended.
    pub ended: bool,
}
