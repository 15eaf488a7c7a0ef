//! The calls of the offer recipe, with the keys of etcd's own elections: `PREFIX/LEASE`.

use bytes::Bytes;
use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, KeyValue, ResponseHeader, SortOrder, SortTarget,
    Txn, TxnOp, WatchOptions,
};
use quorate_core::recipe::offer::{Answer, Call, Entry};
use quorate_core::recipe::{Attempt, Failure, SessionId, Token};
use quorate_recipes::{Change, Contender, Reporter, StoreError};

use crate::config::Config;
use crate::error::{failure, store_error};
use crate::revision::{number, revision};
use crate::session::Session;
use crate::watches::until_changed;

/// Makes a call.
pub(crate) async fn call(
    config: &Config,
    session: &Session,
    attempt: Attempt,
    call: Call,
    report: &Reporter,
) -> Result<Answer, Failure> {
    let answered = match call {
        // There are no directories in etcd.
        Call::EnsureRoot => return Ok(Answer::Done),
        Call::Create { session: wanted, name, data } => {
            if wanted != SessionId(session.lease) {
                return Err(Failure::Expired);
            }
            return create(config, session, name, data).await;
        }
        // etcd reads through a quorum unless it is told not to.
        Call::List { fresh: _ } => list(config, session).await,
        Call::Read { name, watch } => {
            return read(config, session, attempt, &name, watch, report).await;
        }
        Call::Delete { name, created } => {
            delete(session.client.clone(), config.key(&name), created).await
        }
    };
    answered.map_err(|error| failure(&error))
}

async fn create(
    config: &Config,
    session: &Session,
    name: String,
    data: Bytes,
) -> Result<Answer, Failure> {
    let key = config.key(&name);
    let absent = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
    let options = etcd_client::PutOptions::new().with_lease(session.lease);
    let put = TxnOp::put(key, data, Some(options));
    let mut client = session.client.clone();
    let done = client.txn(Txn::new().when([absent]).and_then([put])).await;
    match done {
        Ok(done) if done.succeeded() => Ok(Answer::Created { name }),
        Ok(_) => Err(Failure::Exists),
        Err(error) => Err(failure(&error)),
    }
}

/// Deletes a key if it is still the one that is meant: the same lease may have created it again since.
async fn delete(mut client: Client, key: String, created: Option<Token>) -> Result<Answer, Error> {
    let meant = created.map(|Token(created)| {
        Compare::create_revision(key.as_str(), CompareOp::Equal, revision(created))
    });
    let meant: Vec<Compare> = meant.into_iter().collect();
    let transaction = Txn::new().when(meant).and_then([TxnOp::delete(key, None)]);
    client.txn(transaction).await.map(|_| Answer::Done)
}

async fn list(config: &Config, session: &Session) -> Result<Answer, Error> {
    let prefix = config.key("");
    let options = GetOptions::new().with_prefix().with_keys_only();
    let found = session.client.clone().get(prefix.as_str(), Some(options)).await?;
    let entry = |pair: &KeyValue| Entry {
        name: config.name(pair.key()),
        created: Some(number(pair.create_revision())),
    };
    Ok(Answer::Listed(found.kvs().iter().map(entry).collect()))
}

async fn read(
    config: &Config,
    session: &Session,
    attempt: Attempt,
    name: &str,
    watch: bool,
    report: &Reporter,
) -> Result<Answer, Failure> {
    let key = config.key(name);
    let found = session.client.clone().get(key.as_str(), None).await.map_err(|e| failure(&e))?;
    let pair = found.kvs().first().ok_or(Failure::Absent)?;
    if watch {
        let read_at = found.header().map_or(pair.mod_revision(), ResponseHeader::revision);
        session.watch_after(key, read_at, attempt, report);
    }
    Ok(Answer::Read {
        data: Bytes::copy_from_slice(pair.value()),
        owner: (pair.lease() != 0).then_some(SessionId(pair.lease())),
        created: Token(number(pair.create_revision())),
    })
}

/// The candidates by their offers, in order.
pub(crate) async fn contenders(
    config: &Config,
    session: &Session,
    all: bool,
) -> Result<Vec<Contender>, StoreError> {
    row(config, session, all).await.map(|(row, _)| row)
}

/// The same, and a watch: of the leader's key, if that is all that is asked for and there is one; else of all.
pub(crate) async fn watch(
    config: &Config,
    session: &Session,
    all: bool,
) -> Result<(Vec<Contender>, Change), StoreError> {
    let (row, revision) = row(config, session, all).await?;
    let options = WatchOptions::new().with_start_revision(revision + 1);
    let (key, options) = match row.first().filter(|_| !all) {
        Some(leader) => (config.key(&leader.key), options),
        None => (config.key(""), options.with_prefix()),
    };
    let client = session.client.clone();
    Ok((row, Box::pin(async move { _ = until_changed(client, &key, options).await })))
}

/// The candidates, and the revision at which they were read.
async fn row(
    config: &Config,
    session: &Session,
    all: bool,
) -> Result<(Vec<Contender>, i64), StoreError> {
    let oldest_first = GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(if all { 0 } else { 1 });
    let prefix = config.key("");
    let found = session.client.clone().get(prefix, Some(oldest_first)).await;
    let found = found.map_err(|error| store_error(&error))?;
    let contender = |pair: &KeyValue| {
        let identity = Bytes::copy_from_slice(pair.value());
        Contender::elected(identity, number(pair.create_revision()), config.name(pair.key()))
    };
    let revision = found.header().map_or(0, ResponseHeader::revision);
    Ok((found.kvs().iter().map(contender).collect(), revision))
}

impl Config {
    /// The key of an offer.
    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// The name of an offer.
    fn name(&self, key: &[u8]) -> String {
        let name = key.get(self.root.len() + 1..).unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}
