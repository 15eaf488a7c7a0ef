//! Sessions with the ensemble, one after another, and their heartbeats.
//!
//! The client library pings by itself and does not report when. So each session has heartbeats of its own:
//! a `sync`, which a server that has lost its leader cannot answer. Which of them count: see [`Heartbeats`].

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use quorate_recipes::{Backoff, Contender, Reporter, Settings, StartError, Store, StoreError};
use zookeeper_client::{Client, Error, SessionState, StateWatcher};

use crate::config::Config;
use crate::error::store_error;
use crate::heartbeats::Heartbeats;
use crate::{lease_calls, offer_calls};

/// A ZooKeeper ensemble, as elections use it.
#[derive(Clone, Debug)]
pub struct ZooKeeper {
    config: Arc<Config>,
    /// The present session.
    client: Arc<Mutex<Option<Client>>>,
    /// Its heartbeats.
    heartbeats: Arc<Mutex<Heartbeats>>,
}

impl Store for ZooKeeper {
    type Config = Config;

    fn open(config: Config) -> Result<(Self, Settings), StartError> {
        let (config, settings) = config.checked()?;
        let heartbeats = Heartbeats::new(Instant::now(), settings.session_timeout);
        let heartbeats = Arc::new(Mutex::new(heartbeats));
        Ok((Self { config: Arc::new(config), client: Arc::default(), heartbeats }, settings))
    }

    async fn keep_session(&self, report: Reporter) {
        let mut backoff = Backoff::new();
        loop {
            let sent = Instant::now();
            match self.connect().await {
                Ok(client) => {
                    backoff.reset();
                    self.set_client(Some(client.clone()));
                    self.keep(client, sent, &report).await;
                    self.set_client(None);
                    report.expired();
                }
                Err(Error::NoHosts) => report.trouble(no_session(&self.config)),
                Err(error) => report.trouble(store_error(error)),
            }
            backoff.wait().await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: offer::Call, report: &Reporter) {
        match self.client() {
            Some(client) => {
                offer_calls::call(&self.config, client, attempt, call, report.clone()).await;
            }
            None => report.offer(attempt, Err(Failure::Expired)),
        }
    }

    async fn lease(&self, attempt: Attempt, call: lease::Call, report: &Reporter) {
        match self.client() {
            Some(client) => {
                let (config, heartbeats) = (&self.config, &self.heartbeats);
                lease_calls::call(config, heartbeats, client, attempt, call, report.clone()).await;
            }
            None => report.lease(attempt, Err(Failure::Expired)),
        }
    }

    async fn contenders(&self, all: bool) -> Result<Vec<Contender>, StoreError> {
        let client = self.client().ok_or_else(|| no_session(&self.config))?;
        if self.config.is_lease() {
            lease_calls::contenders(&self.config, &client).await
        } else {
            offer_calls::contenders(&self.config, &client, all).await
        }
    }

    async fn close(&self) {
        let Some(client) = self.client() else { return };
        let mut states = client.state_watcher();
        self.set_client(None);
        drop(client);
        // The last handle is dropped, so the library asks the ensemble to close the session.
        let closed = async { while !states.changed().await.is_terminated() {} };
        drop(tokio::time::timeout(CLOSING_TIME, closed).await);
    }
}

/// How long the ensemble may take to close a session; beyond that it ends it by itself.
const CLOSING_TIME: Duration = Duration::from_secs(1);

impl ZooKeeper {
    fn connect(&self) -> impl Future<Output = Result<Client, Error>> + Send {
        // When no host answers, this reports it and tries again after its own back-off.
        let connector = Client::connector()
            .with_session_timeout(self.config.settings.session_timeout)
            .with_fail_eagerly();
        let connector = self
            .config
            .credentials
            .iter()
            .fold(connector, |connector, (scheme, proof)| connector.with_auth(scheme, proof));
        let hosts = self.config.hosts.clone();
        async move { connector.connect(&hosts).await }
    }

    /// Keeps a session until it is over. It was requested at `sent`, or later.
    async fn keep(&self, client: Client, sent: Instant, report: &Reporter) {
        let session = SessionId(client.session_id().0);
        let timeout = client.session_timeout();
        let states = client.state_watcher();
        *self.heartbeats() = Heartbeats::new(sent, timeout);
        report.connected(session, timeout);
        report.renewed(session, sent);
        let heartbeats = async {
            loop {
                let sent = Instant::now();
                if client.sync(&self.config.root).await.is_ok() {
                    let counted = {
                        let mut heartbeats = self.heartbeats();
                        heartbeats.answered(sent, Instant::now());
                        heartbeats.counted(sent)
                    };
                    report.renewed(session, counted);
                }
                let pause = self.heartbeats().pause();
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            () = heartbeats => {}
            () = until_over(states, session, timeout, report) => {}
        }
    }

    fn client(&self) -> Option<Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn heartbeats(&self) -> MutexGuard<'_, Heartbeats> {
        self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_client(&self, client: Option<Client>) {
        let before = {
            let mut present = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, client)
        };
        drop(before);
    }
}

/// Reports what becomes of a session, until it is over.
async fn until_over(
    mut states: StateWatcher,
    session: SessionId,
    timeout: Duration,
    report: &Reporter,
) {
    loop {
        match states.changed().await {
            SessionState::Disconnected => report.suspended(),
            // The session does not ask for read-only servers.
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                report.connected(session, timeout);
            }
            SessionState::AuthFailed => return report.trouble(StoreError::Unauthenticated),
            SessionState::Expired | SessionState::Closed => return,
        }
    }
}

fn no_session(config: &Config) -> StoreError {
    StoreError::Unreachable(format!("no session with any of {}", config.hosts))
}
