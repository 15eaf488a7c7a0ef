//! A leader to ask, and what clients ask of it.
#![allow(dead_code, reason = "each test uses its part")]

use crate::support::{Body, SESSION, open};
use quorate_core::id::{LinkId, Origin};
use quorate_core::message::{Identity, Request};
use quorate_core::prepared::{Facts, Prepared};
use quorate_core::txn::{RequestId, Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::acl::Acl;
use quorate_znode::{Applied, DigestCheck, Outcome, Preparer, Rules, Tree, kind};

pub(crate) const EPHEMERAL: i32 = 1;
pub(crate) const SEQUENTIAL: i32 = 2;
pub(crate) const CONTAINER: i32 = 4;
pub(crate) const TTL: i32 = 5;

/// Another session than [`SESSION`].
pub(crate) const OTHER: i64 = 0x0200_0000_0000_0001;

/// The server behind a link.
pub(crate) const fn learner(link: u64) -> Origin {
    Origin::Learner(LinkId(link))
}

pub(crate) fn identities(all: &[(&str, &str)]) -> Option<Vec<Identity>> {
    let own = |(scheme, id): &(&str, &str)| Identity { scheme: (*scheme).into(), id: (*id).into() };
    Some(all.iter().map(own).collect())
}

pub(crate) fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms, scheme: scheme.into(), id: id.into() }
}

pub(crate) fn request(op: i32, body: Body) -> Request {
    let id = RequestId { client: SESSION, cxid: 1 };
    Request { id, op, body: body.0.into(), identities: identities(&[("ip", "127.0.0.1")]) }
}

/// By the program that embeds a server.
pub(crate) fn by_program(request: Request) -> Request {
    Request { identities: None, ..request }
}

pub(crate) fn of(session: i64, request: Request) -> Request {
    Request { id: RequestId { client: session, ..request.id }, ..request }
}

pub(crate) fn create_body(path: &str, flags: i32, acl: &[Acl]) -> Body {
    Body::default().buffer(path).data(Some(b"x")).acl(acl).int(flags)
}

pub(crate) fn create_with(path: &str, flags: i32, acl: &[Acl]) -> Request {
    request(kind::CREATE, create_body(path, flags, acl))
}

pub(crate) fn create(path: &str, flags: i32) -> Request {
    create_with(path, flags, &open())
}

pub(crate) fn create_container(path: &str) -> Request {
    request(kind::CREATE_CONTAINER, create_body(path, CONTAINER, &open()))
}

pub(crate) fn create_ttl(path: &str, flags: i32, ttl: i64) -> Request {
    request(kind::CREATE_TTL, create_body(path, flags, &open()).long(ttl))
}

pub(crate) fn create_text(path: &str, text: Option<&[u8]>) -> Request {
    let body = Body::default().buffer(path).data(text).acl(&open());
    request(kind::CREATE, body.int(0))
}

pub(crate) fn version_body(path: &str, version: i32) -> Body {
    Body::default().buffer(path).int(version)
}

pub(crate) fn delete(path: &str, version: i32) -> Request {
    request(kind::DELETE, version_body(path, version))
}

pub(crate) fn set_text(path: &str, text: Option<&[u8]>, version: i32) -> Request {
    request(kind::SET_DATA, Body::default().buffer(path).data(text).int(version))
}

pub(crate) fn set(path: &str, version: i32) -> Request {
    set_text(path, None, version)
}

pub(crate) fn set_acl(path: &str, acl: &[Acl], version: i32) -> Request {
    request(kind::SET_ACL, Body::default().buffer(path).acl(acl).int(version))
}

/// What the leader's own look at containers and TTL nodes asks for.
pub(crate) fn delete_container(path: &str) -> Request {
    by_program(of(0, request(kind::DELETE_CONTAINER, Body::default().buffer(path))))
}

pub(crate) fn check_body(path: &str, version: i32) -> (i32, Body) {
    (kind::CHECK, version_body(path, version))
}

/// The body of a multi; `end` is whether it is finished as it should be.
pub(crate) fn multi_body(elements: &[(i32, Body)], end: bool) -> Body {
    let body = elements.iter().fold(Body::default(), |body, (op, element)| {
        let mut body = body.int(*op).byte(0).int(-1);
        body.0.extend(&element.0);
        body
    });
    if end { body.int(-1).byte(1).int(-1) } else { body }
}

pub(crate) fn multi(elements: &[Request]) -> Request {
    let elements: Vec<_> =
        elements.iter().map(|asked| (asked.op, Body(asked.body.to_vec()))).collect();
    request(kind::MULTI, multi_body(&elements, true))
}

pub(crate) fn check(path: &str, version: i32) -> Request {
    request(kind::CHECK, version_body(path, version))
}

pub(crate) fn open_session() -> Request {
    by_program(request(kind::CREATE_SESSION, Body::default().int(10_000)))
}

pub(crate) fn close_session() -> Request {
    request(kind::CLOSE_SESSION, Body::default())
}

