//! What a store has to do for an election.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;
use quorate_core::recipe::offer::Session;
use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use quorate_core::time::Instant as CoreInstant;
use thiserror::Error;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::contender::Contender;
use crate::settings::{Settings, StartError};

/// A store, as elections use it.
///
/// What is needed of it: a node or key that is created only if it is absent, that vanishes with the
/// session of whoever created it, and that tells those who watch it. It decides nothing: it does what is
/// called for, and says with its [`Teller`] what happened.
pub trait Store: Clone + Send + Sync + 'static {
    /// Where it is, and what else it has to know.
    type Config: Send;

    /// A handle, without a connection yet, and what the candidate has to know.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work.
    fn open(config: Self::Config) -> Result<(Self, Settings), StartError>;

    /// Keeps a session, and opens another when it has ended, for as long as the future is there. Says how
    /// it is with it, and each time the store has confirmed it.
    fn keep_session(&self, tell: Teller) -> impl Future<Output = ()> + Send;

    /// Makes a call of the offer recipe. Ready when the request is on its way, behind all earlier ones;
    /// the answer is told once.
    fn offer(
        &self,
        attempt: Attempt,
        call: offer::Call,
        tell: &Teller,
    ) -> impl Future<Output = ()> + Send;

    /// Makes a call of the lease recipe, in the same way.
    fn lease(
        &self,
        attempt: Attempt,
        call: lease::Call,
        tell: &Teller,
    ) -> impl Future<Output = ()> + Send;

    /// Who competes now, the leader first; the leader alone if `all` is not asked for.
    fn contenders(
        &self,
        all: bool,
    ) -> impl Future<Output = Result<Vec<Contender>, StoreError>> + Send;

    /// Ends the session: what hangs on it goes.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// Why the store does not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// It did not answer in time.
    #[error("the store did not answer within {0:?}")]
    Elapsed(Duration),
    /// It does not allow what an election needs.
    #[error("the store does not allow it")]
    Denied,
    /// It does not take us for whom we say we are.
    #[error("authentication failed")]
    Unauthenticated,
    /// The session is over; another one is opened.
    #[error("the session is over")]
    Expired,
    /// Something else.
    #[error("the store refused it: {0}")]
    Refused(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unknown => Self::Unreachable(failure.to_string()),
            Failure::Denied => Self::Denied,
            Failure::Unauthenticated => Self::Unauthenticated,
            Failure::Expired => Self::Expired,
            Failure::Absent | Failure::Exists | Failure::Conflict | Failure::Rejected => {
                Self::Refused(failure.to_string())
            }
        }
    }
}

/// What a store has to say.
#[derive(Debug)]
pub(crate) enum Happened {
    Session(Session),
    Trouble(StoreError),
    Offer { attempt: Attempt, result: Result<offer::Answer, Failure> },
    Lease { attempt: Attempt, result: Result<lease::Answer, Failure> },
    Fired { attempt: Attempt, gone: bool },
}

/// How a [`Store`] says what happened. One that nobody listens to any more takes it in silence.
#[derive(Clone, Debug)]
pub struct Teller {
    pub(crate) sender: Sender<Happened>,
    /// The origin of the core's time.
    pub(crate) origin: Instant,
}

impl Teller {
    /// One for whoever asks once and does not compete.
    pub(crate) fn for_one_question() -> (Self, Receiver<Happened>) {
        let (sender, heard) = channel(HEARD_MAX);
        (Self { sender, origin: Instant::now() }, heard)
    }

    /// The session is connected: a new one, or the same again. `timeout` is what the store agreed to.
    pub fn connected(&self, session: SessionId, timeout: Duration) {
        self.say(Happened::Session(Session::Connected { session, timeout }));
    }

    /// The connection is lost, the session perhaps not.
    pub fn suspended(&self) {
        self.say(Happened::Session(Session::Suspended));
    }

    /// The session is over for good.
    pub fn expired(&self) {
        self.say(Happened::Session(Session::Expired));
    }

