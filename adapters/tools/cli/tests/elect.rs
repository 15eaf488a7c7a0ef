//! `quorate elect` through a Java ZooKeeper server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{
    Ensemble, Process, QUORATE, free_port, java_is_here, quorate, read, stderr, stdout, until,
};
use serde_json::Value;

#[cfg(not(feature = "etcd"))]
#[test]
fn a_command_without_etcds_client_says_which_feature_it_lacks() {
    let output = quorate(["elect", "--etcd", "http://127.0.0.1:9", "--path", "p", "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--features etcd"), "{output:?}");
}

/// One Java server, and a directory for what the commands write.
struct Stage {
    ensemble: Ensemble,
    server: Process,
}

impl Stage {
    fn new() -> Option<Self> {
        if !java_is_here() {
            return None;
        }
        let ensemble = Ensemble::new(&["participant"], "standaloneEnabled=false");
        let server = ensemble.java(1);
        ensemble.led();
        Some(Self { ensemble, server })
    }

    /// With a server of ours.
    fn ours() -> Self {
        let ensemble = Ensemble::new(&["participant"], "");
        let server = ensemble.serve(1);
        ensemble.led();
        Self { ensemble, server }
    }

    fn hosts(&self) -> String {
        format!("127.0.0.1:{}", self.ensemble.client[0])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.ensemble.dir.path().join(name)
    }

    fn arguments(&self, identity: &str, more: &[&str]) -> Vec<String> {
        let hosts = self.hosts();
        let fixed = ["elect", "--zookeeper", &hosts, "--path", "/election"];
        let own = ["--identity", identity, "--session-timeout", "4000"];
        fixed.into_iter().chain(own).chain(more.iter().copied()).map(str::to_owned).collect()
    }

    fn start(&self, identity: &str, more: &[&str]) -> Process {
        let log = File::create(self.path(&format!("{identity}.log"))).unwrap();
        let mut command = Command::new(QUORATE);
        command.env_remove("RUST_LOG").args(self.arguments(identity, more));
        Process::start(command.stdout(Stdio::null()).stderr(log))
    }

    /// A shell that says that it leads, and with which token, and goes on until it is ended.
    fn work(&self, name: &str) -> String {
        let said = self.path(name);
        format!("echo $QUORATE_FENCING_TOKEN $QUORATE_LEADER >> {}; exec sleep 600", said.display())
    }

    fn candidates(&self) -> Value {
        let output = quorate(self.arguments("asks", &["--candidates", "--json"]));
        serde_json::from_str(stdout(&output)).unwrap()
    }
}

fn wait_for(path: &Path) -> String {
    until("a line of the command", || Some(read(path)).filter(|text| text.ends_with('\n')))
}

#[test]
fn the_command_runs_where_the_leader_is_and_moves_when_it_ends() {
    let Some(stage) = Stage::new() else { return };
    let (first, second) = (stage.path("a"), stage.path("b"));
    let mut a = stage.start("a", &["--", "sh", "-c", &stage.work("a")]);
    let begun = wait_for(&first);
    let mut b = stage.start("b", &["--follow", "--json", "--", "sh", "-c", &stage.work("b")]);
    let log = stage.path("b.log");
    until("b to wait", || read(&log).contains("READY_COMPLETE").then_some(()));
    assert!(!second.exists(), "it does not lead");
    let who = stage.candidates();
    assert_eq!(
        (&who["leader"]["identity"], &who["waiting"][0]["identity"]),
        (&"a".into(), &"b".into())
    );

    // The command's own end, by a signal that was passed on.
    assert_eq!(a.terminate(), Some(128 + 15));
    let next = wait_for(&second);
    let token = |text: &str| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(token(&next) > token(&begun) && next.ends_with(" b\n"), "{begun}{next}");
    assert_eq!(stage.candidates()["leader"]["token"], token(&next));
    assert_eq!(b.terminate(), Some(128 + 15));
    let output = quorate(stage.arguments("asks", &["--who"]));
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "no leader\n"));
}

/// Of candidates that wait nothing is said, and each change once.
#[test]
fn whoever_follows_the_leader_is_told_each_and_ends_with_the_session() {
    let mut stage = Stage::ours();
    let (file, log) = (stage.path("follows"), stage.path("follows.log"));
    let follows = |more: &[&str], stdout: &Path| {
        let mut command = Command::new(QUORATE);
        let asks = ["elect", "--path", "/election", "--session-timeout", "1000", "--who"];
        command.env_remove("RUST_LOG").args(asks).args(["--zookeeper", &stage.hosts()]);
        command.args(["--follow"]).args(more);
        let (stdout, log) = (File::create(stdout).unwrap(), File::create(&log).unwrap());
        Process::start(command.stdout(stdout).stderr(log))
    };
    let mut asks = follows(&["--json"], &file);
    let says = |lines: &[Value]| {
        until("a line of the follower", || {
            let said = read(&file);
            let said: Vec<_> =
                said.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
            let leaders = said.iter().map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["leader"]["identity"].clone()
            });
            leaders.eq(lines.iter().cloned()).then_some(())
        });
    };
    says(&[Value::Null]);
    let mut a = stage.start("a", &["--", "sh", "-c", &stage.work("a")]);
    says(&[Value::Null, "a".into()]);
    let mut b = stage.start("b", &["--follow", "--", "sh", "-c", &stage.work("b")]);
    until("b to wait", || read(&stage.path("b.log")).contains("READY_COMPLETE").then_some(()));
    assert_eq!(a.terminate(), Some(128 + 15));
    says(&[Value::Null, "a".into(), "b".into()]);
    assert_eq!(b.terminate(), Some(128 + 15));
    says(&[Value::Null, "a".into(), "b".into(), Value::Null]);
    let output = quorate(stage.arguments("asks", &["--who", "--json"]));
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "{\"leader\":null}\n"));

    drop(stage.server.child.kill());
    assert_eq!(asks.end(), Some(3));
    assert!(read(&log).contains("the session is over"), "{}", read(&log));
}

