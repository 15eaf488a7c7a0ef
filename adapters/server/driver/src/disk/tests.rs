//! Disks and receptions for the tests of what uses them.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use quorate_application::{Restore, RestoreError};
use quorate_core::zxid::Zxid;
use quorate_storage::segments::Roll;
use quorate_storage::snapshot::{Parts, SnapshotWriter};
use quorate_storage::{Log, OpenOptions};
use tempfile::TempDir;

use crate::config::MembershipFiles;
use crate::disk::handle::Disk;
use crate::disk::incoming::{Intake, Reception, Wanted, receive};
use crate::disk::thread::Retain;
use crate::disk_floor::DiskFloor;
use crate::task_group::KeepAlive;

/// A disk with an empty history.
pub(crate) fn disk() -> (Disk, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(dir.path(), OpenOptions::default()).unwrap();
    let path = log.dirs().snapshots.clone();
    let mut first = SnapshotWriter::take(quorate_storage::Disk, &path, Zxid::ZERO).unwrap();
    first.write_all(&[0; 8]).unwrap();
    log.begin_with(first.finish(Parts::default()).unwrap()).unwrap();
    let retain = Retain { snapshots: 3, roll: Roll::default(), floor: DiskFloor::Off };
    let kept = MembershipFiles::new(dir.path(), None, None);
    (Disk::start(log, kept, retain, std::time::Duration::MAX, Arc::default(), ()).unwrap(), dir)
}

/// A state is its length.
#[derive(Default)]
struct Length(Vec<u8>);

impl Restore for Length {
    type State = usize;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<usize>, RestoreError> {
        while let Some((first, rest)) = bytes.split_first() {
            self.0.push(*first);
            *bytes = rest;
            let Some((length, body)) = self.0.split_first_chunk() else { continue };
            let length = usize::from_be_bytes(*length);
            if body.len() == length {
                let whole = if body.contains(&1) { Err("a one".into()) } else { Ok(length) };
                return whole.map(Some);
            }
        }
        Ok(None)
    }
}

/// Begins to receive a snapshot whose body is its length as eight bytes, and so many more.
pub(crate) fn reception(label: Zxid, disk: &Disk) -> (Intake, Arc<Mutex<Vec<usize>>>) {
    let restored = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&restored);
    let reception = Reception {
        label,
        disk: disk.handle(),
        wanted: Wanted::new(),
        turn: Arc::default(),
        restore: Length::default(),
        membership: |_| None,
        deposit: Box::new(move |length| place.lock().unwrap().push(length)),
        keep_alive: KeepAlive::idle(),
    };
    (receive(reception).unwrap(), restored)
}
