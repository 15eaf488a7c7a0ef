//! Trying to listen at an address again, before the first step: an address in use may be free soon.

use std::io;
use std::time::Duration;

use quorate_core::id::ServerId;

use crate::config::ServerConfig;
use crate::runtime::Runtime;

/// How often it was tried to listen at one address.
#[derive(Debug)]
pub(super) struct BindTries {
    server: ServerId,
    made: u32,
    /// Zero for any number.
    most: u32,
}

impl BindTries {
    pub(super) const fn new(config: &ServerConfig) -> Self {
        Self { server: config.core.id, made: 0, most: config.bind_tries }
    }

    pub(super) const fn made(&self) -> u32 {
        self.made
    }

    /// Waits until it is time for another try behind one that has failed.
    ///
    /// # Errors
    ///
    /// That of the last try, if it is of no use to try again.
    pub(super) async fn again<R: Runtime>(
        &mut self,
        runtime: &R,
        at: &str,
        error: io::Error,
    ) -> io::Result<()> {
        self.made = self.made.saturating_add(1);
        let temporary =
            matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable);
        if !temporary || (self.most > 0 && self.made >= self.most) {
            return Err(error);
        }
        tracing::warn!(
            event = "port.failed", sid = self.server.0, address = at, %error, tries = self.made,
            "cannot listen, trying again"
        );
        runtime.sleep(BIND_RETRY).await;
        Ok(())
    }
}

/// Between two tries to listen.
pub(super) const BIND_RETRY: Duration = Duration::from_secs(1);
