//! Where all is well nothing is found at warning or above.

use quorate_core::membership::Role;
use quorate_core::vote::ServerState;
use quorate_doctor::{Facts, Level, Silence, diagnose};

use crate::ensemble::{
    BASICS, THREE, file, follower, heard, leader, srvr, twice, well, with_data, words,
};

fn assert_well(facts: &Facts) {
    let found = diagnose(facts);
    let bad: Vec<_> = found.iter().filter(|finding| finding.level < Level::Notice).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn three_servers_asked_once_or_twice_with_a_data_directory() {
    assert_well(&well());
    assert!(!well().should_look_again(), "there is no reason to");
    assert_well(&twice(&[follower(1), follower(2), leader(3)]));
    assert_well(&with_data(|_| ()));
}

#[test]
fn five_servers_one_of_them_an_observer_where_a_leader_has_just_begun() {
    let lines: String = (1..=5)
        .map(|id| {
            format!("server.{id}=zk{id}:2888:3888{}\n", if id == 5 { ":observer" } else { "" })
        })
        .collect();
    let five = lines + "server.6=zk6:2888:3888\n";
    let config = five.lines().map(|line| {
        if line.ends_with("observer") {
            format!("{line}\n")
        } else {
            format!("{line}:participant\n")
        }
    });
    let config = config.collect::<String>() + "version=0";
    let mut facts = well();
    facts.files = (1..=6).map(|id| file(id, &format!("{BASICS}{five}"))).collect();
    facts.members = (1..=6).map(follower).collect();
    for member in &mut facts.members {
        let state = match member.id.0 {
            3 => ServerState::Leading,
            5 => ServerState::Observing,
            _ => ServerState::Following,
        };
        member.role = if member.id.0 == 5 { Role::Observer } else { Role::Participant };
        member.election.as_mut().unwrap().answer = Ok(heard(state, 3, 2, 4, &config));
        // Followers tell the last transaction of the epoch before, until there is one of this.
        let (mode, zxid) =
            if member.id.0 == 3 { ("leader", 0x2_0000_0000) } else { ("follower", 0x1_0000_9999) };
        member.client.as_mut().unwrap().answer = Ok(words(&srvr(mode, zxid), ""));
    }
    assert!(!facts.should_look_again());
    assert_well(&facts);
}

#[test]
fn servers_that_speak_tls_among_themselves_with_client_ports_that_answer_or_are_not_known() {
    let stores =
        "ssl.quorum.keyStore.location=/own.p12\nssl.quorum.trustStore.location=/trust.p12\n";
    // Or names are not looked at by a ZooKeeper 3.9.
    let text = format!("{BASICS}sslQuorum=true\nfips-mode=false\n{stores}{THREE}");
    let mut members = vec![follower(1), follower(2), leader(3)];
    for member in &mut members {
        member.election.as_mut().unwrap().answer = Err(Silence::HungUp);
    }
    let with_files = |facts: Facts| Facts { files: vec![file(1, &text)], ..facts };
    assert_well(&with_files(twice(&members)));
    for member in &mut members {
        member.client = None;
    }
    assert_well(&with_files(twice(&members)));
}

#[test]
fn a_configuration_of_a_server_alone() {
    let files = vec![file(1, "dataDir=/data\nclientPort=2181\n")];
    assert_well(&Facts { files, ..Facts::default() });
    assert_well(&Facts::default());
}
