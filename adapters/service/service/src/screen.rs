//! Writes that a server must not see: they are refused where the client is connected.
//!
//! | request | why | answer |
//! |---|---|---|
//! | a create with flags that are not of its operation | servers of ZooKeeper disagree on what it creates, or end | -8 |
//! | a TTL that is none | every server of ZooKeeper ends that applies it | -8 |
//! | a path of more than 2,000 components | servers of ZooKeeper write snapshots by recursion | -8 |
//! | a create, create2 with the flags of a container | every server makes a persistent node of it, but a leader of ZooKeeper counts a container into its digest; some clients ask so for the parents of their recipes | what it makes, with the flags of a persistent node |
//! | a multi that creates a node without an access list | a leader of ZooKeeper 3.9 proposes its refusal under the number of the transaction before, and its followers end | what it makes, with an empty list, which is refused as well |
//! | one that grows beyond what a transaction may be, by the identities that an access list stands for | servers of ZooKeeper drop the leader, and the next one | -5 |
//! | quota limits or stats that are no quota | servers of ZooKeeper end at the next change below | -8 |

use alloc::collections::BTreeSet;

use bytes::Bytes;
use quorate_core::message::Identity;
use quorate_znode::access;

use crate::wire::{Request, code, op};

/// What is thought of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screened {
    /// It may go to the leader.
    Sound,
    /// It is refused, for this reason.
    Poison(i32),
}

/// Judges a write. In a multi, flags and TTLs are the leader's to judge: an element that is refused there refuses all.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others change nothing, or name no node")]
pub(crate) fn screen(request: &Request) -> Screened {
    let sound = match request {
        Request::Create { op, path, data, flags, ttl, .. } => {
            has_own_flags(*op, *flags, *ttl) && is_sound(path, Some(data.as_ref()))
        }
        Request::SetData { path, data, .. } => is_sound(path, Some(data.as_ref())),
        Request::Delete { path, .. } | Request::SetAcl { path, .. } => is_sound(path, None),
        Request::Multi(elements) => elements.iter().all(|element| match element {
            Request::Create { path, data, .. } | Request::SetData { path, data, .. } => {
                is_sound(path, Some(data.as_ref()))
            }
            _ => true,
        }),
        _ => true,
    };
    if sound { Screened::Sound } else { Screened::Poison(code::BAD_ARGUMENTS) }
}

/// Whether an operation knows these flags.
const fn has_own_flags(op: i32, flags: i32, ttl: Option<i64>) -> bool {
    match op {
        op::CREATE_CONTAINER => flags == 4,
        op::CREATE_TTL => matches!(flags, 5 | 6) && ttl.is_some(),
        _ => matches!(flags, 0..=CONTAINER),
    }
}

/// What a leader is asked instead, if it is not asked this as it came.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others are asked as they came")]
pub(crate) fn reworded(request: &Request) -> Option<Request> {
    let lacks_a_list = |element: &Request| matches!(element, Request::Create { acl: None, .. });
    match request {
        Request::Create { op: op::CREATE | op::CREATE2, flags: CONTAINER, .. } => {
            let mut request = request.clone();
            if let Request::Create { flags, .. } = &mut request {
                *flags = 0;
            }
            Some(request)
        }
        Request::Multi(elements) if elements.iter().any(lacks_a_list) => {
            let mut elements = elements.clone();
            for element in &mut elements {
                if let Request::Create { acl, .. } = element {
                    acl.get_or_insert_default();
                }
            }
            Some(Request::Multi(elements))
        }
        _ => None,
    }
}

/// The longest body that the transaction of a write can have, in bytes; `bytes` is the length of the request's. It grows by
/// the identities of its client, wherever an access list says `auth`. A leader counts more exactly, but not every leader does.
pub(crate) fn longest_body(request: &Request, bytes: usize, identities: &[Identity]) -> usize {
    let elements = if let Request::Multi(elements) = request {
        elements.as_slice()
    } else {
        core::slice::from_ref(request)
    };
    let lists = elements.iter().map(expansions).fold(0, usize::saturating_add);
    let each = if lists == 0 { 0 } else { entries(identities) };
    bytes.saturating_add(elements.len() * GROWTH).saturating_add(lists.saturating_mul(each))
}

/// How often a request has the identities of its client written out; equal entries are one.
#[allow(clippy::wildcard_enum_match_arm, reason = "the others have no access list")]
fn expansions(request: &Request) -> usize {
    match request {
        Request::Create { acl: Some(acl), .. } | Request::SetAcl { acl: Some(acl), .. } => {
            let perms =
                acl.iter().filter(|entry| &*entry.scheme == "auth").map(|entry| entry.perms);
            perms.collect::<BTreeSet<_>>().len()
        }
        _ => 0,
    }
}

/// How many bytes the identities take that `auth` stands for, each with its permissions.
fn entries(identities: &[Identity]) -> usize {
    let proved = identities.iter().filter(|own| access::is_proved(&own.scheme));
    proved.map(|own| 12 + own.scheme.len() + own.id.len()).sum()
}

/// By what a request, or an element, grows at most beside that: the number of a sequential node, the parent's version, and
/// the digest of the tree.
const GROWTH: usize = 32;

