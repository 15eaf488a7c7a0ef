//! Where a server listens.
//!
//! A host and a port, as an operator wrote them: names are not looked up here, since they may mean another
//! machine tomorrow. The dialling side does that, anew each time.

use alloc::string::String;
use core::fmt;

/// A host, by name or by number, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// A name or an address, IPv6 without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl HostPort {
    /// Whether this is an address on which one can listen but to which no peer can dial: `0.0.0.0`,
    /// `::`, or port 0 (ZOOKEEPER-2164).
    pub fn is_wildcard(&self) -> bool {
        self.port == 0
            || self.host.is_empty()
            || self.host.parse::<core::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}
