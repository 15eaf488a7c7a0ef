//! What a `zoo.cfg` says of clients: how many, how long their sessions, and what they may.

use std::time::Duration;

use crate::zoo_cfg::entries::{Entries, MAX};
use crate::zoo_cfg::findings::ConfigError;
use crate::zoo_cfg::sasl::ClientSasl;

/// The settings of the service for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// How many connections one address may have to the client port (`maxClientCnxns`, 60; 0 for any number).
    pub max_per_address: usize,
    /// How many connections there may be in all (`maxCnxns`, 0 for any number).
    pub max_connections: usize,
    /// The shortest time-out of a session (`minSessionTimeout`); two ticks if absent.
    pub session_timeout_min: Option<Duration>,
    /// The longest one (`maxSessionTimeout`); twenty ticks if absent.
    pub session_timeout_max: Option<Duration>,
    /// How many writes of its clients a server has under way (`globalOutstandingLimit`, 1000); divided by one less than there
    /// are voters, where more than two servers vote.
    pub outstanding_max: usize,
    /// Whether a leader serves clients, too (`leaderServes`, yes). One that votes alone does either way.
    pub leader_serves: bool,
    /// How many paths one connection may watch (`quorate.maxWatchesPerConnection`, 1,000,000; 0 for any number).
    pub watches_per_client_max: usize,
    /// How many all connections together may watch, each for itself (`quorate.maxWatches`, 10,000,000; 0 for any number).
    pub watches_max: usize,
    /// Who may do everything (`DigestAuthenticationProvider.superDigest`).
    pub super_digest: Option<String>,
    /// Whose certificate lets a client do everything (`X509AuthenticationProvider.superUser`): its subject in RFC 2253, as
    /// access lists of the scheme `x509` have it.
    pub x509_super: Option<String>,
    /// How clients log in by SASL; none without a JAAS file.
    pub sasl: Option<ClientSasl>,
    /// Of which schemes a client has to prove one before anything else (`enforce.auth.schemes`, where `enforce.auth.enabled`
    /// is true; `sasl`, where `sessionRequireClientSASLAuth` is): none, and nothing has to be proved.
    pub required_schemes: Vec<String>,
    /// Whether access lists forbid nothing (`skipACL`, no).
    pub skip_acl: bool,
    /// Whether there are containers and TTL nodes (`extendedTypesEnabled`, false). Containers work either way.
    pub extended_types: bool,
    /// Whether a server refuses by its own tree what it can, ahead of what it has not answered yet (`enableEagerACLCheck`,
    /// false).
    pub eager_acl: bool,
    /// By what names and passwords become digests (`DigestAuthenticationProvider.digestAlg`, SHA1): SHA1, SHA-256, SHA-384 or
    /// SHA-512.
    pub digest_algorithm: String,
    /// Whether transactions carry the digest of the tree (`digest.enabled`, true).
    pub tree_digests: bool,
    /// The oldest version of ZooKeeper among the servers of the ensemble and its clients (`quorate.java.oldest`): not known.
    pub oldest_java: Option<JavaVersion>,
    /// Whether silent connections of clients are probed (`clientTcpKeepAlive`, false).
    pub keep_alive: bool,
    /// How many connections of clients may wait at one address to be accepted (`clientPortListenBacklog`): as many as the
    /// system allows, if it is -1, 0 or absent, where Java has 50.
    pub backlog: Option<u32>,
    /// How many requests may be under way before others wait (`request_throttle_max_requests`, 0 for any number).
    pub throttled_requests_max: Option<usize>,
    /// Whether a request that has waited for longer than its session may be silent is dropped with its connection
    /// (`request_throttle_drop_stale`, true, and `request_stale_latency_check`, false: both). What clients have asked for
    /// that are gone is dropped either way.
    pub drop_stale: bool,
    /// How often a leader looks for containers and TTL nodes that are due (`znode.container.checkIntervalMs`, 60 s).
    pub container_interval: Duration,
    /// How many of them it deletes in a minute, at most (`znode.container.maxPerMinute`, 10,000).
    pub containers_per_minute: u32,
    /// After how long a container is due that never had a child (`znode.container.maxNeverUsedIntervalMs`, never).
    pub container_unused_max: Option<Duration>,
}

