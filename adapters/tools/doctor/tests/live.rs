//! Faults of an ensemble as it answers.

use quorate_core::address::HostPort;
use quorate_core::membership::Role;
use quorate_core::vote::ServerState;
use quorate_doctor::Level::{Error, Notice, Warning};
use quorate_doctor::{
    Facts, Member, Port, Silence, VULNERABILITIES, Version, diagnose, first_without,
    vulnerabilities_of,
};

use crate::ensemble::{
    BASICS, NOT_SERVING, THREE, config, file, follower, heard, leader, looking, member, silent,
    srvr, twice, well, words,
};
use crate::planted::{Plant, plant};

/// One that says that it does not serve.
fn idle(mut member: Member) -> Member {
    member.client.as_mut().unwrap().answer = Ok(words(NOT_SERVING, NOT_SERVING));
    member
}

fn saying(id: i64, state: ServerState, leader: i64, epoch: i64) -> Member {
    let mode = if state == ServerState::Leading { "leader" } else { "follower" };
    member(id, Ok(heard(state, leader, epoch, 1, &config())), words(&srvr(mode, 0x1_0000_0010), ""))
}

/// Everybody's client port, with one telling these lines of `mntr`.
fn mntr(lines: &str) -> Facts {
    let mut facts = well();
    let words = words(&srvr("follower", 0x1_0000_0010), lines);
    facts.members[1].client.as_mut().unwrap().answer = Ok(words);
    facts
}

/// A follower and the leader's last transactions, before and now.
fn at(before: [i64; 2], now: [i64; 2]) -> Facts {
    let of = |zxids: [i64; 2]| {
        let mut members = vec![follower(1), follower(2), leader(3)];
        for (member, (zxid, mode)) in
            members.iter_mut().skip(1).zip(zxids.into_iter().zip(["follower", "leader"]))
        {
            member.client.as_mut().unwrap().answer = Ok(words(&srvr(mode, zxid), ""));
        }
        members
    };
    Facts { before: of(before), ..Facts { members: of(now), seconds_between: 5.0, ..well() } }
}

fn busy(requests: u32) -> Facts {
    let mut members = vec![follower(1), follower(2), leader(3)];
    let text = srvr("leader", 0x1_0000_0010);
    let text = text.replace("Outstanding: 0", &format!("Outstanding: {requests}"));
    members[2].client.as_mut().unwrap().answer = Ok(words(&text, ""));
    twice(&members)
}

fn version(id: usize, version: &str) -> Facts {
    let mut facts = well();
    let text = srvr("follower", 0x1_0000_0010).replace("3.9.5-293c", &format!("{version}-293c"));
    facts.members[id - 1].client.as_mut().unwrap().answer = Ok(words(&text, ""));
    facts
}

