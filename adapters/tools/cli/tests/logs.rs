//! What a server logs, for programs; and what it leaves behind when it must not go on.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Ensemble, quorate, read, stderr, until};

const JSON: &str = "quorate.log.format=json";

/// Every line of a log as JSON.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn every_line_is_one_flat_object_and_a_signal_has_more_logged() {
    let ensemble = Ensemble::new(&["participant"], JSON);
    let mut server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    server.signal("USR1");
    let changed = || read(&ensemble.log(1)).matches("log.level_changed").count();
    until("more is logged", || (changed() == 1).then_some(()));
    server.signal("USR1");
    until("less is logged", || (changed() == 2).then_some(()));
    assert_eq!(server.terminate(), Some(0));
    let lines = lines(&read(&ensemble.log(1)));
    for line in &lines {
        let object = line.as_object().unwrap();
        assert!(object.values().all(|value| !value.is_object() && !value.is_array()), "{line}");
        assert_eq!(line["sid"], 1, "{line}");
        let ts = line["ts"].as_str().unwrap();
        assert!(ts.len() == 27 && ts.ends_with('Z'), "{line}");
        assert!(line["level"].is_string() && line["msg"].is_string(), "{line}");
        assert!(line["event"] != "other" || line["target"].is_string(), "{line}");
    }
    let of = |event: &str| lines.iter().find(|line| line["event"] == event).unwrap();
    assert_eq!(of("election.decided")["epoch"], 0);
    assert!(of("election.decided")["reason"].is_string());
    assert_eq!(of("server.stopping")["why"], "SIGTERM");
    assert_eq!(of("server.stopped")["level"], "info");
    assert!(of("config.warning")["msg"].as_str().unwrap().contains("1.cfg"), "one participant");

    // The last line of one that cannot start, too.
    fs::write(ensemble.dir.path().join("1/version-2/acceptedEpoch"), "x").unwrap();
    let output = quorate(["serve".as_ref(), ensemble.cfg(1).as_os_str()]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let lines = self::lines(stderr(&output));
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["code"]), (&"server.failed".into(), &4.into()), "{last}");
    assert!(last["msg"].as_str().unwrap().contains("acceptedEpoch"), "{last}");
    let wrong = quorate(["serve", "/nowhere/zoo.cfg", "--log-format", "json"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(self::lines(stderr(&wrong))[0]["code"], 2);
}

/// A node with a time to live, and then a server that must not have one.
#[test]
fn what_led_to_a_halt_is_kept_and_a_person_has_to_look() {
    let ensemble = Ensemble::new(&["participant"], "extendedTypesEnabled=true");
    let mut server = ensemble.serve(1);
    assert_eq!(ensemble.led(), 1);
    let port = format!("127.0.0.1:{}", ensemble.client[0]);
    let made = quorate(["client", &port, "create", "-t", "1000000", "/a"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert_eq!(server.terminate(), Some(0));
    let cfg = read(&ensemble.cfg(1));
    fs::write(ensemble.cfg(1), cfg.replace("Enabled=true", "Enabled=false")).unwrap();
    let mut server = ensemble.serve(1);
    assert_eq!(server.end(), Some(4), "{}", read(&ensemble.log(1)));
    let kept = lines(&read(&ensemble.dir.path().join("1/last-changes.jsonl")));
    let (last, changes) = kept.split_last().unwrap();
    assert_eq!(last["event"], "server.stopped");
    assert!(last["error"].as_str().unwrap().contains("TTL node"), "{last}");
    let leads = changes.iter().any(|change| change["msg"] == "state LOOKING -> LEADING");
    assert!(leads && changes.iter().all(|change| change["sid"] == 1), "{changes:?}");
}

/// Every file of Rust below a folder.
fn sources(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// The text of a string in a source behind `from`, up to its end.
fn quoted(text: &str) -> &str {
    text.split('"').next().unwrap()
}

#[test]
fn every_line_of_a_server_has_a_name_of_one_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = read(&root.join("tools/cli/src/logs/events.rs"));
    let (_, list) = list.split_once("EVENTS").unwrap();
    let known: Vec<_> =
        list.lines().filter_map(|line| line.strip_prefix("    \"")).map(quoted).collect();
    assert!(known.is_sorted() && known.len() > 40, "{known:?}");
    let mut files = Vec::new();
    for part in
        ["server/driver", "server/http", "server/storage", "service/service", "service/znode"]
    {
        sources(&root.join(part).join("src"), &mut files);
    }
    let cli = root.join("tools/cli/src");
    for part in ["serve.rs", "http_ports.rs", "control.rs", "last_changes.rs", "logs.rs"] {
        files.push(cli.join(part));
    }
    sources(&cli.join("operator"), &mut files);
    for file in files {
        let text = read(&file);
        for level in ["error", "warn", "info"] {
            for call in text.split(&format!("tracing::{level}!(")).skip(1) {
                let (call, _) = call.split_once(");").unwrap();
                let first = call.trim_start();
                let named = first.starts_with("event = ") || first.starts_with("event,");
                assert!(named, "{}: tracing::{level}!({call}", file.display());
            }
        }
        for name in text.split("event = \"").skip(1).map(quoted) {
            assert!(known.contains(&name), "{}: {name} is not in the list", file.display());
        }
    }
    let status = read(&root.join("server/driver/src/status.rs"));
    let (_, names) = status.split_once("fn event_of(").unwrap();
    let (names, _) = names.split_once("#[cfg(test)]").unwrap();
    let mut names = names.split('"').skip(1).step_by(2);
    assert!(names.clone().count() > 10 && names.all(|name| known.contains(&name)));
}
