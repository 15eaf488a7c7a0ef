//! The probe and the doctor at ports between servers that speak TLS: without what it takes, and with it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::common::secured::{Authority, SECRET, Secured, WITH_IDS};
use crate::common::{java_is_here, quorate, read, stderr, stdout};

impl Secured {
    /// What an operator says with `--tls`: a certificate of this authority, for this host and the id of no server.
    fn operator(&self, by: &Authority, host: &str) -> String {
        self.write("operator.pem", &by.certify("an operator", host, 1000));
        self.write("operators-trust.pem", &by.certificate.pem());
        self.write("operator.cfg", &self.stores("operator.pem", "operators-trust.pem"));
        self.path("operator.cfg").display().to_string()
    }

    fn probe(&self, more: &[&str]) -> Output {
        let ports = self.ensemble.election_ports();
        said(
            ["probe"]
                .into_iter()
                .chain(ports.iter().map(String::as_str))
                .chain(more.iter().copied()),
        )
    }

    fn doctor(&self, more: &[&str]) -> Value {
        let files: Vec<_> = (1..=3).map(|id| self.ensemble.cfg(id).display().to_string()).collect();
        let files = files.iter().map(String::as_str);
        let words = ["doctor", "--json"].into_iter().chain(files).chain(more.iter().copied());
        json(&said(words))
    }
}

