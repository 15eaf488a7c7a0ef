//! The calls of the lease recipe: one key, whose name is the prefix itself.

use bytes::Bytes;
use etcd_client::{
    Compare, CompareOp, KeyValue, PutOptions, ResponseHeader, Txn, TxnOp, TxnOpResponse,
    WatchOptions,
};
use quorate_core::recipe::lease::{Answer, Call, Held, Record};
use quorate_core::recipe::{Attempt, Failure};
use quorate_recipes::{Change, Contender, Reporter, StoreError};

use crate::config::Config;
use crate::error::{failure, store_error};
use crate::revision::{number, revision};
use crate::session::{Session, renew_once};
use crate::watches::until_changed;

/// Makes a call.
pub(crate) async fn call(
    config: &Config,
    session: &Session,
    attempt: Attempt,
    call: Call,
    report: &Reporter,
) -> Result<Answer, Failure> {
    match call {
        Call::Read { watch } => read(config, session, attempt, watch, report).await,
        Call::Put { record, expect } => put(config, session, record, expect).await,
        Call::Renew { version, .. } => renew(config, session, version).await,
        Call::Delete { version } => delete(config, session, version).await,
    }
}

async fn read(
    config: &Config,
    session: &Session,
    attempt: Attempt,
    watch: bool,
    report: &Reporter,
) -> Result<Answer, Failure> {
    let key = &config.root;
    let found = session.client.clone().get(key.as_str(), None).await.map_err(|e| failure(&e))?;
    if let Some(header) = found.header().filter(|_| watch) {
        session.watch_after(key.clone(), header.revision(), attempt, report);
    }
    Ok(Answer::Found(found.kvs().first().map(held)))
}

fn held(pair: &KeyValue) -> Held {
    let created = number(pair.create_revision());
    let record = Record::of_key(Bytes::copy_from_slice(pair.value()), created);
    Held { record, version: number(pair.mod_revision()), created }
}

async fn put(
    config: &Config,
    session: &Session,
    record: Record,
    expect: Option<u64>,
) -> Result<Answer, Failure> {
    // etcd counts with the lease's own time to session, whatever the record says; it begins anew now.
    if session.time_to_live < record.duration {
        return Err(Failure::Rejected);
    }
    let key = config.root.as_str();
    let (condition, options) = match expect {
        None => {
            let absent = Compare::create_revision(key, CompareOp::Equal, 0);
            (absent, PutOptions::new().with_lease(session.lease))
        }
        Some(version) => (is_of(key, version), PutOptions::new().with_ignore_lease()),
    };
    let write = TxnOp::put(key, record.encode(), Some(options));
    let transaction = Txn::new().when([condition]).and_then([write, TxnOp::get(key, None)]);
    let mut client = session.client.clone();
    let done = client.txn(transaction);
    // In one round trip: whichever comes first, the key goes no sooner than the lease as it is renewed here.
    let (renewed, done) = if expect.is_none() {
        tokio::join!(renew_once(session), done)
    } else {
        (Ok(()), done.await)
    };
    let done = done.map_err(|error| failure(&error))?;
    renewed?;
    if !done.succeeded() {
        return Err(Failure::Conflict);
    }
    let written = done.op_responses().into_iter().find_map(|response| match response {
        TxnOpResponse::Get(found) => found.kvs().first().map(written),
        TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) | TxnOpResponse::Txn(_) => None,
    });
    written.ok_or(Failure::Rejected)
}

fn written(pair: &KeyValue) -> Answer {
    let (version, created) = (number(pair.mod_revision()), number(pair.create_revision()));
    Answer::Written { version, created }
}

fn is_of(key: &str, version: u64) -> Compare {
    Compare::mod_revision(key, CompareOp::Equal, revision(version))
}

/// Renews the key by renewing the lease, if the key is still of this lease.
async fn renew(config: &Config, session: &Session, version: u64) -> Result<Answer, Failure> {
    renew_once(session).await?;
    let found = session.client.clone().get(config.root.as_str(), None).await;
    let found = found.map_err(|error| failure(&error))?;
    let pair = found.kvs().first().ok_or(Failure::Absent)?;
    if number(pair.mod_revision()) == version && pair.lease() == session.lease {
        Ok(written(pair))
    } else {
        Err(Failure::Conflict)
    }
}

async fn delete(config: &Config, session: &Session, version: u64) -> Result<Answer, Failure> {
    let key = config.root.as_str();
    let transaction = Txn::new().when([is_of(key, version)]).and_then([TxnOp::delete(key, None)]);
    match session.client.clone().txn(transaction).await {
        Ok(done) if done.succeeded() => Ok(Answer::Done),
        Ok(_) => Err(Failure::Conflict),
        Err(error) => Err(failure(&error)),
    }
}

/// The leader: with this recipe the store shows no other candidate.
pub(crate) async fn contenders(
    config: &Config,
    session: &Session,
) -> Result<Vec<Contender>, StoreError> {
    row(config, session).await.map(|(row, _)| row)
}

/// The same, and a watch for another.
pub(crate) async fn watch(
    config: &Config,
    session: &Session,
) -> Result<(Vec<Contender>, Change), StoreError> {
    let (row, revision) = row(config, session).await?;
    let (client, key) = (session.client.clone(), config.root.clone());
    let options = WatchOptions::new().with_start_revision(revision + 1);
    Ok((row, Box::pin(async move { _ = until_changed(client, &key, options).await })))
}

/// The leader, and the revision at which that was read.
async fn row(config: &Config, session: &Session) -> Result<(Vec<Contender>, i64), StoreError> {
    let found = session.client.clone().get(config.root.as_str(), None).await;
    let found = found.map_err(|error| store_error(&error))?;
    let revision = found.header().map_or(0, ResponseHeader::revision);
    let leader = found.kvs().first().and_then(|pair| held(pair).leader());
    let one = leader
        .map(|leader| Contender::elected(leader.identity, leader.token.0, config.root.clone()));
    Ok((one.into_iter().collect(), revision))
}
