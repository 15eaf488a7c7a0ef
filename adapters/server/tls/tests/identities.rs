//! Who may be which server.

use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_tls::{IdentityMode, Named, PeerNames, Verdict, judge};

fn membership() -> Membership {
    let lines = "server.1=zk1.test:2888:3888\nserver.2=zk2.test:2888:3888|10.0.0.2:2888:3888\n\
                 server.3=[::ffff:10.0.0.3]:2888:3888:observer\nversion=0";
    Membership::parse(lines).unwrap()
}

fn names(hosts: &[&str]) -> PeerNames {
    let mut names = PeerNames::default();
    for host in hosts {
        match host.parse() {
            Ok(number) => names.addresses.push(number),
            Err(_) => names.hosts.push((*host).to_owned()),
        }
    }
    names
}

fn common(name: &str) -> PeerNames {
    PeerNames { common_name: Some(name.to_owned()), ..PeerNames::default() }
}

#[test]
fn a_name_is_one_of_a_host_or_not() {
    let named = |host: &str, by: &[&str]| names(by).names(host);
    for (host, by, expected) in [
        ("zk1.test", "ZK1.Test", Some(Named::Itself)),
        ("zk1.test.", "zk1.test", Some(Named::Itself)),
        ("zk1.test", "zk1.test.", Some(Named::Itself)),
        ("zk1.test", "*.test", Some(Named::ByWildcard)),
        ("zk1.a.test", "*.test", None),
        ("test", "*.test", None),
        (".test", "*.test", None),
        ("zk1.test", "zk*.test", None),
        ("zk1.test", "*", None),
        ("zk1.test", "*.", None),
        ("zk1.test", "zk1.test.evil", None),
        ("", "", None),
        ("10.0.0.3", "10.0.0.3", Some(Named::Itself)),
        ("::ffff:10.0.0.3", "10.0.0.3", Some(Named::Itself)),
        ("fd00::1", "fd00:0::0:1", Some(Named::Itself)),
        ("10.0.0.3", "10.0.0.30", None),
    ] {
        assert_eq!(named(host, &[by]), expected, "{host:?} by {by:?}");
    }
    // A number in the place of a name is none.
    let text = PeerNames { hosts: vec!["10.0.0.3".to_owned()], ..PeerNames::default() };
    assert_eq!(text.names("10.0.0.3"), None);
    assert_eq!(named("zk1.test", &["*.test", "zk1.test"]), Some(Named::Itself));
    // The common name counts where there is no other.
    assert_eq!(common("zk1.test").names("zk1.test"), Some(Named::Itself));
    assert_eq!(common("10.0.0.3").names("10.0.0.3"), Some(Named::Itself));
    let both = PeerNames { common_name: Some("zk1.test".to_owned()), ..names(&["zk2.test"]) };
    assert_eq!(both.names("zk1.test"), None);
}

#[test]
fn a_certificate_is_for_the_servers_whose_hosts_it_names() {
    use IdentityMode::{Id, Member, Off, Warn};
    let ids = |ids: &[i64]| PeerNames {
        ids: ids.iter().copied().map(ServerId).collect(),
        ..PeerNames::default()
    };
    let table = [
        (Off, 1, names(&["zk2.test"]), true),
        (Member, 1, names(&["zk1.test"]), true),
        (Member, 1, names(&["zk2.test"]), false),
        (Member, 1, names(&[]), false),
        (Member, 1, common("zk1.test"), true),
        (Member, 1, names(&["*.test"]), true),
        (Member, 2, names(&["10.0.0.2"]), true),
        (Member, 2, names(&["zk1.test", "zk2.test", "10.0.0.3"]), true),
        (Member, 3, names(&["10.0.0.3"]), true),
        // Strangers: as long as it is no member's certificate.
        (Member, 9, names(&["zk9.test"]), true),
        (Member, 9, names(&["*.test"]), true),
        (Member, 9, names(&["zk1.test"]), false),
        (Member, i64::MAX, names(&["zk9.test"]), true),
        (Member, i64::MAX, names(&["zk1.test"]), false),
        (Member, -1, names(&["zk1.test"]), false),
        (Id, 1, ids(&[1]), true),
        (Id, 1, ids(&[2]), false),
        (Id, 1, ids(&[2, 1]), true),
        (Id, 1, names(&["zk1.test"]), false),
        (Id, 9, ids(&[9]), true),
        (Id, 9, names(&["zk9.test"]), false),
        (Id, i64::MAX, ids(&[1]), false),
        (Id, i64::MAX, names(&["zk9.test"]), true),
        (Id, i64::MAX, names(&["zk1.test"]), false),
    ];
    for (mode, claimed, names, allowed) in table {
        let memberships = [membership()];
        let verdict = judge(Some(ServerId(claimed)), &names, &memberships, mode);
        let story = format!("{mode:?}, {claimed}: {names:?}");
        assert_eq!(verdict == Verdict::Allowed, allowed, "{story}");
        assert_eq!(matches!(verdict, Verdict::Refused(_)), !allowed, "{story}");
        if mode == Member {
            let told = judge(Some(ServerId(claimed)), &names, &memberships, Warn);
            assert_eq!(matches!(told, Verdict::Told(_)), !allowed, "warn: {story}");
        }
    }
}