/// What a command says, which never is the secret.
fn said<'a>(words: impl IntoIterator<Item = &'a str>) -> Output {
    let output = quorate(words);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(!said.contains(SECRET), "{said}");
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_str(stdout(output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// The rules that fired at warning or above, with the server, but for those of the machine and of versions.
fn found(report: &Value) -> Vec<String> {
    let passed_over = ["cfg.fs-odd", "disk.", "host.", "live.java-bug", "live.cve"];
    let findings = report["findings"].as_array().unwrap().iter();
    let shown = findings.filter(|finding| finding["level"] != "notice").filter_map(|finding| {
        let rule = finding["rule"].as_str().unwrap();
        let is_other = !passed_over.iter().any(|begin| rule.starts_with(begin));
        is_other.then(|| format!("{rule} {}", finding["subject"]["server"]))
    });
    shown.collect()
}

fn looked_at(report: &Value, what: &str) -> Vec<u64> {
    let places = report["looked_at"].as_array().unwrap().iter();
    places.filter(|place| place["what"] == what).filter_map(|p| p["server"].as_u64()).collect()
}

/// Why an election port was not looked at.
fn because(report: &Value, server: usize) -> String {
    let places = report["not_looked_at"].as_array().unwrap();
    let is_it = |place: &&Value| place["what"] == "election port" && place["server"] == server;
    places.iter().find(is_it).map_or(String::new(), |place| place["because"].to_string())
}

#[test]
fn ports_that_speak_tls_are_known_by_it_and_are_neither_dead_nor_open() {
    let secured = Secured::new(WITH_IDS);
    let _servers = secured.ensemble.serve_all();
    secured.ensemble.led();
    let output = secured.probe(&["--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    for server in json(&output)["servers"].as_array().unwrap() {
        assert_eq!(server["error"], "it speaks TLS; give --tls");
    }
    let report = secured.doctor(&[]);
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(because(&report, 2), "\"it speaks TLS; give --tls\"");
}

/// Where ids in certificates count, and where hosts do: an operator's certificate names neither of a member's.
#[test]
fn through_tls_the_probe_and_the_doctor_see_what_they_see_without() {
    for lines in [WITH_IDS, "sslQuorum=true"] {
        see_through_tls(&Secured::new(lines));
    }
}

fn see_through_tls(secured: &Secured) {
    let _servers = secured.ensemble.serve_all();
    let leader = secured.ensemble.led();
    let operator = secured.operator(&secured.authority, "operator.test");
    let output = secured.probe(&["--json", "--tls", &operator]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let report = json(&output);
    for (server, id) in report["servers"].as_array().unwrap().iter().zip(1..) {
        assert_eq!((&server["id"], &server["leader"]), (&id.into(), &leader.into()));
        assert_eq!(server["certificate"]["subject"], format!("CN=server {id}"));
    }
    let output = secured.probe(&["--tls", &operator]);
    assert!(stdout(&output).contains(" shows CN=server 1, until "), "{}", stdout(&output));
    let report = secured.doctor(&["--tls", &operator]);
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(looked_at(&report, "election port"), [1, 2, 3]);
    assert_eq!(looked_at(&report, "certificate"), [1, 2, 3]);
    assert_eq!(report["not_looked_at"], Value::Array(Vec::new()));
    assert_eq!(secured.ensemble.led(), leader, "nobody minds");
}

/// A member's certificate is no one else's: it opens no port to who has another id, and what the ports show is seen.
#[test]
fn with_a_members_stores_certificates_are_seen_and_with_other_authorities_it_is_said_why_not() {
    let secured = Secured::new(WITH_IDS);
    let _servers = secured.ensemble.serve_all();
    secured.ensemble.led();
    let members = secured.ensemble.cfg(1).display().to_string();
    let report = secured.doctor(&["--tls", &members]);
    assert_eq!(found(&report), [""; 0], "{report}");
    assert!(because(&report, 2).contains("needs a certificate that names no member"), "{report}");
    assert_eq!(looked_at(&report, "certificate"), [1, 2, 3]);

    let operator = secured.operator(&Authority::new("another authority"), "operator.test");
    let output = secured.probe(&["--json", "--tls", &operator]);
    assert_eq!(output.status.code(), Some(3));
    let error = json(&output)["servers"][0]["error"].to_string();
    assert!(error.contains("unknown-authority"), "{error}");

    assert_eq!(secured.probe(&["--tls", "/nowhere/zoo.cfg"]).status.code(), Some(2));
    secured.write("empty.cfg", "tickTime=500\n");
    let empty = secured.path("empty.cfg").display().to_string();
    let output = secured.probe(&["--tls", &empty]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("ssl.quorum.keyStore.location"), "{}", stderr(&output));
}

/// Files that have changed while servers run on what they have read.
#[test]
fn certificates_that_were_not_taken_up_and_authorities_that_are_gone_are_found() {
    let secured = Secured::new(&format!("{WITH_IDS}\nsslQuorumReloadCertFiles=false"));
    let cfg = secured.ensemble.cfg(3);
    let text = read(&cfg).replace("trusted.pem", "trusted-by-3.pem");
    fs::write(&cfg, text).unwrap();
    secured.write("trusted-by-3.pem", &secured.authority.certificate.pem());
    let _servers = secured.ensemble.serve_all();
    secured.ensemble.led();
    let operator = secured.operator(&secured.authority, "operator.test");
    assert_eq!(found(&secured.doctor(&["--tls", &operator])), [""; 0]);

    secured.write("1.pem", &secured.authority.certify("server 1", "127.0.0.1", 1));
    secured.write("trusted-by-3.pem", &Authority::new("an authority").certificate.pem());
    let report = secured.doctor(&["--tls", &operator]);
    let expected = ["live.tls-chain 1", "live.tls-chain 2", "live.tls-mismatch 1"];
    assert_eq!(found(&report), expected, "{report}");
    assert!(report.to_string().contains("server 3 does not trust its certificate"), "{report}");
}

#[test]
fn ports_that_speak_without_tls_too_are_asked_so_and_show_their_certificates() {
    let secured = Secured::new("portUnification=true\nquorate.ssl.identity=id");
    let _servers = secured.ensemble.serve_all();
    secured.ensemble.led();
    let operator = secured.operator(&secured.authority, "operator.test");
    let text = format!("{}portUnification=true\n", read(&secured.path("operator.cfg")));
    secured.write("operator.cfg", &text);
    let report = secured.doctor(&["--tls", &operator]);
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(looked_at(&report, "election port"), [1, 2, 3]);
    assert_eq!(looked_at(&report, "certificate"), [1, 2, 3]);
    assert_eq!(secured.probe(&["--tls", &operator]).status.code(), Some(0));
    assert_eq!(secured.probe(&[]).status.code(), Some(0));
}

#[test]
fn javas_ports_that_speak_tls_are_known_and_asked() {
    if !java_is_here() {
        return;
    }
    let secured = Secured::new("sslQuorum=true");
    for id in 1..=3 {
        // Java takes a password for a seal.
        let cfg = secured.ensemble.cfg(id);
        let password = format!("ssl.quorum.keyStore.password={SECRET}\n");
        fs::write(&cfg, read(&cfg).replace(&password, "")).unwrap();
    }
    let _servers: Vec<_> = (1..=3).map(|id| secured.ensemble.java(id)).collect();
    secured.ensemble.led();
    let output = secured.probe(&["--json", "--timeout", "5000"]);
    assert_eq!(json(&output)["servers"][0]["error"], "it speaks TLS; give --tls");
    assert_eq!(found(&secured.doctor(&["--budget", "40s"])), [""; 0]);
    // Its server looks for the address that a connection comes from among the names.
    let operator = secured.operator(&secured.authority, "127.0.0.1");
    let output = secured.probe(&["--json", "--timeout", "5000", "--tls", &operator]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let report = secured.doctor(&["--budget", "40s", "--tls", &operator]);
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(looked_at(&report, "certificate"), [1, 2, 3], "{report}");
}
