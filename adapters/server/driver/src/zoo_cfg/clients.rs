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
    /// How often a leader looks for containers and TTL nodes that are due (`znode.container.checkIntervalMs`, 60 s).
    pub container_interval: Duration,
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
