//! Why a server cannot start, and why it ends.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use quorate_core::config::ConfigError;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::reasons::Fault;
use quorate_core::zxid::Zxid;
use quorate_sasl::JaasError;
use quorate_storage::{LogError, reader};
use thiserror::Error;

/// Why a server cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is kept of a changed membership cannot be read: to go on without may be to forget who has to agree.
    #[error("cannot read the membership in {}: {source}", path.display())]
    Membership {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        source: io::Error,
    },
    /// Our id has no line in the membership.
    #[error("server {0} is not in the membership: there is no line server.{0}=…")]
    NotAMember(ServerId),
    /// This server is to be alone, and its data directory says that others belong to it: a change of the membership, which
    /// binds it until an operator says otherwise.
    #[error(
        "this server is to be alone, but the data directory is that of an ensemble of {members} servers, changed at run \
         time; to leave it for good: quorate.membership.forget={version:x}"
    )]
    NotAlone {
        /// How many servers.
        members: usize,
        /// The version of that membership.
        version: i64,
    },
    /// The data directory cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The name of our own host has no address.
    #[error("cannot resolve {host}, on which this server is to listen: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// An address of ours cannot be listened at.
    #[error("cannot listen at {address} ({}), tried {tries}x: {source}{}", port_name(*plane), hint(source))]
    Bind {
        /// Which port.
        plane: Plane,
        /// Which address, as configured.
        address: String,
        /// How often it was tried.
        tries: u32,
        /// What the system says.
        source: io::Error,
    },
    /// An address for clients cannot be listened at.
    #[error("cannot listen for clients at {address}, tried {tries}x: {source}")]
    BindClients {
        /// Which address, as configured.
        address: String,
        /// How often it was tried.
        tries: u32,
        /// What the system says.
        source: io::Error,
    },
    /// What clients change is to be written, and cannot be.
    #[error("cannot write the audit log {to}: {source}")]
    Audit {
        /// Where.
        to: String,
        /// What is in the way.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// TLS between servers cannot be had as it is wanted: a store is not good, say.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] quorate_tls::TlsError),
    /// SASL between servers cannot be had as it is wanted.
    #[error(transparent)]
    Sasl(#[from] SaslError),
}

/// A JAAS file cannot be used.
#[derive(Debug, Error)]
pub enum SaslError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It is no JAAS file, lacks a section, or has another login module in it than ZooKeeper's for digests.
    #[error("{}: {source}", file.display())]
    Jaas {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        #[source]
        source: JaasError,
    },
    /// A section lacks what it is for.
    #[error("{}: the section \"{section}\" has no {what}", file.display())]
    Lacks {
        /// The file.
        file: PathBuf,
        /// The section.
        section: String,
        /// What it should have.
        what: &'static str,
    },
    /// The system gives no randomness, of which nonces are made.
    #[error("no randomness: {0}")]
    Randomness(#[source] io::Error),
}

/// What to look at where an address is not this machine's: most often the id is another server's.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() == io::ErrorKind::AddrNotAvailable {
        true => "; this machine has no such address: is its id (myid) right?",
        false => "",
    }
}

/// What people call a port.
pub(crate) fn port_name(plane: Plane) -> &'static str {
    match plane {
        Plane::Election => "election port",
        Plane::Quorum => "quorum port",
    }
}

/// What keeps a server that runs from service: it has given up its role, and waits for its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskFault {
    /// There is no room left, or none of its user's share (ENOSPC, EDQUOT).
    Full,
    /// It does not take or give what it is to, for another reason.
    Failing,
}

impl fmt::Display for DiskFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "disk full",
            Self::Failing => "disk failing",
        })
    }
}

/// Why a server has ended without being asked to.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A write to the data directory failed, and it is of no use to wait for the disk: one file was refused with EIO twice,
    /// the directory holds less than was durable there, or it happened while the server was about to end.
    #[error("the disk failed: {source}")]
    Disk {
        /// What could not be written.
        source: Arc<LogError>,
    },
    /// A transaction is longer than the log may have it. No leader proposes such a one, and no link brings
    /// it: the disk is sound, and this server is not.
    #[error("a transaction that is too long was to be logged: {source}")]
    TooLong {
        /// Which, and how long.
        source: Arc<LogError>,
    },
    /// The dynamic configuration file could not be replaced.
    #[error("cannot write the configuration to {}: {source}", path.display())]
    DynamicConfig {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// What was committed and is to be applied cannot be read back from the log.
    #[error("cannot read the log behind {after}, which is to be applied: {source}")]
    Unreadable {
        /// The last transaction that was applied.
        after: Zxid,
        /// What is in the way.
        source: Arc<reader::ReadError>,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {source}")]
    Thread {
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// Going on would be unsafe.
    #[error("halted: {0}")]
    Halted(Fault),
    /// The same, as the service in front of the application says
    /// ([`Output::Halt`](quorate_application::clients::Output::Halt)).
    #[error("halted by its service: {reason}")]
    HaltedByService {
        /// Why, for an operator.
        reason: Arc<str>,
    },
    /// It was asked to end.
    #[error("the server was shut down")]
    Ended,
    /// Its task was dropped with the runtime, or broke an invariant of its own and panicked.
    #[error("the server was dropped by its runtime, or has panicked")]
    Aborted,
}

impl ServerError {
    pub(crate) fn thread(source: io::Error) -> Self {
        Self::Thread { source: Arc::new(source) }
    }
}
