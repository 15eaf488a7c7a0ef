//! Which hosts a certificate names.
//!
//! As ZooKeeper's `ZKHostnameVerifier` compares them: numbers with numbers, names without regard to case, a wildcard for
//! one whole label on the left, the common name only where there is no alternative name at all. Unlike there, nothing is
//! looked up: what counts is what the configuration calls a host, since an attacker who holds the zone of reverse
//! look-ups would pass for any server (CVE-2026-24281).

use std::net::IpAddr;

/// What a certificate calls its holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// Alternative names of hosts, as they stand there; some begin with `*.`.
    pub hosts: &'a [String],
    /// Alternative names that are addresses.
    pub addresses: &'a [IpAddr],
    /// The common name of the subject. It counts only if there is no host and no address.
    pub common_name: Option<&'a str>,
}

/// How a certificate names a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// By its own name or address.
    Itself,
    /// By a wildcard, which may stand for others, too.
    ByWildcard,
}

impl Names<'_> {
    /// Whether and how they name this host, a name or an address as an operator has written it.
    #[must_use]
    pub fn names(&self, host: &str) -> Option<Named> {
        let Self { hosts, addresses, common_name } = *self;
        let common = common_name.filter(|_| hosts.is_empty() && addresses.is_empty());
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(number) = host.parse::<IpAddr>() {
            let is = |ip: &IpAddr| ip.to_canonical() == number.to_canonical();
            let of_common = common.and_then(|name| name.parse().ok());
            let named = addresses.iter().any(is) || of_common.as_ref().is_some_and(is);
            return named.then_some(Named::Itself);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let mut found = None;
        for name in hosts.iter().map(String::as_str).chain(common) {
            match matches(name, host) {
                Some(Named::Itself) => return Some(Named::Itself),
                Some(Named::ByWildcard) => found = Some(Named::ByWildcard),
                None => {}
            }
        }
        found
    }
}

/// Whether `name`, which stands in a certificate, is one of `host`.
fn matches(name: &str, host: &str) -> Option<Named> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if let Some(zone) = name.strip_prefix("*.") {
        let (label, rest) = host.split_once('.')?;
        let matches = !label.is_empty() && !zone.is_empty() && zone.eq_ignore_ascii_case(rest);
        return matches.then_some(Named::ByWildcard);
    }
    (!name.is_empty() && name.eq_ignore_ascii_case(host)).then_some(Named::Itself)
}
