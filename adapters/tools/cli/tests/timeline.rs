//! Timelines of servers that run here.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::{Ensemble, Process, java_is_here, lines, quorate, stderr, stdout, until};

/// Kills the leader of three servers, waits until the others have another, and tells what their logs say.
fn told(ensemble: &Ensemble, mut servers: Vec<Process>) {
    let leader = ensemble.led();
    drop(servers.remove(leader - 1));
    let next = until("another leader", || {
        (1..=3).filter(|id| *id != leader).find(|id| {
            ensemble.try_ask(*id, "srvr").is_some_and(|text| text.contains("Mode: leader\n"))
        })
    });
    let svg = ensemble.dir.path().join("timeline.svg");
    let html = ensemble.dir.path().join("timeline.html");
    let mut arguments = vec!["timeline".to_owned(), "--json".to_owned()];
    arguments.extend((1..=3).map(|id| ensemble.log(id).display().to_string()));
    arguments.extend(["--svg".to_owned(), svg.display().to_string()]);
    arguments.extend(["--html".to_owned(), html.display().to_string()]);
    let output = quorate(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = &lines(&output)[0];
    let elections = told["elections"].as_array().unwrap();
    let last = elections.iter().rev().find(|election| election["leader"] == next).unwrap();
    assert_eq!(last["elects"], true, "{last:#}");
    let words: Vec<_> = last["words"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word["claim"].as_str().unwrap())
        .collect();
    assert!(words[0].starts_with(&format!("server {leader} was lost at ")), "{words:#?}");
    let agreed = format!(" to agree on {next} because ");
    assert!(words.iter().any(|word| word.contains(&agreed)), "{words:#?}");
    let waited = words.iter().find_map(|word| word.strip_prefix("clients waited "));
    assert!(waited.is_some(), "{words:#?}");
    // One machine has one clock. But a thread that has to wait for a processor writes its line late, and then its
    // clock seems to be before the others', or this line contradicts the rest.
    let corrected = told["clocks"].as_array().unwrap().iter().map(|clock| &clock["offset_us"]);
    let contradict =
        told["conflicts"].as_array().unwrap().iter().map(|conflict| &conflict["by_us"]);
    for micros in corrected.chain(contradict) {
        assert!(micros.as_i64().unwrap().abs() < 1_000_000, "{told:#}");
    }
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg"));
    assert!(fs::read_to_string(html).unwrap().ends_with("</html>\n"));
}

#[test]
fn a_killed_leader_is_told_from_the_logs_of_our_servers() {
    let ensemble = Ensemble::new(&["participant"; 3], "");
    // One of them logs for programs.
    let cfg = fs::read_to_string(ensemble.cfg(2)).unwrap();
    fs::write(ensemble.cfg(2), cfg + "quorate.log.format=json\n").unwrap();
    let servers = ensemble.serve_all();
    told(&ensemble, servers);
}

#[test]
fn a_killed_leader_is_told_from_the_logs_of_java_servers_and_ours() {
    if !java_is_here() {
        return;
    }
    let ensemble = Ensemble::new(&["participant"; 3], "");
    let servers = vec![ensemble.java(1), ensemble.serve(2), ensemble.java(3)];
    told(&ensemble, servers);
}

#[test]
fn what_is_no_log_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    fs::write(&path, "nothing of a server\n").unwrap();
    let output = quorate(["timeline", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no line of these logs"), "{}", stderr(&output));
    let output = quorate(["timeline", "there-is-none.log"]);
    assert_eq!(output.status.code(), Some(2));
    fs::write(&path, "2026-11-26 13:19:47,120 [myid:2] - INFO  [q:QuorumPeer@1] - LOOKING\n")
        .unwrap();
    let output = quorate(["timeline", path.to_str().unwrap(), "--election", "7"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "no election 7: the logs tell of 1\n");
    let output = quorate(["timeline", path.to_str().unwrap(), "--election", "last"]);
    assert!(stdout(&output).contains("server 2 looked for a leader"), "{}", stdout(&output));
}

/// Rotation packs what is older, and it is read as it lies there.
#[test]
fn a_packed_log_tells_what_it_told_before() {
    let dir = tempfile::tempdir().unwrap();
    let line = "2026-11-26 13:19:47,120 [myid:2] - INFO  [q:QuorumPeer@1] - LOOKING\n";
    let packed = dir.path().join("zookeeper.log.1");
    let mut packer = GzEncoder::new(fs::File::create(&packed).unwrap(), Compression::fast());
    packer.write_all(line.as_bytes()).unwrap();
    packer.finish().unwrap();
    let output = quorate(["timeline", packed.to_str().unwrap()]);
    assert!(stdout(&output).contains("server 2 looked for a leader"), "{}", stderr(&output));
    let other = dir.path().join("zookeeper.log.2.zst");
    fs::write(&other, b"\x28\xb5\x2f\xfd and more").unwrap();
    let output = quorate(["timeline", other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("zstd: only gzip is read"), "{}", stderr(&output));
}