/// With SIGKILL nothing is said to anybody: the command goes with its parent, the offer with the session.
#[test]
fn a_leader_that_is_killed_takes_its_command_along() {
    let Some(stage) = Stage::new() else { return };
    let pid = stage.path("pid");
    let script = format!("echo $$ > {}; exec sleep 600", pid.display());
    let mut a = stage.start("a", &["--", "sh", "-c", &script]);
    let id = wait_for(&pid).trim().to_owned();
    let b = stage.start("b", &["--", "sh", "-c", &stage.work("b")]);
    a.child.kill().unwrap();
    a.child.wait().unwrap();
    until("the command's end", || (!Path::new("/proc").join(&id).exists()).then_some(()));
    wait_for(&stage.path("b"));
    drop(b);
}

#[test]
fn exit_codes_are_the_commands_and_restarts_as_asked() {
    let Some(stage) = Stage::new() else { return };
    let code = |script: &str, more: &[&str]| {
        let arguments: Vec<_> = more.iter().copied().chain(["--", "sh", "-c", script]).collect();
        quorate(stage.arguments("a", &arguments)).status.code()
    };
    assert_eq!(code("exit 0", &[]), Some(0));
    assert_eq!(code("exit 7", &[]), Some(7));
    assert_eq!(code("kill -KILL $$", &[]), Some(128 + 9));
    let output = quorate(stage.arguments("a", &["--", "/no/such/command"]));
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));

    // Each time in a term of its own, until it succeeds.
    let tries = stage.path("tries");
    let script =
        format!("echo $QUORATE_FENCING_TOKEN >> {0}; test $(wc -l < {0}) -ge 3", tries.display());
    assert_eq!(code(&script, &["--restart", "on-failure"]), Some(0));
    let tokens: Vec<u64> = read(&tries).lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(tokens.len(), 3);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

