//! A session with etcd: a lease, its renewal, and the watches of its calls.
//!
//! One renewal is under way at a time, and it counts from when it was sent. If its answer does not come in
//! time, the stream is given up with it: a late answer is never taken for that to a later renewal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::Client;
use quorate_core::recipe::{Attempt, Failure, SessionId};
use quorate_recipes::{Reporter, now, until};

use crate::error::failure;
use crate::watches::Watches;

/// A lease that was granted, as far as this candidate knows.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) lease: i64,
    pub(crate) time_to_live: Duration,
    /// Renewals are reported with the answers to calls.
    pub(crate) renews_by_calls: bool,
    pub(crate) watches: Arc<Mutex<Watches>>,
}

impl Session {
    /// Reports a renewal. etcd counts what it answers: with the lease recipe each answer to a call says it by itself.
    pub(crate) fn renewed(&self, report: &Reporter, sent: Instant) {
        if !self.renews_by_calls {
            report.renewed(SessionId(self.lease), sent);
        }
    }

    /// Reports once when a key changes after `revision`, if this lease is not over before.
    pub(crate) fn watch_after(
        &self,
        key: String,
        revision: i64,
        attempt: Attempt,
        report: &Reporter,
    ) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.watch_after(self.client.clone(), key, revision, attempt, report.clone());
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:x})", self.lease)
    }
}

/// Renews a lease for as long as there are answers; returns why there are none any more.
pub(crate) async fn renew_while_answered(
    session: &Session,
    connected: &mut bool,
    report: &Reporter,
) -> Failure {
    let id = SessionId(session.lease);
    let every = session.time_to_live / 3;
    let mut client = session.client.clone();
    let mut sent = now();
    // The first renewal is part of opening the stream.
    let opened = client.lease_keep_alive(session.lease);
    let (mut keeper, mut answers) = match tokio::time::timeout(every, opened).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return failure(&error),
        Err(_) => return Failure::Unknown,
    };
    loop {
        if !std::mem::replace(connected, true) {
            report.connected(id, session.time_to_live);
        }
        session.renewed(report, sent);
        until(sent + every).await;
        sent = now();
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
pub(crate) async fn renew_once(session: &Session) -> Result<(), Failure> {
    let mut client = session.client.clone();
    let opened = client.lease_keep_alive(session.lease).await;
    opened.map(drop).map_err(|error| failure(&error))
}
