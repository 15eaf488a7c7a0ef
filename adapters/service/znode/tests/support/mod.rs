//! Makes transactions, and takes snapshots apart without the code under test.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;

use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::{Applied, Tree, kind};

/// A body under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body(pub(crate) Vec<u8>);

impl Body {
    pub(crate) fn int(mut self, int: i32) -> Self {
        self.0.extend(int.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, long: i64) -> Self {
        self.0.extend(long.to_be_bytes());
        self
    }

    pub(crate) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(crate) fn buffer(self, bytes: impl AsRef<[u8]>) -> Self {
        let mut body = self.int(i32::try_from(bytes.as_ref().len()).unwrap());
        body.0.extend(bytes.as_ref());
        body
    }

    pub(crate) fn data(self, data: Option<&[u8]>) -> Self {
        match data {
            Some(data) => self.buffer(data),
            None => self.int(-1),
        }
    }

    pub(crate) fn acl(self, acl: &[Acl]) -> Self {
        acl.iter().fold(self.int(i32::try_from(acl.len()).unwrap()), |body, acl| {
            body.int(acl.perms).buffer(acl.scheme.as_bytes()).buffer(acl.id.as_bytes())
        })
    }
}

pub(crate) fn open() -> Vec<Acl> {
    vec![Acl::world(31)]
}

/// The body of a create or create2.
pub(crate) fn create(path: &str, data: Option<&[u8]>, ephemeral: bool, cversion: i32) -> Body {
    create_as(path, data, &open(), ephemeral, cversion)
}

pub(crate) fn create_as(
    path: &str,
    data: Option<&[u8]>,
    acl: &[Acl],
    ephemeral: bool,
    cversion: i32,
) -> Body {
    Body::default().buffer(path).data(data).acl(acl).byte(u8::from(ephemeral)).int(cversion)
}

pub(crate) fn create_container(path: &str, cversion: i32) -> Body {
    Body::default().buffer(path).data(Some(b"")).acl(&open()).int(cversion)
}

pub(crate) fn create_ttl(path: &str, cversion: i32, ttl: i64) -> Body {
    create_container(path, cversion).long(ttl)
}

pub(crate) fn delete(path: &str) -> Body {
    Body::default().buffer(path)
}

pub(crate) fn set_data(path: &str, data: Option<&[u8]>, version: i32) -> Body {
    Body::default().buffer(path).data(data).int(version)
}

pub(crate) fn set_acl(path: &str, acl: &[Acl], version: i32) -> Body {
    Body::default().buffer(path).acl(acl).int(version)
}

pub(crate) fn multi(elements: &[(i32, Body)]) -> Body {
    let count = i32::try_from(elements.len()).unwrap();
    elements.iter().fold(Body::default().int(count), |body, (kind, element)| {
        body.int(*kind).buffer(&element.0)
    })
}

pub(crate) fn close_session(paths: &[&str]) -> Body {
    let count = i32::try_from(paths.len()).unwrap();
    paths.iter().fold(Body::default().int(count), |body, path| body.buffer(path))
}

pub(crate) const SESSION: i64 = 0x0100_0000_0000_0007;

/// At zxid `zxid` and time `1000 + zxid`.
pub(crate) fn txn(zxid: i64, session: i64, kind: i32, body: Body) -> Txn {
    let header = TxnHeader { client: session, cxid: 1, time: 1_000 + zxid, kind };
    Txn { zxid: Zxid(zxid), header, body: body.0.into() }
}

/// Applies with the zxid after the last.
pub(crate) fn apply(tree: &mut Tree, kind: i32, body: Body) -> Applied {
    let zxid = tree.last_zxid().0 + 1;
    tree.apply(&txn(zxid, SESSION, kind, body)).unwrap()
}

pub(crate) fn make(tree: &mut Tree, path: &str) {
    apply(tree, kind::CREATE, create(path, Some(b""), false, -1));
}

/// The bytes of a snapshot.
pub(crate) fn bytes(tree: &Tree) -> Vec<u8> {
    let mut bytes = Vec::new();
    tree.write_snapshot(&mut bytes).unwrap();
    bytes
}

/// A snapshot taken apart: what stands where does not matter, only what is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) sessions: BTreeMap<i64, i32>,
    pub(crate) lists: BTreeMap<i64, Vec<u8>>,
    /// The bytes behind the path.
    pub(crate) nodes: BTreeMap<String, Vec<u8>>,
    /// How long the body is.
    pub(crate) length: usize,
}

impl Parts {
    pub(crate) fn of(body: &[u8]) -> Self {
        let mut rest = body;
        let (mut sessions, mut lists, mut nodes) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for _ in 0..int(&mut rest) {
            assert_eq!(sessions.insert(long(&mut rest), int(&mut rest)), None);
        }
        for _ in 0..int(&mut rest) {
            let key = long(&mut rest);
            let begin = rest;
            for _ in 0..int(&mut rest) {
                int(&mut rest);
                buffer(&mut rest);
                buffer(&mut rest);
            }
            assert_eq!(lists.insert(key, begin[..begin.len() - rest.len()].to_vec()), None);
        }
        loop {
            let path = String::from_utf8(buffer(&mut rest).to_vec()).unwrap();
            if path == "/" {
                break;
            }
            let begin = rest;
            buffer(&mut rest);
            rest = &rest[68..];
            assert_eq!(nodes.insert(path, begin[..begin.len() - rest.len()].to_vec()), None);
        }
        Self { sessions, lists, nodes, length: body.len() - rest.len() }
    }

    /// Every node with the bytes of its access list instead of its key.
    pub(crate) fn nodes_with_lists(&self) -> BTreeMap<&str, (Vec<u8>, Option<&[u8]>)> {
        self.nodes
            .iter()
            .map(|(path, node)| {
                let at = node.len() - 68;
                let key = i64::from_be_bytes(node[at..at + 8].try_into().unwrap());
                let list = self.lists.get(&key).map(Vec::as_slice);
                (path.as_str(), ([&node[..at], &node[at + 8..]].concat(), list))
            })
            .collect()
    }
}

fn int(rest: &mut &[u8]) -> i32 {
    let (int, after) = rest.split_first_chunk().unwrap();
    *rest = after;
    i32::from_be_bytes(*int)
}

fn long(rest: &mut &[u8]) -> i64 {
    let (long, after) = rest.split_first_chunk().unwrap();
    *rest = after;
    i64::from_be_bytes(*long)
}

fn buffer<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::try_from(int(rest)).unwrap_or(0);
    let (buffer, after) = rest.split_at(length);
    *rest = after;
    buffer
}

/// The digest by its definition, bit by bit.
pub(crate) fn digest(tree: &Tree) -> u64 {
    let mut sum = 0_u64;
    tree.snapshot()
        .walk(|path, node| {
            if !path.starts_with("/zookeeper/") {
                let stat = node.stored_stat();
                let mut bytes = path.as_bytes().to_vec();
                bytes.extend(node.data().into_iter().flatten());
                for long in [stat.czxid.0, stat.mzxid.0, stat.pzxid.0, stat.ctime, stat.mtime] {
                    bytes.extend(long.to_be_bytes());
                }
                for int in [stat.version, stat.cversion, stat.aversion] {
                    bytes.extend(int.to_be_bytes());
                }
                bytes.extend(stat.owner.to_be_bytes());
                sum = sum.wrapping_add(u64::from(crc(&bytes)));
            }
            Ok::<_, ()>(())
        })
        .unwrap();
    sum
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

/// Small, seeded, the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    pub(crate) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}
