//! A server from its first step to its last socket closed.
//!
//! ```text
//!   drive ──► leave ──► the guards are told ──► listeners close ──► goodbyes ──► links close ──► finished
//! ```
//!
//! In this order, however it ends: by a word of the operator, by a fault that makes going on unsafe, or by a panic. A
//! peer that sees its link close may follow another leader, so the guards have been told before; and what dials again
//! finds the ports closed.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_lite::FutureExt;
use futures_lite::future::{or, pending};
use quorate_application::Application;
use quorate_leadership::LeadershipGate;

use crate::drive::{Driver, Quit};
use crate::error::ServerError;
use crate::runtime::Runtime;
use crate::status::Published;
use crate::task_group::TaskGroupHandle;

/// The task of a server, from the first step to the last socket closed.
pub(super) struct ServerTask {
    pub(super) listeners: TaskGroupHandle,
    pub(super) links: TaskGroupHandle,
    pub(super) outcome: Arc<OnceLock<Result<(), ServerError>>>,
    pub(super) published: Arc<Published>,
    pub(super) gate: Arc<LeadershipGate>,
}

/// Also when the loop panics or the runtime drops it.
impl Drop for ServerTask {
    fn drop(&mut self) {
        self.published.end();
        self.gate.end();
    }
}

impl ServerTask {
    pub(super) async fn run<R: Runtime, A: Application>(mut self, mut driver: Box<Driver<R, A>>) {
        let driving = async {
            match driver.drive().await? {
                Quit::Gracefully => driver.leave().await,
                Quit::AtOnce => Ok(Quit::AtOnce),
            }
        };
        // A panic of the application, or of ours, must not leave anything open either.
        let driven = AssertUnwindSafe(driving).catch_unwind().await;
        let result = driven.unwrap_or(Err(ServerError::Aborted));
        // The guards first: a peer that sees its link close may establish another leader.
        self.gate.end();
        let sid = driver.shared.id.0;
        match &result {
            Ok(how) => tracing::info!(event = "server.stopped", sid, ?how, "server ends"),
            Err(error) => tracing::error!(event = "server.stopped", sid, %error, "server ends"),
        }
        // Then the listeners: a peer that loses its link to us and dials is refused at once, and need not wait for us.
        self.listeners.stop();
        self.listeners.idle().await;
        match result {
            Ok(Quit::Gracefully) => driver.say_goodbye().await,
            Ok(Quit::AtOnce) | Err(ServerError::Aborted) => self.links.stop(),
            Err(_) => {}
        }
        let (runtime, quit) = (driver.runtime.clone(), driver.quit.clone());
        // The loop's ends of all links with it: each link writes what it has and closes.
        drop(driver);
        let at_once = async {
            loop {
                match quit.recv().await {
                    Ok(Quit::AtOnce) => return,
                    Ok(Quit::Gracefully) => {}
                    Err(_) => return pending().await,
                }
            }
        };
        or(self.links.idle(), or(at_once, runtime.sleep(GOODBYE_TIME))).await;
        self.links.stop();
        self.links.idle().await;
        // Set once, here.
        drop(self.outcome.set(result.map(|_| ())));
    }
}

/// How long links may take all together to write their last bytes.
const GOODBYE_TIME: Duration = Duration::from_millis(1100);
