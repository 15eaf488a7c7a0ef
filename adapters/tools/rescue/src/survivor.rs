//! A data directory that is left of an ensemble: how new its history is, and whether it is sound.

use quorate_core::zxid::{Epoch, Zxid};
use quorate_storage::Disk;
use quorate_storage::check::{Severity, check_on};
use quorate_storage::error::FileError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::history;
use crate::manifest::parse_zxid;
use crate::recovered::{self, Recovered, RecoveredError};
use crate::source::Source;

/// What is known of one survivor. As JSON it goes from the machine that has the directory to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// The server.
    pub id: i64,
    /// Its data directory, for people.
    pub directory: String,
    /// Its promise, as the next start would have it.
    pub accepted_epoch: i64,
    /// The epoch whose leader's history it holds, likewise.
    pub current_epoch: i64,
    /// The last transaction, as `0x200000002`.
    pub zxid: String,
    /// What is wrong with the directory; a next start refuses it, or acknowledged transactions may be missing.
    pub problems: Vec<String>,
    /// Whether a server has it open.
    pub in_use: bool,
    /// The version of the newest change of the membership in its history; 0 if there was none.
    pub membership: i64,
    /// That it was recovered already, and not acknowledged.
    #[serde(default)]
    pub recovered: Option<Recovered>,
}

/// How new a history is: of two, the one with the later epoch is newer, then the one with the later transaction, as in
/// an election.
pub type Age = (Epoch, Zxid);

impl Survivor {
    /// Reads a data directory through, without changing it.
    ///
    /// # Errors
    ///
    /// A [`LookError`] if it cannot be read, or is not known to be a server's. What is wrong in it is no error.
    pub fn look(source: &Source) -> Result<Self, LookError> {
        let dir = &source.data_dir;
        let id = source.id().ok_or_else(|| LookError::NoId { dir: dir.display().to_string() })?;
        let report = check_on(Disk, dir, source.data_log_dir.as_deref(), source.txn_bytes_max)?;
        let wrong = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let mut problems: Vec<_> = wrong.map(ToString::to_string).collect();
        let membership = match history::load(&Disk, &source.dirs(), source.txn_bytes_max) {
            Ok(history) => history.state.membership,
            Err(error) => {
                problems.push(error.to_string());
                0
            }
        };
        // As a start completes them: what is missing is the last transaction's, and one below that was interrupted.
        let last = report.last;
        let accepted = report.accepted_epoch.unwrap_or(last.epoch());
        let current = report.current_epoch.unwrap_or(last.epoch()).max(last.epoch());
        Ok(Self {
            id,
            directory: dir.display().to_string(),
            accepted_epoch: accepted.0,
            current_epoch: current.0,
            zxid: last.to_string(),
            problems,
            in_use: report.holder.is_some(),
            membership,
            recovered: recovered::read(dir)?,
        })
    }

    /// How new its history is; `before` it was recovered by the same decision.
    pub fn age(&self, before: Option<&Recovered>) -> Age {
        let current = before.map_or(self.current_epoch, |before| before.current_epoch_before);
        (Epoch(current), self.last())
    }

    /// The last transaction.
    pub fn last(&self) -> Zxid {
        parse_zxid(&self.zxid).unwrap_or(Zxid::ZERO)
    }
}

/// Why nothing is known of a directory.
#[derive(Debug, Error)]
pub enum LookError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It does not say which server's it is.
    #[error("{dir}: there is no myid, so it is not known which server's directory it is")]
    NoId {
        /// The directory.
        dir: String,
    },
    /// What it says of an earlier recovery cannot be read.
    #[error(transparent)]
    Recovered(#[from] RecoveredError),
}
