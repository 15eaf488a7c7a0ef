//! What ends servers of ZooKeeper, of 3.8.0 and of some others, when it comes to them: as a request or as a transaction.
//!
//! | | what comes of it there |
//! |---|---|
//! | a request that cannot be read | since 3.9.0 a transaction with the number of the one before it (`PrepRequestProcessor`) |
//! | a check outside a multi | a transaction that no server can read (`SerializeUtils.deserializeTxn`), before 3.8.5 and 3.9.3 |
//! | deleteContainer | done, whoever asks |
//! | createTTL with flags of another | a TTL that is none: `EphemeralType.TTL.toEphemeralOwner` throws in each server that applies it |
//! | a create with flags that are not of its operation | another node than the one that the leader counts |
//! | text that is none in a quota | `StatsTrack` throws at the next change below |
//! | a path of more than 2,000 names | `DataTree.serializeNode` goes down by recursion |

use bytes::{BufMut, Bytes, BytesMut};
use quorate_core::message::Request as Asked;
use quorate_core::rng::Rng;
use quorate_core::txn::{RequestId, Txn};
use quorate_service::wire::{Reader, Request, op, put_acl, put_data, put_text};
use quorate_znode::acl::Acl;
use quorate_znode::{Tree, kind};

/// A create with flags that are not of its operation.
pub(crate) const FLAGS: &str = "foreign flags";
/// As many names as a path may have.
const NAMES_MAX: usize = 2_000;
/// A node that only those put under a quota who mean harm, and the nodes by which they do.
const UNDER_QUOTA: &str = "/b";
const QUOTA: &str = "/zookeeper/quota/b";
const LIMITS: &str = "/zookeeper/quota/b/zookeeper_limits";
const STATS: &str = "/zookeeper/quota/b/zookeeper_stats";

/// Why servers of ZooKeeper must not be asked for this; none if they may.
pub(crate) fn of_request(asked: &Asked) -> Option<&'static str> {
    match asked.op {
        op::CHECK => Some("a check outside a multi"),
        op::DELETE_CONTAINER => Some("a container's deletion"),
        op::SYNC | op::RECONFIG | op::CREATE_SESSION | op::CLOSE_SESSION => None,
        _ => match Request::decode(asked.op, &asked.body) {
            Ok(Some(request)) => of_write(&request, false),
            Ok(None) | Err(_) => Some("what cannot be read"),
        },
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the others do no harm")]
fn of_write(request: &Request, in_multi: bool) -> Option<&'static str> {
    match request {
        Request::Multi(elements) => elements.iter().find_map(|element| of_write(element, true)),
        Request::Create { op, path, data, flags, .. } => {
            let own = match *op {
                op::CREATE_CONTAINER => *flags == 4,
                op::CREATE_TTL => matches!(flags, 5 | 6),
                _ => matches!(flags, 0..=3),
            };
            if own || in_multi { of_node(path, Some(data.as_ref())) } else { Some(FLAGS) }
        }
        Request::SetData { path, data, .. } => of_node(path, Some(data.as_ref())),
        Request::Delete { path, .. } | Request::SetAcl { path, .. } => of_node(path, None),
        _ => None,
    }
}

/// Whether a create or create2 has the flags of a container.
pub(crate) fn is_plain(asked: &Asked) -> bool {
    let decoded = Request::decode(asked.op, &asked.body);
    let plain = |op: i32| matches!(op, op::CREATE | op::CREATE2);
    matches!(decoded, Ok(Some(Request::Create { op, flags: 4, .. })) if plain(op))
}

fn of_node(path: &str, data: Option<Option<&Bytes>>) -> Option<&'static str> {
    if path.bytes().filter(|byte| *byte == b'/').count() > NAMES_MAX {
        return Some("a path of too many names");
    }
    let counts = path.starts_with("/zookeeper/quota/")
        && ["/zookeeper_limits", "/zookeeper_stats"].iter().any(|end| path.ends_with(end));
    let none = |data: Option<&Bytes>| data.is_none_or(|data| !is_quota(data));
    data.filter(|data| counts && none(*data)).map(|_| "text of a quota that is none")
}

/// `StatsTrack.parse`: pairs of a name and a number.
fn is_quota(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let pair = |pair: &str| {
        let (_, value) = pair.trim_end_matches('=').split_once('=')?;
        value.parse::<i64>().ok()
    };
    text.split([',', ';']).all(|one| pair(one).is_some())
}

/// Why no server of ZooKeeper can apply a transaction; none if it can.
pub(crate) fn of_txn(txn: &Txn) -> Option<&'static str> {
    match txn.header.kind {
        kind::CHECK => Some("a check outside a multi"),
        kind::CREATE_TTL => {
            let (_, _, ttl) = created(&txn.body, true)?;
            (!(1..1 << 40).contains(&ttl)).then_some("a TTL that is none")
        }
        _ => None,
    }
}

