//! `migrate check`: what it finds in files, data directories and running servers, and the order.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Ensemble, QUORATE, quorate, stdout};
use serde_json::Value;

/// The files of three servers, and their data directories with what a Java server has written.
fn three(extra: &str) -> Ensemble {
    let ensemble = Ensemble::new(&["participant"; 3], extra);
    for id in 1..=3 {
        let inner = data(&ensemble, id).join("version-2");
        fs::create_dir(&inner).unwrap();
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/storage/tests/golden");
        for name in ["snapshot.0", "snapshot.10000000c", "snapshot.100000018", "log.100000001"] {
            fs::copy(golden.join(name), inner.join(name)).unwrap();
        }
        for epoch in ["acceptedEpoch", "currentEpoch"] {
            fs::write(inner.join(epoch), "2").unwrap();
        }
    }
    ensemble
}

fn cfg(ensemble: &Ensemble, id: usize) -> PathBuf {
    ensemble.dir.path().join(format!("{id}.cfg"))
}

fn data(ensemble: &Ensemble, id: usize) -> PathBuf {
    ensemble.dir.path().join(id.to_string())
}

fn add(ensemble: &Ensemble, id: usize, lines: &str) {
    let text = fs::read_to_string(cfg(ensemble, id)).unwrap();
    fs::write(cfg(ensemble, id), format!("{text}{lines}")).unwrap();
}

fn files(ensemble: &Ensemble) -> Vec<PathBuf> {
    (1..=3).map(|id| cfg(ensemble, id)).collect()
}

fn check(files: &[PathBuf]) -> (Option<i32>, Value) {
    report(&quorate(["migrate", "check", "--json"].map(PathBuf::from).iter().chain(files)))
}

fn report(output: &Output) -> (Option<i32>, Value) {
    (output.status.code(), serde_json::from_str(stdout(output)).unwrap())
}

/// What stands in a list of the report, in a field of each.
fn all<'a>(report: &'a Value, list: &str, field: &str) -> Vec<&'a Value> {
    report[list].as_array().unwrap().iter().map(|one| &one[field]).collect()
}

fn found<'a>(report: &'a Value, part: &str) -> Vec<&'a Value> {
    let is = |one: &&Value| one["finding"].as_str().unwrap().contains(part);
    report["findings"].as_array().unwrap().iter().filter(is).collect()
}

#[test]
fn three_servers_as_they_usually_are_may_be_replaced_and_are_told_in_which_order() {
    let ensemble = three("jute.maxbuffer=1048575");
    let (code, report) = check(&files(&ensemble));
    assert_eq!((code, &report["findings"]), (Some(0), &Value::Array(vec![])));
    assert_eq!(report["forbidden"], false);
    assert_eq!(all(&report, "order", "server"), [1, 2, 3]);
    assert_eq!(report["order"][2]["file"], cfg(&ensemble, 3).to_str().unwrap());
    let output = quorate(["migrate", "check"].map(PathBuf::from).iter().chain(&files(&ensemble)));
    let text = stdout(&output);
    let dir = data(&ensemble, 2);
    assert!(text.contains("\n  2. server 2 on 127.0.0.1"), "{text}");
    assert!(text.contains(&format!("`quorate log check {}`", dir.display())), "{text}");
    assert!(text.contains("3. server 3 on 127.0.0.1 (leads, probably"), "{text}");
    assert!(text.ends_with("nothing forbids or endangers it\n"), "{text}");
}

#[test]
fn everything_that_forbids_it_is_named_with_its_place_and_what_to_do() {
    let ensemble = three("");
    add(
        &ensemble,
        2,
        "ssl.quorum.crl=true\nquorum.auth.enableSasl=true\nauthProvider.1=org.example.Provider\n\
         localSessionsEnabled=true\nenforceQuota=true\nquorate.election=generation\nquorate.lease=4000\n\
         zookeeper.ssl.keyStore.password=letmein\nssl.keyStore.location=/x\n",
    );
    let (code, report) = check(&files(&ensemble));
    assert_eq!((code, &report["forbidden"]), (Some(1), &Value::Bool(true)));
    let lines = fs::read_to_string(cfg(&ensemble, 2)).unwrap();
    let forbid: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["level"] == "forbids")
        .collect();
    let settings: Vec<_> = forbid.iter().map(|f| f["setting"].as_str().unwrap()).collect();
    assert_eq!(
        settings,
        [
            "ssl.quorum.crl",
            "quorum.auth.enableSasl",
            "authProvider.1",
            "localSessionsEnabled",
            "enforceQuota",
            "quorate.election",
            "quorate.lease",
        ]
    );
    for finding in forbid {
        assert_eq!(finding["file"], cfg(&ensemble, 2).to_str().unwrap());
        assert_eq!(finding["server"], 2);
        let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
        let (setting, value) = (&finding["setting"], &finding["value"]);
        let expected = format!("{}={}", setting.as_str().unwrap(), value.as_str().unwrap());
        assert_eq!(lines.lines().nth(line - 1).unwrap(), expected);
        assert!(!finding["do"].as_str().unwrap().is_empty());
    }
    // Stores for clients without a port for them are of no use at a Java server, either.
    assert_eq!(found(&report, "ssl.keyStore"), Vec::<&Value>::new());
    assert!(!report.to_string().contains("letmein"));
}

