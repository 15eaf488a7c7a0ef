//! The membership changes by command, under a running ensemble.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt as _;

use crate::common::{Ensemble, free_port, lines, quorate, read, stderr, stdout, until};

const ENABLED: &str = "reconfigEnabled=true";

/// `quorate reconfig` with the file of a server.
fn reconfig(ensemble: &Ensemble, id: usize, more: &[&str]) -> std::process::Output {
    let file = ensemble.cfg(id).display().to_string();
    quorate(["reconfig", &file].into_iter().chain(more.iter().copied()))
}

/// What it prints when all is well.
fn membership(ensemble: &Ensemble, id: usize, more: &[&str]) -> String {
    let output = reconfig(ensemble, id, more);
    assert_eq!(output.status.code(), Some(0), "{more:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

/// The lines of servers in a text, by their keys.
fn keys(text: &str) -> Vec<&str> {
    let keys = text.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key);
    keys.filter(|key| key.starts_with("server.")).collect()
}

#[test]
fn servers_come_and_go_by_command() {
    let ensemble = Ensemble::new(&["participant"; 4], ENABLED);
    let fourth = read(&ensemble.cfg(4));
    let line = fourth.lines().find(|line| line.starts_with("server.4=")).unwrap();
    for id in 1..=3 {
        let without = read(&ensemble.cfg(id)).replace(line, "");
        fs::write(ensemble.cfg(id), without).unwrap();
    }
    let mut servers = ensemble.serve_all();
    let three = until("three that serve", || {
        let output = reconfig(&ensemble, 1, &["--timeout", "1000"]);
        (output.status.code() == Some(0)).then(|| stdout(&output).to_owned())
    });
    assert_eq!(keys(&three), ["server.1", "server.2", "server.3"]);
    // Which by then is its membership, too: it starts again all the same.
    until("the fourth follows", || {
        ensemble.ask(4, "srvr").contains("Mode: follower").then_some(())
    });
    assert_eq!(keys(&membership(&ensemble, 4, &[])), keys(&three));
    assert_eq!(servers[3].terminate(), Some(0));
    servers[3] = ensemble.serve(4);

    // Refused until it has been brought up, in which case nothing happens.
    let four = until("a fourth that votes", || {
        let output = reconfig(&ensemble, 2, &["--add", line]);
        (output.status.code() == Some(0)).then(|| stdout(&output).to_owned())
    });
    assert_eq!(keys(&four), ["server.1", "server.2", "server.3", "server.4"]);
    until("the one that has joined knows", || {
        let output = reconfig(&ensemble, 4, &[]);
        (stdout(&output) == four).then_some(())
    });
    let version = four.trim_end().rsplit_once("version=").unwrap().1;
    let dynamic = ensemble.dir.path().join(format!("3.cfg.dynamic.{version}"));
    until("the dynamic file", || dynamic.exists().then_some(()));
    assert_eq!(keys(&read(&dynamic)), keys(&four));

    let stale = reconfig(&ensemble, 1, &["--remove", "1", "--if-version", "1"]);
    assert_eq!(stale.status.code(), Some(1));
    assert_eq!(stderr(&stale), "unchanged: the membership has another version than expected\n");

    let file = ensemble.dir.path().join("members");
    let observer = four.replace(line, &line.replace("participant", "observer"));
    fs::write(&file, observer).unwrap();
    let whole = ["--members", &file.display().to_string(), "--if-version", version, "--json"];
    let output = reconfig(&ensemble, 3, &whole);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = &lines(&output)[0]["membership"];
    assert!(told[3].as_str().unwrap().contains(":observer"), "{told}");

    let rest = membership(&ensemble, 2, &["--remove", "1,4"]);
    assert_eq!(keys(&rest), ["server.2", "server.3"]);
    assert_eq!(membership(&ensemble, 3, &[]), rest);
    // One that was removed starts again as one that may join again.
    assert_eq!(servers[0].terminate(), Some(0));
    servers[0] = ensemble.serve(1);
    let own = read(&ensemble.cfg(1));
    let own = own.lines().find_map(|line| line.strip_prefix("quorate.self=")).unwrap();
    // Asked at a member: a leader believes no superuser of a server that is none.
    let back = until("it is brought up again", || {
        let output = reconfig(&ensemble, 2, &["--add", &format!("1={own}")]);
        (output.status.code() == Some(0)).then(|| stdout(&output).to_owned())
    });
    assert_eq!(keys(&back), ["server.1", "server.2", "server.3"]);
}

#[test]
fn what_cannot_be_asked_is_said_with_its_reason() {
    let ensemble = Ensemble::new(&["participant"], "");
    let absent = reconfig(&ensemble, 1, &[]);
    assert_eq!(absent.status.code(), Some(3));
    assert!(stderr(&absent).contains("quorate.sock"), "{}", stderr(&absent));
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let disabled = reconfig(&ensemble, 1, &[]);
    assert_eq!(disabled.status.code(), Some(1), "it may not change");
    assert!(stderr(&disabled).contains("reconfigEnabled=true"), "{}", stderr(&disabled));
    for (wrong, why) in [
        (&["--add", "4:host"][..], "\"4:host\" is no server"),
        (&["--add", "x=host:1:2"], "\"x=host:1:2\" is no server"),
        (&["--if-version", "yes"], "\"yes\" is no version"),
        (&["--members", "/nowhere"], "/nowhere"),
    ] {
        let output = reconfig(&ensemble, 1, wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&output).contains(why), "{wrong:?}: {}", stderr(&output));
    }
}

