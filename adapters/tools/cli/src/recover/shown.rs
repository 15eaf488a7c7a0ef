//! What is shown of the survivors on the command line: directories, what other machines have said, election ports.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_rescue::source::Source;
use quorate_rescue::survivor::Survivor;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::zoo_cfg::{JvmFlags, ZooCfg};
use serde_json::Value;

use crate::address::address;
use crate::failure::Failure;

/// One argument.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    /// A data directory.
    Directory(Source),
    /// A file with what `recover survey --json` has printed elsewhere.
    File(PathBuf),
    /// An election port.
    Port(HostPort),
}

impl Shown {
    /// A directory, behind a comma its dataLogDir; else a file, which is a zoo.cfg that names them unless it has JSON; else an
    /// address.
    pub(super) fn parse(text: &str, longest: usize) -> Result<Self, Failure> {
        let (dir, logs) = match text.split_once(',') {
            Some((dir, logs)) => (dir, Some(logs)),
            None => (text, None),
        };
        if Path::new(dir).is_dir() {
            return Ok(Self::Directory(Source {
                data_dir: dir.into(),
                data_log_dir: logs.map(PathBuf::from),
                txn_bytes_max: longest,
            }));
        }
        if Path::new(text).is_file() {
            return match is_survey(Path::new(text)) {
                true => Ok(Self::File(text.into())),
                false => of_zoo_cfg(Path::new(text), longest),
            };
        }
        address(text).map(Self::Port).map_err(|_| {
            let what = "is no directory, no file, no zoo.cfg, and no HOST:PORT of an election port";
            Failure::usage(format!("{text} {what}"))
        })
    }
}

/// Whether a file has what `recover survey --json` prints. One that cannot be read is told by who reads it.
fn is_survey(file: &Path) -> bool {
    fs::read_to_string(file).map_or(true, |text| text.trim_start().starts_with('{'))
}

fn of_zoo_cfg(file: &Path, longest: usize) -> Result<Shown, Failure> {
    let cfg = ZooCfg::read_with(file, &JvmFlags::of_environment())
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Shown::Directory(source_of(&cfg, longest)))
}

/// The directories that a zoo.cfg names.
pub(super) fn source_of(cfg: &ZooCfg, longest: usize) -> Source {
    Source {
        data_dir: cfg.data_dir.clone(),
        data_log_dir: cfg.data_log_dir.clone(),
        txn_bytes_max: cfg.txn_bytes.max(longest),
    }
}

/// The survivors in a file of other machines' surveys.
pub(super) fn read(file: &Path) -> Result<Vec<Survivor>, Failure> {
    let wrong = |why: String| Failure::failed(format!("{}: {why}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let mut survivors = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if value["event"] == "survivor" {
            let read = serde_json::from_value(value);
            survivors.push(read.map_err(|error| wrong(error.to_string()))?);
        }
    }
    if survivors.is_empty() {
        return Err(wrong("there is no survivor in it".to_owned()));
    }
    Ok(survivors)
}
