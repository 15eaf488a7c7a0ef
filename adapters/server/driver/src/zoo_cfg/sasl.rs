//! What a `zoo.cfg` says of SASL: between servers (`quorum.auth.*`), and of clients.
//!
//! | | the section of the JAAS file |
//! |---|---|
//! | clients log in | `Server`, or as `sasl.serverconfig` says; where there is no such section and it is not named, there is no SASL |
//! | servers log in here | `QuorumServer`, or as `quorum.auth.server.saslLoginContext` says |
//! | this server logs in to others | `QuorumLearner`, or as `quorum.auth.learner.saslLoginContext` says |
//!
//! The file is that of `quorate.jaas.file`, else the one that ZooKeeper's JVM is given (`java.security.auth.login.config`).
//! It is read when the server starts, not with this one, and again when it has changed.
//!
//! In the Java code: `QuorumPeerConfig`, `QuorumAuth`, `ServerCnxnFactory.configureSaslLogin`, `AuthenticationHelper`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_sasl::{Credentials, Jaas, Users};
use zeroize::Zeroizing;

use crate::error::SaslError;
use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::{ConfigError, Setting};

/// SASL between servers: DIGEST-MD5, as `quorum.auth.enableSasl` turns it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumSasl {
    /// The JAAS file (`quorate.jaas.file`).
    pub file: PathBuf,
    /// The section that says who may log in here (`quorum.auth.server.saslLoginContext`, `QuorumServer`).
    pub server_section: String,
    /// The section that says as whom this server logs in to others (`quorum.auth.learner.saslLoginContext`,
    /// `QuorumLearner`).
    pub learner_section: String,
    /// Whether this server logs in where it dials (`quorum.auth.learnerRequireSasl`, false).
    pub dials: bool,
    /// Whether servers that do not log in, or fail to, are refused here (`quorum.auth.serverRequireSasl`, false).
    pub required: bool,
    /// How often it is looked whether the file has changed (`quorate.jaas.reloadInterval`); only when an operator asks, if none.
    pub reload: Option<Duration>,
}

/// How clients log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSasl {
    /// The JAAS file (`quorate.jaas.file`).
    pub file: PathBuf,
    /// The section that says who may (`sasl.serverconfig`, `Server`).
    pub section: String,
    /// Whether there has to be such a section: it is named, or clients have to log in. Otherwise there is no SASL for
    /// clients without it.
    pub needed: bool,
    /// Who of them may do everything (`superUser`, `superUser.*`).
    pub super_users: Vec<String>,
    /// Who has failed may stay without (`allowSaslFailedClients`, false).
    pub failed_stay: bool,
    /// As between servers (`quorate.jaas.reloadInterval`).
    pub reload: Option<Duration>,
}

/// Who logs in between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumLogins {
    /// Who may log in here.
    pub users: Users,
    /// As whom this server logs in to others.
    pub own: Credentials,
}

impl QuorumSasl {
    /// Reads the JAAS file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or lacks one of both sections; ZooKeeper wants both as soon as there is SASL.
    pub fn read(&self) -> Result<QuorumLogins, SaslError> {
        let jaas = read(&self.file)?;
        let file = || self.file.clone();
        let lacks = |section: &str, what| {
            let (file, section) = (file(), section.to_owned());
            SaslError::Lacks { file, section, what }
        };
        let section =
            |name| jaas.section(name).map_err(|source| SaslError::Jaas { file: file(), source });
        let users = section(&self.server_section)?.users().clone();
        if users.is_empty() {
            return Err(lacks(&self.server_section, "user_NAME=\"…\""));
        }
        let own = section(&self.learner_section)?.own().cloned();
        let own =
            own.ok_or_else(|| lacks(&self.learner_section, "username=\"…\" password=\"…\""))?;
        Ok(QuorumLogins { users, own })
    }
}

