//! From which addresses the ports for peers take connections, where an operator has said so.
//!
//! A fence against accidents and other tenants of a network, and no authentication: who can send from a member's address is
//! let in.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// From where connections to the election and the quorum port are taken (`quorate.quorumAllow`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    /// From the addresses of the members, as their names are found at the start, every minute and at each dial.
    pub members: bool,
    /// From these networks.
    pub networks: Vec<Network>,
}

/// A network: an address, and how many of its first bits all in it have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that names no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is neither members nor a network such as 10.1.0.0/16, fd00::/8 or 10.1.2.3")]
pub struct NoNetwork(String);

impl AllowedHosts {
    /// Whether a connection from there is taken; `is_members` says whether the address is a member's.
    pub fn allows(&self, from: IpAddr, is_members: impl FnOnce(IpAddr) -> bool) -> bool {
        let from = from.to_canonical();
        self.networks.iter().any(|network| network.contains(from))
            || self.members && is_members(from)
    }
}

impl Network {
    /// Whether an address lies in it; one of IPv4 that was mapped to IPv6 is one of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let common = match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u32::from(own) ^ u32::from(other)).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (u128::from(own) ^ u128::from(other)).leading_zeros()
            }
            _ => return false,
        };
        common >= self.bits.into()
    }
}

/// A list between commas.
impl FromStr for AllowedHosts {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let mut allowed = Self::default();
        for part in text.split(',').map(str::trim) {
            if part == MEMBERS {
                allowed.members = true;
            } else {
                allowed.networks.push(part.parse()?);
            }
        }
        Ok(allowed)
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let wrong = || NoNetwork(text.chars().take(SHOWN_MAX).collect());
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => (address, Some(bits)),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let bits = match bits {
            None => most,
            Some(bits) => {
                Some(bits).filter(digits).and_then(|b| b.parse().ok()).ok_or_else(wrong)?
            }
        };
        if bits > most {
            return Err(wrong());
        }
        // As addresses are compared: one of IPv4 as such.
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(v4)) if bits >= MAPPED_BITS => {
                Ok(Self { address: v4.into(), bits: bits - MAPPED_BITS })
            }
            _ => Ok(Self { address, bits }),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// As it is written in a file.
impl fmt::Display for AllowedHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.members.then(|| MEMBERS.to_owned());
        let parts = members.into_iter().chain(self.networks.iter().map(Network::to_string));
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

const MEMBERS: &str = "members";
/// What stands before an address of IPv4 that is mapped to IPv6 (RFC 4291, 2.5.5.2).
const MAPPED_BITS: u8 = 96;
/// How many characters of a wrong text are shown.
const SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &str, from: &str, members: &[&str]) -> bool {
        let allowed: AllowedHosts = list.parse().unwrap();
        assert_eq!(allowed.to_string().parse(), Ok(allowed.clone()));
        allowed.allows(from.parse().unwrap(), |ip| members.contains(&&*ip.to_string()))
    }

    #[test]
    fn addresses_are_in_their_networks_bit_by_bit() {
        for (list, from, inside) in [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.0.0/15", "10.0.0.1", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.2", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("10.1.0.0/16", "::ffff:10.1.2.3", true),
            ("::ffff:10.1.0.0/112", "10.1.2.3", true),
            ("::ffff:10.1.0.0/112", "10.2.2.3", false),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::1", "2001:db8::1", true),
            ("192.0.2.0/24, fd00::/8", "fd00::9", true),
        ] {
            assert_eq!(allows(list, from, &[]), inside, "{list} {from}");
        }
    }

    #[test]
    fn members_are_let_in_where_that_is_said() {
        let members = ["10.0.0.1", "fd00::1"];
        assert!(allows("members", "10.0.0.1", &members));
        assert!(allows("10.9.0.0/16,members", "::ffff:10.0.0.1", &members));
        assert!(allows("members", "fd00::1", &members));
        assert!(!allows("members", "10.0.0.2", &members));
        assert!(!allows("10.9.0.0/16", "10.0.0.1", &members), "members alone are not meant");
    }

    #[test]
    fn what_is_no_network_is_refused_and_shown() {
        for wrong in [
            "",
            "member",
            "10.1.0.0/33",
            "fd00::/129",
            "10.1.0.0/",
            "10.1.0.0/+8",
            "10.1.0.0/-1",
            "10.1.0.0/8/8",
            "zk1",
            "members,",
            "10.1",
            "/8",
            "10.1.0.0/99999999999",
        ] {
            assert!(wrong.parse::<AllowedHosts>().is_err(), "{wrong}");
        }
        let long = "x".repeat(9_999).parse::<AllowedHosts>().unwrap_err();
        assert!(long.to_string().len() < 200);
    }
}
