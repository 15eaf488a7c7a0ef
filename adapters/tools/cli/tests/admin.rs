//! HTTP of `quorate serve`: ZooKeeper's admin server as servers of 3.8.0 and 3.9.5 answer, metrics, and probes.
//!
//! `admin/zookeeper.jsonl` has the fields of what those have answered, in their order and with their kinds: alone of three
//! (`looking`), leading, following.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{self, Ensemble, Process, QUORATE, free_port, until};

const PARTICIPANT: &str = "participant";
const PROMETHEUS: &str = "metricsProvider.className=\
    org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
/// Any identity has every right on `/` as long as its list is that of a new server.
const SOMEBODY: &str = "Authorization: digest bob:secret\r\n";

/// Three servers with an admin server, metrics and probes each.
struct Watched {
    ensemble: Ensemble,
    admin: Vec<u16>,
    metrics: Vec<u16>,
    probes: Vec<u16>,
}

impl Watched {
    fn new(roles: &[&str]) -> Self {
        let ensemble = Ensemble::new(roles, "4lw.commands.whitelist=*");
        let [mut admin, mut metrics, mut probes] = [const { Vec::new() }; 3];
        for id in 1..=roles.len() {
            let ports = [free_port(), free_port(), free_port()];
            let lines = format!(
                "\nadmin.enableServer=true\nadmin.serverPort={}\n{PROMETHEUS}metricsProvider.httpPort={}\n\
                 quorate.probe.address=127.0.0.1:{}\n",
                ports[0], ports[1], ports[2]
            );
            let mut file = OpenOptions::new().append(true).open(ensemble.cfg(id)).unwrap();
            file.write_all(lines.as_bytes()).unwrap();
            admin.push(ports[0]);
            metrics.push(ports[1]);
            probes.push(ports[2]);
        }
        Self { ensemble, admin, metrics, probes }
    }

    fn command(&self, id: usize, name: &str) -> (u16, String) {
        get(self.admin[id - 1], &format!("/commands/{name}"))
    }
}

fn get(port: u16, path: &str) -> (u16, String) {
    ask(port, "GET", path, "").unwrap()
}

/// Status and body; none if the port is closed.
fn ask(port: u16, method: &str, path: &str, headers: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(!head.to_ascii_lowercase().contains("\r\nserver:"), "{head}");
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// The keys of a text of JSON in their order, each with all before it, and of what kind their values are.
fn fields(text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap();
    let (mut fields, mut path) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if line.trim_start().starts_with('}') {
            path.pop();
        }
        let Some((key, rest)) = line.trim_start().split_once("\" : ") else { continue };
        path.push(key.trim_start_matches('"').to_owned());
        let at = path.iter().try_fold(&value, |value, key| value.get(key)).unwrap();
        let kind = match at {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "real",
            Value::Number(_) => "whole",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        fields.push(format!("{} {kind}", path.join(".")));
        if rest != "{" {
            path.pop();
        }
    }
    fields
}

/// What is not told here: it is not known, or not for everybody.
const LEFT_OUT: [&str; 6] = [
    "server_stats.non_mtlsremote_conn_count ",
    "server_stats.non_mtlslocal_conn_count ",
    "proposal_stats ",
    "proposal_stats.",
    "connections ",
    "secure_connections ",
];

/// What ZooKeeper's servers have answered: by state, version and command.
fn recorded() -> Vec<(String, String, u64, Vec<String>, bool)> {
    let lines = include_str!("admin/zookeeper.jsonl").lines();
    let of = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        let fields = line["fields"].as_array().unwrap().iter();
        let fields = fields.map(|field| field.as_str().unwrap().to_owned()).collect();
        // Where the two differ in order, that of 3.9.5 counts.
        let any_order = text("version") == "3.8.0" && text("get").contains("stat");
        (text("state"), text("get"), line["status"].as_u64().unwrap(), fields, any_order)
    };
    lines.map(of).collect()
}

fn compare(watched: &Watched, id: usize, state: &str) {
    let mut compared = BTreeSet::new();
    for (of, name, status, theirs, any_order) in recorded() {
        let ours_alone = ["restore", "snapshot", "monitor"].contains(&&*name);
        if of != state || ours_alone || (state, &*name) == ("looking", "zabstate") {
            continue;
        }
        let resets = name.ends_with("_reset");
        let (method, path) = (
            if resets { "POST" } else { "GET" },
            match &*name {
                "set_trace_mask" => "/commands/set_trace_mask?traceMask=306".to_owned(),
                _ => format!("/commands/{name}"),
            },
        );
        let (said, body) = ask(watched.admin[id - 1], method, &path, SOMEBODY).unwrap();
        assert_eq!(u64::from(said), status, "{name}: {body}");
        let left_out = |field: &&String| {
            name == "connections" || !LEFT_OUT.iter().any(|known| field.starts_with(known))
        };
        let mut theirs: Vec<_> = theirs.iter().filter(left_out).cloned().collect();
        let mut ours = fields(&body);
        if any_order {
            ours.sort();
            theirs.sort();
        }
        assert_eq!(ours, theirs, "{name} of a server that is {state}: {body}");
        compared.insert(name);
    }
    assert!(compared.len() >= 22, "{compared:?}");
}

