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

/// Public accidents of ZooKeeper by number, and the story that tells each, or the test whose comment names it, from the
/// root of the workspace.
const ACCIDENTS: &[(u32, &str)] = &[
    (261, "a-disk-that-was-lost.txt"),
    (335, "an-epoch-is-never-given-twice.txt"),
    (453, "one-connection-for-two.txt"),
    (480, "one-notices-before-the-others.txt"),
    (481, "one-connection-for-two.txt"),
    (491, "a-server-without-weight.txt"),
    (547, "what-strangers-say.txt"),
    (569, "a-leader-that-is-dead.txt"),
    (764, "an-observer-counts-for-nothing.txt"),
    (769, "an-observer-that-believes-it-votes.txt"),
    (822, "one-black-hole.txt"),
    (880, "one-connection-for-two.txt"),
    (962, "a-hole-is-refused.txt"),
    (1154, "an-orphan-is-cut.txt"),
    (1156, "an-orphan-is-replaced.txt"),
    (1192, "announced-when-durable.txt"),
    (1270, "voters-that-change-their-minds.txt"),
    (1277, "behind-the-last-number-of-an-epoch.txt"),
    (1282, "a-promise-is-counted-once.txt"),
    (1291, "a-newer-follower-deposes.txt"),
    (1343, "adapters/tools/sim/tests/lessons.rs"),
    (1367, "brought-up-in-pieces-and-then-it-leads.txt"),
    (1419, "one-order-of-votes.txt"),
    (1465, "a-long-history-that-all-have.txt"),
    (1489, "adapters/server/storage/tests/history_crash.rs"),
    (1514, "told-to-lead-once-too-often.txt"),
    (1521, "a-slow-snapshot-disturbs-nobody.txt"),
    (1653, "epochs-through-every-crash.txt"),
    (1697, "a-slow-snapshot-that-is-needed.txt"),
    (1699, "a-change-dies-with-its-leader.txt"),
    (1732, "members-that-disagree-in-detail.txt"),
    (1805, "core/tests/elector.rs"),
    (1817, "core/tests/elector.rs"),
    (1818, "core/tests/elector.rs"),
    (2164, "an-address-that-nobody-can-dial.txt"),
    (2186, "what-strangers-say.txt"),
    (2247, "a-leader-whose-disk-fails.txt"),
    (2307, "epochs-through-every-crash.txt"),
    (2332, "adapters/server/storage/tests/damage.rs"),
    (2355, "brought-up-in-pieces-and-then-it-leads.txt"),
    (2418, "a-gap-before-what-is-kept.txt"),
    (2678, "a-slow-snapshot-disturbs-nobody.txt"),
    (2836, "one-connection-for-two.txt"),
    (2872, "a-log-behind-a-snapshot.txt"),
    (2988, "a-leader-out-of-view.txt"),
    (3023, "newleader-waits-for-the-disk.txt"),
    (3056, "adapters/server/storage/tests/damage.rs"),
    (3104, "a-snapshot-is-installed-in-one-step.txt"),
    (3109, "voters-that-change-their-minds.txt"),
    (3320, "what-strangers-say.txt"),
    (3340, "adapters/tools/sim/tests/lessons.rs"),
    (3398, "a-leader-that-takes-no-connection.txt"),
    (3496, "core/tests/leader_broadcast.rs"),
    (3701, "a-cut-that-does-not-reach-the-disk.txt"),
    (3720, "three-versions-one-ensemble.txt"),
    (3756, "one-black-hole.txt"),
    (3769, "what-strangers-say.txt"),
    (3814, "a-larger-ensemble-from-other-files.txt"),
    (3829, "a-larger-ensemble-from-other-files.txt"),
    (3830, "a-larger-ensemble-from-other-files.txt"),
    (3842, "a-larger-ensemble-from-other-files.txt"),
    (3911, "newleader-waits-for-the-disk.txt"),
    (4269, "epochs-through-every-crash.txt"),
    (4306, "core/tests/leader_broadcast.rs"),
    (4394, "commits-around-newleader.txt"),
    (4541, "an-old-role-ends-before-the-next-vote.txt"),
    (4643, "an-epoch-never-ahead-of-its-history.txt"),
    (4646, "an-acknowledgement-never-overtakes-the-disk.txt"),
    (4685, "commits-around-newleader.txt"),
    (4712, "an-old-role-ends-before-the-next-vote.txt"),
    (4785, "an-epoch-never-ahead-of-its-history.txt"),
    (4882, "a-follower-whose-disk-fails.txt"),
    (4883, "behind-the-last-number-of-an-epoch.txt"),
    (4925, "a-hole-in-memory-is-not-passed-on.txt"),
];

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

#[test]
fn every_known_accident_is_named_where_it_is_told() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for (number, place) in ACCIDENTS {
        let story = !place.contains('/');
        let file = if story { directory().join(place) } else { root.join(place) };
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{place}: {error}"));
        // Of a story only the head counts.
        let head = text.lines().filter(|line| !story || line.starts_with('#'));
        let named = head.into_iter().any(|line| {
            let mut rest = line;
            let numbers = std::iter::from_fn(|| {
                let (_, behind) = rest.split_once('-')?;
                rest = behind;
                let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
                Some(behind[..digits].parse::<u32>().ok())
            });
            numbers.flatten().any(|found| found == *number)
        });
        assert!(named, "{place} does not name ZOOKEEPER-{number}");
    }
    assert!(ACCIDENTS.windows(2).all(|pair| pair[0].0 < pair[1].0), "one row each, in order");
}
