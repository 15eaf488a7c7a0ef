//! Many cases on all processors, and what they come to.
//!
//! ```text
//!   seeds ─► thread ─► campaign::run ─► its own Tally ─┐
//!        ├─► thread ─► …                              ─┼─► one Tally
//!        └─► thread ─► …                              ─┘
//! ```
//!
//! Which thread runs what changes nothing: a [`Tally`] is a sum, and the same seeds give the same one.

use std::cell::Cell;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::campaign::{self, Case, Failure, Outcome, Story};
use crate::faults::{Coverage, FaultClass};

/// Which cases are run, and how many at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// One story for all of them, instead of the one of each seed.
    pub story: Option<Story>,
    /// How many servers, whatever the seeds say.
    pub servers: Option<u8>,
    /// Whether servers elect by generation.
    pub generation: bool,
    /// A fault of the disks that has to be found; see [`Case::plant_loss`].
    pub plant_loss: bool,
    /// How many threads; one at least.
    pub threads: usize,
}

impl Runner {
    /// These seeds, on all processors.
    pub fn new(first: u64, seeds: u64) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            first,
            seeds,
            story: None,
            servers: None,
            generation: false,
            plant_loss: false,
            threads,
        }
    }

    /// The case of a seed.
    pub fn case(&self, seed: u64) -> Case {
        let story = self.story.unwrap_or_else(|| Story::of(seed));
        let &Self { servers, generation, plant_loss, .. } = self;
        Case { servers, generation, plant_loss, ..Case::of(story, seed) }
    }

    /// Which faults have to happen, and which paths have to be taken: all that can, if there are enough
    /// seeds for it.
    pub fn must_happen(&self) -> Vec<FaultClass> {
        const LARGE: u64 = 2_000;
        let seldom = matches!(self.story, Some(Story::Days | Story::Links));
        if self.seeds < LARGE || self.servers.is_some() || self.generation || seldom {
            return Vec::new();
        }
        if self.story == Some(Story::Clients) {
            let of_servers = [FaultClass::NumbersSpent, FaultClass::Reconfigured];
            return [&of_servers, FaultClass::OF_CLIENTS].concat();
        }
        if self.story == Some(Story::Elections) {
            return FaultClass::OF_ELECTIONS.to_vec();
        }
        // A learner that was cut has to fall behind before it is told NEWLEADER.
        let rare = [
            FaultClass::StreamedCommits,
            // A snapshot is installed within the moments that reading the log takes.
            FaultClass::ReplayOvertaken,
            // Either takes a server of an earlier version at the one moment at which that matters.
            FaultClass::LeftToAnElection,
            FaultClass::OlderMembershipRefused,
        ];
        // Non-members claim to be voters at the end of elections.
        let claims = self.story != Some(Story::Histories);
        let can = |class: &FaultClass| {
            !rare.contains(class) && (claims || *class != FaultClass::ClaimRefused)
        };
        FaultClass::OF_SERVERS.iter().copied().filter(can).collect()
    }

    /// Runs them all; `progress` can be looked at meanwhile.
    pub fn run(&self, progress: &Progress) -> Tally {
        let next = AtomicU64::new(0);
        let work = || {
            let mut tally = Tally::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= self.seeds {
                    return tally;
                }
                let case = self.case(self.first + at);
                let outcome = attempt(&case);
                progress.done.fetch_add(1, Ordering::Relaxed);
                match outcome {
                    Ok(outcome) => {
                        progress.steps.fetch_add(outcome.steps, Ordering::Relaxed);
                        tally.count(case.seed, &outcome);
                    }
                    Err(failure) => {
                        progress.failed.fetch_add(1, Ordering::Relaxed);
                        tally.failures.push((case, failure));
                    }
                }
            }
        };
        let mut tally = Tally::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                match thread.join() {
                    Ok(more) => tally.add(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        tally.failures.sort_by_key(|(case, _)| case.seed);
        tally
    }
}

/// How far a runner has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// Cases that were run.
    pub done: AtomicU64,
    /// Those of them that failed.
    pub failed: AtomicU64,
    /// Steps of those that did not.
    pub steps: AtomicU64,
}

/// Runs a case; a panic is a failure like others, and nothing is printed.
///
/// # Errors
///
/// As [`campaign::run`] says.
pub fn attempt(case: &Case) -> Result<Outcome, Failure> {
    QUIET.set(true);
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| campaign::run(case)));
    QUIET.set(false);
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Failure::Panicked(text.unwrap_or("without a word").to_owned()))
    })
}

thread_local! {
    /// Whether a panic of this thread is expected, and is told otherwise.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// What many cases came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases that went well.
    pub passed: u64,
    /// The steps that servers took.
    pub steps: u64,
    /// The time that passed in the simulated worlds.
    pub time: Duration,
    /// Elections that were won.
    pub elected: u64,
    /// Leaders that were established.
    pub established: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Requests that were applied where they were asked.
    pub acknowledged: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Reads and writes of cells that one order explains.
    pub explained: u64,
    /// From the repair to a leader, where noticing takes two seconds at most; that included.
    pub repaired: Spread,
    /// From the repair until all serve, beyond noticing.
    pub settled: Spread,
    /// From a leader's crash until all others serve under another one, beyond noticing.
    pub failover: Spread,
    /// From that server's restart until it serves.
    pub rejoined: Spread,
    /// Which faults happened.
    pub coverage: Coverage,
    /// Which happened together.
    pub pairs: Pairs,
    /// The traces of all cases in one number.
    pub digest: u64,
    /// Cases that failed, by their seeds.
    pub failures: Vec<(Case, Failure)>,
}

