//! `quorate bench`: what broadcast costs on this machine, with real servers, sockets on loopback, files and fsync.
//!
//! A server is what `quorate serve` is: one thread, and one for its disk. (On other runtimes than tokio
//! the threads belong to all servers together. It is one if the environment does not say otherwise: several
//! only pass these servers' work around.) Before, with the same files and sockets and nothing else, it is
//! measured what a write must take at least, see [`bare`](quorate_servers::bench::bare).
//!
//! What it does not do: put servers on machines of their own. One disk serves all of them here, and one
//! machine's processors.

mod broadcast;
mod report;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use quorate_servers::bench::At;
use quorate_servers::runtime::Kind;

use crate::failure::Failure;

/// Measure what replication costs on this machine.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Broadcast(Broadcast),
}

/// Write through an ensemble in this process as fast as it goes.
///
/// N clients with M writes under way each are N times M writes under way; a write is done when a quorum
/// has it on disk and the server that took it has applied it. The servers' files are on a real disk and
/// are fsynced. The first moments do not count.
#[derive(Debug, Args)]
struct Broadcast {
    /// How many servers.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u8).range(1..=9))]
    servers: u8,
    /// How long each write is.
    #[arg(long, value_name = "BYTES", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=900_000))]
    payload: u32,
    /// How many clients.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: u16,
    /// How many writes each client has under way.
    #[arg(long, value_name = "M", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pipeline: u16,
    /// How long to measure.
    #[arg(long, value_name = "S", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Where the clients are.
    #[arg(long, value_enum, default_value_t = At::Leader)]
    at: At,
    /// What runs the servers. Others than tokio are there if built with `--features runtimes`.
    #[arg(long, value_enum, default_value_t = Kind::Tokio)]
    runtime: Kind,
    /// Where the servers' files are for that time.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// `quorate bench`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let What::Broadcast(broadcast) = &arguments.what;
    match broadcast.runtime.threads() {
        Some(variable) if std::env::var_os(variable).is_none() => on_one_thread(variable),
        Some(_) | None => broadcast::run(broadcast),
    }
}

/// Starts this program anew with one thread for its runtime: the variable is read before the first task, and
/// the environment of a running process must not change.
fn on_one_thread(variable: &str) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt as _;

    let cannot = |error: std::io::Error| Failure::failed(format!("cannot begin anew: {error}"));
    let own = std::env::current_exe().map_err(cannot)?;
    let again = std::env::args_os().skip(1);
    // It returns only if it fails.
    Err(cannot(std::process::Command::new(own).args(again).env(variable, "1").exec()))
}