impl ClientSettings {
    pub(super) fn read(entries: &mut Entries<'_>, tick: Duration) -> Result<Self, ConfigError> {
        let longest = entries.peek("maxSessionTimeout");
        let settings = Self {
            max_per_address: entries.count_or_none("maxClientCnxns", 60)?,
            max_connections: entries.count_or_none("maxCnxns", 0)?,
            session_timeout_min: entries.millis_or_off("minSessionTimeout")?,
            session_timeout_max: entries.millis_or_off("maxSessionTimeout")?,
            outstanding_max: entries.count("globalOutstandingLimit", 1000)?,
            oldest_java: oldest_java(entries)?,
            leader_serves: entries.yes("leaderServes", true)?,
            watches_per_client_max: entries
                .count_or_none("quorate.maxWatchesPerConnection", 1_000_000)?,
            watches_max: entries.count_or_none("quorate.maxWatches", 10_000_000)?,
            super_digest: entries
                .take("DigestAuthenticationProvider.superDigest")
                .map(|entry| entry.value),
            x509_super: entries
                .take("X509AuthenticationProvider.superUser")
                .map(|entry| entry.value)
                .filter(|subject| !subject.is_empty()),
            sasl: None,
            required_schemes: Vec::new(),
            skip_acl: entries.yes("skipACL", false)?,
            extended_types: entries.boolean("extendedTypesEnabled", false)?,
            eager_acl: entries.boolean("enableEagerACLCheck", false)?,
            keep_alive: entries.boolean("clientTcpKeepAlive", false)?,
            backlog: entries.number_or_off("clientPortListenBacklog")?,
            throttled_requests_max: entries
                .count_or_none("request_throttle_max_requests", 0)
                .map(|max| Some(max).filter(|max| *max > 0))?,
            drop_stale: drops_stale(entries)?,
            digest_algorithm: digest_algorithm(entries)?,
            tree_digests: entries.boolean("digest.enabled", true)?,
            container_interval: entries
                .millis("znode.container.checkIntervalMs", 1)?
                .unwrap_or(Duration::from_secs(60)),
            containers_per_minute: entries
                .number("znode.container.maxPerMinute", 1, MAX)?
                .unwrap_or(10_000),
            container_unused_max: entries
                .millis("znode.container.maxNeverUsedIntervalMs", 0)?
                .filter(|max| !max.is_zero()),
        };
        let min = settings.session_timeout_min.unwrap_or(tick * 2);
        let max = settings.session_timeout_max.unwrap_or(tick * 20);
        if min <= max {
            return Ok(settings);
        }
        let expected = format!("at least minSessionTimeout, which is {}", min.as_millis());
        match longest.or_else(|| entries.peek("minSessionTimeout")) {
            Some(entry) => Err(entry.value_error(expected)),
            // The shortest is above what is the longest unless it is said.
            None => Ok(Self { session_timeout_max: Some(min), ..settings }),
        }
    }
}

/// Whether requests that have waited for too long are dropped. What belongs to it and has no effect is said.
fn drops_stale(entries: &mut Entries<'_>) -> Result<bool, ConfigError> {
    for key in
        ["request_throttle_stall_time", "request_stale_connection_check", "throttled_op_wait_time"]
    {
        entries.without_effect(key, NOT_YET);
    }
    entries.millis("request_throttle_stall_time", 0)?;
    entries.boolean("request_stale_connection_check", true)?;
    entries.millis("throttled_op_wait_time", 0)?;
    let drop = entries.boolean("request_throttle_drop_stale", true)?;
    Ok(entries.boolean("request_stale_latency_check", false)? && drop)
}

/// A version of ZooKeeper, as far as it matters what a server or a client of it understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JavaVersion([u32; 3]);

impl JavaVersion {
    /// That of an ensemble which has no server of ZooKeeper's, and no client of it (`none`).
    pub const NONE: Self = Self([u32::MAX; 3]);

    /// Reads a version such as `3.8.4`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        let version = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(Self(version))
    }

    /// Whether it expects events to carry the zxid of their transaction: from 3.9.0 on (ZOOKEEPER-4655).
    pub const fn has_event_zxids(self) -> bool {
        let Self([major, minor, _]) = self;
        major > 3 || (major == 3 && minor >= 9)
    }

    /// Whether it knows a create2 within a multi: from 3.7.2, 3.8.2 and 3.9.0 on.
    pub const fn knows_create2_in_multi(self) -> bool {
        let Self([major, minor, patch]) = self;
        major > 3 || (major == 3 && (minor >= 9 || (minor >= 7 && patch >= 2)))
    }
}

fn oldest_java(entries: &mut Entries<'_>) -> Result<Option<JavaVersion>, ConfigError> {
    let Some(entry) = entries.take("quorate.java.oldest") else { return Ok(None) };
    match &*entry.value {
        "none" => Ok(Some(JavaVersion::NONE)),
        version => match JavaVersion::parse(version) {
            Some(version) => Ok(Some(version)),
            None => Err(entry.value_error("a version such as 3.8.4, or none".to_owned())),
        },
    }
}

fn digest_algorithm(entries: &mut Entries<'_>) -> Result<String, ConfigError> {
    match entries.take("DigestAuthenticationProvider.digestAlg") {
        None => Ok("SHA1".to_owned()),
        Some(entry) if ALGORITHMS.contains(&entry.value.as_str()) => Ok(entry.value),
        Some(entry) => Err(entry.value_error(ALGORITHMS.join(", "))),
    }
}

const NOT_YET: &str = "the service for clients has no such part";
const ALGORITHMS: [&str; 4] = ["SHA1", "SHA-256", "SHA-384", "SHA-512"];
