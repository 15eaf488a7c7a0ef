//! Whether a certificate names a host.

use std::net::IpAddr;

use super::extensions::Extensions;

/// A number is compared with addresses as a number; a name with names, where `*` stands for one whole first label. The
/// common name counts where there is neither.
pub(super) fn names(said: &Extensions, common_name: Option<&str>, host: &str) -> bool {
    let Extensions { dns_names, addresses, .. } = said;
    let legacy = if dns_names.is_empty() && addresses.is_empty() { common_name } else { None };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        let same = |other: &IpAddr| other.to_canonical() == address.to_canonical();
        let in_common_name = legacy.and_then(|name| name.parse().ok());
        return addresses.iter().any(same) || in_common_name.as_ref().is_some_and(same);
    }
    dns_names.iter().map(String::as_str).chain(legacy).any(|name| covers(name, host))
}

fn covers(name: &str, host: &str) -> bool {
    let bare = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let (name, host) = (bare(name), bare(host));
    if name.is_empty() {
        return false;
    }
    match name.strip_prefix("*.") {
        // One label alone is never covered, nor is what a top-level domain holds.
        Some(domain) => {
            domain.contains('.')
                && host
                    .split_once('.')
                    .is_some_and(|(label, rest)| !label.is_empty() && rest == domain)
        }
        None => name == host,
    }
}
