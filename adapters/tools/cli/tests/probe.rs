//! What the probe says of our servers, of Java's, and of nobody.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::TcpListener;
use std::process::Output;

use crate::common::{Ensemble, free_port, java_is_here, quorate, stderr, stdout, until};
use serde_json::Value;

const PARTICIPANT: &str = "participant";

fn probe(ports: &[String], more: &[&str]) -> Output {
    quorate(
        ["probe"].into_iter().chain(ports.iter().map(String::as_str)).chain(more.iter().copied()),
    )
}

fn json(output: &Output) -> Value {
    serde_json::from_str(stdout(output)).unwrap()
}

/// All agree, with everything that there is to know about each.
fn assert_agreement(output: &Output, leader: usize, servers: usize) {
    assert_eq!(output.status.code(), Some(0), "{}", stdout(output));
    let report = json(output);
    assert_eq!(report["agree"], true);
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
    let answers = report["servers"].as_array().unwrap();
    assert_eq!(answers.len(), servers);
    for (answer, id) in answers.iter().zip(1..) {
        assert_eq!(answer["id"], id);
        assert_eq!(answer["leader"], leader);
        let state = if id == leader { "LEADING" } else { "FOLLOWING" };
        let state = if answer["voter"] == true { state } else { "OBSERVING" };
        assert_eq!(answer["state"], state);
        assert_eq!(answer["version"], 2);
        assert_eq!(answer["config_version"], "0");
        assert!(answer["round"].as_i64().unwrap() >= 1);
        assert!(answer["peer_epoch"].as_i64().unwrap() >= 1);
        assert!(answer["zxid"].as_str().unwrap().starts_with("0x"));
        assert!(answer["config"].as_str().unwrap().starts_with("server.1="));
    }
}

#[test]
fn reads_an_ensemble_of_ours() {
    let ensemble = Ensemble::new(&[PARTICIPANT, PARTICIPANT, PARTICIPANT, "observer"], "");
    let mut servers = ensemble.serve_all();
    let leader = ensemble.led();
    let ports = ensemble.election_ports();
    assert_agreement(&probe(&ports, &["--json"]), leader, 4);

    let output = probe(&ports, &[]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    let epoch_line = format!("all 4 that answered agree: server {leader} leads epoch ");
    assert!(text.lines().last().unwrap().starts_with(&epoch_line), "{text}");

    // Nobody minds being asked: the ensemble serves on under the same leader.
    assert_eq!(ensemble.led(), leader);

    // One is gone: the others still agree, and it is named.
    let gone = if leader == 1 { 2 } else { 1 };
    drop(servers.remove(gone - 1));
    let output = probe(&ports, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let report = json(&output);
    assert!(report["servers"][gone - 1]["error"].as_str().unwrap().contains("cannot connect"));

    // One that follows, and one address where no server is: a leader it has, but one of three is no quorum.
    let follower = (1..=3).find(|id| ![gone, leader].contains(id)).unwrap();
    let two = [ports[follower - 1].clone(), ports[gone - 1].clone()];
    let output = probe(&two, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert_eq!(json(&output)["findings"][0]["kind"], "no_quorum");
    let output = probe(&two, &[]);
    let said = format!("no quorum: 1 of 3 voters names a leader, server {leader}: ");
    assert!(stdout(&output).contains(&said), "{}", stdout(&output));
    // Which is all that was asked.
    assert_eq!(probe(&two[..1], &[]).status.code(), Some(0));
}

#[test]
fn an_ensemble_without_a_leader_is_a_finding() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    let _server = ensemble.serve(1);
    let output = until("an answer", || {
        let output = probe(&ensemble.election_ports(), &["--json", "--timeout", "1000"]);
        (output.status.code() != Some(3)).then_some(output)
    });
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(report["agree"], false);
    assert_eq!(report["findings"][0]["kind"], "no_leader");
    assert_eq!(report["servers"][0]["state"], "LOOKING");
    let output = probe(&ensemble.election_ports(), &[]);
    assert!(stdout(&output).contains("disagreement: there is no leader"), "{}", stdout(&output));
}

/// Two ensembles of one server each, asked as one.
#[test]
fn different_leaders_and_configurations_are_findings() {
    let ensembles = [(), ()].map(|()| Ensemble::new(&[PARTICIPANT], ""));
    let _servers = ensembles.each_ref().map(|ensemble| ensemble.serve(1));
    let ports = ensembles.each_ref().map(|ensemble| {
        assert_eq!(ensemble.led(), 1);
        ensemble.election_ports().remove(0)
    });
    let output = probe(&ports, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let report = json(&output);
    let kinds: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["two_leading", "configurations"]);
}

#[test]
fn nobody_there() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [
        format!("127.0.0.1:{}", free_port()),
        silent.local_addr().unwrap().to_string(),
        "no-such-host.invalid:3888".to_owned(),
    ];
    let output = probe(&ports, &["--json", "--timeout", "500"]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    let report = json(&output);
    assert_eq!(report["agree"], false);
    for (server, expected) in report["servers"].as_array().unwrap().iter().zip([
        "cannot connect",
        "no answer in",
        "no-such",
    ]) {
        assert!(server["error"].as_str().unwrap().contains(expected), "{server}");
    }
    assert!(stderr(&output).contains("no server could be reached"));
}

#[test]
fn wrong_addresses_are_usage_errors() {
    for wrong in ["zk1", "zk1:0", "zk1:70000", ":3888"] {
        assert_eq!(quorate(["probe", wrong]).status.code(), Some(2), "{wrong}");
    }
    assert_eq!(quorate(["probe"]).status.code(), Some(2));
    assert_eq!(quorate(["probe", "a:1", "--id", "9223372036854775807"]).status.code(), Some(2));
}

/// Also with `standaloneEnabled=false`, where a wrong configuration in our question would end the
/// thread that receives notifications: so it is asked twice.
#[test]
fn reads_an_ensemble_of_javas() {
    if !java_is_here() {
        return;
    }
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "standaloneEnabled=false");
    let _servers: Vec<_> = (1..=3).map(|id| ensemble.java(id)).collect();
    let leader = ensemble.led();
    for _ in 0..2 {
        let output = probe(&ensemble.election_ports(), &["--json", "--timeout", "5000"]);
        assert_agreement(&output, leader, 3);
    }
    assert_eq!(ensemble.led(), leader);
}
