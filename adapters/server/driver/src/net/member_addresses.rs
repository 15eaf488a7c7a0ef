//! Where the members of the ensemble are: the numbers that their names lead to.
//!
//! ```text
//!   membership ─► hosts ─┬─ looked up at the start, every minute, when there are others ─┐
//!                        └─ each dial looks its own up anyway ───────────────────────────┴─► is this address a member's?
//! ```
//!
//! An address proves nothing. It decides for whom places are kept while others press, and whom a fence lets through.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

use async_channel::{Receiver, Sender, bounded};
use quorate_core::membership::Membership;

use crate::lock::locked;

/// The hosts of the members, and the addresses that each was found at last.
#[derive(Debug)]
pub(crate) struct MemberAddresses {
    hosts: Mutex<BTreeMap<String, Vec<IpAddr>>>,
    changed: (Sender<()>, Receiver<()>),
}

impl Default for MemberAddresses {
    fn default() -> Self {
        Self { hosts: Mutex::default(), changed: bounded(1) }
    }
}

impl MemberAddresses {
    /// These are the members now, or will be. What is known of those that stay is kept.
    pub(crate) fn know<'a>(&self, memberships: impl IntoIterator<Item = &'a Membership>) {
        let mut hosts = BTreeMap::new();
        let mut before = locked(&self.hosts);
        let members = memberships.into_iter().flat_map(Membership::members);
        for address in members.flat_map(|member| &member.addresses) {
            for host in [&address.election.host, &address.quorum.host] {
                let known = before.remove(host).or_else(|| hosts.remove(host));
                let number = || host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
                let known = known.unwrap_or_else(|| number().into_iter().collect());
                hosts.insert(host.clone(), known);
            }
        }
        *before = hosts;
        // Full: it is looked soon.
        let _ = self.changed.0.try_send(());
    }

    /// A name was looked up. That of no member, which a joiner has, is passed over.
    pub(crate) fn found(&self, host: &str, addresses: &[IpAddr]) {
        if let Some(known) = locked(&self.hosts).get_mut(host) {
            *known = addresses.iter().map(IpAddr::to_canonical).collect();
        }
    }

    /// Whether an address is one at which a member was found last.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        locked(&self.hosts).values().any(|known| known.contains(&address))
    }

    /// All hosts of members.
    pub(super) fn hosts(&self) -> Vec<String> {
        locked(&self.hosts).keys().cloned().collect()
    }

    /// Waits until there are other members.
    pub(super) async fn changed(&self) {
        // There is a sender as long as there is this.
        let _ = self.changed.1.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership(hosts: &[&str]) -> Membership {
        let lines = hosts.iter().zip(1..).map(|(host, id)| format!("server.{id}={host}:1:2\n"));
        Membership::parse(lines.collect::<String>()).unwrap()
    }

    #[test]
    fn a_member_is_where_its_name_led_last() {
        let members = MemberAddresses::default();
        let (one, two) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        members.know([&membership(&["zk1", "10.0.0.9", "zk3"])]);
        assert!(!members.contain(one));
        assert!(members.contain([10, 0, 0, 9].into()));
        members.found("zk1", &[one]);
        members.found("not.a.member", &[two]);
        assert!(members.contain(one) && !members.contain(two));
        members.found("zk1", &[two]);
        assert!(members.contain(two) && !members.contain(one), "a pod comes back elsewhere");
        members.know([&membership(&["zk1", "zk3"]), &membership(&["zk1", "[fd00::1]"])]);
        assert!(members.contain(two), "it is known still");
        assert!(members.contain("fd00::1".parse().unwrap()));
        assert!(!members.contain([10, 0, 0, 9].into()), "it is none any more");
    }
}
