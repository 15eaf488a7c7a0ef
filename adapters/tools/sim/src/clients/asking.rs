//! What clients ask for: a small tree that all of them change, read and watch.

use bytes::Bytes;
use quorate_core::rng::Rng;
use quorate_service::wire::{Request, op};
use quorate_znode::acl::Acl;

/// The nodes that clients know.
const PATHS: &[&str] = &["/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/b/x/z", "/q"];

/// A request.
pub(crate) fn draw(rng: &mut Rng) -> Request {
    let path = path(rng);
    let watch = rng.below(2) == 0;
    match rng.below(100) {
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
        // No such flags: the server that reads it refuses it.
        _ => create(rng, path, 9),
    }
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
    let op = if rng.below(2) == 0 { op::CREATE } else { op::CREATE2 };
    let acl = Some(vec![Acl::world(31)]);
    Request::Create { op, path, data: data(rng), acl, flags, ttl: None }
}

fn path(rng: &mut Rng) -> String {
    let at = usize::try_from(rng.below(PATHS.len() as u64)).unwrap_or(0);
    PATHS[at].to_owned()
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
            | Request::Multi(_)
            | Request::CloseSession
    )
}
