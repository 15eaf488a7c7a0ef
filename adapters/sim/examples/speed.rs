//! How fast the simulated world turns: `cargo run --release -p quorate-sim --example speed [seeds [first]]`.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::time::{Duration, Instant};

use quorate_sim::{Coverage, campaign};

fn main() {
    let mut arguments =
        std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let seeds = arguments.next().unwrap_or(2_000);
    let first = arguments.next().unwrap_or(0);
    let (mut steps, mut elected, mut time) = (0, 0, Duration::ZERO);
    let (mut slowest, mut coverage) = (Duration::ZERO, Coverage::default());
    #[allow(clippy::disallowed_methods, reason = "it measures the real time")]
    let start = Instant::now();
    for seed in first..first + seeds {
        match campaign::run(seed) {
            Ok(outcome) => {
                steps += outcome.steps;
                elected += outcome.elected;
                time += outcome.time;
                slowest = slowest.max(outcome.settled.unwrap_or_default());
                coverage.add(&outcome.coverage);
            }
            Err(failure) => println!("seed {seed}: {failure}"),
        }
    }
    let real = start.elapsed().as_secs_f64();
    println!("{seeds} seeds, {steps} steps, {elected} elections won, slowest {slowest:?}");
    println!("{:.0} steps/s", steps as f64 / real);
    println!("{:.0} simulated seconds per second", time.as_secs_f64() / real);
    println!("{coverage}");
}
