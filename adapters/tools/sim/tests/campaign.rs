//! Ten thousand elections and a thousand histories with their accidents, one seed each.
//!
//! A seed that fails is told with what runs it again, and what it takes at least. More of them:
//!
//! ```text
//! cargo run --release -p quorate -- sim --seeds 100000
//! ```

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use quorate_sim::FaultClass;
use quorate_sim::campaign::{self, Case, Story};
use quorate_sim::runner::{Progress, Runner, Tally};
use quorate_sim::shrink::shrink;

/// Runs so many, and shows what they come to.
fn run(story: Story, seeds: u64) -> Tally {
    complain(&Runner { story: Some(story), ..Runner::new(0, seeds) })
}

fn complain(runner: &Runner) -> Tally {
    let (tally, seeds) = (runner.run(&Progress::default()), runner.seeds);
    println!("{} steps, {:?} of simulated time", tally.steps, tally.time);
    println!("{} elections won, {} leaders established", tally.elected, tally.established);
    println!("{} writes acknowledged, {} reads", tally.acknowledged, tally.reads);
    println!("leader after the repair: {}", tally.repaired);
    println!("all follow after the repair, beyond noticing: {}", tally.settled);
    println!("all follow another leader, beyond noticing: {}", tally.failover);
    println!("the old leader follows: {}\n{}", tally.rejoined, tally.coverage);
    if let Some((case, failure)) = tally.failures.first() {
        let shrunk = shrink(case, failure, 400);
        let all: Vec<_> = tally.failures.iter().map(|(case, _)| case.seed).take(20).collect();
        panic!(
            "{} of {seeds} seeds failed: {all:?}\nthe first says: {failure}\nit takes {:?}\n  \
             cargo run --release -p quorate -- sim {}",
            tally.failures.len(),
            shrunk.left,
            shrunk.case
        );
    }
    tally
}

#[test]
fn ten_thousand_random_elections() {
    let seeds = 10_000;
    let tally = run(Story::Elections, seeds);
    let missing = tally.coverage.missing(FaultClass::OF_ELECTIONS);
    assert!(missing.is_empty(), "never happened: {missing:?}");
    assert!(tally.established >= seeds, "only {} leaders were established", tally.established);
}

/// Of links that stay broken, hundreds: the rest is asked for by its name.
#[test]
fn an_ensemble_that_can_be_led_is_led_whatever_its_servers_wish() {
    run(Story::Links, 400);
}

#[test]
fn a_thousand_random_histories() {
    let tally = run(Story::Histories, 1_000);
    // A learner that was cut has to fall behind before it is told NEWLEADER.
    let rare = [
        FaultClass::StreamedCommits,
        // A snapshot is installed within the moments that reading the log takes.
        FaultClass::ReplayOvertaken,
        // These take a server of an earlier version where a change is under way; `memberships` has them.
        FaultClass::LeftToAnElection,
        FaultClass::OlderMembershipRefused,
    ];
    let mut missing = tally.coverage.missing(FaultClass::OF_SERVERS);
    // Non-members claim to be voters at the end of elections only.
    missing.retain(|class| !rare.contains(class) && *class != FaultClass::ClaimRefused);
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

/// What takes its time: links that stand for hours, waits that have backed off, an afternoon without a quorum.
#[test]
fn a_week_of_an_ordinary_ensemble() {
    let tally = run(Story::Days, 4);
    assert!(tally.time.as_secs() > 6 * 24 * 3600, "{:?}", tally.time);
}

/// The same stories where servers elect by generation; in each of them one leader for each generation, and one
/// vote for each voter in it.
#[test]
fn random_runs_that_elect_by_generation() {
    for (story, seeds) in [(Story::Elections, 1_500), (Story::Histories, 200)] {
        let runner = Runner { story: Some(story), generation: true, ..Runner::new(0, seeds) };
        let tally = complain(&runner);
        assert!(tally.established >= seeds, "only {} leaders were established", tally.established);
    }
}

/// A seed is a whole bug report only if it means the same run every time, looked at or not.
#[test]
fn the_same_seed_is_the_same_run() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let case = Case::new(seed);
        let (once, again) = (campaign::run(&case), campaign::explain(&case).0);
        assert_eq!(once, again, "seed {seed}");
        hashes.insert(once.map_or(0, |outcome| outcome.trace_hash));
    }
    assert!(hashes.len() >= 59, "different seeds are different runs");
}

/// What is left out does not happen, and what is not left out is what it was.
#[test]
fn disturbances_can_be_left_out_one_by_one() {
    for seed in 0..40 {
        let whole = Case::new(seed);
        let all = campaign::disturbances(&whole);
        let every = all.iter().map(|disturbance| disturbance.number).collect();
        let same = Case { only: Some(every), ..whole.clone() };
        let nothing = Case { only: Some([].into()), ..whole.clone() };
        assert_eq!(campaign::disturbances(&nothing), all, "the same numbers stand for the same");
        let hash = |case: &Case| campaign::run(case).unwrap().trace_hash;
        assert_eq!(hash(&same), hash(&whole), "{same}");
        let coverage = campaign::run(&nothing).unwrap().coverage;
        let happened = [FaultClass::LinkReset, FaultClass::DelaySpike, FaultClass::SlowDisk];
        assert!(happened.iter().all(|class| coverage.of(*class) == 0), "{nothing}: {coverage}");
    }
}
