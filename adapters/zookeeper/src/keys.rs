//! The calls of the lease recipe: one ephemeral node, whose path is the root itself.
//!
//! The version of a key is the zxid of its last change. ZooKeeper compares versions that count from 0 in
//! each node; so a change is made in two steps, of which the second fails if anything came between.

use std::time::Instant;

use bytes::Bytes;
use quorate_core::recipe::lease::{Answer, Call, Held, Record};
use quorate_core::recipe::{Attempt, Failure, SessionId};
use quorate_store::{Contender, FencingToken, StoreError, Teller, begin};
use zookeeper_client::{Client, CreateMode, Error, OneshotWatcher, Stat};

use crate::calls::{make_directory, number, watch};
use crate::session::{ZooKeeper, failure, store_error};

/// Makes a call. Its answer is told once; so is the change that it leaves a watch for.
pub(crate) async fn lease(
    store: &ZooKeeper,
    client: Client,
    attempt: Attempt,
    call: Call,
    tell: Teller,
) {
    let store = store.clone();
    begin(async move {
        let called = Instant::now();
        let (result, watcher) = match call {
            Call::Read { watch } => read(&store, &client, watch).await,
            Call::Put { record, expect } => (put(&store, &client, record, expect).await, None),
            Call::Renew { version, .. } => (renew(&store, &client, version).await, None),
            Call::Delete { version } => (delete(&store, &client, version).await, None),
        };
        if result.is_ok() {
            // What it keeps alive is counted from then.
            let session = SessionId(client.session_id().0);
            tell.renewed(session, store.beats().counted(called));
        }
        tell.lease(attempt, result);
        // The session ends with its last handle.
        drop((store, client));
        if let Some(watcher) = watcher {
            watch(watcher, attempt, &tell).await;
        }
    })
    .await;
}

type Found = (Result<Answer, Failure>, Option<OneshotWatcher>);

async fn read(store: &ZooKeeper, client: &Client, watch: bool) -> Found {
    let key = &store.config.root;
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

/// What is no record of ours is that of a leader whom we do not know.
fn held(data: Vec<u8>, stat: &Stat) -> Held {
    let record = Record::decode(&data).unwrap_or_else(|| Record {
        holder: 0,
        identity: Bytes::from(data),
        duration: std::time::Duration::ZERO,
        taken: number(stat.czxid),
        released: false,
    });
    Held { record, version: number(stat.mzxid), created: number(stat.czxid) }
}

const fn written(version: u64, created: u64) -> Answer {
    Answer::Written { version, created }
}

async fn put(
    store: &ZooKeeper,
    client: &Client,
    record: Record,
    expect: Option<u64>,
) -> Result<Answer, Failure> {
    // The ensemble counts with the session's time-out, whatever stands in the record.
    if client.session_timeout() < record.duration {
        return Err(Failure::Rejected);
    }
    let key = &store.config.root;
    let data = record.encode();
    if let Some(expected) = expect {
        let stat = ours(store, client, expected).await?;
        let changed = client.set_data(key, &data, Some(stat.version)).await;
        let stat = changed.map_err(|error| failure(&error))?;
        return Ok(written(number(stat.mzxid), number(stat.czxid)));
    }
    let mode = CreateMode::Ephemeral.with_acls(store.acls());
    let created = match client.create(key, &data, &mode).await {
        Err(Error::NoNode) => {
            let parent = key.rfind('/').map_or("", |at| &key[..at]);
            make_directory(store, client, parent).await.map_err(|error| failure(&error))?;
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

/// The node, if it is of this version and of our session. What is not of our session is not ours, even if
/// we wrote it: it goes when its own session does.
async fn ours(store: &ZooKeeper, client: &Client, version: u64) -> Result<Stat, Failure> {
    let found = client.check_stat(&store.config.root).await.map_err(|error| failure(&error))?;
    let stat = found.ok_or(Failure::Absent)?;
    let is_ours = stat.ephemeral_owner == client.session_id().0;
    if is_ours && number(stat.mzxid) == version { Ok(stat) } else { Err(Failure::Conflict) }
}

/// What keeps the session alive keeps the key. The `sync` passes ZooKeeper's leader.
async fn renew(store: &ZooKeeper, client: &Client, version: u64) -> Result<Answer, Failure> {
    let synced = client.sync(&store.config.root);
    let stat = ours(store, client, version);
    synced.await.map_err(|error| failure(&error))?;
    let stat = stat.await?;
    Ok(written(number(stat.mzxid), number(stat.czxid)))
}

async fn delete(store: &ZooKeeper, client: &Client, version: u64) -> Result<Answer, Failure> {
    let stat = ours(store, client, version).await?;
    let deleted = client.delete(&store.config.root, Some(stat.version)).await;
    deleted.map(|()| Answer::Done).map_err(|error| failure(&error))
}

/// Who leads: nobody else can be seen.
pub(crate) async fn contenders(
    store: &ZooKeeper,
    client: &Client,
) -> Result<Vec<Contender>, StoreError> {
    let key = &store.config.root;
    let synced = client.sync(key);
    let found = client.get_data(key);
    synced.await.map_err(store_error)?;
    match found.await {
        Ok((data, stat)) => {
            let key = key.rsplit('/').next().unwrap_or_default();
            let leader = held(data, &stat).leader();
            let one = leader.map(|leader| Contender {
                identity: leader.identity,
                token: FencingToken::elected(leader.token.0),
                key: key.to_owned(),
            });
            Ok(one.into_iter().collect())
        }
        Err(Error::NoNode) => Ok(Vec::new()),
        Err(error) => Err(store_error(error)),
    }
}
