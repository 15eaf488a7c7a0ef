//! Where the servers of the demo live: loopback ports, data directories, configuration files.
//!
//! A server keeps its own over all its lives. What it does not do: it starts nothing; see `ensemble`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

#[cfg(feature = "tls")]
use quorate_tls::{IdentityMode, Settings, StoreFile};
use quorate_tokio::ServerConfig;
use quorate_tokio::core::config::{Config, Election};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::{Member, Membership, MembershipError, Role, ServerAddress};
use tempfile::TempDir;
use thiserror::Error;
use tokio::process::Command;

#[cfg(feature = "tls")]
use super::certificates::{self, Stores};
use super::ledger;
use super::spread::Spread;
use quorate_servers::runtime::Kind;

/// Where servers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// All in this process.
    Embedded,
    /// Each in a process of its own.
    Processes,
}

/// When servers notice what, and how they then elect.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) tick: Duration,
    pub(super) election: Election,
}

/// What the servers are there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To elect.
    Elections,
    /// To take writes of the demo's load; as processes they run on this runtime.
    Load(Kind),
    /// To serve ZooKeeper's clients.
    Sessions,
}

/// How servers speak with one another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Links {
    /// Without TLS.
    Plain,
    /// With TLS; and how long failovers took without.
    #[cfg(feature = "tls")]
    Tls { plain: Spread },
}

impl Links {
    /// Whether there is TLS around them.
    pub(super) fn are_secure(&self) -> bool {
        self.plain().is_some()
    }

    /// With TLS, how long failovers took without.
    pub(super) fn plain(&self) -> Option<Spread> {
        match self {
            Self::Plain => None,
            #[cfg(feature = "tls")]
            Self::Tls { plain } => Some(*plain),
        }
    }
}

/// The ports, directories and configurations of servers 1 to N.
#[derive(Debug)]
pub(super) struct Layout {
    placement: Placement,
    membership: Membership,
    times: Times,
    purpose: Purpose,
    links: Links,
    /// Of each server, for its clients.
    client_ports: BTreeMap<i64, u16>,
    dir: TempDir,
}

