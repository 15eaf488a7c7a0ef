//! A certificate is for a server: whether who claims an id may have it.
//!
//! ZooKeeper has no such rule: there any certificate of the authority is any server.

use std::fmt;

use quorate_core::id::ServerId;
use quorate_core::membership::{Member, Membership};

use crate::names::{Named, PeerNames};

/// What a certificate has to say about the server that its holder claims to be (`quorate.ssl.identity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdentityMode {
    /// Nothing: the holder of any trusted certificate may be any server.
    Off,
    /// As [`Member`](Self::Member), but what would be refused is only told: for ensembles whose certificates have never been
    /// looked at.
    Warn,
    /// It has to name a host of that server's line in the membership.
    #[default]
    Member,
    /// It has to carry the alternative name `urn:quorate:server:N`, wherever that server runs.
    Id,
}

impl IdentityMode {
    /// The mode of this name; none if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "warn" => Some(Self::Warn),
            "member" => Some(Self::Member),
            "id" => Some(Self::Id),
            _ => None,
        }
    }
}

/// What is to become of who claims to be a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be that server.
    Allowed,
    /// It may, and its operator should know that the certificate does not say so.
    Told(Mismatch),
    /// It may not.
    Refused(Mismatch),
}

/// A certificate that is not for the server that its holder claims to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Who it claims to be; none if it says that it has no id.
    pub claimed: Option<ServerId>,
    /// What the certificate says.
    pub names: PeerNames,
    /// The members whose hosts these are names of.
    pub of: Vec<ServerId>,
    /// Whether the ids that it carries were what counts.
    pub by_id: bool,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.claimed {
            Some(id) => write!(f, "claims {id}; {}", self.certificate()),
            None => write!(f, "claims no id; {}", self.certificate()),
        }
    }
}

impl Mismatch {
    /// What the certificate says, and whose that is; without who claimed what.
    pub fn certificate(&self) -> impl fmt::Display + '_ {
        Said(self)
    }
}

struct Said<'a>(&'a Mismatch);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(mismatch) = self;
        write!(f, "certificate names {}", mismatch.names)?;
        if mismatch.by_id {
            return f.write_str(", and ids are what counts");
        }
        match &mismatch.of[..] {
            [] => f.write_str(", which are hosts of no member"),
            of => {
                let of: Vec<_> = of.iter().map(ToString::to_string).collect();
                write!(f, ", which are of {}", of.join(", "))
            }
        }
    }
}

/// Whether who holds a certificate with these names may be the server `claimed`; none for an observer that has no id.
///
/// `memberships` are all that this server knows to be in force or on their way. A server that is in none of them is a
/// stranger, who may join or observe as with ZooKeeper, unless its certificate names a host of a member: that is a member's
/// certificate under another id.
pub fn judge(
    claimed: Option<ServerId>,
    names: &PeerNames,
    memberships: &[Membership],
    mode: IdentityMode,
) -> Verdict {
    let members = || memberships.iter().flat_map(Membership::members);
    let claimed = claimed.filter(|id| *id != ServerId::ANONYMOUS_OBSERVER);
    let allowed = match mode {
        IdentityMode::Off => true,
        IdentityMode::Id => match claimed {
            Some(id) => names.ids.contains(&id),
            None => names.ids.is_empty() && !members().any(|member| is_named_itself(names, member)),
        },
        IdentityMode::Warn | IdentityMode::Member => {
            let mut lines = members().filter(|member| claimed == Some(member.id)).peekable();
            match lines.peek() {
                Some(_) => lines.any(|line| hosts(line).any(|host| names.names(host).is_some())),
                None => !members().any(|member| is_named_itself(names, member)),
            }
        }
    };
    if allowed {
        return Verdict::Allowed;
    }
    let mut of: Vec<_> = members()
        .filter(|member| hosts(member).any(|host| names.names(host).is_some()))
        .map(|member| member.id)
        .collect();
    of.sort_unstable();
    of.dedup();
    let mismatch = Mismatch { claimed, names: names.clone(), of, by_id: mode == IdentityMode::Id };
    match mode {
        IdentityMode::Warn => Verdict::Told(mismatch),
        IdentityMode::Off | IdentityMode::Member | IdentityMode::Id => Verdict::Refused(mismatch),
    }
}

/// A wildcard binds no member: a server that is about to join may have it, too.
fn is_named_itself(names: &PeerNames, member: &Member) -> bool {
    hosts(member).any(|host| names.names(host) == Some(Named::Itself))
}

/// The hosts of a member's line.
fn hosts(member: &Member) -> impl Iterator<Item = &str> {
    let addresses = member.addresses.iter();
    addresses.flat_map(|address| [address.quorum.host.as_str(), address.election.host.as_str()])
}
