//! What a `zoo.cfg` says of clients: how many, how long their sessions, and what they may.

use std::time::Duration;

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::ConfigError;

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
    /// How many writes of its clients a server has under way (`globalOutstandingLimit`, 1000).
    pub outstanding_max: usize,
    /// Who may do everything (`DigestAuthenticationProvider.superDigest`).
    pub super_digest: Option<String>,
    /// Whether access lists forbid nothing (`skipACL`, no).
    pub skip_acl: bool,
    /// Whether there are containers and TTL nodes (`extendedTypesEnabled`, false). Containers work either way.
    pub extended_types: bool,
    /// Whether a server refuses by its own tree what it can, ahead of what it has not answered yet (`enableEagerACLCheck`,
    /// false).
    pub eager_acl: bool,
    /// Whether silent connections of clients are probed (`clientTcpKeepAlive`, false).
    pub keep_alive: bool,
    /// What is held back or dropped under load (`request_throttle_max_requests` and what belongs to it). Without effect yet.
    pub throttle: Throttle,
    /// How often a leader looks for containers and TTL nodes that are due (`znode.container.checkIntervalMs`, 60 s).
    pub container_interval: Duration,
}

/// What becomes of requests when there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// How many may be under way before others wait (`request_throttle_max_requests`, 0 for any number).
    pub requests_max: usize,
    /// How long they wait at a time (`request_throttle_stall_time`, 100 ms).
    pub stall: Duration,
    /// Whether stale ones are dropped, with their connections (`request_throttle_drop_stale`, true).
    pub drop_stale: bool,
    /// One is stale whose connection has gone (`request_stale_connection_check`, true).
    pub stale_connections: bool,
    /// One is stale that has waited longer than its session may be silent (`request_stale_latency_check`, false).
    pub stale_latency: bool,
    /// After which time a request is refused instead (`throttled_op_wait_time`, never).
    pub wait_max: Option<Duration>,
}

impl Throttle {
    fn read(entries: &mut Entries<'_>) -> Result<Self, ConfigError> {
        for key in [
            "request_throttle_max_requests",
            "request_throttle_stall_time",
            "request_throttle_drop_stale",
            "request_stale_connection_check",
            "request_stale_latency_check",
            "throttled_op_wait_time",
        ] {
            entries.without_effect(key);
        }
        let stall = entries.millis("request_throttle_stall_time", 0)?;
        let wait_max = entries.millis("throttled_op_wait_time", 0)?;
        Ok(Self {
            requests_max: entries.count_or_none("request_throttle_max_requests", 0)?,
            stall: stall.unwrap_or(Duration::from_millis(100)),
            drop_stale: entries.boolean("request_throttle_drop_stale", true)?,
            stale_connections: entries.boolean("request_stale_connection_check", true)?,
            stale_latency: entries.boolean("request_stale_latency_check", false)?,
            wait_max: wait_max.filter(|wait| !wait.is_zero()),
        })
    }
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
            super_digest: entries
                .take("DigestAuthenticationProvider.superDigest")
                .map(|entry| entry.value),
            skip_acl: entries.yes("skipACL")?,
            extended_types: entries.boolean("extendedTypesEnabled", false)?,
            eager_acl: entries.boolean("enableEagerACLCheck", false)?,
            keep_alive: entries.boolean("clientTcpKeepAlive", false)?,
            throttle: Throttle::read(entries)?,
            container_interval: entries
                .millis("znode.container.checkIntervalMs", 1)?
                .unwrap_or(Duration::from_secs(60)),
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
