//! What is wrong with configuration files, and what their operator should know.
//!
//! ```text
//!   Setting  where a `key=value` stands ──┬─► ConfigError   the server does not start
//!                                         └─► Warning       it does, and says so
//! ```
//!
//! Words for people: which of them is true of a file is found out by those who read it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::membership::{LineError, MembershipError, Role};
use quorate_core::properties::{EscapeError, Line};
use thiserror::Error;

/// A place in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file.display()),
            line => write!(f, "{}:{line}", self.file.display()),
        }
    }
}

/// A `key=value` and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it stands.
    pub at: Place,
    /// The key, as written.
    pub key: String,
    /// The value, without blanks at its ends.
    pub value: String,
}

impl Setting {
    pub(super) fn new(file: &Path, Line { number, key, value }: Line) -> Self {
        Self { at: Place { file: file.to_owned(), line: number }, key, value }
    }

    /// The value for people to see: asterisks if it is a secret.
    pub fn shown(&self) -> &str {
        shown(&self.key, &self.value)
    }

    pub(super) fn value_error(self, expected: String) -> ConfigError {
        ConfigError::Value { setting: self.into(), expected }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}={}", self.at, self.key, self.shown())
    }
}

/// Something in the files that is no error, but that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub at: Place,
    /// What it is.
    pub caution: Caution,
}

impl Warning {
    /// Whether this is only for information: nothing needs to be changed.
    pub fn is_notice(&self) -> bool {
        matches!(self.caution, Caution::NotUsed { .. } | Caution::KeepAliveStays)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.caution)
    }
}

/// What a [`Warning`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Neither ZooKeeper nor we know the key.
    UnknownKey {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The known key that looks most like it, if one does.
        nearest: Option<&'static str>,
    },
    /// ZooKeeper knows the key; here it has no effect.
    NotUsed {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// Why not.
        why: &'static str,
    },
    /// A setting that takes away some of what TLS is for.
    Weakens {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it means.
        what: &'static str,
    },
    /// The key is often written this way, but has another name; it has no effect.
    Misspelt {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What to write instead.
        instead: &'static str,
    },
    /// The key was set before; the later value counts, as in ZooKeeper.
    Repeated {
        /// The key.
        key: String,
        /// The value that counts.
        value: String,
        /// The line of the value that does not.
        first: usize,
    },
    /// `tcpKeepAlive=false`, but dead links must be noticed.
    KeepAliveStays,
    /// `peerType` contradicts our own server line, which counts.
    OtherRole {
        /// Our id.
        id: ServerId,
        /// What the server line says.
        used: Role,
        /// What `peerType` says.
        stated: Role,
    },
    /// A server has several addresses, and `multiAddress.enabled` is not true: ours use them all, a ZooKeeper
    /// server refuses to start with such a line.
    SeveralAddresses {
        /// The server.
        id: ServerId,
    },
    /// There is no line of a server: this one runs alone.
    Alone,
    /// What stands in `myid` is no id, and no line asks for one.
    MyIdUnused {
        /// What stands there.
        found: String,
    },
    /// One server decides alone.
    OneParticipant,
    /// Two servers stop when one does.
    TwoParticipants,
    /// An even number of servers tolerates no more failures than one less.
    EvenParticipants {
        /// How many servers vote.
        participants: usize,
    },
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key, value, nearest: None } => {
                write!(f, "{key}={}: unknown key, it has no effect", shown(key, value))
            }
            Self::UnknownKey { key, value, nearest: Some(nearest) } => {
                let value = shown(key, value);
                write!(f, "{key}={value}: unknown key, it has no effect; did you mean {nearest}?")
            }
            Self::NotUsed { key, value, why } => {
                let value = shown(key, value);
                write!(f, "{key}={value}: a key of ZooKeeper that has no effect here: {why}")
            }
            Self::Weakens { key, value, what } => write!(f, "{key}={}: {what}", shown(key, value)),
            Self::Misspelt { key, value, instead } => {
                let value = shown(key, value);
                write!(f, "{key}={value}: there is no such key, it has no effect; {instead}")
            }
            Self::Repeated { key, value, first } => {
                let value = shown(key, value);
                write!(f, "{key}={value}: set on line {first} already; this value counts")
            }
            Self::KeepAliveStays => f.write_str(
                "tcpKeepAlive=false: keep-alive stays on, or a dead election link would go unnoticed",
            ),
            Self::OtherRole { id, used, stated } => {
                write!(f, "peerType={stated}: server.{id} says {used}, which counts")
            }
            Self::SeveralAddresses { id } => write!(
                f,
                "server.{id} has several addresses, which ZooKeeper servers refuse without \
                 multiAddress.enabled=true"
            ),
            Self::Alone => f.write_str(
                "no server.N line: this server runs alone, belongs to no ensemble and opens no port for peers",
            ),
            Self::MyIdUnused { found } => {
                write!(f, "{found:?} is no server id, and a server alone needs none: it is taken for 1")
            }
            Self::OneParticipant => {
                f.write_str("one participant: no failure is tolerated, three tolerate one")
            }
            Self::TwoParticipants => f.write_str(
                "two participants: no failure is tolerated, since both are needed; three tolerate one",
            ),
            Self::EvenParticipants { participants } => write!(
                f,
                "{participants} participants tolerate no more failures than {} do",
                participants - 1
            ),
        }
    }
}

