//! `quorate migrate check`: what has to be known before servers of a Java ensemble are replaced, one at a time.
//!
//! ```text
//!   zoo.cfg of each server ──► settings ──┐
//!                              compare ───┼──► findings, what to do about each ──► page, or JSON
//!   its data, if it is here ─► data ──────┤
//!   its client port (--ask) ─► ask ───────┘    order: who is replaced when, and back
//! ```
//!
//! Nothing is changed and nothing is locked; without `--ask` nothing is sent. What a setting turns on, and whether it
//! has an effect here, is the knowledge of the reader of zoo.cfg; here stands what to do about it.

mod ask;
mod compare;
mod data;
mod finding;
mod order;
mod page;
mod remedies;
mod settings;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quorate_doctor::ConfigFile;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::zoo_cfg::JvmFlags;
use serde::Serialize;
use thiserror::Error;

use self::ask::{Answer, ask_all};
use self::finding::{Finding, Level};
use self::order::{Replacement, order};
use crate::failure::Failure;
use crate::paint::Paint;

/// Replace the servers of a Java ensemble.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Say in which order servers are replaced, and what forbids or endangers it.
    ///
    /// Reads the zoo.cfg of each server of the ensemble, or of one; flags in SERVER_JVMFLAGS and JVMFLAGS count, as they
    /// do for `serve`. Data directories that are on this machine are read through. Changes nothing. Exits with 0 if
    /// nothing forbids the replacement, with 1 if something does, with 2 if a file cannot be read.
    Check(CheckArguments),
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// A zoo.cfg. N=FILE says that it is server N's, if its dataDir with myid is not on this machine.
    #[arg(required = true, value_name = "[N=]ZOO.CFG", value_parser = source)]
    files: Vec<Source>,
    /// Ask the servers at their client ports (srvr) what they are: who leads, and which version it is.
    #[arg(long)]
    ask: bool,
    /// How long to wait for each answer.
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout: u64,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// A file, and whose it is if that is said.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) id: Option<ServerId>,
    pub(crate) path: PathBuf,
}

/// `ZOO.CFG`, or `N=ZOO.CFG`.
pub(crate) fn source(text: &str) -> Result<Source, SourceError> {
    let Some((id, path)) = text.split_once('=').filter(|(id, _)| is_number(id)) else {
        return Ok(Source { id: None, path: text.into() });
    };
    match id.parse() {
        Ok(id) if ServerId::CONFIGURABLE.contains(&id) => {
            Ok(Source { id: Some(ServerId(id)), path: path.into() })
        }
        Ok(_) | Err(_) => Err(SourceError(id.to_owned())),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A server that cannot be.
#[derive(Debug, Error)]
#[error("{0} is no server id from 1 to 255")]
pub(crate) struct SourceError(String);

/// `quorate migrate`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Act::Check(arguments) = arguments.act;
    let flags = JvmFlags::of_environment();
    let files =
        arguments.files.iter().map(|Source { id, path }| ConfigFile::read(path, *id, &flags));
    let files =
        files.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::usage(error.to_string()))?;
    let mut findings: Vec<_> = files.iter().flat_map(settings::findings).collect();
    findings.extend(compare::findings(&files));
    findings.extend(files.iter().flat_map(data::findings));
    let mut answers = Vec::new();
    if arguments.ask {
        answers = ask_all(&files, Duration::from_millis(arguments.timeout)).await;
        findings.extend(ask::findings(&answers));
    }
    findings.sort_by_key(|finding| finding.level);
    let report = Report {
        files: files.iter().map(|file| file.path.as_path()).collect(),
        forbidden: findings.iter().any(|finding| finding.level == Level::Forbids),
        order: order(&files, &answers),
        findings,
        servers: answers,
    };
    let text = if arguments.json {
        let json = serde_json::to_string(&report).map_err(|e| Failure::failed(e.to_string()))?;
        format!("{json}\n")
    } else {
        page::text(&report, Paint::stdout())
    };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    if report.forbidden { Err(Failure::failed("")) } else { Ok(()) }
}

/// All that is told.
#[derive(Debug, Serialize)]
struct Report<'a> {
    files: Vec<&'a std::path::Path>,
    forbidden: bool,
    findings: Vec<Finding>,
    /// What running servers have said.
    servers: Vec<Answer>,
    /// The order of replacement, which is that of the way back, too.
    order: Vec<Replacement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_said_to_be_a_servers() {
        let named = source("3=zoo.cfg").unwrap();
        assert_eq!((named.id, named.path), (Some(ServerId(3)), PathBuf::from("zoo.cfg")));
        let plain = source("a=b/zoo.cfg").unwrap();
        assert_eq!((plain.id, plain.path), (None, PathBuf::from("a=b/zoo.cfg")));
        for wrong in ["0=zoo.cfg", "256=zoo.cfg", "99999999999999999999=zoo.cfg"] {
            assert!(source(wrong).is_err(), "{wrong}");
        }
    }
}
