//! Who a client is and what it may do: access lists, evaluated apart from the tree and the service.

use quorate_znode::acl::{Acl, Acls};

/// To read a node, as access lists say it.
pub(crate) const READ: i32 = 1;
/// To set its data.
pub(crate) const WRITE: i32 = 2;
/// To create children of it.
pub(crate) const CREATE: i32 = 4;
/// To delete children of it.
pub(crate) const DELETE: i32 = 8;
/// To set its access list.
pub(crate) const ADMIN: i32 = 16;

/// The identity of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// None but its address.
    #[default]
    Anyone,
    Bob,
    Noc,
}

impl Who {
    /// What it proves itself with, under the scheme `digest`.
    pub(crate) const fn proof(self) -> Option<&'static str> {
        match self {
            Self::Anyone => None,
            Self::Bob => Some("bob:secret"),
            Self::Noc => Some("noc"),
        }
    }

    /// What that makes of it, as servers of ZooKeeper have it.
    pub(crate) const fn id(self) -> Option<&'static str> {
        match self {
            Self::Anyone => None,
            Self::Bob => Some("bob:fyVmFCwVbTJYrznoSu1koqYEYF0="),
            Self::Noc => Some("noc:RIL532VZgxS+IjUEHfiCxyMdHqk="),
        }
    }

    /// A list that lets this one do everything, and others nothing.
    pub(crate) fn alone(self) -> Vec<Acl> {
        match self.id() {
            Some(id) => vec![Acl { perms: 31, scheme: "digest".into(), id: id.into() }],
            None => vec![Acl::world(31)],
        }
    }

    /// Whether a node with this list permits it any of these; one whose list is missing permits nothing.
    pub(crate) fn may(self, list: Option<&Acls>, permission: i32) -> bool {
        let matches = |acl: &Acl| match &*acl.scheme {
            "world" => true,
            "digest" => self.id() == Some(&*acl.id),
            _ => false,
        };
        list.is_some_and(|list| {
            let mut permits = list.iter().filter(|acl| acl.perms & permission != 0);
            list.is_empty() || permits.any(matches)
        })
    }
}

/// A list as clients see it that may not administer the node.
pub(crate) fn masked(list: &[Acl]) -> Vec<Acl> {
    let mask = |acl: &Acl| {
        let user = acl.id.split(':').next().unwrap_or_default();
        let id = if &*acl.scheme == "digest" { format!("{user}:x").into() } else { acl.id.clone() };
        Acl { id, ..acl.clone() }
    };
    list.iter().map(mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_permits_those_whom_it_names_and_no_others() {
        let secret: Acls = Who::Bob.alone().into();
        let both: Acls = [Who::Bob.alone(), vec![Acl::world(READ)]].concat().into();
        assert!(Who::Bob.may(Some(&secret), WRITE) && Who::Bob.may(Some(&both), ADMIN));
        for other in [Who::Anyone, Who::Noc] {
            assert!(!other.may(Some(&secret), READ) && !other.may(None, READ));
            assert!(other.may(Some(&both), READ) && !other.may(Some(&both), CREATE | DELETE));
        }
        assert_eq!(&*masked(&both)[0].id, "bob:x");
    }
}
