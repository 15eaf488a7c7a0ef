//! Data directories that are on this machine: what they lie on, what is in them, and how fast their disk is.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use quorate_doctor::{Bench, ConfigFile, DataDir, Looks, Space, Stray};
use quorate_storage::Disk;
use quorate_storage::check::{Report, Severity, check_on};
use quorate_storage::record::TXN_BYTES_MAX;
use quorate_tokio::core::id::ServerId;

/// A data directory, and how it is read.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) id: Option<ServerId>,
    pub(super) dir: PathBuf,
    pub(super) log_dir: Option<PathBuf>,
    txn_bytes_max: usize,
}

/// What is in a directory.
pub(super) struct History {
    pub(super) report: Report,
    pub(super) strays: Vec<Stray>,
    pub(super) readable: Option<PathBuf>,
}

/// Those of the files that are this machine's, and those that were named. Of the others it is told that they are not
/// looked at.
pub(super) fn places(files: &[ConfigFile], named: Vec<PathBuf>, looks: &mut Looks) -> Vec<Place> {
    let mut places = Vec::new();
    for file in files {
        let Some(cfg) = file.cfg() else { continue };
        let dir = cfg.data_dir.clone();
        let is_another_ones = file.id.is_some() && !file.is_at_home;
        if is_another_ones || !dir.is_dir() {
            let because = "it is not on this machine".to_owned();
            looks.failed("data directory", file.id, dir.display().to_string(), because);
            continue;
        }
        let log_dir = cfg.data_log_dir.clone();
        places.push(Place { id: file.id, dir, log_dir, txn_bytes_max: cfg.txn_bytes });
    }
    for dir in named {
        let is_inner = dir.ends_with("version-2") && !dir.join("version-2").exists();
        let dir = if is_inner { dir.parent().unwrap_or(&dir).to_owned() } else { dir };
        if places.iter().any(|place| place.dir == dir) {
            continue;
        }
        let id = fs::read_to_string(dir.join("myid")).ok();
        let id = id.and_then(|id| id.trim().parse().ok()).map(ServerId);
        places.push(Place { id, dir, log_dir: None, txn_bytes_max: TXN_BYTES_MAX });
    }
    places
}

/// What a directory lies on.
pub(super) fn surface(place: &Place) -> DataDir {
    DataDir {
        id: place.id,
        dir: place.dir.clone(),
        log_dir: place.log_dir.clone(),
        space: space(&place.dir),
        log_space: place.log_dir.as_deref().and_then(space),
        history: None,
        strays: Vec::new(),
        readable: None,
        bench: None,
    }
}

fn space(dir: &Path) -> Option<Space> {
    let device = fs::metadata(dir).ok()?.dev();
    let all = rustix::fs::statvfs(dir).ok()?;
    let kind = rustix::fs::statfs(dir).ok()?.f_type;
    Some(Space {
        device,
        // The system's number of a type has no sign, whatever the type of the field is here.
        kind: u64::from_ne_bytes(kind.to_ne_bytes()) & 0xffff_ffff,
        size: all.f_blocks.saturating_mul(all.f_frsize),
        free: all.f_bavail.saturating_mul(all.f_frsize),
        files: all.f_files,
        files_free: all.f_favail,
    })
}

/// Reads all that is in it. While a server writes, the end of its log and a file that goes may look wrong: what is told
/// was so twice.
pub(super) fn history(place: &Place) -> Result<History, String> {
    if !place.dir.join("version-2").is_dir() {
        return Err("it has no version-2: no server has written there yet".to_owned());
    }
    let check = || {
        check_on(Disk, &place.dir, place.log_dir.as_deref(), place.txn_bytes_max)
            .map_err(|error| error.to_string())
    };
    let mut report = check()?;
    if report.findings.iter().any(|finding| finding.severity != Severity::Note) {
        let again = check()?;
        let key = |finding: &quorate_storage::check::Finding| {
            (finding.path.clone(), finding.problem.to_string())
        };
        let twice: BTreeSet<_> = again.findings.iter().map(key).collect();
        report.findings.retain(|finding| twice.contains(&key(finding)));
    }
    let inner = [Some(&place.dir), place.log_dir.as_ref()];
    let (mut strays, mut readable) = (Vec::new(), None);
    for dir in inner.into_iter().flatten().map(|dir| dir.join("version-2")) {
        look_at_files(&dir, &mut strays, &mut readable);
    }
    Ok(History { report, strays, readable })
}

fn look_at_files(dir: &Path, strays: &mut Vec<Stray>, readable: &mut Option<PathBuf>) {
    let Ok(own) = fs::metadata(dir) else { return };
    let is_open = own.mode() & 0o001 != 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(of_file) = entry.metadata() else { continue };
        if of_file.uid() != own.uid() {
            let (owner, expected) = (of_file.uid(), own.uid());
            strays.push(Stray { file: entry.path(), owner, expected });
        }
        if is_open && of_file.is_file() && of_file.mode() & 0o004 != 0 && readable.is_none() {
            *readable = Some(entry.path());
        }
    }
}

/// Writes as a log does: 200 times 4 KiB, each made safe, in a file that goes when its end is reached.
pub(super) fn bench(place: &Place) -> Result<Bench, String> {
    let dir = place.log_dir.as_ref().unwrap_or(&place.dir);
    let measure = || -> io::Result<Vec<f64>> {
        let mut file = tempfile::tempfile_in(dir)?;
        let page = [0x5a; 4096];
        let mut took = Vec::new();
        for _ in 0..WRITES {
            let begun = Instant::now();
            file.write_all(&page)?;
            file.sync_data()?;
            took.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        took.sort_by(f64::total_cmp);
        Ok(took)
    };
    let took = measure().map_err(|error| error.to_string())?;
    let of_hundred = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or(0.0);
    Ok(Bench {
        writes: WRITES,
        p50: of_hundred(50),
        p99: of_hundred(99),
        max: took.last().copied().unwrap_or(0.0),
    })
}

const WRITES: u32 = 200;