pub(crate) const PLANTS: &[Plant] = &[
    plant(
        "live.no-majority",
        Error,
        "the ensemble",
        "1 of 3 voters answers: a quorum takes 1 more, of servers 1, 2",
        || twice(&[silent(1, Silence::Refused), silent(2, Silence::Filtered), looking(3, 1)]),
    ),
    plant("live.no-leader", Error, "the ensemble", "no server leads", || {
        twice(&[looking(1, 1), looking(2, 1), looking(3, 1)])
    }),
    plant(
        "live.port-closed",
        Error,
        "server 1",
        "zk1:3888 is closed: nothing listens there",
        || twice(&[silent(1, Silence::Refused), follower(2), leader(3)]),
    ),
    plant("live.not-serving", Error, "server 3", "it is elected, and does not serve", || {
        let mut leader = idle(leader(3));
        let address = HostPort { host: "zk3".to_owned(), port: 2888 };
        leader.quorum = Some(Port::new(address, Err(Silence::Filtered)));
        twice(&[idle(follower(1)), idle(follower(2)), leader])
    }),
    plant("live.not-serving", Warning, "server 1", "does not serve", || {
        twice(&[idle(follower(1)), follower(2), leader(3)])
    }),
    plant("live.port-closed", Error, "server 1", "packets are dropped", || {
        twice(&[silent(1, Silence::Filtered), follower(2), leader(3)])
    }),
    plant("live.port-closed", Error, "server 1", "no route", || {
        twice(&[silent(1, Silence::NoRoute), follower(2), leader(3)])
    }),
    plant("live.port-closed", Error, "server 1", "though its client port answers", || {
        let words = words(&srvr("follower", 0x1_0000_0010), "");
        twice(&[member(1, Err(Silence::Refused), words), follower(2), leader(3)])
    }),
    plant(
        "live.two-leaders",
        Error,
        "the ensemble",
        "servers 2, 3 lead one and the same epoch",
        || twice(&[follower(1), saying(2, ServerState::Leading, 2, 1), leader(3)]),
    ),
    plant("live.two-leaders", Warning, "the ensemble", "in different epochs", || {
        twice(&[follower(1), saying(2, ServerState::Leading, 2, 4), leader(3)])
    }),
    plant("live.votes-differ", Warning, "the ensemble", "do not name the same one", || {
        twice(&[saying(1, ServerState::Following, 2, 1), follower(2), leader(3)])
    }),
    plant("live.left-out", Warning, "server 1", "while server 3 leads", || {
        twice(&[looking(1, 7), follower(2), leader(3)])
    }),
    plant("live.observer-cut", Warning, "server 1", "this observer has no leader", || {
        let mut observer = looking(1, 1);
        observer.role = Role::Observer;
        twice(&[observer, follower(2), leader(3)])
    }),
    plant("live.round-grows", Error, "server 1", "its round went from 4 to 9", || {
        let before = vec![looking(1, 4), follower(2), silent(3, Silence::Refused)];
        let members = vec![looking(1, 9), follower(2), silent(3, Silence::Refused)];
        let mut facts = Facts { members, before, seconds_between: 5.0, ..well() };
        // Two answer, and so there is a quorum; nobody leads, which would explain it.
        facts.members.pop();
        facts.before.pop();
        facts.members.push(leader(3));
        facts
    }),
    plant(
        "live.lag",
        Warning,
        "server 2",
        "900 transactions behind the leader, and was 600",
        || at([0x1_0000_0000, 0x1_0000_0000 + 600], [0x1_0000_0000, 0x1_0000_0000 + 900]),
    ),
    plant("live.lag", Error, "server 2", "200000 transactions behind", || {
        at([0x1_0000_0000, 0x1_0000_0000 + 600], [0x1_0000_0000, 0x1_0000_0000 + 200_000])
    }),
    plant("live.outstanding", Warning, "server 3", "500 requests", || busy(500)),
    plant("live.outstanding", Notice, "server 3", "50 requests", || busy(50)),
    plant("live.pending-syncs", Warning, "server 3", "11 syncs wait", || {
        let mut members = vec![follower(1), follower(2), leader(3)];
        let words = words(&srvr("leader", 0x1_0000_0010), "zk_pending_syncs\t11\n");
        members[2].client.as_mut().unwrap().answer = Ok(words);
        twice(&members)
    }),
    plant("live.sync-slow", Warning, "server 2", "took it 10.5 s; initLimit allows 20.0 s", || {
        mntr("zk_max_follower_sync_time\t10500\n")
    }),
    plant(
        "live.sync-slow",
        Warning,
        "server 2",
        "the leader's history for 12.0 s at least",
        || {
            let facts = mntr("zk_peer_state\tfollowing - synchronization - snap\n");
            Facts { before: facts.members.clone(), seconds_between: 12.0, ..facts }
        },
    ),
    plant("live.elections-slow", Warning, "server 2", "its 4 elections took 2500 ms", || {
        mntr("zk_avg_election_time\t2500.0\nzk_cnt_election_time\t4\n")
    }),
    plant("live.digest", Error, "server 2", "2 time(s)", || {
        mntr("zk_digest_mismatches_count\t2\n")
    }),
    plant("live.counter", Warning, "the ensemble", "0xc0000001", || {
        at([0x1_c000_0000; 2], [0x1_c000_0001; 2])
    }),
    plant("live.counter", Error, "the ensemble", "0xf0000001", || {
        let mut facts = at([0; 2], [0x1_f000_0001; 2]);
        facts.before.clear();
        facts
    }),
    plant("live.tree-size", Notice, "server 2", "1000001 nodes", || {
        mntr("zk_znode_count\t1000001\n")
    }),
    plant(
        "live.java-bug",
        Error,
        "server 2",
        "server 2 runs ZooKeeper 3.8.0, which acknowledges",
        || version(2, "3.8.0"),
    ),
    plant("live.java-bug", Error, "server 1", "passes a history with a hole on", || {
        version(1, "3.9.3")
    }),
    plant("live.java-bug", Notice, "server 1", "leaks file descriptors", || version(1, "3.9.4")),
    plant("live.cve", Warning, "server 1", "3.9.4, which takes a name that a reverse", || {
        version(1, "3.9.4")
    }),
    plant("live.cve", Error, "server 1", "3.8.2, which lets in whose login", || {
        let login = format!("{BASICS}quorum.auth.enableSasl=true\n{THREE}");
        Facts { files: vec![file(1, &login)], ..version(1, "3.8.2") }
    }),
    plant("live.version-mix", Notice, "the ensemble", "2 different versions", || {
        version(1, "3.9.4")
    }),
];

