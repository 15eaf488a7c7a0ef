//! The calls of the lease recipe: one key, whose name is the prefix itself.

use bytes::Bytes;
use etcd_client::{Compare, CompareOp, KeyValue, PutOptions, Txn, TxnOp, TxnOpResponse};
use quorate_core::recipe::lease::{Answer, Call, Held, Record};
use quorate_core::recipe::{Attempt, Failure};
use quorate_recipes::{Contender, FencingToken, StoreError, Teller};

use crate::calls::number;
use crate::config::Config;
use crate::error::{failure, store_error};
use crate::session::{Live, renew_once};

/// Makes a call.
pub(crate) async fn lease(
    config: &Config,
    live: &Live,
    attempt: Attempt,
    call: Call,
    tell: &Teller,
) -> Result<Answer, Failure> {
    match call {
        Call::Read { watch } => read(config, live, attempt, watch, tell).await,
        Call::Put { record, expect } => put(config, live, record, expect).await,
        Call::Renew { version, .. } => renew(config, live, version).await,
        Call::Delete { version } => delete(config, live, version).await,
    }
}

async fn read(
    config: &Config,
    live: &Live,
    attempt: Attempt,
    watch: bool,
    tell: &Teller,
) -> Result<Answer, Failure> {
    let key = &config.root;
    let found = live.client.clone().get(key.as_str(), None).await.map_err(|e| failure(&e))?;
    if let Some(header) = found.header().filter(|_| watch) {
        live.watch_after(key.clone(), header.revision(), attempt, tell);
    }
    Ok(Answer::Found(found.kvs().first().map(held)))
}

/// What is no record of ours is that of a leader whom we do not know.
fn held(pair: &KeyValue) -> Held {
    let created = number(pair.create_revision());
    let record = Record::decode(pair.value()).unwrap_or_else(|| Record {
        holder: 0,
        identity: Bytes::copy_from_slice(pair.value()),
        duration: std::time::Duration::ZERO,
        taken: created,
        released: false,
    });
    Held { record, version: number(pair.mod_revision()), created }
}

async fn put(
    config: &Config,
    live: &Live,
    record: Record,
    expect: Option<u64>,
) -> Result<Answer, Failure> {
    // etcd counts with the lease's own time, whatever stands in the record; it begins anew now.
    if live.time_to_live < record.duration {
        return Err(Failure::Rejected);
    }
    let key = config.root.as_str();
    let (condition, options) = match expect {
        None => {
            let absent = Compare::create_revision(key, CompareOp::Equal, 0);
            (absent, PutOptions::new().with_lease(live.lease))
        }
        Some(version) => (is_of(key, version), PutOptions::new().with_ignore_lease()),
    };
    let write = TxnOp::put(key, record.encode(), Some(options));
    let transaction = Txn::new().when([condition]).and_then([write, TxnOp::get(key, None)]);
    let mut client = live.client.clone();
    let done = client.txn(transaction);
    // In one round trip: whichever comes first, the key goes no sooner than the lease as it is renewed here.
    let (renewed, done) =
        if expect.is_none() { tokio::join!(renew_once(live), done) } else { (Ok(()), done.await) };
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
    // A version is a revision that etcd gave.
    let version = i64::try_from(version).unwrap_or(i64::MAX);
    Compare::mod_revision(key, CompareOp::Equal, version)
}

/// What renews the lease renews the key, if it is still of ours.
async fn renew(config: &Config, live: &Live, version: u64) -> Result<Answer, Failure> {
    renew_once(live).await?;
    let found = live.client.clone().get(config.root.as_str(), None).await;
    let found = found.map_err(|error| failure(&error))?;
    let pair = found.kvs().first().ok_or(Failure::Absent)?;
    if number(pair.mod_revision()) == version && pair.lease() == live.lease {
        Ok(written(pair))
    } else {
        Err(Failure::Conflict)
    }
}

async fn delete(config: &Config, live: &Live, version: u64) -> Result<Answer, Failure> {
    let key = config.root.as_str();
    let transaction = Txn::new().when([is_of(key, version)]).and_then([TxnOp::delete(key, None)]);
    match live.client.clone().txn(transaction).await {
        Ok(done) if done.succeeded() => Ok(Answer::Done),
        Ok(_) => Err(Failure::Conflict),
        Err(error) => Err(failure(&error)),
    }
}

/// Who leads: nobody else can be seen.
pub(crate) async fn contenders(config: &Config, live: &Live) -> Result<Vec<Contender>, StoreError> {
    let found = live.client.clone().get(config.root.as_str(), None).await;
    let found = found.map_err(|error| store_error(&error))?;
    let leader = found.kvs().first().and_then(|pair| held(pair).leader());
    let one = leader.map(|leader| Contender {
        identity: leader.identity,
        token: FencingToken::elected(leader.token.0),
        key: config.root.clone(),
    });
    Ok(one.into_iter().collect())
}
