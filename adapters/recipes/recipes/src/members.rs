//! The members of a group: which of its candidates are alive, and each change of that.
//!
//! ```text
//!   read, and leave a watch ──► the row, if it is another ──► the watch fires ──► read, and leave a watch ──► …
//! ```

use std::fmt;
use std::future::Future;
use std::time::Duration;

use quorate_core::recipe::offer::Session;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use crate::backoff::Backoff;
use crate::clock::Origin;
use crate::contender::Contender;
use crate::error::{StartError, StoreError};
use crate::reporter::{Reporter, StoreEvent};
use crate::store::{Change, Store};

/// The members of a group: the candidates of one election that are alive, in the order in which they would come to lead.
///
/// A candidate that takes no guard is a member and nothing else. Of changes that follow one another quickly only the
/// last may be seen. With the lease recipe the store shows the leader alone.
pub struct Members<S: Store> {
    store: S,
    deadline: Duration,
    /// The leader alone is watched.
    leader_only: bool,
    /// As it was given last.
    row: Option<Vec<Contender>>,
    /// Ready when the row may be another; none if it has to be read.
    change: Option<Change>,
    /// Reading has failed since it last did not.
    failed: bool,
    backoff: Backoff,
    /// The session, if it is for this alone.
    own: Option<Own>,
}

/// A session that is kept for an observer.
#[derive(Debug)]
struct Own {
    reports: Receiver<StoreEvent>,
    connected: bool,
    keeper: JoinHandle<()>,
}

impl<S: Store> Members<S> {
    /// For a program that is not a member itself. It opens a session for that, which ends when this is dropped, or
    /// later by its time-out; in which session it looks, if that is not its own, the configuration says.
    ///
    /// # Errors
    ///
    /// If the configuration cannot work. It does not wait for the store.
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio's.
    pub fn open(config: S::Config) -> Result<Self, StartError> {
        let (store, settings) = S::open(config)?;
        let (report, reports) = Reporter::new(Origin::start());
        let keeper = {
            let store = store.clone();
            tokio::spawn(async move {
                store.keep_session(report.clone()).await;
                report.over().await;
            })
        };
        let own = Own { reports, connected: false, keeper };
        Ok(Self { own: Some(own), ..Self::of(store, settings.deadline) })
    }

    /// Those of a candidate's election, in its session.
    pub(crate) fn of(store: S, deadline: Duration) -> Self {
        Self {
            store,
            deadline,
            leader_only: false,
            row: None,
            change: None,
            failed: false,
            backoff: Backoff::new(),
            own: None,
        }
    }

    /// The leader alone: a row of one, or of none if there is no leader. That others come or go wakes no waiter.
    #[must_use]
    pub fn leader_only(self) -> Self {
        Self { leader_only: true, row: None, change: None, ..self }
    }