    /// The store counts what was sent at `sent` as keeping the session alive, or something later. With the lease
    /// recipe: and nothing later for sure, though it has been answered. A store that counts what it answers does
    /// not say it there.
    pub fn renewed(&self, session: SessionId, sent: Instant) {
        // Nobody has listened for long: a renewal that is not heard only confirms less.
        if self.sender.capacity() < HEARD_MAX / 2 {
            return;
        }
        let sent = CoreInstant::from_origin(sent.saturating_duration_since(self.origin));
        self.say(Happened::Session(Session::Renewed { session, sent }));
    }

    /// There is no session, and why.
    pub fn trouble(&self, error: StoreError) {
        self.say(Happened::Trouble(error));
    }

    /// The answer to a call of the offer recipe.
    pub fn offer(&self, attempt: Attempt, result: Result<offer::Answer, Failure>) {
        self.say(Happened::Offer { attempt, result });
    }

    /// The answer to a call of the lease recipe.
    pub fn lease(&self, attempt: Attempt, result: Result<lease::Answer, Failure>) {
        self.say(Happened::Lease { attempt, result });
    }

    /// The watch that this call left has fired: the node is gone, or something else has become of it.
    pub fn fired(&self, attempt: Attempt, gone: bool) {
        self.say(Happened::Fired { attempt, gone });
    }

    fn say(&self, happened: Happened) {
        // Closed: the candidate has ended. Full: it was not let run for very long; an answer that is lost then
        // is one that the recipe waits for in vain, as for any other.
        if let Err(TrySendError::Full(lost)) = self.sender.try_send(happened) {
            tracing::error!(?lost, "nobody has listened for long");
        }
    }
}

/// How much can wait to be heard: a few calls are under way at a time, and a session changes at its pace.
pub(crate) const HEARD_MAX: usize = 1024;

/// Begins the work of a call: its first part is done when this returns, and with it what it sends, or its
/// place in a row of those that wait. The rest is done by a task of its own.
pub async fn begin(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    if poll_once(&mut work).await.is_none() {
        // Detached: it ends with the session at the latest.
        drop(tokio::spawn(work));
    }
}

/// How long to wait before the next attempt to reach a store: longer each time, and not all at once.
#[derive(Clone, Debug)]
pub struct Pace {
    next: Duration,
}

impl Pace {
    const LEAST: Duration = Duration::from_millis(100);
    const MOST: Duration = Duration::from_secs(5);

    /// From 100 ms to 5 s.
    pub const fn new() -> Self {
        Self { next: Self::LEAST }
    }

    /// Waits: three quarters to five quarters of what is due.
    pub async fn rest(&mut self) {
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        let share = 0.75 + 0.5 * f64::from(random) / f64::from(u32::MAX);
        let rest = self.next.mul_f64(share);
        self.next = (self.next * 2).min(Self::MOST);
        tokio::time::sleep(rest).await;
    }

    /// It was reached.
    pub const fn reset(&mut self) {
        self.next = Self::LEAST;
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a store that talks and is not listened to, answers and news wait up to a bound; renewals leave room.
    #[test]
    fn what_waits_to_be_heard_is_bounded() {
        let (tell, mut heard) = Teller::for_one_question();
        let session = SessionId(1);
        let begun = tell.origin;
        for _ in 0..10 * HEARD_MAX {
            tell.renewed(session, begun);
        }
        assert!(heard.len() <= HEARD_MAX / 2 + 1, "{}", heard.len());
        for attempt in 0..10 * HEARD_MAX as u64 {
            tell.offer(Attempt(attempt), Ok(offer::Answer::Done));
        }
        assert_eq!(heard.len(), HEARD_MAX);
        // Whoever listens again hears what is said from then on.
        while heard.try_recv().is_ok() {}
        tell.expired();
        assert!(matches!(heard.try_recv(), Ok(Happened::Session(Session::Expired))));
    }
}
