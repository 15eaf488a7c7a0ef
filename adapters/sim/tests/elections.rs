//! Ten thousand elections and their accidents, one seed each.
//!
//! A seed that fails is run again with
//!
//! ```text
//! QUORATE_SEED=<seed> cargo test -p quorate-sim --test elections replay -- --nocapture
//! ```
//!
//! `QUORATE_SEEDS=<count>` and `QUORATE_FIRST=<seed>` choose other seeds for a longer run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_core::vote::Round;
use quorate_sim::campaign;
use quorate_sim::{Coverage, Ensemble, FaultClass, World, WorldConfig};

/// The seeds of an ordinary run.
const SEEDS: u64 = 10_000;

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

#[derive(Default)]
struct Sum {
    steps: u64,
    time: Duration,
    elected: u64,
    established: usize,
    /// How long each took beyond what noticing may take, with its seed.
    repaired: Vec<(Duration, u64)>,
    settled: Vec<(Duration, u64)>,
    failover: Vec<(Duration, u64)>,
    /// The same, noticing included, where the tick is short.
    repaired_raw: Vec<(Duration, u64)>,
    coverage: Coverage,
    failures: Vec<(u64, String)>,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: &campaign::Outcome) {
        let beyond = |took: Duration| (took.saturating_sub(outcome.noticing), seed);
        self.steps += outcome.steps;
        self.time += outcome.time;
        self.elected += outcome.elected;
        self.established += outcome.established;
        self.repaired.extend(outcome.repaired.map(beyond));
        self.settled.extend(outcome.settled.map(beyond));
        self.failover.extend(outcome.failover.map(|took| (took, seed)));
        if outcome.noticing <= Duration::from_secs(2) {
            self.repaired_raw.extend(outcome.repaired.map(|took| (took, seed)));
        }
        self.coverage.add(&outcome.coverage);
    }
}

/// Median, 99.9 percent and maximum.
fn summary(what: &str, times: &mut [(Duration, u64)]) {
    times.sort_unstable();
    let Some((longest, seed)) = times.last() else { return };
    let (median, most) = (times[times.len() / 2].0, times[times.len() * 999 / 1000].0);
    println!(
        "{what}: {} times, median {median:?}, 99.9 % {most:?}, slowest {longest:?} (seed {seed})",
        times.len()
    );
}

/// What a seed ends with, a panic of the core included.
fn outcome(seed: u64) -> Result<campaign::Outcome, String> {
    match std::panic::catch_unwind(|| campaign::run(seed)) {
        Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
        Err(_) => Err("panicked, see above".to_owned()),
    }
}

#[test]
fn ten_thousand_random_elections() {
    let first = from_environment("QUORATE_FIRST").unwrap_or(0);
    let seeds = from_environment("QUORATE_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let sum = Mutex::new(Sum::default());
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let outcome = outcome(seed);
                    let mut sum = sum.lock().unwrap();
                    match outcome {
                        Ok(outcome) => sum.add(seed, &outcome),
                        Err(failure) => sum.failures.push((seed, failure)),
                    }
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap();
    println!("{seeds} seeds from {first}: {} steps, {:?} of simulated time", sum.steps, sum.time);
    println!("{} elections won, {} leaders established", sum.elected, sum.established);
    summary("leader after the repair", &mut sum.repaired_raw);
    summary("  beyond noticing", &mut sum.repaired);
    summary("all follow after the repair, beyond noticing", &mut sum.settled);
    summary("all follow another leader, beyond noticing", &mut sum.failover);
    println!("{}", sum.coverage);
    if let Some((seed, failure)) = sum.failures.iter().min() {
        panic!(
            "{} of {seeds} seeds failed: {:?}\nthe first says: {failure}\nreplay it with\n  \
             QUORATE_SEED={seed} cargo test -p quorate-sim --test elections replay -- --nocapture",
            sum.failures.len(),
            sum.failures.iter().map(|(seed, _)| seed).take(20).collect::<Vec<_>>(),
        );
    }
    if seeds >= SEEDS {
        let missing: Vec<FaultClass> = sum.coverage.missing(FaultClass::OF_ELECTIONS);
        assert!(missing.is_empty(), "never happened: {missing:?}");
        let established = u64::try_from(sum.established).unwrap();
        assert!(established >= SEEDS, "only {established} leaders were established");
    }
}

/// Everybody starts at once and nothing goes wrong: one round, and no wait for a better vote.
#[test]
fn a_clean_start_takes_one_round_and_a_few_messages() {
    for voters in 3..=9 {
        for seed in 0..40 {
            let config =
                WorldConfig { keep_log: false, ..WorldConfig::new(Ensemble::majority(voters)) };
            let (ways, syncs) = (8 * config.network.latency_max, 4 * config.disk.sync_max);
            let mut world = World::new(seed, config);
            world.start_all(1..=voters);
            let took = world.run_until(World::is_settled, Duration::from_secs(5)).unwrap();
            let took = took.expect("a leader that all follow");
            assert!(took <= ways + syncs + Duration::from_millis(100), "seed {seed}: {took:?}");
            assert_eq!(world.leader(), Some(ServerId(voters)));
            assert_eq!(world.checker().elected(), 1, "seed {seed}");
            assert!((1..=voters).all(|id| world.brief(id).is_some_and(|b| b.round == Round(1))));
        }
    }
}

/// Runs `QUORATE_SEED` and prints its log; passes if no seed is given.
#[test]
fn replay() {
    let Some(seed) = from_environment("QUORATE_SEED") else { return };
    let lines = from_environment("QUORATE_LINES").unwrap_or(400);
    let (outcome, log) = campaign::explain(seed, usize::try_from(lines).unwrap());
    println!("{log}\nseed {seed}: {outcome:#?}");
    assert!(outcome.is_ok(), "seed {seed} fails, see above");
}

/// A seed is a whole bug report only if it means the same run every time.
#[test]
fn the_same_seed_is_the_same_run() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let (once, again) = (campaign::run(seed), campaign::explain(seed, 0).0);
        assert_eq!(once, again, "seed {seed}");
        hashes.insert(once.map_or(0, |outcome| outcome.trace_hash));
    }
    assert!(hashes.len() >= 49, "different seeds are different runs");
}
