//! One server in the foreground: four-letter words as ZooKeeper's, errors that name what is wrong.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{
    Ensemble, Process, QUORATE, client_of, free_port, is_closed, quorate, read, stderr, until,
};

const PARTICIPANT: &str = "participant";
const ALL_WORDS: &str = "4lw.commands.whitelist=*";

/// A text with numbers replaced, so that only its shape is left.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for character in text.replace("0x", "0").chars() {
        match character {
            '0'..='9' if shape.ends_with('9') => {}
            '0'..='9' => shape.push('9'),
            'a'..='f' if shape.ends_with('9') => {}
            other => shape.push(other),
        }
    }
    shape
}

/// What ZooKeeper 3.8.0 answers to `srvr`, from the second line on, but for a leader's line about the sizes of proposals,
/// which are not measured.
const LEADER: &str = "Latency min/avg/max: 0/1.8275/14\nReceived: 86\nSent: 99\nConnections: 2\n\
                      Outstanding: 0\nZxid: 0x1000001a1\nMode: leader\nNode count: 63\n";
const FOLLOWER: &str = "Latency min/avg/max: 0/1.8275/14\nReceived: 303\nSent: 359\nConnections: 2\n\
                        Outstanding: 0\nZxid: 0x1000001a1\nMode: follower\nNode count: 63\n";
const OBSERVER: &str = "Latency min/avg/max: 0/1.8275/14\nReceived: 48\nSent: 48\nConnections: 1\n\
                        Outstanding: 0\nZxid: 0x1000001a1\nMode: observer\nNode count: 63\n";
/// One of its lines about a connection, in `stat`.
const CLIENT: &str = " /127.0.0.1:50646[0](queued=0,recved=1,sent=0)";
/// The keys of its `conf`.
const CONF: [&str; 19] = [
    "clientPort",
    "secureClientPort",
    "dataDir",
    "dataDirSize",
    "dataLogDir",
    "dataLogSize",
    "tickTime",
    "maxClientCnxns",
    "minSessionTimeout",
    "maxSessionTimeout",
    "clientPortListenBacklog",
    "serverId",
    "initLimit",
    "syncLimit",
    "electionAlg",
    "electionPort",
    "quorumPort",
    "peerType",
    "membership: ",
];

