//! A failure made small: which of all that happened it takes to see it.
//!
//! ```text
//!   60 disturbances ── without this half? ── without that? ── without this quarter? … ──► 3
//!                      it still fails: go on with what is left
//! ```
//!
//! Delta debugging (Zeller, Hildebrandt: *Simplifying and Isolating Failure-Inducing Input*, 2002) over
//! the numbers of the disturbances: each is drawn from a fork of the seed of its own, so the others happen
//! as before without it. Then fewer servers are tried. A smaller case counts only if it fails in the same
//! kind of way.

use std::collections::BTreeSet;

use crate::campaign::{self, Case, Disturbance, Failure};
use crate::runner::attempt;

/// A small case that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// What to run.
    pub case: Case,
    /// How it fails.
    pub failure: Failure,
    /// What is left.
    pub left: Vec<Disturbance>,
    /// How many there were.
    pub of: usize,
    /// How many runs it took.
    pub runs: u32,
}

/// Makes a case that fails smaller, in not many more runs than `most`.
pub fn shrink(case: &Case, failure: &Failure, most: u32) -> Shrunk {
    let all = campaign::disturbances(case);
    let mut search = Search { best: (case.clone(), failure.clone()), runs: 0, most };
    search.fewer_disturbances();
    let servers = case.servers.unwrap_or(9);
    for fewer in (1..servers).filter(|servers| *servers <= 3 || servers % 2 == 1) {
        let smaller = Case { servers: Some(fewer), ..search.best.0.clone() };
        // What the numbers stand for changes with the servers.
        let anew = Case { only: None, ..smaller.clone() };
        if search.fails(smaller) || search.fails(anew) {
            search.fewer_disturbances();
            break;
        }
    }
    let (case, failure) = search.best;
    let left = campaign::disturbances(&case);
    let left = left.into_iter().filter(|disturbance| case.allows(disturbance.number)).collect();
    Shrunk { case, failure, left, of: all.len(), runs: search.runs }
}

struct Search {
    best: (Case, Failure),
    runs: u32,
    most: u32,
}

impl Search {
    /// Whether a case fails as the best one does; then it is the best.
    fn fails(&mut self, case: Case) -> bool {
        if self.runs >= self.most {
            return false;
        }
        self.runs += 1;
        match attempt(&case) {
            Err(failure) if failure.kind() == self.best.1.kind() => {
                self.best = (case, failure);
                true
            }
            Err(_) | Ok(_) => false,
        }
    }

    fn fewer_disturbances(&mut self) {
        let case = self.best.0.clone();
        let numbers: Vec<u32> = campaign::disturbances(&case)
            .iter()
            .map(|disturbance| disturbance.number)
            .filter(|number| case.allows(*number))
            .collect();
        minimal(numbers, |left| {
            let only = left.iter().copied().collect::<BTreeSet<_>>();
            self.fails(Case { only: Some(only), ..case.clone() })
        });
    }
}

/// The smallest list found, none of which can be left out, that still `fails`.
fn minimal(mut all: Vec<u32>, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    if fails(&[]) {
        return Vec::new();
    }
    let mut parts = 2;
    while all.len() > 1 {
        let size = all.len().div_ceil(parts);
        let mut smaller = None;
        for at in (0..all.len()).step_by(size) {
            let end = (at + size).min(all.len());
            let without: Vec<u32> = all[..at].iter().chain(&all[end..]).copied().collect();
            if fails(&without) {
                smaller = Some(without);
                break;
            }
        }
        match smaller {
            Some(without) => {
                all = without;
                parts = parts.saturating_sub(1).max(2);
            }
            None if parts < all.len() => parts = (2 * parts).min(all.len()),
            None => break,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failure_takes_is_left_and_nothing_else() {
        for needed in [&[][..], &[7], &[3, 17], &[0, 1, 2], &[5, 30, 31, 59]] {
            let mut runs = 0;
            let left = minimal((0..60).collect(), |list| {
                runs += 1;
                needed.iter().all(|number| list.contains(number))
            });
            assert_eq!(left, needed);
            assert!(runs < 120, "{runs} runs for {needed:?}");
        }
    }

    /// Either of two will do; one is left.
    #[test]
    fn of_two_that_do_one_is_left() {
        let left = minimal((0..10).collect(), |list| list.contains(&4) || list.contains(&8));
        assert_eq!(left.len(), 1, "{left:?}");
    }

    /// A disk that loses what it said was safe is found out, and all that is left of the run is what it
    /// takes: something that crashes.
    #[test]
    fn a_disk_that_lies_is_found_and_shown_small() {
        let planted = |seed| Case { plant_loss: true, ..Case::new(seed) };
        let found = (0..50).map(planted).find_map(|case| Some((attempt(&case).err()?, case)));
        let Some((failure, case)) = found else { panic!("nothing is noticed") };
        let shrunk = shrink(&case, &failure, 300);
        assert_eq!(shrunk.failure.kind(), failure.kind());
        assert!(shrunk.left.len() <= 1 && shrunk.of > 2, "{shrunk:?}");
        assert_eq!(attempt(&shrunk.case), Err(shrunk.failure), "the same again");
    }
}
