//! Proofs of identity that failed: how many by each scheme, and how many of late from each address.
//!
//! A digest is an identity whatever it is, so of digests only one can be guessed at: that of who may do everything. An
//! address that has guessed too often has to wait before a right one counts; all else that it proves counts as ever.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;

use quorate_core::time::Instant;

/// By which scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scheme {
    /// Digests with the name of who may do everything, and another password.
    Digest,
    /// ZooKeeper's certificates, which are none here.
    X509,
    /// Logins by SASL.
    Sasl,
    /// Any other, and none. Its name is the client's word.
    Other,
}

impl Scheme {
    pub(crate) fn of(name: Option<&str>) -> Self {
        match name {
            Some("digest") => Self::Digest,
            Some("x509") => Self::X509,
            Some(_) | None => Self::Other,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    failed: BTreeMap<Scheme, u64>,
    /// Since when they are counted of an address, and how many there were.
    of_late: BTreeMap<IpAddr, (Instant, u32)>,
}

impl Proofs {
    /// One has failed.
    pub(crate) fn failed(&mut self, now: Instant, scheme: Scheme, from: IpAddr) {
        *self.failed.entry(scheme).or_default() += 1;
        let from = network(from);
        if self.of_late.len() >= ADDRESSES_MAX && !self.of_late.contains_key(&from) {
            self.of_late.retain(|_, (since, _)| now.since(*since) < WINDOW);
            if self.of_late.len() >= ADDRESSES_MAX {
                return;
            }
        }
        let (since, failed) = self.of_late.entry(from).or_insert((now, 0));
        if now.since(*since) >= WINDOW {
            (*since, *failed) = (now, 0);
        }
        *failed = failed.saturating_add(1);
    }

    /// Whether so many have failed from there that no guess counts for now.
    pub(crate) fn has_to_wait(&self, now: Instant, from: IpAddr) -> bool {
        self.of_late
            .get(&network(from))
            .is_some_and(|(since, failed)| *failed >= FAILED_MAX && now.since(*since) < WINDOW)
    }

    /// How many have failed by a scheme.
    pub(crate) fn of(&self, scheme: Scheme) -> u64 {
        self.failed.get(&scheme).copied().unwrap_or(0)
    }

    /// How many have failed.
    pub(crate) fn count(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Sets the figures back; who has to wait does.
    pub(crate) fn reset(&mut self) {
        self.failed.clear();
    }
}

/// Of IPv6 a network: a host that has one address there has all.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// How many may fail in a window, of one address.
const FAILED_MAX: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);
/// Of how many addresses it is kept.
const ADDRESSES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_guesses_too_often_waits_and_nobody_else() {
        let mut proofs = Proofs::default();
        for n in 0..u64::from(FAILED_MAX) {
            assert!(!proofs.has_to_wait(at(n), ip("10.0.0.1")));
            proofs.failed(at(n), Scheme::Digest, ip("10.0.0.1"));
            proofs.failed(at(n), Scheme::Other, ip(&alloc::format!("2001:db8::{n}")));
        }
        assert!(proofs.has_to_wait(at(20), ip("::ffff:10.0.0.1")));
        assert!(proofs.has_to_wait(at(20), ip("2001:db8::ffff")), "the same network");
        assert!(!proofs.has_to_wait(at(20), ip("10.0.0.2")));
        assert!(!proofs.has_to_wait(at(60), ip("10.0.0.1")));
        proofs.failed(at(61), Scheme::Digest, ip("10.0.0.1"));
        assert!(!proofs.has_to_wait(at(61), ip("10.0.0.1")));
        assert_eq!((proofs.of(Scheme::Digest), proofs.of(Scheme::Other)), (21, 20));
        assert_eq!(proofs.count(), 41);
        (1..FAILED_MAX).for_each(|_| proofs.failed(at(62), Scheme::Digest, ip("10.0.0.1")));
        assert!(proofs.has_to_wait(at(63), ip("10.0.0.1")), "another minute");
    }

    #[test]
    fn what_is_kept_of_addresses_has_a_bound() {
        let mut proofs = Proofs::default();
        for n in 0..3000_u32 {
            proofs.failed(at(1), Scheme::Other, IpAddr::V4(n.into()));
        }
        assert_eq!((proofs.of_late.len(), proofs.count()), (ADDRESSES_MAX, 3000));
        proofs.failed(at(90), Scheme::Other, ip("10.0.0.1"));
        assert_eq!(proofs.of_late.len(), 1);
    }
}
