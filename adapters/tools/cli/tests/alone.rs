//! A server alone, from a file without any line of a server: ZooKeeper's standalone mode. Its directory goes to ZooKeeper
//! and back.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::common::{Ensemble, Process, java_is_here, quorate, read, stderr, stdout, until};

/// What zoo.cfg and myid of Debian's package say before anybody edits them; where the data is, and the port, are this
/// test's.
const DEBIAN: &str = "# The number of milliseconds of each tick\ntickTime=2000\n\
                      # The number of ticks that the initial \n# synchronization phase can take\ninitLimit=10\n\
                      syncLimit=5\ndataDir=/var/lib/zookeeper\nclientPort=2181\n#maxClientCnxns=60\n";
const MYID: &str = "replace this text with the cluster-unique zookeeper's instance id (1-255)\n";

/// A configuration of a server alone in place of an ensemble's.
fn alone(text: &str) -> Ensemble {
    let ensemble = Ensemble::new(&["participant"], "");
    let text = text
        .replace("dataDir=/var/lib/zookeeper", &format!("dataDir={}", data(&ensemble).display()))
        .replace("clientPort=2181", &format!("clientPort={}", ensemble.client[0]));
    fs::write(ensemble.cfg(1), text + "clientPortAddress=127.0.0.1\n4lw.commands.whitelist=*\n")
        .unwrap();
    fs::remove_file(data(&ensemble).join("myid")).unwrap();
    ensemble
}

fn data(ensemble: &Ensemble) -> PathBuf {
    ensemble.dir.path().join("1")
}

/// What a client's command says.
fn client(ensemble: &Ensemble, words: &[&str]) -> String {
    let address = format!("127.0.0.1:{}", ensemble.client[0]);
    let output = quorate(["client", &address].iter().chain(words));
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

/// How many sockets of a process listen.
fn listening(process: &Process) -> usize {
    let of = format!("/proc/{}", process.child.id());
    let mut listening = Vec::new();
    for table in ["tcp", "tcp6"] {
        for line in read(PathBuf::from(format!("{of}/net/{table}")).as_path()).lines().skip(1) {
            let columns: Vec<_> = line.split_whitespace().collect();
            // State and inode.
            if columns[3] == "0A" {
                listening.push(format!("socket:[{}]", columns[9]));
            }
        }
    }
    let files = fs::read_dir(format!("{of}/fd")).unwrap().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter(|link| listening.iter().any(|socket| link.to_str() == Some(socket))).count()
}

#[test]
fn debians_file_is_served_as_it_is_and_nothing_listens_but_the_client_port() {
    let ensemble = alone(DEBIAN);
    // As there, a link to a file that says what to do.
    let elsewhere = ensemble.dir.path().join("myid");
    fs::write(&elsewhere, MYID).unwrap();
    symlink(elsewhere, data(&ensemble).join("myid")).unwrap();

    let mut server = ensemble.serve(1);
    ensemble.led();
    assert!(ensemble.ask(1, "srvr").contains("Mode: standalone\n"));
    assert_eq!(listening(&server), 1, "the port for clients");
    let conf = ensemble.ask(1, "conf");
    assert!(conf.ends_with("serverId=1\n") && !conf.contains("quorumPort"), "{conf}");
    client(&ensemble, &["create", "/a", "kept"]);
    assert_eq!(client(&ensemble, &["get", "/zookeeper/config"]).trim(), "", "there is no ensemble");

    assert_eq!(server.terminate(), Some(0));
    let _again = ensemble.serve(1);
    ensemble.led();
    assert_eq!(client(&ensemble, &["get", "/a"]), "kept\n");
}

/// Java, this server, Java, this server: each has what all before it wrote, and counts on.
#[test]
fn a_directory_goes_from_zookeepers_standalone_server_to_this_one_and_back() {
    if !java_is_here() {
        return;
    }
    let ensemble = alone("tickTime=500\ndataDir=/var/lib/zookeeper\nclientPort=2181\n");
    let mut before = 0;
    for turn in 0..4 {
        let mut server = if turn % 2 == 0 { ensemble.java(1) } else { ensemble.serve(1) };
        ensemble.led();
        for past in 0..turn {
            let found = client(&ensemble, &["get", &format!("/of-{past}")]);
            assert_eq!(found, format!("written in turn {past}\n"));
        }
        let (path, text) = (format!("/of-{turn}"), format!("written in turn {turn}"));
        client(&ensemble, &["create", &path, &text]);
        client(&ensemble, &["create", "-s", "/counted-", ""]);
        client(&ensemble, &["set", "/of-0", "written in turn 0"]);
        let srvr = ensemble.ask(1, "srvr");
        let zxid = srvr.lines().find_map(|line| line.strip_prefix("Zxid: 0x")).unwrap();
        let zxid = i64::from_str_radix(zxid, 16).unwrap();
        assert!(zxid > before, "turn {turn}: {zxid:x} after {before:x}");
        before = zxid;
        let _ = server.terminate();
    }
    let _server = ensemble.serve(1);
    ensemble.led();
    let mut found: Vec<_> = client(&ensemble, &["ls", "/"]).lines().map(str::to_owned).collect();
    found.retain(|name| name.starts_with("counted-"));
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(client(&ensemble, &["stat", "/of-0"]).contains('4'), "its version");
}

/// What an ensemble's servers agreed on at run time binds until an operator says otherwise: nobody splits off unawares.
#[test]
fn the_directory_of_an_ensemble_that_has_changed_is_not_served_alone() {
    let ensemble = Ensemble::new(&["participant"; 3], "reconfigEnabled=true");
    let mut servers = ensemble.serve_all();
    let leader = ensemble.led();
    let leaves = leader % 3 + 1;
    let stays = leaves % 3 + 1;
    let file = ensemble.cfg(leader).display().to_string();
    let output = quorate(["reconfig", &file, "--remove", &leaves.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let version = stdout(&output).trim_end().rsplit_once("version=").unwrap().1.to_owned();
    until("the change in the snapshot's place", || {
        read(&ensemble.cfg(stays)).contains(&version).then_some(())
    });
    for server in &mut servers {
        let _ = server.terminate();
    }

    let (data, port) = (ensemble.dir.path().join(stays.to_string()), ensemble.client[stays - 1]);
    let alone = format!(
        "tickTime=500\ndataDir={}\nclientPort={port}\n4lw.commands.whitelist=*\n",
        data.display()
    );
    fs::write(ensemble.cfg(stays), &alone).unwrap();
    let output = quorate(["serve".as_ref(), ensemble.cfg(stays).as_os_str()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output).lines().last().unwrap_or_default().to_owned();
    let forget = format!("quorate.membership.forget={version}");
    assert!(said.contains("an ensemble of 2 servers") && said.ends_with(&forget), "{said}");

    fs::write(ensemble.cfg(stays), format!("{alone}{forget}\n")).unwrap();
    let _server = ensemble.serve(stays);
    until("it serves", || ensemble.ask(stays, "srvr").contains("Mode: standalone").then_some(()));
}
