//! A session with the ensemble, and its heartbeats: one `sync` after another, however many candidates stand in it.
//!
//! The client library pings by itself and does not report when. So each session has heartbeats of its own:
//! a `sync`, which a server that has lost its leader cannot answer. Which of them count: see [`Heartbeats`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_core::recipe::SessionId;
use quorate_recipes::{Reporter, StoreError, now};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use zookeeper_client::{Client, SessionState, StateWatcher};

use crate::heartbeats::Heartbeats;

/// The session of a program's own client, for elections in it: [`Config::on`](crate::Config::on).
///
/// ```no_run
/// use quorate_zookeeper::zookeeper_client::Client;
/// use quorate_zookeeper::{Candidate, Config, Session};
///
/// # async fn seats(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let session = Session::of(&client);
/// let mut seats = Vec::new();
/// for partition in 0..12 {
///     let seat = Config::on(&session, format!("/partitions/{partition}"), "host-7");
///     seats.push(Candidate::start(seat).await?);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Any number of candidates can stand in one session. Each costs a node and its watches, a leader one and a candidate
/// that waits two; the heartbeats are the session's, some seven in each time-out. All their leaderships end with the
/// session, and so do the candidates: the program opens another session, and starts others.
///
/// Nothing here closes the session. As always with this client, it is closed when its last handle is dropped; this and
/// each candidate that has not ended have one. Clones are of the same session, and share its heartbeats.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    beats: Arc<Mutex<Heartbeats>>,
    /// When the newest heartbeat was sent that ZooKeeper's leader is sure to have counted.
    counted: watch::Receiver<Option<Instant>>,
    keeper: AbortHandle,
}

impl Session {
    /// The session of this client. When it was opened is not known, so no candidate in it leads before two heartbeats
    /// are answered: a quarter of the session's time-out.
    ///
    /// # Panics
    ///
    /// Outside of a runtime of tokio's.
    pub fn of(client: &Client) -> Self {
        Self::new(client.clone(), None)
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// One that was requested at `opened`, or later; none if that is not known.
    pub(crate) fn new(client: Client, opened: Option<Instant>) -> Self {
        let beats = Heartbeats::new(opened, client.session_timeout());
        let beats = Arc::new(Mutex::new(beats));
        let (told, counted) = watch::channel(opened);
        let keeper = tokio::spawn(beat(client.clone(), Arc::clone(&beats), told)).abort_handle();
        Self { inner: Arc::new(Inner { client, beats, counted, keeper }) }
    }

    /// When the newest heartbeat was sent that ZooKeeper's leader counts, now that something is answered that was sent at
    /// `sent` and has passed the leader.
    pub(crate) fn counted(&self, sent: Instant) -> Option<Instant> {
        locked(&self.inner.beats).counted(sent)
    }

    pub(crate) fn id(&self) -> SessionId {
        SessionId(self.client().session_id().0)
    }

    /// Reports what becomes of it, until it is over. With `counted_first` that it is connected is not reported before
    /// a heartbeat counts.
    pub(crate) async fn report(&self, report: &Reporter, counted_first: bool) {
        let states = self.client().state_watcher();
        let mut counted = self.inner.counted.clone();
        let renewals = async {
            loop {
                if let Some(sent) = *counted.borrow_and_update() {
                    report.renewed(self.id(), sent);
                }
                if counted.changed().await.is_err() {
                    // No more heartbeats: it is about to be over.
                    return std::future::pending().await;
                }
            }
        };
        let mut first = self.inner.counted.clone();
        let becomes = async {
            if counted_first && first.wait_for(Option::is_some).await.is_err() {
                return;
            }
            until_over(states.clone(), self.id(), self.client().session_timeout(), report).await;
        };
        tokio::select! {
            // What it is before how long that counts.
            biased;
            () = becomes => {}
            () = over(states.clone()), if counted_first => {}
            () = renewals => {}
        }
    }
}

/// Sends heartbeats for as long as the future lives.
async fn beat(client: Client, beats: Arc<Mutex<Heartbeats>>, told: watch::Sender<Option<Instant>>) {
    loop {
        let sent = now();
        if client.sync("/").await.is_ok() {
            let counted = {
                let mut beats = locked(&beats);
                beats.answered(sent, now());
                beats.counted(sent)
            };
            // Each of them is news: what was reported before may have come while the candidate was disconnected.
            told.send_replace(counted);
        }
        let pause = locked(&beats).pause();
        tokio::time::sleep(pause).await;
    }
}

/// Reports what becomes of a session, until it is over.
async fn until_over(
    mut states: StateWatcher,
    session: SessionId,
    timeout: Duration,
    report: &Reporter,
) {
    let mut state = states.state();
    loop {
        match state {
            // A server that can only read has no leader that would count anything.
            SessionState::Disconnected | SessionState::ConnectedReadOnly => report.suspended(),
            SessionState::SyncConnected => report.connected(session, timeout),
            SessionState::AuthFailed => return report.trouble(StoreError::Unauthenticated),
            SessionState::Expired | SessionState::Closed => return,
        }
        state = states.changed().await;
    }
}

async fn over(mut states: StateWatcher) {
    let mut state = states.state();
    while !state.is_terminated() {
        state = states.changed().await;
    }
}

fn locked(beats: &Mutex<Heartbeats>) -> MutexGuard<'_, Heartbeats> {
    beats.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It has a handle of the client.
        self.keeper.abort();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}