/// A value, unless it is a secret: warnings and refusals stand in logs.
fn shown<'a>(key: &str, value: &'a str) -> &'a str {
    let name = key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    if SECRET.iter().any(|part| name.contains(part)) { "***" } else { value }
}

/// Parts of the names of keys whose values are secrets, in lower case; those of the superuser, also misspelt.
const SECRET: [&str; 5] = ["passw", "super", "secret", "credential", "token"];

/// Why the configuration files cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file breaks the rules of properties files.
    #[error("{}: {source}", file.display())]
    Escape {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        #[source]
        source: EscapeError,
    },
    /// A value is not of its kind.
    #[error("{setting}: should be {expected}")]
    Value {
        /// The line.
        setting: Box<Setting>,
        /// What it should be.
        expected: String,
    },
    /// A key must be set and is not.
    #[error("{}: {key} is missing: {why}", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The key.
        key: &'static str,
        /// What it is needed for.
        why: &'static str,
    },
    /// A key that looks like a setting, but is none.
    #[error("{setting}: there is no such key; {instead}")]
    Misspelt {
        /// The line.
        setting: Box<Setting>,
        /// What to write instead.
        instead: &'static str,
    },
    /// The key turns on what we cannot do.
    #[error("{setting}: {what} is not supported yet")]
    NotSupported {
        /// The line.
        setting: Box<Setting>,
        /// What it turns on.
        what: &'static str,
    },
    /// A line of the membership cannot be read.
    #[error("{setting}: {source}")]
    MemberLine {
        /// The line.
        setting: Box<Setting>,
        /// What is wrong with it.
        #[source]
        source: LineError,
    },
    /// The lines of the membership do not fit together.
    #[error("{at}: {source}")]
    Membership {
        /// The line that showed it.
        at: Place,
        /// What is wrong.
        #[source]
        source: Box<MembershipError>,
    },
    /// A server id is too large for the session ids of clients, whose first byte it is.
    #[error("{setting}: the id of a server must be between 1 and 255")]
    IdRange {
        /// The line.
        setting: Box<Setting>,
    },
    /// With extended types the first byte 255 of an owner's id says that it is no session.
    #[error("{setting}: the id of a server must be below 255 with it, and there is a server.{id}")]
    IdExtended {
        /// The line that turns extended types on.
        setting: Box<Setting>,
        /// The server.
        id: ServerId,
    },
    /// There is no ensemble, where one is asked for: by a file for its members, a line of our own for the one that is
    /// to be joined, groups or weights, or `standaloneEnabled=false`.
    #[error(
        "{}: no server.N line: an ensemble is needed, list every server as \
         server.N=host:quorumPort:electionPort", file.display()
    )]
    NoServers {
        /// The file that should list them.
        file: PathBuf,
    },
    /// The membership stands in `zoo.cfg` and in the dynamic file.
    #[error(
        "{setting}: must stand in the dynamic file {}, since dynamicConfigFile is set",
        dynamic.display()
    )]
    TwoMemberships {
        /// The line.
        setting: Box<Setting>,
        /// The dynamic file.
        dynamic: PathBuf,
    },
    /// The dynamic file holds more than members and groups.
    #[error("{setting}: only server, group and weight lines may stand in a dynamic file")]
    NotDynamic {
        /// The line.
        setting: Box<Setting>,
    },
    /// `clientPort` contradicts our own server line.
    #[error("{}: server.{id} says that clients connect to {line}, clientPort says {key}", file.display())]
    TwoClientAddresses {
        /// The file.
        file: PathBuf,
        /// Our id.
        id: ServerId,
        /// What our line says.
        line: Box<HostPort>,
        /// What `clientPort` and `clientPortAddress` say.
        key: Box<HostPort>,
    },
    /// `clientPort` is one of our ports for peers.
    #[error("{}: clientPort={port}: server.{id} uses port {port} for its peers", file.display())]
    ClientPortTaken {
        /// The file.
        file: PathBuf,
        /// Our id.
        id: ServerId,
        /// The port.
        port: u16,
    },
    /// `myid` cannot be read.
    #[error(
        "cannot read {}: {source}; it must hold this server's id, the N of its server.N line",
        file.display()
    )]
    MyIdUnreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// `myid` does not hold an id.
    #[error("{}:1: {found:?} is not a server id from 1 to 255", file.display())]
    MyId {
        /// The file.
        file: PathBuf,
        /// What its first line holds.
        found: String,
    },
    /// `myid` holds an id that no server has.
    #[error("{}:1: there is no server.{id} line; the servers are {known}", file.display())]
    MyIdNotListed {
        /// The file.
        file: PathBuf,
        /// The id.
        id: ServerId,
        /// The ids of all members, for people.
        known: String,
    },
}
