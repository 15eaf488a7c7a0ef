//! Whom this server could dial last, and what became of it: for the operator.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
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

/// Why a dial came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unreached {
    /// Its name leads to no address.
    Name,
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    TimedOut,
    /// There is no way to it.
    NoRoute,
    /// Something else.
    Other,
}

impl Unreached {
    /// What it is, as a connection says it.
    pub(crate) fn of(error: &io::Error) -> Self {
        use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut};
        let kind = error.kind();
        if kind == ConnectionRefused {
            Self::Refused
        } else if kind == TimedOut {
            Self::TimedOut
        } else if [HostUnreachable, NetworkUnreachable].contains(&kind) {
            Self::NoRoute
        } else {
            Self::Other
        }
    }

    /// Its name among figures.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Refused => "refused",
            Self::TimedOut => "timeout",
            Self::NoRoute => "no_route",
            Self::Other => "other",
        }
    }
}

/// A dial that came to nothing.
pub(crate) type Failed = (Unreached, io::Error);

/// The last dials, one for each peer and plane: as many as there are members, and those that were. And how many failed.
#[derive(Debug, Default)]
pub(crate) struct Reach(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    last: BTreeMap<(ServerId, Plane), Dialled>,
    failures: BTreeMap<(ServerId, Unreached), u64>,
}

impl Reach {
    /// One more has ended.
    pub(crate) fn note(
        &self,
        (plane, peer): (Plane, ServerId),
        address: &HostPort,
        at: Instant,
        failed: Option<&Failed>,
    ) {
        let (address, failure) = (address.clone(), failed.map(|(_, error)| error.to_string()));
        let dialled = Dialled { peer, plane, address, at, failure };
        let Known { last, failures } = &mut *locked(&self.0);
        if last.len() < PEERS_MAX || last.contains_key(&(peer, plane)) {
            last.insert((peer, plane), dialled);
            if let Some((why, _)) = failed {
                *failures.entry((peer, *why)).or_default() += 1;
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<Dialled> {
        locked(&self.0).last.values().cloned().collect()
    }

    /// How many dials to an address of each peer came to nothing, and why.
    pub(crate) fn failures(&self) -> Vec<(ServerId, Unreached, u64)> {
        let failures = &locked(&self.0).failures;
        failures.iter().map(|((peer, why), count)| (*peer, *why, *count)).collect()
    }
}

/// For twice as many as there can be members: for elections, and for a quorum.
const PEERS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_peer_and_reason_and_for_members_alone() {
        let (reach, now) = (Reach::default(), Instant::now());
        let at = HostPort { host: "zk1".to_owned(), port: 3888 };
        let failed = |kind: ErrorKind| -> Option<Failed> {
            let error = io::Error::from(kind);
            Some((Unreached::of(&error), error))
        };
        let refused = failed(ErrorKind::ConnectionRefused);
        for plane in [Plane::Election, Plane::Quorum] {
            reach.note((plane, ServerId(1)), &at, now, refused.as_ref());
        }
        let election = (Plane::Election, ServerId(2));
        for kind in [ErrorKind::TimedOut, ErrorKind::HostUnreachable, ErrorKind::BrokenPipe] {
            reach.note(election, &at, now, failed(kind).as_ref());
        }
        reach.note(election, &at, now, None);
        let told: Vec<_> =
            reach.failures().into_iter().map(|(id, why, n)| (id.0, why.name(), n)).collect();
        let of_2 = [(2, "timeout", 1), (2, "no_route", 1), (2, "other", 1)];
        assert_eq!(told, [&[(1, "refused", 2)][..], &of_2].concat());
        for id in 3..1000 {
            reach.note((Plane::Election, ServerId(id)), &at, now, refused.as_ref());
        }
        assert!(reach.all().len() == PEERS_MAX && reach.failures().len() <= PEERS_MAX + 1);
    }
}
