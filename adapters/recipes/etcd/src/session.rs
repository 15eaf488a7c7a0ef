//! A lease of etcd, and its renewal.
//!
//! One renewal is under way at a time, and what counts is when it was sent. If its answer does not come in
//! time the stream is given up with it: a late answer is never taken for that to a later renewal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::Client;
use quorate_core::recipe::{Attempt, Failure, SessionId};
use quorate_recipes::Teller;

use crate::error::failure;
use crate::watches::Watches;

/// A lease that was granted, as far as we know.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) client: Client,
    pub(crate) lease: i64,
    pub(crate) time_to_live: Duration,
    /// What is to be told of renewals is told with the calls.
    pub(crate) by_calls: bool,
    pub(crate) watches: Arc<Mutex<Watches>>,
}

impl Live {
    /// etcd counts what it answers: with the lease recipe every call says it by itself.
    pub(crate) fn renewed(&self, tell: &Teller, sent: Instant) {
        if !self.by_calls {
            tell.renewed(SessionId(self.lease), sent);
        }
    }

    /// Says once when a key changes after `revision`, if this lease is not over before.
    pub(crate) fn watch_after(&self, key: String, revision: i64, attempt: Attempt, tell: &Teller) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.watch_after(self.client.clone(), key, revision, attempt, tell.clone());
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Live({:x})", self.lease)
    }
}

/// Renews a lease for as long as there are answers; says why there are none any more.
pub(crate) async fn renew_while_answered(
    live: &Live,
    connected: &mut bool,
    tell: &Teller,
) -> Failure {
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