/// All figures that both have are of one kind, and those that dashboards ask for are there.
fn compare_monitor(watched: &Watched, id: usize, state: &str) {
    let (status, body) = watched.command(id, "monitor");
    assert_eq!(status, 200);
    let ours: BTreeMap<_, _> = fields(&body).into_iter().map(pair).collect();
    for (of, name, _, theirs, _) in recorded() {
        if of != state || name != "monitor" {
            continue;
        }
        let theirs: BTreeMap<_, _> = theirs.into_iter().map(pair).collect();
        for (name, kind) in &ours {
            let told = theirs.get(name).unwrap_or(kind);
            // Ids and zxids are told as texts.
            assert!(told == kind || kind == "text", "{name} is {kind}, theirs is {told}");
        }
        for name in ["quorum_size", "uptime", "znode_count", "approximate_data_size"] {
            assert!(ours.contains_key(name) && theirs.contains_key(name), "{name}");
        }
        let of_leader = |name: &&String| {
            ["leader_uptime", "learners", "synced_followers", "synced_non_voting_followers"]
                .contains(&name.as_str())
        };
        let ours: Vec<_> = ours.keys().filter(of_leader).collect();
        assert_eq!(ours, theirs.keys().filter(of_leader).collect::<Vec<_>>());
    }
}

fn pair(field: String) -> (String, String) {
    let (name, kind) = field.rsplit_once(' ').unwrap();
    (name.to_owned(), kind.to_owned())
}

#[test]
fn commands_have_zookeepers_fields_in_zookeepers_order() {
    let watched = Watched::new(&[PARTICIPANT; 3]);
    let servers = watched.ensemble.serve_all();
    let leader = watched.ensemble.led();
    for id in 1..=servers.len() {
        until("service", || (get(watched.probes[id - 1], "/ready").0 == 200).then_some(()));
        let state = if id == leader { "leader" } else { "follower" };
        compare(&watched, id, state);
        compare_monitor(&watched, id, state);
    }
    let (_, list) = get(watched.admin[0], "/commands");
    let theirs = "<a href=\"/commands/configuration\">configuration</a>\n<br/>\n\
                  <a href=\"/commands/connection_stat_reset\">connection_stat_reset</a>\n<br/>\n";
    assert!(list.starts_with(theirs), "{list}");
    assert_eq!(list.matches("<br/>").count(), 28, "as many as ZooKeeper 3.9 has");
    assert_eq!(list, get(watched.admin[0], "/commands/").1);

    // Aliases; what is asked for in another way; what is not for all.
    let json =
        |name: &str| serde_json::from_str::<Value>(&watched.command(leader, name).1).unwrap();
    assert_eq!(json("lead")["leader_id"], leader);
    assert_eq!(
        (&json("lead")["command"], &json("lead")["is_leader"]),
        (&"leader".into(), &true.into())
    );
    assert_eq!(json("mntr")["server_state"], "leader");
    assert_eq!(json("zabstate")["last_zxid"], "0x100000000");
    assert_eq!(json("srvr")["server_stats"]["last_processed_zxid"], 4_294_967_296_u64);
    for name in ["connections", "cons", "dump", "watches", "watches_by_path", "snapshot"] {
        let (status, body) = watched.command(leader, name);
        assert!(
            status == 401 && body.contains("\"Auth info is missing for the command\""),
            "{body}"
        );
        let stranger = "Authorization: kerberos x\r\n";
        let path = format!("/commands/{name}");
        let (status, body) = ask(watched.admin[0], "GET", &path, stranger).unwrap();
        assert!(status == 401 && body.contains("\"Not authenticated\""), "{body}");
    }
    for name in ["stat_reset", "crst", "orst", "restore"] {
        assert_eq!(watched.command(leader, name).0, 405, "{name}");
    }
    assert!(watched.command(leader, "system_properties").1.contains("\"error\" : \"There are no"));
    let environment = watched.command(leader, "environment").1;
    assert!(environment.starts_with("{\n  \"zookeeper.version\" : \"3."), "{environment}");
    assert!(!environment.contains("PATH") && !environment.contains("\"command\""), "{environment}");
}

