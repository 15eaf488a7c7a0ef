//! The stories in `scenarios/`: what comes of each command is what stands below it.
//!
//! `QUORATE_REWRITE=1 cargo test -p quorate-sim --test scenarios` writes what happened into the files;
//! then read the difference.
//!
//! They are played in other worlds, too, where every way and every write takes its own time. There nobody
//! compares what stands below the commands; what a story expects, and every rule, has to hold all the same.
//! `QUORATE_SEEDS=1000` says in how many worlds, `QUORATE_STORY=name QUORATE_SEED=17` in which one, and then
//! shows what happened.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use quorate_sim::scenario::{Player, Scenario, ScenarioError, bundled};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// All stories, in the order of their names.
fn stories() -> Vec<(PathBuf, Result<Scenario, ScenarioError>)> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &PathBuf| Scenario::read(&name(file), &fs::read_to_string(file).unwrap());
    files.into_iter().map(|file| (file.clone(), read(&file))).collect()
}

fn name(file: &Path) -> String {
    file.strip_prefix(directory()).unwrap().display().to_string()
}

/// Plays a story; what came of each command, as far as it went, and what is wrong.
fn play(
    scenario: &Scenario,
    mut player: Player,
    compare: bool,
) -> (Vec<Vec<String>>, Result<(), ScenarioError>) {
    let mut traces = Vec::new();
    for step in scenario.steps() {
        let (moments, done) = player.play(step);
        traces.push(Player::trace(&moments));
        let last = traces.last().unwrap();
        let compared = if compare { step.compare(last) } else { Ok(()) };
        if let Err(problem) = done.and(compared) {
            return (traces, Err(scenario.error(step.line, problem)));
        }
    }
    let last = scenario.steps().last().map_or(0, |step| step.line);
    (traces, player.end().map_err(|problem| scenario.error(last, problem)))
}

#[test]
fn every_story_goes_as_it_is_written() {
    let rewrite = std::env::var_os("QUORATE_REWRITE").is_some();
    let mut wrong = Vec::new();
    for (file, scenario) in stories() {
        let scenario = match scenario {
            Ok(scenario) => scenario,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let (traces, done) = play(&scenario, Player::new(), !rewrite);
        wrong.extend(done.err().map(|error| error.to_string()));
        if rewrite {
            fs::write(&file, scenario.rewritten(&traces)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nothing that a story expects rests on how long a way or a write takes.
#[test]
fn every_story_comes_to_the_same_end_in_other_worlds() {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().unwrap());
    let alone = std::env::var("QUORATE_STORY").ok();
    let seeds = match number("QUORATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("QUORATE_SEEDS").unwrap_or(100),
    };
    let mut wrong = Vec::new();
    for (file, scenario) in stories() {
        let story = name(&file);
        let story = story.trim_end_matches(".txt");
        if alone.as_ref().is_some_and(|alone| alone != story) {
            continue;
        }
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        for seed in seeds.clone() {
            let (traces, done) = play(&scenario, Player::perturbed(seed), false);
            let Err(error) = done else { continue };
            wrong.push(format!(
                "{error}\n  QUORATE_STORY={story} QUORATE_SEED={seed} \
                 cargo test -p quorate-sim --test scenarios other_worlds"
            ));
            if alone.is_some() && seeds.clone().count() == 1 {
                wrong.push(scenario.rewritten(&traces));
            }
        }
    }
    assert!(wrong.is_empty(), "{} times:\n{}", wrong.len(), wrong.join("\n"));
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
