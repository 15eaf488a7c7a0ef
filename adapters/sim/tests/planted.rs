//! Mistakes that are planted in the core, one after the other, and found: a checker that misses one is
//! itself a mistake.
//!
//! ```text
//! RUSTFLAGS="--cfg quorate_planted" cargo test --release -p quorate-sim --test planted --target-dir target/planted -- --nocapture
//! ```
//!
//! [`TABLE`] says for each mistake where it is looked for, and how many seeds may pass until one fails. With
//! nothing planted as many seeds pass without a complaint.
//!
//! `QUORATE_PLANTED=<name>` looks for one of them and says what was found; with `QUORATE_SEEDS=<count>` as
//! the budget.

#![cfg(quorate_planted)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and figures for people")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quorate_core::planted::{Mistake, plant};
use quorate_sim::{campaign, traffic};

/// Where a mistake is looked for.
#[derive(Clone, Copy, Debug)]
enum Search {
    /// Random histories, with clients.
    Traffic,
    /// Random elections.
    Campaign,
}

use Search::{Campaign, Traffic};

/// What is looked for, where, how many seeds it may take, and how many it took when this was written.
const TABLE: &[(Mistake, Search, u64, u64)] = &[(Mistake::TieBreakAcrossEpochs, Campaign, 100, 1)];

/// What a seed says; a panic of the core counts as a complaint.
fn complaint(search: Search, seed: u64) -> Option<String> {
    let run = || match search {
        Search::Traffic => traffic::run(seed).err(),
        Search::Campaign => campaign::run(seed).err(),
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(failure) => failure.map(|failure| failure.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            Some(format!("panic: {}", said.unwrap_or_default()))
        }
    }
}

/// The first of so many seeds that complains, or one that does soon after.
fn hunt(search: Search, seeds: u64) -> Option<(u64, String)> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(None::<(u64, String)>));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || found.lock().unwrap().is_some() {
                        return;
                    }
                    if let Some(complaint) = complaint(search, seed) {
                        let mut found = found.lock().unwrap();
                        if found.as_ref().is_none_or(|(first, _)| seed < *first) {
                            *found = Some((seed, complaint));
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn every_planted_mistake_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let all: Vec<_> = Mistake::ALL.iter().map(|m| (*m, Traffic, 300, 0)).collect();
    for (mistake, search, budget, _) in all {
        if std::env::var("QUORATE_PLANTED")
            .is_ok_and(|name| !name.split(',').any(|n| format!("{mistake:?}") == n))
        {
            continue;
        }
        for search in [Traffic, Campaign] {
            let begun = Instant::now();
            plant(Some(mistake));
            let found = hunt(search, budget);
            plant(None);
            let took = begun.elapsed().as_secs_f64();
            let (seed, said) = found.map_or((-1, String::new()), |(seed, said)| {
                (seed as i64, said.chars().take(150).collect())
            });
            println!("{mistake:?} {search:?} {seed} {took:.2} {}", said.replace('\n', " "));
        }
    }
}
