//! Faults of certificates, in stores or as they are served.

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{Distrust, Facts, Held, Served, Stores, diagnose};

use crate::ensemble::{BASICS, THREE, file, srvr, well, words};
use crate::planted::{Plant, plant};
use crate::security::{DAY, NOW, STORES, TLS, held, of_ours, stores};

const ONE: [ServerId; 1] = [ServerId(1)];
const ALL: [ServerId; 3] = [ServerId(1), ServerId(2), ServerId(3)];

/// A certificate of its own of one server, that names its host.
fn of(id: i64) -> Held {
    let (members, der) = (vec![ServerId(id)], id.to_be_bytes().to_vec());
    Held { subject: format!("CN=zk{id}"), members, der, ..held(200, 365) }
}

/// Server 1 has a store with this; the members are of ZooKeeper 3.9.5.
fn with(own: Held) -> Facts {
    stores(|stores| stores.own = vec![own])
}

fn served(id: i64, leaf: Held) -> Served {
    let address = HostPort { host: format!("zk{id}"), port: 3888 };
    Served { id: ServerId(id), address, chain: vec![leaf] }
}

/// Members of these versions, in the order of ids.
fn of_versions(facts: Facts, versions: [&str; 3]) -> Facts {
    let mut facts = facts;
    for (member, version) in facts.members.iter_mut().zip(versions) {
        let text = srvr("follower", 0x1_0000_0010).replace("3.9.5-293c", version);
        member.client.as_mut().unwrap().answer = Ok(words(&text, ""));
    }
    facts
}

fn with_line(facts: Facts, line: &str) -> Facts {
    Facts { files: vec![file(1, &format!("{BASICS}{STORES}{TLS}{line}\n{THREE}"))], ..facts }
}

fn nameless() -> Held {
    Held { members: vec![ServerId(2)], ..of(1) }
}

pub(crate) const PLANTS: &[Plant] = &[
    plant("live.tls-mismatch", Warning, "server 1", "another certificate of CN=zk1 than", || {
        Facts { served: vec![served(1, Held { der: vec![9], ..of(1) })], ..with(of(1)) }
    }),
    plant("live.tls-chain", Error, "server 1", "server 2 does not trust its", || {
        let (seen, file) = ("zk1.cfg".to_owned(), "zk2.cfg".into());
        let why = "unknown-authority".to_owned();
        let distrust = Distrust { of: ServerId(1), seen, by: ServerId(2), file, why };
        Facts { distrusted: vec![distrust], ..well() }
    }),
    plant(
        "live.tls-name",
        Error,
        "server 1, zk1.cfg, key store",
        "CN=zk1 names no host of server.1: server 2 refuse(s) it",
        || of_versions(with(nameless()), ["3.9.5-1", "3.8.0-1", "3.9.5-1"]),
    ),
    plant("live.tls-name", Error, "server 1", "server 2, server 3 refuse(s) it", || {
        of_ours(with(nameless()))
    }),
    plant("live.tls-name", Warning, "server 1", "no host of server.1", || with(nameless())),
    plant("live.tls-name", Warning, "zk1.cfg", "no host of any member", || {
        stores(|stores| (stores.id, stores.own) = (None, vec![Held { members: vec![], ..of(1) }]))
    }),
    plant("live.tls-name", Warning, "server 3, as it is served", "no host of server.3", || Facts {
        served: vec![served(3, nameless())],
        ..well()
    }),
    plant("live.tls-eku", Error, "server 1", "only accept: it lacks clientAuth", || {
        with(Held { dials: false, ..of(1) })
    }),
    plant("live.tls-eku", Error, "server 2, as it is served", "lacks serverAuth", || Facts {
        served: vec![served(2, Held { accepts: false, ..of(2) })],
        ..well()
    }),
    plant("live.tls-weak", Warning, "server 1", "is signed with SHA-1", || {
        with(Held { weakness: Some("is signed with SHA-1 with RSA".to_owned()), ..of(1) })
    }),
    plant("live.tls-weak", Warning, "ssl.quorum.protocol", "TLS 1.2 alone", || {
        with_line(well(), "ssl.quorum.protocol=TLSv1.2")
    }),
    plant("live.tls-shared", Notice, "server 1", "names hosts of servers 1, 2, 3", || {
        with(Held { members: ALL.to_vec(), ..of(1) })
    }),
    plant("live.tls-shared", Notice, "the ensemble", "servers 1, 2 have one certificate", || {
        Facts { served: vec![served(2, of(1))], ..with(of(1)) }
    }),
    plant(
        "live.tls-wildcard-binding",
        Notice,
        "server 1",
        "covers hosts of servers 1, 2, 3",
        || with(Held { members: ALL.to_vec(), by_wildcard: ALL.to_vec(), ..of(1) }),
    ),
    plant("live.tls-expired", Error, "server 3, as it is served", "ended 2 days ago", || Facts {
        served: vec![served(3, Held { to: NOW - 2 * DAY, ..of(3) })],
        now: Some(NOW),
        ..well()
    }),
];

