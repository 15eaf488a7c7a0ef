//! Faults of what protects an ensemble: TLS, logins, secrets.

use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{Facts, Held, Port, Readable, Silence, Stores, Told, Words, diagnose};

use crate::ensemble::{BASICS, THREE, file, follower, leader, srvr, well, with_files, words};
use crate::planted::{Plant, plant};

pub(crate) const STORES: &str = "ssl.quorum.keyStore.location=/own.p12\nssl.quorum.trustStore.location=/trust.p12\n\
                      fips-mode=false\nquorate.jaas.file=/jaas.conf\n";
pub(crate) const TLS: &str = "sslQuorum=true\n";
const BOTH: &str = "portUnification=true\n";
const SASL: [&str; 4] = [
    "",
    "quorum.auth.enableSasl=true\n",
    "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\n",
    "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\n",
];

/// Three files with these lines.
fn lines(lines: [&str; 3]) -> Facts {
    let files = (1..).zip(lines);
    with_files(
        files.map(|(id, line)| file(id, &format!("{BASICS}{STORES}{line}{THREE}"))).collect(),
    )
}

/// The first file with these lines, of a server of this version.
fn of_version(version: &str, line: &str) -> Facts {
    let text = srvr("follower", 0x1_0000_0010).replace("3.9.5-293c", version);
    let mut facts = with_files(vec![file(1, &format!("{BASICS}{line}{THREE}"))]);
    facts.members[0].client.as_mut().unwrap().answer = Ok(words(&text, ""));
    facts
}

fn tls_with(more: &str) -> Facts {
    with_files(vec![file(1, &format!("{BASICS}{STORES}{TLS}{more}\n{THREE}"))])
}

/// A certificate that has so many days left of so many.
pub(crate) fn held(left: i64, life: i64) -> Held {
    let subject = "CN=zk1".to_owned();
    let (from, to) = (NOW + (left - life) * DAY, NOW + left * DAY);
    let (dials, accepts, members) = (true, true, vec![ServerId(1)]);
    Held { subject, from, to, dials, accepts, members, ..Held::default() }
}

pub(crate) const NOW: i64 = 1_800_000_000;
pub(crate) const DAY: i64 = 86_400;

pub(crate) fn stores(change: impl FnOnce(&mut Stores)) -> Facts {
    let mut stores = Stores {
        id: Some(ServerId(1)),
        file: "zk1.cfg".into(),
        own: vec![held(200, 365)],
        trusted: vec![Held { subject: "CN=authority".to_owned(), ..held(3000, 3650) }],
        ..Stores::default()
    };
    change(&mut stores);
    Facts { stores: vec![stores], now: Some(NOW), ..well() }
}

/// The same where all members that answer are of ours.
pub(crate) fn of_ours(mut facts: Facts) -> Facts {
    for member in &mut facts.members {
        let text = srvr("follower", 0x1_0000_0010).replace("3.9.5-293c", "3.8.0-quorate-0.1.0");
        member.client.as_mut().unwrap().answer = Ok(words(&text, ""));
    }
    facts
}

