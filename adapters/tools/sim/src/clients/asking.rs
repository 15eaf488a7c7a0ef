//! What clients ask for: a small tree that all of them change, read and watch.

use bytes::{Bytes, BytesMut};
use quorate_core::rng::Rng;
use quorate_service::wire::{Request, op};
use quorate_znode::acl::Acl;

use crate::clients::access::{READ, Who};
use crate::clients::keeping::{LIMITS, QUOTA, STATS};

/// The nodes that clients know, and that all of them may change.
pub(crate) const PATHS: &[&str] = &["/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/b/x/z", "/q"];
/// A node that everybody may read, and those below it that not everybody may.
const OPEN: &str = "/s";
const SECRET: &[&str] = &["/s/k", "/s/o"];
/// A container and a TTL node, each with a child.
const CONTAINER: &[&str] = &["/k", "/k/x"];
const TTL: &[&str] = &["/t", "/t/x"];
/// A node with more data than others.
pub(crate) const LARGE: &str = "/l";
/// How much that is.
const LARGE_BYTES: usize = 4096;
/// How often it is read at once by a client that does not hear the answer.
const LARGE_READS: usize = 64;

/// A request.
pub(crate) fn draw(rng: &mut Rng, who: Who) -> Request {
    let path = path(rng);
    let watch = rng.below(2) == 0;
    match rng.below(116) {
        0..14 => create(rng, path, 0),
        14..26 => create(rng, path, 1),
        26..30 => create(rng, "/q/n-".to_owned(), 3),
        30..31 => create(rng, "/q/m-".to_owned(), 2),
        31..42 => Request::Delete { path, version: version(rng) },
        42..58 => Request::SetData { path, data: data(rng), version: version(rng) },
        58..66 => Request::GetData { path, watch },
        66..73 => Request::Exists { path, watch },
        73..79 => Request::GetChildren2 { path, watch },
        79..80 => Request::GetChildren2 { path: "/".to_owned(), watch },
        80..90 => Request::Multi((0..=rng.below(3)).map(|_| element(rng)).collect()),
        90..95 => Request::Sync { path: Some(path) },
        95..98 => Request::AddWatch { path, mode: i32::from(watch) },
        98..99 => Request::AddWatch { path: "/".to_owned(), mode: 1 },
        99..109 => guarded(rng, who, watch),
        109..111 => quota(rng),
        111..115 => kept(rng),
        // No such flags: the server that reads it refuses it.
        _ => create(rng, path, 9),
    }
}

/// What a client asks for in place of a create with such flags where servers of ZooKeeper are among the servers: one of what
/// ends those. What cannot be read has the flags [`UNREADABLE`].
pub(crate) fn poisoned(request: Request) -> Request {
    let Request::Create { op, data, acl, flags: 9, ttl: None, .. } = request else {
        return request;
    };
    let path = "/p".to_owned();
    let drawn = data.as_deref().and_then(<[u8]>::first).map_or(0, |first| first % 8);
    let text = Some(Bytes::from_static(b"count=many"));
    let create = |op, path, flags, ttl| {
        let (data, acl) = (data.clone(), acl.clone());
        Request::Create { op, path, data, acl, flags, ttl }
    };
    match drawn {
        0 => Request::Check { path, version: -1 },
        1 => create(op::CREATE_TTL, path, 0, Some(-1)),
        2 => create(op::CREATE_CONTAINER, path, 0, None),
        3 => create(op, path, UNREADABLE, None),
        4 => create(op, "/a".repeat(2_001), 0, None),
        5 => Request::SetData { path: STATS.to_owned(), data: text, version: -1 },
        6 => Request::Multi(vec![Request::SetData {
            path: STATS.to_owned(),
            data: text,
            version: -1,
        }]),
        _ => create(op, path, 9, None),
    }
}

/// The flags of a create whose frame ends before them.
pub(crate) const UNREADABLE: i32 = 11;

/// Its frame.
pub(crate) fn frame(request: &Request, xid: i32) -> Bytes {
    let frame = request.frame(xid);
    if !matches!(request, Request::Create { flags: UNREADABLE, .. }) {
        return frame;
    }
    let mut short = BytesMut::from(&frame[..frame.len() - 4]);
    let length = u32::try_from(short.len() - 4).unwrap_or(0);
    short[..4].copy_from_slice(&length.to_be_bytes());
    short.freeze()
}

fn element(rng: &mut Rng) -> Request {
    let path = path(rng);
    match rng.below(10) {
        0..3 => create(rng, path, 0),
        3..4 => create(rng, path, 1),
        4..5 => create(rng, "/q/n-".to_owned(), 3),
        5..8 => Request::SetData { path, data: data(rng), version: version(rng) },
        8..9 => Request::Delete { path, version: -1 },
        _ => Request::Check { path, version: version(rng) },
    }
}

fn create(rng: &mut Rng, path: String, flags: i32) -> Request {
    create_with(rng, path, flags, vec![Acl::world(31)])
}