fn told(facts: &Facts) -> Vec<String> {
    let found = diagnose(facts).into_iter().filter(|found| found.rule.starts_with("live.tls"));
    found.map(|found| format!("{} {}: {}", found.level, found.rule, found.finding)).collect()
}

#[test]
fn a_certificate_of_each_server_that_is_served_as_its_store_has_it_is_no_fault() {
    let stores = |id: i64| Stores {
        id: Some(ServerId(id)),
        file: format!("zk{id}.cfg").into(),
        own: vec![of(id)],
        ..Stores::default()
    };
    let facts = Facts {
        stores: (1..=3).map(stores).collect(),
        served: (1..=3).map(|id| served(id, of(id))).collect(),
        now: Some(NOW),
        ..well()
    };
    assert_eq!(told(&facts), [""; 0]);
    // A wildcard that covers one.
    assert_eq!(told(&with(Held { by_wildcard: ONE.to_vec(), ..of(1) })), [""; 0]);
}

#[test]
fn what_is_in_the_store_and_is_served_is_told_once() {
    let expired = Held { to: NOW - 1, dials: false, ..of(1) };
    let facts = Facts { served: vec![served(1, expired.clone())], ..with(expired) };
    assert_eq!(told(&facts).len(), 2, "{:?}", told(&facts));
}

#[test]
fn ids_in_certificates_bind_where_they_count() {
    let all = || with(Held { members: ALL.to_vec(), ..of(1) });
    assert_eq!(told(&with_line(all(), "quorate.ssl.identity=id")), [""; 0]);
    assert_eq!(told(&with_line(all(), "quorate.ssl.identity=member")).len(), 1);
}

#[test]
fn tls_1_2_is_no_fault_where_a_member_knows_no_other() {
    for versions in [["3.9.5-1", "3.8.4-1", "3.9.5-1"], ["3.9.5-1", "3.9.1-1", "3.9.5-1"]] {
        let facts = of_versions(with_line(well(), "ssl.quorum.protocol=TLSv1.2"), versions);
        assert_eq!(told(&facts), [""; 0], "{versions:?}");
    }
    let both = with_line(well(), "ssl.quorum.enabledProtocols=TLSv1.2,TLSv1.3");
    assert_eq!(told(&both), [""; 0]);
}

/// A member that is known not to look, since its file says so, refuses nobody.
#[test]
fn names_are_an_error_only_for_who_looks() {
    let looks_not = with_line(of_ours(with(nameless())), "ssl.quorum.hostnameVerification=false");
    let level = |facts: &Facts| {
        let found = diagnose(facts).into_iter().find(|found| found.rule == "live.tls-name");
        found.unwrap().level
    };
    assert_eq!(level(&looks_not), Error, "the others do");
    let files = (1..=3).map(|id| {
        let text = format!("{BASICS}{STORES}{TLS}ssl.quorum.hostnameVerification=false\n{THREE}");
        file(id, &text)
    });
    assert_eq!(level(&Facts { files: files.collect(), ..of_ours(with(nameless())) }), Warning);
}
