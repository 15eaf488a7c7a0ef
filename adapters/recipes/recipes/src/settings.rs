//! What every candidate has to be told, whatever its store.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::recipe::offer::Naming;
use quorate_core::recipe::{ConfigError, lease, offer};
use thiserror::Error;

use crate::designation::Designation;

/// How a leader is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// Each candidate leaves an offer, and the oldest leads. One that goes wakes one: for many candidates.
    Offer(Naming),
    /// Whoever creates one key leads. When it goes all others are woken: for few candidates.
    Lease,
}

/// What every candidate has to be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who this is, for whoever asks who leads: a host name, an address, any bytes but none.
    pub identity: Bytes,
    /// How a leader is found.
    pub recipe: Recipe,
    /// After how much silence the store gives a candidate up. The store may have bounds of its own.
    pub session_timeout: Duration,
    /// How much earlier a leader stops by its own clock; a tenth of the session's time-out if none. It has
    /// to cover how far clocks run apart, and how long guarded work takes to end.
    pub margin: Option<Duration>,
    /// How long an answer of the store may take.
    pub deadline: Duration,
    /// Who says who leads while the store is out of reach; nobody if none.
    pub designation: Option<Designation>,
}

impl Settings {
    /// The usual: sessions of ten seconds, answers within five.
    pub fn new(identity: impl Into<Bytes>, recipe: Recipe) -> Self {
        Self {
            identity: identity.into(),
            recipe,
            session_timeout: Duration::from_secs(10),
            margin: None,
            deadline: Duration::from_secs(5),
            designation: None,
        }
    }

    /// The part that concerns offers. `guid` is nobody else's.
    pub(crate) fn offer(&self, naming: Naming, guid: u128) -> offer::Config {
        let mut config = offer::Config::new(self.identity.clone(), guid);
        config.naming = naming;
        config.margin = self.margin;
        config.call_deadline = Some(self.deadline);
        config
    }

    /// The part that concerns leases. The store has agreed on `duration`.
    pub(crate) fn lease(&self, duration: Duration, unique: u128) -> lease::Config {
        let mut config = lease::Config::new(self.identity.clone(), unique, duration);
        config.margin = self.margin;
        // What the store counts may be older than what it has answered.
        config.renew_every = Some(duration / 6);
        config.call_deadline = Some(self.deadline.min(duration / 3));
        config
    }
}

/// Why a candidate cannot start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// It is not said which store.
    #[error("no store to elect through: {0} is missing")]
    NoStore(&'static str),
    /// It is not said under which path or key.
    #[error("{path:?} is no place for an election: {reason}")]
    Path {
        /// What was said.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// The system gives no random numbers, which tell candidates apart.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
}
