//! How many connections to the ports for peers, or to those for clients, one address may have, and all together.
//!
//! An address that opens connections without end takes the descriptors that peers and other clients need. Connections without an
//! introduction and links of non-members have bounds of their own; here each connection counts that an address holds open,
//! whatever id it claims. A connection that this server dialled does not count.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::locked;

/// The connections that were accepted and are still open, by the address at their other end.
#[derive(Debug)]
pub(crate) struct AddressLimit {
    /// Of one address; zero for any number.
    most: AtomicUsize,
    /// Of all together; zero for any number.
    total: AtomicUsize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    by_address: BTreeMap<IpAddr, usize>,
    total: usize,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct AddressShare {
    limit: Arc<AddressLimit>,
    from: IpAddr,
}

impl AddressLimit {
    pub(crate) fn new(most: usize) -> Self {
        Self::with_total(most, 0)
    }

    pub(crate) fn with_total(most: usize, total: usize) -> Self {
        let (most, total) = (AtomicUsize::new(most), AtomicUsize::new(total));
        Self { most, total, open: Mutex::default() }
    }

    /// From now on there may be so many, of one address and of all together. Those that are open stay.
    pub(crate) fn set(&self, most: usize, total: usize) {
        self.most.store(most, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// None if this address has as many as it may have, or all have.
    pub(crate) fn admit(self: &Arc<Self>, from: IpAddr) -> Option<AddressShare> {
        let from = from.to_canonical();
        let mut open = locked(&self.open);
        let of_this = open.by_address.get(&from).copied().unwrap_or(0);
        let full = |most: usize, count: usize| most > 0 && count >= most;
        let [most, total] = [&self.most, &self.total].map(|limit| limit.load(Ordering::Relaxed));
        if full(most, of_this) || full(total, open.total) {
            return None;
        }
        open.by_address.insert(from, of_this + 1);
        open.total += 1;
        drop(open);
        Some(AddressShare { limit: Arc::clone(self), from })
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut open = locked(&self.limit.open);
        open.total = open.total.saturating_sub(1);
        match open.by_address.get_mut(&self.from) {
            Some(of_this) if *of_this > 1 => *of_this -= 1,
            Some(_) | None => drop(open.by_address.remove(&self.from)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn one_address_takes_no_more_than_its_share() {
        let limit = Arc::new(AddressLimit::new(2));
        let v4 = Ipv4Addr::new(10, 0, 0, 1);
        let (one, other) = (IpAddr::V4(v4), IpAddr::from([10, 0, 0, 2]));
        let first = limit.admit(one);
        let second = limit.admit(IpAddr::V6(v4.to_ipv6_mapped()));
        assert!(first.is_some() && second.is_some());
        assert!(limit.admit(one).is_none());
        assert!(limit.admit(other).is_some(), "another address is another share");
        drop(first);
        assert!(limit.admit(one).is_some());
        drop(second);
        assert!(
            locked(&limit.open).by_address.is_empty(),
            "nothing is kept of those that have gone"
        );
        let all = Arc::new(AddressLimit::new(0));
        let many: Vec<_> = (0..1000).map(|_| all.admit(Ipv6Addr::LOCALHOST.into())).collect();
        assert!(many.iter().all(Option::is_some));
    }

    #[test]
    fn all_addresses_together_take_no_more_than_there_is() {
        let limit = Arc::new(AddressLimit::with_total(2, 3));
        let from = |last| IpAddr::from([10, 0, 0, last]);
        let mut held: Vec<_> = [1, 1, 2].map(|last| limit.admit(from(last))).into();
        assert!(held.iter().all(Option::is_some));
        assert!(limit.admit(from(3)).is_none());
        held.pop();
        assert!(limit.admit(from(1)).is_none(), "it has its share");
        assert!(limit.admit(from(3)).is_some());
    }
}
