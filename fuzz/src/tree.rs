//! Arbitrary transactions on a data tree: every server that applies them has the same, whether it began
//! with nothing or with a snapshot of any moment; and a snapshot stays as it was while the tree goes on.

// The bodies of transactions as the tree's own tests write them.
#[allow(clippy::unwrap_used, reason = "made for tests")]
#[path = "../../adapters/service/znode/tests/support/mod.rs"]
mod support;

use arbitrary::{Arbitrary, Unstructured};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::{Snapshot, Tree, kind};
use support::Body;

use crate::snapshot::written;

/// What happens to the tree.
#[derive(Arbitrary, Debug)]
enum Happens {
    Change {
        session: u8,
        change: Change,
        digest: Option<i64>,
    },
    Several {
        session: u8,
        changes: Vec<Change>,
    },
    /// A body that may be none.
    Any {
        session: u8,
        kind: u8,
        body: Vec<u8>,
    },
    Begin {
        session: u8,
    },
    End {
        session: u8,
        paths: Option<Vec<Place>>,
    },
    Snapshot,
}

#[derive(Arbitrary, Debug)]
enum Change {
    Create { place: Place, how: u8, data: Option<u8>, acl: u8, ephemeral: bool, cversion: i8 },
    Delete { place: Place, container: bool },
    Data { place: Place, data: Option<u8>, version: i8 },
    Acl { place: Place, acl: u8, version: i8 },
    Check { place: Place },
    Fails(i8),
}

/// Few paths, so that they meet.
#[derive(Arbitrary, Debug)]
enum Place {
    Root,
    Top(u8),
    Below(u8, u8),
    Deep(u8, u8, u8),
    Quota { of: u8, stats: bool },
    Any(String),
}

const NAMES: [&str; 4] = ["a", "b", "zookeeper", "ü"];

fn name(which: u8) -> &'static str {
    NAMES[usize::from(which) % NAMES.len()]
}

impl Place {
    fn path(&self) -> String {
        match self {
            Self::Root => "/".to_owned(),
            Self::Top(a) => format!("/{}", name(*a)),
            Self::Below(a, b) => format!("/{}/{}", name(*a), name(*b)),
            Self::Deep(a, b, c) => format!("/{}/{}/{}", name(*a), name(*b), name(*c)),
            Self::Quota { of, stats } => {
                let end = if *stats { "zookeeper_stats" } else { "zookeeper_limits" };
                format!("/zookeeper/quota/{}/{end}", name(*of))
            }
            Self::Any(path) => path.clone(),
        }
    }
}

fn acl(which: u8) -> Vec<Acl> {
    let id = Acl { perms: 1, scheme: "ip".into(), id: name(which).into() };
    [Vec::new(), vec![Acl::world(31)], vec![id.clone()], vec![Acl::world(1), id]]
        .into_iter()
        .nth(usize::from(which % 4))
        .unwrap_or_default()
}

impl Change {
    fn txn(&self) -> (i32, Body) {
        let data = |data: &Option<u8>| data.map(|many| vec![many; usize::from(many)]);
        match self {
            Self::Create { place, how, data: bytes, acl: list, ephemeral, cversion } => {
                let body = Body::default().buffer(place.path());
                let body = body.data(data(bytes).as_deref()).acl(&acl(*list));
                let cversion = i32::from(*cversion);
                match how % 4 {
                    0 => (kind::CREATE, body.byte(u8::from(*ephemeral)).int(cversion)),
                    1 => (kind::CREATE2, body.byte(u8::from(*ephemeral)).int(cversion)),
                    2 => (kind::CREATE_CONTAINER, body.int(cversion)),
                    _ => (kind::CREATE_TTL, body.int(cversion).long(i64::from(*how) - 3)),
                }
            }
            Self::Delete { place, container } => {
                let kind = if *container { kind::DELETE_CONTAINER } else { kind::DELETE };
                (kind, Body::default().buffer(place.path()))
            }
            Self::Data { place, data: bytes, version } => {
                let body = Body::default().buffer(place.path()).data(data(bytes).as_deref());
                (kind::SET_DATA, body.int(i32::from(*version)))
            }
            Self::Acl { place, acl: list, version } => {
                let body = Body::default().buffer(place.path()).acl(&acl(*list));
                (kind::SET_ACL, body.int(i32::from(*version)))
            }
            Self::Check { place } => (kind::CHECK, Body::default().buffer(place.path()).int(0)),
            Self::Fails(code) => (kind::ERROR, Body::default().int(i32::from(*code))),
        }
    }
}

