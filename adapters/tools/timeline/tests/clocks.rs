//! Clocks that are wrong: every matched cause stays before its effect, and what is measured stays what it was.

use serde_json::Value;

use crate::logs::{KINDS, read, shifted, shifted_line, timeline};

const OFFSETS: [i64; 3] = [-300, 0, 300];

#[test]
fn with_clocks_300_ms_apart_every_matched_cause_is_before_its_effect() {
    for kind in KINDS {
        let logs = read(kind);
        let matched = timeline(&logs).matches().len();
        assert!(matched >= 25, "{kind}: {matched}");
        for (first, second, third) in combinations() {
            let by = [first, second, third];
            let shifted: Vec<_> = logs.iter().zip(by).map(|(log, by)| shifted(log, by)).collect();
            let timeline = timeline(&shifted);
            assert_eq!(timeline.conflicts(), 0, "{kind} {by:?}: {timeline}");
            assert_eq!(timeline.matches().len(), matched, "{kind} {by:?}");
            for [cause, effect] in timeline.matches() {
                assert!(cause.2 < effect.2, "{kind} {by:?}: {cause:?} {effect:?}");
                assert!(cause.1 <= effect.1, "{kind} {by:?}: {cause:?} {effect:?}");
            }
        }
    }
}

#[test]
fn offsets_are_the_differences_of_the_clocks() {
    for kind in KINDS {
        for by in [-300_000, -300, 300, 300_000] {
            let mut logs = read(kind);
            logs[1] = shifted(&logs[1], by);
            let offsets = timeline(&logs).offsets();
            assert_eq!((offsets[0], offsets[2]), ((1, 0), (3, 0)), "{kind} {by}: those agree");
            let error = (offsets[1].1 + by * 1000).abs();
            assert!(error < 50_000, "{kind} {by}: {offsets:?}");
        }
    }
}

#[test]
fn clocks_that_need_nothing_get_nothing() {
    for kind in KINDS {
        assert_eq!(timeline(&read(kind)).offsets(), [(1, 0), (2, 0), (3, 0)], "{kind}");
    }
}

#[test]
fn what_an_election_took_does_not_depend_on_the_clocks() {
    let gap = |logs: &[String]| {
        let json: Value = serde_json::from_str(&timeline(logs).json()).unwrap();
        let phases = json["elections"][1]["phases"].as_array().unwrap().clone();
        phases.iter().find(|phase| phase["phase"] == "without a leader").unwrap()["us"]
            .as_i64()
            .unwrap()
    };
    for kind in KINDS {
        let logs = read(kind);
        let expected = gap(&logs);
        for by in OFFSETS {
            let mut shifted = logs.clone();
            shifted[0] = self::shifted(&logs[0], by);
            let error = gap(&shifted).abs_diff(expected);
            assert!(error < 50_000, "{kind} {by}: {error} µs of {expected}");
        }
    }
}

#[test]
fn a_match_that_contradicts_the_others_is_told_and_moves_nothing() {
    let mut logs = read("java");
    // A line whose time is wrong by 10 s: that of a vote as server 2 heard it.
    let wrong = logs[1]
        .lines()
        .position(|line| line.contains("n.sid:3, n.state:LOOKING, n.leader:3"))
        .unwrap();
    let lines: Vec<_> = logs[1]
        .lines()
        .enumerate()
        .map(|(at, line)| shifted_line(line, if at == wrong { -10_000 } else { 0 }) + "\n")
        .collect();
    logs[1] = lines.concat();
    let timeline = timeline(&logs);
    assert_eq!(timeline.offsets(), [(1, 0), (2, 0), (3, 0)]);
    assert!(timeline.conflicts() > 0);
    assert!(
        timeline
            .to_string()
            .contains(&format!("before 2.log:{} does not fit the others, by 9.", wrong + 1)),
        "{timeline}"
    );
}

fn combinations() -> impl Iterator<Item = (i64, i64, i64)> {
    let two = OFFSETS
        .into_iter()
        .flat_map(|first| OFFSETS.into_iter().map(move |second| (first, second)));
    two.flat_map(|(first, second)| OFFSETS.into_iter().map(move |third| (first, second, third)))
}
