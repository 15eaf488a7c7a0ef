//! What a `zoo.cfg` says of TLS between servers: `sslQuorum`, `portUnification`, `ssl.quorum.*` and `quorate.ssl.*`.

use quorate_tls::{
    ClientAuth, CloseOnReload, IdentityMode, Password, RevokedFile, Settings, StoreFile,
    StorePassword, Suite, Versions, store_kind,
};

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::{Caution, ConfigError, Setting};

/// The keys of one store.
pub(super) struct StoreKeys {
    pub(super) location: &'static str,
    pub(super) kind: &'static str,
    pub(super) password: &'static str,
    pub(super) password_path: &'static str,
    pub(super) why: &'static str,
}

/// None where neither side is to have TLS: what else is said of it has no effect then.
pub(super) fn read(entries: &mut Entries<'_>) -> Result<Option<Settings>, ConfigError> {
    let dials_tls = entries.boolean("sslQuorum", false)?;
    let both = entries.peek("portUnification");
    let accepts_both = entries.boolean("portUnification", false)?;
    if !dials_tls && !accepts_both {
        return Ok(None);
    }
    let key_store = store(entries, &KEY_STORE)?;
    let trust_store = store(entries, &TRUST_STORE)?;
    let mut settings = Settings::new(key_store, trust_store);
    settings.dials_tls = dials_tls;
    settings.accepts_plain = accepts_both;
    settings.versions = versions(entries, "ssl.quorum.protocol", "ssl.quorum.enabledProtocols")?;
    settings.suites = suites(entries, "ssl.quorum.ciphersuites")?;
    settings.client_auth = client_auth(entries, "ssl.quorum.clientAuth", ANY_SERVER)?;
    settings.verify_names = checked(entries, "ssl.quorum.hostnameVerification")?;
    let of_clients = checked(entries, "ssl.quorum.clientHostnameVerification")?;
    settings.identity = identity(entries, settings.verify_names && of_clients)?;
    if let Some(limit) = entries.millis("ssl.quorum.handshakeDetectionTimeoutMillis", 1)? {
        settings.handshake_time = limit;
    }
    let interval = entries.millis("quorate.ssl.reloadInterval", 1)?;
    settings.reload = interval.or(settings.reload);
    if !entries.boolean("sslQuorumReloadCertFiles", true)? {
        settings.reload = None;
    }
    after_handshakes(entries, &mut settings)?;
    if let Some(Setting { at, key, value }) = both.filter(|_| accepts_both) {
        let what = "any host that reaches the ports can still go without TLS";
        entries.warn(at, Caution::Weakens { key, value, what });
    }
    for (key, why) in WITHOUT_EFFECT {
        entries.without_effect(key, why);
        entries.take(key);
    }
    Ok(Some(settings))
}

/// Which certificates were taken back, and what becomes of links that are up.
fn after_handshakes(entries: &mut Entries<'_>, settings: &mut Settings) -> Result<(), ConfigError> {
    let strict = entries.boolean("quorate.ssl.crlStrict", false)?;
    let lists = entries.path("quorate.ssl.crlFile")?;
    settings.revoked = lists.map(|path| RevokedFile { path, strict });
    settings.close_expired = entries.boolean("quorate.ssl.closeExpired", false)?;
    if let Some(entry) = entries.take("quorate.ssl.closeOnReload") {
        settings.close_on_reload = match CloseOnReload::from_name(&entry.value) {
            Some(which) => which,
            None => return Err(entry.value_error("none, expired or untrusted".to_owned())),
        };
    }
    Ok(())
}

pub(super) fn store(entries: &mut Entries<'_>, keys: &StoreKeys) -> Result<StoreFile, ConfigError> {
    let Some(path) = entries.path(keys.location)? else {
        return Err(entries.missing(keys.location, keys.why));
    };
    let kind = match entries.take(keys.kind) {
        None => None,
        Some(entry) => match store_kind(&entry.value) {
            Some(kind) => Some(kind),
            None => return Err(entry.value_error(KINDS.to_owned())),
        },
    };
    let inline = entries.take(keys.password).map(|entry| Password::new(&entry.value));
    // As in ZooKeeper, the file counts rather than what stands here.
    let password = match entries.path(keys.password_path)? {
        Some(file) => Some(StorePassword::File(file)),
        None => inline.map(StorePassword::Inline),
    };
    Ok(StoreFile { path, kind, password })
}

