//! Arbitrary text as a scenario: it is refused at one of its lines, or played to its end, and what came of it can be
//! written below its commands. No rule is broken that the scenario has not broken itself.

use quorate_sim::scenario::{Player, Problem, Scenario};

/// So much happens in a story at most, in how many commands.
const EVENTS_MAX: u32 = 10_000;
const STEPS_MAX: usize = 48;

/// Commands that break rules by themselves: a history that was never written or that is gone, servers that disagree about
/// the membership, peers that speak in another's name, and clients that take from a store what is another's.
const UNRULY: [&str; 8] =
    ["disk", "wipe", "view", "servers", "groups", "strangers", "delete", "linger"];

/// Plays these bytes.
pub fn feed(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count();
    let scenario = match Scenario::read("story", &text) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!((1..=lines).contains(&error.line), "{error}, of {lines} lines");
            return;
        }
    };
    let commands: Vec<&str> = scenario.steps().iter().map(|step| step.text.as_str()).collect();
    let is_unruly = |command: &&str| UNRULY.iter().any(|word| command.starts_with(word));
    let unruly = commands.iter().filter(|command| is_unruly(command)).count();
    let mut player = Player::new().at_most(EVENTS_MAX);
    let mut traces = Vec::new();
    for step in scenario.steps().iter().take(STEPS_MAX) {
        let (moments, done) = player.play(step);
        traces.push(Player::trace(&moments));
        match done {
            Ok(()) => {}
            Err(problem @ (Problem::Broken(_) | Problem::NotKept(_))) if unruly == 0 => {
                panic!("{}", scenario.error(step.line, problem));
            }
            Err(problem) => {
                assert!(!problem.to_string().is_empty());
                break;
            }
        }
    }
    let written = scenario.rewritten(&traces);
    let again = Scenario::read("again", &written).unwrap_or_else(|error| panic!("{error}"));
    let same: Vec<&str> = again.steps().iter().map(|step| step.text.as_str()).collect();
    assert_eq!(same, commands);
    for (step, trace) in again.steps().iter().zip(&traces) {
        if let Err(difference) = step.compare(trace) {
            panic!("line {}: {difference}", step.line);
        }
    }
}
