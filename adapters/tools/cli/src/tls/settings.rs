//! What a `zoo.cfg` says of stores, for links between servers, clients and scrapers, and of the members that certificates are for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quorate_keystore::{Kind, NotText, Password};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::{LineError, Member};
use quorate_tokio::core::properties::{EscapeError, Lines};
use thiserror::Error;

/// What is read of a `zoo.cfg` here.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(super) file: PathBuf,
    /// Those between servers, whether there is TLS among them or not.
    pub(super) servers: Stores,
    /// Those for others, of ports that speak TLS.
    pub(super) others: Vec<Stores>,
    pub(super) members: Vec<Member>,
    /// Which of them it is for, if `myid` says it.
    pub(super) own: Option<ServerId>,
    /// `portUnification`.
    is_both: bool,
    /// `sslQuorum`.
    is_only: bool,
}

impl Settings {
    /// The stores that the server reads; those between servers if it reads none.
    pub(super) fn stores(&self) -> impl Iterator<Item = &Stores> {
        let Stores { key_store, trust_store, .. } = &self.servers;
        let has_some = key_store.is_some() || trust_store.is_some();
        let read = has_some || self.is_both || self.is_only || self.others.is_empty();
        Some(&self.servers).filter(|_| read).into_iter().chain(&self.others)
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peers {
    Servers,
    Clients,
    Scrapers,
}

impl Peers {
    /// With what the settings of their stores begin.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Servers => "ssl.quorum",
            Self::Clients => "ssl",
            Self::Scrapers => "metricsProvider.ssl",
        }
    }
}

/// The key and the certificates that the server shows to some, and whose certificates it trusts among them.
#[derive(Debug)]
pub(super) struct Stores {
    pub(super) peers: Peers,
    pub(super) key_store: Option<Store>,
    pub(super) trust_store: Option<Store>,
    /// Whether it asks them for certificates.
    pub(super) asks: bool,
}

#[cfg(feature = "tls")]
impl Settings {
    /// Whether ports between servers take links without TLS, too.
    pub(crate) const fn takes_plain_links(&self) -> bool {
        self.is_both
    }

    /// The key store and the trust store.
    pub(crate) fn into_stores(self) -> (Option<Store>, Option<Store>) {
        (self.servers.key_store, self.servers.trust_store)
    }
}

/// What is said of one store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) file: PathBuf,
    /// As it is written.
    pub(super) kind: Option<String>,
    pub(crate) password: Result<Option<Password>, PasswordError>,
}

/// A password cannot be read.
#[derive(Debug, Error)]
pub(crate) enum PasswordError {
    #[error("cannot read the password file {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}: {source}", file.display())]
    Text { file: PathBuf, source: NotText },
}

/// A file cannot be read, or a line of it.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}: {source}", file.display())]
    Escape { file: PathBuf, source: EscapeError },
    #[error("{}, line {line}: {source}", file.display())]
    Member { file: PathBuf, line: usize, source: LineError },
    #[error("{}, line {line}: {key} names no server id", file.display())]
    Id { file: PathBuf, line: usize, key: String },
}

/// The lines of a file by their keys, those of `server.` apart.
#[derive(Default)]
struct Read {
    keys: BTreeMap<String, String>,
    members: Vec<Member>,
}

/// Reads the file, and that of the membership if there is one.
pub(crate) fn read(file: &Path) -> Result<Settings, SettingsError> {
    let mut read = lines(file)?;
    if let Some(dynamic) = read.keys.get("dynamicConfigFile") {
        read.members.extend(lines(Path::new(dynamic))?.members);
    }
    let own = read.keys.get("dataDir").and_then(|dir| {
        let text = fs::read_to_string(Path::new(dir).join("myid")).ok()?;
        text.trim().parse().ok().map(ServerId)
    });
    Ok(Settings {
        file: file.to_owned(),
        servers: read.stores(Peers::Servers, true),
        others: [read.for_clients(own), read.for_scrapers()].into_iter().flatten().collect(),
        is_both: read.is_on("portUnification"),
        is_only: read.is_on("sslQuorum"),
        members: read.members,
        own,
    })
}

