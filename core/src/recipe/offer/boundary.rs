//! The boundary of the offer recipe: inputs and outputs of a candidate, its calls on the store, and their answers.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::recipe::boundary::{Attempt, ConfigError, Failure, LeadershipChange, SessionId, Token};
use crate::recipe::offer::names::{Entry, Naming};
use crate::time::Instant;

/// The configuration of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The name by which others know this candidate; not empty. LeaderElectionSupport: the host name.
    pub identity: Bytes,
    /// A number that no other candidate has, nor this one after a restart: the adapter draws it.
    pub guid: u128,
    /// How offers are called.
    pub naming: Naming,
    /// By how much we stop relying on a session before the store may end it; a tenth of its timeout if none.
    ///
    /// It has to cover how far clocks run apart. The adapter that reports [`Session::Renewed`] has to exclude sessions
    /// that the store no longer keeps alive: a follower of ZooKeeper that has lost its leader answers pings for
    /// up to `syncLimit` ticks.
    pub margin: Option<Duration>,
    /// How long we wait for an answer before we take it for lost; for ever if none.
    pub call_deadline: Option<Duration>,
    /// The back-off after the first failure of a row.
    pub backoff_min: Duration,
    /// The longest back-off between two attempts.
    pub backoff_max: Duration,
    /// Whether to start again after a failure. Otherwise a candidate that has failed waits for `Start`.
    pub restart: bool,
    /// Where the jitter begins.
    pub seed: u64,
}

impl Config {
    /// The defaults: back-off of 100 ms to 10 s, answers within 10 s, another attempt after failures.
    pub fn new(identity: impl Into<Bytes>, guid: u128) -> Self {
        Self {
            identity: identity.into(),
            guid,
            naming: Naming::default(),
            margin: None,
            call_deadline: Some(Duration::from_secs(10)),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            restart: true,
            seed: (guid >> 64) as u64,
        }
    }

    /// Whether it can work.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.identity.is_empty() {
            return Err(ConfigError::NoIdentity);
        }
        if self.backoff_min.is_zero() || self.backoff_min > self.backoff_max {
            return Err(ConfigError::Backoff);
        }
        Ok(())
    }
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
    /// Make an offer, and keep one.
    Start,
    /// Withdraw it. Answered by [`Output::Stopped`].
    Stop,
    /// All leadership guards on this candidate have been released, in answer to [`LeadershipChange::Release`] or
    /// [`LeadershipChange::Lost`].
    Released,
    /// Something about the session.
    Session(Session),
    /// A call was answered.
    Done {
        /// Which.
        attempt: Attempt,
        /// How.
        result: Result<Answer, Failure>,
    },
    /// The watch that a [`Call::Read`] left has fired; it does so once.
    Fired {
        /// Which call left it.
        attempt: Attempt,
        /// The node was deleted; otherwise something else about it has changed.
        gone: bool,
    },
}

/// An event of the session with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Session {
    /// It is connected: for the first time, again, or a new one is.
    Connected {
        /// Which.
        session: SessionId,
        /// After how much silence the store ends it, as negotiated.
        timeout: Duration,
    },
    /// The connection is lost; the store keeps the session for a while.
    Suspended,
    /// It is over for good, and all of its nodes go with it: the store said so, or we have closed it.
    Expired,
    /// The store has answered something that keeps the session alive.
    Renewed {
        /// Which.
        session: SessionId,
        /// When what it answered was sent, or earlier. When the answer came means nothing.
        sent: Instant,
    },
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It is done: [`Call::EnsureRoot`], [`Call::Delete`].
    Done,
    /// To [`Call::Create`].
    Created {
        /// The name that the store gave, without the path.
        name: String,
    },
    /// To [`Call::List`]: the children of the root, in any order.
    Listed(Vec<Entry>),
    /// To [`Call::Read`].
    Read {
        /// What is in it.
        data: Bytes,
        /// The session with which it goes; none if it stays.
        owner: Option<SessionId>,
        /// When it was created, by the count of the store: czxid, create revision.
        created: Token,
    },
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Call the store, and say [`Event::Done`] once. All calls go out in order on the connection of the
    /// session.
    Call {
        /// Comes back with the answer.
        attempt: Attempt,
        /// What.
        call: Call,
    },
    /// To the guards.
    Leadership(LeadershipChange),
    /// To the program that listens.
    Notice(Notice),
    /// Something has failed. For people: nothing needs to be done.
    Trouble {
        /// How.
        failure: Failure,
        /// After which back-off it is tried again; none if it waits for the session, or for `Start`.
        again: Option<Duration>,
    },
    /// The offer is withdrawn, in answer to [`Event::Stop`].
    Stopped,
}

/// A call on the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Create the root and what is above it, as persistent nodes. Done too if they are there.
    EnsureRoot,
    /// Create a node under the root that goes with the session.
    Create {
        /// In which; if that is not the present one: [`Failure::Expired`].
        session: SessionId,
        /// What the name begins with; the store adds its counter. The whole name with [`Naming::Lease`].
        name: String,
        /// What is in it: the identity.
        data: Bytes,
    },
    /// List the children of the root. [`Failure::Absent`] if there is no root.
    List {
        /// Nothing that the store did before may be missing: ask its leader (ZooKeeper's `sync`) first.
        fresh: bool,
    },
    /// Read a node.
    Read {
        /// Its name, without the path.
        name: String,
        /// Leave a watch, if it is there. Nothing stays behind where it is not: a watch for a node to appear
        /// would stay for ever.
        watch: bool,
    },
    /// Delete a node, whatever its version. If it is not there: [`Failure::Absent`], which is as good as done.
    Delete {
        /// Its name, without the path.
        name: String,
        /// When the one that is meant was created, if we have read it. With [`Naming::Lease`] that is always said,
        /// and a later one of this name has to stay: a call that arrives late, behind the next create, would
        /// end the leadership that rests on that. Names that the store numbers do not come back.
        created: Option<Token>,
    },
}

/// The events of LeaderElectionSupport, in the order in which they occur.
///
/// ```text
///   Start  OfferStart OfferComplete  DetermineStart DetermineComplete ─┬─► ElectedStart ElectedComplete
///                                          ▲                           └─► ReadyStart ReadyComplete ─┐
///                                          └───────────── the neighbour has gone ◄───────────────────┘
///   Failed                 whenever something fails for good
///   StopStart StopComplete
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// It begins.
    Start,
    /// An offer is about to be made.
    OfferStart,
    /// It is made.
    OfferComplete,
    /// Our place in the row is looked for.
    DetermineStart,
    /// It is known.
    DetermineComplete,
    /// We are the first.
    ElectedStart,
    /// We lead; the guards have been told.
    ElectedComplete,
    /// We are not the first, and our neighbour is there.
    ReadyStart,
    /// We wait for our neighbour to go.
    ReadyComplete,
    /// The session was lost, or the store refuses us.
    Failed,
    /// The offer is about to be withdrawn.
    StopStart,
    /// It is withdrawn.
    StopComplete,
}

/// The state of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It has not begun, or has ended.
    Stop,
    /// It waits for a session, or for the end of an earlier leadership.
    Start,
    /// It makes an offer.
    Offer,
    /// It looks for its place in the row.
    Determine,
    /// It leads.
    Elected,
    /// It waits for its neighbour to go.
    Ready,
    /// It has failed.
    Failed,
}
