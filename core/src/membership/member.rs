//! One server of an ensemble, and the line that says so.
//!
//! ```text
//!   server.1=zk1:2888:3888:participant;zk1:2181     host : quorum port : election port : role ; client
//! ```

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::address::HostPort;
use crate::id::ServerId;

/// What a server is in its ensemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It votes, and its acknowledgement counts.
    #[default]
    Participant,
    /// It receives what was committed and has no vote.
    Observer,
}

impl Role {
    /// Reads a role as ZooKeeper does, without regard to case; none if it is another word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Participant, Self::Observer]
            .into_iter()
            .find(|role| role.name().eq_ignore_ascii_case(name))
    }

    /// The word in configuration lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Participant => "participant",
            Self::Observer => "observer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One address at which a server listens to its peers: one host, two ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerAddress {
    /// Where its learners connect while it leads.
    pub quorum: HostPort,
    /// Where its peers connect for elections; always on the same host.
    pub election: HostPort,
}

impl ServerAddress {
    /// The two ports of `host`.
    pub fn new(host: &str, quorum_port: u16, election_port: u16) -> Self {
        let at = |port| HostPort { host: host.to_owned(), port };
        Self { quorum: at(quorum_port), election: at(election_port) }
    }
}

/// One server of the ensemble, as its `server.N` line tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its id.
    pub id: ServerId,
    /// Whether it votes.
    pub role: Role,
    /// Where it listens to its peers: at least one address, in a membership ascending by host.
    pub addresses: Vec<ServerAddress>,
    /// Where it listens to clients, if its own line says so; a client port that is set elsewhere
    /// (`clientPort`) is not part of the membership.
    pub client: Option<HostPort>,
    /// Where it listens to clients over TLS, if its own line says so.
    pub secure_client: Option<HostPort>,
}

impl Member {
    /// A server with one address and no client address.
    pub fn new(id: ServerId, role: Role, address: ServerAddress) -> Self {
        Self { id, role, addresses: [address].into(), client: None, secure_client: None }
    }

    /// Reads what stands behind `server.N=`.
    ///
    /// # Errors
    ///
    /// A [`LineError`] that names the part which cannot be read.
    pub fn parse(id: ServerId, value: &str) -> Result<Self, LineError> {
        let mut parts = value.split(';');
        let (servers, client, secure) =
            (parts.next().unwrap_or_default(), parts.next(), parts.next());
        if parts.next().is_some() || (client == Some("") && secure.is_none()) {
            return Err(LineError::Server { found: excerpt(value) });
        }
        let mut stated = None;
        let mut addresses = Vec::new();
        for server in servers.split('|') {
            let (address, role) = parse_address(server)?;
            addresses.push(address);
            match (stated, role) {
                (Some(first), Some(role)) if first != role => {
                    return Err(LineError::RolesDiffer { first, second: role });
                }
                (_, role) => stated = role.or(stated),
            }
        }
        let client = client.filter(|text| !text.is_empty()).map(parse_client).transpose()?;
        let secure_client = secure.map(parse_client).transpose()?;
        let role = stated.unwrap_or_default();
        let member = Self { id, role, addresses, client, secure_client };
        member.check()?;
        Ok(member)
    }

    /// Where its learners connect while it leads: the first of its addresses.
    ///
    /// # Panics
    ///
    /// If it has no address, which no member of a membership is.
    pub fn quorum_address(&self) -> &HostPort {
        &self.addresses[0].quorum
    }

    /// Where its peers connect for elections: the first of its addresses.
    ///
    /// # Panics
    ///
    /// If it has no address, which no member of a membership is.
    pub fn election_address(&self) -> &HostPort {
        &self.addresses[0].election
    }