/// A tree, and the transactions that are on their way to it.
pub(crate) struct Leader {
    pub(crate) tree: Tree,
    pub(crate) preparer: Preparer,
    pub(crate) under_way: Vec<Txn>,
    pub(crate) facts: Facts,
}

impl Leader {
    /// In which the session is open.
    pub(crate) fn new() -> Self {
        Self::with(Rules::default())
    }

    /// The same, by these rules.
    pub(crate) fn with(rules: Rules) -> Self {
        let mut leader = Self::of(Tree::new(), rules);
        assert_eq!(leader.ask(&open_session()), Ok(String::new()));
        leader.settle();
        leader
    }

    /// Over this tree.
    pub(crate) fn of(tree: Tree, rules: Rules) -> Self {
        let last = tree.last_zxid().max(Zxid(0x1_0000_0000));
        let bytes_max = Txn::BYTES_MAX - Txn::HEADER_BYTES;
        let facts = Facts { zxid: Zxid(last.0 + 1), now_ms: 1_000, bytes_max };
        Self { tree, preparer: Preparer::new(rules), under_way: Vec::new(), facts }
    }

    /// The transaction that was prepared last.
    pub(crate) const fn last(&self) -> Zxid {
        Zxid(self.facts.zxid.0 - 1)
    }

    /// Prepares a request of the leader's own client: the code that refuses it, or the path that it is about.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<String, i32> {
        self.ask_by(Origin::Here, request)
    }

    /// The same of a client that is connected elsewhere.
    pub(crate) fn ask_by(&mut self, origin: Origin, request: &Request) -> Result<String, i32> {
        let Prepared { kind, body } = self.prepare(origin, request);
        match kind {
            kind::ERROR => Err(i32::from_be_bytes(body[..].try_into().unwrap())),
            kind::CREATE_SESSION | kind::CLOSE_SESSION | kind::MULTI => Ok(String::new()),
            _ => {
                let length = usize::try_from(i32::from_be_bytes(body[..4].try_into().unwrap()));
                Ok(String::from_utf8(body[4..4 + length.unwrap()].to_vec()).unwrap())
            }
        }
    }

    pub(crate) fn prepare(&mut self, origin: Origin, request: &Request) -> Prepared {
        let prepared = self.preparer.prepare(&self.tree, request, origin, &self.facts);
        let (zxid, RequestId { client, cxid }) = (self.facts.zxid, request.id);
        let header = TxnHeader { client, cxid, time: self.facts.now_ms, kind: prepared.kind };
        self.under_way.push(Txn { zxid, header, body: prepared.body.clone() });
        self.facts.zxid = Zxid(zxid.0 + 1);
        prepared
    }

    /// The body of a transaction that is on its way, without the digest behind it.
    pub(crate) fn body(&self, index: usize) -> &[u8] {
        let (body, digest) = self.under_way[index].body.split_last_chunk::<12>().unwrap();
        assert_eq!(digest[..4], [0, 0, 0, 2]);
        body
    }

    /// Applies the oldest of what is on its way: it does what was promised.
    pub(crate) fn apply(&mut self) -> Outcome {
        let txn = self.under_way.remove(0);
        self.preparer.on_applied();
        let Applied { outcome, digest } = self.tree.apply(&txn).unwrap();
        assert!(!matches!(digest, DigestCheck::Differs { .. }), "{txn:?}: {digest:?}");
        // Where there is little room it may be left out.
        let carries = txn.header.kind != kind::ERROR && self.facts.bytes_max > 1 << 20;
        assert!(!carries || digest == DigestCheck::Equal, "{txn:?}: {digest:?}");
        let refused = txn.header.kind == kind::ERROR || !errors(&txn).is_empty();
        assert_eq!(outcome.error().is_some(), refused, "{txn:?}: {outcome:?}");
        outcome
    }

    pub(crate) fn settle(&mut self) {
        while !self.under_way.is_empty() {
            self.apply();
        }
        assert!(self.preparer.is_settled(), "records are left");
    }
}

/// The elements of a multi as they stand in the transaction.
pub(crate) fn elements(txn: &Txn) -> Vec<(i32, Vec<u8>)> {
    let (count, mut rest) = txn.body.split_first_chunk::<4>().unwrap();
    let elements = (0..i32::from_be_bytes(*count)).map(|_| {
        let (kind, after) = rest.split_first_chunk::<4>().unwrap();
        let (length, after) = after.split_first_chunk::<4>().unwrap();
        let (body, after) = after.split_at(usize::try_from(i32::from_be_bytes(*length)).unwrap());
        rest = after;
        (i32::from_be_bytes(*kind), body.to_vec())
    });
    let elements = elements.collect();
    assert!(matches!(rest.len(), 0 | 12), "the digest, if there is room");
    elements
}

/// The codes in a multi that was refused.
pub(crate) fn errors(txn: &Txn) -> Vec<i32> {
    if txn.header.kind != kind::MULTI {
        return Vec::new();
    }
    let codes = elements(txn).into_iter().filter(|(kind, _)| *kind == kind::ERROR);
    codes.map(|(_, body)| i32::from_be_bytes(body[..].try_into().unwrap())).collect()
}
