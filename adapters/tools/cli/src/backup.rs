//! `quorate backup`: a data directory into one file, and whether such a file is whole.
//!
//! The work is `quorate-rescue`'s; here it is asked for and told.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorate_rescue::archive::Archive;
use quorate_rescue::backup;
use quorate_rescue::manifest::{Manifest, parse_zxid};
use quorate_rescue::source::Source;
use quorate_storage::record::TXN_BYTES_MAX;
use quorate_tokio::core::zxid::Zxid;
use serde_json::{Value, json};
use thiserror::Error;

use crate::failure::Failure;
use crate::utc::utc;

/// Back up a server's data directory, ours or a Java server's, into one file.
///
/// The server may be running: what is being written while it is read is left out, and everything is read again if a file
/// was changed meanwhile. The newest whole snapshot and every transaction behind it are read, and must come to the digest
/// that the last transaction carries. The file is a tar; it is synced and read back before it takes its name, in place of
/// an older one. It may hold what clients keep secret: only its owner may read it.
///
/// A directory is read, not a port: --from takes no URL. Run this where the directory is. A schedule is cron's.
/// Exits with 1 if there is no backup; then nothing was replaced.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    act: Option<Act>,
    #[command(flatten)]
    take: Take,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Read a backup through: each part by its SHA-256, the tree by its digest.
    ///
    /// Exits with 1 if it was cut short or is damaged.
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Take {
    /// The dataDir, in which version-2 is.
    #[arg(long, value_name = "DIR", required = true, value_parser = directory)]
    from: Option<PathBuf>,
    /// The dataLogDir, if the server has one.
    #[arg(long, value_name = "DIR")]
    data_log_dir: Option<PathBuf>,
    /// The backup.
    #[arg(long, value_name = "FILE", required = true)]
    to: Option<PathBuf>,
    /// Write nothing if the last transaction is before this one, such as 0x200000002.
    #[arg(long, value_name = "ZXID", value_parser = zxid)]
    zxid_at_least: Option<Zxid>,
    /// The longest transaction: jute.maxbuffer and its extrasize, where an ensemble has raised them.
    #[arg(long, value_name = "BYTES", default_value_t = TXN_BYTES_MAX)]
    longest: usize,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Verify {
    /// The backup.
    file: PathBuf,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// A directory; a URL is told apart from one that is not there.
fn directory(text: &str) -> Result<PathBuf, ArgumentError> {
    if text.contains("://") { Err(ArgumentError::Url) } else { Ok(text.into()) }
}

/// A zxid in hexadecimal, with or without `0x`.
fn zxid(text: &str) -> Result<Zxid, ArgumentError> {
    parse_zxid(text).ok_or_else(|| ArgumentError::Zxid(text.to_owned()))
}

/// An argument that cannot be.
#[derive(Debug, Error)]
enum ArgumentError {
    #[error("servers hand out no snapshots yet: name the data directory, on its machine")]
    Url,
    #[error("{0:?} is no zxid such as 0x200000002")]
    Zxid(String),
}

/// `quorate backup`.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.act {
        Some(Act::Verify(verify)) => run_verify(&verify),
        None => run_take(arguments.take),
    }
}

fn run_take(take: Take) -> Result<(), Failure> {
    let (Some(from), Some(to)) = (take.from, take.to) else {
        return Err(Failure::usage("--from DIR and --to FILE"));
    };
    let source =
        Source { data_dir: from, data_log_dir: take.data_log_dir, txn_bytes_max: take.longest };
    let manifest = backup::take(&source, &to, take.zxid_at_least)
        .map_err(|error| Failure::failed(error.to_string()))?;
    say(&to, &manifest, "written and read back", take.json);
    Ok(())
}

fn run_verify(verify: &Verify) -> Result<(), Failure> {
    let failed = |error: quorate_rescue::archive::ArchiveError| Failure::failed(error.to_string());
    let archive = Archive::open(&verify.file).map_err(failed)?;
    archive.verify().map_err(failed)?;
    say(&verify.file, archive.manifest(), "whole", verify.json);
    Ok(())
}

fn say(file: &Path, manifest: &Manifest, done: &str, json: bool) {
    let text = match json {
        true => object(file, manifest).to_string(),
        false => told(file, manifest, done),
    };
    // A reader that has gone wants no more.
    drop(writeln!(io::stdout().lock(), "{text}"));
}

fn object(file: &Path, manifest: &Manifest) -> Value {
    let mut object = json!(manifest);
    object["file"] = json!(file);
    object
}

/// What a backup holds, in sentences.
fn told(file: &Path, manifest: &Manifest, done: &str) -> String {
    let Manifest { zxid, epoch, nodes, sessions, digest, parts, .. } = manifest;
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let of = manifest.source_id.map_or(String::new(), |id| format!(" of server {id}"));
    let mut text = format!(
        "{}: {done}, {bytes} bytes in {} files{of}, of {}\nlast transaction {zxid} (epoch {epoch}), {nodes} nodes, \
         {sessions} sessions, digest {digest}",
        file.display(),
        parts.len(),
        utc(manifest.time_ms),
    );
    if parts.len() == 1 {
        text += "\nno log file belongs to it, only a snapshot: right where the server has just begun, or was just sent \
                 everything; if it has a dataLogDir, name it with --data-log-dir";
    }
    text
}
