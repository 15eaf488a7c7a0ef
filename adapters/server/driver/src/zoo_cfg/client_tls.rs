//! What a `zoo.cfg` says of TLS for clients: `secureClientPort`, `client.portUnification` and `ssl.*`.

use quorate_core::address::HostPort;
use quorate_core::membership::Member;
use quorate_tls::{ClientAuth, ClientSettings, RevokedFile};

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::{Caution, ConfigError, Setting};
use crate::zoo_cfg::tls::{StoreKeys, client_auth, store, suites, versions};

/// TLS for the clients of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsSettings {
    /// Its stores, and what may be spoken.
    pub settings: ClientSettings,
    /// Where clients connect with TLS alone, if anywhere; port 0 is one that the system picks. What our own line in the
    /// membership says counts where `secureClientPort` says nothing; a line that changes later is not followed.
    pub address: Option<HostPort>,
    /// Whether they may come with TLS at the plain port, too (`client.portUnification`).
    pub on_plain_port: bool,
}

/// None where clients are to have none: what else is said of it has no effect then. `own`: our line in the
/// membership, which asks for nothing where there is no store.
pub(super) fn read(
    entries: &mut Entries<'_>,
    own: Option<&Member>,
) -> Result<Option<ClientTlsSettings>, ConfigError> {
    ignore_factory(entries);
    let on_plain_port = entries.boolean("client.portUnification", false)?;
    let line = own.and_then(|own| own.secure_client.clone());
    let line = line.filter(|_| entries.peek(KEY_STORE.location).is_some());
    let address = address(entries)?.or(line);
    if address.is_none() && !on_plain_port {
        return Ok(None);
    }
    for (key, what) in UNSUPPORTED {
        if let Some(setting) = entries.peek(key).filter(|entry| is_on(&entry.value)) {
            return Err(ConfigError::NotSupported { setting: setting.into(), what });
        }
        entries.take(key);
    }
    if let Some(entry) = entries.take("ssl.authProvider").filter(|entry| entry.value != "x509") {
        return Err(entry.value_error("x509, the only one that there is".to_owned()));
    }
    let auth = client_auth(entries, "ssl.clientAuth", "clients need not say who they are")?;
    let key_store = store(entries, &KEY_STORE)?;
    let has_trust = entries.peek(TRUST_STORE.location).is_some();
    let trust_store = match auth {
        ClientAuth::None if !has_trust => None,
        ClientAuth::None | ClientAuth::Want | ClientAuth::Need => {
            Some(store(entries, &TRUST_STORE)?)
        }
    };
    let mut settings = ClientSettings::new(key_store, trust_store);
    settings.client_auth = auth;
    settings.versions = versions(entries, "ssl.protocol", "ssl.enabledProtocols")?;
    settings.suites = suites(entries, "ssl.ciphersuites")?;
    let strict = entries.boolean("quorate.ssl.client.crlStrict", false)?;
    let lists = entries.path("quorate.ssl.client.crlFile")?;
    settings.revoked = lists.map(|path| RevokedFile { path, strict });
    settings.verify_names = entries.boolean("ssl.clientHostnameVerification", false)?;
    if let Some(limit) = entries.millis("ssl.handshakeDetectionTimeoutMillis", 1)? {
        settings.handshake_time = limit;
    }
    settings.reload = reload(entries)?.or(settings.reload);
    if !entries.boolean("client.certReload", true)? {
        settings.reload = None;
    }
    if let Some(entry) = entries.take("ssl.sslProvider").filter(|entry| entry.value != "JDK") {
        let Setting { at, key, value } = entry;
        entries.warn(at, Caution::NotUsed { key, value, why: "rustls is what speaks TLS here" });
    }
    for (key, why) in WITHOUT_EFFECT {
        entries.without_effect(key, why);
        entries.take(key);
    }
    Ok(Some(ClientTlsSettings { settings, address, on_plain_port }))
}

/// `secureClientPort` and `secureClientPortAddress`; 0 and -1 stand for none, as in ZooKeeper.
fn address(entries: &mut Entries<'_>) -> Result<Option<HostPort>, ConfigError> {
    if entries.peek("secureClientPort").is_some_and(|entry| entry.value == "-1") {
        entries.take("secureClientPort");
    }
    let port = entries.number("secureClientPort", 0, u16::MAX.into())?.filter(|port| *port > 0);
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else {
        return match entries.peek("secureClientPortAddress") {
            Some(_) => Err(entries.missing("secureClientPort", "secureClientPortAddress is set")),
            None => Ok(None),
        };
    };
    let Some(entry) = entries.take("secureClientPortAddress") else {
        return Ok(Some(HostPort { host: "0.0.0.0".to_owned(), port }));
    };
    let host = entry.value.trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(entry.value_error("a host".to_owned()));
    }
    Ok(Some(HostPort { host, port }))
}

/// How often the stores are looked at. The line is left for those of links between servers.
fn reload(entries: &mut Entries<'_>) -> Result<Option<std::time::Duration>, ConfigError> {
    let line = entries.peek(INTERVAL);
    let interval = entries.millis(INTERVAL, 1)?;
    let among_servers = ["sslQuorum", "portUnification"];
    let on = |key| entries.peek(key).is_some_and(|entry| is_on(&entry.value));
    if among_servers.into_iter().any(on) {
        entries.entries.extend(line.map(|line| (INTERVAL.to_owned(), line)));
    }
    Ok(interval)
}

/// Java needs another one for TLS, and here there is one for all.
fn ignore_factory(entries: &mut Entries<'_>) {
    let known = |value: &str| FACTORIES.contains(&value);
    if entries.peek("serverCnxnFactory").is_some_and(|entry| known(&entry.value)) {
        entries.take("serverCnxnFactory");
    }
}

fn is_on(value: &str) -> bool {
    !value.is_empty() && !value.eq_ignore_ascii_case("false")
}

const FACTORIES: [&str; 2] = [
    "org.apache.zookeeper.server.NettyServerCnxnFactory",
    "org.apache.zookeeper.server.NIOServerCnxnFactory",
];
const INTERVAL: &str = "quorate.ssl.reloadInterval";
const KEY_STORE: StoreKeys = StoreKeys {
    location: "ssl.keyStore.location",
    kind: "ssl.keyStore.type",
    password: "ssl.keyStore.password",
    password_path: "ssl.keyStore.passwordPath",
    why: "the file with the key and certificate that clients are shown",
};
const TRUST_STORE: StoreKeys = StoreKeys {
    location: "ssl.trustStore.location",
    kind: "ssl.trustStore.type",
    password: "ssl.trustStore.password",
    password_path: "ssl.trustStore.passwordPath",
    why: "the file with those whose clients are let in, unless ssl.clientAuth is none",
};
const UNSUPPORTED: [(&str, &str); 3] = [
    (
        "ssl.crl",
        "looking for revoked certificates where they say, in place of the lists that quorate.ssl.client.crlFile names,",
    ),
    (
        "ssl.ocsp",
        "asking an authority whether a certificate is revoked, in place of the lists that quorate.ssl.client.crlFile names,",
    ),
    ("ssl.context.supplier.class", "a supplier of TLS contexts of its own"),
];
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("ssl.hostnameVerification", "it is for clients, who look at the names of their server"),
    ("ssl.allowReverseDnsLookup", "names are never looked up backwards"),
];
