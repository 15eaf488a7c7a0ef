//! `quorate log` and `quorate snapshot`: what is on a disk, of a quorate server or a Java server, without starting one.
//!
//! ```text
//!   quorate log dump FILE         a transaction log, record by record
//!   quorate snapshot dump FILE    a snapshot: what it is, its sessions, its nodes
//!   quorate log check DIR         a whole data directory, and what is wrong with it
//! ```
//!
//! Nothing is changed and nothing is locked. What is damaged is shown as far as it can be, and the exit
//! code says so: 0 for what is whole, or what the next start repairs by itself, else 1. All knowledge of
//! the formats is `quorate-storage`'s and `quorate-znode`'s; here it is written down.

mod body;
mod check;
mod log;
mod page;
mod snapshot;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Look at transaction logs, ours or a Java server's.
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    #[command(subcommand)]
    act: LogAct,
}

#[derive(Debug, Subcommand)]
enum LogAct {
    /// Show a log file, record by record.
    ///
    /// Damaged records are shown and passed over. Exits with 1 if there is one, or if the file does not
    /// end as a log does; a last record that a crash has cut short is no damage: a start removes it.
    Dump(log::Arguments),
    /// Read a whole data directory and say what is wrong with it.
    ///
    /// Every record and every seal is read; nothing is changed, and a server may be running. Exits with
    /// 1 if something is damaged or missing, with 0 if the next start repairs what was found.
    Check(check::Arguments),
}

/// Look at snapshots, ours or a Java server's.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArguments {
    #[command(subcommand)]
    act: SnapshotAct,
}

#[derive(Debug, Subcommand)]
enum SnapshotAct {
    /// Show a snapshot: its header, its sessions, its nodes.
    ///
    /// Of a state that is not ZooKeeper's data tree only its size is told. Exits with 1 if the file is
    /// damaged.
    Dump(FileArguments),
}

#[derive(Debug, Args)]
struct FileArguments {
    /// The file.
    file: PathBuf,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

/// `quorate log`.
pub(crate) fn log(arguments: LogArguments) -> Result<(), Failure> {
    match arguments.act {
        LogAct::Dump(arguments) => log::dump(&arguments),
        LogAct::Check(arguments) => check::check(&arguments),
    }
}

/// `quorate snapshot`.
pub(crate) fn snapshot(arguments: SnapshotArguments) -> Result<(), Failure> {
    let SnapshotAct::Dump(FileArguments { file, json }) = arguments.act;
    snapshot::dump(&file, json)
}