pub(super) fn versions(
    entries: &mut Entries<'_>,
    protocol: &'static str,
    enabled: &'static str,
) -> Result<Versions, ConfigError> {
    let highest = match entries.take(protocol) {
        None => Versions { tls12: true, tls13: true },
        Some(entry) => match entry.value.as_str() {
            "TLSv1.2" => Versions { tls12: true, tls13: false },
            "TLSv1.3" | "TLS" => Versions { tls12: true, tls13: true },
            _ => return Err(entry.value_error("TLSv1.2 or TLSv1.3".to_owned())),
        },
    };
    let Some(entry) = entries.take(enabled) else { return Ok(highest) };
    let has = |name: &str| entry.value.split(',').any(|version| version.trim() == name);
    let versions = Versions { tls12: has("TLSv1.2"), tls13: has("TLSv1.3") };
    if !versions.tls12 && !versions.tls13 {
        return Err(entry.value_error("a list with TLSv1.2, TLSv1.3 or both".to_owned()));
    }
    let others = entry.value.split(',').map(str::trim);
    if others.into_iter().any(|version| !["TLSv1.2", "TLSv1.3"].contains(&version)) {
        not_used(entries, entry, "of these only TLSv1.2 and TLSv1.3 are spoken");
    }
    Ok(versions)
}

pub(super) fn suites(
    entries: &mut Entries<'_>,
    key: &'static str,
) -> Result<Vec<Suite>, ConfigError> {
    let Some(entry) = entries.take(key) else { return Ok(Vec::new()) };
    let names = || entry.value.split([',', ':']).map(str::trim).filter(|name| !name.is_empty());
    let suites: Vec<_> = names().filter_map(Suite::from_name).collect();
    if suites.is_empty() {
        let known: Vec<_> = Suite::ALL.into_iter().map(Suite::name).collect();
        return Err(entry.value_error(format!("some of {}", known.join(", "))));
    }
    if suites.len() < names().count() {
        not_used(
            entries,
            entry,
            "not all of these cipher suites are here; those that are not are passed over",
        );
    }
    Ok(suites)
}

pub(super) fn client_auth(
    entries: &mut Entries<'_>,
    key: &'static str,
    what: &'static str,
) -> Result<ClientAuth, ConfigError> {
    let Some(entry) = entries.peek(key) else { return Ok(ClientAuth::Need) };
    let asked = match entry.value.to_ascii_lowercase().as_str() {
        "need" => ClientAuth::Need,
        "want" => ClientAuth::Want,
        "none" => ClientAuth::None,
        _ => return Err(entry.value_error("none, want or need".to_owned())),
    };
    if asked != ClientAuth::Need {
        entries.weakens(key, what);
    }
    entries.take(key);
    Ok(asked)
}

/// A check that an operator may turn off, and hears what that means.
fn checked(entries: &mut Entries<'_>, key: &'static str) -> Result<bool, ConfigError> {
    if entries.peek(key).is_some_and(|entry| entry.value.eq_ignore_ascii_case("false")) {
        entries.weakens(key, "any certificate that is trusted can be any server's");
    }
    entries.boolean(key, true)
}

fn identity(entries: &mut Entries<'_>, names: bool) -> Result<IdentityMode, ConfigError> {
    match entries.take("quorate.ssl.identity") {
        None if names => Ok(IdentityMode::Member),
        None => Ok(IdentityMode::Off),
        Some(entry) => match IdentityMode::from_name(&entry.value) {
            Some(mode) => Ok(mode),
            None => Err(entry.value_error("off, warn, member or id".to_owned())),
        },
    }
}

fn not_used(entries: &mut Entries<'_>, Setting { at, key, value }: Setting, why: &'static str) {
    entries.warn(at, Caution::NotUsed { key, value, why });
}

const ANY_SERVER: &str = "any host that reaches the ports can be any server without a certificate";
pub(super) const KEY_STORE: StoreKeys = StoreKeys {
    location: "ssl.quorum.keyStore.location",
    kind: "ssl.quorum.keyStore.type",
    password: "ssl.quorum.keyStore.password",
    password_path: "ssl.quorum.keyStore.passwordPath",
    why: "the file with this server's key and certificate",
};
pub(super) const TRUST_STORE: StoreKeys = StoreKeys {
    location: "ssl.quorum.trustStore.location",
    kind: "ssl.quorum.trustStore.type",
    password: "ssl.quorum.trustStore.password",
    password_path: "ssl.quorum.trustStore.passwordPath",
    why: "the file with those whom servers trust; public authorities are never meant here",
};
const KINDS: &str =
    "JKS, PKCS12 or PEM; keytool -importkeystore -deststoretype PKCS12 makes one of the others";
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("ssl.quorum.allowReverseDnsLookup", "names are never looked up backwards"),
    ("fips-mode", "no module is selected by it, and names are checked all the same"),
];
