//! A running server is told what to do by `quorate admin`, over the socket in its data directory.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Output;

use serde_json::Value;

use crate::common::{Ensemble, client_of, is_closed, lines, quorate, read, stderr, stdout, until};

const PARTICIPANT: &str = "participant";

/// `quorate admin` with the file of a server.
fn admin(ensemble: &Ensemble, id: usize, verb: &[&str]) -> Output {
    let file = ensemble.cfg(id).display().to_string();
    quorate(["admin", &file].into_iter().chain(verb.iter().copied()))
}

/// What it tells as JSON when all is well.
fn told(ensemble: &Ensemble, id: usize, verb: &[&str]) -> Value {
    let output = admin(ensemble, id, &[verb, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{verb:?}: {}", stderr(&output));
    lines(&output).remove(0)
}

/// The exit code, and what is said of it.
fn refused(ensemble: &Ensemble, id: usize, verb: &[&str]) -> (Option<i32>, String) {
    let output = admin(ensemble, id, verb);
    (output.status.code(), stderr(&output).trim_end().to_owned())
}

/// What a word is answered with, as soon as it is what is waited for: the connection before may still count.
fn says(ensemble: &Ensemble, word: &str, expected: impl Fn(&str) -> bool) -> String {
    until(word, || {
        let mut stream = TcpStream::connect(("127.0.0.1", ensemble.client[0])).ok()?;
        stream.write_all(word.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        expected(&answer).then_some(answer)
    })
}

fn connect(ensemble: &Ensemble, id: usize) -> UnixStream {
    UnixStream::connect(ensemble.dir.path().join(format!("{id}/quorate.sock"))).unwrap()
}

#[test]
fn the_socket_is_its_users_alone_and_who_asks_what_cannot_be_read_hurts_nobody() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "");
    let (code, why) = refused(&ensemble, 1, &["status"]);
    assert!(code == Some(3) && why.contains("quorate.sock"), "{why}");
    let mut server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let socket = ensemble.dir.path().join("1/quorate.sock");
    until("the socket", || socket.exists().then_some(()));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);

    // Half a line for ever, from more than are served at a time but for one; a megabyte; junk; nothing.
    let halves: Vec<_> = (0..63)
        .map(|_| {
            let mut half = connect(&ensemble, 1);
            half.write_all(b"{\"status").unwrap();
            half
        })
        .collect();
    let mut long = connect(&ensemble, 1);
    drop(long.write_all(&vec![b'x'; 1 << 20]));
    drop(long);
    drop(connect(&ensemble, 1));
    for junk in ["\0\n", "{}\n", "{\"reconfig\":{\"sudo\":1}}\n", "\"drop\"\n", "[[[[[[\n"] {
        let mut asked = connect(&ensemble, 1);
        asked.write_all(junk.as_bytes()).unwrap();
        let mut answer = String::new();
        asked.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"wrong\":\"the question cannot be read"), "{junk}: {answer}");
    }
    let status = &told(&ensemble, 1, &["status"])["status"];
    assert_eq!((&status["state"], &status["leader"]), (&"leading".into(), &1.into()), "{status}");
    drop(halves);

    let text = admin(&ensemble, 1, &["status"]);
    assert!(stdout(&text).starts_with("server 1: leading, broadcast, epoch 1, zxid 0x1"));
    assert_eq!(server.terminate(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn the_leadership_goes_where_it_is_told_to() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "");
    let _servers = ensemble.serve_all();
    let first = ensemble.led();
    let follower = if first == 1 { 2 } else { 1 };
    let already = &told(&ensemble, follower, &["hand-over", "--to", "lowest"])["leads"];
    assert_eq!((&already["leader"], &already["changed"]), (&first.into(), &false.into()));
    let said = admin(&ensemble, follower, &["hand-over", "--to", "lowest"]);
    let nothing =
        format!("server {follower} does not lead, and has nothing to give: server {first}");
    assert!(stdout(&said).starts_with(&nothing), "{}", stdout(&said));
    let (code, why) = refused(&ensemble, follower, &["transfer", "--to", "3"]);
    if first == 3 {
        assert_eq!(code, Some(0), "{why}");
    } else {
        assert_eq!((code, why), (Some(1), format!("unchanged: server {first} leads: ask there")));
    }
    let (code, why) = refused(&ensemble, first, &["transfer", "--to", "9"]);
    assert_eq!((code, why.as_str()), (Some(1), "unchanged: server 9 has no vote"));

    let lowest = told(&ensemble, first, &["transfer", "--to", "lowest"]);
    let expected = if first == 1 { 2 } else { 1 };
    assert_eq!(lowest["leads"]["leader"], expected, "{lowest}");
    assert_eq!(lowest["leads"]["changed"], true);
    until("it serves", || (ensemble.led() == expected).then_some(()));
    let text = admin(&ensemble, expected, &["transfer", "--to", "3", "--wait", "30s"]);
    assert_eq!(text.status.code(), Some(0), "{}", stderr(&text));
    assert!(stdout(&text).starts_with("server 3 leads, epoch "), "{}", stdout(&text));
    until("it serves", || (ensemble.led() == 3).then_some(()));
    let next = &told(&ensemble, 3, &["step-down"])["leads"];
    assert!(next["epoch"].as_i64() > lowest["leads"]["epoch"].as_i64(), "{next}");
    for (verb, why) in [
        (&["transfer", "--to", "first"][..], "\"first\" is neither"),
        (&["step-down", "--wait", "1h"], "\"1h\" is no time"),
    ] {
        let (code, said) = refused(&ensemble, 1, verb);
        assert!(code == Some(2) && said.contains(why), "{said}");
    }
}

