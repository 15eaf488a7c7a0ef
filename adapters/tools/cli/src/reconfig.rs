//! `quorate reconfig`: changes the membership while the ensemble serves, at the operator's command.
//!
//! It asks a server that runs on this machine, whatever its role; the leader decides. What it does not do:
//! it starts and stops no server, and rewrites no file; each server keeps its own dynamic file.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use quorate_tokio::zoo_cfg::ZooCfg;
use serde::Serialize;
use thiserror::Error;

use crate::failure::Failure;
use crate::operate::answered;
use crate::operator::{Question, Report, Wanted, ask};

/// Change the membership of a running ensemble, or show it.
///
/// Asks the server that runs on this machine with this zoo.cfg, in which reconfigEnabled=true; any server
/// of the ensemble will do, also one that joins, beside Java servers, too. A server that joins is started
/// before, with its own line and those of the others in its zoo.cfg, and brought up before it votes; one
/// that leaves is stopped afterwards. Prints the membership then in force. Exits with 1 if nothing was
/// changed, or the outcome is unknown, and with 3 if the server cannot be reached.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The zoo.cfg of the server.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A server that joins, or whose role or addresses change: `4=host:2888:3888[:observer][;clientPort]`.
    #[arg(long, value_name = "ID=ADDRESS", value_delimiter = ',')]
    add: Vec<String>,
    /// Servers that leave.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    remove: Vec<i64>,
    /// A file with the server, group and weight lines of a whole membership, instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["add", "remove"])]
    members: Option<PathBuf>,
    /// Change it only if it has this version now, as the last line of a membership says it.
    #[arg(long, value_name = "VERSION", value_parser = version)]
    if_version: Option<i64>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// How long to wait until it is in force.
    #[arg(long, value_name = "MS", default_value_t = 30_000,
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout: u64,
}

/// In hexadecimal, as the text of a membership has it.
fn version(text: &str) -> Result<i64, VersionError> {
    i64::from_str_radix(text, 16).map_err(|_| VersionError(text.to_owned()))
}

/// An argument that is no version.
#[derive(Debug, Error)]
#[error("{0:?} is no version such as 10000000a")]
struct VersionError(String);

/// Asks, and prints the membership in force.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let cfg = ZooCfg::read(&arguments.file).map_err(|error| Failure::usage(error.to_string()))?;
    let members = arguments.members.map(|file| {
        let unreadable = |error| Failure::usage(format!("{}: {error}", file.display()));
        fs::read_to_string(&file).map_err(unreadable)
    });
    let wanted = Wanted {
        add: arguments.add,
        remove: arguments.remove,
        members: members.transpose()?,
        version: arguments.if_version,
        timeout_ms: arguments.timeout,
    };
    wanted.change().map_err(|error| Failure::usage(error.to_string()))?;
    let patience = Duration::from_millis(arguments.timeout);
    let answer = ask(&cfg.data_dir, &Question::Reconfig(wanted), patience).await;
    let Report::Membership(membership) = answered(answer)? else {
        return Err(Failure::failed("the server has answered something else"));
    };
    let text = if arguments.json {
        let report = Page { membership: membership.lines().collect() };
        serde_json::to_string(&report).map_err(|error| Failure::failed(error.to_string()))?
    } else {
        membership
    };
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout().lock(), "{text}"));
    Ok(())
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Page<'a> {
    /// Its lines, the version last.
    membership: Vec<&'a str>,
}
