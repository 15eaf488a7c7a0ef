//! `quorate log check`: a whole data directory, and what is wrong with it.

use std::path::{Path, PathBuf};

use clap::Args;
use quorate_storage::Disk;
use quorate_storage::check::{LogLine, Report, Severity, SnapshotLine, check_on};
use quorate_storage::error::SAFE;
use quorate_storage::record::TXN_BYTES_MAX;
use quorate_storage::snapshot::Compression;
use quorate_tokio::core::zxid::Zxid;
use serde_json::{Value, json};

use super::page::{Gone, Page, written};
use crate::failure::Failure;
use crate::paint::Paint;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The dataDir, in which version-2 is.
    dir: PathBuf,
    /// The dataLogDir, if the server has one.
    #[arg(long, value_name = "DIR")]
    data_log_dir: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// The longest transaction: jute.maxbuffer and its extrasize, where an ensemble has raised them.
    #[arg(long, value_name = "BYTES", default_value_t = TXN_BYTES_MAX)]
    longest: usize,
}

/// Checks a data directory. The failure says how much is wrong.
pub(super) fn check(arguments: &Arguments) -> Result<(), Failure> {
    let report = check_on(
        Disk,
        data_dir(&arguments.dir),
        arguments.data_log_dir.as_deref().map(data_dir),
        arguments.longest,
    )
    .map_err(|error| Failure::failed(error.to_string()))?;
    let mut page = Page::new(arguments.json);
    written(|| {
        page.object(&object(&report))?;
        text(&report, &mut page)?;
        page.end()
    })?;
    let wrong = report.findings.iter().filter(|f| f.severity == Severity::Error).count();
    if report.is_sound() {
        return Ok(());
    }
    let dir = arguments.dir.display();
    Err(Failure::failed(format!("{dir}: {wrong} thing(s) wrong. {SAFE}")))
}

/// `version-2` itself will do, too.
fn data_dir(dir: &Path) -> &Path {
    let is_inner = dir.ends_with("version-2") && !dir.join("version-2").exists();
    if is_inner { dir.parent().unwrap_or(dir) } else { dir }
}

fn severity(of: Severity) -> &'static str {
    match of {
        Severity::Note => "note",
        Severity::Repaired => "repaired",
        Severity::Error => "error",
    }
}

fn compression(of: Compression) -> &'static str {
    match of {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
    }
}

fn object(report: &Report) -> Value {
    let snapshot = |line: &SnapshotLine| {
        json!({
            "zxid": line.file.label.to_string(),
            "path": line.file.path,
            "bytes": line.bytes,
            "compression": compression(line.file.compression),
            "whole": line.content.is_some(),
            "body_bytes": line.content.map(|content| content.body_bytes),
        })
    };
    let log = |line: &LogLine| {
        json!({
            "path": line.path,
            "bytes": line.bytes,
            "records": line.records,
            "first": line.first.map(|zxid| zxid.to_string()),
            "last": line.last.map(|zxid| zxid.to_string()),
            "end": line.end,
        })
    };
    let findings = report.findings.iter().map(|finding| {
        json!({
            "severity": severity(finding.severity),
            "path": finding.path,
            "offset": finding.offset,
            "zxid": finding.zxid.map(|zxid| zxid.to_string()),
            "problem": finding.problem.to_string(),
        })
    });
    json!({
        "sound": report.is_sound(),
        "snapshot_dir": report.dirs.snapshots,
        "log_dir": report.dirs.logs,
        "in_use": report.holder.is_some(),
        "pid": report.holder.and_then(|holder| holder.pid),
        "accepted_epoch": report.accepted_epoch.map(|epoch| epoch.0),
        "current_epoch": report.current_epoch.map(|epoch| epoch.0),
        "snapshots": report.snapshots.iter().map(snapshot).collect::<Vec<_>>(),
        "logs": report.logs.iter().map(log).collect::<Vec<_>>(),
        "last": report.last.to_string(),
        "without_hole_from": report.floor.to_string(),
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn text(report: &Report, page: &mut Page) -> Result<(), Gone> {
    let paint = Paint::stdout();
    let epoch = |epoch: Option<quorate_tokio::core::zxid::Epoch>| {
        epoch.map_or("-".to_owned(), |epoch| epoch.to_string())
    };
    page.line(&format!("snapshots, epochs   {}", report.dirs.snapshots.display()))?;
    page.line(&format!("transaction logs    {}", report.dirs.logs.display()))?;
    if let Some(holder) = report.holder {
        let pid = holder.pid.map_or(String::new(), |pid| format!(" by process {pid}"));
        page.line(&format!("in use{pid}: the end of the last log may be in the making"))?;
    }
    page.line(&format!(
        "acceptedEpoch {}, currentEpoch {}\n",
        epoch(report.accepted_epoch),
        epoch(report.current_epoch)
    ))?;
    let head = format!("{:<24}{:>14}{:>12}  from         to", "file", "bytes", "records");
    page.line(&paint.strong(&head))?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for SnapshotLine { file, bytes, content } in report.snapshots.iter().rev() {
        let whole = if content.is_some() { "" } else { "  DAMAGED" };
        page.line(&format!("{:<24}{bytes:>14}{:>27}{}{whole}", name(&file.path), "", file.label))?;
    }
    for line in &report.logs {
        let zxid = |zxid: Option<Zxid>| zxid.map_or("-".to_owned(), |zxid| zxid.to_string());
        page.line(&format!(
            "{:<24}{:>14}{:>12}  {:<12} {}",
            name(&line.path),
            line.bytes,
            line.records,
            zxid(line.first),
            zxid(line.last),
        ))?;
    }
    page.line("")?;
    for finding in &report.findings {
        let mark = format!("{:<9}", severity(finding.severity));
        let mark = match finding.severity {
            Severity::Error => paint.alarm(&mark),
            Severity::Repaired | Severity::Note => paint.strong(&mark),
        };
        page.line(&format!("{mark} {finding}"))?;
    }
    let whole = format!("without a hole from {} to {}", report.floor, report.last);
    page.line(&if report.is_sound() {
        paint.well(&format!("sound: the history is {whole}"))
    } else {
        paint.alarm(&format!("not sound; the history is {whole}"))
    })
}