const KINDS: [i32; 16] = [
    kind::CREATE,
    kind::DELETE,
    kind::SET_DATA,
    kind::SET_ACL,
    kind::CHECK,
    kind::MULTI,
    kind::CREATE2,
    kind::RECONFIG,
    kind::CREATE_CONTAINER,
    kind::DELETE_CONTAINER,
    kind::CREATE_TTL,
    kind::CREATE_SESSION,
    kind::CLOSE_SESSION,
    kind::ERROR,
    99,
    0,
];

impl Happens {
    fn txn(&self) -> Option<(u8, i32, Body)> {
        Some(match self {
            Self::Change { session, change, digest } => {
                let (kind, body) = change.txn();
                let body = match digest {
                    Some(digest) => body.int(2).long(*digest),
                    None => body,
                };
                (*session, kind, body)
            }
            Self::Several { session, changes } => {
                let elements: Vec<_> = changes.iter().take(8).map(Change::txn).collect();
                (*session, kind::MULTI, support::multi(&elements))
            }
            Self::Any { session, kind, body } => {
                (*session, KINDS[usize::from(*kind) % KINDS.len()], Body(body.clone()))
            }
            Self::Begin { session } => (*session, kind::CREATE_SESSION, Body::default().int(9)),
            Self::End { session, paths } => {
                let paths = paths.as_ref().map(|all| all.iter().map(Place::path));
                let paths: Vec<String> = paths.into_iter().flatten().take(4).collect();
                let paths: Vec<_> = paths.iter().map(String::as_str).collect();
                (*session, kind::CLOSE_SESSION, support::close_session(&paths))
            }
            Self::Snapshot => return None,
        })
    }
}

/// A moment: the snapshot that was taken, the bytes that it had, what came after.
struct Moment {
    snapshot: Snapshot,
    bytes: Vec<u8>,
    next: usize,
}

/// Applies what these bytes say.
pub fn feed(data: &[u8]) {
    let mut from = Unstructured::new(data);
    let (mut tree, mut txns, mut moments) = (Tree::new(), Vec::new(), Vec::new());
    while let (Ok(happens), true) = (Happens::arbitrary(&mut from), txns.len() < 64) {
        let Some((session, kind, Body(body))) = happens.txn() else {
            let (snapshot, bytes) = (tree.snapshot(), written(&tree));
            moments.push(Moment { snapshot, bytes, next: txns.len() });
            if moments.len() == 4 || from.is_empty() {
                break;
            }
            continue;
        };
        let zxid = Zxid(tree.last_zxid().0 + 1);
        let session = 0x0100_0000_0000_0000 + i64::from(session % 4);
        let header = TxnHeader { client: session, cxid: 1, time: 1_000 + zxid.0, kind };
        let txn = Txn { zxid, header, body: body.into() };
        drop(tree.apply(&txn));
        txns.push(txn);
        if from.is_empty() {
            break;
        }
    }
    assert_eq!(tree.digest(), support::digest(&tree), "by its definition");
    let bytes = support::Parts::of(&written(&tree));
    for Moment { snapshot, bytes: then, next } in moments {
        let mut now = Vec::new();
        assert!(snapshot.write(&mut now).is_ok(), "a vector takes everything");
        assert!(now == then, "the snapshot has changed");
        let mut again = Tree::restore(&now[..], snapshot.zxid()).expect("our own bytes");
        assert_eq!(again.digest(), snapshot.digest());
        for txn in &txns[next..] {
            drop(again.apply(txn));
        }
        assert_eq!(again.digest(), tree.digest(), "from a snapshot of {}", snapshot.zxid());
        let parts = support::Parts::of(&written(&again));
        assert_eq!(parts.nodes_with_lists(), bytes.nodes_with_lists());
        assert_eq!(parts.sessions, bytes.sessions);
    }
}
