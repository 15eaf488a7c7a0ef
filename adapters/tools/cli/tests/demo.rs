//! The demo, as users run it.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{lines, quorate, stderr, stdout};
use serde_json::Value;

fn events<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == name).collect()
}

/// Three servers, one kill, whatever they run in.
fn small_demo(more: &[&str]) {
    let mut arguments = vec!["demo", "--servers", "3", "--kill-leader", "1", "--json"];
    arguments.extend(more);
    let output = quorate(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let lines = lines(&output);

    let (summary, events_) = lines.split_last().unwrap();
    assert!(events_.iter().all(|line| line["event"].is_string()));
    let summary = &summary["summary"];
    assert_eq!(summary["servers"], 3);
    assert_eq!(summary["kills"], 1);
    assert_eq!(summary["elections"], 2);
    assert_eq!(summary["two_leaders_in_one_epoch"], 0);
    assert!(summary["cold_start_ms"].as_f64().unwrap() > 0.0);
    assert!(summary.get("writes").is_none(), "nobody writes");
    for spread in ["failover_ms", "rejoin_ms", "detection_ms", "election_ms", "activation_ms"] {
        let [min, median, max] =
            ["min", "median", "max"].map(|part| summary[spread][part].as_f64().unwrap());
        assert!(min >= 0.0 && min <= median && median <= max, "{spread}");
    }
    let failover = summary["failover_ms"]["median"].as_f64().unwrap();
    let parts = ["detection_ms", "election_ms", "activation_ms"];
    let sum: f64 = parts.map(|part| summary[part]["median"].as_f64().unwrap()).iter().sum();
    assert!((failover - sum).abs() < 0.01, "{failover} is not {sum}");

    // The steps, in order.
    let steps: Vec<_> = lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .filter(|event| *event != "change")
        .collect();
    assert_eq!(steps, ["begun", "started", "led", "killed", "led", "restarted", "rejoined"]);
    let [first, second] = events(&lines, "led")[..] else { panic!("two leaderships") };
    assert_ne!(first["leader"], second["leader"]);
    assert!(first["epoch"].as_i64() < second["epoch"].as_i64());
    assert_eq!(events(&lines, "killed")[0]["server"], first["leader"]);
    assert_eq!(events(&lines, "rejoined")[0]["server"], first["leader"]);

    // Every change says what, why and how the server is since.
    let changes = events(&lines, "change");
    for id in 1..=3 {
        assert!(changes.iter().any(|line| line["server"] == id && line["serving"] == true));
    }
    for change in &changes {
        assert!(!change["reason"].as_str().unwrap().is_empty());
        for number in ["at_ms", "round", "accepted_epoch", "current_epoch"] {
            assert!(change[number].is_number(), "{number} in {change}");
        }
    }
    let elected = changes.iter().find(|line| line["change"] == "state" && line["to"] == "LEADING");
    assert!(elected.unwrap()["reason"].as_str().unwrap().starts_with("quorum {"));
}

#[test]
fn kills_a_leader_and_measures() {
    small_demo(&[]);
}

#[test]
fn kills_a_process_and_measures() {
    small_demo(&["--processes"]);
}

#[test]
fn with_tls_shows_the_failover_without_it_too() {
    for more in [&[][..], &["--processes"]] {
        let mut arguments = vec!["demo", "--servers", "3", "--kill-leader", "1", "--tls", "--json"];
        arguments.extend(more);
        let output = quorate(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        let lines = lines(&output);
        let begun: Vec<_> = events(&lines, "begun").iter().map(|line| &line["tls"]).collect();
        assert_eq!(begun, [false, true]);
        let summaries: Vec<_> = lines.iter().filter_map(|line| line.get("summary")).collect();
        let [plain, tls] = summaries[..] else { panic!("two ensembles") };
        assert_eq!((&plain["tls"], &tls["tls"]), (&false.into(), &true.into()));
        assert_eq!((&plain["kills"], &tls["kills"]), (&1.into(), &1.into()));
        assert!(tls["failover_ms"]["median"].as_f64().unwrap() > 0.0);
        assert_eq!(tls["plain_failover_ms"], plain["failover_ms"]);
        assert!(plain.get("plain_failover_ms").is_none());
    }
}

#[test]
fn elects_by_generation_and_measures() {
    small_demo(&["--election", "generation"]);
    small_demo(&["--election", "generation", "--processes", "--silence"]);
}

#[test]
fn transfers_leadership_under_load_and_measures() {
    let arguments =
        ["demo", "--servers", "3", "--kill-leader", "2", "--transfer-leadership", "--json"];
    let output = quorate(arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let lines = lines(&output);
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!((&summary["kills"], &summary["transfers"]), (&0.into(), &2.into()));
    assert_eq!(summary["elections"], 3);
    for nothing in ["lost", "duplicated", "diverged", "two_leaders_in_one_epoch"] {
        assert_eq!(summary[nothing], 0, "{nothing}");
    }
    assert!(summary["longest_gap_ms"].as_f64().unwrap() > 0.0);
    let handed = events(&lines, "handed_over");
    let led = events(&lines, "led");
    assert_eq!(handed.len(), 2);
    for (nth, handed) in handed.iter().enumerate() {
        assert_eq!(handed["server"], led[nth]["leader"]);
        assert_eq!(handed["to"], led[nth + 1]["leader"]);
    }
}

#[test]
fn ends_with_a_table_and_a_sentence() {
    let output = quorate(["demo", "--servers", "3", "--kill-leader", "2", "--tick-time", "500"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let text = stdout(&output);
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    let table: Vec<_> = text.lines().skip_while(|line| !line.starts_with(" kill  ")).collect();
    let heads: Vec<_> = table[0].split_whitespace().collect();
    assert_eq!(
        heads,
        ["kill", "leader", "epoch", "detection", "election", "activation", "total", "rejoin", "ms"]
    );
    let starts: Vec<_> = table[1..6].iter().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(starts, ["1", "2", "min", "median", "max"]);
    let ends = table[0].find("rejoin").unwrap() + "rejoin".len();
    for line in &table[1..6] {
        assert_eq!(line.chars().count(), ends, "aligned: {line}");
    }
    assert!(table.last().unwrap().starts_with("3 servers, 2 kills, 3 epochs with one leader each"));
}

/// Clients write while leaders are killed; in the end everything acknowledged is on every disk, once.
fn loaded_demo(kills: u64, more: &[&str]) {
    let (number, kills_) = (kills.to_string(), usize::try_from(kills).unwrap());
    let mut arguments =
        vec!["demo", "--servers", "3", "--load", "--json", "--kill-leader", &number];
    arguments.extend(more);
    let output = quorate(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let lines = lines(&output);
    let summary = &lines.last().unwrap()["summary"];
    for none in ["lost", "duplicated", "diverged", "two_leaders_in_one_epoch"] {
        assert_eq!(summary[none], 0, "{none}: {summary}");
    }
    assert_eq!(summary["kills"], kills);
    assert!(summary["elections"].as_u64().unwrap() > kills);
    // Before, between and after: the clients never stop.
    let least = 16 * 50 * (2 * kills + 1);
    assert!(summary["writes"].as_u64().unwrap() >= least, "{summary}");
    assert!(summary["writes_per_s"].as_f64().unwrap() > 0.0);
    let again = &summary["write_again_ms"];
    assert!(again["min"].as_f64() > Some(0.0) && again["min"].as_f64() <= again["median"].as_f64());
    // While nobody leads, nothing is acknowledged.
    assert!(summary["longest_gap_ms"].as_f64() >= again["min"].as_f64(), "{summary}");
    assert_eq!(events(&lines, "killed").len(), kills_);
    assert_eq!(events(&lines, "loaded").len(), 1);
    assert!(events(&lines, "found").is_empty());
}

#[test]
fn nothing_acknowledged_is_lost_while_leaders_are_killed() {
    loaded_demo(5, &[]);
}

#[test]
fn nothing_acknowledged_is_lost_while_processes_are_killed() {
    loaded_demo(20, &["--processes"]);
}

/// The comparison can fail: a write that is missing from one log is missed.
#[test]
fn an_injected_loss_is_found() {
    for more in [&[][..], &["--processes"]] {
        let mut arguments = vec![
            "demo",
            "--servers",
            "3",
            "--kill-leader",
            "1",
            "--load",
            "--inject-loss",
            "--json",
        ];
        arguments.extend(more);
        let output = quorate(&arguments);
        assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains("1 acknowledged write(s) lost"), "{}", stderr(&output));
        let lines = lines(&output);
        let summary = &lines.last().unwrap()["summary"];
        assert_eq!((&summary["lost"], &summary["diverged"]), (&1.into(), &1.into()), "{summary}");
        assert_eq!(summary["duplicated"], 0);
        let [injected] = events(&lines, "planted")[..] else { panic!("one loss") };
        let write = format!("write {}, acknowledged as", injected["write"]);
        let found = events(&lines, "found");
        assert!(found.iter().any(|found| found["found"].as_str().unwrap().contains(&write)));
        assert_eq!(events(&lines, "failed").len(), 1);
    }
}

#[test]
fn the_load_is_summed_up_in_words() {
    let more = ["--load", "--writers", "3", "--payload", "1000"];
    let output = quorate(["demo", "--servers", "3", "--kill-leader", "1"].into_iter().chain(more));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let text = stdout(&output);
    for expected in [
        "3 clients begin to write, 1000 bytes at a time",
        " writes of 1000 bytes acknowledged by 3 clients, ",
        "longest time without an acknowledgement: ",
        "0 lost, 0 duplicated, 0 diverged",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn one_server_leads_itself() {
    let output = quorate(["demo", "--servers", "1", "--kill-leader", "0", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let lines = lines(&output);
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!(summary["elections"], 1);
    assert!(summary["failover_ms"]["min"].is_null());
}

/// Flags that have better names now are still understood, and not shown.
#[test]
fn former_names_of_flags_are_understood() {
    let former = ["--hand-over", "--load", "--plant-loss"];
    let output = quorate(["demo", "--servers", "1", "--kill-leader", "0"].iter().chain(&former));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("1 acknowledged write(s) lost"), "{}", stderr(&output));
    let help = quorate(["demo", "--help"]);
    for former in &["--hand-over", "--plant-loss"] {
        assert!(!stdout(&help).contains(former), "{former}");
    }
}

#[test]
fn refuses_what_cannot_work() {
    for arguments in [
        ["--servers", "2"],
        ["--servers", "0"],
        ["--servers", "300"],
        ["--tick-time", "0"],
        ["--kill-leader", "-1"],
        ["--writers", "3"],
        ["--clients", "0"],
        ["--clients", "--load"],
        ["--inject-loss", "--json"],
    ] {
        let output = quorate(["demo"].into_iter().chain(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!stderr(&output).is_empty() && stdout(&output).is_empty());
    }
}

/// A server that dies by itself is a failure, which is told, and nobody stays behind.
#[cfg(target_os = "linux")]
#[test]
fn fails_if_a_server_ends_by_itself() {
    use std::fs;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    use crate::common::{QUORATE, until};

    let mut demo = Command::new(QUORATE)
        .args(["demo", "--servers", "3", "--kill-leader", "1000000", "--processes", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"event\":\"led\"") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "no leader");
    }
    let parent = format!("PPid:\t{}\n", demo.id());
    let children = || -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|process| {
                let status = fs::read_to_string(process.path().join("status"));
                status.is_ok_and(|text| text.contains(&parent) && !text.contains("State:\tZ"))
            })
            .map(|process| process.file_name().into_string().unwrap())
            .collect()
    };
    let all = until("three children", || Some(children()).filter(|all| all.len() == 3));
    let reader = std::thread::spawn(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        rest
    });
    // Not once: the first to be killed may be the one that the demo kills at this moment.
    let status = until("the end of the demo", || {
        if let Some(victim) = children().first() {
            drop(Command::new("kill").args(["-KILL", victim]).output());
        }
        demo.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(1));
    let rest = reader.join().unwrap();
    let lines: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., failed, last] = &lines[..] else { panic!("{rest}") };
    assert_eq!(failed["event"], "failed");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("has ended by itself"), "{error}");
    assert!(last["summary"].is_object());
    for child in all {
        let gone = !fs::read_to_string(format!("/proc/{child}/cmdline"))
            .is_ok_and(|text| text.contains("quorate-demo-"));
        assert!(gone, "{child} survives the demo");
    }
}

/// Sessions over sockets go through the kills, and nothing that was promised to them is gone.
fn attended_demo(more: &[&str]) {
    let mut arguments = vec!["demo", "--servers", "3", "--kill-leader", "1", "--json"];
    arguments.extend(["--clients", "4"]);
    arguments.extend(more);
    let output = quorate(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let lines = lines(&output);
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!(summary["sessions"], 12);
    for none in ["sessions_lost", "ephemerals_lost", "watches_missed", "two_leaders_in_one_epoch"] {
        assert_eq!(summary[none], 0, "{none}: {summary}");
    }
    let attended = events(&lines, "attended");
    let [writes, told] = ["session_writes", "events"].map(|count| summary[count].as_u64().unwrap());
    assert!(writes >= 12 * 3, "{summary}");
    // One watch on each node, and a write whose outcome was unknown is made again: an event may stand for two.
    assert!(told > 0 && told <= 2 * writes, "{summary}");
    assert!(summary["longest_write_gap_ms"].as_f64().unwrap() >= 900.0, "{summary}");
    assert_eq!(attended[0]["timeout_ms"], 4000.0);
}

#[test]
fn sessions_outlive_leaders() {
    attended_demo(&[]);
    attended_demo(&["--transfer-leadership"]);
}

#[test]
fn sessions_outlive_processes() {
    attended_demo(&["--processes"]);
    attended_demo(&["--processes", "--silence", "--tick-time", "500"]);
}