pub(crate) const PLANTS: &[Plant] = &[
    plant("cfg.tls-store", Error, "server 1, zk1.cfg", "own.p12: the password is wrong", || {
        stores(|stores| stores.problems.push("/own.p12: the password is wrong".to_owned()))
    }),
    plant("cfg.tls-store", Error, "server 1, zk1.cfg", "CN=zk1 does not hold yet", || {
        stores(|stores| stores.own = vec![held(370, 365)])
    }),
    plant("cfg.tls-java-cannot-read", Warning, "server 1, zk1.cfg", "not PKCS#8", || {
        stores(|stores| stores.java_cannot.push("the key is not PKCS#8".to_owned()))
    }),
    plant("cfg.tls-java-cannot-read", Notice, "server 1, zk1.cfg", "not PKCS#8", || {
        of_ours(stores(|stores| stores.java_cannot.push("the key is not PKCS#8".to_owned())))
    }),
    plant(
        "cfg.secret-mode",
        Warning,
        "server 1, zk1.cfg, ssl.quorum.keyStore.passwordPath",
        "/secret may be read",
        || {
            let (file, path) = ("zk1.cfg".into(), "/secret".into());
            let key = "ssl.quorum.keyStore.passwordPath".to_owned();
            Facts {
                readable: vec![Readable { id: Some(ServerId(1)), file, key, path, mode: 0o644 }],
                ..well()
            }
        },
    ),
    plant(
        "live.tls-expired",
        Error,
        "server 1, zk1.cfg, key store",
        "CN=zk1 ended 2 days ago",
        || stores(|stores| stores.own = vec![held(-2, 365)]),
    ),
    plant(
        "live.tls-expired",
        Warning,
        "server 1, zk1.cfg, trust store",
        "CN=zk1 ended 24 h ago",
        || stores(|stores| stores.trusted.push(held(-1, 365))),
    ),
    plant(
        "live.tls-expiring",
        Warning,
        "server 1, zk1.cfg, key store",
        "CN=zk1 ends in 29 days",
        || stores(|stores| stores.own = vec![held(29, 365)]),
    ),
    plant(
        "live.tls-expiring",
        Error,
        "server 1, zk1.cfg, key store",
        "CN=zk1 ends in 2 days",
        || stores(|stores| stores.own = vec![held(2, 365)]),
    ),
    plant("live.tls-expiring", Warning, "server 1, zk1.cfg, trust store", "ends in 47 h", || {
        stores(|stores| stores.trusted = vec![Held { to: NOW + 2 * DAY - 1, ..held(2, 3650) }])
    }),
    plant(
        "cfg.tls-differ",
        Error,
        "server 2, zk2.cfg:11, sslQuorum",
        "with TLS, and there is none there",
        || lines(["", TLS, ""]),
    ),
    plant(
        "cfg.tls-differ",
        Error,
        "server 3, zk3.cfg",
        "without TLS, which is wanted there",
        || lines([TLS, TLS, BOTH]),
    ),
    plant("cfg.tls-differ", Error, "server 2", "no version of TLS in common", || {
        let new = format!("{TLS}ssl.quorum.enabledProtocols=TLSv1.3\n");
        lines([&new, &format!("{TLS}ssl.quorum.protocol=TLSv1.2\n"), &new])
    }),
    plant("cfg.tls-differ", Error, "server 3", "no cipher suite in common", || {
        let one = format!("{TLS}ssl.quorum.ciphersuites=TLS_AES_128_GCM_SHA256\n");
        let other = format!("{TLS}ssl.quorum.ciphersuites=TLS_AES_256_GCM_SHA384\n");
        lines([&one, &one, &other])
    }),
    plant("cfg.tls-step", Notice, "portUnification", "step 1 of 3 is under way", || {
        lines([BOTH, "", BOTH])
    }),
    plant("cfg.tls-step", Notice, "sslQuorum", "all members are on step 2 of 3", || {
        lines([&format!("{TLS}{BOTH}"); 3])
    }),
    plant("cfg.tls-step", Notice, "sslQuorum", "on step 0 and on step 3", || lines([TLS, "", TLS])),
    plant("cfg.tls-step", Notice, "learnerRequireSasl", "SASL between servers: step 2", || {
        lines([SASL[1], SASL[2], SASL[2]])
    }),
    plant(
        "cfg.sasl-order",
        Error,
        "zk2.cfg:11, quorum.auth.learnerRequireSasl",
        "which it takes, is not",
        || lines(["", "quorum.auth.learnerRequireSasl=true\n", ""]),
    ),
    plant(
        "cfg.sasl-order",
        Error,
        "zk1.cfg:12, quorum.auth.serverRequireSasl",
        "learnerRequireSasl, which",
        || lines([&format!("{}quorum.auth.serverRequireSasl=true\n", SASL[1]), SASL[1], SASL[1]]),
    ),
    plant(
        "cfg.sasl-order",
        Error,
        "server 2, zk2.cfg",
        "step 3 of SASL, and server 1 (zk1.cfg) on step 1",
        || lines([SASL[1], SASL[3], SASL[1]]),
    ),
    plant(
        "cfg.names-unchecked",
        Warning,
        "ssl.quorum.hostnameVerification",
        "not looked at",
        || tls_with("ssl.quorum.hostnameVerification=false"),
    ),
    plant("cfg.names-unchecked", Warning, "ssl.quorum.clientAuth", "without a certificate", || {
        tls_with("ssl.quorum.clientAuth=want")
    }),
    plant("cfg.names-unchecked", Warning, "quorate.ssl.identity", "of those who dial", || {
        tls_with("quorate.ssl.identity=off")
    }),
    plant(
        "cfg.names-unchecked",
        Warning,
        "server 1, zk1.cfg, fips-mode",
        "ZooKeeper 3.9.5",
        || of_version("3.9.5-293c", &format!("{STORES}{TLS}").replace("fips-mode=false\n", "")),
    ),
    plant("cfg.sasl-fips", Error, "server 1, zk1.cfg, fips-mode", "ZooKeeper 3.9.5", || {
        of_version("3.9.5-293c", SASL[1])
    }),
    plant("cfg.sasl-fips", Error, "server 1, zk1.cfg:8, fips-mode", "fips-mode is on", || {
        of_version("3.8.6-1", &format!("{}fips-mode=true\n", SASL[1]))
    }),
    plant("live.exposed-quorum", Warning, "server 3", "it takes learners", || {
        open_at("203.0.113.7")
    }),
    plant(
        "live.exposed-election",
        Warning,
        "the ensemble",
        "servers 1, 2, 3 answer strangers at their election ports",
        || {
            let mut facts = open_at("2001:db8::7");
            facts.members[2].quorum = None;
            facts
        },
    ),
    plant("live.exposed-election", Warning, "server 1", "its election port answers", || {
        let mut facts = open_at("203.0.113.7");
        facts.members[1].election.as_mut().unwrap().bare = None;
        facts.members[2].election.as_mut().unwrap().answer = Err(Silence::Tls);
        facts.members[2].quorum = None;
        facts
    }),
    plant("live.exposed-client", Notice, "the ensemble", "servers 1, 2, 3 take clients", || {
        open_at("203.0.113.7")
    }),
    plant("live.exposed-admin", Warning, "server 2", "zk2:8080 answers any host", || {
        admin_at("10.0.0.2", &[], JAVA)
    }),
    plant("live.exposed-admin", Warning, "server 2", "zk2:8080 answers any host", || {
        admin_at("203.0.113.7", &[], OURS)
    }),
    plant("live.exposed-admin", Warning, "server 2", "shows secrets to every user", || {
        admin_at("127.0.0.1", &["zookeeper.ssl.quorum.keyStore.password"], JAVA)
    }),
    plant("cfg.secret-inline", Notice, "ssl.quorum.keyStore.password", "stands in it", || {
        tls_with("ssl.quorum.keyStore.password=hunter2hunter2")
    }),
];