#[test]
fn four_letter_words_look_like_zookeepers() {
    let ensemble = Ensemble::new(&[PARTICIPANT, PARTICIPANT, PARTICIPANT, "observer"], ALL_WORDS);
    let servers = ensemble.serve_all();
    let leader = ensemble.led();
    for id in 1..=servers.len() {
        let (expected, mode) = match id {
            4 => (OBSERVER, "observer"),
            id if id == leader => (LEADER, "leader"),
            _ => (FOLLOWER, "follower"),
        };
        let expected = shape(expected);
        assert_eq!(ensemble.ask(id, "ruok"), "imok");
        assert_eq!(ensemble.ask(id, "ruok\n"), "imok", "what follows is ignored");

        let srvr = ensemble.ask(id, "srvr");
        let (version, rest) = srvr.split_once('\n').unwrap();
        assert!(version.starts_with("Zookeeper version: "), "{version}");
        assert_eq!(shape(rest), expected, "server {id}");
        assert!(rest.contains("Zxid: 0x100000000\n"), "the start of epoch 1: {rest}");

        let stat = ensemble.ask(id, "stat");
        let (_, rest) = stat.split_once('\n').unwrap();
        let (clients, rest) = rest.split_once("\n\n").unwrap();
        let clients: Vec<_> = clients.lines().collect();
        assert_eq!(clients[0], "Clients:");
        assert!(clients[1..].iter().all(|line| shape(line) == shape(CLIENT)), "{clients:?}");
        assert_eq!(shape(rest), expected);

        let dirs = shape(&ensemble.ask(id, "dirs"));
        assert_eq!(dirs, shape("datadir_size: 7\nlogdir_size: 7\n"));

        let conf = ensemble.ask(id, "conf");
        let (settings, members) = conf.split_once("membership: \n").unwrap();
        let mut known = CONF.iter();
        for line in settings.lines() {
            let key = line.split_once('=').unwrap().0;
            assert!(known.any(|known| *known == key), "{key} in the order of ZooKeeper's");
        }
        assert!(settings.contains(&format!("serverId={id}\n")));
        assert!(settings.contains("tickTime=500\n"));
        assert!(settings.contains(if id == 4 { "peerType=1\n" } else { "peerType=0\n" }));
        assert!(members.starts_with("server.1=127.0.0.1:") && members.ends_with("version=0"));

        let mntr = ensemble.ask(id, "mntr");
        let value = |key: &str| {
            let line = mntr.lines().find_map(|line| line.strip_prefix(&format!("{key}\t")));
            line.map(str::to_owned)
        };
        let has = |key: &str| value(key).unwrap_or_else(|| panic!("{key} in {mntr}"));
        assert!(mntr.lines().all(|l| l.starts_with("zk_") && l.split('\t').count() == 2), "{mntr}");
        assert_eq!(has("zk_server_state"), mode);
        let state = match mode {
            "leader" => "leading",
            "observer" => "observing",
            _ => "following",
        };
        assert_eq!(has("zk_peer_state"), format!("{state} - broadcast"));
        // Nothing was missed.
        assert_eq!(value("zk_sync_mode").as_deref(), (mode != "leader").then_some("diff"));
        assert_eq!(has("zk_epoch"), "1");
        assert_eq!(has("zk_zxid"), "0x100000000");
        assert_eq!(has("zk_quorum_size"), "3");
        assert_eq!(has("zk_outstanding_requests"), "0");
        assert!(has("zk_looking_count").parse::<u64>().unwrap() >= 1);
        // An observer has no part in elections.
        let elections = has("zk_cnt_election_time").parse::<u64>().unwrap();
        assert_eq!(elections >= 1, id != 4, "{elections} elections of {id}");
        assert_eq!(has("zk_avg_election_time").parse::<f64>().unwrap() > 0.0, id != 4);
        assert!(has("zk_uptime").parse::<u64>().unwrap() > 0);
        assert_eq!(value("zk_leader_uptime").is_some(), mode == "leader");
        assert_eq!(value("zk_observer_master_id"), (id == 4).then(|| leader.to_string()));
    }
    let mntr = until("all learners", || {
        let mntr = ensemble.ask(leader, "mntr");
        mntr.contains("zk_learners\t3\n").then_some(mntr)
    });
    for line in ["zk_synced_followers\t2", "zk_synced_observers\t1", "zk_sync_progress\t100"] {
        assert!(mntr.contains(&format!("{line}\n")), "{line}: {mntr}");
    }
}

#[test]
fn the_whitelist_says_which_words_are_answered() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "4lw.commands.whitelist=srvr");
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    for word in ["ruok", "stat", "conf", "mntr", "cons"] {
        let refusal = format!("{word} is not executed because it is not in the whitelist.\n");
        assert_eq!(ensemble.ask(1, word), refusal);
    }
}

#[test]
fn a_server_without_a_leader_says_so() {
    let ensemble = Ensemble::new(&[PARTICIPANT; 3], ALL_WORDS);
    let _server = ensemble.serve(2);
    assert_eq!(ensemble.ask(2, "ruok"), "imok");
    for word in ["srvr", "stat", "conf"] {
        let answer = ensemble.ask(2, word);
        assert_eq!(answer, "This ZooKeeper instance is not currently serving requests\n", "{word}");
    }
    let mntr = ensemble.ask(2, "mntr");
    for line in ["zk_server_state\tlooking", "zk_peer_state\tlooking", "zk_cnt_election_time\t0"] {
        assert!(mntr.contains(&format!("{line}\n")), "{line}: {mntr}");
    }
}

#[test]
fn a_client_gets_a_session_and_silent_ones_do_not_fill_the_port() {
    let ensemble = Ensemble::new(&[PARTICIPANT], ALL_WORDS);
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);

    let mut client = TcpStream::connect(("127.0.0.1", ensemble.client[0])).unwrap();
    let mut connect = vec![0, 0, 0, 45];
    connect.resize(49, 0);
    client.write_all(&connect).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0; 41];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], 37_i32.to_be_bytes());
    assert_eq!(answer[8..12], 1000_i32.to_be_bytes(), "two ticks, the shortest time-out");
    assert_eq!(answer[12], 1, "the server's id leads that of the session");

    assert!(ensemble.ask(1, "srvr").contains("Mode: standalone\n"), "it needs nobody else");

    let silent: Vec<_> = (0..100)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", ensemble.client[0])).ok())
        .collect();
    // Those beyond the limit are closed at once, the others when they have said nothing for long.
    let begun = Instant::now();
    until("an answer", || {
        let mut stream = TcpStream::connect(("127.0.0.1", ensemble.client[0])).ok()?;
        stream.write_all(b"ruok").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        (answer == "imok").then_some(())
    });
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn sigterm_ends_it_in_order() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "");
    let mut server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    assert_eq!(server.terminate(), Some(0));
    // Ports and directory are free again.
    let _again = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
}

