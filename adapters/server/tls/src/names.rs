//! The names in a certificate, and which hosts they are names of.
//!
//! As ZooKeeper's `ZKHostnameVerifier` compares them: numbers with numbers, names without regard to case, a wildcard for
//! one whole label on the left, the common name only where there is no alternative name at all. Unlike there, nothing is
//! looked up: what counts is what the configuration calls a host, since an attacker who holds the zone of reverse
//! look-ups would pass for any server (CVE-2026-24281).

use std::fmt;
use std::net::IpAddr;

use quorate_core::id::ServerId;

/// What a certificate calls its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerNames {
    /// Alternative names of hosts, as they stand there; some begin with `*.`.
    pub hosts: Vec<String>,
    /// Alternative names that are addresses.
    pub addresses: Vec<IpAddr>,
    /// The common name of the subject. It counts only if there is no host and no address.
    pub common_name: Option<String>,
    /// The servers that it is for by name: `urn:quorate:server:N` among the alternative names.
    pub ids: Vec<ServerId>,
}

/// How a certificate names a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// By its own name or address.
    Itself,
    /// By a wildcard, which may stand for others, too.
    ByWildcard,
}

impl PeerNames {
    /// Whether and how it names this host, a name or an address as an operator has written it.
    pub fn names(&self, host: &str) -> Option<Named> {
        let common = || self.common_name.as_deref().filter(|_| self.is_without_alternatives());
        if let Ok(number) = host.parse::<IpAddr>() {
            let number = number.to_canonical();
            let is =
                |text: &str| text.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical() == number);
            let named = self.addresses.iter().any(|ip| ip.to_canonical() == number)
                || common().is_some_and(is);
            return named.then_some(Named::Itself);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let mut found = None;
        for name in self.hosts.iter().map(String::as_str).chain(common()) {
            match matches(name, host) {
                Some(Named::Itself) => return Some(Named::Itself),
                Some(Named::ByWildcard) => found = Some(Named::ByWildcard),
                None => {}
            }
        }
        found
    }

    fn is_without_alternatives(&self) -> bool {
        self.hosts.is_empty() && self.addresses.is_empty()
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

/// The names that count, for people.
impl fmt::Display for PeerNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.hosts.clone();
        names.extend(self.addresses.iter().map(IpAddr::to_string));
        if names.is_empty() {
            names.extend(self.common_name.clone());
        }
        names.extend(self.ids.iter().map(|id| format!("{URN}{id}")));
        if names.is_empty() {
            return f.write_str("nothing");
        }
        let more = names.len().saturating_sub(SHOWN_MAX);
        names.truncate(SHOWN_MAX);
        // What a stranger has written stands in a log: one line, and not a long one.
        let line = names.join(", ");
        let shown =
            line.chars().take(SHOWN_BYTES_MAX).map(|c| if c.is_control() { '?' } else { c });
        f.write_str(&shown.collect::<String>())?;
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// What stands before the id of a server that a certificate is for by name.
pub(crate) const URN: &str = "urn:quorate:server:";
/// How many names are shown.
const SHOWN_MAX: usize = 8;
/// How many characters of them.
const SHOWN_BYTES_MAX: usize = 400;
