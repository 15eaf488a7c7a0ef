//! The stories in `scenarios/`: what comes of each command is what stands below it.
//!
//! `QUORATE_REWRITE=1 cargo test -p quorate-sim --test scenarios` writes what happened into the files;
//! then read the difference.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use quorate_sim::scenario::{Player, Scenario, ScenarioError, bundled};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// Plays a story; what came of each command, as far as it went, and what is wrong.
fn play(scenario: &Scenario, compare: bool) -> (Vec<Vec<String>>, Result<(), ScenarioError>) {
    let (mut player, mut traces) = (Player::new(), Vec::new());
    for step in scenario.steps() {
        let (moments, done) = player.play(step);
        traces.push(Player::trace(&moments));
        let last = traces.last().unwrap();
        let compared = if compare { step.compare(last) } else { Ok(()) };
        if let Err(problem) = done.and(compared) {
            return (traces, Err(scenario.error(step.line, problem)));
        }
    }
    (traces, Ok(()))
}

#[test]
fn every_story_goes_as_it_is_written() {
    let rewrite = std::env::var_os("QUORATE_REWRITE").is_some();
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(directory()).unwrap().display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        let scenario = match Scenario::read(&name, &text) {
            Ok(scenario) => scenario,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let (traces, done) = play(&scenario, !rewrite);
        wrong.extend(done.err().map(|error| error.to_string()));
        if rewrite {
            fs::write(&file, scenario.rewritten(&traces)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_story_is_bundled_under_the_name_of_its_file() {
    let mut files: Vec<String> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut names: Vec<&str> = bundled().iter().map(|story| story.name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}
