//! How worn the keys of links are, for the operator.

use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::input::Plane;

/// A link over a version of TLS that cannot change its keys, so that it is made anew before they are worn (RFC 8446, 5.5).
/// See [`Server::wearing_links`](crate::Server::wearing_links).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WearingLink {
    /// For what it is.
    pub plane: Plane,
    /// With whom; none if that is not known, or is no member.
    pub peer: Option<ServerId>,
    /// How many records have passed in the direction in which more have.
    pub records: u64,
    /// How many may.
    pub records_max: u64,
    /// For how long it has been up.
    pub age: Duration,
}
