//! What a `zoo.cfg` says of TLS around HTTP: `admin.forceHttps` and its like, `metricsProvider.httpsPort` and its stores.

use quorate_core::address::HostPort;
use quorate_tls::{ClientAuth, ClientSettings, Settings};

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::ConfigError;
use crate::zoo_cfg::tls::{self, StoreKeys, store, suites, versions};

/// TLS around the admin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminTls {
    /// Its stores, and what may be spoken.
    pub settings: ClientSettings,
    /// Whether requests may come without it (`admin.portUnification`, unless `admin.forceHttps` is set, too).
    pub accepts_plain: bool,
}

/// Metrics over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureMetrics {
    /// Where Prometheus scrapes with TLS (`metricsProvider.httpHost`, `metricsProvider.httpsPort`).
    pub address: HostPort,
    /// Its stores (`metricsProvider.ssl.keyStore.*`, `metricsProvider.ssl.trustStore.*`), and what may be spoken. A scraper has to
    /// show a certificate, unless `metricsProvider.ssl.need.client.auth=false`.
    pub settings: ClientSettings,
}

/// As ZooKeeper has it, with the stores of links between servers.
pub(super) fn admin(
    entries: &mut Entries<'_>,
    enabled: bool,
    of_servers: Option<&Settings>,
) -> Result<Option<AdminTls>, ConfigError> {
    let both = entries.boolean("admin.portUnification", false)?;
    let alone = entries.boolean("admin.forceHttps", false)?;
    let accepts_plain = both && !alone;
    let auth = entries
        .peek("admin.needClientAuth")
        .is_some_and(|entry| entry.value.eq_ignore_ascii_case("true"));
    if enabled && accepts_plain && auth {
        entries.weakens("admin.needClientAuth", "requests without TLS need no certificate");
    }
    let auth = entries.boolean("admin.needClientAuth", false)?;
    if !enabled {
        return Ok(None);
    }
    if !both && !alone {
        let why = "admin.needClientAuth=true asks for certificates, which there are with TLS only";
        return if auth { Err(entries.missing("admin.forceHttps", why)) } else { Ok(None) };
    }
    let auth = if auth { ClientAuth::Need } else { ClientAuth::None };
    let settings = match of_servers {
        Some(servers) => {
            let trust = (auth == ClientAuth::Need).then(|| servers.trust_store.clone());
            let mut settings = ClientSettings::new(servers.key_store.clone(), trust);
            settings.versions = servers.versions;
            settings.suites.clone_from(&servers.suites);
            settings.revoked.clone_from(&servers.revoked);
            settings.handshake_time = servers.handshake_time;
            settings.reload = servers.reload;
            settings
        }
        None => {
            let mut settings = stores(entries, (&tls::KEY_STORE, &tls::TRUST_STORE), auth)?;
            let (protocol, enabled) = ("ssl.quorum.protocol", "ssl.quorum.enabledProtocols");
            settings.versions = versions(entries, protocol, enabled)?;
            settings.suites = suites(entries, "ssl.quorum.ciphersuites")?;
            settings
        }
    };
    Ok(Some(AdminTls { settings, accepts_plain }))
}

/// As in ZooKeeper 3.10, with stores of their own. `host` is where metrics are without TLS.
pub(super) fn metrics(
    entries: &mut Entries<'_>,
    host: &str,
) -> Result<Option<SecureMetrics>, ConfigError> {
    let port = entries.number("metricsProvider.httpsPort", 0, u16::MAX.into())?;
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0) else {
        return Ok(None);
    };
    let need = entries.boolean("metricsProvider.ssl.need.client.auth", true)?;
    let want = entries.boolean("metricsProvider.ssl.want.client.auth", true)?;
    let auth = match (need, want) {
        (true, _) => ClientAuth::Need,
        (false, true) => ClientAuth::Want,
        (false, false) => ClientAuth::None,
    };
    let mut settings = stores(entries, (&KEY_STORE, &TRUST_STORE), auth)?;
    let enabled = "metricsProvider.ssl.enabledProtocols";
    settings.versions = versions(entries, "metricsProvider.ssl.protocol", enabled)?;
    settings.suites = suites(entries, "metricsProvider.ssl.ciphersuites")?;
    let address = HostPort { host: host.to_owned(), port };
    Ok(Some(SecureMetrics { address, settings }))
}

fn stores(
    entries: &mut Entries<'_>,
    (key, trust): (&StoreKeys, &StoreKeys),
    auth: ClientAuth,
) -> Result<ClientSettings, ConfigError> {
    let key_store = store(entries, key)?;
    let has_trust = entries.peek(trust.location).is_some();
    let trust_store = match auth {
        ClientAuth::Need => Some(store(entries, trust)?),
        ClientAuth::Want | ClientAuth::None => {
            has_trust.then(|| store(entries, trust)).transpose()?
        }
    };
    let mut settings = ClientSettings::new(key_store, trust_store);
    settings.client_auth = auth;
    Ok(settings)
}

const KEY_STORE: StoreKeys = StoreKeys {
    location: "metricsProvider.ssl.keyStore.location",
    kind: "metricsProvider.ssl.keyStore.type",
    password: "metricsProvider.ssl.keyStore.password",
    password_path: "metricsProvider.ssl.keyStore.passwordPath",
    why: "the file with the key and certificate that scrapers are shown",
};
const TRUST_STORE: StoreKeys = StoreKeys {
    location: "metricsProvider.ssl.trustStore.location",
    kind: "metricsProvider.ssl.trustStore.type",
    password: "metricsProvider.ssl.trustStore.password",
    password_path: "metricsProvider.ssl.trustStore.passwordPath",
    why: "the file with those whose scrapers are let in, unless metricsProvider.ssl.need.client.auth is false",
};
