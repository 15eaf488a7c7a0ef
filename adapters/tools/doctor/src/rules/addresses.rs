//! Rules of configuration: hosts and ports.

use std::collections::BTreeMap;

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;

use crate::facts::{Address, Facts};
use crate::finding::{Evidence, Found, Level, Subject};
use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.ports-collide",
        levels: &[Level::Error, Level::Warning],
        when: "a port is used twice on one host, or lies in the range of this host's outgoing connections",
        why: "the second to open it fails; one of the ephemeral range may be taken by an outgoing connection while the \
              server is down",
        todo: "give each its own port, below the range in /proc/sys/net/ipv4/ip_local_port_range",
        sources: &["KAFKA-8792", "https://github.com/apache/pulsar/issues/2324"],
        explains: &["live.port-closed"],
        check: ports_collide,
    },
    Rule {
        id: "cfg.address-wildcard",
        levels: &[Level::Error],
        when: "the host of a server.N line is 0.0.0.0 or ::",
        why: "the others are told to dial back to themselves",
        todo: "write a name or address that the others reach, and quorumListenOnAllIPs=true to listen on all of them",
        sources: &["ZOOKEEPER-2164"],
        explains: &["live.port-closed", "cfg.address-loopback"],
        check: address_wildcard,
    },
    Rule {
        id: "cfg.address-loopback",
        levels: &[Level::Error],
        when: "a member's host is loopback here, while another member is on another host",
        why: "it listens where no other server reaches it",
        todo: "write an address that the others reach; take the host's own name off the line of 127.0.1.1 in /etc/hosts",
        sources: &["ZOOKEEPER-2164", "https://github.com/banzaicloud/banzai-charts/issues/1054"],
        explains: &["live.port-closed"],
        check: address_loopback,
    },
    Rule {
        id: "cfg.host-unresolved",
        levels: &[Level::Error, Level::Warning],
        when: "the name of a member has no address here; an error if none has one",
        why: "elections stall for a server that is not found, or a leader cannot commit",
        todo: "correct the name or the name service; in Kubernetes set publishNotReadyAddresses on the headless service",
        sources: &["https://github.com/pravega/zookeeper-operator/issues/132"],
        explains: &["live.port-closed"],
        check: host_unresolved,
    },
    Rule {
        id: "cfg.host-many",
        levels: &[Level::Notice],
        when: "the name of a member has several addresses of one family here",
        why: "it may be the name of a service or load balancer rather than of a host, and dial another server each time",
        todo: "write a name that means one server",
        sources: &["zookeeperAdmin.md"],
        explains: &[],
        check: host_many,
    },
];

/// The memberships of files, each once, with who wrote it.
fn memberships(facts: &Facts) -> impl Iterator<Item = &Membership> {
    facts.read_files().filter(|(_, cfg)| !cfg.alone).map(|(_, cfg)| &cfg.membership)
}

/// What uses a port.
type Use = (ServerId, &'static str);

fn ports_collide(facts: &Facts) -> Vec<Found> {
    let mut uses = BTreeMap::<(String, u16), Vec<Use>>::new();
    let mut add = |host: &str, port: u16, of: Use| {
        let users = uses.entry((host.to_owned(), port)).or_default();
        if port != 0 && !users.contains(&of) {
            users.push(of);
        }
    };
    if let Some(membership) = memberships(facts).next() {
        for member in membership.members() {
            for address in &member.addresses {
                add(&address.quorum.host, address.quorum.port, (member.id, "its quorum port"));
                add(
                    &address.election.host,
                    address.election.port,
                    (member.id, "its election port"),
                );
            }
            let host = &member.quorum_address().host;
            for (client, what) in [
                (&member.client, "its client port"),
                (&member.secure_client, "its secure client port"),
            ] {
                if let Some(client) = client {
                    add(host, client.port, (member.id, what));
                }
            }
        }
    }
    for (file, cfg) in facts.read_files() {
        let Some(id) = file.id else { continue };
        let Some(own) = cfg.membership.member(id) else { continue };
        let host = &own.quorum_address().host;
        let ports = [
            (cfg.client_address.as_ref(), "its client port"),
            (cfg.secure_client_address(), "its secure client port"),
            (cfg.http.admin.as_ref().map(|admin| &admin.address), "its admin port"),
            (cfg.http.metrics.as_ref(), "its metrics port"),
            (cfg.http.probes.as_ref(), "its port for probes"),
        ];
        for (address, what) in ports {
            if let Some(HostPort { port, .. }) = address {
                add(host, *port, (id, what));
            }
        }
    }
    let mut found: Vec<_> = uses.iter().filter_map(|(at, users)| twice(at, users)).collect();
    found.extend(ephemeral(facts, &uses));
    found
}

fn twice((host, port): &(String, u16), users: &[Use]) -> Option<Found> {
    let [(id, _), _, ..] = users else { return None };
    let users: Vec<_> = users.iter().map(|(id, what)| format!("{what} of server {id}")).collect();
    let what = format!("port {port} of {host} is used twice: {}", users.join(", "));
    let what = what.replace("its ", "the ");
    Some(Found::error(Subject::server(*id), what))
}

/// Ports of this machine that an outgoing connection may take, in one finding.
fn ephemeral(facts: &Facts, uses: &BTreeMap<(String, u16), Vec<Use>>) -> Option<Found> {
    let (low, high) = facts.machine.ephemeral?;
    let is_here = |host: &str| {
        let addresses = facts.hosts.get(host).and_then(|found| found.as_ref().ok());
        addresses.is_some_and(|addresses| addresses.iter().any(|address| address.is_here))
    };
    let taken =
        uses.iter().filter(|((host, port), _)| (low..=high).contains(port) && is_here(host));
    let evidence: Vec<_> = taken
        .flat_map(|((host, port), users)| users.iter().map(move |user| (host, port, user)))
        .map(|(host, port, (id, what))| {
            let at = HostPort { host: host.clone(), port: *port };
            Evidence::new(format!("server {id}"), format!("{what} {at}"))
        })
        .collect();
    if evidence.is_empty() {
        return None;
    }
    let what = format!(
        "{} port(s) of servers here lie between {low} and {high}, from where outgoing connections get theirs",
        evidence.len()
    );
    Some(Found::warning(Subject::host("this host"), what).seen_all(evidence))
}

fn address_wildcard(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files().filter(|(_, cfg)| !cfg.alone) {
        for member in cfg.membership.members() {
            let host = &member.election_address().host;
            if host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
                let what = format!(
                    "the host of server {} is {host}, to which no server can dial",
                    member.id
                );
                let subject = Subject::file(&file.path, Some(member.id));
                found.push(Found::error(subject.key(format!("server.{}", member.id)), what));
            }
        }
    }
    found
}

