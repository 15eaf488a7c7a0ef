//! The data directory of a server, if it is on this machine: whether ours can start from it.

use quorate_doctor::ConfigFile;
use quorate_storage::Disk;
use quorate_storage::check::{Report, Severity, check_on};
use quorate_storage::snapshot::Compression;

use super::finding::{Finding, Level};

/// What is found in the directories of a file.
pub(super) fn findings(file: &ConfigFile) -> Vec<Finding> {
    let Some(cfg) = file.cfg() else { return Vec::new() };
    let dir = &cfg.data_dir;
    // That of another server, perhaps, or of none.
    if !file.is_at_home || !dir.join("version-2").is_dir() {
        let what = format!("{} was not looked at: it is not on this machine", dir.display());
        let remedy = format!("on its machine: `quorate log check {}`", dir.display());
        let notice = Finding::new(Level::Notice, what, remedy);
        return vec![notice.in_file(&file.path).of(file.id)];
    }
    let report = match check_on(Disk, dir, cfg.data_log_dir.as_deref(), cfg.txn_bytes) {
        Ok(report) => report,
        Err(error) => {
            let remedy = "run this as the user of the server";
            let unread = Finding::new(Level::Endangers, error.to_string(), remedy);
            return vec![unread.in_file(dir).of(file.id)];
        }
    };
    let found = damages(&report).chain(compressed(&report)).chain(in_use(&report));
    found.map(|finding| finding.of(file.id)).collect()
}

fn damages(report: &Report) -> impl Iterator<Item = Finding> {
    let wrong = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    wrong.map(|finding| {
        let remedy = "see it with `quorate log check`; if the others are whole, empty this server's version-2 and let it \
                      take everything from them, before any is replaced";
        let what = finding.problem.to_string();
        Finding::new(Level::Forbids, what, remedy).in_file(&finding.path)
    })
}

/// Those that are whole; the others are damages.
fn compressed(report: &Report) -> Option<Finding> {
    let newest = report.snapshots.first()?;
    if newest.file.compression == Compression::None || newest.content.is_none() {
        return None;
    }
    let what = "the newest snapshot is compressed; ours reads it, and writes its own uncompressed";
    let remedy = "see to it that there is room for it, three times over";
    Some(Finding::new(Level::Notice, what, remedy).in_file(&newest.file.path))
}

fn in_use(report: &Report) -> Option<Finding> {
    report.holder.as_ref()?;
    let what = "a server of ours has it open";
    let remedy = "stop that one before Java is started on the directory";
    Some(Finding::new(Level::Notice, what, remedy).in_file(&report.dirs.snapshots))
}
