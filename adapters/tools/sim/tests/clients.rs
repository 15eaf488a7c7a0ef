//! What ZooKeeper promises its clients, at servers that run the shipped service: a few hundred ensembles.

#![allow(clippy::unwrap_used, reason = "tests")]

use quorate_sim::campaign::{Case, Story, run};
use quorate_sim::runner::{Progress, Runner};

/// Two hundred, or `QUORATE_CLIENTS`.
#[test]
fn clients_are_told_what_is_so_whatever_happens_to_servers() {
    let seeds = std::env::var("QUORATE_CLIENTS").map_or(200, |seeds| seeds.parse().unwrap());
    let runner = Runner { story: Some(Story::Clients), ..Runner::new(0, seeds) };
    let tally = runner.run(&Progress::default());
    let failures: Vec<_> =
        tally.failures.iter().map(|(case, why)| format!("{case}: {why}")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(tally.acknowledged > 100 * seeds, "{} replies", tally.acknowledged);
}

#[test]
fn the_same_seed_is_the_same_run_with_clients_too() {
    for seed in 0..8 {
        let case = Case::of(Story::Clients, seed);
        assert_eq!(run(&case).unwrap(), run(&case).unwrap());
    }
}