fn addresses<'a>(facts: &'a Facts, host: &str) -> Option<&'a [Address]> {
    facts.hosts.get(host)?.as_ref().ok().map(Vec::as_slice)
}

fn address_loopback(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, cfg) in facts.read_files().filter(|(_, cfg)| !cfg.alone) {
        let loopback = |host: &str| -> Option<bool> {
            let known = addresses(facts, host)?;
            Some(!known.is_empty() && known.iter().all(|address| address.ip.is_loopback()))
        };
        let hosts = cfg.membership.members().iter();
        let hosts: Vec<_> =
            hosts.map(|member| (member.id, member.election_address().host.clone())).collect();
        let elsewhere = hosts.iter().find(|(_, host)| {
            loopback(host) == Some(false)
                && addresses(facts, host)
                    .is_some_and(|known| known.iter().all(|address| !address.is_here))
        });
        let Some((_, other)) = elsewhere else { continue };
        for (id, host) in hosts.iter().filter(|(_, host)| loopback(host) == Some(true)) {
            let shown: Vec<_> = addresses(facts, host)
                .into_iter()
                .flatten()
                .map(|address| address.ip.to_string())
                .collect();
            let what = format!(
                "the host of server {id}, {host}, is {} here, while {other} is another machine",
                shown.join(", ")
            );
            let subject = Subject::file(&file.path, Some(*id)).key(format!("server.{id}"));
            found.push(Found::error(subject, what));
        }
    }
    found
}

fn host_unresolved(facts: &Facts) -> Vec<Found> {
    let Some(membership) = memberships(facts).next() else { return Vec::new() };
    let hosts = membership.members().iter();
    let hosts: Vec<_> = hosts.map(|member| (member.id, &member.election_address().host)).collect();
    let failed: Vec<_> = hosts
        .iter()
        .filter_map(|(id, host)| Some((id, host, facts.hosts.get(*host)?.as_ref().err()?)))
        .collect();
    let level = if failed.len() == hosts.len() { Level::Error } else { Level::Warning };
    failed
        .into_iter()
        .map(|(id, host, why)| {
            let what = format!("{host}, the host of server {id}, has no address here");
            Found::new(level, Subject::server(*id), what).seen("this host's resolver", why.clone())
        })
        .collect()
}

fn host_many(facts: &Facts) -> Vec<Found> {
    let Some(membership) = memberships(facts).next() else { return Vec::new() };
    let mut found = Vec::new();
    for member in membership.members() {
        let host = &member.election_address().host;
        let known = addresses(facts, host).unwrap_or_default();
        let four = known.iter().filter(|address| address.ip.is_ipv4()).count();
        let of_one_family = four.max(known.len() - four);
        if of_one_family > 1 && !known.iter().any(|address| address.is_here) {
            let shown: Vec<_> = known.iter().map(|address| address.ip.to_string()).collect();
            let what = format!("{host} has several addresses here: {}", shown.join(", "));
            found.push(Found::notice(Subject::server(member.id), what));
        }
    }
    found
}
