//! What is told of real logs, word by word. `QUORATE_REWRITE=1` writes it anew: read it then.

use std::fs;

use crate::logs::{KINDS, folder, read, timeline};

#[test]
fn what_is_told_of_a_killed_leader_is_what_the_logs_say() {
    for kind in KINDS {
        let told = timeline(&read(kind)).to_string();
        let file = folder(kind).join("timeline.txt");
        if std::env::var_os("QUORATE_REWRITE").is_some() {
            fs::write(&file, &told).unwrap();
        }
        assert_eq!(told, fs::read_to_string(&file).unwrap(), "{kind}");
    }
}

#[test]
fn one_election_or_one_span_of_time_is_shown() {
    let told = timeline(&read("java")).election(2).unwrap().to_string();
    assert!(
        told.contains("election 2") && !told.contains("election 1") && !told.contains("election 3"),
        "{told}"
    );
    assert!(timeline(&read("java")).election(9).is_none());
    let told =
        timeline(&read("java")).between(Some("13:19:46"), Some("13:19:48")).unwrap().to_string();
    assert!(
        told.contains("election 2") && !told.contains("election 1") && !told.contains("election 3"),
        "{told}"
    );
    assert!(timeline(&read("java")).between(Some("noon"), None).is_none());
}

#[test]
fn the_order_of_the_files_and_their_names_do_not_matter() {
    for kind in KINDS {
        let mut logs = read(kind);
        let json = |logs: &[String]| {
            let json: serde_json::Value = serde_json::from_str(&timeline(logs).json()).unwrap();
            json["elections"].clone()
        };
        let expected = json(&logs);
        logs.rotate_left(1);
        assert_eq!(json(&logs), expected, "{kind}");
    }
}

#[test]
fn the_log_of_one_server_in_several_files_is_one_lane() {
    let logs = read("mixed");
    let (first, second) = logs[2].split_at(logs[2].find("13:20:10").unwrap() - 11);
    let whole = timeline(&logs).offsets();
    let split = timeline(&[logs[0].as_str(), second, logs[1].as_str(), first]);
    assert_eq!(split.offsets(), whole);
    assert_eq!(split.elections(), 3);
}