impl Tally {
    fn count(&mut self, seed: u64, outcome: &Outcome) {
        let times = outcome.times;
        let beyond = |took: Duration| (took.saturating_sub(times.noticing), seed);
        self.passed += 1;
        self.steps += outcome.steps;
        self.time += outcome.time;
        self.elected += outcome.elected;
        self.established += outcome.established;
        self.commits += outcome.commits;
        self.acknowledged += outcome.acknowledged;
        self.reads += outcome.reads;
        self.explained += outcome.explained;
        if times.noticing <= Duration::from_secs(2) {
            self.repaired.0.extend(times.repaired.map(|took| (took, seed)));
        }
        self.settled.0.extend(times.settled.map(beyond));
        self.failover.0.extend(times.failover.map(|took| (took, seed)));
        self.rejoined.0.extend(times.rejoined.map(|took| (took, seed)));
        self.coverage.add(&outcome.coverage);
        self.pairs.note(&outcome.coverage);
        self.digest ^= outcome.trace_hash.rotate_left(u32::try_from(seed % 64).unwrap_or(0));
    }

    fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.steps += more.steps;
        self.time += more.time;
        self.elected += more.elected;
        self.established += more.established;
        self.commits += more.commits;
        self.acknowledged += more.acknowledged;
        self.reads += more.reads;
        self.explained += more.explained;
        self.repaired.add(more.repaired);
        self.settled.add(more.settled);
        self.failover.add(more.failover);
        self.rejoined.add(more.rejoined);
        self.coverage.add(&more.coverage);
        self.pairs.add(&more.pairs);
        self.digest ^= more.digest;
        self.failures.extend(more.failures);
    }
}

/// How long something took, each time with its seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread(Vec<(Duration, u64)>);

impl Spread {
    fn add(&mut self, more: Self) {
        self.0.extend(more.0);
        self.0.sort_unstable();
    }

    /// How often it happened.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// What so many of a thousand did not exceed.
    pub fn permille(&self, permille: usize) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get((self.0.len() * permille / 1000).min(last)).map_or(Duration::ZERO, |(d, _)| *d)
    }

    /// The longest, and its seed.
    pub fn longest(&self) -> Option<(Duration, u64)> {
        self.0.last().copied()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((longest, seed)) = self.longest() else { return f.write_str("never") };
        let (median, most) = (self.permille(500), self.permille(999));
        write!(f, "{median:.1?} median, {most:.1?} in 99.9 %, {longest:.1?} longest (seed {seed})")
    }
}

const CLASSES: usize = FaultClass::ALL.len();

/// In how many cases two kinds of faults both happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs(Vec<u32>);

impl Default for Pairs {
    fn default() -> Self {
        Self(vec![0; CLASSES * CLASSES])
    }
}

impl Pairs {
    fn note(&mut self, coverage: &Coverage) {
        let met: Vec<usize> =
            (0..CLASSES).filter(|at| coverage.of(FaultClass::ALL[*at]) > 0).collect();
        for (at, one) in met.iter().enumerate() {
            for other in &met[at..] {
                self.0[one * CLASSES + other] += 1;
            }
        }
    }

    fn add(&mut self, more: &Self) {
        for (count, more) in self.0.iter_mut().zip(&more.0) {
            *count += more;
        }
    }

    /// In how many cases one happened.
    pub fn cases(&self, class: FaultClass) -> u32 {
        self.0[class as usize * CLASSES + class as usize]
    }

    /// All pairs of two of these that happen, the rarest first: in how many cases they met.
    pub fn rarest(&self, of: &[FaultClass]) -> Vec<(u32, FaultClass, FaultClass)> {
        let mut all = Vec::with_capacity(of.len() * of.len() / 2);
        for (at, one) in of.iter().enumerate() {
            for other in &of[at + 1..] {
                let (first, second) = (*one.min(other), *one.max(other));
                all.push((self.0[first as usize * CLASSES + second as usize], *one, *other));
            }
        }
        all.retain(|(_, one, other)| self.cases(*one) > 0 && self.cases(*other) > 0);
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_change_nothing() {
        let one = Runner { threads: 1, ..Runner::new(5, 12) };
        let three = Runner { threads: 3, ..one };
        let tally = one.run(&Progress::default());
        assert_eq!(tally, three.run(&Progress::default()));
        assert_eq!((tally.passed, tally.failures.len()), (12, 0), "{:?}", tally.failures);
    }

    #[test]
    fn pairs_are_counted_once_per_case() {
        let (mut coverage, mut pairs) = (Coverage::default(), Pairs::default());
        coverage.hits(FaultClass::Pause, 9);
        coverage.hit(FaultClass::Wipe);
        pairs.note(&coverage);
        let most = pairs.rarest(FaultClass::FAULTS).last().copied();
        assert_eq!(most, Some((1, FaultClass::Wipe, FaultClass::Pause)));
        assert_eq!(pairs.cases(FaultClass::Pause), 1);
        assert_eq!(pairs.cases(FaultClass::HalfOpen), 0);
    }
}
