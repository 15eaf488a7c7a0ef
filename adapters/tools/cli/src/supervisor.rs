//! What systemd is told of a server, by its socket (`NOTIFY_SOCKET`, sd_notify(3)); nothing where there is none.
//!
//! ```text
//!   recovering ──► EXTEND_TIMEOUT_USEC   ports open ──► READY=1   each change ──► STATUS=   told to end ──► STOPPING=1
//! ```
//!
//! A server is ready when its disk is recovered and its ports are open, never first when there is a leader: who starts three
//! one after the other would wait for ever for the first.

use std::future::Future;
use std::time::Duration;

use quorate_service::ZooKeeper;
use quorate_tokio::Server;
use quorate_tokio::core::status::Status as CoreStatus;
use quorate_tokio::core::vote::ServerState;
use sd_notify::NotifyState;

/// How long a start may take that has just said that it goes on, and how often it says so.
const EXTENSION: Duration = Duration::from_secs(30);
const EXTENDED_EVERY: Duration = Duration::from_secs(5);

/// Whether something supervises this process.
fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager cannot be told");
    }
}

/// Runs a start, and asks for more time while it takes long: a large log is read for minutes.
pub(crate) async fn starting<T>(start: impl Future<Output = T>) -> T {
    tokio::pin!(start);
    let mut ask = tokio::time::interval(EXTENDED_EVERY);
    ask.tick().await;
    loop {
        tokio::select! {
            started = &mut start => return started,
            _ = ask.tick() => {
                let micros = u32::try_from(EXTENSION.as_micros()).unwrap_or(u32::MAX);
                tell(&[NotifyState::Status("recovering"), NotifyState::ExtendTimeoutUsec(micros)]);
            }
        }
    }
}

/// The server has recovered its disk, and its ports are open. From now on each change is told, and, if the unit has a
/// `WatchdogSec`, that its loop turns.
pub(crate) fn started(server: &Server<ZooKeeper>) {
    if !is_there() {
        return;
    }
    tell(&[NotifyState::Ready, NotifyState::Status("looking for a leader")]);
    let (mut changes, changing) = (server.changes(), server.clone());
    drop(tokio::spawn(async move {
        let mut said = String::new();
        while let Some(observed) = changes.next().await {
            let status = status(&observed.status, changing.id().0);
            if status != said {
                tell(&[NotifyState::Status(&status)]);
                said = status;
            }
        }
    }));
    if let Some(limit) = sd_notify::watchdog_enabled() {
        let server = server.clone();
        drop(tokio::spawn(async move {
            // The answer comes from the loop itself: a loop that is stuck says nothing, and is restarted.
            while server.healthy().await.is_ok() {
                tell(&[NotifyState::Watchdog]);
                tokio::time::sleep(limit / 3).await;
            }
        }));
    }
}

/// The server has been told to end.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("ends")]);
}

/// `following 3, epoch 7, zxid 0x70000001a`.
fn status(status: &CoreStatus, own: i64) -> String {
    let state = match (status.state, status.leader) {
        (ServerState::Looking, _) | (_, None) => "looking for a leader".to_owned(),
        (ServerState::Leading, _) => format!("leading as {own}"),
        (ServerState::Following, Some(leader)) => format!("following {leader}"),
        (ServerState::Observing, Some(leader)) => format!("observing {leader}"),
    };
    format!("{state}, epoch {}, zxid {}", status.current_epoch, status.last)
}