#[test]
fn files_gathered_on_one_machine_are_told_apart_by_what_is_said_of_them() {
    let ensemble = three("");
    for id in [2, 3] {
        let text = fs::read_to_string(cfg(&ensemble, id)).unwrap();
        let (theirs, ours) = (data(&ensemble, id), data(&ensemble, 1));
        let text = text.replace(theirs.to_str().unwrap(), ours.to_str().unwrap());
        fs::write(cfg(&ensemble, id), text).unwrap();
    }
    let (code, report) = check(&files(&ensemble));
    assert_eq!(code, Some(1));
    assert_eq!(found(&report, "are both of server 1").len(), 2);
    let said = |id: usize| PathBuf::from(format!("{id}={}", cfg(&ensemble, id).display()));
    let (code, report) = check(&[said(1), said(2), said(3)]);
    assert_eq!(code, Some(0), "{report}");
    // The directory that is here is server 1's.
    let elsewhere = found(&report, "it is not on this machine");
    assert_eq!(elsewhere.iter().map(|one| &one["server"]).collect::<Vec<_>>(), [2, 3]);
    // One whose directory is nowhere here, and of which nothing is said.
    let text = fs::read_to_string(cfg(&ensemble, 2)).unwrap();
    let gone = text.replace(data(&ensemble, 1).to_str().unwrap(), "/nowhere/at/all");
    fs::write(cfg(&ensemble, 2), gone).unwrap();
    let (code, report) = check(&[cfg(&ensemble, 2)]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(found(&report, "whose file it is cannot be known").len(), 1);
    assert_eq!(found(&report, "of server 1, 2, 3").len(), 1);
}

#[test]
fn what_is_not_the_same_in_all_files_is_named() {
    let ensemble = three("");
    add(&ensemble, 2, "jute.maxbuffer=4194304\nsnapshot.trust.empty=true\n");
    let text = fs::read_to_string(cfg(&ensemble, 3)).unwrap();
    let other = text.replace("tickTime=500", "tickTime=2000");
    fs::write(cfg(&ensemble, 3), format!("{other}server.4=127.0.0.1:9:10\n")).unwrap();
    let (code, report) = check(&files(&ensemble));
    assert_eq!(code, Some(1));
    let [members] = found(&report, "its server lines are not those of")[..] else { panic!() };
    assert_eq!((&members["level"], &members["server"]), (&"forbids".into(), &3.into()));
    let [tick] = found(&report, "tickTime is 2000 here and 500 in")[..] else { panic!("{report}") };
    assert_eq!((&tick["line"], &tick["level"]), (&1.into(), &"endangers".into()));
    let [buffer] = found(&report, "jute.maxbuffer is 4194304")[..] else { panic!("{report}") };
    assert_eq!((&buffer["server"], &buffer["value"]), (&2.into(), &"4194304".into()));
    assert_eq!(found(&report, "longer or shorter requests than usual").len(), 1);
    assert_eq!(found(&report, "starts from its log alone").len(), 1);
}

#[test]
fn a_damaged_data_directory_forbids_it() {
    let ensemble = three("");
    let log = data(&ensemble, 3).join("version-2/log.100000001");
    let mut bytes = fs::read(&log).unwrap();
    bytes[200] ^= 1;
    fs::write(&log, bytes).unwrap();
    let (code, report) = check(&files(&ensemble));
    assert_eq!(code, Some(1));
    let damages = found(&report, "the record is damaged");
    assert!(damages.iter().any(|one| one["server"] == 3 && one["level"] == "forbids"), "{report}");
    assert!(damages.iter().all(|one| one["file"].as_str().unwrap().contains("/3/version-2/log.")));
}

#[test]
fn who_leads_is_asked_and_is_the_last() {
    let ensemble = three("jute.maxbuffer=1048575");
    for (port, mode) in ensemble.client.iter().zip(["leader", "follower", "follower"]) {
        let listener = TcpListener::bind(("127.0.0.1", *port)).unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut word = [0; 4];
            socket.read_exact(&mut word).unwrap();
            assert_eq!(&word, b"srvr");
            let answer = format!("Zookeeper version: 3.9.3-c26634f, built on x\nMode: {mode}\n");
            socket.write_all(answer.as_bytes()).unwrap();
        });
    }
    let arguments = ["migrate", "check", "--json", "--ask"].map(PathBuf::from);
    let (code, report) = report(&quorate(arguments.iter().chain(&files(&ensemble))));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(all(&report, "order", "server"), [2, 3, 1]);
    assert_eq!(all(&report, "order", "leads"), [false, false, true]);
    assert_eq!(found(&report, "passes a history with a hole on").len(), 3);
}

#[test]
fn flags_of_the_jvm_count_and_a_file_that_is_not_there_is_a_usage_error() {
    let ensemble = three("");
    let output = std::process::Command::new(QUORATE)
        .args(["migrate", "check", "--json"])
        .args(files(&ensemble))
        .env("SERVER_JVMFLAGS", "-Dzookeeper.enforceQuota=true")
        .output()
        .unwrap();
    let (code, report) = report(&output);
    assert_eq!(code, Some(1));
    let quotas = found(&report, "enforcing quotas is not there");
    assert!(quotas.len() == 3 && quotas[0]["file"] == "SERVER_JVMFLAGS", "{report}");
    let output = quorate(["migrate", "check", "/nowhere/zoo.cfg"]);
    assert_eq!(output.status.code(), Some(2));
}