fn zk(id: i64, port: u16) -> HostPort {
    HostPort { host: format!("zk{id}"), port }
}

/// All ports answer without TLS at this address; the leader's quorum port, too.
fn open_at(ip: &str) -> Facts {
    let mut facts = well();
    let bare = Some(ip.parse().unwrap());
    for member in &mut facts.members {
        member.election.as_mut().unwrap().bare = bare;
        member.client.as_mut().unwrap().bare = bare;
    }
    facts.members[2].quorum = Some(Port { bare, ..Port::new(zk(3, 2888), Ok(())) });
    facts
}

/// Server 2 has an admin server there, which shows these.
fn admin_at(ip: &str, secrets: &[&str], version: &str) -> Facts {
    let mut facts = well();
    let stats =
        format!("{{\"version\":\"{version}\",\"server_stats\":{{\"server_state\":\"follower\"}}}}");
    let words = Words::of_commands(b"{}", stats.as_bytes());
    let secrets = secrets.iter().map(|&name| name.to_owned()).collect();
    let told = Told { words, secrets, ..Told::default() };
    let bare = Some(ip.parse().unwrap());
    facts.members[1].client = None;
    facts.members[1].http = Some(Port { bare, ..Port::new(zk(2, 8080), Ok(told)) });
    facts
}

const JAVA: &str = "3.9.5-293c, built on 2026";
const OURS: &str = "3.8.0-quorate-0.1.0";

/// The rules of this page and their levels, of what is found.
fn told(facts: &Facts) -> Vec<String> {
    let rules = ["cfg.tls", "cfg.sasl", "cfg.names", "cfg.secret", "cfg.timing"];
    let found = diagnose(facts).into_iter();
    let found = found.filter(|found| rules.iter().any(|rule| found.rule.starts_with(rule)));
    found.map(|found| format!("{} {}", found.level, found.rule)).collect()
}

#[test]
fn each_step_to_tls_and_to_sasl_and_the_way_between_two_is_no_fault() {
    let all = format!("{TLS}{BOTH}");
    for way in [["", BOTH, &all, TLS], SASL] {
        for pair in way.windows(2) {
            let [from, to] = pair else { unreachable!() };
            for facts in [lines([from, from, to]), lines([to, from, to])] {
                assert_eq!(told(&facts), ["notice cfg.tls-step"], "{from} to {to}");
            }
        }
        assert_eq!(told(&lines([way[0]; 3])), [""; 0]);
        assert_eq!(told(&lines([way[3]; 3])), [""; 0], "who has arrived is told nothing");
    }
}

#[test]
fn the_next_step_is_not_said_to_be_safe_without_the_files_of_all() {
    let next = |facts: &Facts| {
        let found = diagnose(facts).into_iter().find(|found| found.rule == "cfg.tls-step").unwrap();
        found.todo.join("; ")
    };
    let all = next(&lines([BOTH; 3]));
    assert!(all.contains("safe, one server at a time: set sslQuorum=true"), "{all}");
    let mut facts = lines([BOTH; 3]);
    facts.files.pop();
    let some = next(&facts);
    assert!(some.contains("not known to be safe without the files of servers 3"), "{some}");
    let apart = next(&lines(["", TLS, TLS]));
    assert!(apart.starts_with("not safe: servers on step 0 first"), "{apart}");
}

