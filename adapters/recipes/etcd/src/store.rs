//! Leases, one after another, and the calls that are made with them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions};
use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use quorate_recipes::{Contender, Pace, Settings, StartError, Store, StoreError, Teller, begin};

use crate::config::Config;
use crate::error::store_error;
use crate::session::{Live, renew_while_answered};
use crate::{calls, keys};

/// An etcd cluster, as elections use it.
#[derive(Clone, Debug)]
pub struct Etcd {
    pub(crate) config: Arc<Config>,
    live: Arc<Mutex<Option<Live>>>,
    /// Calls are made one after another: etcd keeps no order among those that are under way together.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Store for Etcd {
    type Config = Config;

    fn open(config: Config) -> Result<(Self, Settings), StartError> {
        let (config, settings) = config.checked()?;
        let (live, turn) = (Arc::default(), Arc::default());
        Ok((Self { config: Arc::new(config), live, turn }, settings))
    }

    async fn keep_session(&self, tell: Teller) {
        let mut pace = Pace::new();
        loop {
            match self.grant().await {
                Ok((live, sent)) => {
                    pace.reset();
                    let session = SessionId(live.lease);
                    self.set_live(Some(live.clone()));
                    tell.connected(session, live.time_to_live);
                    live.renewed(&tell, sent);
                    self.renew(live, &tell).await;
                    self.set_live(None);
                    tell.expired();
                }
                Err(error) => tell.trouble(error),
            }
            pace.rest().await;
        }
    }

    async fn offer(&self, attempt: Attempt, call: offer::Call, tell: &Teller) {
        let Some(live) = self.live() else { return tell.offer(attempt, Err(Failure::Expired)) };
        let (store, tell) = (self.clone(), tell.clone());
        begin(async move {
            let called = calls::offer(&store.config, &live, attempt, call, &tell);
            let result = store.in_turn(called).await;
            tell.offer(attempt, result);
        })
        .await;
    }

    async fn lease(&self, attempt: Attempt, call: lease::Call, tell: &Teller) {
        let Some(live) = self.live() else { return tell.lease(attempt, Err(Failure::Expired)) };
        let (store, tell) = (self.clone(), tell.clone());
        begin(async move {
            let called = keys::lease(&store.config, &live, attempt, call, &tell);
            let result = store.in_turn(called).await;
            tell.lease(attempt, result);
        })
        .await;
    }

    async fn contenders(&self, all: bool) -> Result<Vec<Contender>, StoreError> {
        let live = self.live().ok_or_else(|| self.unreachable("no lease"))?;
        if self.config.is_lease() {
            keys::contenders(&self.config, &live).await
        } else {
            calls::contenders(&self.config, &live, all).await
        }
    }

    async fn close(&self) {
        let Some(mut live) = self.live() else { return };
        self.set_live(None);
        // The keys go with the lease. If this does not reach the cluster, they go when it ends by itself.
        let revoked = live.client.lease_revoke(live.lease);
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
        let answered = tokio::time::timeout(self.config.deadline_time(), call).await;
        answered.unwrap_or(Err(Failure::Unknown))
    }

    /// A new lease, and when it was asked for.
    async fn grant(&self) -> Result<(Live, Instant), StoreError> {
        let deadline = self.config.deadline_time();
        let mut options = ConnectOptions::new()
            .with_connect_timeout(deadline)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some((name, password)) = &self.config.user {
            options = options.with_user(name, password);
        }
        let granted = async {
            let mut client = Client::connect(&self.config.endpoints, Some(options)).await?;
            let sent = Instant::now();
            let granted = client.lease_grant(self.config.seconds(), None).await?;
            let seconds = u64::try_from(granted.ttl()).unwrap_or(0);
            let time_to_live = Duration::from_secs(seconds);
            let watches = Arc::default();
            let (lease, by_calls) = (granted.id(), self.config.is_lease());
            Ok((Live { client, lease, time_to_live, by_calls, watches }, sent))
        };
        match tokio::time::timeout(deadline, granted).await {
            Ok(granted) => granted.map_err(|error| store_error(&error)),
            Err(_) => Err(self.unreachable("no answer")),
        }
    }

    /// Renews a lease until it is over.
    async fn renew(&self, live: Live, tell: &Teller) {
        let mut pace = Pace::new();
        let mut connected = true;
        loop {
            let failure = renew_while_answered(&live, &mut connected, tell).await;
            if failure == Failure::Expired {
                return;
            }
            if std::mem::take(&mut connected) {
                tell.suspended();
                tell.trouble(failure.into());
            }
            pace.rest().await;
        }
    }

    fn live(&self) -> Option<Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_live(&self, live: Option<Live>) {
        let before = {
            let mut present = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *present, live)
        };
        if let Some(before) = before {
            before.watches.lock().unwrap_or_else(PoisonError::into_inner).end();
        }
    }

    fn unreachable(&self, what: &str) -> StoreError {
        StoreError::Unreachable(format!("{what} from {}", self.config.endpoints.join(",")))
    }
}
