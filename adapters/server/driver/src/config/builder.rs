//! A configuration, built up in a program instead of read from a `zoo.cfg`.
//!
//! ```text
//!   members, durations ─► ServerConfigBuilder ─► build ─► ServerConfig, or what is wrong with it
//! ```
//!
//! Nothing is checked before the end, so that the order of the calls is free; the rules are the core's.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quorate_core::address::HostPort;
use quorate_core::config::{Config, ConfigError, Election};
use quorate_core::id::ServerId;
use quorate_core::membership::{
    LineError, Member, MembershipBuilder, MembershipError, Role, ServerAddress,
};
use thiserror::Error;

use crate::config::server_config::{ServerConfig, entropy};

/// Builds the [`ServerConfig`] of one server. See [`ServerConfig::builder`].
///
/// Whatever is not said is as ZooKeeper has it. The whole is checked at the end, in [`build`](Self::build).
/// What it has no method for is a field of the [`ServerConfig`] that comes out.
#[derive(Clone, Debug)]
#[must_use]
pub struct ServerConfigBuilder {
    id: ServerId,
    data_dir: PathBuf,
    members: MembershipBuilder,
    wrong: Option<BuildError>,
    tick: Option<Duration>,
    limits: [Option<u32>; 2],
    priority: u8,
    lease: Option<Duration>,
    election: Election,
    reconfig: bool,
    seed: Option<u64>,
    client_addresses: Vec<SocketAddr>,
}

impl ServerConfig {
    /// Builds the configuration of server `id`, which keeps its data in `data_dir`, step by step:
    ///
    /// ```
    /// use quorate_driver::ServerConfig;
    /// use std::time::Duration;
    ///
    /// let config = ServerConfig::builder(1, "/var/lib/quorate")
    ///     .voter(1, "10.0.0.1:2888:3888")
    ///     .voter(2, "10.0.0.2:2888:3888")
    ///     .voter(3, "10.0.0.3:2888:3888")
    ///     .tick(Duration::from_millis(500))
    ///     .build()?;
    /// # Ok::<(), quorate_driver::BuildError>(())
    /// ```
    pub fn builder(id: i64, data_dir: impl Into<PathBuf>) -> ServerConfigBuilder {
        ServerConfigBuilder::new(id, data_dir.into())
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A server's address is not `host:quorum port:election port`.
    #[error("server {id}: {address:?} is not host:quorum-port:election-port")]
    Address {
        /// Whose.
        id: ServerId,
        /// What was said.
        address: String,
    },
    /// A server cannot be a member as it was described.
    #[error("server {id}: {source}")]
    Member {
        /// Which.
        id: ServerId,
        /// Why.
        source: LineError,
    },
    /// The servers are no ensemble.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// Our own id is none of theirs.
    #[error("server {0} is not one of the servers")]
    NotAMember(ServerId),
    /// A number cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ServerConfigBuilder {
    pub(crate) fn new(id: i64, data_dir: PathBuf) -> Self {
        Self {
            id: ServerId(id),
            data_dir,
            members: MembershipBuilder::new(),
            wrong: None,
            tick: None,
            limits: [None; 2],
            priority: 0,
            lease: None,
            election: Election::Fast,
            reconfig: false,
            seed: None,
            client_addresses: Vec::new(),
        }
    }

    /// A server that votes: `host:quorum-port:election-port`, an IPv6 host in brackets. All servers of the
    /// ensemble are told of all, in any order, each of itself too.
    pub fn voter(self, id: i64, address: &str) -> Self {
        self.server(id, address, Role::Participant)
    }

    /// A server that receives what was committed, and has no vote.
    pub fn observer(self, id: i64, address: &str) -> Self {
        self.server(id, address, Role::Observer)
    }

    fn server(mut self, id: i64, address: &str, role: Role) -> Self {
        let id = ServerId(id);
        let added = match parse(address) {
            None => Err(BuildError::Address { id, address: address.to_owned() }),
            Some(address) => {
                let added = self.members.member(Member::new(id, role, address));
                added.map_err(|source| BuildError::Member { id, source })
            }
        };
        // The first thing that is wrong is what the others may follow from.
        self.wrong = self.wrong.or(added.err());
        self
    }

    /// The unit of the two limits (`tickTime`; 3 s).
    pub const fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        self
    }

    /// How many ticks connecting to a leader and catching up may take (`initLimit`; 10), and how many a
    /// member may be silent (`syncLimit`; 5).
    pub const fn limits(mut self, init: u32, sync: u32) -> Self {
        self.limits = [Some(init), Some(sync)];
        self
    }

