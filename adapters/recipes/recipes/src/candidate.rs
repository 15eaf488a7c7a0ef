//! The handle of a candidate: what programs hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_leadership::{LeadershipError, LeadershipGate};
use tokio::sync::{broadcast, mpsc, watch};

use crate::clock::Tokio;
use crate::contender::Contender;
use crate::designation::Designation;
use crate::error::{AskError, StartError, StoreError};
use crate::events::{Event, Events, Status};
use crate::members::Members;
use crate::run::{Run, Stop};
use crate::store::Store;

/// A candidate for leadership.
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
    gate: Arc<LeadershipGate>,
    /// Dropped with the last handle, which tells the task.
    stop: mpsc::Sender<Stop>,
    events: broadcast::WeakSender<Event>,
    status: watch::Receiver<Status>,
}

impl<S: Store> Candidate<S> {
    /// Starts to compete. It does not wait for the store: the store is tried until it is reached, and
    /// [`status`](Self::status) says what is in the way.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work.
    pub async fn start(config: S::Config) -> Result<Self, StartError> {
        let (store, settings) = S::open(config)?;
        let (deadline, designation) = (settings.deadline, settings.designation.clone());
        let (stop, stops) = mpsc::channel(1);
        let run = Run::new(store.clone(), &settings, stops)?;
        let gate = Arc::clone(&run.gate);
        let (events, status) = (run.publisher.events(), run.publisher.status());
        // Detached: it ends when it is told to, or with the last handle.
        drop(tokio::spawn(run.until_stopped()));
        Ok(Self {
            inner: Arc::new(Inner { store, deadline, designation, gate, stop, events, status }),
        })
    }

    /// Waits until this candidate leads. Dropping the future is harmless: nothing is taken before.
    ///
    /// When the last guard is dropped, the leadership is given up, and the candidate queues up again behind
    /// all others: a program that does not do a leader's work does not keep others from it.
    ///
    /// # Errors
    ///
    /// If the candidate is stopped before.
    pub async fn leadership(&self) -> Result<Leadership, LeadershipError> {
        self.inner.gate.acquire(&Tokio).await
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

    /// The leader, as the store says now; none if there is none. It costs two or three round trips, and
    /// may be out of date when it is here: to be shown or called, not to be relied upon.
    ///
    /// # Errors
    ///
    /// If the store does not answer within the deadline, or refuses.
    ///
    /// If the store is out of reach and a leader is [designated](crate::Designation), it is that one; its token
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

    /// All candidates, in the order in which they would come to lead. One read for each.
    ///
    /// # Errors
    ///
    /// As [`leader`](Self::leader).
    pub async fn candidates(&self) -> Result<Vec<Contender>, StoreError> {
        self.contenders(true).await
    }

    /// The members of this election: its candidates that are alive, now and at each change. In this candidate's session:
    /// while that is out of reach, or another is opened, reading fails.
    pub fn members(&self) -> Members<S> {
        Members::of(self.inner.store.clone(), self.inner.deadline)
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

    /// Its present status.
    pub fn status(&self) -> Status {
        self.inner.status.borrow().clone()
    }

    /// Waits until its status is so.
    pub async fn until(&self, wanted: impl FnMut(&Status) -> bool) -> Status {
        let mut status = self.inner.status.clone();
        let found = status.wait_for(wanted).await.map(|status| status.clone());
        // It has ended, and its status changes no more.
        found.unwrap_or_else(|_| self.status())
    }

    /// Stops competing: guards are revoked, the offer is taken back when they are gone, and the session is
    /// closed if it is the candidate's own. Ready when that is done. In a session that belongs to others, too, the offer
    /// is surely gone then: it may take as long as the store is out of reach, until the session is over at most.
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

/// The candidates that compete now, the leader first, for a caller that does not compete. Opens a session for that,
/// and closes it.
///
/// # Errors
///
/// If the configuration cannot work, if the store does not answer within the deadline, or refuses.
pub async fn ask<S: Store>(config: S::Config) -> Result<Vec<Contender>, AskError> {
    Ok(Members::<S>::open(config)?.ask().await?)
}

/// The right to do what only the leader may. See [`Candidate::leadership`].
pub type Leadership = quorate_leadership::Leadership<Tokio>;
