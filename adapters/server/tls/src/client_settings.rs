//! What an operator says about TLS at the port for clients, under ZooKeeper's names.

use std::time::Duration;

use crate::settings::{ClientAuth, RevokedFile, StoreFile, Suite, Versions};

/// What a server is told about TLS for its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientSettings {
    /// Its key and certificates (`ssl.keyStore.*`).
    pub key_store: StoreFile,
    /// Which clients it trusts (`ssl.trustStore.*`); none where none is asked for a certificate.
    pub trust_store: Option<StoreFile>,
    /// What may be spoken (`ssl.protocol`, `ssl.enabledProtocols`).
    pub versions: Versions,
    /// The cipher suites that may be agreed on (`ssl.ciphersuites`); none said: all there are.
    pub suites: Vec<Suite>,
    /// Whether a client has to show a certificate (`ssl.clientAuth`).
    pub client_auth: ClientAuth,
    /// Which certificates of theirs were taken back (`quorate.ssl.client.crlFile`); nothing is asked of an authority. Of no use
    /// without a trust store.
    pub revoked: Option<RevokedFile>,
    /// Whether a certificate has to name the address that its client comes from (`ssl.clientHostnameVerification`).
    pub verify_names: bool,
    /// How long a handshake may take (`ssl.handshakeDetectionTimeoutMillis`; 5 s). On a port for TLS alone the first byte is
    /// part of it.
    pub handshake_time: Duration,
    /// How often it is looked whether the stores have changed (`quorate.ssl.reloadInterval`; 10 s); never, if none
    /// (`client.certReload=false`). Connections that are open stay as they are.
    pub reload: Option<Duration>,
}

impl ClientSettings {
    /// A certificate of those whom this store names is asked of each client; both versions, all suites.
    pub fn new(key_store: StoreFile, trust_store: Option<StoreFile>) -> Self {
        let client_auth = if trust_store.is_some() { ClientAuth::Need } else { ClientAuth::None };
        Self {
            key_store,
            trust_store,
            versions: Versions { tls12: true, tls13: true },
            suites: Vec::new(),
            client_auth,
            revoked: None,
            verify_names: false,
            handshake_time: Duration::from_secs(5),
            reload: Some(Duration::from_secs(10)),
        }
    }
}