impl Read {
    fn is_on(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    fn is_off(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|value| value.eq_ignore_ascii_case("false"))
    }

    fn has_port(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|port| port.parse().is_ok_and(|port: u16| port > 0))
    }

    fn stores(&self, peers: Peers, asks: bool) -> Stores {
        let of = |which: &str| store(&self.keys, &format!("{}.{which}", peers.prefix()));
        Stores { peers, key_store: of("keyStore"), trust_store: of("trustStore"), asks }
    }

    /// `own`: who this server is, if that is known.
    fn for_clients(&self, own: Option<ServerId>) -> Option<Stores> {
        let is_own = |member: &&Member| own.is_none_or(|own| member.id == own);
        let by_line = self.members.iter().filter(is_own).any(|of| of.secure_client.is_some());
        let by_line = by_line && self.keys.contains_key("ssl.keyStore.location");
        let secure = self.has_port("secureClientPort") || self.is_on("client.portUnification");
        let asks = self.keys.get("ssl.clientAuth").is_none_or(|auth| auth != "none");
        (secure || by_line).then(|| self.stores(Peers::Clients, asks))
    }

    fn for_scrapers(&self) -> Option<Stores> {
        let asks = !self.is_off("metricsProvider.ssl.need.client.auth");
        let secure = self.has_port("metricsProvider.httpsPort");
        secure.then(|| self.stores(Peers::Scrapers, asks))
    }
}

/// The key store and the trust store that the settings of a client name.
#[cfg(feature = "client-tls")]
pub(crate) fn client_stores(file: &Path) -> Result<(Option<Store>, Option<Store>), SettingsError> {
    let keys = lines(file)?.keys;
    Ok((store(&keys, "ssl.keyStore"), store(&keys, "ssl.trustStore")))
}

fn lines(file: &Path) -> Result<Read, SettingsError> {
    let at = || file.to_owned();
    let text =
        fs::read_to_string(file).map_err(|source| SettingsError::Read { file: at(), source })?;
    let mut read = Read::default();
    for line in Lines::new(text.strip_prefix('\u{feff}').unwrap_or(&text)) {
        let line = line.map_err(|source| SettingsError::Escape { file: at(), source })?;
        let Some(id) = line.key.strip_prefix("server.") else {
            let key = line.key.strip_prefix("zookeeper.").unwrap_or(&line.key);
            read.keys.insert(key.to_owned(), line.value);
            continue;
        };
        let (number, key) = (line.number, &line.key);
        let id = id.parse().map_err(|_| SettingsError::Id {
            file: at(),
            line: number,
            key: key.clone(),
        })?;
        let member = Member::parse(ServerId(id), &line.value)
            .map_err(|source| SettingsError::Member { file: at(), line: number, source })?;
        read.members.push(member);
    }
    Ok(read)
}

/// What is said of one of the two stores; none if its file is not.
fn store(keys: &BTreeMap<String, String>, which: &str) -> Option<Store> {
    let said = |what: &str| keys.get(&format!("{which}.{what}")).filter(|value| !value.is_empty());
    let file = PathBuf::from(said("location")?);
    let password = match said("passwordPath") {
        Some(path) => password(Path::new(path)).map(Some),
        None => Ok(said("password").map(|password| Password::new(password))),
    };
    Some(Store { file, kind: said("type").cloned(), password })
}

fn password(file: &Path) -> Result<Password, PasswordError> {
    let content =
        fs::read(file).map_err(|source| PasswordError::Read { file: file.to_owned(), source })?;
    Password::from_file(&content)
        .map_err(|source| PasswordError::Text { file: file.to_owned(), source })
}

impl Store {
    /// The kind, if one is said.
    pub(crate) fn parsed(&self) -> Result<Option<Kind>, quorate_keystore::Reason> {
        self.kind.as_deref().map(str::parse).transpose()
    }
}
