//! The doctor at real servers, ours and Java's, at ports that are none, and at files.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{Ensemble, QUORATE, free_port, java_is_here, quorate, stderr, stdout, until};
use serde_json::Value;

const PARTICIPANT: &str = "participant";

fn files(ensemble: &Ensemble) -> Vec<String> {
    (1..=ensemble.client.len()).map(|id| ensemble.cfg(id).display().to_string()).collect()
}

fn doctor(files: &[String], more: &[&str]) -> Output {
    let files = files.iter().map(String::as_str);
    quorate(["doctor"].into_iter().chain(files).chain(more.iter().copied()))
}

fn json(output: &Output) -> Value {
    serde_json::from_str(stdout(output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// What was found at warning or above, as rule and subject: but for what is true of the machine on which the tests run.
fn found(report: &Value) -> Vec<String> {
    const OF_THE_MACHINE: [&str; 3] = ["cfg.fs-odd", "disk.free", "disk.fsync"];
    let findings = report["findings"].as_array().unwrap().iter();
    let shown = findings.filter(|finding| finding["level"] != "notice").map(|finding| {
        let (rule, subject) = (finding["rule"].as_str().unwrap(), &finding["subject"]);
        (rule, format!("{rule} {subject} {}", finding["finding"]))
    });
    let shown =
        shown.filter(|(rule, _)| !OF_THE_MACHINE.contains(rule) && !rule.starts_with("host."));
    shown.map(|(_, shown)| shown).collect()
}

fn because<'a>(report: &'a Value, what: &str, server: usize) -> &'a str {
    let places = report["not_looked_at"].as_array().unwrap();
    let is_it = |place: &&Value| place["what"] == what && place["server"] == server;
    places.iter().find(is_it).map_or("", |place| place["because"].as_str().unwrap())
}

#[test]
fn five_healthy_servers_give_no_alarm() {
    let roles = [PARTICIPANT, PARTICIPANT, PARTICIPANT, PARTICIPANT, PARTICIPANT];
    let ensemble = Ensemble::new(&roles, "");
    let servers = ensemble.serve_all();
    ensemble.led();
    let logs: Vec<_> = (1..=5).map(|id| ensemble.log(id).display().to_string()).collect();
    let more: Vec<_> =
        ["--json", "--logs"].into_iter().chain(logs.iter().map(String::as_str)).collect();
    let output = doctor(&files(&ensemble), &more);
    let report = json(&output);
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(report["not_looked_at"], Value::Array(Vec::new()));
    // One file is enough to find the others: their client ports follow from nothing then.
    let report = json(&doctor(&files(&ensemble)[..1], &["--json"]));
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(because(&report, "client port", 2), "no file says where it is");
    drop(servers);
}

/// As dynamic configuration and IPv6 have it, while one of them is restarted.
#[test]
fn a_member_that_is_being_restarted_is_no_fault() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "reconfigEnabled=true");
    for id in 1..=3 {
        let text = fs::read_to_string(ensemble.cfg(id)).unwrap();
        let (members, rest): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with("server."));
        let dynamic = ensemble.dir.path().join(format!("{id}.cfg.dynamic"));
        fs::write(&dynamic, members.join("\n").replace("127.0.0.1", "[::1]")).unwrap();
        let rest = format!("{}\ndynamicConfigFile={}\n", rest.join("\n"), dynamic.display());
        fs::write(ensemble.cfg(id), rest).unwrap();
    }
    let mut servers = ensemble.serve_all();
    ensemble.led();
    assert_eq!(servers[0].terminate(), Some(0));
    let looking = Command::new(QUORATE)
        .args(["doctor", "--json"])
        .args(files(&ensemble))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    servers[0] = ensemble.serve(1);
    let report = json(&looking.wait_with_output().unwrap());
    assert_eq!(found(&report), [""; 0], "{report}");
}

