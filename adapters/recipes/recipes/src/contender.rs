//! One who leads, or would, as the store shows it.

use std::borrow::Cow;

use bytes::Bytes;
use quorate_leadership::FencingToken;

/// One who leads, or would.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    /// What it calls itself: any bytes.
    pub identity: Bytes,
    /// The token of its term, if it leads or comes to.
    pub token: FencingToken,
    /// Its node or key in the store, without the path; empty if it was designated by hand.
    pub key: String,
}

impl Contender {
    /// What it calls itself, as text; what is no UTF-8 is replaced.
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.identity)
    }
}