    /// How much this server is wished to lead, see [`Config::priority`]; 0.
    pub const fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// For how long voters promise their leader to establish no other leader, see [`Config::lease`]; not at
    /// all. The same at all servers.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How it is found out who is to lead, see [`Config::election`]; as ZooKeeper does. The same at all servers.
    ///
    /// ```
    /// use quorate_core::config::{Election, Generations};
    /// use quorate_driver::ServerConfig;
    /// use std::time::Duration;
    ///
    /// let within = Generations::within(Duration::from_millis(150), Duration::from_millis(300));
    /// let config = ServerConfig::builder(1, "/var/lib/quorate")
    ///     .voter(1, "10.0.0.1:2888:3888")
    ///     .election(Election::Generation(within))
    ///     .build()?;
    /// # Ok::<(), quorate_driver::BuildError>(())
    /// ```
    pub fn election(mut self, election: Election) -> Self {
        self.election = election;
        self
    }

    /// Whether the membership may change while the ensemble runs (`reconfigEnabled`; false).
    pub const fn reconfigurable(mut self, may_change: bool) -> Self {
        self.reconfig = may_change;
        self
    }

    /// Where jitter comes from; the system's entropy, unless this is said. For runs that are to be alike.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Where clients of the application's service connect, see [`ServerConfig::client_addresses`]; nowhere.
    pub fn client_addresses(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.client_addresses = addresses.into_iter().collect();
        self
    }

    /// Checks the whole.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its value.
    pub fn build(self) -> Result<ServerConfig, BuildError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let membership = self.members.finish()?;
        if membership.member(self.id).is_none() {
            return Err(BuildError::NotAMember(self.id));
        }
        let mut core = Config::new(self.id, membership);
        core.timing.tick = self.tick.unwrap_or(core.timing.tick);
        let [init, sync] = self.limits;
        core.timing.init_limit = init.unwrap_or(core.timing.init_limit);
        core.timing.sync_limit = sync.unwrap_or(core.timing.sync_limit);
        core.priority = self.priority;
        core.lease = self.lease;
        core.election = self.election;
        core.reconfig_enabled = self.reconfig;
        core.seed = self.seed.unwrap_or_else(entropy);
        core.check()?;
        let mut config = ServerConfig::new(core, self.data_dir);
        config.client_addresses = self.client_addresses;
        Ok(config)
    }
}

/// `host:quorum-port:election-port`.
fn parse(address: &str) -> Option<ServerAddress> {
    let (rest, election) = address.rsplit_once(':')?;
    let (host, quorum) = rest.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let at = |port: &str| {
        let port = port.parse().ok().filter(|port| *port != 0)?;
        Some(HostPort { host: host.to_owned(), port })
    };
    (!host.is_empty()).then_some(())?;
    Some(ServerAddress { quorum: at(quorum)?, election: at(election)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ensemble_is_built_and_what_is_wrong_is_named() {
        let builder = || {
            ServerConfig::builder(1, "/tmp/x")
                .voter(1, "a:2888:3888")
                .voter(2, "[fd00::2]:2888:3888")
                .observer(3, "c:2888:3888")
        };
        let second = Duration::from_secs(1);
        let built = builder().tick(second).limits(8, 4).priority(3).lease(2 * second).build();
        let core = built.unwrap().core;
        let lines = "server.1=a:2888:3888:participant\nserver.2=[fd00::2]:2888:3888:participant\n\
                     server.3=c:2888:3888:observer\nversion=0";
        assert_eq!(core.membership.text(), lines);
        assert_eq!((core.timing.tick, core.timing.init_time()), (second, 8 * second));
        assert_eq!((core.priority, core.lease), (3, Some(2 * second)));
        let seed = |builder: ServerConfigBuilder| builder.build().unwrap().core.seed;
        assert_ne!(seed(builder()), seed(builder()), "two servers, two runs");
        assert_eq!(seed(builder().seed(7)), 7);

        let wrong = |built: ServerConfigBuilder| built.build().unwrap_err().to_string();
        let address = |address: &str| wrong(builder().voter(4, address));
        for bad in ["", "a", "a:1", "a:0:3888", ":1:2", "fd00::2:2888:3888", "[a:1:2", "a:1:70000"]
        {
            assert!(address(bad).contains("is not host:quorum-port:election-port"), "{bad}");
        }
        assert!(wrong(builder().voter(2, "d:1:2")).contains("server 2"));
        let non_member = ServerConfig::builder(9, "/tmp/x").voter(1, "a:2888:3888");
        assert_eq!(wrong(non_member), "server 9 is not one of the servers");
        assert!(wrong(builder().lease(second)).contains("the lease is 1s"));
        assert!(
            wrong(ServerConfig::builder(1, "/tmp/x").observer(1, "a:1:2")).contains("particip")
        );
    }
}