/// Clients are kept from a Java leader with `leaderServes=no`, and it says that it does not serve.
#[test]
fn a_leader_that_serves_no_clients_while_its_followers_do_is_no_fault() {
    let facts = twice(&[follower(1), follower(2), idle(leader(3))]);
    let found = diagnose(&facts);
    assert!(found.iter().all(|finding| finding.level > Warning), "{found:#?}");
}

#[test]
fn a_silence_that_was_heard_once_is_no_fault() {
    let before = vec![silent(1, Silence::Refused), follower(2), leader(3)];
    let facts = Facts { before, seconds_between: 5.0, ..well() };
    assert!(diagnose(&facts).iter().all(|finding| finding.level > Warning));
    let members = vec![silent(1, Silence::Refused), follower(2), leader(3)];
    let facts = Facts { members, before: Vec::new(), ..well() };
    assert!(facts.should_look_again(), "so it is asked once more");
    assert!(diagnose(&facts).iter().all(|finding| finding.level > Warning));
}

#[test]
fn one_cause_is_one_finding_with_what_comes_of_it_as_evidence() {
    let facts = twice(&[silent(1, Silence::Refused), silent(2, Silence::Filtered), looking(3, 1)]);
    let found = diagnose(&facts);
    let errors: Vec<_> = found.iter().filter(|finding| finding.level == Error).collect();
    let [one] = errors.as_slice() else { panic!("{found:#?}") };
    assert_eq!(one.rule, "live.no-majority");
    assert_eq!(one.explains, ["live.no-leader", "live.port-closed"]);
    let sources: Vec<_> = one.evidence.iter().map(|seen| seen.source.as_str()).collect();
    assert_eq!(
        sources,
        [
            "server 1 at zk1:3888",
            "server 2 at zk2:3888",
            "live.no-leader",
            "live.port-closed",
            "live.port-closed"
        ]
    );
    assert_eq!(one.evidence[1].value, "no connection in time");
}

#[test]
fn groups_and_weights_are_counted() {
    let lines = "server.1=zk1:2888:3888\nserver.2=zk2:2888:3888\nserver.3=zk3:2888:3888\n\
                 group.1=1\ngroup.2=2\ngroup.3=3\nweight.1=0\nweight.2=1\nweight.3=1\n";
    let config = format!("{}version=0", lines.replace(":3888\n", ":3888:participant\n"));
    let mut members = vec![follower(1), silent(2, Silence::Refused), silent(3, Silence::Refused)];
    let of_groups = heard(ServerState::Looking, 1, 1, 1, &config);
    members[0].election.as_mut().unwrap().answer = Ok(of_groups);
    let found = diagnose(&twice(&members));
    let lacking = found.iter().find(|finding| finding.rule == "live.no-majority").unwrap();
    assert!(lacking.finding.contains("a quorum takes 2 more"), "{}", lacking.finding);
}

#[test]
fn a_synchronisation_that_has_time_left_is_no_fault() {
    let under_way =
        mntr("zk_peer_state\tfollowing - synchronization\nzk_max_follower_sync_time\t9000\n");
    let facts = Facts { before: under_way.members.clone(), seconds_between: 5.0, ..under_way };
    let is_slow = |facts: &Facts| diagnose(facts).iter().any(|f| f.rule == "live.sync-slow");
    assert!(!is_slow(&facts));
    // It has just begun.
    assert!(!is_slow(&Facts { before: well().members, seconds_between: 12.0, ..facts }));
}

