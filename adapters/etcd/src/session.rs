//! Leases, one after another, and their renewal.
//!
//! One renewal is under way at a time, and what counts is when it was sent. If its answer does not come in
//! time the stream is given up with it: a late answer is never taken for that to a later renewal.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions, Error};
use quorate_core::recipe::{Attempt, Failure, SessionId, lease, offer};
use quorate_store::{Contender, Pace, Settings, StartError, Store, StoreError, Teller, begin};

use crate::config::Config;
use crate::{calls, keys};

/// An etcd cluster, as elections use it.
#[derive(Clone, Debug)]
pub struct Etcd {
    pub(crate) config: Arc<Config>,
    live: Arc<Mutex<Option<Live>>>,
    /// Calls are made one after another: etcd keeps no order among those that are under way together.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A lease that was granted, as far as we know.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) client: Client,
    pub(crate) lease: i64,
    pub(crate) time_to_live: Duration,
    /// What is to be told of renewals is told with the calls.
    by_calls: bool,
    pub(crate) watches: Arc<Mutex<calls::Watches>>,
}

impl Live {
    /// etcd counts what it answers: with the lease recipe every call says it by itself.
    fn renewed(&self, tell: &Teller, sent: Instant) {
        if !self.by_calls {
            tell.renewed(SessionId(self.lease), sent);
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Live({:x})", self.lease)
    }
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

/// Renews a lease for as long as there are answers; says why there are none any more.
async fn renew_while_answered(live: &Live, connected: &mut bool, tell: &Teller) -> Failure {
    let session = SessionId(live.lease);
    let every = live.time_to_live / 3;
    let mut client = live.client.clone();
    let mut sent = Instant::now();
    // The first renewal is part of opening the stream.
    let opened = client.lease_keep_alive(live.lease);
    let (mut keeper, mut answers) = match tokio::time::timeout(every, opened).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return failure(&error),
        Err(_) => return Failure::Unknown,
    };
    loop {
        if !std::mem::replace(connected, true) {
            tell.connected(session, live.time_to_live);
        }
        live.renewed(tell, sent);
        tokio::time::sleep_until((sent + every).into()).await;
        sent = Instant::now();
        let renewed = async {
            keeper.keep_alive().await?;
            answers.message().await
        };
        match tokio::time::timeout(every, renewed).await {
            Ok(Ok(Some(answer))) if answer.ttl() > 0 => {}
            Ok(Ok(Some(_))) => return Failure::Expired,
            Ok(Ok(None)) | Err(_) => return Failure::Unknown,
            Ok(Err(error)) => return failure(&error),
        }
    }
}

/// Renews a lease once.
pub(crate) async fn renew_once(live: &Live) -> Result<(), Failure> {
    let mut client = live.client.clone();
    let opened = client.lease_keep_alive(live.lease).await;
    opened.map(drop).map_err(|error| failure(&error))
}

/// What an error is to a program.
pub(crate) fn store_error(error: &Error) -> StoreError {
    match failure(error) {
        Failure::Denied => StoreError::Denied,
        Failure::Unauthenticated => StoreError::Unauthenticated,
        Failure::Expired => StoreError::Expired,
        Failure::Unknown => StoreError::Unreachable(error.to_string()),
        Failure::Absent | Failure::Exists | Failure::Conflict | Failure::Rejected => {
            StoreError::Refused(error.to_string())
        }
    }
}

/// What an error means for an election.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::GRpcStatus(status) => of_status(i32::from(status.code()), status.message()),
        Error::TransportError(_) | Error::IoError(_) | Error::WatchError(_) => Failure::Unknown,
        Error::LeaseKeepAliveError(what) if what.contains("not found") => Failure::Expired,
        Error::LeaseKeepAliveError(_) => Failure::Unknown,
        Error::InvalidArgs(_)
        | Error::InvalidUri(_)
        | Error::Utf8Error(_)
        | Error::ElectError(_)
        | Error::InvalidMetadataValue(_)
        | Error::EndpointError(_)
        | Error::EndpointsNotManaged
        | Error::Internal(_) => Failure::Rejected,
    }
}

/// gRPC's status codes, as etcd uses them.
fn of_status(code: i32, message: &str) -> Failure {
    const INVALID_ARGUMENT: i32 = 3;
    const NOT_FOUND: i32 = 5;
    const PERMISSION_DENIED: i32 = 7;
    const UNAUTHENTICATED: i32 = 16;
    /// Cancelled, unknown, deadline exceeded, aborted, internal, unavailable.
    const NO_ANSWER: [i32; 6] = [1, 2, 4, 10, 13, 14];
    match code {
        NOT_FOUND if message.contains("lease") => Failure::Expired,
        NOT_FOUND => Failure::Absent,
        PERMISSION_DENIED => Failure::Denied,
        UNAUTHENTICATED => Failure::Unauthenticated,
        // "authentication failed, invalid user ID or password", "user name is empty".
        INVALID_ARGUMENT if message.contains("authentication") || message.contains("user name") => {
            Failure::Unauthenticated
        }
        code if NO_ANSWER.contains(&code) => Failure::Unknown,
        _ => Failure::Rejected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_says_is_understood() {
        for (code, message, meant) in [
            (5, "etcdserver: requested lease not found", Failure::Expired),
            (7, "etcdserver: permission denied", Failure::Denied),
            (16, "etcdserver: invalid auth token", Failure::Unauthenticated),
            (
                3,
                "etcdserver: authentication failed, invalid user ID or password",
                Failure::Unauthenticated,
            ),
            (3, "etcdserver: user name is empty", Failure::Unauthenticated),
            (3, "etcdserver: duplicate key given in txn request", Failure::Rejected),
            (14, "etcdserver: no leader", Failure::Unknown),
        ] {
            assert_eq!(of_status(code, message), meant, "{message}");
        }
    }
}
