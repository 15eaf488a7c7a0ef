//! What the hosts of members mean on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use quorate_doctor::{Address, Facts};
use tokio::net::lookup_host;
use tokio::time::timeout;

/// What a name means.
type Found = Result<Vec<Address>, String>;

/// The hosts of all members.
pub(super) fn hosts(facts: &Facts) -> BTreeSet<String> {
    let cfgs = facts.files.iter().filter_map(|file| file.cfg()).filter(|cfg| !cfg.alone);
    let members = cfgs.flat_map(|cfg| cfg.membership.members());
    let addresses = members.flat_map(|member| &member.addresses);
    addresses.flat_map(|at| [at.quorum.host.clone(), at.election.host.clone()]).collect()
}

/// Looks all of them up, at once.
pub(super) async fn resolve(
    hosts: BTreeSet<String>,
    patience: Duration,
) -> BTreeMap<String, Found> {
    let asked: Vec<_> = hosts
        .into_iter()
        .map(|host| {
            let name = host.clone();
            let found = tokio::spawn(async move {
                timeout(patience, lookup_host((name.as_str(), 0))).await.map(|found| {
                    found.map(|all| all.map(|at| at.ip().to_canonical()).collect::<BTreeSet<_>>())
                })
            });
            (host, found)
        })
        .collect();
    let mut named = BTreeMap::new();
    for (host, found) in asked {
        let found = match found.await {
            Ok(Ok(Ok(ips))) if ips.is_empty() => Err("it has no address".to_owned()),
            Ok(Ok(Ok(ips))) => {
                Ok(ips.into_iter().map(|ip| Address { ip, is_here: is_here(ip) }).collect())
            }
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(_)) => Err(format!("no answer within {} ms", patience.as_millis())),
            Err(error) => Err(error.to_string()),
        };
        named.insert(host, found);
    }
    named
}

/// An address that one may listen at is this machine's.
fn is_here(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}