#[test]
fn a_server_of_ours_looks_at_names_and_logs_in_whatever_fips_mode_says() {
    for line in [TLS, SASL[3]] {
        let facts = of_version(
            "3.8.0-quorate-0.1.0",
            &format!("{STORES}{line}").replace("=false", "=true"),
        );
        assert_eq!(told(&facts), [""; 0], "{line}");
    }
    assert_eq!(
        told(&of_version("3.8.0-5a02", &format!("{TLS}ssl.quorum.clientAuth=need\n"))),
        [""; 0]
    );
}

#[test]
fn a_password_is_in_no_finding() {
    let found = diagnose(&tls_with("ssl.quorum.keyStore.password=hunter2hunter2"));
    assert!(found.iter().any(|found| found.rule == "cfg.secret-inline"));
    assert!(!format!("{found:?}").contains("hunter2"));
    let members = vec![follower(1), follower(2), leader(3)];
    let facts = Facts { members, ..well() };
    assert_eq!(told(&facts), [""; 0]);
}

#[test]
fn stores_that_hold_for_long_or_are_replaced_every_day_are_no_fault() {
    for own in [held(200, 365), held(31, 365), held(29, 60)] {
        let facts = stores(|stores| stores.own = vec![own]);
        assert!(!diagnose(&facts).iter().any(|found| found.rule.starts_with("live.tls")));
    }
    // A day, of which ten hours are left.
    let of_a_day = Held { from: NOW - 14 * 3600, to: NOW + 10 * 3600, ..held(1, 1) };
    let facts = stores(|stores| stores.own = vec![of_a_day]);
    assert!(!diagnose(&facts).iter().any(|found| found.rule.starts_with("live.tls")));
}

/// The rules of open ports that fire.
fn exposed(facts: &Facts) -> Vec<&'static str> {
    let found = diagnose(facts).into_iter().map(|found| found.rule);
    found.filter(|rule| rule.starts_with("live.exposed")).collect()
}

#[test]
fn ports_that_neighbours_alone_reach_are_not_exposed() {
    for ip in ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "100.127.0.1", "169.254.0.1"] {
        assert_eq!(exposed(&open_at(ip)), [""; 0], "{ip}");
    }
    for ip in ["::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1"] {
        assert_eq!(exposed(&open_at(ip)), [""; 0], "{ip}");
    }
    for ip in ["100.128.0.1", "172.32.0.1", "::ffff:203.0.113.1", "2001:db8::1"] {
        // What the quorum port gives away is more, and comes of the same lack.
        assert_eq!(exposed(&open_at(ip)), ["live.exposed-quorum", "live.exposed-client"], "{ip}");
    }
}

#[test]
fn ports_that_a_fence_tls_or_a_proof_keeps_are_not_exposed() {
    let mut facts = open_at("203.0.113.7");
    let lines =
        "quorate.quorumAllow=members\nenforce.auth.enabled=true\nenforce.auth.schemes=sasl\n";
    facts.files = (1..=3).map(|id| file(id, &format!("{BASICS}{lines}{THREE}"))).collect();
    assert_eq!(exposed(&facts), [""; 0]);
    let mut facts = open_at("203.0.113.7");
    for member in &mut facts.members {
        member.election.as_mut().unwrap().answer = Err(Silence::Tls);
        member.client = None;
    }
    facts.members[2].quorum.as_mut().unwrap().answer = Err(Silence::Tls);
    assert_eq!(exposed(&facts), [""; 0]);
    for facts in [admin_at("127.0.0.1", &[], JAVA), admin_at("10.0.0.2", &[], OURS)] {
        assert_eq!(exposed(&facts), [""; 0]);
    }
}

#[test]
fn what_an_open_election_port_tells_is_shown() {
    let mut facts = open_at("203.0.113.7");
    facts.members[2].quorum = None;
    let found = diagnose(&facts).into_iter().find(|f| f.rule == "live.exposed-election").unwrap();
    let seen = &found.evidence[0];
    assert_eq!(seen.source, "zk1:3888 at 203.0.113.7");
    assert_eq!(
        seen.value,
        "FOLLOWING, votes for server 3, round 1; members at zk1:3888, zk2:3888, zk3:3888"
    );
}

/// Whoever speaks TLS is there, though it tells nothing.
#[test]
fn ports_that_speak_tls_are_not_dead() {
    let mut members = vec![follower(1), follower(2), leader(3)];
    for member in &mut members {
        member.election.as_mut().unwrap().answer = Err(Silence::Tls);
        member.client = None;
    }
    // No file says that they do.
    let facts = Facts { before: members.clone(), members, seconds_between: 5.0, ..well() };
    let found = diagnose(&facts);
    assert!(found.iter().all(|found| found.level > Warning), "{found:#?}");
}