/// The command ignores SIGTERM, and so do its children.
#[test]
fn a_command_that_will_not_end_is_killed_when_leadership_is_lost() {
    let Some(stage) = Stage::new() else { return };
    let pid = stage.path("pid");
    let script =
        format!("trap '' TERM; sleep 600 & echo $! > {}; while :; do sleep 1; done", pid.display());
    let mut a = stage.start("a", &["--grace", "300", "--", "sh", "-c", &script]);
    let grandchild = wait_for(&pid).trim().to_owned();
    let offer = stage.candidates()["leader"]["key"].as_str().unwrap().to_owned();
    let java = stage.ensemble.client[0];
    delete(java, &format!("/election/{offer}"));
    let status = until("the end", || a.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    assert!(read(&stage.path("a.log")).contains("leadership was lost"));
    until("the grandchild's end", || {
        (!Path::new("/proc").join(&grandchild).exists()).then_some(())
    });
}

/// As an operator would, with Java's own shell.
fn delete(port: u16, path: &str) {
    let jars = ["zookeeper.jar", "zookeeper-jute.jar", "slf4j-nop.jar", "commons-cli.jar"];
    let jars: Vec<_> = jars.iter().map(|jar| format!("/usr/share/java/{jar}")).collect();
    let mut java = Command::new("java");
    java.args(["-Xmx64m", "-cp", &jars.join(":"), "org.apache.zookeeper.ZooKeeperMain"]);
    java.args(["-server", &format!("127.0.0.1:{port}"), "delete", path]);
    assert!(java.stdin(Stdio::null()).status().unwrap().success());
}

/// Nobody is there to ask, and an operator has said who leads.
#[test]
fn who_is_designated_runs_the_command_while_the_store_is_out_of_reach() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leader").display().to_string();
    let output = quorate(["designate", &file]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let output = quorate(["designate", &file, "--identity", "me", "--token", "77"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = quorate(["designate", &file]);
    assert!(stdout(&output).starts_with("designated  me  token 77"), "{}", stdout(&output));
    let store = ["elect", "--zookeeper", "127.0.0.1:1", "--path", "/a", "--identity", "me"];
    let more = ["--session-timeout", "500", "--deadline", "500", "--designation", &file];
    let command = ["--", "sh", "-c", "echo $QUORATE_FENCING_TOKEN; exit 3"];
    let output = quorate(store.iter().chain(&more).chain(&command));
    assert_eq!((output.status.code(), stdout(&output)), (Some(3), "77\n"), "{}", stderr(&output));
}

/// The same, when the file is on another host.
#[test]
fn a_designation_is_served_to_candidates_of_other_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leader").display().to_string();
    let port = free_port();
    let mut command = Command::new(QUORATE);
    command.env_remove("RUST_LOG").args(["designate", "--serve", &port.to_string(), &file]);
    let serves = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let asked = |request: &str| {
        let mut stream = until("the port", || TcpStream::connect(("127.0.0.1", port)).ok());
        stream.write_all(format!("{request}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(asked("GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
    let output = quorate(["designate", &file, "--identity", "me", "--token", "77"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(asked("GET / HTTP/1.1").ends_with(&read(file.as_ref())), "the line as it is");
    for request in ["POST / HTTP/1.1", "PUT / HTTP/1.1"] {
        assert!(asked(request).starts_with("HTTP/1.1 405"), "{request}");
    }
    assert!(asked("GET /leader HTTP/1.1").starts_with("HTTP/1.1 404"));
    let url = format!("http://127.0.0.1:{port}/");
    let store = ["elect", "--zookeeper", "127.0.0.1:1", "--path", "/a", "--identity", "me"];
    let more = ["--session-timeout", "500", "--deadline", "500", "--designation", &url];
    let command = ["--", "sh", "-c", "echo $QUORATE_FENCING_TOKEN; exit 3"];
    let output = quorate(store.iter().chain(&more).chain(&command));
    assert_eq!((output.status.code(), stdout(&output)), (Some(3), "77\n"), "{}", stderr(&output));

    // What does not count any more is not served.
    std::fs::write(&file, "78 1 me\n").unwrap();
    assert!(asked("GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
    drop(serves);
}

#[test]
fn what_cannot_work_is_said_before_anything_is_done() {
    let code = |arguments: &[&str]| {
        let output = quorate(arguments.iter().copied());
        (output.status.code(), stderr(&output).to_owned())
    };
    let (status, said) = code(&["elect", "--zookeeper", "127.0.0.1:1", "--path", "/a"]);
    assert!(status == Some(2) && said.contains("what to do?"), "{said}");
    let (status, said) =
        code(&["elect", "--zookeeper", "127.0.0.1:1", "--path", "a", "--", "true"]);
    assert!(status == Some(2) && said.contains("begins with /"), "{said}");
    let (status, said) = code(&["elect", "--path", "/a", "--", "true"]);
    assert!(status == Some(2) && said.contains("--zookeeper"), "{said}");
    let much = ["--session-timeout", "1000", "--grace", "900", "--", "true"];
    let base = ["elect", "--zookeeper", "127.0.0.1:1", "--path", "/a"];
    let (status, said) = code(&[&base[..], &much[..]].concat());
    assert!(status == Some(2) && said.contains("grace"), "{said}");
    let who = ["--who", "--deadline", "500"];
    let (status, said) = code(&[&base[..], &who[..]].concat());
    assert!(status == Some(3) && said.contains("cannot be reached"), "{said}");
    if cfg!(not(feature = "etcd")) {
        let (status, said) = code(&["elect", "--etcd", "http://h", "--path", "a", "--", "true"]);
        assert!(status == Some(2) && said.contains("--features etcd"), "{said}");
    }
}

/// The same command through the other store.
#[cfg(feature = "etcd")]
mod through_etcd {
    use super::*;

    fn etcd() -> Option<(Process, tempfile::TempDir, String)> {
        if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
            let required = std::env::var("QUORATE_REQUIRE_PEERS").is_ok_and(|value| value == "1");
            assert!(!required, "etcd is missing, and QUORATE_REQUIRE_PEERS=1");
            eprintln!("skipped: etcd is missing");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let own = format!("http://127.0.0.1:{}", free_port());
        let peer = format!("http://127.0.0.1:{}", free_port());
        let mut etcd = Command::new("etcd");
        etcd.arg("--data-dir").arg(dir.path());
        etcd.args(["--name", "one", "--initial-cluster", &format!("one={peer}")]);
        etcd.args(["--listen-client-urls", &own, "--advertise-client-urls", &own]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        let etcd = Process::start(etcd.stdout(Stdio::null()).stderr(Stdio::null()));
        Some((etcd, dir, own))
    }

    #[test]
    fn the_command_runs_where_the_leader_is() {
        let Some((_etcd, _dir, endpoint)) = etcd() else { return };
        for recipe in ["offer", "lease"] {
            let fixed = ["elect", "--etcd", &endpoint, "--path", recipe, "--recipe", recipe];
            let script = "echo $QUORATE_LEADER $QUORATE_FENCING_TOKEN; exit 7";
            let more = ["--identity", "me", "--", "sh", "-c", script];
            let output = quorate(fixed.iter().chain(&more));
            assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
            let token = stdout(&output).strip_prefix("me ").unwrap().trim().parse::<u64>().unwrap();
            assert!(token > 0);
            let output = quorate(fixed.iter().chain(&["--who"]));
            assert_eq!(stdout(&output), "no leader\n");
        }
    }
}
