//! The calls of the lease recipe: one ephemeral node, whose path is the root itself.
//!
//! The version of a key is the zxid of its last change. ZooKeeper compares versions that count from 0 in
//! each node; so a change is made in two steps, of which the second fails if anything came between.

use std::sync::Arc;

use bytes::Bytes;
use quorate_core::recipe::lease::{Answer, Call, Held, Record};
use quorate_core::recipe::{Attempt, Failure};
use quorate_recipes::{Contender, Reporter, StoreError, begin, now};
use zookeeper_client::{Client, CreateMode, Error, OneshotWatcher, Stat};

use crate::config::Config;
use crate::error::{failure, store_error};
use crate::nodes::{absent, make_directory, number, watch as report_watch};
use crate::session::Session;

/// Makes a call. Its answer is reported once; so is the change that it leaves a watch for.
pub(crate) async fn call(
    config: &Arc<Config>,
    session: Session,
    attempt: Attempt,
    call: Call,
    report: Reporter,
) {
    let config = Arc::clone(config);
    begin(async move {
        let called = now();
        let client = session.client();
        // A read is answered by any server that has not yet found its leader gone.
        let passes_leader = !matches!(call, Call::Read { .. });
        let (result, watcher) = match call {
            Call::Read { watch } => read(&config, client, watch).await,
            Call::Put { record, expect } => (put(&config, client, record, expect).await, None),
            Call::Renew { version, .. } => (renew(&config, client, version).await, None),
            Call::Delete { version } => (delete(&config, client, version).await, None),
        };
        let counted = (result.is_ok() && passes_leader).then(|| session.counted(called)).flatten();
        if let Some(counted) = counted {
            // The session is kept alive from the request that ZooKeeper's leader counts.
            report.renewed(session.id(), counted);
        }
        report.lease(attempt, result);
        // The session ends with its last handle.
        drop(session);
        if let Some(watcher) = watcher {
            report_watch(watcher, attempt, &report).await;
        }
    })
    .await;
}

type Found = (Result<Answer, Failure>, Option<OneshotWatcher>);

async fn read(config: &Config, client: &Client, watch: bool) -> Found {
    let key = &config.root;
    let found = if watch {
        let found = client.get_and_watch_data(key).await;
        found.map(|(data, stat, watcher)| (data, stat, Some(watcher)))
    } else {
        client.get_data(key).await.map(|(data, stat)| (data, stat, None))
    };
    match found {
        Ok((data, stat, watcher)) => (Ok(Answer::Found(Some(held(data, &stat)))), watcher),
        Err(Error::NoNode) => (Ok(Answer::Found(None)), None),
        Err(error) => (Err(failure(&error)), None),
    }
}

fn held(data: Vec<u8>, stat: &Stat) -> Held {
    let (version, created) = (number(stat.mzxid), number(stat.czxid));
    Held { record: Record::of_key(Bytes::from(data), created), version, created }
}

const fn written(version: u64, created: u64) -> Answer {
    Answer::Written { version, created }
}

async fn put(
    config: &Config,
    client: &Client,
    record: Record,
    expect: Option<u64>,
) -> Result<Answer, Failure> {
    // The ensemble counts with the session's time-out, whatever stands in the record.
    if client.session_timeout() < record.duration {
        return Err(Failure::Rejected);
    }
    let key = &config.root;
    let data = record.encode();
    if let Some(expected) = expect {
        let stat = ours(config, client, expected).await?;
        let changed = client.set_data(key, &data, Some(stat.version)).await;
        let stat = changed.map_err(|error| failure(&error))?;
        return Ok(written(number(stat.mzxid), number(stat.czxid)));
    }
    let mode = CreateMode::Ephemeral.with_acls(config.acls());
    let created = match client.create(key, &data, &mode).await {
        Err(Error::NoNode) => {
            let parent = key.rfind('/').map_or("", |at| &key[..at]);
            make_directory(config, client, parent).await.map_err(|error| failure(&error))?;
            client.create(key, &data, &mode).await
        }
        done => done,
    };
    match created {
        Ok((stat, _)) => Ok(written(number(stat.mzxid), number(stat.czxid))),
        Err(Error::NodeExists) => Err(Failure::Conflict),
        Err(error) => Err(failure(&error)),
    }
}

/// The node, if it is of this version and of our session. A node of another session is not ours, even if this
/// candidate wrote it: it goes when that session does.
async fn ours(config: &Config, client: &Client, version: u64) -> Result<Stat, Failure> {
    let found = client.check_stat(&config.root).await.map_err(|error| failure(&error))?;
    let stat = found.ok_or(Failure::Absent)?;
    let is_ours = stat.ephemeral_owner == client.session_id().0;
    if is_ours && number(stat.mzxid) == version { Ok(stat) } else { Err(Failure::Conflict) }
}

/// Keeps the key by keeping the session alive. The `sync` passes ZooKeeper's leader.
async fn renew(config: &Config, client: &Client, version: u64) -> Result<Answer, Failure> {
    let synced = client.sync(&config.root);
    let stat = ours(config, client, version);
    synced.await.map_err(|error| failure(&error))?;
    let stat = stat.await?;
    Ok(written(number(stat.mzxid), number(stat.czxid)))
}

async fn delete(config: &Config, client: &Client, version: u64) -> Result<Answer, Failure> {
    let stat = ours(config, client, version).await?;
    let deleted = client.delete(&config.root, Some(stat.version)).await;
    deleted.map(|()| Answer::Done).map_err(|error| failure(&error))
}

/// The leader: with this recipe the store shows no other candidate.
pub(crate) async fn contenders(
    config: &Config,
    client: &Client,
) -> Result<Vec<Contender>, StoreError> {
    let key = &config.root;
    let synced = client.sync(key);
    let found = client.get_data(key);
    synced.await.map_err(store_error)?;
    match found.await {
        Ok((data, stat)) => Ok(leader(key, data, &stat)),
        Err(Error::NoNode) => Ok(Vec::new()),
        Err(error) => Err(store_error(error)),
    }
}

/// The same, and a watch for another.
pub(crate) async fn watch(
    config: &Config,
    client: &Client,
) -> Result<(Vec<Contender>, OneshotWatcher), Error> {
    let key = &config.root;
    loop {
        match client.get_and_watch_data(key).await {
            Ok((data, stat, watcher)) => return Ok((leader(key, data, &stat), watcher)),
            Err(Error::NoNode) => {
                if let Some(appears) = absent(client, key).await? {
                    return Ok((Vec::new(), appears));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn leader(key: &str, data: Vec<u8>, stat: &Stat) -> Vec<Contender> {
    let key = key.rsplit('/').next().unwrap_or_default();
    let leader = held(data, stat).leader();
    let one =
        leader.map(|leader| Contender::elected(leader.identity, leader.token.0, key.to_owned()));
    one.into_iter().collect()
}