fn create_with(rng: &mut Rng, path: String, flags: i32, acl: Vec<Acl>) -> Request {
    let op = if rng.below(2) == 0 { op::CREATE } else { op::CREATE2 };
    Request::Create { op, path, data: data(rng), acl: Some(acl), flags, ttl: None }
}

/// Around nodes that not everybody may read.
fn guarded(rng: &mut Rng, who: Who, watch: bool) -> Request {
    let path = one_of(rng, SECRET);
    let acl = || match who.proof() {
        Some(_) => vec![Acl { perms: 31, scheme: "auth".into(), id: "".into() }],
        None => Who::Bob.alone(),
    };
    match rng.below(14) {
        0 => create(rng, OPEN.to_owned(), 0),
        1..3 => create_with(rng, path, 0, acl()),
        3 => create_with(rng, path, 0, [Who::Noc.alone(), vec![Acl::world(READ)]].concat()),
        4..6 => Request::SetData { path, data: data(rng), version: -1 },
        6 => Request::Delete { path, version: -1 },
        7 => Request::GetData { path, watch },
        8 => Request::Exists { path, watch },
        9 => Request::AddWatch { path: OPEN.to_owned(), mode: 1 },
        10 => Request::GetAcl { path },
        11 => Request::SetAcl { path, acl: Some(acl()), version: -1 },
        // It is gone before anybody could look who may read it.
        12 => Request::Multi(vec![
            create_with(rng, path.clone(), 0, acl()),
            Request::SetData { path: path.clone(), data: data(rng), version: -1 },
            Request::Delete { path, version: -1 },
        ]),
        _ => Request::GetChildren2 { path: OPEN.to_owned(), watch },
    }
}

/// A quota begins, or ends.
fn quota(rng: &mut Rng) -> Request {
    let text = || Some(Bytes::from_static(b"count=-1,bytes=-1"));
    let acl = || Some(vec![Acl::world(31)]);
    let create = |path: &str| Request::Create {
        op: op::CREATE,
        path: path.to_owned(),
        data: text(),
        acl: acl(),
        flags: 0,
        ttl: None,
    };
    let delete = |path: &str| Request::Delete { path: path.to_owned(), version: -1 };
    Request::Multi(if rng.below(4) > 0 {
        [QUOTA, LIMITS, STATS].into_iter().map(create).collect()
    } else {
        [STATS, LIMITS, QUOTA].into_iter().map(delete).collect()
    })
}

/// Around nodes that leaders remove by themselves.
fn kept(rng: &mut Rng) -> Request {
    let (which, acl) = (rng.below(2) == 0, Some(vec![Acl::world(31)]));
    let paths = if which { CONTAINER } else { TTL };
    let path = paths[0].to_owned();
    match rng.below(8) {
        0..3 if which => {
            let op = op::CREATE_CONTAINER;
            Request::Create { op, path, data: None, acl, flags: 4, ttl: None }
        }
        0..3 => {
            let ttl = Some(200 + i64::try_from(rng.below(2_000)).unwrap_or(0));
            Request::Create { op: op::CREATE_TTL, path, data: None, acl, flags: 5, ttl }
        }
        3..5 => create(rng, paths[1].to_owned(), 1),
        5..7 => Request::Delete { path: paths[1].to_owned(), version: -1 },
        _ => Request::SetData { path, data: data(rng), version: -1 },
    }
}

/// The node with much data is made.
pub(crate) fn make_large() -> Request {
    let (op, path, acl) = (op::CREATE, LARGE.to_owned(), Some(vec![Acl::world(31)]));
    let data = Some(Bytes::from_static(&[b'l'; LARGE_BYTES]));
    Request::Create { op, path, data, acl, flags: 0, ttl: None }
}

/// It is read so often that no reader would wait for the answers to be written.
pub(crate) fn read_large() -> Request {
    let read = || Request::GetData { path: LARGE.to_owned(), watch: false };
    Request::MultiRead((0..LARGE_READS).map(|_| read()).collect())
}

fn path(rng: &mut Rng) -> String {
    one_of(rng, PATHS)
}

fn one_of(rng: &mut Rng, paths: &[&str]) -> String {
    let at = usize::try_from(rng.below(paths.len() as u64)).unwrap_or(0);
    paths[at].to_owned()
}

fn data(rng: &mut Rng) -> Option<Bytes> {
    (rng.below(8) > 0).then(|| Bytes::copy_from_slice(&rng.next_u64().to_be_bytes()))
}

/// Any, mostly.
fn version(rng: &mut Rng) -> i32 {
    if rng.below(4) == 0 { i32::try_from(rng.below(3)).unwrap_or(0) } else { -1 }
}

/// Whether a request becomes a transaction, unless the server that reads it refuses it.
pub(crate) const fn is_write(request: &Request) -> bool {
    matches!(
        request,
        Request::Create { .. }
            | Request::Delete { .. }
            | Request::SetData { .. }
            | Request::SetAcl { .. }
            | Request::Multi(_)
            | Request::CloseSession
    )
}
