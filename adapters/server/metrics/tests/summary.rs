//! Summaries against all the observations that they were made of.

use std::time::Duration;

use quorate_metrics::{SharedSummary, Spread, Summary};

/// The quantiles in thousandths.
const RANKS: [usize; 5] = [500, 900, 950, 990, 999];

/// A random number; the next seed is what it returns.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn quantiles_are_off_by_less_than_three_hundredths() {
    for begin in 1..40 {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(begin);
        let (mut summary, mut all) = (Summary::default(), Vec::new());
        for _ in 0..=next(&mut seed) % 2000 {
            let bits = next(&mut seed) % 30;
            let value = next(&mut seed) >> (63 - bits);
            summary.observe(Duration::from_millis(next(&mut seed) % 100_000), value);
            all.push(value);
        }
        all.sort_unstable();
        let spread = summary.spread(Duration::from_secs(100));
        assert_eq!(spread.count, all.len() as u64);
        assert_eq!((spread.min, spread.max), (all[0], all[all.len() - 1]));
        assert_eq!(spread.sum, all.iter().sum::<u64>());
        for (rank, told) in RANKS.iter().zip(spread.quantiles.unwrap()) {
            let at = (all.len() * rank).div_ceil(1000).max(1) - 1;
            let off = told.abs_diff(all[at]);
            assert!(off * 100 <= all[at] * 3, "seed {begin}: {rank} is {told}, not {}", all[at]);
        }
    }
}

#[test]
fn what_is_older_than_ten_minutes_counts_for_no_quantile_and_for_all_else() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let mut summary = Summary::default();
    summary.observe(minutes(1), 1000);
    summary.observe(minutes(5), 10);
    assert_eq!(summary.spread(minutes(5)).quantiles.unwrap()[4], 1000);
    assert_eq!(summary.spread(minutes(11)).quantiles.unwrap(), [10; 5]);
    let later = summary.spread(minutes(20));
    assert_eq!((later.quantiles, later.count, later.max, later.sum), (None, 2, 1000, 1010));
    summary.observe(minutes(21), 3);
    assert_eq!(summary.spread(minutes(21)).quantiles.unwrap(), [3; 5]);
}

#[test]
fn without_observations_there_is_no_quantile() {
    assert_eq!(Summary::default().spread(Duration::ZERO), Spread::default());
}

/// Nothing gets lost between those who observe; and what they see is what one alone would.
#[test]
fn many_observe_one_summary_at_once() {
    let shared = SharedSummary::default();
    assert_eq!(shared.spread(Duration::ZERO), Spread::default());
    let mut alone = Summary::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let shared = &shared;
            scope.spawn(move || {
                for value in (thread..4_000).step_by(4) {
                    shared.observe(Duration::from_secs(1200), value);
                }
            });
        }
    });
    (0..4_000).for_each(|value| alone.observe(Duration::from_secs(1200), value));
    assert_eq!(shared.spread(Duration::from_secs(1200)), alone.spread(Duration::from_secs(1200)));
    // Ten minutes later the quantiles are forgotten, and then those of two minutes.
    for (at, value) in [(1900, 7), (2100, 9)] {
        shared.observe(Duration::from_secs(at), value);
        alone.observe(Duration::from_secs(at), value);
        let at = Duration::from_secs(at);
        assert_eq!(shared.spread(at), alone.spread(at));
    }
    let at = Duration::from_secs(2600);
    assert_eq!(shared.spread(at), alone.spread(at));
    assert_eq!(shared.spread(at).quantiles, Some([9; 5]));
}

/// Who looks at the clock late puts what it saw into a slice that is another one by then, and takes nothing out of it.
#[test]
fn an_observation_that_comes_late_forgets_none() {
    let (shared, at) = (SharedSummary::default(), Duration::from_secs(1200));
    shared.observe(at, 7);
    let spread = shared.spread(at);
    assert_eq!((spread.count, spread.sum, spread.quantiles), (1, 7, Some([7; 5])));
    shared.observe(Duration::from_secs(600), 7);
    let spread = shared.spread(at);
    assert_eq!((spread.count, spread.quantiles), (2, Some([7; 5])));
}
