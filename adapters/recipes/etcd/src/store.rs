//! Sessions with the cluster, one after another, and the calls that are made in them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions};
use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use quorate_recipes::{
    Backoff, Change, Contender, Reporter, Settings, StartError, Store, StoreError, begin, now,
};

use crate::config::Config;
use crate::error::store_error;
use crate::session::{Session, renew_while_answered};
use crate::{lease_calls, offer_calls};

/// An etcd cluster, as elections use it.
#[derive(Clone, Debug)]
pub struct Etcd {
    pub(crate) config: Arc<Config>,
    session: Arc<Mutex<Option<Session>>>,
    /// Calls are made one after another: etcd keeps no order among those that are under way together.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Store for Etcd {
    type Config = Config;

    fn open(config: Config) -> Result<(Self, Settings), StartError> {
        let (config, settings) = config.checked()?;
        let (session, turn) = (Arc::default(), Arc::default());
        Ok((Self { config: Arc::new(config), session, turn }, settings))
    }

    async fn keep_session(&self, report: Reporter) {
        let mut backoff = Backoff::new();
        loop {
            match self.grant().await {
                Ok((session, sent)) => {
                    backoff.reset();
                    self.set_session(Some(session.clone()));
                    report.connected(SessionId(session.lease), session.time_to_live);
                    session.renewed(&report, sent);
                    self.renew(session, &report).await;
                    // A caller that finds no session has been told why.
                    report.expired();
                    self.set_session(None);
                }
                Err(error) => report.trouble(error),
            }
            backoff.wait().await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: offer::Call, report: &Reporter) {
        let Some(session) = self.session() else {
            return report.offer(attempt, Err(Failure::Expired));
        };
        let (store, report) = (self.clone(), report.clone());
        begin(async move {
            let called = offer_calls::call(&store.config, &session, attempt, call, &report);
            let result = store.in_turn(called).await;
            report.offer(attempt, result);
        })
        .await;
    }

    async fn lease(&self, attempt: Attempt, call: lease::Call, report: &Reporter) {
        let Some(session) = self.session() else {
            return report.lease(attempt, Err(Failure::Expired));
        };
        let (store, report) = (self.clone(), report.clone());
        begin(async move {
            let called = lease_calls::call(&store.config, &session, attempt, call, &report);
            let result = store.in_turn(called).await;
            report.lease(attempt, result);
        })
        .await;
    }

    async fn contenders(&self, all: bool) -> Result<Vec<Contender>, StoreError> {
        let session = self.session().ok_or_else(|| self.unreachable("no lease"))?;
        if self.config.is_lease() {
            lease_calls::contenders(&self.config, &session).await
        } else {
            offer_calls::contenders(&self.config, &session, all).await
        }
    }

    async fn watch(
        &self,
        all: bool,
        _: &[Contender],
    ) -> Result<(Vec<Contender>, Change), StoreError> {
        let session = self.session().ok_or_else(|| self.unreachable("no lease"))?;
        if self.config.is_lease() {
            lease_calls::watch(&self.config, &session).await
        } else {
            offer_calls::watch(&self.config, &session, all).await
        }
    }

    async fn close(&self) {
        let Some(mut session) = self.session() else { return };
        self.set_session(None);
        // The keys go with the lease. If this does not reach the cluster, they go when the lease ends by itself.
        let revoked = session.client.lease_revoke(session.lease);
        drop(tokio::time::timeout(CLOSING_TIME, revoked).await);
    }
}

/// How long the cluster may take to revoke a lease; beyond that it ends by itself.
const CLOSING_TIME: Duration = Duration::from_secs(1);

impl Etcd {
    /// Makes a call when all earlier ones are answered.
    async fn in_turn<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let _turn = self.turn.lock().await;
        let answered = tokio::time::timeout(self.config.settings.deadline, call).await;
        answered.unwrap_or(Err(Failure::Unknown))
    }

    /// A new lease, and when it was requested.
    async fn grant(&self) -> Result<(Session, Instant), StoreError> {
        let deadline = self.config.settings.deadline;
        let mut options = ConnectOptions::new()
            .with_connect_timeout(deadline)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some((name, password)) = &self.config.user {
            options = options.with_user(name, password);
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.config.tls {
            options = options.with_tls(tls.clone());
        }
        let granted = async {
            let mut client = Client::connect(&self.config.endpoints, Some(options)).await?;
            let sent = now();
            let granted = client.lease_grant(self.config.seconds(), None).await?;
            let seconds = u64::try_from(granted.ttl()).unwrap_or(0);
            let time_to_live = Duration::from_secs(seconds);
            let watches = Arc::default();
            let (lease, renews_by_calls) = (granted.id(), self.config.is_lease());
            Ok((Session { client, lease, time_to_live, renews_by_calls, watches }, sent))
        };
        match tokio::time::timeout(deadline, granted).await {
            Ok(granted) => granted.map_err(|error| store_error(&error)),
            Err(_) => Err(self.unreachable("no answer")),
        }
    }

    /// Renews a lease until it is over.
    async fn renew(&self, session: Session, report: &Reporter) {
        let mut backoff = Backoff::new();
        let mut connected = true;
        loop {
            let failure = renew_while_answered(&session, &mut connected, report).await;
            if failure == Failure::Expired {
                return;
            }
            if std::mem::take(&mut connected) {
                report.suspended();
                report.trouble(failure.into());
            }
            backoff.wait().await;
        }
    }

    fn session(&self) -> Option<Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_session(&self, session: Option<Session>) {
        let before = {
            let mut present = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, session)
        };
        if let Some(before) = before {
            before.watches.lock().unwrap_or_else(PoisonError::into_inner).end();
        }
    }

    fn unreachable(&self, what: &str) -> StoreError {
        StoreError::Unreachable(format!("{what} from {}", self.config.endpoints.join(",")))
    }
}