#[test]
fn without_a_majority_there_is_one_finding_for_all_that_comes_of_it() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    let server = ensemble.serve(1);
    until("its port", || TcpStream::connect(("127.0.0.1", ensemble.election[0])).ok());
    let output = doctor(&files(&ensemble), &["--json", "--budget", "4s"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let all = found(&report);
    let [one] = all.as_slice() else { panic!("{report}") };
    assert!(one.contains("1 of 3 voters answers: a quorum takes 1 more, of servers 2, 3"), "{one}");
    let finding = &report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["rule"] == "live.no-majority")
        .unwrap();
    assert_eq!(finding["explains"], serde_json::json!(["live.no-leader", "live.port-closed"]));
    assert_eq!(because(&report, "election port", 2), "connection refused");
    let text = doctor(&files(&ensemble), &["--budget", "2s"]);
    let last = stdout(&text).lines().last().unwrap();
    assert!(last.starts_with("1 error, ") && last.ends_with("looked at 1 of 3 members"), "{last}");
    drop(server);
}

/// One never answers, one sends without end, one speaks HTTP: on their election and client ports.
#[test]
fn ports_that_never_answer_never_end_or_speak_something_else_are_named() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    for id in 0..3 {
        for port in [ensemble.election[id], ensemble.client[id]] {
            let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                for socket in listener.incoming() {
                    let mut socket = socket.unwrap();
                    match id {
                        0 => kept.push(socket),
                        1 => drop(std::thread::spawn(move || {
                            while socket.write_all(&[b'x'; 1 << 16]).is_ok() {}
                        })),
                        _ => {
                            drop(socket.read(&mut [0; 1000]));
                            drop(socket.write_all(
                                b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
                            ));
                        }
                    }
                }
            });
        }
    }
    let output = doctor(&files(&ensemble), &["--json", "--budget", "4s"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert!(because(&report, "election port", 1).contains("no answer in time"), "{report}");
    assert!(because(&report, "client port", 1).contains("no answer in time"), "{report}");
    for id in [2, 3] {
        assert!(because(&report, "election port", id).contains("no answer"), "{report}");
        assert!(because(&report, "client port", id).contains("no answer"), "{report}");
    }
    assert!(because(&report, "client port", 3).contains("HTTP/1.1"), "{report}");
    assert!(found(&report)[0].contains("0 of 3 voters answer"), "{report}");
}

/// A server's directory as a Java server has written it, with a byte of its log turned around.
fn damaged(dir: &Path) -> PathBuf {
    let inner = dir.join("version-2");
    fs::create_dir(&inner).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/storage/tests/golden");
    for name in ["snapshot.0", "snapshot.10000000c", "snapshot.100000018", "log.100000001"] {
        fs::copy(golden.join(name), inner.join(name)).unwrap();
    }
    fs::write(inner.join("acceptedEpoch"), "1").unwrap();
    fs::write(inner.join("currentEpoch"), "2").unwrap();
    let log = inner.join("log.100000001");
    let mut bytes = fs::read(&log).unwrap();
    bytes[200] ^= 1;
    fs::write(&log, bytes).unwrap();
    inner
}

/// What is in a directory, and since when.
fn listing(dir: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let of_file = fs::metadata(&path).unwrap();
        (path, of_file.len(), of_file.modified().unwrap())
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    entries
}

#[test]
fn a_damaged_directory_and_a_rotated_log_are_read_and_nothing_is_changed() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    let dir = ensemble.dir.path().join("2");
    let inner = damaged(&dir);
    let before = listing(&inner);
    let log = ensemble.dir.path().join("2.log.1.gz");
    let line = "2026-11-26 13:19:45,303 [myid:2] - WARN  [main] - fsync-ing the write ahead log in SyncThread:2 took \
                1801ms which will adversely effect operation latency.File size is 67108880 bytes.\n";
    let mut gzip = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    gzip.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    assert!(gzip.wait().unwrap().success());

    let log = format!("2={}", log.display());
    let (dir, data) = (dir.display().to_string(), ["--json", "--logs", &log, "--data"]);
    let arguments = ["doctor"].into_iter().chain(data).chain([dir.as_str()]);
    let output = quorate(arguments);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let findings = report["findings"].as_array().unwrap();
    let rules: Vec<_> = findings
        .iter()
        .filter(|finding| finding["level"] == "error" && finding["subject"]["server"] == 2)
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect();
    for expected in ["disk.epochs", "disk.history", "disk.fsync"] {
        assert!(rules.contains(&expected), "{expected}: {report}");
    }
    assert_eq!(listing(&inner), before);
    // A file that cannot be found is named, and the rest is looked at.
    let report = json(&quorate(["doctor", "--json", "--data", &dir, "--logs", "/nowhere/1.log"]));
    assert_eq!(report["not_looked_at"][0]["address"], "/nowhere/1.log");
}

