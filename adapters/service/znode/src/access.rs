//! Who may do what: permissions, the evaluation of access lists, and what is made of a list that a client gives.
//!
//! | scheme | an identity matches if | an id is valid if |
//! |---|---|---|
//! | `world` | always | it is `anyone` |
//! | `ip` | the first bits of its address are those of `address[/bits]`, within one family | it is that |
//! | `digest` | it is the same | it has two parts, parted by a colon |
//! | `sasl` | it is the same, or `super` | it is a principal |
//! | `x509` | it is the same | it is a distinguished name |
//! | `auth` | never: it is replaced by the identities of who gives the list | always |
//!
//! An identity of scheme `super` may do everything, as may a request without identities, which is the embedding
//! program's. Reads at the server of a client and writes at the leader are judged by the same function.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quorate_core::message::Identity;
use quorate_core::prepared::Rejected;

use crate::acl::{Acl, Acls, OPEN_LIST};
use crate::jute::{Fault, Reader};
use crate::refusal::{INVALID_ACL, MARSHALLING};

/// To read a node's data, its children and its access list.
pub const READ: i32 = 1;
/// To set a node's data.
pub const WRITE: i32 = 2;
/// To create children of a node.
pub const CREATE: i32 = 4;
/// To delete children of a node.
pub const DELETE: i32 = 8;
/// To set a node's access list, and to see it in full.
pub const ADMIN: i32 = 16;

/// Whether a client with these identities has one of the permissions on a node with this list; several bits ask
/// for any of them.
///
/// An empty list permits everything, as in ZooKeeper; one that is missing
/// ([`NodeRef::acl`](crate::NodeRef::acl)) nothing but to `super`. No identities at all are the embedding program's.
pub fn permitted(list: Option<&Acls>, permission: i32, identities: Option<&[Identity]>) -> bool {
    let Some(identities) = identities else { return true };
    let open = list.is_some_and(|list| {
        list.is_empty()
            || list.iter().any(|acl| acl.perms & permission != 0 && matches(acl, identities))
    });
    open || identities.iter().any(|own| own.scheme == "super")
}

/// Whether two texts are equal, in a time that does not tell how much of them is.
pub fn is_same_secret(one: &str, other: &str) -> bool {
    let differ =
        one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | one ^ other);
    one.len() == other.len() && std::hint::black_box(differ) == 0
}

/// A list as clients see it that may not [administer](ADMIN) the node: of digests, only whose they are.
pub fn masked(list: &[Acl]) -> Vec<Acl> {
    let masked = |acl: &Acl| match acl.id.split_once(':') {
        Some((user, _)) if &*acl.scheme == "digest" => {
            Acl { id: format!("{user}:x").into(), ..acl.clone() }
        }
        _ => acl.clone(),
    };
    list.iter().map(masked).collect()
}

fn matches(acl: &Acl, identities: &[Identity]) -> bool {
    match &*acl.scheme {
        "world" => &*acl.id == "anyone",
        "ip" => network(&acl.id).is_some_and(|network| {
            let addresses = identities.iter().filter(|own| own.scheme == "ip");
            addresses.filter_map(|own| address(&own.id)).any(|address| network.holds(address))
        }),
        scheme => identities.iter().any(|own| {
            let is_super = scheme == "sasl" && own.id == "super";
            own.scheme == scheme && (is_super || is_same_secret(&own.id, &acl.id))
        }),
    }
}

/// An access list as a client gives it, still in the request: its entries can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    count: usize,
    entries: Reader<'a>,
}

impl<'a> Given<'a> {
    /// None is given: the same as an empty one.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let count = reader.count()?.unwrap_or_default();
        let entries = *reader;
        for _ in 0..count {
            Self::entry(reader)?;
        }
        Ok(Self { count, entries })
    }

    fn entry(reader: &mut Reader<'a>) -> Result<Entry<'a>, Fault> {
        Ok(Entry { perms: reader.int()?, scheme: reader.buffer()?, id: reader.buffer()? })
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut reader = self.entries;
        (0..self.count).map_while(move |_| Self::entry(&mut reader).ok())
    }

    /// Whether it is the one that most nodes have.
    fn is_open(&self) -> bool {
        let open = Entry { perms: 31, scheme: Some(b"world"), id: Some(b"anyone") };
        self.count == 1 && self.entries().eq([open])
    }
}

/// One entry of a list that a client gives; null stays null.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    perms: i32,
    scheme: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
}

