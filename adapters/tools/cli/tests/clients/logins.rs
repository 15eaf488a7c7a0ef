//! Clients that log in by SASL: ZooKeeper's for Java, by its command line, and kazoo by its own tests of that. The servers
//! log in to each other, too.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::common::{Ensemble, Process, quorate, until};
use crate::ensemble::{Kind, written};
use crate::java::{curator_is_here, zk_cli_as};
use crate::kazoo::{LEFT_OUT, Part, assert_verdicts, suite};

const MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule required";
/// kazoo's tests know the last one.
const USERS: &str =
    "user_bob=\"bobsecret\" user_super=\"adminsecret\" user_jaasuser=\"jaas_password\"";

/// Configuration files for three servers with logins, of clients and of each other.
fn with_logins(more: &str) -> Ensemble {
    let ensemble = written();
    let jaas = ensemble.dir.path().join("jaas.conf");
    let text = format!(
        "QuorumServer {{ {MODULE} user_zk=\"peersecret\"; }};\n\
         QuorumLearner {{ {MODULE} username=\"zk\" password=\"peersecret\"; }};\n\
         Server {{ {MODULE} {USERS}; }};\n"
    );
    fs::write(&jaas, text).unwrap();
    for id in 1..=3 {
        let cfg = fs::read_to_string(ensemble.cfg(id)).unwrap();
        let lines = format!(
            "quorate.jaas.file={}\nsuperUser=super\nquorum.auth.enableSasl=true\n\
             quorum.auth.learnerRequireSasl=true\nquorum.auth.serverRequireSasl=true\n\
             authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n{more}",
            jaas.display()
        );
        fs::write(ensemble.cfg(id), format!("{cfg}\n{lines}")).unwrap();
    }
    ensemble
}

/// Starts them, and waits until all serve.
fn started(ensemble: &Ensemble) -> Vec<Process> {
    let processes = ensemble.serve_all();
    for id in 1..=3 {
        until("serving", || ensemble.try_ask(id, "srvr").filter(|said| said.contains("Mode: ")));
    }
    processes
}

/// The file that a client of Java's logs in with.
fn client(ensemble: &Ensemble, user: &str, password: &str) -> PathBuf {
    let file = ensemble.dir.path().join(format!("{user}-{password}.conf"));
    let text = format!("Client {{ {MODULE} username=\"{user}\" password=\"{password}\"; }};\n");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn the_client_for_java_logs_in_and_lists_of_users_hold_on_all_servers() {
    if !curator_is_here() {
        return;
    }
    let ensemble = with_logins("");
    let _servers = started(&ensemble);
    let host = |id: usize| format!("127.0.0.1:{}", ensemble.client[id - 1]);
    let bob = client(&ensemble, "bob", "bobsecret");
    let typed = "whoami\ncreate /own x sasl:bob:cdrwa\ngetAcl /own\nquit\n";
    let said = zk_cli_as(Some(&bob), &host(1), &[], typed);
    for expected in ["sasl: bob\n", "Created /own", "'sasl,'bob\n: cdrwa\n"] {
        assert!(said.contains(expected), "{said}");
    }
    let get = |file: Option<&PathBuf>, id| {
        zk_cli_as(file.map(PathBuf::as_path), &host(id), &["get", "/own"], "")
    };
    let root = client(&ensemble, "super", "adminsecret");
    for id in 1..=3 {
        let own = get(Some(&bob), id);
        assert!(own.lines().any(|line| line == "x"), "{own}");
    }
    let all = get(Some(&root), 2);
    assert!(all.lines().any(|line| line == "x"), "{all}");
    let without = get(None, 3);
    assert!(without.contains("Insufficient permission : /own"), "{without}");
    // The command line says that the node may not be read, or that it is not connected: whichever it learns first.
    let is_refused =
        |said: &str| said.contains("AuthFailed") && !said.lines().any(|line| line == "x");
    for wrong in [client(&ensemble, "bob", "wrong"), client(&ensemble, "eve", "bobsecret")] {
        let refused = get(Some(&wrong), 2);
        assert!(is_refused(&refused), "{refused}");
    }
    let logs: String = (1..=3).map(|id| fs::read_to_string(ensemble.log(id)).unwrap()).collect();
    assert!(logs.contains("sasl.failed") && !logs.contains("secret"), "{logs}");
    // Another password counts for who logs in when an operator has had the file read.
    let file = ensemble.dir.path().join("jaas.conf");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("bobsecret", "nextsecret")).unwrap();
    let reloaded = quorate(["admin", &ensemble.cfg(2).display().to_string(), "reload"]);
    assert!(reloaded.status.success(), "{reloaded:?}");
    let refused = get(Some(&bob), 2);
    assert!(is_refused(&refused), "{refused}");
    let own = get(Some(&client(&ensemble, "bob", "nextsecret")), 2);
    assert!(own.lines().any(|line| line == "x"), "{own}");
    assert!(fs::read_to_string(ensemble.log(2)).unwrap().contains("sasl.reloaded"));
}

#[test]
fn a_client_for_java_that_has_to_log_in_is_refused_without() {
    if !curator_is_here() {
        return;
    }
    let ensemble = with_logins("sessionRequireClientSASLAuth=true\n");
    let _servers = started(&ensemble);
    let host = format!("127.0.0.1:{}", ensemble.client[0]);
    let refused = zk_cli_as(None, &host, &["ls", "/"], "");
    assert!(refused.contains("Session closed because client failed to authenticate"), "{refused}");
    let bob = client(&ensemble, "bob", "bobsecret");
    let served = zk_cli_as(Some(&bob), &host, &["ls", "/"], "");
    assert!(served.contains("[zookeeper]"), "{served}");
}

#[test]
fn kazoos_tests_of_logins_pass() {
    let Some((python, tests)) = suite() else { return };
    let begun = Instant::now();
    let file = tests.join(LEFT_OUT).into_os_string();
    let ensemble = with_logins("");
    let mut parts = [Part::at(ensemble, [Kind::Quorate; 3], &python, &tests, [file])];
    // Two are about Kerberos.
    assert_verdicts(&mut parts, begun, &[], [4, 2]);
}
