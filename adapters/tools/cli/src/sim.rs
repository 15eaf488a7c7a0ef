//! `quorate sim`: ensembles in the simulator that live through accidents in virtual time, thousands of them a minute.
//!
//! ```text
//!   --seeds N    Runner ── progress ──► a bar on stderr
//!                   └── Tally ────────► figures, what happened how often, the first failure made small
//!   --seed S     one run, told line by line
//! ```
//!
//! What is simulated, and which rules must hold, is `quorate-sim`'s.

mod compare;
mod many;
mod one;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate_sim::campaign::Story;
use thiserror::Error;

use crate::failure::Failure;

/// Run ensembles through accidents in a simulated world, and check them after every step.
///
/// A seed makes an ensemble, what its disks hold, its clients, and what goes wrong: crashes in the middle
/// of anything, partitions, links that break, slow disks, pauses, transfers of leadership, changes of membership.
/// Time is virtual. After every step it is checked that nothing committed is lost, nothing is applied
/// before a quorum has it on disk, no epoch has two leaders, and more. Exits with 1 if a rule is broken,
/// if no server leads or serves when all is repaired, or if some fault never happened in a large run. Then
/// the first failure is run again and again with less and less going wrong, and it is told how to see
/// what is left of it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only compare both kinds of election, in ensembles of 3 to 63 servers that lose their leader.
    #[arg(long, conflicts_with_all = ["seed", "first", "only", "story", "inject_loss", "threads"])]
    compare: bool,
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = SEEDS, conflicts_with = "seed",
          value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first of them.
    #[arg(long, value_name = "S", default_value_t = 0, conflicts_with = "seed")]
    first: u64,
    /// Run this one alone, and tell it.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Of this one let nothing happen but the disturbances with these numbers, or none.
    #[arg(long, value_name = "NUMBERS", requires = "seed", value_parser = numbers)]
    only: Option<Numbers>,
    /// How many of the last things that happened in it are shown.
    #[arg(long, value_name = "N", default_value_t = 200, requires = "seed")]
    lines: usize,
    /// Draw it, too: the seed as a space-time diagram, the comparison as curves.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// What all are about; every fourth seed is about elections otherwise.
    #[arg(long, value_enum)]
    story: Option<What>,
    /// The kind of election: ZooKeeper's, or by generation.
    #[arg(long, value_enum, default_value_t = Kind::Fast)]
    election: Kind,
    /// How many servers, whatever the seeds say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    servers: Option<u8>,
    /// How many threads; as many as there are processors otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024),
          conflicts_with = "seed")]
    threads: Option<u16>,
    /// To see that a loss is found: each crash takes the last transaction that its disk had synced.
    #[arg(long, alias = "plant-loss")]
    inject_loss: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// How servers elect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// ZooKeeper's fast leader election.
    Fast,
    /// One vote for each server and generation, and heartbeats.
    Generation,
}

/// What runs are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Leaders, and how soon: many servers, histories that differ, no clients.
    Elections,
    /// Nothing is lost: clients write and read all the time.
    Histories,
    /// Two days of an ordinary ensemble, and an accident about every hour.
    Days,
    /// Links that are broken and stay so: an ensemble that can be led is led.
    Links,
    /// What ZooKeeper promises its clients: sessions, watches, ephemeral nodes.
    Clients,
}

impl From<What> for Story {
    fn from(what: What) -> Self {
        match what {
            What::Elections => Self::Elections,
            What::Histories => Self::Histories,
            What::Days => Self::Days,
            What::Links => Self::Links,
            What::Clients => Self::Clients,
        }
    }
}

/// Numbers of disturbances.
type Numbers = BTreeSet<u32>;

/// Numbers with commas between them.
fn numbers(text: &str) -> Result<Numbers, NumberError> {
    if text == "none" {
        return Ok(Numbers::new());
    }
    let number = |text: &str| text.trim().parse().map_err(|_| NumberError(text.to_owned()));
    text.split(',').map(number).collect()
}

/// An argument that is no number.
#[derive(Debug, Error)]
#[error("no number: {0}")]
struct NumberError(String);

/// How many seeds are run if nothing is said.
const SEEDS: u64 = 1_000;

/// `quorate sim`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.compare {
        return compare::run(arguments);
    }
    if arguments.svg.is_some() && arguments.seed.is_none() {
        return Err(Failure::usage("--svg draws one --seed, or --compare".to_owned()));
    }
    match arguments.seed {
        Some(seed) => one::run(arguments, seed),
        None => many::run(arguments),
    }
}

fn say(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        // A reader that has gone wants no more.
        Ok(()) | Err(_) => Ok(()),
    }
}

fn as_json(report: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(report).map_err(|error| Failure::failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_with_commas_or_there_are_none() {
        assert_eq!(numbers("3, 17,100").unwrap(), Numbers::from([3, 17, 100]));
        assert_eq!(numbers("none").unwrap(), Numbers::new());
        assert_eq!(numbers("3;17").unwrap_err().to_string(), "no number: 3;17");
    }
}
