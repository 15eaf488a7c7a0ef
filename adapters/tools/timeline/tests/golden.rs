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

#[test]
fn a_follower_follows_whom_the_leadership_was_given_and_loses_that_one() {
    let change = |second, msg: &str, event, round, epoch, reason| {
        format!(
            "2026-11-27T08:58:{second:02}.000000Z  INFO quorate_driver::drive::publish: {msg} \
             event=\"election.{event}\" sid=3 round={round} epoch={epoch} reason={reason}\n"
        )
    };
    let vote =
        |of, to| format!("vote {of} (peer epoch 1, zxid 0x0) -> {to} (peer epoch 1, zxid 0x0)");
    let given = "leader 2 gave its leadership to 1";
    let log = [
        change(1, &vote(3, 2), "vote_changed", 1, 0, "server id 2 > 1, says 2"),
        change(1, "state LOOKING -> FOLLOWING", "decided", 1, 0, "quorum {1,2} already follows 2"),
        change(
            2,
            "phase synchronization -> broadcast",
            "phase_changed",
            1,
            1,
            "leader 2 begins epoch 1",
        ),
        change(3, &vote(2, 1), "vote_changed", 2, 1, given),
        change(3, "state FOLLOWING -> FOLLOWING", "decided", 2, 1, given),
        change(3, "phase election -> discovery", "phase_changed", 2, 1, given),
        change(
            4,
            "phase synchronization -> broadcast",
            "phase_changed",
            2,
            2,
            "leader 1 begins epoch 2",
        ),
        change(5, "state FOLLOWING -> LOOKING", "lost", 3, 2, "leader 1 closed its link"),
        change(5, &vote(1, 3), "vote_changed", 3, 2, "a round begins with one's own vote"),
        change(6, "state LOOKING -> LEADING", "decided", 3, 2, "quorum {2,3} for 3"),
        change(
            7,
            "phase synchronization -> broadcast",
            "phase_changed",
            3,
            3,
            "quorum {2,3} acknowledged",
        ),
    ];
    let told = timeline(&[log.concat()]).to_string();
    assert!(told.contains("3 followed 1"), "{told}");
    assert!(told.contains("server 1 was lost at 08:58:05"), "{told}");
    assert!(!told.contains("decided nothing"), "{told}");
}
