//! Logs that are not whole: whatever the bytes are, what can be read is shown, and the rest is told.

use crate::logs::{KINDS, read, timeline};

#[test]
fn a_log_cut_anywhere_is_read_to_its_end() {
    for kind in KINDS {
        let logs = read(kind);
        for cut in (0..logs[1].len()).step_by(97) {
            let logs = [logs[0].as_bytes(), &logs[1].as_bytes()[..cut], logs[2].as_bytes()];
            let timeline = timeline(&logs);
            let half = cut > 0 && logs[1][cut - 1] != b'\n';
            let told = timeline.to_string();
            assert_eq!(told.contains("has no end"), half, "{kind} {cut}: {told}");
            for [cause, effect] in timeline.matches() {
                assert!(cause.2 < effect.2, "{kind} {cut}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_and_lines_without_end_are_told() {
    let mut logs: Vec<Vec<u8>> = read("java").into_iter().map(String::into_bytes).collect();
    let expected = timeline(&logs).elections();
    let mut damage =
        b"2026-11-26 13:19:47,000 \xff\xfe\0\x1b[31m Notification: n.sid:99999999999999999999\n"
            .to_vec();
    damage.extend(std::iter::repeat_n(b'a', 2 << 20));
    damage.push(b'\n');
    for (at, log) in logs.iter_mut().enumerate() {
        let line = log.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let behind = log.split_off(line);
        log.extend(damage.iter().take(damage.len() - at));
        log.extend(behind);
    }
    let timeline = timeline(&logs);
    assert_eq!(timeline.elections(), expected);
    let told = timeline.to_string();
    assert!(
        told.contains("1.log: 1 lines too long")
            && told.contains("3.log: 1 lines with bytes that are no text"),
        "{told}"
    );
}

#[test]
fn what_a_line_claims_takes_no_room() {
    let mut log = String::new();
    for id in 0..5_000 {
        log += &format!(
            "2026-11-26 13:19:47,000 [myid:{id}] - INFO  [x:y@1] - New election. My id = {id}, proposed zxid=0x0\n"
        );
    }
    let told = timeline(&[log]).to_string();
    assert!(told.contains("4968 servers more than are shown"), "{told}");
    assert!(timeline(&["", "\n\n", "{", "}"]).is_empty());
}

#[test]
fn a_log_that_names_no_server_is_told_and_can_be_given_one() {
    let log =
        "2026-11-26 13:19:47,000 INFO org.apache.zookeeper.server.quorum.QuorumPeer: LOOKING\n";
    let told = timeline(&[log]).to_string();
    assert!(told.contains("1.log: 1 events of no known server"), "{told}");
    let source = quorate_timeline::Source { name: "zk.log", bytes: log.as_bytes(), own: Some(7) };
    assert_eq!(quorate_timeline::Timeline::of(&[source]).offsets(), [(7, 0)]);
}
