//! The names in a certificate that count, and which server it is for by name.

use std::fmt;
use std::net::IpAddr;

use quorate_core::id::ServerId;
pub use quorate_keystore::Named;
use quorate_keystore::Names;

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

impl PeerNames {
    /// Whether and how it names this host, a name or an address as an operator has written it.
    pub fn names(&self, host: &str) -> Option<Named> {
        let (hosts, addresses) = (&*self.hosts, &*self.addresses);
        Names { hosts, addresses, common_name: self.common_name.as_deref() }.names(host)
    }
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