/// Why the demo has no place for its servers.
#[derive(Debug, Error)]
pub(super) enum LayoutError {
    #[error("cannot make a temporary directory: {0}")]
    TemporaryDir(io::Error),
    #[error("cannot find enough free ports on 127.0.0.1")]
    NoPorts,
    #[error(transparent)]
    Membership(#[from] MembershipError),
    #[error("cannot prepare a data directory: {0}")]
    DataDir(io::Error),
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Certificates(#[from] certificates::CertificatesError),
}

impl Layout {
    /// For servers 1 to `servers`: claims ports, and writes what each finds in its directory.
    pub(super) fn new(
        placement: Placement,
        servers: u8,
        times: Times,
        purpose: Purpose,
        links: Links,
    ) -> Result<Self, LayoutError> {
        let dir = tempfile::Builder::new()
            .prefix("quorate-demo-")
            .tempdir()
            .map_err(LayoutError::TemporaryDir)?;
        let ports = free_ports(3 * usize::from(servers)).ok_or(LayoutError::NoPorts)?;
        let client_ports = ports.chunks_exact(3).zip(1..).map(|(ports, id)| (id, ports[2]));
        let client_ports = client_ports.collect();
        let members = ports.chunks_exact(3).zip(1..).map(|(ports, id)| {
            let address = ServerAddress::new("127.0.0.1", ports[0], ports[1]);
            Member::new(ServerId(id), Role::Participant, address)
        });
        let membership = Membership::build(members, [], [], 0)?;
        let layout = Self { placement, membership, times, purpose, links, client_ports, dir };
        #[cfg(feature = "tls")]
        if links.are_secure() {
            certificates::make(layout.dir(), &layout.ids())?;
        }
        for id in layout.ids() {
            layout.prepare(id).map_err(LayoutError::DataDir)?;
        }
        Ok(layout)
    }

    /// All servers.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.membership.members().iter().map(|member| member.id.0).collect()
    }

    /// Where they run.
    pub(super) fn placement(&self) -> Placement {
        self.placement
    }

    /// What they are there for.
    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// How they speak with one another.
    pub(super) fn links(&self) -> Links {
        self.links
    }

    /// Where clients connect.
    pub(super) fn client_address(&self, id: i64) -> Option<SocketAddr> {
        let port = self.client_ports.get(&id)?;
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
    }

    /// The directory of all directories.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A server's data directory.
    pub(super) fn data_dir(&self, id: i64) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    /// Where the process of a server logs.
    pub(super) fn log_file(&self, id: i64) -> PathBuf {
        self.dir.path().join(format!("{id}.log"))
    }

    fn cfg_file(&self, id: i64) -> PathBuf {
        self.dir.path().join(format!("{id}.cfg"))
    }

    /// Writes what a server finds in its directory.
    fn prepare(&self, id: i64) -> io::Result<()> {
        fs::create_dir(self.data_dir(id))?;
        if self.placement == Placement::Embedded {
            return Ok(());
        }
        fs::write(self.data_dir(id).join("myid"), format!("{id}\n"))?;
        let mut cfg = format!(
            "tickTime={}\ninitLimit={INIT_LIMIT}\nsyncLimit={SYNC_LIMIT}\ndataDir={}\n",
            self.times.tick.as_millis(),
            self.data_dir(id).display(),
        );
        if let Election::Generation(rules) = &self.times.election {
            let (min, max) = (rules.timeout_min.as_millis(), rules.timeout_max.as_millis());
            let _ = write!(
                cfg,
                "quorate.election=generation\nquorate.election.minTimeout={min}\n\
                 quorate.election.maxTimeout={max}\n"
            );
        }
        if let (Purpose::Sessions, Some(address)) = (self.purpose, self.client_address(id)) {
            // All clients have one address.
            let _ = write!(
                cfg,
                "clientPort={}\nclientPortAddress={}\nmaxClientCnxns=0\n",
                address.port(),
                address.ip()
            );
        }
        #[cfg(feature = "tls")]
        if self.links.are_secure() {
            let Stores { own, trusted } = certificates::stores(self.dir(), id);
            let (own, trusted) = (own.display(), trusted.display());
            let _ = write!(
                cfg,
                "sslQuorum=true\nquorate.ssl.identity=id\nssl.quorum.keyStore.location={own}\n\
                 ssl.quorum.trustStore.location={trusted}\n"
            );
        }
        for member in self.membership.members() {
            // Writing to a string cannot fail.
            let _ = writeln!(cfg, "server.{}={member}", member.id);
        }
        fs::write(self.cfg_file(id), cfg)
    }

    /// The configuration of a server in this process.
    pub(super) fn config(&self, id: i64) -> ServerConfig {
        let mut core = Config::new(ServerId(id), self.membership.clone());
        core.timing.tick = self.times.tick;
        core.election = self.times.election.clone();
        core.timing.init_limit = INIT_LIMIT;
        core.timing.sync_limit = SYNC_LIMIT;
        let mut config = ServerConfig::new(core, self.data_dir(id));
        config.changes_kept = 4096;
        #[cfg(feature = "tls")]
        if self.links.are_secure() {
            let Stores { own, trusted } = certificates::stores(self.dir(), id);
            let mut settings = Settings::new(StoreFile::new(own), StoreFile::new(trusted));
            settings.identity = IdentityMode::Id;
            config.tls = Some(settings);
        }
        match self.purpose {
            Purpose::Elections => {}
            Purpose::Load(_) => ledger::keep_everything(&mut config),
            Purpose::Sessions => {
                config.client_addresses.extend(self.client_address(id));
                config.max_client_connections = 0;
            }
        }
        config
    }

    /// What starts the process of a server.
    pub(super) fn command(&self, id: i64) -> io::Result<Command> {
        let log = fs::File::options().create(true).append(true).open(self.log_file(id))?;
        let mut command = Command::new(std::env::current_exe()?);
        match self.purpose {
            Purpose::Load(runtime) => {
                command
                    .arg("demo-server")
                    .arg(self.cfg_file(id))
                    .args(["--runtime", runtime.name()]);
                if let Some(variable) = runtime.threads() {
                    if std::env::var_os(variable).is_none() {
                        command.env(variable, "1");
                    }
                }
            }
            Purpose::Elections | Purpose::Sessions => {
                command.arg("serve").arg(self.cfg_file(id)).args([
                    "--json",
                    "--until-stdin-ends",
                    "--log",
                    "warn",
                ]);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        Ok(command)
    }
}

/// Free ports on loopback, below those that the system gives to outgoing connections: one of these could be taken when
/// a killed server wants its port back.
fn free_ports(count: usize) -> Option<Vec<u16>> {
    let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
    let span = PORTS.end - PORTS.start;
    let offset = (nanos / 1000).wrapping_add(std::process::id()) % u32::from(span);
    let mut held = Vec::new();
    for step in 0..span {
        let offset = (u32::from(step) + offset) % u32::from(span);
        let port = PORTS.start + u16::try_from(offset).ok()?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
        if held.len() == count {
            return Some(held.into_iter().map(|(port, _)| port).collect());
        }
    }
    None
}

const PORTS: std::ops::Range<u16> = 12_000..32_000;
const INIT_LIMIT: u32 = 10;
const SYNC_LIMIT: u32 = 5;
