//! The settings of a candidate that do not depend on its store.

use std::time::Duration;

use bytes::Bytes;
use quorate_core::recipe::offer::Naming;
use quorate_core::recipe::{lease, offer};

use crate::designation::Designation;

/// How a leader is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// Each candidate leaves an offer, and the oldest leads. One that goes wakes one: for many candidates.
    Offer(Naming),
    /// The candidate that creates one key leads. When it goes, all others are woken: for few candidates.
    Lease,
}

/// The settings of a candidate that do not depend on its store.
///
/// An identity alone stands for the defaults: where settings are asked for, `"host-7"` will do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name by which others know this candidate: a host name, an address, any bytes but none.
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
    /// Where an operator may designate a leader while the store is out of reach; not at all if none.
    pub designation: Option<Designation>,
}

impl Settings {
    /// The defaults: the offer recipe, sessions of ten seconds, answers within five.
    pub fn new(identity: impl Into<Bytes>) -> Self {
        Self {
            identity: identity.into(),
            recipe: Recipe::Offer(Naming::default()),
            session_timeout: Duration::from_secs(10),
            margin: None,
            deadline: Duration::from_secs(5),
            designation: None,
        }
    }

    /// The lease recipe: the candidate that creates one key leads, and all others watch it.
    #[must_use]
    pub const fn lease(mut self) -> Self {
        self.recipe = Recipe::Lease;
        self
    }

    /// Sets the [time-out](field@Self::session_timeout) of sessions.
    #[must_use]
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// Sets the [margin](field@Self::margin) before the end of a session.
    #[must_use]
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// Sets how long an answer of the store may take.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets where an operator may designate a leader.
    #[must_use]
    pub fn designation(mut self, designation: Designation) -> Self {
        self.designation = Some(designation);
        self
    }

    /// The part that concerns offers. No other candidate has this `guid`.
    pub(crate) fn of_offers(&self, naming: Naming, guid: u128) -> offer::Config {
        let mut config = offer::Config::new(self.identity.clone(), guid);
        config.naming = naming;
        config.margin = self.margin;
        config.call_deadline = Some(self.deadline);
        config
    }

    /// The part that concerns leases. The store has agreed on `duration`; no other candidate has this `unique`.
    pub(crate) fn of_leases(&self, duration: Duration, unique: u128) -> lease::Config {
        let mut config = lease::Config::new(self.identity.clone(), unique, duration);
        config.margin = self.margin;
        // What the store counts may be older than what it has answered.
        config.renew_every = Some(duration / 6);
        config.call_deadline = Some(self.deadline.min(duration / 3));
        config
    }
}

impl From<&str> for Settings {
    fn from(identity: &str) -> Self {
        Self::new(identity.to_owned())
    }
}

impl From<String> for Settings {
    fn from(identity: String) -> Self {
        Self::new(identity)
    }
}

impl From<Vec<u8>> for Settings {
    fn from(identity: Vec<u8>) -> Self {
        Self::new(identity)
    }
}

impl From<Bytes> for Settings {
    fn from(identity: Bytes) -> Self {
        Self::new(identity)
    }
}
