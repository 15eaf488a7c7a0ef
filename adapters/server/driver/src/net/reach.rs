//! Whom this server could dial last, and what became of it: for the operator.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::Instant;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;

use crate::lock::locked;

/// The last dial to an address of a peer that came to an end. See [`Server::dials`](crate::Server::dials).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialled {
    /// To whom.
    pub peer: ServerId,
    /// For what.
    pub plane: Plane,
    /// Where to.
    pub address: HostPort,
    /// When it ended.
    pub at: Instant,
    /// Why nothing came of it; none if it connected.
    pub failure: Option<String>,
}

/// The last dials, one for each peer and plane: as many as there are members, and those that were.
#[derive(Debug, Default)]
pub(crate) struct Reach(Mutex<BTreeMap<(ServerId, Plane), Dialled>>);

impl Reach {
    /// One more has ended.
    pub(crate) fn note(
        &self,
        (plane, peer): (Plane, ServerId),
        address: &HostPort,
        at: Instant,
        failure: Option<&io::Error>,
    ) {
        let (address, failure) = (address.clone(), failure.map(ToString::to_string));
        let dialled = Dialled { peer, plane, address, at, failure };
        let mut last = locked(&self.0);
        if last.len() < PEERS_MAX || last.contains_key(&(peer, plane)) {
            last.insert((peer, plane), dialled);
        }
    }

    pub(crate) fn all(&self) -> Vec<Dialled> {
        locked(&self.0).values().cloned().collect()
    }
}

/// For twice as many as there can be members: for elections, and for a quorum.
const PEERS_MAX: usize = 512;
