//! `quorate recover`: an ensemble that lost its quorum for good goes on with the servers that are left.
//!
//! ```text
//!   survey        what each survivor has, who has the newest history
//!   run           on each server that is kept: every reason against it, or a copy, new epochs, a new membership
//!   acknowledge   servers say no more that it was done
//! ```
//!
//! A command, offline, and never a setting of `serve`: such a flag stays in start scripts, and decides again
//! when no operator has (Altinity/clickhouse-operator#1224). What is decided is `quorate-rescue`'s; here it is asked for, ports are
//! tried, and the membership is written.

mod reach;
mod run;
mod shown;
mod survey;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorate_rescue::recovered::{self, Recovered};
use quorate_tokio::zoo_cfg::{JvmFlags, ZooCfg};

use crate::failure::Failure;
use crate::utc::utc;

/// Go on with fewer than a majority, where the others are lost for good. Writes may be lost.
///
/// Only where a majority will never come back. If it is only away, wait; if a disk is damaged, see `quorate log check`: a
/// server whose directory was emptied gets everything from the others, and a backup can be restored.
///
/// First `survey`, then `run` on each server that is kept, all of them stopped; then start them, look at them with
/// `probe` and `log check`, and add others, emptied, by `reconfig` or with db.autocreate=false.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Show what is left: epochs, the last transaction, whether it is sound, who has the newest history.
    ///
    /// Reads directories through and asks election ports; changes nothing. Exits with 1 if a directory is not sound or
    /// cannot be read.
    Survey(survey::Arguments),
    /// Make this stopped server one of those that go on, unless there is a reason against it.
    ///
    /// Copies the data directory and verifies the copy; raises both epochs by 1000 above all that were seen; puts the
    /// membership of the kept servers in force (the one in zoo.cfg is printed for the operator to write); leaves
    /// recovered.json, of which `serve` warns at each start. Refuses with every reason, not the first. Exits with 0 if it
    /// is done, 1 if it was refused.
    Run(run::Arguments),
    /// Say that the recovery is known, so that `serve` warns no more.
    ///
    /// recovered.json is kept, as recovered.acknowledged.json.
    Acknowledge {
        /// The dataDir, or the zoo.cfg that names it.
        #[arg(value_name = "DIR|ZOO.CFG")]
        dir: PathBuf,
    },
}

/// `quorate recover`.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.act {
        Act::Survey(arguments) => survey::run(arguments).await,
        Act::Run(arguments) => run::run(arguments).await,
        Act::Acknowledge { dir } => acknowledge(&dir),
    }
}

fn acknowledge(shown: &Path) -> Result<(), Failure> {
    let dir = if shown.is_file() {
        let cfg = ZooCfg::read_with(shown, &JvmFlags::of_environment());
        cfg.map_err(|error| Failure::usage(error.to_string()))?.data_dir
    } else {
        shown.to_owned()
    };
    let dir = dir.as_path();
    let found = recovered::acknowledge(dir).map_err(|error| Failure::failed(error.to_string()))?;
    let Some(recovered) = found else {
        return Err(Failure::failed(format!("{}: it was not recovered", dir.display())));
    };
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout().lock(), "acknowledged: {}", described(&recovered)));
    Ok(())
}

/// What a server says at its start, until it is acknowledged.
pub(crate) fn warn(data_dir: &Path) {
    match recovered::read(data_dir) {
        Ok(None) => {}
        Ok(Some(recovered)) if recovered.complete => tracing::warn!(
            lost = ?recovered.lost,
            kept = ?recovered.kept,
            "{}. The disks of the lost servers must not start as they are. `quorate recover acknowledge {}` ends this \
             warning",
            described(&recovered),
            data_dir.display()
        ),
        Ok(Some(_)) => tracing::warn!(
            "the recovery of this directory without a quorum was interrupted: stop this server and finish it with \
             `quorate recover run`"
        ),
        Err(error) => tracing::warn!(%error, "this directory was recovered without a quorum"),
    }
}

fn described(recovered: &Recovered) -> String {
    let Recovered { time_ms, by, kept, lost, epoch, zxid, .. } = recovered;
    format!(
        "this ensemble was recovered without a quorum at {} by {by}: servers {kept:?} went on from {zxid} in epoch \
         {epoch}, {lost:?} were declared lost for good",
        utc(*time_ms)
    )
}
