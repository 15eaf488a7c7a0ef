//! The links with TLS around them that are up: whose certificates they have, and how many records have passed.
//!
//! ```text
//!   a link ─► here, until it ends ─┬─► certificates, looked at again when stores have changed, and when they end
//!                                  └─► records, by which a link over TLS 1.2 is made anew before its keys are worn
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_rustls::pki_types::CertificateDer;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::Plane;

use crate::lock::locked;

/// How many records have passed on a connection.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(super) read: AtomicU64,
    pub(super) written: AtomicU64,
}

/// A link with TLS around it.
#[derive(Clone, Debug)]
pub(crate) struct SecureLink {
    pub(crate) plane: Plane,
    pub(crate) dialled: bool,
    pub(crate) remote: SocketAddr,
    /// With whom, as far as that is known.
    pub(crate) peer: Option<ServerId>,
    /// What the other side has shown.
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
    /// When the first of them ends, in seconds since 1970.
    pub(crate) ends: i64,
    pub(crate) passed: Arc<Passed>,
    /// How many records may pass in one direction.
    pub(crate) records_max: u64,
    /// Why it is to be closed, and since when; none if it is not.
    pub(crate) unwanted: Option<(Arc<str>, Instant)>,
}

impl SecureLink {
    /// How many records have passed in the direction in which more have.
    pub(crate) fn records(&self) -> u64 {
        let Passed { read, written } = &*self.passed;
        read.load(Ordering::Relaxed).max(written.load(Ordering::Relaxed))
    }

    fn all_records(&self) -> u64 {
        let Passed { read, written } = &*self.passed;
        read.load(Ordering::Relaxed) + written.load(Ordering::Relaxed)
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecureLinks(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    up: BTreeMap<LinkId, Up>,
    /// The records of those that have ended.
    before: BTreeMap<(Plane, Option<ServerId>), u64>,
    /// How many there were.
    made: BTreeMap<Plane, u64>,
    /// When the certificate of this server ends, in seconds since 1970.
    own_ends: Option<i64>,
}

#[derive(Debug)]
struct Up {
    link: SecureLink,
    since: Instant,
}

/// A link that is one of them until this is dropped.
#[derive(Debug)]
pub(super) struct IsUp {
    of: SecureLinks,
    link: LinkId,
}

impl SecureLinks {
    pub(super) fn enter(&self, id: LinkId, link: SecureLink, since: Instant) -> IsUp {
        let mut known = locked(&self.0);
        *known.made.entry(link.plane).or_insert(0) += 1;
        known.up.insert(id, Up { link, since });
        drop(known);
        IsUp { of: self.clone(), link: id }
    }

    /// How many there were on each plane since the start.
    pub(crate) fn made(&self, plane: Plane) -> u64 {
        locked(&self.0).made.get(&plane).copied().unwrap_or(0)
    }

    /// The certificate that this server shows ends then.
    pub(crate) fn own_ends(&self, ends: Option<i64>) {
        locked(&self.0).own_ends = ends;
    }

    /// When the certificates end that were shown, in seconds since 1970: that of this server (none), and those of members.
    pub(crate) fn ends(&self) -> BTreeMap<Option<ServerId>, i64> {
        let known = locked(&self.0);
        let mut ends: BTreeMap<_, _> =
            known.own_ends.map(|ends| (None, ends)).into_iter().collect();
        for Up { link, .. } in known.up.values().filter(|up| up.link.ends < i64::MAX) {
            if let Some(peer) = link.peer {
                let soonest = ends.entry(Some(peer)).or_insert(link.ends);
                *soonest = link.ends.min(*soonest);
            }
        }
        ends
    }

    /// It is known now with whom a link is.
    pub(crate) fn is_of(&self, link: LinkId, peer: ServerId) {
        if let Some(up) = locked(&self.0).up.get_mut(&link) {
            up.link.peer = Some(peer);
        }
    }

    pub(crate) fn all(&self) -> Vec<(LinkId, SecureLink)> {
        locked(&self.0).up.iter().map(|(id, up)| (*id, up.link.clone())).collect()
    }

    /// A link is to be closed at a good moment.
    pub(super) fn is_unwanted(&self, link: LinkId, why: &str, now: Instant) {
        if let Some(up) = locked(&self.0).up.get_mut(&link) {
            up.link.unwanted.get_or_insert_with(|| (why.into(), now));
        }
    }

    /// Those whose keys wear, and since when they are up.
    pub(crate) fn wearing(&self) -> Vec<(SecureLink, Instant)> {
        let known = locked(&self.0);
        let wearing = known.up.values().filter(|up| up.link.records_max < u64::MAX);
        wearing.map(|up| (up.link.clone(), up.since)).collect()
    }

    /// How many records have passed with each peer since the start.
    pub(crate) fn records(&self) -> BTreeMap<(Plane, Option<ServerId>), u64> {
        let known = locked(&self.0);
        let mut records = known.before.clone();
        for Up { link, .. } in known.up.values() {
            *records.entry((link.plane, link.peer)).or_insert(0) += link.all_records();
        }
        records
    }
}

impl Drop for IsUp {
    fn drop(&mut self) {
        let mut known = locked(&self.of.0);
        let Some(Up { link: ended, .. }) = known.up.remove(&self.link) else { return };
        // Of strangers there may be any number, and they are counted together.
        let (own, strangers) = ((ended.plane, ended.peer), (ended.plane, None));
        let room = known.before.len() < PEERS_MAX || known.before.contains_key(&own);
        *known.before.entry(if room { own } else { strangers }).or_insert(0) += ended.all_records();
    }
}

/// Of how many peers the records are kept apart.
const PEERS_MAX: usize = 600;
