//! `watch`: says what happens to a node, until the caller gives up.

use std::io::{self, Write};

use zookeeper_client::{AddWatchMode, Client, Error as Refusal, EventType, SessionState};

use super::error::{ClientError, on};
use super::outcome::{Outcome, Page};

/// Ends only if the session does, or the reader has gone.
pub(super) async fn watch(
    client: &Client,
    path: &str,
    recursive: bool,
    page: Page,
) -> Result<Outcome, ClientError> {
    let mode = if recursive { AddWatchMode::PersistentRecursive } else { AddWatchMode::Persistent };
    let mut watcher = client.watch(path, mode).await.map_err(on(path))?;
    notice(&format!("watching {path}"));
    loop {
        let event = watcher.changed().await;
        if event.event_type == EventType::Session {
            match event.session_state {
                SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                    // The library (0.11) does not set persistent watches again. The old one goes when there is another:
                    // the other way round it would take the server's watch with it.
                    match client.watch(path, mode).await {
                        Ok(again) => watcher = again,
                        Err(Refusal::ConnectionLoss) => continue,
                        Err(refusal) => return Err(on(path)(refusal)),
                    }
                    notice("connected again; what happened meanwhile is not shown");
                }
                SessionState::Disconnected => notice("the connection is lost"),
                SessionState::AuthFailed => return Err(on(path)(Refusal::AuthFailed)),
                SessionState::Expired => return Err(on(path)(Refusal::SessionExpired)),
                SessionState::Closed => return Err(on(path)(Refusal::ClientClosed)),
            }
            continue;
        }
        let zxid = (event.zxid >= 0).then(|| format!("{:#x}", event.zxid));
        let seen = Outcome::Watch { event: event.event_type.to_string(), path: event.path, zxid };
        if page.say(&seen).is_err() {
            return Ok(seen);
        }
    }
}

/// What is no result.
fn notice(text: &str) {
    // Without stderr there is no way to say it.
    drop(writeln!(io::stderr(), "{text}"));
}
