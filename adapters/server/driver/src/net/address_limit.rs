//! How many connections to the election and quorum ports one address may have.
//!
//! An address that opens connections without end takes the descriptors that peers and clients need. Connections without an
//! introduction and links of non-members have bounds of their own; here each connection counts that an address holds open,
//! whatever id it claims. A connection that this server dialled does not count.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use crate::lock::locked;

/// The connections that were accepted and are still open, by the address at their other end.
#[derive(Debug)]
pub(crate) struct AddressLimit {
    /// Of one address; zero for any number.
    most: usize,
    open: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct AddressShare {
    limit: Arc<AddressLimit>,
    from: IpAddr,
}

impl AddressLimit {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// None if this address has as many as it may have.
    pub(crate) fn admit(self: &Arc<Self>, from: IpAddr) -> Option<AddressShare> {
        let from = from.to_canonical();
        let mut open = locked(&self.open);
        let of_this = open.get(&from).copied().unwrap_or(0);
        if self.most > 0 && of_this >= self.most {
            return None;
        }
        open.insert(from, of_this + 1);
        drop(open);
        Some(AddressShare { limit: Arc::clone(self), from })
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut open = locked(&self.limit.open);
        match open.get_mut(&self.from) {
            Some(of_this) if *of_this > 1 => *of_this -= 1,
            Some(_) | None => drop(open.remove(&self.from)),
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
        assert!(locked(&limit.open).is_empty(), "nothing is kept of those that have gone");
        let all = Arc::new(AddressLimit::new(0));
        let many: Vec<_> = (0..1000).map(|_| all.admit(Ipv6Addr::LOCALHOST.into())).collect();
        assert!(many.iter().all(Option::is_some));
    }
}