    /// The row: at once when this is called first, and then as soon as it is another. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// If the store does not answer within the deadline, or refuses; [`StoreError::Expired`] if the session is over.
    /// When this is called again, it tries again, after a back-off that grows with each failure.
    pub async fn next(&mut self) -> Result<Vec<Contender>, StoreError> {
        loop {
            if self.failed {
                self.backoff.wait().await;
                self.failed = false;
            }
            let read = match self.until_changed().await {
                Ok(()) => self.read().await,
                Err(error) => Err(error),
            };
            match read {
                Ok((row, change)) => {
                    self.backoff.reset();
                    self.change = Some(change);
                    if self.row.as_ref() != Some(&row) {
                        self.row = Some(row.clone());
                        return Ok(row);
                    }
                }
                Err(error) => {
                    (self.change, self.failed) = (None, true);
                    return Err(match &mut self.own {
                        Some(own) => own.explained(error),
                        None => error,
                    });
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(Vec<Contender>, Change), StoreError> {
        let known = self.row.as_deref().unwrap_or_default();
        let read = self.store.watch(!self.leader_only, known);
        within(self.deadline, read).await
    }

    /// The row as the store says now, once; then the session is closed that was opened for this.
    pub(crate) async fn ask(mut self) -> Result<Vec<Contender>, StoreError> {
        let row = match self.until_changed().await {
            Ok(()) => within(self.deadline, self.store.contenders(!self.leader_only)).await,
            Err(error) => Err(error),
        };
        if let Some(own) = self.own.take() {
            drop(own);
            self.store.close().await;
        }
        row
    }

    /// Waits until the row has to be read.
    async fn until_changed(&mut self) -> Result<(), StoreError> {
        let deadline = self.deadline;
        if let Some(own) = self.own.as_mut().filter(|own| !own.connected) {
            own.until_connected(deadline).await?;
            self.change = None;
        }
        let Some(change) = &mut self.change else { return Ok(()) };
        match &mut self.own {
            None => change.await,
            Some(own) => tokio::select! {
                () = change => {}
                connected = own.until_connected_again() => connected?,
            },
        }
        self.change = None;
        Ok(())
    }
}

async fn within<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let done = tokio::time::timeout(deadline, work).await;
    done.unwrap_or(Err(StoreError::Elapsed(deadline)))
}

impl Own {
    /// Waits for the first connection of a session.
    async fn until_connected(&mut self, deadline: Duration) -> Result<(), StoreError> {
        let mut trouble = None;
        let connected = async {
            loop {
                match self.reports.recv().await {
                    Some(StoreEvent::Session(Session::Connected { .. })) => return Ok(()),
                    Some(StoreEvent::Trouble(error)) => trouble = Some(error),
                    Some(StoreEvent::Over) | None => return Err(StoreError::Expired),
                    Some(
                        StoreEvent::Session(_)
                        | StoreEvent::Offer { .. }
                        | StoreEvent::Lease { .. }
                        | StoreEvent::Fired { .. },
                    ) => {}
                }
            }
        };
        match tokio::time::timeout(deadline, connected).await {
            Ok(connected) => connected?,
            Err(_) => return Err(trouble.unwrap_or(StoreError::Elapsed(deadline))),
        }
        self.connected = true;
        Ok(())
    }

    /// Waits until the session was out of reach and is not any more: what changed meanwhile has to be read.
    async fn until_connected_again(&mut self) -> Result<(), StoreError> {
        loop {
            match self.reports.recv().await {
                Some(StoreEvent::Session(Session::Connected { .. })) => return Ok(()),
                Some(StoreEvent::Session(Session::Expired) | StoreEvent::Over) | None => {
                    self.connected = false;
                    return Err(StoreError::Expired);
                }
                Some(
                    StoreEvent::Session(Session::Suspended | Session::Renewed { .. })
                    | StoreEvent::Trouble(_)
                    | StoreEvent::Offer { .. }
                    | StoreEvent::Lease { .. }
                    | StoreEvent::Fired { .. },
                ) => {}
            }
        }
    }

    /// Why reading has failed: if the session is over, that is why.
    fn explained(&mut self, error: StoreError) -> StoreError {
        let mut is_over = error == StoreError::Expired;
        self.connected &= !is_over;
        while let Ok(report) = self.reports.try_recv() {
            match report {
                StoreEvent::Session(Session::Connected { .. }) => self.connected = true,
                StoreEvent::Session(Session::Expired) | StoreEvent::Over => {
                    (self.connected, is_over) = (false, true);
                }
                StoreEvent::Session(Session::Suspended | Session::Renewed { .. })
                | StoreEvent::Trouble(_)
                | StoreEvent::Offer { .. }
                | StoreEvent::Lease { .. }
                | StoreEvent::Fired { .. } => {}
            }
        }
        if is_over { StoreError::Expired } else { error }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl<S: Store> fmt::Debug for Members<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").field("row", &self.row).finish_non_exhaustive()
    }
}
