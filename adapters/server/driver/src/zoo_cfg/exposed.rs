//! What a `zoo.cfg` says of those who reach the ports for peers and may be none: `quorate.quorumAllow`, `quorate.strangers`.

use quorate_core::config::Strangers;

use crate::allowed_hosts::AllowedHosts;
use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::ConfigError;

/// Who may use the ports for peers, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// From where connections are taken (`quorate.quorumAllow`: `members`, networks, or both between commas); from
    /// everywhere, if none.
    pub allowed_hosts: Option<AllowedHosts>,
    /// What servers may do that are in no configuration (`quorate.strangers`: `allow`, `ip-only` or `refuse`).
    pub strangers: Strangers,
}

impl Exposure {
    pub(super) fn read(entries: &mut Entries<'_>) -> Result<Self, ConfigError> {
        let allowed_hosts = match entries.take("quorate.quorumAllow") {
            None => None,
            Some(entry) => match entry.value.parse::<AllowedHosts>() {
                Ok(allowed) => Some(allowed),
                Err(error) => {
                    return Err(entry.value_error(format!("members, networks or both: {error}")));
                }
            },
        };
        let strangers = match entries.take("quorate.strangers") {
            None => Strangers::default(),
            Some(entry) => match Strangers::from_name(&entry.value) {
                Some(strangers) => strangers,
                None => return Err(entry.value_error("allow, ip-only or refuse".to_owned())),
            },
        };
        Ok(Self { allowed_hosts, strangers })
    }
}
