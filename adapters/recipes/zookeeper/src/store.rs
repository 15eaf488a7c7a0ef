//! Sessions with the ensemble, one after another, and the calls that are made in them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_core::recipe::{Attempt, Failure, lease, offer};
use quorate_recipes::{
    Backoff, Change, Contender, Reporter, Settings, StartError, Store, StoreError, now,
};
use zookeeper_client::{Client, Error};

use crate::config::{Config, Place};
use crate::error::store_error;
use crate::session::Session;
use crate::{lease_calls, offer_calls};

/// A ZooKeeper ensemble, as elections use it.
#[derive(Clone, Debug)]
pub struct ZooKeeper {
    config: Arc<Config>,
    /// The present one.
    session: Arc<Mutex<Option<Session>>>,
}

impl Store for ZooKeeper {
    type Config = Config;

    fn open(config: Config) -> Result<(Self, Settings), StartError> {
        let (config, settings) = config.checked()?;
        Ok((Self { config: Arc::new(config), session: Arc::default() }, settings))
    }

    async fn keep_session(&self, report: Reporter) {
        let hosts = match &self.config.place {
            Place::Own(hosts) => hosts,
            Place::Shared(session) => return self.keep(session.clone(), &report).await,
        };
        let mut backoff = Backoff::new();
        loop {
            let sent = now();
            match self.connect(hosts).await {
                Ok(client) => {
                    backoff.reset();
                    self.keep(Session::new(client, Some(sent)), &report).await;
                }
                Err(Error::NoHosts) => report.trouble(self.no_session()),
                Err(error) => report.trouble(store_error(error)),
            }
            backoff.wait().await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: offer::Call, report: &Reporter) {
        match self.session() {
            Some(session) => {
                offer_calls::call(&self.config, session, attempt, call, report.clone()).await;
            }
            None => report.offer(attempt, Err(Failure::Expired)),
        }
    }

    async fn lease(&self, attempt: Attempt, call: lease::Call, report: &Reporter) {
        match self.session() {
            Some(session) => {
                lease_calls::call(&self.config, session, attempt, call, report.clone()).await;
            }
            None => report.lease(attempt, Err(Failure::Expired)),
        }
    }

    async fn contenders(&self, all: bool) -> Result<Vec<Contender>, StoreError> {
        let session = self.session().ok_or_else(|| self.no_session())?;
        if self.config.is_lease() {
            lease_calls::contenders(&self.config, session.client()).await
        } else {
            offer_calls::contenders(&self.config, session.client(), all).await
        }
    }

    async fn watch(
        &self,
        all: bool,
        known: &[Contender],
    ) -> Result<(Vec<Contender>, Change), StoreError> {
        let session = self.session().ok_or_else(|| self.no_session())?;
        let (row, watcher) = if self.config.is_lease() {
            lease_calls::watch(&self.config, session.client()).await
        } else if all {
            offer_calls::watch_all(&self.config, session.client(), known).await
        } else {
            offer_calls::watch_first(&self.config, session.client()).await
        }
        .map_err(store_error)?;
        // Something has changed, or the session is over.
        Ok((row, Box::pin(async move { drop(watcher.changed().await) })))
    }

    fn is_shared(&self) -> bool {
        matches!(self.config.place, Place::Shared(_))
    }

    async fn close(&self) {
        let Some(session) = self.set_session(None) else { return };
        if self.is_shared() {
            return;
        }
        let mut states = session.client().state_watcher();
        drop(session);
        // The last handle is dropped, so the library asks the ensemble to close the session.
        let closed = async { while !states.changed().await.is_terminated() {} };
        drop(tokio::time::timeout(CLOSING_TIME, closed).await);
    }
}

/// How long the ensemble may take to close a session; beyond that it ends it by itself.
const CLOSING_TIME: Duration = Duration::from_secs(1);

impl ZooKeeper {
    fn connect(&self, hosts: &str) -> impl Future<Output = Result<Client, Error>> + Send {
        // When no host answers, this reports it and tries again after its own back-off.
        let connector = Client::connector()
            .with_session_timeout(self.config.settings.session_timeout)
            .with_fail_eagerly();
        let connector = self
            .config
            .credentials
            .iter()
            .fold(connector, |connector, (scheme, proof)| connector.with_auth(scheme, proof));
        let hosts = hosts.to_owned();
        #[cfg(feature = "tls")]
        let tls = self.config.tls.clone();
        async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                return connector.with_tls(tls).secure_connect(&hosts).await;
            }
            connector.connect(&hosts).await
        }
    }

    /// Keeps a session until it is over.
    async fn keep(&self, session: Session, report: &Reporter) {
        self.set_session(Some(session.clone()));
        // The machine of a lease counts from its calls as long as it knows of no heartbeat that counts.
        session.report(report, self.config.is_lease()).await;
        drop(session);
        // A caller that finds no session has been told why.
        report.expired();
        self.set_session(None);
    }

    fn session(&self) -> Option<Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one before.
    fn set_session(&self, session: Option<Session>) -> Option<Session> {
        let mut present = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *present, session)
    }

    fn no_session(&self) -> StoreError {
        StoreError::Unreachable(match &self.config.place {
            Place::Own(hosts) => format!("no session with any of {hosts}"),
            Place::Shared(session) => format!("session {} is over", session.id()),
        })
    }
}
