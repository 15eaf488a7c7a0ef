//! Fault injection: takes an acknowledged write out of one server's log, to see that the audit finds it missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quorate_storage::check::check;
use quorate_storage::error::FileError;
use quorate_storage::record::{self, FILE_HEADER, Found, PREFIX_BYTES, TXN_BYTES_MAX};
use quorate_tokio::core::zxid::Zxid;
use thiserror::Error;

/// Why no loss could be injected.
#[derive(Debug, Error)]
pub(super) enum InjectError {
    #[error("nothing was acknowledged")]
    NothingAcknowledged,
    #[error("no server has a record of {0}")]
    NoRecord(Zxid),
    #[error(transparent)]
    Directory(#[from] FileError),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Takes the record of one acknowledged write out of one server's log, as if it had never been written; of the last
/// server whose log has it: one that was brought up with a snapshot has not. Returns which write, and of which server.
pub(super) fn take_write_out(
    servers: &[(i64, PathBuf)],
    acknowledged: &[(u64, i64)],
) -> Result<(u64, i64), InjectError> {
    let write = acknowledged.get(acknowledged.len() / 2);
    let (number, zxid) = write.ok_or(InjectError::NothingAcknowledged)?;
    for (server, dir) in servers.iter().rev() {
        if take_record_out(dir, Zxid(*zxid))? {
            return Ok((*number, *server));
        }
    }
    Err(InjectError::NoRecord(Zxid(*zxid)))
}

/// Takes a record out of the log in `dir`. Returns whether it was there.
fn take_record_out(dir: &Path, zxid: Zxid) -> Result<bool, InjectError> {
    let report = check(dir, None)?;
    for line in &report.logs {
        let cannot = |source| InjectError::File { path: line.path.clone(), source };
        let mut bytes = fs::read(&line.path).map_err(cannot)?;
        let mut offset = FILE_HEADER.len();
        while let Found::Record(found) = record::decode(&bytes[offset..], TXN_BYTES_MAX) {
            let end = offset + PREFIX_BYTES + found.txn_bytes + 1;
            if found.zxid == zxid {
                bytes.drain(offset..end);
                fs::write(&line.path, bytes).map_err(cannot)?;
                return Ok(true);
            }
            offset = end;
        }
    }
    Ok(false)
}
