//! What both recipes do with nodes: their paths and access rights, zxids as tokens, and watches.

use quorate_core::recipe::Attempt;
use quorate_recipes::Reporter;
use zookeeper_client::{Acls, Client, CreateMode, Error, EventType, OneshotWatcher};

use crate::config::{Access, Config};

impl Config {
    /// The path of an offer.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// The access rights of what this candidate creates.
    pub(crate) fn acls(&self) -> Acls<'static> {
        match self.access {
            Access::Anyone => Acls::anyone_all(),
            Access::Creator => Acls::creator_all(),
        }
    }
}

/// A zxid as a token, or a version.
pub(crate) fn number(zxid: i64) -> u64 {
    u64::try_from(zxid).unwrap_or(0)
}

/// Creates a node and what is above it, as nodes that outlive the session.
pub(crate) async fn make_directory(
    config: &Config,
    client: &Client,
    path: &str,
) -> Result<(), Error> {
    let mode = CreateMode::Persistent.with_acls(config.acls());
    client.mkdir(path, &mode).await
}

/// A watch for a node to appear; none if it is there.
pub(crate) async fn absent(client: &Client, path: &str) -> Result<Option<OneshotWatcher>, Error> {
    let (stat, watcher) = client.check_and_watch_stat(path).await?;
    Ok(stat.is_none().then_some(watcher))
}

/// Waits for a watch to fire, and reports it. When no task hears that any more, the watch is taken back: in a session
/// that goes on it would stay.
pub(crate) async fn watch(watcher: OneshotWatcher, attempt: Attempt, report: &Reporter) {
    let event = tokio::select! {
        event = watcher.changed() => event,
        () = report.closed() => return,
    };
    match event.event_type {
        EventType::NodeDeleted => report.fired(attempt, true),
        EventType::NodeDataChanged | EventType::NodeCreated | EventType::NodeChildrenChanged => {
            report.fired(attempt, false);
        }
        // The session is over, which is reported elsewhere.
        EventType::Session => {}
    }
}