impl ClientSasl {
    /// Reads the JAAS file: who may log in. None if there is no SASL for clients.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or lacks the section and that is needed.
    pub fn read(&self) -> Result<Option<Users>, SaslError> {
        let jaas = read(&self.file)?;
        if !self.needed && !jaas.has(&self.section) {
            return Ok(None);
        }
        let section = jaas.section(&self.section);
        let section =
            section.map_err(|source| SaslError::Jaas { file: self.file.clone(), source })?;
        if section.users().is_empty() {
            let (file, section) = (self.file.clone(), self.section.clone());
            return Err(SaslError::Lacks { file, section, what: "user_NAME=\"…\"" });
        }
        Ok(Some(section.users().clone()))
    }
}

fn read(file: &Path) -> Result<Jaas, SaslError> {
    let text = fs::read_to_string(file).map(Zeroizing::new);
    let text = text.map_err(|source| SaslError::Read { file: file.to_owned(), source })?;
    Jaas::read(&text).map_err(|source| SaslError::Jaas { file: file.to_owned(), source })
}

/// SASL of both kinds, and the schemes of which a client has to prove one.
pub(super) struct Sasl {
    pub(super) servers: Option<QuorumSasl>,
    pub(super) clients: Option<ClientSasl>,
    pub(super) required_schemes: Vec<String>,
}

impl Sasl {
    pub(super) fn read(entries: &mut Entries<'_>) -> Result<Self, ConfigError> {
        let by_jvm = entries.path(FILES[1])?;
        let file = entries.path(FILES[0])?.or(by_jvm);
        entries.take_provider();
        let reload = reload(entries, file.is_some())?;
        let servers = quorum(entries, file.as_ref(), reload)?;
        let required_schemes = required_schemes(entries)?;
        let needs = required_schemes.iter().any(|scheme| scheme == "sasl");
        let clients = match file {
            Some(file) => Some(clients(entries, (file, reload), needs)?),
            None if needs => return Err(entries.missing("quorate.jaas.file", WHY_CLIENTS)),
            None => None,
        };
        Ok(Self { servers, clients, required_schemes })
    }
}

/// How often the file is looked at; 0 stands for never.
fn reload(entries: &mut Entries<'_>, has_file: bool) -> Result<Option<Duration>, ConfigError> {
    if !has_file {
        return Ok(None);
    }
    let every = entries.millis("quorate.jaas.reloadInterval", 0)?.unwrap_or(RELOAD);
    Ok(Some(every).filter(|every| !every.is_zero()))
}

fn clients(
    entries: &mut Entries<'_>,
    (file, reload): (PathBuf, Option<Duration>),
    needs: bool,
) -> Result<ClientSasl, ConfigError> {
    let named = entries.take("sasl.serverconfig").map(|entry| entry.value);
    let needed = needs || named.is_some();
    let section = named.unwrap_or_else(|| "Server".to_owned());
    let super_users = entries.take_super_users();
    let failed_stay = entries.boolean("allowSaslFailedClients", false)?;
    Ok(ClientSasl { file, section, needed, super_users, failed_stay, reload })
}

/// Each needs the one before it, as in ZooKeeper.
fn quorum(
    entries: &mut Entries<'_>,
    file: Option<&PathBuf>,
    reload: Option<Duration>,
) -> Result<Option<QuorumSasl>, ConfigError> {
    let (learner, server) = (entries.peek(LEARNER), entries.peek(SERVER));
    let enabled = entries.boolean("quorum.auth.enableSasl", false)?;
    let dials = entries.boolean(LEARNER, false)?;
    let required = entries.boolean(SERVER, false)?;
    let without = |setting: Option<Setting>, key: &str| {
        setting.map(|setting| setting.value_error(format!("false, unless {key} is true")))
    };
    let wrong = match (enabled, dials, required) {
        (_, false, true) => without(server, LEARNER),
        (false, true, _) => without(learner, "quorum.auth.enableSasl"),
        _ => None,
    };
    if let Some(error) = wrong {
        return Err(error);
    }
    if !enabled {
        return Ok(None);
    }
    let Some(file) = file.cloned() else {
        return Err(entries.missing("quorate.jaas.file", WHY_SERVERS));
    };
    let mut section =
        |key, usual: &str| entries.take(key).map_or_else(|| usual.to_owned(), |entry| entry.value);
    Ok(Some(QuorumSasl {
        file,
        server_section: section("quorum.auth.server.saslLoginContext", "QuorumServer"),
        learner_section: section("quorum.auth.learner.saslLoginContext", "QuorumLearner"),
        dials,
        required,
        reload,
    }))
}

