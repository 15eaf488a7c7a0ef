//! A session with the ensemble, and the next one if it ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use zookeeper_client::{Client, Error as Refusal};

use super::error::{ClientError, on};
use super::secret::Secret;

/// What a session is made of.
#[derive(Debug)]
pub(super) struct Wanted {
    /// `HOST:PORT`, with commas between them.
    pub(super) servers: String,
    pub(super) timeout: Duration,
    /// Proved again in each session.
    pub(super) identities: Vec<Secret>,
    /// How to come through TLS, if so.
    #[cfg(feature = "client-tls")]
    pub(super) tls: Option<zookeeper_client::TlsOptions>,
}

/// The session that is open now; the editor completes paths through it.
pub(super) type Current = Arc<Mutex<Client>>;

/// See [`Current`].
pub(super) fn current(current: &Current) -> Client {
    current.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Wanted {
    /// Opens a session.
    pub(super) async fn open(&self) -> Result<Client, ClientError> {
        let mut connector = Client::connector().with_session_timeout(self.timeout);
        for identity in &self.identities {
            connector = connector.with_auth("digest", identity.bytes());
        }
        let opening = async {
            #[cfg(feature = "client-tls")]
            if let Some(tls) = self.tls.clone() {
                return connector.with_tls(tls).secure_connect(&self.servers).await;
            }
            connector.connect(&self.servers).await
        };
        let opened = tokio::time::timeout(self.timeout, opening).await;
        match opened {
            Ok(Ok(client)) => Ok(client),
            Err(_) | Ok(Err(Refusal::Timeout | Refusal::NoHosts | Refusal::ConnectionLoss)) => {
                Err(ClientError::Unreachable {
                    servers: self.servers.clone(),
                    milliseconds: self.timeout.as_millis(),
                })
            }
            Ok(Err(refusal)) => Err(on(&self.servers)(refusal)),
        }
    }

    /// The session, or another if it has ended.
    pub(super) async fn living(&self, shared: &Current) -> Result<Client, ClientError> {
        let client = current(shared);
        if !client.state().is_terminated() {
            return Ok(client);
        }
        let client = self.open().await?;
        *shared.lock().unwrap_or_else(PoisonError::into_inner) = client.clone();
        Ok(client)
    }
}

/// Ends a session, so that its ephemeral nodes go now and not by its time-out.
pub(super) async fn close(client: Client) {
    let mut states = client.state_watcher();
    // The last of them closes it.
    drop(client);
    let closed = async { while !states.changed().await.is_terminated() {} };
    // The server need not answer.
    drop(tokio::time::timeout(PATIENCE, closed).await);
}

const PATIENCE: Duration = Duration::from_secs(1);