#[test]
fn clients_leave_a_server_one_by_one_when_it_is_told_to_end() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "maxClientCnxns=0\nquorate.shed=20000");
    let mut server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let mut clients: Vec<_> = (0..200).map(|_| client_of(&ensemble, 1, 10_000).unwrap()).collect();
    server.tell_to_end();
    assert!(is_closed(&mut clients[0]));
    until("the end of the listening socket", || {
        TcpStream::connect(("127.0.0.1", ensemble.client[0])).is_err().then_some(())
    });
    // The last is served while the others go.
    let last = clients.last_mut().unwrap();
    let ping = [&8_i32.to_be_bytes()[..], &(-2_i32).to_be_bytes(), &11_i32.to_be_bytes()].concat();
    last.write_all(&ping).unwrap();
    let mut reply = [0; 20];
    last.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], (-2_i32).to_be_bytes());
    assert!(clients.iter_mut().all(is_closed));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_second_signal_ends_it_although_clients_are_there() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "maxClientCnxns=0\nquorate.shed=3600000");
    let mut server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let mut clients: Vec<_> = (0..400).map(|_| client_of(&ensemble, 1, 10_000).unwrap()).collect();
    server.tell_to_end();
    assert!(is_closed(&mut clients[0]));
    assert_eq!(server.terminate(), Some(130));
}

#[test]
fn json_writes_each_change_to_stdout() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "");
    let mut command = Command::new(QUORATE);
    command.args(["serve", "--json", "--config"]).arg(ensemble.cfg(1));
    let changes = ensemble.dir.path().join("changes");
    let out = fs::File::create(&changes).unwrap();
    let mut server = Process::start(command.stdout(out).stderr(Stdio::null()));
    assert_eq!(ensemble.led(), 1);
    until("a last change", || read(&changes).contains("\"serving\":true").then_some(()));
    assert_eq!(server.terminate(), Some(0));
    for line in read(&changes).lines() {
        let change: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(change["event"], "change");
        assert_eq!(change["server"], 1);
    }
}

/// A file that cannot be used: exit code 2, and the message begins with file and line.
#[test]
fn wrong_configuration() {
    let table = [
        ("tickTime=500", "tickTime=abc", ":1: tickTime=abc"),
        ("initLimit=20\n", "", ": initLimit is missing"),
        ("server.1=127.0.0.1:", "server.1=127.0.0.1:99999:", ": server.1="),
        ("server.1=127.0.0.1:", "server.300=127.0.0.1:", ": server.300="),
        ("initLimit=20", "initLimit=-1", ":2: initLimit=-1"),
        ("server.1=", "standaloneEnabled=false\n#", ": no server.N line"),
        ("server.1=", "server.2=", ""),
    ];
    for (from, to, expected) in table {
        let ensemble = Ensemble::new(&[PARTICIPANT], "");
        let text = read(&ensemble.cfg(1));
        assert!(text.contains(from));
        fs::write(ensemble.cfg(1), text.replace(from, to)).unwrap();
        let output = quorate(["serve".as_ref(), ensemble.cfg(1).as_os_str()]);
        assert_eq!(output.status.code(), Some(2), "{to}: {}", stderr(&output));
        let last = stderr(&output).lines().last().unwrap_or_default();
        if expected.is_empty() {
            assert!(last.contains("myid"), "{to}: {last}");
        } else {
            let file = ensemble.cfg(1).display().to_string();
            assert!(last.starts_with(&file) && last.contains(expected), "{to}: {last}");
        }
    }
}

