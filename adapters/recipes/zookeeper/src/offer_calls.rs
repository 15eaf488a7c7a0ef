//! The calls of the offer recipe: ephemeral sequential nodes below the root.
//!
//! The client library sends a request when its future is created, in the order of creation. So each call is polled
//! once where it is made, and answered by a task of its own.

use std::sync::Arc;

use bytes::Bytes;
use quorate_core::recipe::offer::{Answer, Call, Entry, queue};
use quorate_core::recipe::{Attempt, Failure, SessionId, Token};
use quorate_recipes::{Contender, Reporter, StoreError, begin};
use zookeeper_client::{Client, CreateMode, Error, OneshotWatcher, Stat};

use crate::config::Config;
use crate::error::{failure, store_error};
use crate::nodes::{absent, make_directory, number, watch};
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
        let (result, watcher) = answer(&config, session.client(), call).await;
        report.offer(attempt, result);
        // The session ends with its last handle.
        drop(session);
        if let Some(watcher) = watcher {
            watch(watcher, attempt, &report).await;
        }
    })
    .await;
}

async fn answer(
    config: &Config,
    client: &Client,
    call: Call,
) -> (Result<Answer, Failure>, Option<OneshotWatcher>) {
    let mut watcher = None;
    let result = match call {
        Call::EnsureRoot => ensure(config, client).await.map(|()| Answer::Done),
        Call::Create { session, name, data } => {
            if SessionId(client.session_id().0) != session {
                return (Err(Failure::Expired), None);
            }
            let path = config.path(&name);
            let mode = CreateMode::EphemeralSequential.with_acls(config.acls());
            let created = client.create(&path, &data, &mode).await;
            created.map(|(_, sequence)| Answer::Created { name: format!("{name}{sequence}") })
        }
        Call::List { fresh } => {
            list(config, client, fresh).await.map(|names| Answer::Listed(entries(names)))
        }
        Call::Read { name, watch: false } => {
            client.get_data(&config.path(&name)).await.map(|(data, stat)| read(data, &stat))
        }
        Call::Read { name, watch: true } => {
            let path = config.path(&name);
            client.get_and_watch_data(&path).await.map(|(data, stat, left)| {
                watcher = Some(left);
                read(data, &stat)
            })
        }
        // A name that ZooKeeper numbered never comes back, so no other node can be meant.
        Call::Delete { name, created: _ } => {
            client.delete(&config.path(&name), None).await.map(|()| Answer::Done)
        }
    };
    (result.map_err(|error| failure(&error)), watcher)
}

/// Creates the root and what is above it, as nodes that outlive the session. Where the root is there already, a
/// candidate needs no right to create it.
async fn ensure(config: &Config, client: &Client) -> Result<(), Error> {
    if client.check_stat(&config.root).await?.is_some() {
        return Ok(());
    }
    make_directory(config, client, &config.root).await
}

/// The names of the root's children. Both requests are under way before either is answered.
async fn list(config: &Config, client: &Client, fresh: bool) -> Result<Vec<String>, Error> {
    let root = &config.root;
    let synced = fresh.then(|| client.sync(root));
    let listed = client.list_children(root);
    if let Some(synced) = synced {
        synced.await?;
    }
    listed.await
}

fn entries(names: Vec<String>) -> Vec<Entry> {
    names.into_iter().map(|name| Entry { name, created: None }).collect()
}

fn read(data: Vec<u8>, stat: &Stat) -> Answer {
    let owner = (stat.ephemeral_owner != 0).then_some(SessionId(stat.ephemeral_owner));
    Answer::Read { data: Bytes::from(data), owner, created: Token(number(stat.czxid)) }
}

/// The candidates by their offers, in order.
pub(crate) async fn contenders(
    config: &Config,
    client: &Client,
    all: bool,
) -> Result<Vec<Contender>, StoreError> {
    loop {
        let names = match list(config, client, true).await {
            Ok(names) => names,
            // No candidate has ever competed here.
            Err(Error::NoNode) => return Ok(Vec::new()),
            Err(error) => return Err(store_error(error)),
        };
        let entries = entries(names);
        let row = queue(&entries);
        let mut found = Vec::new();
        for entry in row.iter().take(if all { row.len() } else { 1 }) {
            match client.get_data(&config.path(&entry.name)).await {
                Ok((data, stat)) => found.push(contender(data, &stat, entry)),
                // It has gone meanwhile.
                Err(Error::NoNode) => {}
                Err(error) => return Err(store_error(error)),
            }
        }
        if all || row.is_empty() || !found.is_empty() {
            return Ok(found);
        }
    }
}

/// The same of all, and a watch for candidates that come or go.
pub(crate) async fn watch_all(
    config: &Config,
    client: &Client,
    known: &[Contender],
) -> Result<(Vec<Contender>, OneshotWatcher), Error> {
    let (names, root, watcher) = loop {
        match client.get_and_watch_children(&config.root).await {
            Ok(listed) => break listed,
            Err(Error::NoNode) => {
                if let Some(appears) = absent(client, &config.root).await? {
                    return Ok((Vec::new(), appears));
                }
            }
            Err(error) => return Err(error),
        }
    };
    let entries = entries(names);
    let mut found = Vec::new();
    for entry in queue(&entries) {
        // Below one root a name comes once; what is known of it may be of another root in the same place.
        let is_known =
            |one: &&Contender| one.key == entry.name && one.token.as_u64() > number(root.czxid);
        if let Some(one) = known.iter().find(is_known) {
            found.push(one.clone());
            continue;
        }
        match client.get_data(&config.path(&entry.name)).await {
            Ok((data, stat)) => found.push(contender(data, &stat, entry)),
            Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((found, watcher))
}

/// The leader, and a watch for its end; or for a leader to come.
pub(crate) async fn watch_first(
    config: &Config,
    client: &Client,
) -> Result<(Vec<Contender>, OneshotWatcher), Error> {
    loop {
        let names = match client.list_children(&config.root).await {
            Ok(names) => names,
            Err(Error::NoNode) => Vec::new(),
            Err(error) => return Err(error),
        };
        let entries = entries(names);
        let Some(first) = queue(&entries).into_iter().next() else {
            let (none, watcher) = watch_all(config, client, &[]).await?;
            if none.is_empty() {
                return Ok((none, watcher));
            }
            continue;
        };
        match client.get_and_watch_data(&config.path(&first.name)).await {
            Ok((data, stat, watcher)) => return Ok((vec![contender(data, &stat, first)], watcher)),
            // It has gone meanwhile.
            Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
}

fn contender(data: Vec<u8>, stat: &Stat, entry: &Entry) -> Contender {
    Contender::elected(Bytes::from(data), number(stat.czxid), entry.name.clone())
}
