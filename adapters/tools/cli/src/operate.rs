//! `quorate admin`: a running server is told what to do, by who may, on its own machine.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quorate_tokio::zoo_cfg::ZooCfg;
use thiserror::Error;

use crate::duration::duration;
use crate::failure::Failure;
use crate::operator::{Answer, AskError, Question, Report, Successor, ask};

/// Tell a running server what to do.
///
/// Asks the server that runs on this machine with this zoo.cfg, by a socket in its dataDir that is open to the user of the
/// server and to root; no port is opened. Exits with 1 if nothing was changed, or the outcome is unknown, with 2 if what is
/// asked or the file cannot be used, and with 3 if the server cannot be reached.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The zoo.cfg of the server.
    #[arg(value_name = "ZOO.CFG")]
    file: PathBuf,
    /// One JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Give the leadership to another server; exits with 0 also if this server does not lead.
    #[command(visible_alias = "hand-over")]
    Transfer {
        /// To this server; `lowest`: of those that can take it the one with the lowest id, as suits who restarts servers
        /// from the highest down. To the best that there is, unless it is said.
        #[arg(long, value_name = "ID|lowest", value_parser = successor)]
        to: Option<Successor>,
        /// How long to try, until another server leads.
        #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
        wait: Duration,
    },
    /// Give the leadership up: to another server if one can take it, else by an election, which this server may win again.
    StepDown {
        /// How long to wait for the next leader.
        #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
        wait: Duration,
    },
    /// Show how the server does.
    Status,
    /// Have the server read its zoo.cfg again, as SIGHUP does: which words are answered, limits of clients and watches,
    /// time-outs of sessions, what is logged. Of what else has changed it is said that it counts after a restart.
    Reload,
    /// Change what the server logs, until it ends or is told again.
    LogLevel {
        /// Such as "debug" or "info,quorate_driver=debug"; `default`: what it was at the start.
        #[arg(value_name = "LEVEL")]
        level: String,
    },
    /// Have the server take a snapshot now.
    Snapshot {
        /// How long to wait until it is on disk.
        #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
        wait: Duration,
    },
    /// Send clients to other servers, a share at a time, none in the middle of what it asks. The server goes on.
    Shed {
        /// How many in a hundred.
        #[arg(long, value_name = "PERCENT", default_value_t = 100,
              value_parser = clap::value_parser!(u8).range(1..=100))]
        share: u8,
        /// Within about this many milliseconds.
        #[arg(long, value_name = "MS", default_value_t = 3000,
              value_parser = clap::value_parser!(u64).range(0..=300_000))]
        within: u64,
    },
}

impl Verb {
    /// What is asked, and how long that may take.
    fn question(&self) -> (Question, Duration) {
        match self {
            Self::Transfer { to, wait } => {
                let to = to.unwrap_or(Successor::Best);
                (Question::Transfer { to, wait_ms: millis(*wait) }, *wait)
            }
            Self::StepDown { wait } => (Question::StepDown { wait_ms: millis(*wait) }, *wait),
            Self::Status => (Question::Status, Duration::ZERO),
            Self::Reload => (Question::Reload, Duration::ZERO),
            Self::LogLevel { level } => {
                let filter = Some(level.clone()).filter(|level| level != "default");
                (Question::LogLevel { filter }, Duration::ZERO)
            }
            Self::Snapshot { wait } => (Question::Snapshot { wait_ms: millis(*wait) }, *wait),
            Self::Shed { share, within } => {
                let question = Question::Shed { percent: *share, within_ms: *within };
                // What is never answered is waited for as long again, and the service itself for a while.
                (question, Duration::from_millis(within * 2) + Duration::from_secs(20))
            }
        }
    }
}

/// An argument that is none.
#[derive(Debug, Error)]
#[error("{0:?} is neither the id of a server nor `lowest`")]
struct SuccessorError(String);

fn successor(text: &str) -> Result<Successor, SuccessorError> {
    match text {
        "lowest" => Ok(Successor::Lowest),
        id => match id.parse() {
            Ok(id) => Ok(Successor::Server(id)),
            Err(_) => Err(SuccessorError(text.to_owned())),
        },
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `quorate admin`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let data_dir = data_dir(&arguments)?;
    let (question, patience) = arguments.verb.question();
    let report = answered(ask(&data_dir, &question, patience).await)?;
    let text = if arguments.json {
        let text = serde_json::to_string(&report);
        text.map_err(|error| Failure::failed(error.to_string()))? + "\n"
    } else {
        report.text()
    };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    Ok(())
}

/// Where the server is. To have a file read again it need not be one that can be used: the server says what is wrong.
fn data_dir(arguments: &Arguments) -> Result<PathBuf, Failure> {
    let wrong = match ZooCfg::read(&arguments.file) {
        Ok(cfg) => return Ok(cfg.data_dir),
        Err(error) => error,
    };
    let told = std::fs::read_to_string(&arguments.file).unwrap_or_default();
    let lines = told.lines().filter_map(|line| line.split_once('='));
    let mut dirs = lines.filter(|(key, _)| key.trim() == "dataDir").map(|(_, dir)| dir.trim());
    dirs.next_back().map(PathBuf::from).ok_or_else(|| Failure::usage(wrong.to_string()))
}

/// What was done, or why not.
pub(crate) fn answered(answer: Result<Answer, AskError>) -> Result<Report, Failure> {
    match answer {
        Ok(Answer::Done(report)) => Ok(report),
        Ok(Answer::Unchanged(why)) => Err(Failure::failed(format!("unchanged: {why}"))),
        Ok(Answer::Unknown(why)) => Err(Failure::failed(format!("not known: {why}"))),
        Ok(Answer::Wrong(why)) => Err(Failure::usage(format!("unchanged: {why}"))),
        Err(error @ AskError::Absent { .. }) => Err(Failure::unreachable(error.to_string())),
        Err(error @ AskError::Silent(_)) => Err(Failure::failed(error.to_string())),
    }
}
