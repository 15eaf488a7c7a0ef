//! Who of the clients logs in by SASL, read again when the JAAS file has changed. Those who are logged in stay.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorate_driver::nonces;
use quorate_service::sasl::Users;
use quorate_service::{Sasl, ZooKeeper};
use quorate_tokio::zoo_cfg::{ClientSasl, ZooCfg};
use quorate_tokio::{SaslError, Server};
use tokio::time::{sleep, timeout};

/// How clients log in, and who does now. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct ClientLogins {
    settings: Option<ClientSasl>,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug)]
struct Held {
    users: Option<Users>,
    /// The last look was at something that is no file of logins.
    failed: bool,
}

impl ClientLogins {
    /// Reads the file, if clients may log in; how they do then.
    pub(crate) fn read(cfg: &ZooCfg) -> Result<(Self, Option<Arc<Sasl>>), SaslError> {
        let settings = cfg.clients.sasl.clone();
        let users = settings.as_ref().map(ClientSasl::read).transpose()?.flatten();
        let told = match (&settings, users.clone()) {
            (Some(settings), Some(users)) => Some(sasl(settings, users)?),
            _ => None,
        };
        let held = Arc::new(Mutex::new(Held { users, failed: false }));
        Ok((Self { settings, held }, told))
    }

    /// Looks every so often, if that is wanted.
    pub(crate) async fn watch(self, server: Server<ZooKeeper>) {
        let Some(every) = self.settings.as_ref().and_then(|settings| settings.reload) else {
            return;
        };
        loop {
            sleep(every).await;
            self.look(&server, false).await;
        }
    }

    /// Reads the file again. What cannot be read changes nothing, and is said: once, or whenever an operator asks.
    pub(crate) async fn look(&self, server: &Server<ZooKeeper>, asked: bool) {
        let Some(mut settings) = self.settings.clone() else { return };
        // Where clients log in, a file without them is one that is being written.
        settings.needed |= self.held().users.is_some();
        let reading = tokio::task::spawn_blocking(move || {
            let users = settings.read()?;
            Ok::<_, SaslError>(users.map(|users| (sasl(&settings, users.clone()), users)))
        });
        let Ok(read) = reading.await else { return };
        let (sasl, users) = match read {
            Ok(None) => return,
            Ok(Some((Ok(sasl), users))) => (sasl, users),
            Ok(Some((Err(error), _))) | Err(error) => return self.failed(&error, asked),
        };
        {
            let mut held = self.held();
            held.failed = false;
            if held.users.as_ref() == Some(&users) {
                return;
            }
            held.users = Some(users);
        }
        // However long the application takes: the service hears of it then.
        let heard = server.look(move |_, service, _| service.adopt_logins(sasl));
        drop(timeout(PATIENCE, heard).await);
        let event = "sasl.reloaded";
        tracing::info!(event, "other logins of clients, for those who log in from now on");
    }

    fn failed(&self, error: &SaslError, asked: bool) {
        let told = std::mem::replace(&mut self.held().failed, true);
        if !told || asked {
            let event = "sasl.reload_failed";
            tracing::warn!(event, %error, "who of the clients logs in cannot be read, and stays as it was");
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sasl(settings: &ClientSasl, users: Users) -> Result<Arc<Sasl>, SaslError> {
    let (super_users, failed_stay) = (settings.super_users.clone(), settings.failed_stay);
    Ok(Arc::new(Sasl { users, nonces: nonces()?, super_users, failed_stay }))
}

/// How long the service is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