    /// What the grammar asks of one line, also for members that were not read from one.
    pub(super) fn check(&self) -> Result<(), LineError> {
        if self.id.0 < 0 {
            return Err(LineError::Id { found: format!("{}", self.id.0) });
        }
        if self.addresses.is_empty() {
            return Err(LineError::NoAddress);
        }
        for ServerAddress { quorum, election } in &self.addresses {
            check_host(&quorum.host)?;
            if quorum.host != election.host {
                let (quorum, election) = (excerpt(&quorum.host), excerpt(&election.host));
                return Err(LineError::HostsDiffer { quorum, election });
            }
            if quorum.port == 0 || election.port == 0 {
                return Err(LineError::Port { found: "0".to_owned() });
            }
            if quorum.port == election.port {
                return Err(LineError::SamePort { port: quorum.port });
            }
        }
        for client in self.client.iter().chain(&self.secure_client) {
            check_host(&client.host)?;
        }
        Ok(())
    }

    /// Every host and port on which it listens; an address for all interfaces stands for each of its
    /// hosts.
    pub(super) fn listens(&self) -> Vec<HostPort> {
        let mut all = Vec::new();
        for address in &self.addresses {
            all.extend([address.quorum.clone(), address.election.clone()]);
        }
        for client in self.client.iter().chain(&self.secure_client) {
            if client.port == 0 {
                // The system picks one.
            } else if client.is_wildcard() {
                let hosts: BTreeSet<_> = self.addresses.iter().map(|a| &a.quorum.host).collect();
                all.extend(
                    hosts.into_iter().map(|host| HostPort { host: host.clone(), ..client.clone() }),
                );
            } else {
                all.push(client.clone());
            }
        }
        all
    }
}

/// Displays what stands behind `server.N=`, in ZooKeeper's canonical form.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.addresses.iter().enumerate() {
            let bar = if at == 0 { "" } else { "|" };
            write!(f, "{bar}{}:{}", address.quorum, address.election.port)?;
        }
        write!(f, ":{}", self.role)?;
        match (&self.client, &self.secure_client) {
            (None, None) => Ok(()),
            (Some(client), None) => write!(f, ";{client}"),
            (Some(client), Some(secure)) => write!(f, ";{client};{secure}"),
            (None, Some(secure)) => write!(f, ";;{secure}"),
        }
    }
}

/// Why one configuration line cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// An id is no number from 0 to 2^63 - 1.
    #[error("{found:?} is not a server id")]
    Id {
        /// What stands there.
        found: String,
    },
    /// The number of a group is none.
    #[error("{found:?} is not the number of a group")]
    Group {
        /// What stands there.
        found: String,
    },
    /// A group without servers.
    #[error("group {group} has no servers")]
    EmptyGroup {
        /// The group.
        group: i64,
    },
    /// A server line has too few or too many parts.
    #[error(
        "{found:?} is not host:quorumPort:electionPort[:participant|:observer][;[host:]clientPort]"
    )]
    Server {
        /// The part concerned.
        found: String,
    },
    /// A member without addresses.
    #[error("a server needs an address")]
    NoAddress,
    /// What should be a host is none.
    #[error("{found:?} is not a host name, an IPv4 address or an IPv6 address in brackets")]
    Host {
        /// What stands there.
        found: String,
    },
    /// The two ports of one address are on two hosts, which no line can say.
    #[error(
        "the quorum port is on {quorum:?}, the election port on {election:?}; a server has both on one host"
    )]
    HostsDiffer {
        /// The host of the quorum port.
        quorum: String,
        /// The host of the election port.
        election: String,
    },
    /// A port is no number from 1 to 65535.
    #[error("{found:?} is not a port")]
    Port {
        /// What stands there.
        found: String,
    },
    /// The two ports of one address are one.
    #[error("port {port} cannot be both the quorum port and the election port")]
    SamePort {
        /// The port.
        port: u16,
    },
    /// The role is neither of the two.
    #[error("{found:?} is not a role; roles are participant and observer")]
    Role {
        /// What stands there.
        found: String,
    },
    /// Two addresses of one server give it two roles.
    #[error("one address says {first}, another {second}; a server has one role")]
    RolesDiffer {
        /// The role that was said first.
        first: Role,
        /// The role that was said later.
        second: Role,
    },
    /// A weight is no number from 0 to 2^63 - 1.
    #[error("{found:?} is not a weight; weights are whole numbers from 0")]
    Weight {
        /// What stands there.
        found: String,
    },
    /// A version is no hexadecimal number below 2^63.
    #[error("{found:?} is not a version; versions are hexadecimal numbers below 8000000000000000")]
    Version {
        /// What stands there.
        found: String,
    },
    /// A server is in two groups, or twice in one.
    #[error("server {id} is in group {first} already and cannot be in group {second}")]
    InTwoGroups {
        /// The server.
        id: ServerId,
        /// The group that named it first.
        first: i64,
        /// The group that named it then.
        second: i64,
    },
    /// The key stood there before; ZooKeeper would silently take the later of the two.
    #[error("{key} is set twice")]
    Repeated {
        /// The key.
        key: String,
    },
    /// There are more lines than a membership may have servers.
    #[error("more than {MEMBERS_MAX} servers")]
    TooMany,
}

