//! Runs by the thousand: a seed makes an ensemble, its past, its clients, and a run of accidents.
//!
//! ```text
//!   Case ─► servers, observers, weights, what their disks hold      each drawn from the seed
//!        ─► conditions: links that break, slow disks, crashes …     numbered from 0
//!        ─► accidents: crashes, partitions, pauses, transfers …    numbered from 100
//!        ─► everything is repaired ──► a leader that all follow, soon; and what the story demands
//! ```
//!
//! There are five [`Story`]s. Elections: many servers, histories that differ, and how long it takes until
//! there is a leader again. Histories: clients that write and read all the time, and an ensemble that has
//! to serve in the end and to have lost nothing. Days: the same in the time of an ordinary ensemble, where
//! hours pass between one accident and the next. Links: some are broken and stay so, and the ensemble is led all the
//! same. Clients: servers run ZooKeeper's tree and service, and what sessions are told is judged. In every eighth run everything is heaped up, so that what
//! is rare meets what is rare. Safety is tested after every step of all, by the checker and its book.
//!
//! Each condition and each accident is drawn from a fork of the seed of its own. So a case may be told to
//! leave all out but a few ([`Case::only`]), and those happen as before: that is how a failure is made
//! [small](crate::shrink).

mod accidents;
mod background;
mod case;
mod certificates;
mod claims;
mod clients;
mod days;
mod elections;
mod happening;
mod histories;
mod links;
mod little_room;
mod ports;
mod run;

use std::time::Duration;

use crate::faults::Coverage;
use crate::rule::Violation;
use crate::world::World;

pub use case::{Case, Disturbance, Story};
pub use run::ELECTION_MAX;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The steps that servers took.
    pub steps: u64,
    /// The time that passed in the simulated world.
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
    /// What was measured.
    pub times: Times,
    /// Which faults happened, and which paths were taken.
    pub coverage: Coverage,
    /// The hash of everything that happened.
    pub trace_hash: u64,
}

/// How long things took, where they happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How long it may take to notice that a link or a leader is gone.
    pub noticing: Duration,
    /// How long after the repair a leader was established.
    pub repaired: Option<Duration>,
    /// How long after the repair all servers served.
    pub settled: Option<Duration>,
    /// How long after a crash of the leader all others served under another one, if they were enough;
    /// without the time for noticing if its machine lost power.
    pub failover: Option<Duration>,
    /// How long after its restart that leader served as a follower.
    pub rejoined: Option<Duration>,
}

impl Outcome {
    fn of(world: &World, past: u64, times: Times) -> Self {
        let checker = world.checker();
        Self {
            steps: world.steps(),
            time: world.now().since_origin(),
            elected: checker.elected(),
            established: checker.leaders().len() as u64,
            commits: checker.commits() - past,
            acknowledged: checker.acknowledged(),
            reads: checker.reads_answered(),
            explained: 0,
            times,
            coverage: world.coverage(),
            trace_hash: world.trace_hash(),
        }
    }
}

/// A case that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A rule was broken.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// No leader that all follow, or no service, long after everything was repaired.
    #[error("{what} after {limit:?}:\n{state}")]
    Stuck {
        /// What was waited for.
        what: &'static str,
        /// How long.
        limit: Duration,
        /// Where the servers stand.
        state: String,
    },
    /// A leader gave up, or was replaced, although nothing happened.
    #[error("the leader changed without a reason:\n{state}")]
    Unstable {
        /// Where the servers stand.
        state: String,
    },
    /// An ensemble that could be led was not, or was led by one after the other.
    #[error(
        "led {led} of 1000, {changes} changes of the leader, nothing passes {blocked:?}:\n{state}"
    )]
    Unled {
        /// In how many of a thousand moments a leader served.
        led: u64,
        /// How often another served than before.
        changes: u32,
        /// From which server to which nothing passes.
        blocked: Vec<(i64, i64)>,
        /// Where the servers stand.
        state: String,
    },
    /// A server panicked.
    #[error("panicked: {0}")]
    Panicked(String),
}

impl Failure {
    /// What kind of failure it is, so that two can be told to be of one kind.
    pub fn kind(&self) -> String {
        match self {
            Self::Violation(violation) => violation.rule.to_string(),
            Self::Stuck { what, .. } => (*what).to_owned(),
            Self::Unled { .. } => "not led where it could be".to_owned(),
            Self::Unstable { .. } => "the leader changed without a reason".to_owned(),
            Self::Panicked(message) => format!("panicked: {message}"),
        }
    }
}

/// Runs a case.
///
/// # Errors
///
/// If a rule is broken, or the ensemble is not led or does not serve when it must.
pub fn run(case: &Case) -> Result<Outcome, Failure> {
    tell(case, false).0
}

/// Runs a case with a log; returns what came of it, and the world as it was then.
pub fn explain(case: &Case) -> (Result<Outcome, Failure>, World) {
    tell(case, true)
}

fn tell(case: &Case, keep_log: bool) -> (Result<Outcome, Failure>, World) {
    match case.story {
        Story::Elections => elections::tell(case, keep_log),
        Story::Histories => histories::tell(case, keep_log),
        Story::Days => days::tell(case, keep_log),
        Story::Links => links::tell(case, keep_log),
        Story::Clients => clients::tell(case, keep_log),
    }
}

/// What a case meets unless it is left out: its conditions, then its accidents.
pub fn disturbances(case: &Case) -> Vec<Disturbance> {
    match case.story {
        Story::Elections => elections::disturbances(case),
        Story::Histories => histories::disturbances(case),
        Story::Days => days::disturbances(case),
        Story::Links => links::disturbances(case),
        Story::Clients => clients::disturbances(case),
    }
}
