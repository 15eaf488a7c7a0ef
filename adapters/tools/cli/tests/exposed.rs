//! What the doctor says of ports at an address that is not private: in a network of its own, which has one.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{Ensemble, QUORATE, free_port, read, stderr, stdout};

/// Of the networks for documents (RFC 5737): nobody's, and not private.
const PUBLIC: &str = "203.0.113.1";

/// Runs these lines of a shell where [`PUBLIC`] is this host's address, and ends what they have begun; none where that cannot
/// be had.
fn elsewhere(lines: &str) -> Option<Output> {
    let script = format!(
        "set -e\nip link set lo up\nip address add {PUBLIC}/32 dev lo\necho here >&2\n{lines}"
    );
    let run = Command::new("unshare")
        .args(["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output();
    let output = run.ok().filter(|output| stderr(output).contains("here"));
    if output.is_none() {
        eprintln!("skipped: there can be no network of its own here (unshare, iproute2)");
    }
    output
}

/// Three servers there with these lines, and what the doctor says of them.
fn seen(lines: &str) -> Option<Value> {
    let admin = free_port();
    let ensemble = Ensemble::new(&["participant"; 3], lines);
    let mut script = String::new();
    for id in 1..=3 {
        let cfg = ensemble.cfg(id);
        let text = read(&cfg).replace("=127.0.0.1", &format!("={PUBLIC}"));
        let more = match id {
            1 => format!(
                "admin.enableServer=true\nadmin.serverPort={admin}\nadmin.serverAddress={PUBLIC}\n"
            ),
            _ => String::new(),
        };
        fs::write(&cfg, format!("{text}\n{more}")).unwrap();
        let (cfg, log) = (cfg.display(), ensemble.log(id));
        script += &format!("{QUORATE} serve {cfg} >/dev/null 2>{} &\n", log.display());
    }
    let files: Vec<_> = (1..=3).map(|id| ensemble.cfg(id).display().to_string()).collect();
    for port in &ensemble.client {
        script += &format!("{QUORATE} wait --ready --timeout 60s {PUBLIC}:{port} >&2\n");
    }
    script += &format!("{QUORATE} doctor --json {}\n", files.join(" "));
    let output = elsewhere(&script)?;
    let report = serde_json::from_str(stdout(&output));
    Some(report.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output))))
}

/// The rules of open ports that fired, each with what was found and seen.
fn exposed(report: &Value) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().unwrap().iter();
    let shown = findings.map(|finding| {
        let rule = finding["rule"].as_str().unwrap().to_owned();
        (rule, format!("{} {}", finding["finding"], finding["evidence"]))
    });
    shown.filter(|(rule, _)| rule.starts_with("live.exposed")).collect()
}

#[test]
fn ports_that_strangers_reach_are_told_with_what_they_say() {
    let Some(report) = seen("") else { return };
    let found = exposed(&report);
    let rules: Vec<_> = found.iter().map(|(rule, _)| rule.as_str()).collect();
    // What election ports tell comes of the same lack as what the quorum port gives away.
    assert_eq!(
        rules,
        ["live.exposed-admin", "live.exposed-quorum", "live.exposed-client"],
        "{report}"
    );
    assert!(found[1].1.contains("live.exposed-election"), "{}", found[1].1);
    assert!(found[2].1.contains("it answers srvr"), "{}", found[2].1);
}

#[test]
fn ports_that_say_from_where_they_take_connections_are_not_open() {
    let fence =
        "quorate.quorumAllow=members\nenforce.auth.enabled=true\nenforce.auth.schemes=digest";
    let Some(report) = seen(fence) else { return };
    let found = exposed(&report);
    let rules: Vec<_> = found.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(rules, ["live.exposed-admin"], "{report}");
}