#[test]
fn exit_codes_and_what_the_table_says() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    let cfg = ensemble.cfg(1);
    let broken =
        fs::read_to_string(&cfg).unwrap().replace("server.2=127.0.0.1:", "server.2=127.0.0.1;");
    fs::write(&cfg, broken).unwrap();
    let output = doctor(&[cfg.display().to_string()], &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["subject"]["key"]),
        (&"cfg.unreadable".into(), &"server.2".into())
    );
    assert!(finding["subject"]["line"].as_u64().unwrap() > 5);

    assert_eq!(quorate(["doctor", "/nowhere/zoo.cfg"]).status.code(), Some(2));
    assert_eq!(quorate(["doctor", "--budget", "soon"]).status.code(), Some(2));
    assert_eq!(quorate(["doctor", "--logs", "/nowhere/1.log"]).status.code(), Some(3));
    assert_eq!(quorate(["doctor", "--explain", "live.nothing"]).status.code(), Some(2));
    let rules = quorate(["doctor", "--rules"]);
    assert_eq!(rules.status.code(), Some(0));
    let ids: Vec<_> = stdout(&rules).lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(ids.len() > 50 && ids.contains(&"live.no-majority"), "{ids:?}");
    let explained = quorate(["doctor", "--explain", "live.port-closed"]);
    assert!(
        stdout(&explained).contains("No connection in time: a firewall"),
        "{}",
        stdout(&explained)
    );
}

/// Java's servers alone, and with one of ours in the place of one of theirs. The version has faults that are known.
#[test]
fn healthy_servers_of_java_alone_and_mixed_give_no_alarm_but_for_their_version() {
    if !java_is_here() {
        return;
    }
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    let mut servers: Vec<_> = (1..=3).map(|id| ensemble.java(id)).collect();
    let leader = ensemble.led();
    let logs: Vec<_> = (1..=3).map(|id| ensemble.log(id).display().to_string()).collect();
    let more: Vec<_> =
        ["--json", "--logs"].into_iter().chain(logs.iter().map(String::as_str)).collect();
    let assert_well = |report: &Value| {
        let all = found(report);
        let of_version = |found: &String| {
            ["live.java-bug ", "live.cve "].iter().any(|rule| found.starts_with(rule))
        };
        assert!(all.iter().all(of_version), "{report}");
        assert_eq!(report["not_looked_at"], Value::Array(Vec::new()));
    };
    let report = json(&doctor(&files(&ensemble), &more));
    assert_well(&report);
    let at = format!("127.0.0.1:{}", free_port());
    let report = json(&doctor(&files(&ensemble), &["--json", "--reverse", &at]));
    assert_well(&report);
    assert_eq!(looked_at(&report, "dialling back"), [1, 2, 3], "they dial back");
    let follower = if leader == 1 { 2 } else { 1 };
    drop(servers.remove(follower - 1));
    servers.push(ensemble.serve(follower));
    ensemble.led();
    assert_well(&json(&doctor(&files(&ensemble), &["--json"])));
}

/// Where it looked, of which server.
fn looked_at(report: &Value, what: &str) -> Vec<u64> {
    let places = report["looked_at"].as_array().unwrap().iter();
    places.filter(|place| place["what"] == what).filter_map(|p| p["server"].as_u64()).collect()
}