#[test]
fn a_jaas_file_that_asks_for_kerberos_is_refused_by_its_login_module() {
    for (section, lines) in [("Server", ""), ("QuorumServer", "quorum.auth.enableSasl=true\n")] {
        let ensemble = Ensemble::new(&[PARTICIPANT], "");
        let jaas = ensemble.dir.path().join("jaas.conf");
        let module = "com.sun.security.auth.module.Krb5LoginModule";
        fs::write(&jaas, format!("{section} {{ {module} required useKeyTab=true; }};\n")).unwrap();
        let text = read(&ensemble.cfg(1));
        let named = format!("{text}\n{lines}quorate.jaas.file={}\n", jaas.display());
        fs::write(ensemble.cfg(1), named).unwrap();
        let output = quorate(["serve".as_ref(), ensemble.cfg(1).as_os_str()]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let last = stderr(&output).lines().last().unwrap_or_default();
        assert!(last.contains("jaas.conf") && last.contains(module), "{last}");
    }
}

#[test]
fn missing_files() {
    let output = quorate(["serve", "/nowhere/zoo.cfg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/nowhere/zoo.cfg"), "{}", stderr(&output));

    let ensemble = Ensemble::new(&[PARTICIPANT], "");
    let myid = ensemble.dir.path().join("1/myid");
    for content in [None, Some(""), Some("x"), Some("999")] {
        fs::remove_file(&myid).unwrap_or_default();
        if let Some(content) = content {
            fs::write(&myid, content).unwrap();
        }
        let output = quorate(["serve".as_ref(), ensemble.cfg(1).as_os_str()]);
        assert_eq!(output.status.code(), Some(2), "{content:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("myid"), "{content:?}: {}", stderr(&output));
    }
    assert_eq!(quorate(["serve"]).status.code(), Some(2), "no file at all");
}

/// What the machine does not give: exit code 1, one line that names it.
#[test]
fn ports_and_directories_that_cannot_be_had() {
    let one_line = |ensemble: &Ensemble, expected: &str| {
        let output = quorate([
            "serve".as_ref(),
            ensemble.cfg(1).as_os_str(),
            "--log".as_ref(),
            "off".as_ref(),
        ]);
        assert_eq!(output.status.code(), Some(1), "{expected}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.lines().count() == 1 && said.contains(expected), "{expected}: {said}");
    };
    let quick = "electionPortBindRetry=1";

    let ensemble = Ensemble::new(&[PARTICIPANT], quick);
    // Also where everything may be written, as for root: a file where a directory should be.
    fs::write(ensemble.dir.path().join("1/version-2"), "").unwrap();
    one_line(&ensemble, "version-2");
    fs::remove_file(ensemble.dir.path().join("1/version-2")).unwrap();

    let taken = TcpListener::bind(("127.0.0.1", ensemble.client[0])).unwrap();
    one_line(&ensemble, &ensemble.client[0].to_string());
    drop(taken);
    let taken = TcpListener::bind(("127.0.0.1", ensemble.election[0])).unwrap();
    one_line(&ensemble, &ensemble.election[0].to_string());
    drop(taken);

    // Two servers, one directory.
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let other = read(&ensemble.cfg(1))
        .replace(&ensemble.election[0].to_string(), &free_port().to_string())
        .replace(&ensemble.client[0].to_string(), &free_port().to_string());
    let other: String = other
        .lines()
        .map(|line| match line.strip_prefix("server.1=127.0.0.1:") {
            Some(rest) => {
                let (_, rest) = rest.split_once(':').unwrap();
                format!("server.1=127.0.0.1:{}:{rest}\n", free_port())
            }
            None => format!("{line}\n"),
        })
        .collect();
    fs::write(ensemble.cfg(1), other).unwrap();
    one_line(&ensemble, "in use by another process");
}

#[test]
fn a_wrong_log_filter_is_a_usage_error() {
    let ensemble = Ensemble::new(&[PARTICIPANT], "");
    let output = quorate(["serve".as_ref(), ensemble.cfg(1).as_os_str(), "--log=a=b=c".as_ref()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

/// As ZooKeeper's start script hands them to its JVM, so that an operator's files work unchanged.
#[test]
fn flags_of_zookeepers_jvm_count_where_the_file_says_nothing() {
    let ensemble = Ensemble::new(&["participant"], "");
    let log = fs::File::create(ensemble.log(1)).unwrap();
    let mut command = Command::new(QUORATE);
    command
        .env("SERVER_JVMFLAGS", "-Xmx1000m -Dzookeeper.4lw.commands.whitelist=ruok,srvr")
        .env("JVMFLAGS", "-Djute.maxbuffer=4194304 -Dzookeeper.superDigst=hunter2")
        .arg("serve")
        .arg(ensemble.cfg(1));
    let _server = Process::start(command.stdout(Stdio::null()).stderr(log));
    ensemble.led();
    assert_eq!(
        ensemble.ask(1, "conf"),
        "conf is not executed because it is not in the whitelist.\n"
    );
    assert_eq!(ensemble.ask(1, "ruok"), "imok");
    let log = read(&ensemble.log(1));
    assert!(log.contains("JVMFLAGS: zookeeper.superDigst=***: unknown key"), "{log}");
    assert!(!log.contains("hunter2"));
}

#[test]
fn a_client_port_that_the_system_picks_is_told() {
    let mut ensemble = Ensemble::new(&["participant"], "");
    let cfg = read(&ensemble.cfg(1));
    let port = format!("clientPort={}", ensemble.client[0]);
    fs::write(ensemble.cfg(1), cfg.replace(&port, "clientPort=0")).unwrap();
    let _server = ensemble.serve(1);
    ensemble.client[0] = until("the port", || {
        let log = read(&ensemble.log(1));
        let line = log.lines().find(|line| line.contains("serving ZooKeeper clients"))?;
        let (_, port) = line.split_once("127.0.0.1:")?;
        port.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    assert_eq!(ensemble.led(), 1);
    let conf = ensemble.ask(1, "conf");
    assert!(conf.starts_with(&format!("clientPort={}\n", ensemble.client[0])), "{conf}");
}

/// setWatches for paths that are not there, in one frame as the C client sends it.
fn watches(paths: usize) -> Vec<u8> {
    let mut body = [&(-8_i32).to_be_bytes()[..], &101_i32.to_be_bytes(), &[0; 8], &[0; 4]].concat();
    body.extend_from_slice(&u32::try_from(paths).unwrap().to_be_bytes());
    for nth in 0..paths {
        let path = format!("/{nth:0>99}");
        body.extend_from_slice(&100_i32.to_be_bytes());
        body.extend_from_slice(path.as_bytes());
    }
    body.extend_from_slice(&[0; 4]);
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[..], &body].concat()
}

/// All that such frames may take of memory is taken by those that never end: they end with their sessions, and whoever
/// waits meanwhile loses nothing.
#[test]
fn frames_of_watches_that_never_end_go_with_their_sessions_and_others_only_wait() {
    let ensemble = Ensemble::new(&[PARTICIPANT], ALL_WORDS);
    let _server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let mut endless = Vec::new();
    for _ in 0..6 {
        let mut client = client_of(&ensemble, 1, 2000).unwrap();
        let header = [0x00, 0xff, 0xff, 0x00, 0xff, 0xff, 0xff, 0xf8, 0, 0, 0, 101];
        client.write_all(&header).unwrap();
        client.write_all(&[0; 1000]).unwrap();
        endless.push(client);
    }
    let mut other = client_of(&ensemble, 1, 10_000).unwrap();
    let whole = watches(20_000);
    assert!(whole.len() > 1 << 20, "longer than other frames may be");
    other.write_all(&whole).unwrap();
    let mut reply = [0; 20];
    other.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], (-8_i32).to_be_bytes());
    assert_eq!(reply[16..], [0; 4], "no error");
    for client in &mut endless {
        let mut rest = Vec::new();
        // The end, or a reset.
        drop(client.read_to_end(&mut rest));
        assert!(rest.is_empty());
    }
    let watched = ensemble.ask(1, "wchs");
    assert!(watched.contains("20000 paths"), "{watched}");
}

/// It would leave service with its first leader, and again every ten seconds.
#[test]
fn a_membership_that_could_not_be_written_is_told_before_anything_is_opened() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let ensemble = Ensemble::new(&[PARTICIPANT; 3], "reconfigEnabled=true");
    let dir = ensemble.dir.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(QUORATE);
    command.arg("serve").arg(ensemble.cfg(1)).stdin(Stdio::null());
    if fs::write(dir.join("anything"), "").is_ok() {
        // Root may write everywhere: somebody else is asked.
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = format!("the membership cannot be written into {}", dir.display());
    assert!(stderr(&output).contains(&said), "{}", stderr(&output));
}
