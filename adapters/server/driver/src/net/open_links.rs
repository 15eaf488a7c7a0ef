//! How many links are open, with TLS around them and without: the last plain one is gone when no server needs it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_core::input::Plane;

/// The links that are open, by plane and by whether there is TLS around them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenLinks(Arc<[AtomicUsize; 4]>);

/// A link that counts until this is dropped.
#[derive(Debug)]
pub(super) struct OpenLink {
    of: OpenLinks,
    at: usize,
}

const fn at(plane: Plane, secure: bool) -> usize {
    let plane = match plane {
        Plane::Election => 0,
        Plane::Quorum => 2,
    };
    plane + secure as usize
}

impl OpenLinks {
    pub(super) fn enter(&self, plane: Plane, secure: bool) -> OpenLink {
        let at = at(plane, secure);
        self.0[at].fetch_add(1, Ordering::Relaxed);
        OpenLink { of: self.clone(), at }
    }

    pub(crate) fn count(&self, plane: Plane, secure: bool) -> usize {
        self.0[at(plane, secure)].load(Ordering::Relaxed)
    }
}

impl Drop for OpenLink {
    fn drop(&mut self) {
        self.of.0[self.at].fetch_sub(1, Ordering::Relaxed);
    }
}
