//! `quorate`, the command: servers and their operation, work that one of many hosts does, stories and simulations.
//!
//! The package's README has an example of each.
//!
//! ```text
//!   quorate demo                     an ensemble in one process; kills leaders and measures
//!   quorate serve zoo.cfg            one server
//!   quorate wait --ready HOST:PORT   until that server serves
//!   quorate client HOST:PORT...      nodes by hand, through a client port
//!   quorate migrate check zoo.cfg... what forbids that servers of a Java ensemble are replaced one at a time, and the order
//!   quorate admin zoo.cfg VERB       what a running server is to do: hand its leadership over, read its file again, …
//!   quorate reconfig zoo.cfg         another membership, while the ensemble serves
//!   quorate probe HOST:PORT...       asks servers for their view, on their election ports
//!   quorate doctor [zoo.cfg...]      what is wrong with an ensemble, Java's or ours, and what to do
//!   quorate elect ... -- COMMAND     runs a command while this process leads, by an election in ZooKeeper or etcd
//!   quorate designate FILE           names a leader by hand while that store is out of reach
//!   quorate sim                      ensembles in a simulated world, by the thousand
//!   quorate bench broadcast          what replication costs on this machine
//!   quorate play SCENARIO            a story of an election, step by step, each vote with its reason
//!   quorate timeline LOG...          logs of several servers as one timeline, without trusting their clocks
//!   quorate log dump|check, quorate snapshot dump      what is on a disk
//!   quorate backup [verify], quorate restore FILE      a data directory into one file, and back
//!   quorate recover survey|run|acknowledge             goes on where a quorum is lost for good
//!   quorate tls check zoo.cfg        reads key and trust stores as the server would; `tls sample` makes some for development
//!   quorate completions SHELL        a completion script
//!   quorate man DIR                  manual pages
//!   quorate example NAME             a configuration, a systemd unit, a container file, Kubernetes' manifests, alerts, a dashboard
//! ```
//!
//! Results are on stdout, as text or with `--json` as one JSON object per line; logs and complaints are
//! on stderr. The exit code is 0 if all is well, 1 if something has failed or was found to be wrong, 2
//! for wrong arguments or configuration, and 3 if no server could be reached.
#![forbid(unsafe_code)]

mod address;
mod admin;
mod backup;
mod bench;
mod client;
mod client_logins;
mod completions;
mod control;
mod demo;
mod doctor;
mod duration;
mod elect;
mod event;
mod example;
mod exit;
mod failure;
mod four_letter;
mod http_ports;
mod in_force;
mod inspect;
mod last_changes;
mod listen_at;
mod log_file;
mod logs;
mod migrate;
mod operate;
mod operator;
mod own_id;
mod paint;
#[cfg_attr(not(feature = "tls"), path = "no_peer_tls.rs")]
mod peer_tls;
mod play;
mod probe;
mod process;
mod reconfig;
mod recover;
mod restore;
mod serve;
mod settings;
mod sim;
mod superuser;
mod supervisor;
mod threads;
#[cfg_attr(not(feature = "client-tls"), path = "no_through_tls.rs")]
mod through_tls;
mod timeline;
mod tls;
mod utc;
mod wait;
mod word;

use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use quorate_servers::runtime::on_tokio;

use crate::failure::Failure;

/// ZooKeeper's leader election, in Rust.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Serve(serve::Arguments),
    Wait(wait::Arguments),
    Client(client::Arguments),
    Migrate(migrate::Arguments),
    Admin(operate::Arguments),
    Reconfig(reconfig::Arguments),
    Probe(probe::Arguments),
    Doctor(doctor::Arguments),
    Elect(elect::Arguments),
    Designate(elect::DesignateArguments),
    /// The command of an election; `elect` starts it.
    #[command(hide = true)]
    ElectChild(elect::ChildArguments),
    /// A server of a demo under load; the demo starts it.
    #[command(hide = true)]
    DemoServer(demo::ServerArguments),
    Sim(sim::Arguments),
    Bench(bench::Arguments),
    Play(play::Arguments),
    Timeline(timeline::Arguments),
    Log(inspect::LogArguments),
    Snapshot(inspect::SnapshotArguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    Recover(recover::Arguments),
    Tls(tls::Arguments),
    /// Print a completion script for a shell.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command.
    Man {
        /// Into this directory, which is made if need be.
        directory: PathBuf,
    },
    Example(example::Arguments),
}

const EXIT_CODES: &str = "Exit codes: 0 ok, 1 something failed or was found to be wrong, \
                          2 wrong arguments or configuration, 3 no server could be reached";

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Demo(arguments) => on_runtime(demo::run(arguments)),
        Command::Serve(arguments) => on_runtime(serve::run(arguments)),
        Command::Wait(arguments) => on_runtime(wait::run(arguments)),
        Command::Client(arguments) => on_runtime(client::run(arguments)),
        Command::Migrate(arguments) => on_runtime(migrate::run(arguments)),
        Command::Admin(arguments) => on_runtime(operate::run(arguments)),
        Command::Reconfig(arguments) => on_runtime(reconfig::run(arguments)),
        Command::Probe(arguments) => on_runtime(probe::run(arguments)),
        Command::Doctor(arguments) => on_runtime(doctor::run(arguments)),
        Command::Elect(arguments) => on_runtime(elect::run(arguments)),
        Command::Designate(arguments) => on_runtime(elect::designate_leader(arguments)),
        Command::ElectChild(arguments) => elect::become_command(&arguments),
        Command::DemoServer(arguments) => on_runtime(demo::serve(arguments)),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Play(arguments) => play::run(&arguments),
        Command::Timeline(arguments) => timeline::run(&arguments),
        Command::Log(arguments) => inspect::log(arguments),
        Command::Snapshot(arguments) => inspect::snapshot(arguments),
        Command::Backup(arguments) => backup::run(arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Recover(arguments) => on_runtime(recover::run(arguments)),
        Command::Tls(arguments) => tls::run(arguments),
        Command::Completions { shell } => completions::run(shell, Arguments::command()),
        Command::Man { directory } => man(&directory),
        Command::Example(arguments) => example::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                // Without stderr there is no way to say it.
                drop(writeln!(io::stderr(), "{}", failure.message));
            }
            ExitCode::from(failure.code)
        }
    }
}

/// One thread is enough for everything here: it waits.
fn on_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut done = Ok(());
    let work = async { done = work.await };
    on_tokio(Box::pin(work)).map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    done
}

/// `quorate.1`, `quorate-serve.1`, … without the commands that are hidden.
fn man(directory: &Path) -> Result<(), Failure> {
    let write = || {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(Arguments::command(), directory)
    };
    write().map_err(|error: io::Error| Failure::failed(format!("{}: {error}", directory.display())))
}
