//! A thousand histories and their accidents, one seed each: clients write and read all the time.
//!
//! A seed that fails is run again with
//!
//! ```text
//! QUORATE_SEED=<seed> cargo test -p quorate-sim --test histories replay -- --nocapture
//! ```
//!
//! `QUORATE_SEEDS=<count>` and `QUORATE_FIRST=<seed>` choose other seeds for a longer run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_sim::{Coverage, FaultClass, traffic};

/// The seeds of an ordinary run.
const SEEDS: u64 = 1_000;

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

#[derive(Default)]
struct Sum {
    steps: u64,
    time: Duration,
    established: usize,
    commits: u64,
    acknowledged: u64,
    reads: u64,
    coverage: Coverage,
    failures: Vec<(u64, String)>,
}

impl Sum {
    fn add(&mut self, outcome: &traffic::Outcome) {
        self.steps += outcome.steps;
        self.time += outcome.time;
        self.established += outcome.established;
        self.commits += outcome.commits;
        self.acknowledged += outcome.acknowledged;
        self.reads += outcome.reads;
        self.coverage.add(&outcome.coverage);
    }
}

/// What a seed ends with, a panic of the core included.
fn outcome(seed: u64) -> Result<traffic::Outcome, String> {
    match std::panic::catch_unwind(|| traffic::run(seed)) {
        Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
        Err(_) => Err("panicked, see above".to_owned()),
    }
}

#[test]
fn a_thousand_random_histories() {
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
                        Ok(outcome) => sum.add(&outcome),
                        Err(failure) => sum.failures.push((seed, failure)),
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    println!("{seeds} seeds from {first}: {} steps, {:?} of simulated time", sum.steps, sum.time);
    println!(
        "{} leaders established, {} transactions committed, {} writes acknowledged, {} reads",
        sum.established, sum.commits, sum.acknowledged, sum.reads
    );
    println!("{}", sum.coverage);
    if let Some((seed, failure)) = sum.failures.iter().min() {
        let mut kinds = std::collections::BTreeMap::<String, (u32, u64)>::new();
        for (seed, failure) in &sum.failures {
            let kind = failure.split([':', '\n']).next().unwrap_or_default();
            let kind = kind.split(" by server").next().unwrap_or_default().to_owned();
            kinds.entry(kind).or_insert((0, *seed)).0 += 1;
        }
        panic!(
            "{} of {seeds} seeds failed: {:?}\n{kinds:#?}\nthe first says: {failure}\nreplay it with\n  \
             QUORATE_SEED={seed} cargo test -p quorate-sim --test histories replay -- --nocapture",
            sum.failures.len(),
            sum.failures.iter().map(|(seed, _)| seed).take(20).collect::<Vec<_>>(),
        );
    }
    if seeds >= SEEDS {
        // A learner that was cut has to fall behind before it is told NEWLEADER.
        let rare = [FaultClass::StreamedCommits];
        let missing = sum.coverage.missing(&FaultClass::ALL);
        let missing: Vec<_> = missing.iter().filter(|class| !rare.contains(class)).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

/// Runs `QUORATE_SEED` and prints its log; passes if no seed is given.
#[test]
fn replay() {
    let Some(seed) = from_environment("QUORATE_SEED") else { return };
    let lines = from_environment("QUORATE_LINES").unwrap_or(400);
    let (outcome, log) = traffic::explain(seed, usize::try_from(lines).unwrap());
    println!("{log}\nseed {seed}: {outcome:#?}");
    assert!(outcome.is_ok(), "seed {seed} fails, see above");
}

/// A seed is a whole bug report only if it means the same run every time.
#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..20 {
        assert_eq!(traffic::run(seed), traffic::explain(seed, 0).0, "seed {seed}");
    }
}