#[test]
fn a_refusal_says_whose_certificate_it_is() {
    let verdict = judge(
        Some(ServerId(1)),
        &names(&["zk2.test", "10.0.0.3"]),
        &[membership()],
        IdentityMode::Member,
    );
    let Verdict::Refused(mismatch) = verdict else { panic!("{verdict:?}") };
    let said = "claims 1; certificate names zk2.test, 10.0.0.3, which are of 2, 3";
    assert_eq!(mismatch.to_string(), said);
    let long: Vec<String> = (0..1000).map(|n| format!("h{n}.{}", "x".repeat(200))).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    assert!(names(&long).to_string().len() < 500);
    assert_eq!(names(&["a\nb\u{1b}c"]).to_string(), "a?b?c");
}

/// A change of the membership that is on its way counts beside what is in force.
#[test]
fn a_host_of_either_membership_will_do() {
    let next = Membership::parse("server.1=moved.test:2888:3888\nversion=1").unwrap();
    for (host, allowed) in [("zk1.test", true), ("moved.test", true), ("zk2.test", false)] {
        let memberships = [membership(), next.clone()];
        let verdict = judge(Some(ServerId(1)), &names(&[host]), &memberships, IdentityMode::Member);
        assert_eq!(verdict == Verdict::Allowed, allowed, "{host}");
    }
}

/// No two ids are satisfied by one certificate unless it names hosts of both; wildcards apart.
#[test]
fn whatever_the_names_no_certificate_is_for_two_members_unless_it_names_both() {
    let seed =
        std::env::var("QUORATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7_u64);
    println!("QUORATE_SEED={seed}");
    let mut state = seed;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let all =
        ["zk1.test", "ZK1.TEST.", "zk2.test", "10.0.0.2", "10.0.0.3", "zk4.test", "a.b", "1.2.3.4"];
    for _ in 0..5_000 {
        let picked: Vec<&str> = (0..random(4)).map(|_| all[random(all.len())]).collect();
        let certificate = names(&picked);
        let memberships = [membership()];
        let satisfied: Vec<i64> = (1..=9)
            .filter(|id| {
                let id = Some(ServerId(*id));
                judge(id, &certificate, &memberships, IdentityMode::Member) == Verdict::Allowed
            })
            .collect();
        let of = |id: i64| match id {
            1 => picked.iter().any(|name| name.to_lowercase().starts_with("zk1.test")),
            2 => picked.iter().any(|name| ["zk2.test", "10.0.0.2"].contains(name)),
            3 => picked.contains(&"10.0.0.3"),
            _ => ![1, 2, 3].into_iter().any(|id| match id {
                1 => picked.iter().any(|name| name.to_lowercase().starts_with("zk1.test")),
                2 => picked.iter().any(|name| ["zk2.test", "10.0.0.2"].contains(name)),
                _ => picked.contains(&"10.0.0.3"),
            }),
        };
        let expected: Vec<i64> = (1..=9).filter(|id| of(*id)).collect();
        assert_eq!(satisfied, expected, "{picked:?}");
    }
}

/// CVE-2026-24281: ZooKeeper looked up backwards what an address is called, so whoever holds that zone could pass for any
/// server. Here a name is compared with what the configuration calls a host, and nothing is looked up.
#[test]
fn a_name_to_which_an_address_leads_backwards_is_none_of_its_host() {
    let names = PeerNames { hosts: vec!["localhost".to_owned()], ..PeerNames::default() };
    for host in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(names.names(host), None, "{host}");
    }
    let numbers = PeerNames { addresses: vec![[127, 0, 0, 1].into()], ..PeerNames::default() };
    assert_eq!(numbers.names("localhost"), None, "nor forwards");
}
