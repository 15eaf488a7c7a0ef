//! Restoring: the state of a snapshot on disk, at start.

use std::io::BufRead;

use quorate_application::Application;
use quorate_storage::snapshot::{SnapshotFile, SnapshotReader};

use crate::disk::{self as stream, SnapshotFault};

/// Restores a snapshot on disk.
pub(crate) fn restore<A: Application>(snapshot: &SnapshotFile) -> Result<A::Staged, SnapshotFault> {
    let mut reader = SnapshotReader::open(quorate_storage::Disk, snapshot)?;
    let mut restore = A::restore(snapshot.label);
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Err(SnapshotFault::Ended);
        }
        let mut rest = bytes;
        let whole = stream::push(&mut restore, &mut rest)?;
        let taken = bytes.len() - rest.len();
        reader.consume(taken);
        if let Some(mut state) = whole {
            let digest = reader.finish()?.digest;
            if let Some(digest) = digest.filter(|digest| digest.zxid > snapshot.label) {
                A::staged_whole_at(&mut state, digest.zxid);
            }
            return Ok(state);
        }
    }
}
