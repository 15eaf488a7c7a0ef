//! A server that has no descriptors left, as the system says it (`EMFILE`).

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::TcpStream;
use std::process::Command;

use crate::common::{Ensemble, Process, read, until};

/// Sets how many descriptors a server may have, as `ulimit -Sn` does.
fn limit(server: &Process, descriptors: usize) {
    let pid = server.child.id().to_string();
    let nofile = format!("--nofile={descriptors}:");
    let status = Command::new("prlimit").args(["--pid", &pid, &nofile]).status().unwrap();
    assert!(status.success(), "prlimit: {status}");
}

/// A figure of `mntr`.
fn figure(ensemble: &Ensemble, id: usize, name: &str) -> u64 {
    let text = ensemble.ask(id, "mntr");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

/// Nobody could come back to a leader that accepts nothing: another one leads, and it follows. Its election port is not
/// needed for that: there it leads on.
#[test]
fn a_leader_without_descriptors_hands_its_leadership_over_only_if_learners_cannot_come() {
    let ensemble = Ensemble::new(&["participant"; 3], "");
    let servers = ensemble.serve_all();
    let leader = ensemble.led();
    let server = &servers[leader - 1];
    let errors = || figure(&ensemble, leader, "zk_accept_errors");
    let says = "cannot accept connections";

    limit(server, 0);
    let held = TcpStream::connect(&ensemble.election_ports()[leader - 1]).unwrap();
    until("a warning", || read(&ensemble.log(leader)).contains(says).then_some(()));
    limit(server, 1024);
    drop(held);
    assert_eq!(ensemble.led(), leader, "it leads on");
    let before = errors();
    assert!(before > 0);

    limit(server, 0);
    let held = TcpStream::connect(("127.0.0.1", ensemble.quorum[leader - 1])).unwrap();
    let others = || (1..=3).filter(|id| *id != leader);
    until("another leader", || {
        others().find(|id| ensemble.ask(*id, "srvr").contains("Mode: leader\n"))
    });
    limit(server, 1024);
    drop(held);
    assert_ne!(ensemble.led(), leader);
    assert!(errors() > before);
    let log = read(&ensemble.log(leader));
    assert!(
        log.contains("the quorum port accepts no connections")
            || log.contains("gave its leadership"),
        "{log}"
    );
}