#[test]
fn a_file_that_has_changed_is_read_again_and_one_that_is_broken_changes_nothing() {
    let ensemble =
        Ensemble::new(&[PARTICIPANT], "4lw.commands.whitelist=srvr,conf\nmaxClientCnxns=3");
    let server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let good = read(&ensemble.cfg(1));
    let unchanged = admin(&ensemble, 1, &["reload"]);
    assert!(stdout(&unchanged).ends_with("\nnothing has changed\n"), "{}", stderr(&unchanged));

    let changed = good
        .replace("=srvr,conf", "=srvr,conf,ruok")
        .replace(
            "maxClientCnxns=3",
            "maxClientCnxns=1\nquorate.log.level=debug\nmaxSessionTimeout=5000",
        )
        .replace("initLimit=20", "initLimit=30\nquorate.madeUp=1");
    fs::write(ensemble.cfg(1), &changed).unwrap();
    let reloaded = &told(&ensemble, 1, &["reload"])["reloaded"];
    let now = [
        "4lw.commands.whitelist=srvr,conf,ruok",
        "maxClientCnxns=1",
        "maxSessionTimeout=5000",
        "quorate.log.level=debug",
    ];
    assert_eq!(reloaded["now"], Value::from(now.to_vec()), "{reloaded}");
    assert_eq!(reloaded["at_restart"], Value::from(vec!["initLimit=30"]), "{reloaded}");
    assert!(reloaded["warnings"].to_string().contains("quorate.madeUp"), "{reloaded}");
    says(&ensemble, "ruok", |answer| answer == "imok");
    let conf = says(&ensemble, "conf", |answer| !answer.is_empty());
    for line in ["maxClientCnxns=1\n", "maxSessionTimeout=5000\n", "initLimit=20\n"] {
        assert!(conf.contains(line), "{line}: {conf}");
    }
    assert_eq!(told(&ensemble, 1, &["status"])["status"]["log"], "debug");
    until("more is logged", || read(&ensemble.log(1)).contains(" DEBUG ").then_some(()));
    let first = until("a place", || client_of(&ensemble, 1, 4000));
    assert!(client_of(&ensemble, 1, 4000).is_none(), "one of this address is all");
    let again = &told(&ensemble, 1, &["reload"])["reloaded"];
    assert_eq!(again["now"], Value::from(Vec::<Value>::new()));
    assert_eq!(again["at_restart"], Value::from(vec!["initLimit=30"]), "until it starts again");

    fs::write(ensemble.cfg(1), changed.replace("initLimit=30", "initLimit=x").replace(",ruok", ""))
        .unwrap();
    let (code, why) = refused(&ensemble, 1, &["reload"]);
    let line = format!("unchanged: {}:2: initLimit=x", ensemble.cfg(1).display());
    assert!(code == Some(2) && why.starts_with(&line) && why.ends_with("stays in force"), "{why}");
    drop(first);
    says(&ensemble, "ruok", |answer| answer == "imok");
    fs::write(ensemble.cfg(1), good).unwrap();
    server.signal("HUP");
    let refusal = "ruok is not executed because it is not in the whitelist.\n";
    says(&ensemble, "ruok", |answer| answer == refusal);
    let (code, why) = refused(&ensemble, 1, &["log-level", "a=b=c"]);
    assert!(code == Some(2) && why.contains("wrong log filter"), "{why}");
    assert_eq!(told(&ensemble, 1, &["log-level", "warn"])["log_level"]["filter"], "warn");
    assert_eq!(told(&ensemble, 1, &["log-level", "default"])["log_level"]["filter"], "info");
}

#[test]
fn a_snapshot_is_taken_and_a_share_of_the_clients_sent_away_by_command() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "maxClientCnxns=0");
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let mut clients: Vec<_> = (0..10).map(|_| client_of(&ensemble, 1, 10_000).unwrap()).collect();
    let taken = told(&ensemble, 1, &["snapshot"])["snapshot"].clone();
    // The epoch's start has no number of its own, so the tenth session is the tenth.
    assert_eq!(taken["zxid"], "0x10000000a");
    let file = fs::metadata(taken["file"].as_str().unwrap()).unwrap();
    assert_eq!(taken["bytes"], file.len());
    assert!(taken["file"].as_str().unwrap().ends_with("1/version-2/snapshot.10000000a"), "{taken}");
    assert_eq!(told(&ensemble, 1, &["snapshot"])["snapshot"], taken, "nothing is new");

    let shed = admin(&ensemble, 1, &["shed", "--share", "50", "--within", "50"]);
    assert_eq!(stdout(&shed), "5 of 5 connections closed\n", "{}", stderr(&shed));
    assert!(clients[..5].iter_mut().all(is_closed), "the oldest");
    let ping = [&8_i32.to_be_bytes()[..], &(-2_i32).to_be_bytes(), &11_i32.to_be_bytes()].concat();
    clients.push(client_of(&ensemble, 1, 10_000).unwrap());
    for client in &mut clients[5..] {
        client.write_all(&ping).unwrap();
        client.read_exact(&mut [0; 20]).unwrap();
    }
}
