//! `recovered.json` in a data directory: that its ensemble was recovered without a quorum, until an operator has
//! acknowledged it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::durable::{WriteError, at, replace, sync_dir};

/// What was done to a data directory, by whom, and from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Whether it was done to its end.
    pub complete: bool,
    /// When it was begun, in milliseconds since 1970.
    pub time_ms: i64,
    /// Who did it, and on which machine.
    pub by: String,
    /// With which version of quorate.
    pub version: String,
    /// The server whose directory it is.
    pub id: i64,
    /// The servers that go on, ascending.
    pub kept: Vec<i64>,
    /// The servers that were declared lost for good, ascending.
    pub lost: Vec<i64>,
    /// What both epoch files hold since.
    pub epoch: i64,
    /// What `acceptedEpoch` was.
    pub accepted_epoch_before: i64,
    /// What `currentEpoch` was.
    pub current_epoch_before: i64,
    /// The last transaction, as `0x200000002`: whatever came after it is lost.
    pub zxid: String,
    /// Where the directory as it was is kept.
    pub copy: PathBuf,
    /// The membership since, line by line.
    pub membership: Vec<String>,
}

impl Recovered {
    /// Its name in the `dataDir`.
    pub const NAME: &str = "recovered.json";
    /// What it is called once it is acknowledged.
    pub const ACKNOWLEDGED: &str = "recovered.acknowledged.json";

    /// Whether it comes from the same decision as another: the same servers go on, the same are lost.
    pub fn is_of(&self, kept: &[i64], lost: &[i64]) -> bool {
        self.kept == kept && self.lost == lost
    }
}

/// What stands in a data directory; none if there is no such file.
///
/// # Errors
///
/// A [`RecoveredError`] if there is one that cannot be read.
pub fn read(data_dir: &Path) -> Result<Option<Recovered>, RecoveredError> {
    let path = data_dir.join(Recovered::NAME);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(at("read", &path))?,
    };
    let read = serde_json::from_slice(&text);
    read.map(Some).map_err(|source| RecoveredError::Garbled { path, source })
}

/// Writes it, durably, in place of one that is there.
pub(crate) fn write(data_dir: &Path, recovered: &Recovered) -> Result<(), RecoveredError> {
    let path = data_dir.join(Recovered::NAME);
    let mut text = serde_json::to_vec_pretty(recovered)
        .map_err(|source| RecoveredError::Garbled { path: path.clone(), source })?;
    text.push(b'\n');
    Ok(replace(&path, &text)?)
}

/// Keeps it under another name, so that servers say no more of it. Tells what was acknowledged; none if there is nothing.
///
/// # Errors
///
/// A [`RecoveredError`]; an interrupted recovery cannot be acknowledged, only finished.
pub fn acknowledge(data_dir: &Path) -> Result<Option<Recovered>, RecoveredError> {
    let Some(recovered) = read(data_dir)? else { return Ok(None) };
    if !recovered.complete {
        return Err(RecoveredError::Incomplete { dir: data_dir.to_owned() });
    }
    let from = data_dir.join(Recovered::NAME);
    fs::rename(&from, data_dir.join(Recovered::ACKNOWLEDGED)).map_err(at("rename", &from))?;
    sync_dir(data_dir)?;
    Ok(Some(recovered))
}

/// Why it is not known whether a directory was recovered, or that cannot be acknowledged.
#[derive(Debug, Error)]
pub enum RecoveredError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] WriteError),
    /// The file is not what it was.
    #[error("{}: {source}", path.display())]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The recovery was not finished.
    #[error("{}: its recovery was interrupted; finish it with the same `quorate recover run`", dir.display())]
    Incomplete {
        /// The data directory.
        dir: PathBuf,
    },
}