#[test]
fn connections_are_shown_to_those_who_have_every_right() {
    let watched = Watched::new(&[PARTICIPANT]);
    let _server = watched.ensemble.serve(1);
    assert_eq!(watched.ensemble.led(), 1);
    let client = TcpStream::connect(("127.0.0.1", watched.ensemble.client[0])).unwrap();
    let ours = format!("\"remote_socket_address\" : \"{}\"", client.local_addr().unwrap());
    until("the client", || {
        let (_, body) = ask(watched.admin[0], "GET", "/commands/cons", SOMEBODY).unwrap();
        body.contains(&ours).then_some(())
    });
    // Only its owner may do everything from here on.
    let at = format!("127.0.0.1:{}", watched.ensemble.client[0]);
    let own = "digest:ann:8YvUCJ6t9P3CBbwSZmUoVKrNPlY=:cdrwa,world:anyone:r";
    let set = Command::new(QUORATE)
        .args(["client", &at, "setAcl", "/", own])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(set.status.success(), "{set:?}");
    let (status, body) = ask(watched.admin[0], "GET", "/commands/cons", SOMEBODY).unwrap();
    assert!(status == 403 && body.contains("\"Not authorized\""), "{body}");
    // CVE-2024-51504: a header that says another address gives no right. CVE-2025-58457: no snapshot is taken or restored.
    let elsewhere = format!("{SOMEBODY}X-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\n");
    for (method, command) in
        [("GET", "cons"), ("GET", "snapshot"), ("GET", "restore"), ("POST", "restore")]
    {
        for headers in [SOMEBODY, &elsewhere] {
            let path = format!("/commands/{command}");
            let (status, body) = ask(watched.admin[0], method, &path, headers).unwrap();
            assert!(matches!(status, 403 | 405 | 503), "{method} {command}: {status} {body}");
        }
    }
}

#[test]
fn a_server_without_a_leader_says_so_as_zookeeper_does() {
    let watched = Watched::new(&[PARTICIPANT; 3]);
    let _server = watched.ensemble.serve(1);
    until("an answer", || ask(watched.admin[0], "GET", "/commands/ruok", ""));
    let looking = |body: &str| body.contains("\"server_state\" : \"looking\"");
    until("looking", || Some(watched.command(1, "monitor").1).filter(|body| looking(body)));
    compare(&watched, 1, "looking");
    let (status, body) = watched.command(1, "monitor");
    assert_eq!(status, 200, "where ZooKeeper has a stack trace");
    let fields = fields(&body);
    let told = |name: &str| fields.iter().any(|field| field.starts_with(&format!("{name} ")));
    assert!(told("looking_count") && told("cnt_election_time"), "{body}");
    for name in ["quorum_size", "znode_count", "uptime", "avg_latency", "leader_uptime"] {
        assert!(!told(name), "{name}: {body}");
    }
    assert!(watched.command(1, "zabstate").1.contains("\"zabstate\" : \"election\""));
    for (path, expected) in [("/ready", 503), ("/healthy", 200), ("/leader", 503)] {
        assert_eq!(get(watched.probes[0], path).0, expected, "{path}");
        assert_eq!(get(watched.admin[0], path).0, expected, "{path}");
    }
    // Each port has what it is for.
    assert_eq!(get(watched.probes[0], "/metrics").0, 404);
    assert_eq!(get(watched.probes[0], "/commands/ruok").0, 404);
    assert_eq!(get(watched.metrics[0], "/commands/ruok").0, 404);
    assert_eq!(get(watched.metrics[0], "/ready").0, 404);
}

