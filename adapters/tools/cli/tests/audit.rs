//! The audit log of `quorate serve`: a file that is rotated, and one that cannot be written.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Ensemble, quorate, read, stderr, until};

fn audited(more: &str) -> Ensemble {
    let ensemble = Ensemble::new(&["participant"], "");
    audit(&ensemble, more);
    ensemble
}

/// Has the first server write one.
fn audit(ensemble: &Ensemble, more: &str) {
    let cfg = read(&ensemble.cfg(1));
    let log = ensemble.dir.path().join("audit.log");
    let more = format!("\naudit.enable=true\nquorate.audit.log={}\n{more}", log.display());
    fs::write(ensemble.cfg(1), cfg + &more).unwrap();
}

fn create(ensemble: &Ensemble, path: &str) {
    let address = format!("127.0.0.1:{}", ensemble.client[0]);
    let output = quorate(["client", &address, "create", path, ""]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn changes_are_appended_to_a_file_that_may_be_renamed_at_any_time() {
    let ensemble = audited("");
    let (log, old) = (ensemble.dir.path().join("audit.log"), ensemble.dir.path().join("old"));
    let mut server = ensemble.serve(1);
    ensemble.led();
    create(&ensemble, "/a");
    until("the first change is told", || read(&log).contains("\tznode=/a\t").then_some(()));
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o137, 0, "for others to read");
    fs::rename(&log, &old).unwrap();
    create(&ensemble, "/b");
    until("the second is told in a file of its own", || {
        read(&log)
            .contains("operation=create\tznode=/b\tznode_type=persistent\tresult=success\n")
            .then_some(())
    });
    assert!(read(&old).contains("operation=serverStart\tresult=success\n"));
    assert!(!read(&old).contains("/b"));
    assert_eq!(server.terminate(), Some(0));
    let all = read(&log);
    assert!(all.ends_with("operation=serverStop\tresult=invoked\n"), "{all}");
}

#[test]
fn json_tells_what_operators_did_who_was_removed_and_who_got_no_link() {
    let ensemble = Ensemble::new(&["participant"; 3], "reconfigEnabled=true");
    audit(&ensemble, "quorate.audit.format=json\n");
    let servers = ensemble.serve_all();
    let gone = if ensemble.led() == 3 { 2 } else { 3 };
    let log = ensemble.dir.path().join("audit.log");
    let told = |operation: &str| {
        until(operation, || {
            let all = read(&log);
            let all = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            all.into_iter().find(|told| told["operation"] == operation)
        })
    };
    // A stranger that speaks TLS where servers do not.
    let mut stranger = TcpStream::connect(("127.0.0.1", ensemble.election[0])).unwrap();
    stranger.write_all(&[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]).unwrap();
    let refused = told("linkRefused");
    assert_eq!(refused["reason"], "tls-on-plain-port", "{refused}");
    assert_eq!((&refused["ip"], &refused["plane"]), (&"127.0.0.1".into(), &"election".into()));
    let (cfg, gone) = (ensemble.cfg(1), gone.to_string());
    let output = quorate(["reconfig", cfg.to_str().unwrap(), "--remove", &gone]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let asked = told("reconfig");
    let uid = fs::metadata(&cfg).unwrap().uid().to_string();
    assert_eq!((&asked["uid"], &asked["result"]), (&uid.into(), &"success".into()), "{asked}");
    let changed = told("configuration");
    assert_eq!((&changed["joined"], &changed["removed"]), (&"".into(), &gone.clone().into()));
    let line = format!("server.{gone}=");
    let names = |when: &str| changed[when].as_str().unwrap().contains(&line);
    assert!(names("before") && !names("after"), "{changed}");
    drop(servers);
}

#[test]
fn a_server_whose_audit_log_cannot_be_opened_does_not_start() {
    let ensemble = audited("quorate.audit.log=/nowhere/audit.log\n");
    let output = quorate(["serve", ensemble.cfg(1).to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write the audit log /nowhere/audit.log"));
}

#[test]
fn what_could_not_be_told_waits_until_the_log_can_be_written() {
    let ensemble = audited("");
    let log = ensemble.dir.path().join("audit.log");
    symlink("/dev/full", &log).unwrap();
    let _server = ensemble.serve(1);
    ensemble.led();
    // More than may wait to be told.
    let (long, address) = ("x".repeat(100_000), format!("127.0.0.1:{}", ensemble.client[0]));
    let mut client = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["client", &address, "--timeout", "60000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = (0..60).map(|number| format!("create /{number}{long} \"\"\n"));
    let lines = lines.collect::<String>();
    let mut stdin = client.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    until("the failure is said", || read(&ensemble.log(1)).contains("audit.failed").then_some(()));
    until("a client waits", || {
        let told = quorate(["client", &address, "--timeout", "1000", "ls", "/"]);
        (told.status.code() != Some(0)).then_some(())
    });
    fs::remove_file(&log).unwrap();
    assert!(client.wait().unwrap().success());
    writing.join().unwrap();
    until("all is told", || {
        let told = read(&log);
        (0..60).all(|number| told.contains(&format!("znode=/{number}x"))).then_some(())
    });
}
