//! The simulator, as users run it.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{lines, quorate, stderr, stdout};

#[test]
fn many_seeds_come_to_the_same_figures_on_any_number_of_threads() {
    let run = |threads: &str| {
        let output =
            quorate(["sim", "--seeds", "24", "--first", "7", "--threads", threads, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        lines(&output).remove(0)
    };
    let (one, three) = (run("1"), run("3"));
    for figure in ["seeds", "passed", "failed", "steps", "virtual_s", "commits", "digest"] {
        assert_eq!(one[figure], three[figure], "{figure}");
    }
    assert_eq!((&one["passed"], &one["threads"]), (&24.into(), &1.into()));
    assert!(one["steps_per_cpu_s"].as_f64().unwrap() > 0.0);
    let coverage = one["coverage"].as_array().unwrap();
    assert!(coverage.iter().any(|class| class["class"] == "LeaderCrash"), "{coverage:?}");
}

#[test]
fn figures_are_shown_as_a_table() {
    let output = quorate(["sim", "--seeds", "8", "--story", "histories", "--servers", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("8 seeds from 0: "), "{text}");
    assert!(text.contains("rarest faults together:"), "{text}");
    assert!(text.ends_with("every rule held after every step of 8 runs\n"), "{text}");
    assert!(stderr(&output).is_empty(), "no bar where nobody looks");
}

/// What is found is told with a command, and that command shows it.
#[test]
fn an_injected_loss_is_found_made_small_and_told_again() {
    let output = quorate(["sim", "--seeds", "12", "--inject-loss", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = lines(&output).remove(0);
    let small = &report["shrunk"];
    assert!(small["left"].as_array().unwrap().len() <= 2, "{small}");
    let replay = small["replay"].as_str().unwrap();
    assert!(replay.starts_with("quorate sim --seed "), "{replay}");
    for more in [&["--json"][..], &[]] {
        let output = quorate(replay.split(' ').skip(1).chain(more.iter().copied()));
        assert_eq!(output.status.code(), Some(1), "{replay}: {}", stderr(&output));
        let failure = small["failure"].as_str().unwrap();
        if more.is_empty() {
            assert!(stdout(&output).contains(failure), "{}", stdout(&output));
        } else {
            assert_eq!(lines(&output)[0]["failure"], failure);
        }
    }
}

#[test]
fn one_seed_is_told_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("seven.svg");
    let seed = ["sim", "--seed", "7", "--only", "none", "--lines", "5", "--svg"];
    let output = quorate(seed.into_iter().chain(svg.to_str()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.lines().count() >= 8 && text.starts_with("       ms   1"), "{text}");
    assert!(text.contains("every rule held, and it ended well"), "{text}");
    assert!(std::fs::read_to_string(svg).unwrap().contains("quorate sim --seed 7"));
}

#[test]
fn two_ways_to_elect_are_compared_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("both.svg");
    let compare = ["sim", "--compare", "--servers", "5", "--seeds", "3", "--svg"];
    let output = quorate(compare.into_iter().chain(svg.to_str()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows: Vec<_> = stdout(&output).lines().skip(4).map(str::to_owned).collect();
    assert_eq!(rows.len(), 4, "{rows:?}");
    for kind in ["fast", "generation"] {
        assert_eq!(rows.iter().filter(|row| row.contains(kind)).count(), 2, "{rows:?}");
    }
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    assert_eq!(drawn.matches("<polyline").count(), 6);

    let output = quorate(["sim", "--compare", "--servers", "3", "--seeds", "1", "--json"]);
    assert_eq!(lines(&output)[0].as_array().unwrap().len(), 4);
}

#[test]
fn what_cannot_be_run_is_refused() {
    for arguments in [
        &["--servers", "0"][..],
        &["--seeds", "0"],
        &["--only", "1"],
        &["--seed", "1", "--only", "x"],
        &["--seed", "1", "--seeds", "2"],
    ] {
        let output = quorate(["sim"].iter().chain(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