/// What was so once may be a restart: now, or only before, or when nobody was asked twice.
#[test]
fn what_was_so_once_is_no_fault() {
    let rules = [
        "live.no-majority",
        "live.no-leader",
        "live.port-closed",
        "live.two-leaders",
        "live.votes-differ",
        "live.left-out",
        "live.observer-cut",
        "live.outstanding",
        "live.pending-syncs",
        "live.one-way",
    ];
    let mut held = std::collections::BTreeSet::new();
    for plant in PLANTS.iter().chain(crate::links::PLANTS).filter(|p| rules.contains(&p.rule)) {
        let planted = || (plant.facts)();
        if planted().before.is_empty() {
            continue;
        }
        held.insert(plant.rule);
        for facts in [
            Facts { before: well().members, ..planted() },
            Facts { before: planted().members, members: well().members, ..planted() },
            Facts { before: Vec::new(), ..planted() },
        ] {
            let found = diagnose(&facts);
            let found = found.iter().find(|finding| finding.rule == plant.rule);
            assert!(found.is_none(), "{}: {found:?}", plant.says);
        }
    }
    assert_eq!(held.len(), rules.len(), "{held:?}");
}

#[test]
fn all_are_asked_again_where_one_disagrees_or_has_much_to_do() {
    assert!(!well().should_look_again());
    let mut facts = busy(500);
    facts.before.clear();
    assert!(facts.should_look_again());
    let other = config().replace("version=0", "version=100000002");
    let mut facts = well();
    let newer = heard(ServerState::Following, 3, 1, 1, &other);
    facts.members[1].election.as_mut().unwrap().answer = Ok(newer);
    assert!(facts.should_look_again());
    assert_eq!(facts.membership().unwrap().version(), 0x1_0000_0002, "the newest counts");
}

#[test]
fn who_looks_for_a_leader_that_is_just_gone_is_not_left_out() {
    let before = vec![looking(1, 7), follower(2), leader(3)];
    let members = vec![looking(1, 7), looking(2, 7), looking(3, 7)];
    let facts = Facts { before, members, seconds_between: 5.0, ..well() };
    assert!(diagnose(&facts).iter().all(|finding| finding.rule != "live.left-out"));
}

/// The releases that mend a vulnerability, the ones before them, and those of lines that never had it or that came later.
#[test]
fn each_vulnerability_ends_with_the_release_that_mends_it() {
    let has = |version: Version| -> Vec<&str> {
        vulnerabilities_of(version).map(|known| known.cve).collect()
    };
    for known in &VULNERABILITIES {
        for fixed in known.fixed {
            let before = Version(fixed.0, fixed.1, fixed.2 - 1);
            assert!(has(before).contains(&known.cve), "{} {before}", known.cve);
            assert!(!has(*fixed).contains(&known.cve), "{} {fixed}", known.cve);
        }
    }
    for clean in [Version(3, 8, 6), Version(3, 9, 5), Version(3, 9, 6), Version(3, 10, 0)] {
        assert_eq!(has(clean), [""; 0], "{clean}");
    }
    assert!(!has(Version(3, 5, 9)).contains(&"CVE-2024-23944"), "it came with 3.6");
    assert!(has(Version(3, 7, 1)).contains(&"CVE-2023-44981"));
    assert!(!has(Version(3, 7, 2)).contains(&"CVE-2023-44981"));
    assert!(has(Version(3, 7, 2)).contains(&"CVE-2024-23944"), "its line has no release without");
    assert!(has(Version(3, 6, 4)).contains(&"CVE-2023-44981"), "nor has this one");
    assert_eq!(first_without(Version(3, 8, 0)), Version(3, 8, 6));
    assert_eq!(first_without(Version(3, 9, 0)), Version(3, 9, 5));
    assert_eq!(first_without(Version(3, 4, 6)), Version(3, 9, 5));
}

#[test]
fn a_fault_that_no_release_is_without_is_no_reason_to_upgrade() {
    let todo = |facts: &Facts| {
        let found = diagnose(facts).into_iter().find(|found| found.rule == "live.java-bug");
        found.unwrap().todo.join("; ")
    };
    let supervised =
        "no release is without it yet: let a supervisor start it again whatever its exit code";
    assert_eq!(todo(&well()), supervised);
    let mut facts = version(1, "3.9.4");
    facts.members.truncate(1);
    assert!(todo(&facts).contains("upgrade to 3.9.5"), "{}", todo(&facts));
}

#[test]
fn logins_that_nobody_makes_are_no_way_in() {
    let facts = version(1, "3.9.0");
    let found = diagnose(&facts).into_iter().find(|found| found.rule == "live.cve").unwrap();
    assert_eq!(found.level, Warning);
    assert!(found.evidence.iter().any(|seen| seen.source == "CVE-2023-44981"), "{found:?}");
    assert!(found.todo[0].contains("3.9.5"), "{found:?}");
}