#[test]
fn where_four_letter_words_are_closed_the_admin_server_is_asked() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "4lw.commands.whitelist=isro");
    let admin: Vec<_> = (1..=3).map(|_| free_port()).collect();
    for (id, port) in (1..).zip(&admin) {
        let text = fs::read_to_string(ensemble.cfg(id)).unwrap();
        let lines = format!("{text}\nadmin.enableServer=true\nadmin.serverPort={port}\n");
        fs::write(ensemble.cfg(id), lines).unwrap();
    }
    let _servers = ensemble.serve_all();
    for port in &admin {
        let at = format!("127.0.0.1:{port}");
        let ready = quorate(["wait", "--ready", "--timeout", "30s", &at]);
        assert_eq!(ready.status.code(), Some(0), "{ready:?}");
    }
    // A word that is answered proves that the client port is there.
    let report = json(&doctor(&files(&ensemble), &["--json"]));
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(looked_at(&report, "admin server"), [1, 2, 3]);
    let places = report["looked_at"].as_array().unwrap();
    assert!(places.iter().any(|place| place["what"] == "links of this host"), "{report}");

    // One file, and where another member's is.
    let one = files(&ensemble)[..1].to_vec();
    let third = format!("3=http://127.0.0.1:{}", admin[2]);
    let report = json(&doctor(&one, &["--json", "--member", &third]));
    assert_eq!(looked_at(&report, "admin server"), [1, 3]);
    // Something else is there.
    let second = format!("2=http://127.0.0.1:{}", ensemble.election[1]);
    let report = json(&doctor(&one, &["--json", "--budget", "4s", "--member", &second]));
    assert_ne!(because(&report, "admin server", 2), "", "{report}");
    let wrong = doctor(&one, &["--member", "2=127.0.0.1:8080"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// Servers that would take a new member dial who introduces itself; others do not, and that is no fault of theirs.
#[test]
fn members_that_dial_back_are_told_from_those_that_do_not() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "reconfigEnabled=false");
    let servers = ensemble.serve_all();
    ensemble.led();
    let back = |budget: &str| {
        let at = format!("127.0.0.1:{}", free_port());
        json(&doctor(&files(&ensemble), &["--json", "--budget", budget, "--reverse", &at]))
    };
    let report = back("10s");
    assert_eq!(found(&report), [""; 0], "{report}");
    assert!(because(&report, "dialling back", 2).contains("reconfigEnabled"), "{report}");
    let set = |from: &str, to: &str| {
        for id in 1..=3 {
            let text = fs::read_to_string(ensemble.cfg(id)).unwrap();
            fs::write(ensemble.cfg(id), text.replace(from, to)).unwrap();
        }
    };
    // They run as they were started.
    set("reconfigEnabled=false", "reconfigEnabled=true");
    let report = back("6s");
    let all = found(&report);
    assert!(
        all.len() == 3 && all.iter().all(|found| found.contains("does not dial back")),
        "{all:?}"
    );
    drop(servers);
    let _servers = ensemble.serve_all();
    ensemble.led();
    let report = back("10s");
    assert_eq!(found(&report), [""; 0], "{report}");
    assert_eq!(looked_at(&report, "dialling back"), [1, 2, 3]);
}

#[test]
fn stores_of_this_machine_are_read_as_the_server_would_and_secrets_that_all_may_read_are_named() {
    const FIXTURES: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../server/keystore/tests/fixtures");
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::create_dir(path("data")).unwrap();
    fs::write(path("data/myid"), "1\n").unwrap();
    fs::write(path("password"), "changeit\n").unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(path("password"), all).unwrap();
    let told = |trust_store: &str| {
        let cfg = format!(
            "tickTime=500\ninitLimit=5\nsyncLimit=5\ndataDir={data}\nsslQuorum=true\n\
             ssl.quorum.keyStore.location={FIXTURES}/keytool-ec.jks\n\
             ssl.quorum.keyStore.passwordPath={password}\n\
             ssl.quorum.trustStore.location={FIXTURES}/{trust_store}\n\
             ssl.quorum.trustStore.passwordPath={password}\nserver.1=ec1.test:2888:3888\n",
            data = path("data"),
            password = path("password"),
        );
        fs::write(path("zoo.cfg"), cfg).unwrap();
        found(&json(&doctor(&[path("zoo.cfg")], &["--json", "--budget", "1s"])))
    };
    let found_of = |trust_store, rule: &str| {
        let all = told(trust_store);
        all.into_iter().filter(|found| found.starts_with(rule)).collect::<Vec<_>>()
    };
    let secret = found_of("trust.p12", "cfg.secret-mode").join("\n");
    assert!(secret.contains(&path("password")) && secret.contains("passwordPath"), "{secret}");
    assert_eq!(found_of("trust.p12", "cfg.tls-store"), [""; 0]);
    let missing = found_of("nothing.p12", "cfg.tls-store");
    assert!(missing.len() == 1 && missing[0].contains("nothing.p12"), "{missing:?}");
}