/// The flags of a container.
const CONTAINER: i32 = 4;

/// Whether a path is not too deep, and no quota is set that is none.
fn is_sound(path: &str, data: Option<Option<&Bytes>>) -> bool {
    if path.bytes().filter(|byte| *byte == b'/').count() > COMPONENTS_MAX {
        return false;
    }
    data.is_none_or(|data| !quorate_znode::is_poisoned_quota(path, data.map(|data| &data[..])))
}

/// As deep as a path may be.
const COMPONENTS_MAX: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use quorate_znode::acl::Acl;

    fn create(op: i32, flags: i32, ttl: Option<i64>) -> Screened {
        let path = "/a".to_string();
        screen(&Request::Create { op, path, data: None, acl: None, flags, ttl })
    }

    #[test]
    fn flags_are_those_of_the_operation() {
        let refused = Screened::Poison(-8);
        for flags in -1..8 {
            let plain = if (0..=4).contains(&flags) { Screened::Sound } else { refused };
            assert_eq!(create(op::CREATE, flags, None), plain);
            assert_eq!(create(op::CREATE2, flags, None), plain);
            let container = if flags == 4 { Screened::Sound } else { refused };
            assert_eq!(create(op::CREATE_CONTAINER, flags, None), container);
            let ttl = if matches!(flags, 5 | 6) { Screened::Sound } else { refused };
            assert_eq!(create(op::CREATE_TTL, flags, Some(1000)), ttl);
        }
    }

    #[test]
    fn a_quota_that_is_none_is_refused() {
        let set = |path: &str, data: Option<&'static [u8]>| {
            let data = data.map(Bytes::from_static);
            screen(&Request::SetData { path: path.into(), data, version: -1 })
        };
        let stats = "/zookeeper/quota/a/zookeeper_stats";
        for fine in ["count=3,bytes=-1", "count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=3"] {
            let request = Request::SetData {
                path: stats.into(),
                data: Some(Bytes::from_static(fine.as_bytes())),
                version: -1,
            };
            assert_eq!(screen(&request), Screened::Sound, "{fine}");
        }
        for none in [None, Some(&b"x"[..]), Some(b"count=1,"), Some(b"count=x"), Some(b"\xff")] {
            assert_eq!(set(stats, none), Screened::Poison(-8), "{none:?}");
            for other in ["/a", "/zookeeper/quota/a/my_zookeeper_stats", "/zookeeper/quota/a"] {
                assert_eq!(set(other, none), Screened::Sound, "{other}");
            }
        }
    }

    #[test]
    fn a_path_is_not_deeper_than_servers_can_write() {
        let deep =
            |components: usize| Request::Delete { path: "/a".repeat(components), version: 0 };
        assert_eq!(screen(&deep(2000)), Screened::Sound);
        assert_eq!(screen(&deep(2001)), Screened::Poison(-8));
    }

    #[test]
    fn a_request_grows_by_its_clients_identities_wherever_a_list_says_so() {
        let own = |scheme: &str, id: &str| Identity { scheme: scheme.into(), id: id.into() };
        let identities = [own("ip", "127.0.0.1"), own("digest", "bob:x"), own("digest", "eve:xy")];
        let each = 12 + 6 + 5 + 12 + 6 + 6;
        let entry = |perms, scheme: &str| Acl { perms, scheme: scheme.into(), id: "".into() };
        let with = |acl| Request::SetAcl { path: "/a".into(), acl, version: 0 };
        let longest = |request: &Request| longest_body(request, 1000, &identities);
        for (acl, times) in [
            (None, 0),
            (Some(vec![entry(1, "world")]), 0),
            (Some(vec![entry(1, "auth"), entry(1, "world")]), 1),
            (Some(vec![entry(1, "auth"), entry(1, "auth"), entry(2, "auth")]), 2),
        ] {
            let bytes = 1000 + GROWTH + times * each;
            assert_eq!(longest(&with(acl.clone())), bytes, "{acl:?}");
            let create = |acl| {
                let (op, path) = (op::CREATE, "/a".to_string());
                Request::Create { op, path, data: None, acl, flags: 0, ttl: None }
            };
            let multi = Request::Multi(vec![create(acl.clone()), create(acl.clone())]);
            assert_eq!(longest(&multi), 1000 + 2 * GROWTH + 2 * times * each, "{acl:?}");
        }
    }

    #[test]
    fn a_multi_names_an_access_list_for_each_node_that_it_creates() {
        let create = |acl| {
            let (op, path) = (op::CREATE, "/a".to_string());
            Request::Create { op, path, data: None, acl, flags: 4, ttl: None }
        };
        let delete = || Request::Delete { path: "/a".to_string(), version: 0 };
        let open = || Some(vec![Acl::world(31)]);
        assert_eq!(reworded(&Request::Multi(vec![create(open()), delete()])), None);
        let without = Request::Multi(vec![create(open()), create(None), delete()]);
        let with = Request::Multi(vec![create(open()), create(Some(vec![])), delete()]);
        assert_eq!(reworded(&without), Some(with));
    }
}