/// Of which schemes a client has to prove one.
fn required_schemes(entries: &mut Entries<'_>) -> Result<Vec<String>, ConfigError> {
    let by_sasl = entries.boolean("sessionRequireClientSASLAuth", false)?;
    let enforced = entries.boolean("enforce.auth.enabled", false)?;
    if by_sasl {
        return Ok(vec!["sasl".to_owned()]);
    }
    if !enforced {
        return Ok(Vec::new());
    }
    let Some(entry) = entries.peek("enforce.auth.schemes") else {
        return Err(entries.missing("enforce.auth.schemes", WHY_SCHEMES));
    };
    let schemes = entries.words("enforce.auth.schemes", &[]);
    if schemes.is_empty() || schemes.iter().any(|scheme| !SCHEMES.contains(&&**scheme)) {
        return Err(entry.value_error(format!("some of {}", SCHEMES.join(", "))));
    }
    Ok(schemes)
}

impl Entries<'_> {
    /// The providers of ZooKeeper for identities by SASL and by certificate are always here.
    fn take_provider(&mut self) {
        self.entries.retain(|name, setting| {
            !(name.starts_with("authProvider.") && PROVIDERS.contains(&&*setting.value))
        });
    }

    /// For a survey: takes away what wants logins, where no file says who logs in. Java is told of it elsewhere.
    pub(super) fn take_logins_without_file(&mut self) -> Vec<(Setting, &'static str)> {
        if FILES.iter().any(|file| self.entries.contains_key(*file)) {
            return Vec::new();
        }
        let by_sasl = self
            .entries
            .get("enforce.auth.schemes")
            .is_some_and(|schemes| schemes.value.split(',').any(|scheme| scheme.trim() == "sasl"));
        let enforced = by_sasl.then_some("enforce.auth.enabled");
        let wants = WANT_LOGINS.into_iter().chain(enforced);
        wants
            .filter_map(|key| {
                let is_on = self.entries.get(key)?.value.eq_ignore_ascii_case("true");
                Some((self.entries.remove(key).filter(|_| is_on)?, WITHOUT_FILE))
            })
            .collect()
    }

    /// `superUser`, and `superUser.` with anything behind it.
    fn take_super_users(&mut self) -> Vec<String> {
        let is = |name: &str| name == "superUser" || name.starts_with("superUser.");
        let mut users = Vec::new();
        self.entries.retain(|name, setting| {
            if is(name) {
                users.push(setting.value.clone());
            }
            !is(name)
        });
        users.retain(|user| !user.is_empty());
        users
    }
}

/// ZooKeeper's own classes for identities by SASL and by certificate.
pub(super) const PROVIDERS: [&str; 2] = [
    "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
];
const RELOAD: Duration = Duration::from_secs(10);
/// Where the file is named; the first counts.
const FILES: [&str; 2] = ["quorate.jaas.file", "java.security.auth.login.config"];
const WANT_LOGINS: [&str; 4] =
    [SERVER, LEARNER, "quorum.auth.enableSasl", "sessionRequireClientSASLAuth"];
const WITHOUT_FILE: &str = "SASL without quorate.jaas.file, which says who logs in,";
const LEARNER: &str = "quorum.auth.learnerRequireSasl";
const SERVER: &str = "quorum.auth.serverRequireSasl";
const SCHEMES: [&str; 4] = ["digest", "ip", "sasl", "x509"];
const WHY_CLIENTS: &str = "clients have to log in by SASL, and its section Server says who may; the file is that of \
     -Djava.security.auth.login.config";
const WHY_SERVERS: &str = "servers log in by SASL, and its sections QuorumServer and QuorumLearner say who may and as whom; the file is that of \
     -Djava.security.auth.login.config";
const WHY_SCHEMES: &str = "clients have to prove an identity, by one of these schemes";
