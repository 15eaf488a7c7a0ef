//! Sessions with the ensemble, one after another, and their heartbeats.
//!
//! The client library pings by itself and does not say when. So each session has heartbeats of its own:
//! a `sync`, which a server that has lost its leader cannot answer. Which of them count: see [`Beats`].

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use quorate_recipes::{Contender, Pace, Settings, StartError, Store, StoreError, Teller};
use zookeeper_client::{Client, Error, SessionState, StateWatcher};

use crate::beats::Beats;
use crate::config::Config;
use crate::error::store_error;
use crate::{calls, keys};

/// A ZooKeeper ensemble, as elections use it.
#[derive(Clone, Debug)]
pub struct ZooKeeper {
    config: Arc<Config>,
    /// The present session.
    client: Arc<Mutex<Option<Client>>>,
    /// Its heartbeats.
    beats: Arc<Mutex<Beats>>,
}

impl Store for ZooKeeper {
    type Config = Config;

    fn open(config: Config) -> Result<(Self, Settings), StartError> {
        let (config, settings) = config.checked()?;
        let beats = Beats::new(Instant::now(), config.session_time());
        let beats = Arc::new(Mutex::new(beats));
        Ok((Self { config: Arc::new(config), client: Arc::default(), beats }, settings))
    }

    async fn keep_session(&self, tell: Teller) {
        let mut pace = Pace::new();
        loop {
            let sent = Instant::now();
            match self.connect().await {
                Ok(client) => {
                    pace.reset();
                    self.set_client(Some(client.clone()));
                    self.keep(client, sent, &tell).await;
                    self.set_client(None);
                    tell.expired();
                }
                Err(Error::NoHosts) => tell.trouble(no_session(&self.config)),
                Err(error) => tell.trouble(store_error(error)),
            }
            pace.rest().await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: offer::Call, tell: &Teller) {
        match self.client() {
            Some(client) => calls::offer(&self.config, client, attempt, call, tell.clone()).await,
            None => tell.offer(attempt, Err(Failure::Expired)),
        }
    }

    async fn lease(&self, attempt: Attempt, call: lease::Call, tell: &Teller) {
        match self.client() {
            Some(client) => {
                let (config, beats) = (&self.config, &self.beats);
                keys::lease(config, beats, client, attempt, call, tell.clone()).await;
            }
            None => tell.lease(attempt, Err(Failure::Expired)),
        }
    }

    async fn contenders(&self, all: bool) -> Result<Vec<Contender>, StoreError> {
        let client = self.client().ok_or_else(|| no_session(&self.config))?;
        if self.config.is_lease() {
            keys::contenders(&self.config, &client).await
        } else {
            calls::contenders(&self.config, &client, all).await
        }
    }

    async fn close(&self) {
        let Some(client) = self.client() else { return };
        let mut states = client.state_watcher();
        self.set_client(None);
        drop(client);
        // The last handle is gone, so the library asks the ensemble to close the session.
        let closed = async { while !states.changed().await.is_terminated() {} };
        drop(tokio::time::timeout(CLOSING_TIME, closed).await);
    }
}

/// How long the ensemble may take to close a session; beyond that it ends it by itself.
const CLOSING_TIME: Duration = Duration::from_secs(1);

impl ZooKeeper {
    fn connect(&self) -> impl Future<Output = Result<Client, Error>> + Send {
        // When no host answers that is known, and tried again at our own pace.
        let connector = Client::connector()
            .with_session_timeout(self.config.session_time())
            .with_fail_eagerly();
        let connector = self
            .config
            .credentials
            .iter()
            .fold(connector, |connector, (scheme, proof)| connector.with_auth(scheme, proof));
        let hosts = self.config.hosts.clone();
        async move { connector.connect(&hosts).await }
    }

    /// Watches over a session until it is over. It was asked for at `sent`, or later.
    async fn keep(&self, client: Client, sent: Instant, tell: &Teller) {
        let session = SessionId(client.session_id().0);
        let timeout = client.session_timeout();
        let states = client.state_watcher();
        *self.beats() = Beats::new(sent, timeout);
        tell.connected(session, timeout);
        tell.renewed(session, sent);
        let beats = async {
            loop {
                let sent = Instant::now();
                if client.sync(&self.config.root).await.is_ok() {
                    let counted = {
                        let mut beats = self.beats();
                        beats.answered(sent, Instant::now());
                        beats.counted(sent)
                    };
                    tell.renewed(session, counted);
                }
                let pause = self.beats().pause();
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            () = beats => {}
            () = until_over(states, session, timeout, tell) => {}
        }
    }

    fn client(&self) -> Option<Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_client(&self, client: Option<Client>) {
        let before = {
            let mut present = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, client)
        };
        drop(before);
    }
}

/// Says what becomes of a session, until it is over.
async fn until_over(
    mut states: StateWatcher,
    session: SessionId,
    timeout: Duration,
    tell: &Teller,
) {
    loop {
        match states.changed().await {
            SessionState::Disconnected => tell.suspended(),
            // Servers that only read are not asked for.
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                tell.connected(session, timeout);
            }
            SessionState::AuthFailed => return tell.trouble(StoreError::Unauthenticated),
            SessionState::Expired | SessionState::Closed => return,
        }
    }
}

fn no_session(config: &Config) -> StoreError {
    StoreError::Unreachable(format!("no session with any of {}", config.hosts))
}