/// What its line says counts from then on, and is all that is said of it.
#[test]
fn the_client_port_moves_by_command_and_has_moved_after_a_restart() {
    let mut ensemble = Ensemble::new(&["participant"; 2], ENABLED);
    // Before the servers move it to a file of its own.
    let cfg = read(&ensemble.cfg(1));
    let line = cfg.lines().find(|line| line.starts_with("server.1=")).unwrap();
    let mut servers = ensemble.serve_all();
    ensemble.led();
    let old = ensemble.client[0];
    for restarts in [false, true] {
        let port = free_port();
        let moved = format!("{line};127.0.0.1:{port}");
        assert!(membership(&ensemble, 2, &["--add", &moved]).contains(&moved));
        ensemble.client[0] = port;
        assert_eq!(ensemble.ask(1, "ruok"), "imok");
        if restarts {
            assert_eq!(servers[0].terminate(), Some(0));
            servers[0] = ensemble.serve(1);
            ensemble.led();
        }
    }
    until("the old port is free", || TcpListener::bind(("127.0.0.1", old)).ok());
    assert!(!read(&ensemble.cfg(1)).contains("clientPort"));
    assert!(read(&ensemble.cfg(2)).contains("clientPort="), "its own line says nothing");
}

/// What a killed server leaves behind is no obstacle, and what ends in order leaves nothing.
#[test]
fn the_socket_of_a_killed_server_is_replaced() {
    let ensemble = Ensemble::new(&["participant", "participant"], ENABLED);
    let socket = ensemble.dir.path().join("1/quorate.sock");
    let is_there = || fs::metadata(&socket).is_ok_and(|file| file.file_type().is_socket());
    let _other = ensemble.serve(2);
    for _ in 0..2 {
        let server = ensemble.serve(1);
        until("two that serve", || {
            let output = reconfig(&ensemble, 1, &["--timeout", "1000"]);
            (output.status.code() == Some(0)).then_some(())
        });
        drop(server);
        assert!(is_there(), "killed");
    }
    let mut server = ensemble.serve(1);
    until("the socket", || (reconfig(&ensemble, 1, &[]).status.code() != Some(3)).then_some(()));
    assert_eq!(server.terminate(), Some(0));
    assert!(!is_there());
}