/// What is scraped is whole and right at any moment; what it costs is no leader.
#[test]
fn scraping_goes_on_while_leaders_change() {
    let watched = Arc::new(Watched::new(&[PARTICIPANT; 3]));
    let mut servers: Vec<_> = watched.ensemble.serve_all().into_iter().map(Some).collect();
    let leader = watched.ensemble.led();
    let (stop, scraped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let scrapers: Vec<_> = (0..3)
        .map(|index| {
            let (watched, stop) = (Arc::clone(&watched), Arc::clone(&stop));
            let scraped = Arc::clone(&scraped);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Some((status, page)) = ask(watched.metrics[index], "GET", "/metrics", "")
                    {
                        // It answers 503 until it has started.
                        assert!(status == 200 || page == "starting\n", "{status}: {page}");
                        assert!(status == 503 || parses(&page), "{page}");
                        let leads = page.contains("\nleader_uptime ");
                        let state = page.contains("quorate_state{state=\"leading\"} 1.0\n");
                        assert!(state || !leads, "{page}");
                    }
                    if let Some((_, body)) = ask(watched.admin[index], "GET", "/commands/mntr", "")
                    {
                        assert!(serde_json::from_str::<Value>(&body).is_ok(), "{body}");
                    }
                    scraped.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    drop(servers[leader - 1].take());
    let next = until("another leader", || {
        let leads = |id: &usize| {
            ask(watched.probes[id - 1], "GET", "/leader", "").is_some_and(|said| said.0 == 200)
        };
        (1..=3).find(leads)
    });
    assert_ne!(next, leader);
    storm(&watched.ensemble, [leader, next]);
    let before = scraped.load(Ordering::Relaxed);
    until("more of it", || (scraped.load(Ordering::Relaxed) > before + 30).then_some(()));
    stop.store(true, Ordering::Relaxed);
    for scraper in scrapers {
        scraper.join().unwrap();
    }
    promtool(&get(watched.metrics[next - 1], "/metrics").1);
}

/// Whether each line is a comment or a name with a number, and the last one is whole.
fn parses(page: &str) -> bool {
    let is_sample = |line: &str| line.rsplit(' ').next().is_some_and(|n| n.parse::<f64>().is_ok());
    page.ends_with('\n') && page.lines().all(|line| line.starts_with("# ") || is_sample(line))
}

/// The leadership goes to and fro between the two that are left, by elections: each begins and ends as if nothing was asked.
fn storm(ensemble: &Ensemble, [gone, first]: [usize; 2]) {
    let mut leads = first;
    for _ in 0..6 {
        let cfg = ensemble.cfg(leads);
        let told = common::quorate(["admin", cfg.to_str().unwrap(), "step-down"]);
        assert_eq!(told.status.code(), Some(0), "{}", common::stderr(&told));
        leads = until("a leader", || {
            (1..=3).filter(|id| *id != gone).find(|id| {
                ensemble.try_ask(*id, "srvr").is_some_and(|text| text.contains("Mode: leader\n"))
            })
        });
    }
}

/// Prometheus' own tool reads it.
fn promtool(page: &str) {
    let families: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut once = families.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), families.len(), "twice: {page}");
    let odd =
        |family: &&&str| family.starts_with("quorate_quorate") || family.contains("_total_total");
    assert_eq!(families.iter().find(odd), None);
    if let Some(said) = common::says("promtool", &["check", "metrics"], page) {
        // 3: it reads it, and does not like ZooKeeper's names.
        assert!(matches!(said.status.code(), Some(0 | 3)), "{page}\n{said:?}");
    }
}

/// Clients go first, for a while: a server that is about to stop is sent no more of them.
#[test]
fn a_server_that_is_about_to_stop_is_not_ready() {
    let watched = Watched::new(&[PARTICIPANT]);
    let server = watched.ensemble.serve(1);
    assert_eq!(watched.ensemble.led(), 1);
    until("service", || (get(watched.probes[0], "/ready").0 == 200).then_some(()));
    // Clients that stay keep it for some seconds: they leave a share at a time.
    let connect = || {
        let mut client = TcpStream::connect(("127.0.0.1", watched.ensemble.client[0])).unwrap();
        let mut connect = vec![0, 0, 0, 45];
        connect.extend([0; 4 + 8]);
        connect.extend(10_000_i32.to_be_bytes());
        connect.extend([0; 8]);
        connect.extend(16_i32.to_be_bytes());
        connect.extend([0; 16 + 1]);
        client.write_all(&connect).unwrap();
        client.read_exact(&mut [0; 41]).unwrap();
        client
    };
    let _clients: Vec<_> = (0..50).map(|_| connect()).collect();
    server.tell_to_end();
    let begun = Instant::now();
    let said = until("draining", || {
        let said = ask(watched.probes[0], "GET", "/ready", "");
        said.filter(|said| said.0 != 200).or_else(|| {
            assert!(begun.elapsed() < Duration::from_secs(20));
            None
        })
    });
    assert_eq!(said, (503, "not ready: it is about to stop\n".to_owned()));
}

/// Who asks for a port gets it, or is told.
#[test]
fn a_port_that_is_taken_is_an_error_and_without_the_keys_nothing_listens() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ensemble =
        Ensemble::new(&[PARTICIPANT], &format!("admin.enableServer=true\nadmin.serverPort={port}"));
    let mut server: Process = ensemble.serve(1);
    assert_eq!(server.end(), Some(1));
    let said = common::read(&ensemble.log(1));
    assert!(said.contains(&format!("127.0.0.1:{port} (admin server)")), "{said}");
}