/// Whether a server of ZooKeeper ends when it applies a transaction to this tree: it cannot, or a quota counts what cannot be
/// counted.
pub(crate) fn ends(txn: &Txn, tree: &Tree) -> bool {
    let text = tree.get(STATS).map(|node| node.data().is_some_and(|text| !is_quota(text)));
    let changes = |path: &str| path == UNDER_QUOTA || path.starts_with("/b/");
    let below = || {
        let path = Reader::new(&txn.body).path().unwrap_or_default();
        matches!(txn.header.kind, kind::CREATE | kind::CREATE2 | kind::DELETE | kind::SET_DATA)
            && changes(&path)
    };
    of_txn(txn).is_some() || text == Some(true) && below()
}

/// Why a transaction ends servers of ZooKeeper, then or at a later change; none if it does not.
pub(crate) fn harms(txn: &Txn) -> Option<&'static str> {
    let node = || {
        let mut reader = Reader::new(&txn.body);
        match txn.header.kind {
            kind::SET_DATA => Some((reader.path().ok()?, reader.data().ok()?)),
            kind::CREATE | kind::CREATE2 | kind::CREATE_CONTAINER | kind::CREATE_TTL => {
                created(&txn.body, false).map(|(path, data, _)| (path, data))
            }
            _ => None,
        }
    };
    of_txn(txn).or_else(|| node().and_then(|(path, data)| of_node(&path, Some(data.as_ref()))))
}

fn created(body: &Bytes, ttl: bool) -> Option<(String, Option<Bytes>, i64)> {
    let mut reader = Reader::new(body);
    let (path, data) = (reader.path().ok()?, reader.data().ok()?);
    reader.acl().ok()?;
    let ttl = if ttl { reader.int().and_then(|_| reader.long()).ok()? } else { 0 };
    Some((path, data, ttl))
}

/// Some of it, that a client of a server of ZooKeeper asks for.
pub(crate) fn draw(rng: &mut Rng, session: i64, cxid: i32) -> Asked {
    let acl = [Acl::world(31)];
    let create = |path: &str, data: &[u8], flags: i32| {
        let mut body = BytesMut::new();
        put_text(&mut body, Some(path));
        put_data(&mut body, Some(data));
        put_acl(&mut body, &acl);
        body.put_i32(flags);
        body
    };
    let mut named = BytesMut::new();
    put_text(&mut named, Some("/k"));
    let (op, body) = match rng.below(9) {
        // Its flags are missing.
        0 => (op::CREATE, create("/p", b"p", 0).split_to(20)),
        1 => {
            let mut body = BytesMut::new();
            put_text(&mut body, Some("/zookeeper"));
            body.put_i32(-1);
            (op::CHECK, body)
        }
        2 => (op::DELETE_CONTAINER, named),
        3 => {
            let mut body = create("/p", b"p", 0);
            body.put_i64(-1);
            (op::CREATE_TTL, body)
        }
        4 => (op::CREATE, create("/p", b"p", 9)),
        5 => (op::CREATE2, create("/p", b"p", 4)),
        6 => (op::CREATE, create(&"/p".repeat(NAMES_MAX + 1), b"p", 0)),
        drawn => {
            let text: [&[u8]; 3] = [b"", b"count=-1,bytes=-1", b"count=many"];
            let mut body = BytesMut::new();
            for (path, text) in [QUOTA, LIMITS, STATS].into_iter().zip(text) {
                body.put_i32(op::CREATE);
                body.put_u8(0);
                body.put_i32(-1);
                body.put_slice(&create(path, text, 0));
            }
            body.put_i32(-1);
            body.put_u8(1);
            body.put_i32(-1);
            if drawn == 7 {
                (op::MULTI, body)
            } else {
                let mut body = BytesMut::new();
                put_text(&mut body, Some(STATS));
                put_data(&mut body, Some(b"count=many"));
                body.put_i32(-1);
                (op::SET_DATA, body)
            }
        }
    };
    let id = RequestId { client: session, cxid };
    Asked { id, op, body: body.freeze(), identities: Some(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_drawn_is_known_for_what_it_is() {
        let mut rng = Rng::new(1);
        let mut found = std::collections::BTreeSet::new();
        for cxid in 0..200 {
            let asked = draw(&mut rng, 7, cxid);
            found.insert(of_request(&asked));
        }
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(!found.contains(&None), "{found:?}");
    }

    #[test]
    fn a_quota_is_pairs_of_names_and_numbers() {
        for text in ["count=-1,bytes=-1", "count=1,bytes=5=;byteHardLimit=6"] {
            assert!(is_quota(text.as_bytes()), "{text}");
        }
        for text in ["count", "count=many", "count=1,"] {
            assert!(!is_quota(text.as_bytes()), "{text}");
        }
    }
}
