//! What an error of the disk means: the server waits for the disk, or ends.
//!
//! ```text
//!   no room (ENOSPC, EDQUOT) ──► wait: until room is made          EIO on a file ──► wait; on the same file again ──► end
//!   any other refusal ─────────► wait: a file system may come back, and is compared with what was durable
//! ```

use std::io;
use std::path::{Path, PathBuf};

use quorate_storage::LogError;

use crate::error::{DiskFault, ServerError, StartError};

/// The files that were refused with EIO.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<PathBuf>);

impl Faults {
    /// What is to be waited for because of a failed write; none if waiting is of no use.
    pub(crate) fn of_write(&mut self, error: &ServerError) -> Option<DiskFault> {
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else is the disk's")]
        match error {
            ServerError::Disk { source } => self.of_log(source),
            ServerError::DynamicConfig { path, source } => self.judge(path, source),
            _ => None,
        }
    }

    /// The same, because the directory could not be opened again.
    pub(crate) fn of_opening(&mut self, error: &StartError) -> Option<DiskFault> {
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else is the disk's")]
        match error {
            StartError::Log(error) => self.of_log(error),
            StartError::Membership { path, source } => self.judge(path, source),
            StartError::Thread(_) => Some(DiskFault::Failing),
            _ => None,
        }
    }

    fn of_log(&mut self, error: &LogError) -> Option<DiskFault> {
        let refused = error.refused()?;
        self.judge(refused.path, refused.source)
    }

    fn judge(&mut self, path: &Path, error: &io::Error) -> Option<DiskFault> {
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Some(DiskFault::Full);
        }
        if is_eio(error) {
            if self.0.len() >= FILES_MAX || self.0.iter().any(|known| known == path) {
                // What no opening anew has cured.
                return None;
            }
            self.0.push(path.to_owned());
        }
        Some(DiskFault::Failing)
    }
}

/// Whether the device has failed; it has no kind of its own.
fn is_eio(error: &io::Error) -> bool {
    cfg!(unix) && error.raw_os_error() == Some(EIO)
}

/// The same on every Unix.
const EIO: i32 = 5;
/// So many files refused are a disk to be given up.
const FILES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quorate_storage::error::FileError;

    use super::*;

    fn refused(path: &str, source: io::Error) -> ServerError {
        let error = FileError { action: "sync", path: path.into(), source };
        ServerError::Disk { source: Arc::new(LogError::File(error)) }
    }

    #[test]
    fn a_full_disk_is_waited_for_however_often_and_a_broken_file_once() {
        let mut faults = Faults::default();
        let eio = || io::Error::from_raw_os_error(EIO);
        for _ in 0..100 {
            let full = refused("log.1", io::ErrorKind::StorageFull.into());
            assert_eq!(faults.of_write(&full), Some(DiskFault::Full));
            let gone = refused("log.1", io::ErrorKind::NotFound.into());
            assert_eq!(faults.of_write(&gone), Some(DiskFault::Failing));
        }
        for path in ["log.1", "log.2"] {
            assert_eq!(faults.of_write(&refused(path, eio())), Some(DiskFault::Failing));
        }
        assert_eq!(faults.of_write(&refused("log.1", eio())), None);
        let full = StartError::Log(LogError::File(FileError {
            action: "write to",
            path: "quorate.probe".into(),
            source: io::ErrorKind::QuotaExceeded.into(),
        }));
        assert_eq!(faults.of_opening(&full), Some(DiskFault::Full));
        let lost = LogError::Failed { dir: "version-2".into() };
        assert_eq!(faults.of_opening(&lost.into()), None, "no refusal of the system's");
    }
}
