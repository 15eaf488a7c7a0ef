//! Files that are looked at again while the server runs: by whom, when it is time, and when an operator asks.

use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use futures_lite::future::{or, pending};

use crate::runtime::Runtime;

/// Those who look. Each is asked by itself: what one has heard is not lost to the others.
#[derive(Debug)]
pub(crate) struct Looks {
    /// At the stores of links between servers.
    #[cfg(feature = "tls")]
    pub(crate) links: Look,
    /// At the stores of clients.
    #[cfg(feature = "tls")]
    pub(crate) clients: Look,
    /// At who logs in between servers.
    pub(crate) logins: Look,
}

/// One who looks.
#[derive(Debug)]
pub(crate) struct Look(Sender<()>, Receiver<()>);

impl Looks {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(feature = "tls")]
            links: Look::new(),
            #[cfg(feature = "tls")]
            clients: Look::new(),
            logins: Look::new(),
        }
    }

    /// An operator wants all to look now.
    pub(crate) fn ask(&self) {
        #[cfg(feature = "tls")]
        let all = [&self.links, &self.clients, &self.logins];
        #[cfg(not(feature = "tls"))]
        let all = [&self.logins];
        for look in all {
            // Full: it looks soon.
            let _ = look.0.try_send(());
        }
    }
}

impl Look {
    fn new() -> Self {
        let (ask, asked) = bounded(1);
        Self(ask, asked)
    }

    /// Waits until it is time, for ever if there is none; whether an operator has asked.
    pub(crate) async fn wait<R: Runtime>(&self, runtime: &R, most: Option<Duration>) -> bool {
        let asked = async {
            match self.1.recv().await {
                Ok(()) => true,
                // There is a sender as long as there is this.
                Err(_) => pending().await,
            }
        };
        or(asked, async {
            match most {
                Some(most) => runtime.sleep(most).await,
                None => pending().await,
            }
            false
        })
        .await
    }
}
