//! How many connections to our ports for peers one address may have.
//!
//! Whoever opens connections without end takes the descriptors that peers and clients need. What waits for its
//! introduction is bounded elsewhere, and so are links of those that are no members; here is counted all that an
//! address holds open, whatever it says it is. A connection that we dialled is none of its.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use crate::lock::locked;

/// The connections that were accepted and are still open, by the address at their other end.
#[derive(Debug)]
pub(crate) struct Guests {
    /// Of one address; zero for any number.
    most: usize,
    open: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    guests: Arc<Guests>,
    from: IpAddr,
}

impl Guests {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// None if this address has as many as it may have.
    pub(crate) fn admit(self: &Arc<Self>, from: IpAddr) -> Option<Guest> {
        let from = from.to_canonical();
        let mut open = locked(&self.open);
        let of_this = open.get(&from).copied().unwrap_or(0);
        if self.most > 0 && of_this >= self.most {
            return None;
        }
        open.insert(from, of_this + 1);
        drop(open);
        Some(Guest { guests: Arc::clone(self), from })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut open = locked(&self.guests.open);
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
        let guests = Arc::new(Guests::new(2));
        let v4 = Ipv4Addr::new(10, 0, 0, 1);
        let (one, other) = (IpAddr::V4(v4), IpAddr::from([10, 0, 0, 2]));
        let first = guests.admit(one);
        let second = guests.admit(IpAddr::V6(v4.to_ipv6_mapped()));
        assert!(first.is_some() && second.is_some());
        assert!(guests.admit(one).is_none());
        assert!(guests.admit(other).is_some(), "another address is another share");
        drop(first);
        assert!(guests.admit(one).is_some());
        drop(second);
        assert!(locked(&guests.open).is_empty(), "nothing is kept of those that have gone");
        let all = Arc::new(Guests::new(0));
        let many: Vec<_> = (0..1000).map(|_| all.admit(Ipv6Addr::LOCALHOST.into())).collect();
        assert!(many.iter().all(Option::is_some));
    }
}
