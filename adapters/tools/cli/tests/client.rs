//! The shell, as people and scripts use it: on one server, each command once.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Ensemble, Process, QUORATE, free_port, lines, quorate, stderr, stdout, until};

const PARTICIPANT: &str = "participant";

/// One server, and what is asked of it.
struct Stand {
    ensemble: Ensemble,
    server: Process,
}

impl Stand {
    fn new() -> Self {
        let ensemble = Ensemble::new(&[PARTICIPANT], "extendedTypesEnabled=true");
        let server = ensemble.serve(1);
        ensemble.led();
        Self { ensemble, server }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ensemble.client[0])
    }

    fn ask(&self, words: &[&str]) -> Output {
        quorate(["client", &self.address()].iter().chain(words))
    }

    /// What a command that succeeds says.
    fn done(&self, words: &[&str]) -> String {
        let output = self.ask(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        stdout(&output).to_owned()
    }

    /// What a command that fails says.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.ask(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", stdout(&output));
        assert!(stdout(&output).is_empty(), "{words:?}");
        stderr(&output).to_owned()
    }

    /// All lines on stdin.
    fn piped(&self, more: &[&str], text: &str) -> Output {
        let mut shell = Command::new(QUORATE)
            .args(["client", &self.address()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        shell.wait_with_output().unwrap()
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.ensemble.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn each_command_once() {
    let stand = Stand::new();
    assert_eq!(stand.done(&["ls", "/"]), "zookeeper\n");
    assert_eq!(stand.refused(&["create", "/a/b", "x"]), "NoNode (-101): /a/b\n");
    assert_eq!(stand.done(&["create", "-p", "/a/b", "hello"]), "/a/b\n");
    assert_eq!(stand.done(&["get", "/a/b"]), "hello\n");
    assert_eq!(stand.done(&["set", "/a/b", "changed"]), "");
    assert_eq!(stand.refused(&["set", "-v", "7", "/a/b", "x"]), "BadVersion (-103): /a/b\n");
    assert_eq!(stand.done(&["set", "-v", "1", "/a/b", "again"]), "");
    let got = stand.done(&["get", "-s", "/a/b"]);
    assert!(got.starts_with("again\ncZxid = 0x"), "{got}");
    assert!(got.contains("\ndataVersion = 2\n") && got.contains("\ndataLength = 5\n"), "{got}");
    assert_eq!(stand.done(&["create", "-s", "/a/n"]), "/a/n0000000001\n");
    assert_eq!(stand.done(&["ls", "/a"]), "b\nn0000000001\n");
    assert!(stand.done(&["ls", "-s", "/a"]).contains("\nnumChildren = 2\n"));
    assert_eq!(stand.done(&["sync", "/a"]), "");

    let created = stand.piped(&[], "create -e /a/e\nstat /a/e\n");
    assert!(!stdout(&created).contains("ephemeralOwner = 0x0\n"), "{}", stdout(&created));
    assert_eq!(stand.refused(&["stat", "/a/e"]), "NoNode (-101): /a/e\n", "its session has ended");
    stand.done(&["create", "-c", "/container"]);
    stand.done(&["create", "-t", "60000", "/brief"]);
    stand.done(&["stat", "/brief"]);

    assert_eq!(stand.refused(&["delete", "/a"]), "NotEmpty (-111): /a\n");
    assert_eq!(stand.refused(&["delete", "-v", "9", "/a/b"]), "BadVersion (-103): /a/b\n");
    assert_eq!(stand.done(&["delete", "-v", "2", "/a/b"]), "");
    assert_eq!(stand.done(&["delete", "-r", "/a"]), "");
    stand.done(&["deleteall", "/container"]);
    assert_eq!(stand.done(&["ls", "/"]), "brief\nzookeeper\n");
    assert!(stand.done(&["help"]).contains("getAcl"));
}

#[test]
fn access_lists_and_identities() {
    let stand = Stand::new();
    stand.done(&["create", "/a", "x"]);
    assert_eq!(stand.done(&["getAcl", "/a"]), "world:anyone:cdrwa\n");
    assert_eq!(stand.refused(&["setAcl", "/a", "auth::cdrwa"]), "InvalidACL (-114): /a\n");
    stand.done(&["--auth", "ann:sesame", "setAcl", "/a", "auth::cdrwa"]);
    assert_eq!(stand.refused(&["get", "/a"]), "NoAuth (-102): /a\n");
    assert_eq!(stand.done(&["get", "/a", "--auth", "ann:sesame"]), "x\n");
    let typed = stand.piped(&["--json"], "addauth digest ann:sesame\ngetAcl /a\nget /a\n");
    assert_eq!(typed.status.code(), Some(0), "{}", stderr(&typed));
    let lines = lines(&typed);
    assert_eq!(lines[0], json!({"command": "addauth", "scheme": "digest"}));
    let acl = lines[1]["acl"][0].as_str().unwrap();
    assert!(acl.starts_with("digest:ann:") && acl.ends_with(":cdrwa"), "{acl}");
    assert_eq!(lines[2]["data"], "x");

    for wrong in ["world", "world:anyone:x"] {
        let output = stand.ask(&["setAcl", "/a", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    // Whatever is wrong with an identity, it is not repeated.
    for wrong in [&["addauth", "digest", "sesame"][..], &["--auth", "sesame", "ls", "/"]] {
        let output = stand.ask(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&output).contains("USER:PASSWORD"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("sesame"), "{}", stderr(&output));
    }
    let logged = Command::new(QUORATE)
        .args(["client", &stand.address(), "--auth", "ann:sesame", "get", "/a"])
        .env("RUST_LOG", "trace")
        .output()
        .unwrap();
    assert_eq!(stdout(&logged), "x\n");
    assert!(stderr(&logged).contains("connect") && !stderr(&logged).contains("sesame"));
}

#[test]
fn bytes_come_from_files_and_are_shown_in_hexadecimal() {
    let stand = Stand::new();
    let file = stand.file("bytes", &[0xff, 0x00, 0x7f]);
    stand.done(&["create", "-f", &file, "/a"]);
    assert_eq!(stand.done(&["get", "/a"]), "ff007f\n");
    let output = stand.ask(&["get", "/a", "--json"]);
    assert_eq!(lines(&output)[0], json!({"command": "get", "path": "/a", "data_hex": "ff007f"}));
    let file = stand.file("text", "zwölf\n".as_bytes());
    stand.done(&["set", "-f", &file, "/a"]);
    assert_eq!(stand.done(&["get", "/a"]), "zwölf\n\n");
    let missing = stand.refused(&["set", "-f", "/nowhere/x", "/a"]);
    assert!(missing.contains("/nowhere/x"), "{missing}");
}

#[test]
fn a_multi_is_done_as_a_whole_or_not_at_all() {
    let stand = Stand::new();
    let good = "# comments and empty lines are nothing\n\ncreate /a 1\ncreate /a/b 'two words'\nset /a 3\n\
                check -v 1 /a\ncreate /c\ndelete /c\n";
    let output = stand.ask(&["--json", "multi", &stand.file("good", good.as_bytes())]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let done = &lines(&output)[0]["done"];
    let commands: Vec<_> =
        done.as_array().unwrap().iter().map(|part| part["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["create", "create", "set", "check", "create", "delete"]);
    assert_eq!(done[2]["stat"]["version"], 1);
    assert_eq!(stand.done(&["get", "/a/b"]), "two words\n");

    let bad = "create /d\n\ncheck -v 9 /a\ncreate /e\n";
    let said = stand.refused(&["multi", &stand.file("bad", bad.as_bytes())]);
    assert_eq!(said, "BadVersion (-103): line 3, `check -v 9 /a`; nothing was done\n");
    assert_eq!(stand.done(&["ls", "/"]), "a\nzookeeper\n", "neither before nor behind it");
    for wrong in ["ls /\n", "create -p /x/y\n", "delete -r /a\n", "create 'x\n"] {
        let output = stand.ask(&["multi", &stand.file("wrong", wrong.as_bytes())]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).starts_with("line 1: "), "{}", stderr(&output));
    }
}

#[test]
fn piped_lines_go_on_to_the_end() {
    let stand = Stand::new();
    let script = "create \"/two words\" a\n\nget /nowhere\nlss\nls /\nquit\ncreate /never\n";
    let output = stand.piped(&[], script);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "/two words\ntwo words\nzookeeper\n", "no prompt");
    assert!(stderr(&output).starts_with("NoNode (-101): /nowhere\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("'lss'"), "{}", stderr(&output));

    let output = stand.piped(&["--json"], "ls /\nget /nowhere\nstat /\n");
    let lines = lines(&output);
    assert_eq!(lines.len(), 3, "an object for each result");
    assert_eq!(lines[0]["children"], json!(["two words", "zookeeper"]));
    let failed = json!({"error": "NoNode", "code": -101, "message": "NoNode (-101): /nowhere"});
    assert_eq!(lines[1], failed);
    assert_eq!((&lines[2]["command"], &lines[2]["stat"]["children"]), (&json!("stat"), &json!(2)));
    assert_eq!(stand.piped(&[], "ls /\n").status.code(), Some(0));
}

/// The next line that the watch prints.
fn event(events: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    serde_json::from_str(&events.next().unwrap().unwrap()).unwrap()
}

#[test]
fn a_watch_shows_what_happens_until_it_is_interrupted_even_through_a_restart() {
    let mut stand = Stand::new();
    stand.done(&["create", "/a"]);
    let notices = stand.ensemble.dir.path().join("notices");
    let mut command = Command::new(QUORATE);
    command.args(["client", &stand.address(), "--json", "--timeout", "10000"]);
    command.args(["watch", "-r", "/a"]).stdout(Stdio::piped());
    let mut watch = Process::start(command.stderr(fs::File::create(&notices).unwrap()));
    let said = |text: &str| fs::read_to_string(&notices).unwrap().contains(text).then_some(());
    until("the watch", || said("watching /a"));
    let mut events = BufReader::new(watch.child.stdout.take().unwrap()).lines();

    stand.done(&["create", "/a/b"]);
    let created = event(&mut events);
    assert_eq!((&created["event"], &created["path"]), (&json!("NodeCreated"), &json!("/a/b")));
    stand.done(&["set", "/a", "x"]);
    assert_eq!(event(&mut events)["event"], "NodeDataChanged");

    assert_eq!(stand.server.terminate(), Some(0));
    until("the loss", || said("the connection is lost"));
    stand.server = stand.ensemble.serve(1);
    stand.ensemble.led();
    until("the watch again", || said("connected again"));
    stand.done(&["delete", "/a/b"]);
    let deleted = event(&mut events);
    assert_eq!((&deleted["event"], &deleted["path"]), (&json!("NodeDeleted"), &json!("/a/b")));

    let pid = watch.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = until("the end after SIGINT", || watch.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert!(events.next().is_none());
}

#[test]
fn an_unreachable_server_is_told_within_the_timeout() {
    let address = format!("127.0.0.1:{}", free_port());
    let begun = Instant::now();
    let output = quorate(["client", &address, "--timeout", "700", "--json", "ls", "/"]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(3));
    let said = format!("no server could be reached: no session from {address} within 700 ms");
    assert_eq!(stderr(&output), format!("{said}\n"));
    assert_eq!(lines(&output)[0], json!({"error": "ConnectionLoss", "code": -4, "message": said}));
    // It takes the other one.
    let stand = Stand::new();
    let output = quorate(["client", &address, &stand.address(), "ls", "/"]);
    assert_eq!(stdout(&output), "zookeeper\n", "{}", stderr(&output));
    for wrong in [&["client"][..], &["client", "zk1"], &["client", "zk1:2181", "lss", "/"]] {
        assert_eq!(quorate(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
