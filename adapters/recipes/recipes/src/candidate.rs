//! The handle of a candidate: what programs hold.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_core::recipe::offer::Session;
use quorate_leadership::{Clock, LeadershipError, LeadershipGate};
use thiserror::Error;
use tokio::sync::{broadcast, mpsc, watch};

use crate::contender::Contender;
use crate::designation::Designation;
use crate::news::{Events, Status};
use crate::run::{Run, Stop};
use crate::settings::StartError;
use crate::store::{Happened, Store, StoreError, Teller};

/// One that would lead, if the store makes it the leader.
///
/// It competes from when it starts until it is [stopped](Self::stop) or its last handle is dropped. Handles
/// are cheap to clone. It needs tokio's time and I/O drivers, and works on both of its runtimes.
pub struct Candidate<S: Store> {
    inner: Arc<Inner<S>>,
}

struct Inner<S> {
    store: S,
    deadline: Duration,
    designation: Option<Designation>,
    seat: Arc<LeadershipGate>,
    /// Dropped with the last handle, which tells the task.
    stop: mpsc::Sender<Stop>,
    events: broadcast::WeakSender<crate::news::Event>,
    status: watch::Receiver<Status>,
}

impl<S: Store> Candidate<S> {
    /// Starts to compete. That the store is there is not waited for: it is looked for until it is found,
    /// and [`status`](Self::status) says what is in the way.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work.
    pub async fn start(config: S::Config) -> Result<Self, StartError> {
        let (store, settings) = S::open(config)?;
        let (deadline, designation) = (settings.deadline, settings.designation.clone());
        let (stop, stops) = mpsc::channel(1);
        let run = Run::new(store.clone(), &settings, stops)?;
        let (seat, events, status) = (run.seat(), run.events(), run.status());
        // Detached: it ends when it is told to, or with the last handle.
        drop(tokio::spawn(run.until_stopped()));
        Ok(Self {
            inner: Arc::new(Inner { store, deadline, designation, seat, stop, events, status }),
        })
    }

    /// Waits until this candidate leads. Dropping the future is harmless: nothing is taken before.
    ///
    /// When the last guard is dropped, the leadership is given up, and the candidate queues up again behind
    /// all others: who does not do a leader's work does not keep others from it.
    ///
    /// # Errors
    ///
    /// If the candidate is stopped before.
    pub async fn leadership(&self) -> Result<Leadership, LeadershipError> {
        self.inner.seat.acquire(&Tokio).await
    }

    /// The same, for a limited time.
    ///
    /// # Errors
    ///
    /// If the candidate is stopped, or does not come to lead within `limit`.
    pub async fn leadership_within(&self, limit: Duration) -> Result<Leadership, LeadershipError> {
        let waited = tokio::time::timeout(limit, self.leadership()).await;
        waited.unwrap_or(Err(LeadershipError::Elapsed(limit)))
    }

    /// Who leads, as the store says now; none if nobody does. It costs two or three round trips, and
    /// may be out of date when it is here: to be shown or called, not to be relied upon.
    ///
    /// # Errors
    ///
    /// If the store does not answer within the deadline, or refuses.
    ///
    /// If the store is out of reach and somebody is [designated](crate::Designation), it is them; their token
    /// is marked.
    pub async fn leader(&self) -> Result<Option<Contender>, StoreError> {
        let error = match self.contenders(false).await {
            Ok(row) => return Ok(row.into_iter().next()),
            Err(error) => error,
        };
        let is_out_of_reach = matches!(error, StoreError::Unreachable(_) | StoreError::Elapsed(_));
        let designation = self.inner.designation.as_ref().filter(|_| is_out_of_reach);
        let Some(designation) = designation.cloned() else { return Err(error) };
        // A page takes its time.
        match tokio::task::spawn_blocking(move || designation.read()).await {
            Ok(Ok((leader, _))) => Ok(Some(leader)),
            Ok(Err(_)) | Err(_) => Err(error),
        }
    }

    /// Everybody who competes, in the order in which they would come to lead. One read for each.
    ///
    /// # Errors
    ///
    /// As [`leader`](Self::leader).
    pub async fn candidates(&self) -> Result<Vec<Contender>, StoreError> {
        self.contenders(true).await
    }

    async fn contenders(&self, all: bool) -> Result<Vec<Contender>, StoreError> {
        let Inner { store, deadline, status, .. } = &*self.inner;
        match tokio::time::timeout(*deadline, store.contenders(all)).await {
            Ok(answer) => answer,
            Err(_) => {
                let known = status.borrow().trouble.clone();
                Err(known.unwrap_or(StoreError::Elapsed(*deadline)))
            }
        }
    }

    /// What happens to this candidate, from now on.
    pub fn events(&self) -> Events {
        let receiver = self.inner.events.upgrade().map_or_else(
            // It has ended: a stream that has ended, too.
            || broadcast::channel(1).1,
            |sender| sender.subscribe(),
        );
        Events::new(receiver)
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        self.inner.status.borrow().clone()
    }

    /// Waits until it stands so.
    pub async fn until(&self, wanted: impl FnMut(&Status) -> bool) -> Status {
        let mut status = self.inner.status.clone();
        let found = status.wait_for(wanted).await.map(|status| status.clone());
        // It has ended, and stands so for ever.
        found.unwrap_or_else(|_| self.status())
    }

    /// Stops to compete: guards are told, the offer is taken back when they are gone, and the session is
    /// closed. Ready when that is done.
    pub async fn stop(&self) {
        // It has ended already, or is about to.
        drop(self.inner.stop.send(Stop).await);
        self.until(|status| status.ended).await;
    }
}

impl<S: Store> Clone for Candidate<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: Store> fmt::Debug for Candidate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// Who competes now, the leader first, for somebody who does not. Opens a session for that, and closes it.
///
/// # Errors
///
/// If the configuration cannot work, if the store does not answer within the deadline, or refuses.
pub async fn ask<S: Store>(config: S::Config) -> Result<Vec<Contender>, AskError> {
    let (store, settings) = S::open(config)?;
    let (tell, mut heard) = Teller::for_one_question();
    let session = {
        let store = store.clone();
        async move { store.keep_session(tell).await }
    };
    let mut trouble = None;
    let answer = async {
        while let Some(happened) = heard.recv().await {
            match happened {
                Happened::Session(Session::Connected { .. }) => break,
                Happened::Trouble(error) => trouble = Some(error),
                Happened::Session(_)
                | Happened::Offer { .. }
                | Happened::Lease { .. }
                | Happened::Fired { .. } => {}
            }
        }
        store.contenders(true).await
    };
    let answered = tokio::select! {
        answer = tokio::time::timeout(settings.deadline, answer) => answer,
        () = session => return Err(StoreError::Expired.into()),
    };
    store.close().await;
    match answered {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(trouble.unwrap_or(StoreError::Elapsed(settings.deadline)).into()),
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] StartError),
    /// The store does not do what it should.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The right to do what only the leader may. See [`Candidate::leadership`].
pub type Leadership = quorate_leadership::Leadership<Tokio>;

/// The clock of guards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

impl Clock for Tokio {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }
}