/// `host:quorumPort:electionPort[:role]`.
fn parse_address(text: &str) -> Result<(ServerAddress, Option<Role>), LineError> {
    let shape = || LineError::Server { found: excerpt(text) };
    let (host, rest) = split_host(text)?.ok_or_else(shape)?;
    let mut parts = rest.split(':');
    let (Some(quorum), Some(election)) = (parts.next(), parts.next()) else { return Err(shape()) };
    let role = parts.next();
    if parts.next().is_some() {
        return Err(shape());
    }
    let role = role
        .map(|role| Role::from_name(role).ok_or_else(|| LineError::Role { found: excerpt(role) }))
        .transpose()?;
    Ok((ServerAddress::new(host, parse_port(quorum)?, parse_port(election)?), role))
}

/// `[host:]port`; without a host on all interfaces.
fn parse_client(text: &str) -> Result<HostPort, LineError> {
    let (host, port) = split_host(text)?.unwrap_or(("0.0.0.0", text));
    Ok(HostPort { host: host.to_owned(), port: parse_port(port)? })
}

/// The host, without brackets, and what stands behind its colon.
fn split_host(text: &str) -> Result<Option<(&str, &str)>, LineError> {
    let Some(bracketed) = text.strip_prefix('[') else { return Ok(text.split_once(':')) };
    let (host, rest) = bracketed
        .split_once("]:")
        .filter(|(host, _)| is_ipv6(host))
        .ok_or_else(|| LineError::Host { found: excerpt(text) })?;
    Ok(Some((host, rest)))
}

/// With or without a zone (`fe80::1%eth0`).
fn is_ipv6(host: &str) -> bool {
    let (address, zone) = host.split_once('%').unwrap_or((host, "-"));
    address.parse::<core::net::Ipv6Addr>().is_ok() && !zone.is_empty() && zone.chars().all(in_name)
}

/// What may stand in a name; nothing that means something in a configuration line.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~')
}

fn check_host(host: &str) -> Result<(), LineError> {
    let named = !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.chars().all(in_name);
    if named || is_ipv6(host) { Ok(()) } else { Err(LineError::Host { found: excerpt(host) }) }
}

/// How many servers a membership may have.
pub(super) const MEMBERS_MAX: usize = 1024;

/// What ZooKeeper accepts in a notification.
pub(super) const TEXT_BYTES_MAX: usize = 512 * 1024;

/// The longest name in the domain name system.
const HOST_BYTES_MAX: usize = 255;

/// Digits only: no sign, no blanks.
pub(super) fn parse_number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

pub(super) fn parse_id(text: &str) -> Result<ServerId, LineError> {
    parse_number(text).map(ServerId).ok_or_else(|| LineError::Id { found: excerpt(text) })
}

fn parse_port(text: &str) -> Result<u16, LineError> {
    parse_number(text)
        .and_then(|port| u16::try_from(port).ok())
        .ok_or_else(|| LineError::Port { found: excerpt(text) })
}

pub(super) fn parse_version(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| i64::from_str_radix(text, 16).ok()).flatten()
}

/// Enough of `text` to recognise it in a message; peers may send half a megabyte.
pub(super) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
