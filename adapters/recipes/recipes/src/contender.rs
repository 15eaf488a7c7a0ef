//! A candidate as others see it in the store: the leader, or one that waits.

use std::borrow::Cow;

use bytes::Bytes;
use quorate_leadership::FencingToken;

/// A candidate as others see it in the store: the leader, or one that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    /// What it calls itself: any bytes.
    pub identity: Bytes,
    /// The token of its leadership, if it leads or comes to lead.
    pub token: FencingToken,
    /// Its node or key in the store, without the path; empty if it was designated by hand.
    pub key: String,
}

impl Contender {
    /// One that is elected, or would be, with this number as its fencing token.
    pub const fn elected(identity: Bytes, token: u64, key: String) -> Self {
        Self { identity, token: FencingToken::elected(token), key }
    }

    /// What it calls itself, as text; invalid UTF-8 is replaced.
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.identity)
    }
}
