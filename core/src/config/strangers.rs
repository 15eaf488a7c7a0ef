//! Servers that no configuration names, and what a leader lets them do.
//!
//! ZooKeeper's leader serves any server that comes, and believes what it says of its clients; so does ours unless it is told
//! otherwise, but for a superuser: an observer that no configuration names may serve reads, and decides nothing about the
//! ensemble.
//!
//! Without certificates a stranger may say that it is a member: this is a fence against accidents and other tenants, and no
//! authentication.

use crate::message::Request;

/// What servers may do that are in no configuration of the ensemble (`quorate.strangers`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strangers {
    /// They learn, and what they say of their clients is believed, unless it is that one is a superuser.
    #[default]
    Allow,
    /// They learn, and of what they say of their clients only the addresses are believed.
    IpOnly,
    /// They do not learn: a server has to be added before it joins.
    Refuse,
}

/// A stranger says that its client is a superuser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged;

impl Strangers {
    /// The one of this name; none if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "allow" => Some(Self::Allow),
            "ip-only" => Some(Self::IpOnly),
            "refuse" => Some(Self::Refuse),
            _ => None,
        }
    }

    /// Whether a stranger is let in as a learner.
    pub const fn may_learn(self) -> bool {
        match self {
            Self::Allow | Self::IpOnly => true,
            Self::Refuse => false,
        }
    }

    /// Leaves in a stranger's request the identities that are believed.
    ///
    /// # Errors
    ///
    /// [`Forged`] if one is a superuser's; nothing of the request counts then.
    pub fn look_at(self, request: &mut Request) -> Result<(), Forged> {
        let Some(identities) = &mut request.identities else { return Ok(()) };
        if identities.iter().any(|identity| identity.scheme == SUPER) {
            return Err(Forged);
        }
        if self != Self::Allow {
            identities.retain(|identity| identity.scheme == IP);
        }
        Ok(())
    }
}

/// The scheme of an identity to which all is allowed (ZooKeeper's `ZooDefs`, `PrepRequestProcessor.checkACL`).
const SUPER: &str = "super";
/// The scheme of a client's address.
const IP: &str = "ip";

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use bytes::Bytes;

    use super::*;
    use crate::message::Identity;
    use crate::txn::RequestId;

    fn request(schemes: Option<&[&str]>) -> Request {
        let identity = |scheme: &&str| Identity { scheme: scheme.to_string(), id: "x".to_string() };
        let identities = schemes.map(|schemes| schemes.iter().map(identity).collect());
        let id = RequestId { client: 1, cxid: 1 };
        Request { id, op: 1, body: Bytes::new(), identities }
    }

    fn left(rule: Strangers, schemes: Option<&[&str]>) -> Result<Option<Vec<Identity>>, Forged> {
        let mut request = request(schemes);
        rule.look_at(&mut request).map(|()| request.identities)
    }

    #[test]
    fn a_superuser_of_a_stranger_is_never_believed() {
        for rule in [Strangers::Allow, Strangers::IpOnly, Strangers::Refuse] {
            for schemes in [&["super"][..], &["ip", "super"], &["super", "digest"]] {
                assert_eq!(left(rule, Some(schemes)), Err(Forged), "{rule:?} {schemes:?}");
            }
            assert_eq!(left(rule, None), Ok(None));
        }
    }

    #[test]
    fn what_else_a_stranger_says_is_believed_as_far_as_it_is_allowed() {
        let said = ["ip", "digest", "sasl", "x509", "ip", "Super", "super "];
        let all = request(Some(&said)).identities;
        assert_eq!(left(Strangers::Allow, Some(&said)), Ok(all));
        let addresses = request(Some(&["ip", "ip"])).identities;
        assert_eq!(left(Strangers::IpOnly, Some(&said)), Ok(addresses));
    }
}
