//! `quorate restore`: a backup into an empty data directory.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use quorate_rescue::archive::Archive;
use quorate_rescue::restore::{Restored, Target, restore};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::zxid::Epoch;
use serde_json::json;
use thiserror::Error;

use crate::failure::Failure;

/// Restore a backup into an empty data directory.
///
/// The backup is read through before anything is written, and what was written is read back to its digest. Nothing that a
/// server would start from is there before all of it is. Both epoch files get the epoch of the last transaction, or a
/// higher one. Sessions in it end by their time-outs, and their ephemeral nodes go then.
///
/// Restore EVERY voter from the same file, or read what this prints: a restored server among empty ones can be outvoted
/// by them, and is cut down to the nothing that they have. Exits with 1 if nothing was restored.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The backup.
    file: PathBuf,
    /// The dataDir: empty, or not there.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The dataLogDir, if the server is to have one; likewise.
    #[arg(long, value_name = "DIR")]
    data_log_dir: Option<PathBuf>,
    /// The server's id, for myid.
    #[arg(long, value_name = "N", value_parser = id)]
    id: i64,
    /// An epoch that the next leader's is to be above: the highest in any acceptedEpoch of the ensemble, where servers
    /// are left that are not restored.
    #[arg(long, value_name = "E", value_parser = clap::value_parser!(i64).range(0..Epoch::MAX.0))]
    epoch_above: Option<i64>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

fn id(text: &str) -> Result<i64, IdError> {
    match text.parse() {
        Ok(id) if ServerId::CONFIGURABLE.contains(&id) => Ok(id),
        Ok(_) | Err(_) => Err(IdError),
    }
}

/// An argument that is no server's id.
#[derive(Debug, Error)]
#[error("it is no server id from 1 to 255")]
struct IdError;

/// `quorate restore`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target = Target {
        data_dir: arguments.data.clone(),
        data_log_dir: arguments.data_log_dir.clone(),
        id: arguments.id,
        epoch_above: arguments.epoch_above.map(Epoch),
    };
    let archive =
        Archive::open(&arguments.file).map_err(|error| Failure::failed(error.to_string()))?;
    let restored =
        restore(&archive, &target).map_err(|error| Failure::failed(error.to_string()))?;
    let text = match arguments.json {
        true => json!({
            "data": target.data_dir,
            "id": target.id,
            "epoch": restored.epoch.0,
            "zxid": restored.manifest.zxid,
            "digest": restored.manifest.digest,
            "nodes": restored.manifest.nodes,
        })
        .to_string(),
        false => told(&target, &restored),
    };
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout().lock(), "{text}"));
    Ok(())
}

/// What was done, what comes next, and the trap.
fn told(target: &Target, restored: &Restored) -> String {
    let Restored { manifest, epoch } = restored;
    let (dir, id) = (target.data_dir.display(), target.id);
    let (zxid, nodes, digest) = (&manifest.zxid, manifest.nodes, &manifest.digest);
    format!(
        "{dir} is server {id}'s: last transaction {zxid}, {nodes} nodes, digest {digest} read back; both epochs {epoch}\n\
         \n\
         Do not start it among empty servers: two of three that are empty elect one another, and this one is cut down to \
         the nothing that they have. One of these first:\n\
         \x20 - restore every voter from this same file, each with its own --id, then start them all; or\n\
         \x20 - set db.autocreate=false on those that are empty: they do not vote until they have everything; or\n\
         \x20 - start this one with itself alone as member, and add the others by `quorate reconfig`.\n\
         next: `chown` it to the server's user, `quorate log check {dir}`, `quorate serve zoo.cfg`"
    )
}