/// The access list that a node gets for what a client with these identities asks for: `auth` is replaced, what is
/// there twice is there once. It takes at most `bytes_max` bytes.
pub(crate) fn granted(
    given: &Given<'_>,
    identities: Option<&[Identity]>,
    bytes_max: usize,
) -> Result<Acls, Rejected> {
    if given.is_open() {
        return Ok(Arc::clone(&OPEN_LIST));
    }
    let mut list = Distinct { room: bytes_max, ..Distinct::default() };
    // An expansion is not repeated: a short request could ask for many of them.
    let mut expanded = BTreeSet::new();
    for entry in given.entries() {
        let scheme = text(entry.scheme.ok_or(INVALID_ACL)?);
        let is_valid: fn(&str) -> bool = match &*scheme {
            "auth" => {
                if expanded.insert(entry.perms) {
                    list.expand(entry.perms, identities.unwrap_or_default())?;
                }
                continue;
            }
            "world" => |id| id == "anyone",
            "digest" => is_digest,
            "ip" => |id| network(id).is_some(),
            "sasl" => is_principal,
            "x509" => is_distinguished_name,
            _ => return Err(INVALID_ACL),
        };
        let id = text(entry.id.ok_or(MARSHALLING)?);
        if !is_valid(&id) {
            return Err(INVALID_ACL);
        }
        list.add(entry.perms, &scheme, &id)?;
    }
    if list.entries.is_empty() { Err(INVALID_ACL) } else { Ok(list.entries.into()) }
}

/// The entries that differ from each other, in their order.
#[derive(Default)]
struct Distinct {
    entries: Vec<Acl>,
    /// The same, once there are so many that to go through them takes long. Only looked up in.
    seen: HashSet<Acl>,
    /// How many bytes more there may be.
    room: usize,
}

impl Distinct {
    /// So many are gone through.
    const FEW: usize = 16;

    fn add(&mut self, perms: i32, scheme: &str, id: &str) -> Result<(), Rejected> {
        let acl = Acl { perms, scheme: scheme.into(), id: id.into() };
        if self.entries.len() < Self::FEW {
            if self.entries.contains(&acl) {
                return Ok(());
            }
        } else {
            if self.seen.is_empty() {
                self.seen.extend(self.entries.iter().cloned());
            }
            if !self.seen.insert(acl.clone()) {
                return Ok(());
            }
        }
        let takes = 12 + scheme.len() + id.len();
        self.room = self.room.checked_sub(takes).ok_or(Rejected::TOO_LONG)?;
        self.entries.push(acl);
        Ok(())
    }

    /// One entry for each identity that the client has proved to have.
    fn expand(&mut self, perms: i32, identities: &[Identity]) -> Result<(), Rejected> {
        let mut any = false;
        for Identity { scheme, id } in identities {
            if is_proved(scheme) {
                self.add(perms, scheme, id)?;
                any = true;
            }
        }
        if any { Ok(()) } else { Err(INVALID_ACL) }
    }
}

/// Whether a client proves identities of this scheme: an access list that says `auth` means those.
pub fn is_proved(scheme: &str) -> bool {
    ["digest", "sasl", "x509"].contains(&scheme)
}

/// What is not UTF-8 is replaced, as in Java.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Two parts; empty ones at the end do not count, as in Java.
fn is_digest(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

/// `service`, `service@REALM` or `service/host@REALM`.
fn is_principal(id: &str) -> bool {
    id.split_once('@')
        .is_none_or(|(name, realm)| name.split('/').count() <= 2 && !realm.contains(['/', '@']))
}

/// `CN=a,OU=b`. Only what begins it is looked at: what it says is compared as text.
fn is_distinguished_name(id: &str) -> bool {
    let is_key = |key: &str| {
        let plain = |character: char| character.is_ascii_alphanumeric() || character == '.';
        !key.is_empty() && key.chars().all(plain)
    };
    id.split_once('=').is_some_and(|(key, _)| is_key(key.trim()))
}

/// The addresses that begin with the same bits.
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differs = network.to_bits() ^ address.to_bits();
                differs.leading_zeros() >= self.bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differs = network.to_bits() ^ address.to_bits();
                differs.leading_zeros() >= self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// `10.0.0.0/8`, `10.1.2.3`, `fd00::/16`.
fn network(text: &str) -> Option<Network> {
    let (text, bits) = text.split_once('/').map_or((text, None), |(text, bits)| (text, Some(bits)));
    let address = address(text)?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
    (bits <= all).then_some(Network { address, bits })
}

/// An address; where it is reached, which Java puts behind a `%`, does not count.
fn address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address = text.split_once('%').map_or(text, |(address, _)| address);
        return address.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    // Zeros in front are borne, as in Java.
    let mut parts = text.split('.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        *octet = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some(IpAddr::V4(Ipv4Addr::from(octets)))
}
