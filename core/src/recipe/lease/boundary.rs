//! The boundary of the lease recipe: inputs and outputs of a candidate, its calls on the store, and their answers.

use core::time::Duration;

use bytes::Bytes;

use crate::recipe::boundary::{Attempt, ConfigError, Failure, Leader, LeadershipChange, Token};
use crate::recipe::lease::record::Record;
use crate::time::Instant;

/// The configuration of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The name by which others know this candidate; not empty.
    pub identity: Bytes,
    /// A number that no other candidate has, nor this one after a restart, and those that follow it, one for
    /// each leadership: the adapter draws it at random.
    pub unique: u128,
    /// Which part ends a lease that is not renewed.
    pub expiry: Expiry,
    /// How long a lease lasts that is not renewed.
    pub duration: Duration,
    /// By how much the holder stops before that; a tenth if none. It has to cover how far clocks run apart,
    /// and how long guarded work takes to end.
    pub margin: Option<Duration>,
    /// How long after a renewal the next one follows; a third of the duration if none.
    pub renew_every: Option<Duration>,
    /// How long we wait for an answer before we take it for lost; for ever if none.
    pub call_deadline: Option<Duration>,
    /// The back-off after the first failure of a row.
    pub backoff_min: Duration,
    /// The longest back-off between two attempts.
    pub backoff_max: Duration,
    /// After a lease has expired candidates come within this time, not all at once. After one that was
    /// released they come at once.
    pub jitter: Duration,
    /// Where the jitter begins.
    pub seed: u64,
}

impl Config {
    /// The defaults: back-off of 100 ms to a third of the duration, answers within that, jitter of a tenth of it.
    pub fn new(identity: impl Into<Bytes>, unique: u128, duration: Duration) -> Self {
        let third = duration / 3;
        Self {
            identity: identity.into(),
            unique,
            expiry: Expiry::Store,
            duration,
            margin: None,
            renew_every: None,
            call_deadline: Some(third),
            backoff_min: Duration::from_millis(100).min(third),
            backoff_max: third,
            jitter: duration / 10,
            seed: (unique >> 64) as u64,
        }
    }

    /// For how long after it was sent a renewal counts.
    pub(crate) fn relied_on(&self) -> Duration {
        self.duration.saturating_sub(self.margin.unwrap_or(self.duration / 10))
    }

    /// How long after a renewal the next one follows.
    pub(crate) fn period(&self) -> Duration {
        self.renew_every.unwrap_or(self.duration / 3)
    }

    /// Whether it can work.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.identity.is_empty() {
            return Err(ConfigError::NoIdentity);
        }
        if self.period().is_zero() || self.period() >= self.relied_on() {
            return Err(ConfigError::TooShort);
        }
        if self.backoff_min.is_zero() || self.backoff_min > self.backoff_max {
            return Err(ConfigError::Backoff);
        }
        Ok(())
    }
}

/// Which part ends a lease that is not renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expiry {
    /// The store: the key vanishes with a lease of etcd, a session of ZooKeeper or Consul.
    Store,
    /// The other candidates: the store knows compare-and-swap only (Kubernetes). Each counts the duration in
    /// the record from when it saw the record change, by its own monotonic clock, and then overwrites it.
    Observed,
}

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// When; never before the time of an earlier input.
    pub at: Instant,
    /// What.
    pub event: Event,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time has passed. Due when the candidate's deadline says so; a spurious one is harmless.
    Tick,
    /// Try to take the lease, and keep it.
    Start,
    /// Give it up. Answered by [`Output::Stopped`].
    Stop,
    /// All leadership guards on this candidate have been released, in answer to [`LeadershipChange::Release`] or
    /// [`LeadershipChange::Lost`].
    Released,
    /// The connection to the store is lost. Calls that fail say so too.
    Suspended,
    /// The session or lease that our key hangs on is over for good: the store said so.
    Expired,
    /// The store counts what was sent until then; of later calls that is not sure, even if they were answered. Not
    /// reported for a store that counts what it answers.
    Counted {
        /// When it was sent.
        sent: Instant,
    },
    /// A call was answered.
    Done {
        /// Which.
        attempt: Attempt,
        /// How.
        result: Result<Answer, Failure>,
    },
    /// The watch that a [`Call::Read`] left has fired; it does so once. Say it too when the watch may have
    /// been lost.
    Fired {
        /// Which call left it.
        attempt: Attempt,
        /// The key was deleted; otherwise it was written.
        gone: bool,
    },
}

/// The content of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// What was written.
    pub record: Record,
    /// When it was written last, by the count of the store: mzxid, modification revision.
    pub version: u64,
    /// When it was created, by the same count: czxid, create revision.
    pub created: u64,
}

impl Held {
    /// The leader; none if the key was given up.
    pub fn leader(&self) -> Option<Leader> {
        let identity = self.record.identity.clone();
        let leader = Leader { identity, token: self.token(), designated: false };
        Some(leader).filter(|_| !self.record.released)
    }

    /// The token of the leadership: the version of the write that took the key.
    pub(crate) const fn token(&self) -> Token {
        Token(if self.record.taken == 0 { self.version } else { self.record.taken })
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To [`Call::Read`]; none if there is no key.
    Found(Option<Held>),
    /// To [`Call::Put`] and [`Call::Renew`].
    Written {
        /// The version that the key has now.
        version: u64,
        /// When the key was created.
        created: u64,
    },
    /// To [`Call::Delete`].
    Done,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Call the store, and say [`Event::Done`] once.
    Call {
        /// Comes back with the answer.
        attempt: Attempt,
        /// What.
        call: Call,
    },
    /// To the guards.
    Leadership(LeadershipChange),
    /// To the program that listens: the leader by the key as it is now.
    Leads(Option<Leader>),
    /// Something has failed. For people: nothing needs to be done.
    Trouble {
        /// How.
        failure: Failure,
        /// After which back-off it is tried again.
        again: Option<Duration>,
    },
    /// The lease is given up, in answer to [`Event::Stop`].
    Stopped,
}

/// A call on the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Read the key. What is no [`Record`] is a record of holder 0 whose identity is what was found.
    Read {
        /// Leave a watch for the next change after what was read. Where there is no key there need be none.
        watch: bool,
    },
    /// Write the key, if it is as expected; else [`Failure::Conflict`].
    ///
    /// With [`Expiry::Store`] the key hangs on a lease or session whose whole duration begins when this call
    /// was handed out, or later; a record that is released stays on what it hangs on.
    Put {
        /// What.
        record: Record,
        /// Of which version it has to be; none if it must not be there.
        expect: Option<u64>,
    },
    /// Renew it: with [`Expiry::Store`] what the key hangs on, which changes no version; else the key itself,
    /// as [`Call::Put`] does.
    Renew {
        /// Of which version it has to be.
        version: u64,
        /// What is in it.
        record: Record,
    },
    /// Delete the key, if it is of this version; else [`Failure::Conflict`].
    Delete {
        /// Which.
        version: u64,
    },
}
