//! What a running server is told to change: its file again, what it logs. By the operator's socket, or by a signal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_service::ZooKeeper;
use quorate_tokio::Server;
use quorate_tokio::zoo_cfg::{ConfigError, FileChanges, JvmFlags, Loaded};
use thiserror::Error;
use tokio::time::timeout;

use crate::client_logins::ClientLogins;
use crate::in_force::InForce;
use crate::logs::{FilterError, Logs};
use crate::settings::adjustment;

/// A running server, and what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) server: Server<ZooKeeper>,
    pub(crate) logs: Logs,
    in_force: InForce,
    client_logins: ClientLogins,
    flags: Arc<JvmFlags>,
    /// One reads the file again at a time.
    loaded: Arc<Mutex<Loaded>>,
}

/// Why a file does not take the place of the one before.
#[derive(Debug, Error)]
pub(crate) enum ReloadError {
    /// It cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What it says of the log cannot.
    #[error("quorate.log.level: {0}")]
    Filter(#[from] FilterError),
}

/// What has come of reading the file again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reload {
    /// How it differs from what the server ran with.
    pub(crate) changes: FileChanges,
    /// What the operator should know of it.
    pub(crate) warnings: Vec<String>,
}

impl Control {
    pub(crate) fn new(
        server: Server<ZooKeeper>,
        logs: Logs,
        (in_force, client_logins): (InForce, ClientLogins),
        (loaded, flags): (Loaded, JvmFlags),
    ) -> Self {
        let loaded = Arc::new(Mutex::new(loaded));
        Self { server, logs, in_force, client_logins, flags: Arc::new(flags), loaded }
    }

    /// Reads the file again; what of it may change counts from now on. A file that cannot be used changes nothing.
    pub(crate) async fn reload(&self) -> Result<Reload, ReloadError> {
        // Whatever the file says: certificates and logins are replaced without it.
        self.server.look_at_stores();
        self.client_logins.look(&self.server, true).await;
        let reloaded = self.read_again();
        match &reloaded {
            Ok(Reload { changes, .. }) => {
                let cfg = self.in_force.get();
                let (one, all) = (cfg.clients.max_per_address, cfg.clients.max_connections);
                self.server.limit_clients(one, all);
                let to = adjustment(&cfg);
                // However long the application takes: the service hears of it then.
                let heard = self.server.look(move |_, service, _| service.adjust(to));
                drop(timeout(PATIENCE, heard).await);
                let shown = |changes: &[(String, Option<String>)]| shown(changes).join(", ");
                tracing::info!(
                    event = "config.reloaded",
                    now = shown(&changes.at_once),
                    at_restart = shown(&changes.at_restart),
                    "the file was read again"
                );
            }
            Err(error) => {
                let event = "config.refused";
                tracing::warn!(event, %error, "the file cannot be used: what was good stays in force");
            }
        }
        reloaded
    }

    fn read_again(&self) -> Result<Reload, ReloadError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = Loaded::read(&loaded.cfg.file, &self.flags)?;
        let level = newer.cfg.log.level.as_deref();
        if loaded.cfg.log.level.as_deref() != level {
            self.logs.set_by_file(level)?;
        }
        let changes = loaded.changes(&newer);
        loaded.adopt(&newer);
        self.in_force.set(loaded.cfg.clone());
        let mut warnings: Vec<_> = newer.cfg.warnings.iter().map(ToString::to_string).collect();
        let of_level = changes.at_once.iter().any(|(key, _)| key == "quorate.log.level");
        if of_level && self.logs.is_before_file() {
            warnings.push("quorate.log.level has no effect: --log or RUST_LOG is set".to_owned());
        }
        Ok(Reload { changes, warnings })
    }

    /// What is in the file by now and counts only after a restart; nothing if it cannot be used.
    pub(crate) fn at_restart(&self) -> Vec<String> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = Loaded::read(&loaded.cfg.file, &self.flags);
        newer.map(|newer| shown(&loaded.changes(&newer).at_restart)).unwrap_or_default()
    }

    /// What it logged at the start, by the file in force.
    pub(crate) fn log_as_configured(&self) -> Result<(), FilterError> {
        self.logs.set_back(self.in_force.get().log.level.as_deref())
    }
}

/// `key=value`, or the key of a line that is gone.
pub(crate) fn shown(changes: &[(String, Option<String>)]) -> Vec<String> {
    let shown = |(key, value): &(String, Option<String>)| match value {
        Some(value) => format!("{key}={value}"),
        None => key.clone(),
    };
    changes.iter().map(shown).collect()
}

/// How long the service is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
