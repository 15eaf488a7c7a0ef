//! The watches of one session, no more than one for each key.

use std::collections::BTreeMap;

use etcd_client::{Client, Error, EventType, WatchOptions};
use quorate_core::recipe::Attempt;
use quorate_recipes::{Backoff, Reporter};
use tokio::task::AbortHandle;

/// The watches of one session, no more than one for each key.
#[derive(Debug, Default)]
pub(crate) struct Watches(BTreeMap<String, AbortHandle>);

impl Watches {
    /// Reports once when a key changes after `revision`.
    pub(crate) fn watch_after(
        &mut self,
        client: Client,
        key: String,
        revision: i64,
        attempt: Attempt,
        report: Reporter,
    ) {
        let watched = key.clone();
        let task = tokio::spawn(async move {
            let options = WatchOptions::new().with_start_revision(revision + 1);
            report.fired(attempt, until_changed(client, &watched, options).await);
        });
        self.0.retain(|_, watch| !watch.is_finished());
        if let Some(before) = self.0.insert(key, task.abort_handle()) {
            before.abort();
        }
    }

    pub(crate) fn end(&mut self) {
        for watch in std::mem::take(&mut self.0).into_values() {
            watch.abort();
        }
    }
}

/// Waits for the first change of a key, or of a range, however often the stream breaks. Whether it is the key's end.
pub(crate) async fn until_changed(mut client: Client, key: &str, options: WatchOptions) -> bool {
    let mut backoff = Backoff::new();
    loop {
        match first_change(&mut client, key, options.clone()).await {
            Ok(gone) => return gone,
            Err(error) => tracing::debug!(%error, "a watch is set again"),
        }
        backoff.wait().await;
    }
}

/// Whether the first change of a key is its end.
async fn first_change(
    client: &mut Client,
    key: &str,
    options: WatchOptions,
) -> Result<bool, Error> {
    let mut stream = client.watch(key, Some(options)).await?;
    while let Some(answer) = stream.message().await? {
        if let Some(event) = answer.events().first() {
            return Ok(event.event_type() == EventType::Delete);
        }
        if answer.compact_revision() != 0 {
            // The changes since are compacted away: there may have been one.
            return Ok(false);
        }
        if answer.canceled() {
            return Err(Error::WatchError(answer.cancel_reason().to_owned()));
        }
    }
    Err(Error::WatchError("the stream has ended".to_owned()))
}
