//! Restoring: the state of a snapshot on disk, at start.

use std::io::BufRead;

use quorate_application::Application;
use quorate_storage::snapshot::{Parts, SnapshotFile, SnapshotReader};

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
            let Parts { digest, last_zxid } = reader.finish()?;
            // ZooKeeper's servers write there what they had applied by the end of the state.
            let told = digest.map(|digest| digest.zxid).max(last_zxid);
            if told != Some(snapshot.label) {
                A::staged_whole_at(&mut state, told.filter(|zxid| *zxid > snapshot.label));
            }
            return Ok(state);
        }
    }
}
