//! Writes a snapshot of our own state to disk, on a thread of its own.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use quorate_application::Snapshot;
use quorate_core::zxid::Zxid;
use quorate_leadership::boot_time;
use quorate_storage::snapshot::{Digest, Parts, SnapshotWriter, StagedSnapshot};

use crate::disk::error::SnapshotFault;
use crate::disk::handle::DiskHandle;
use crate::measures::{Counted, Took};
use crate::task_group::KeepAlive;
use crate::threads::{APPLICATION_STACK, give_way};

/// Tells threads that write files to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes a snapshot of our own state to disk, on a thread, and then calls `done`, whatever came of it.
pub(crate) fn save(
    label: Zxid,
    snapshot: impl Snapshot,
    disk: DiskHandle,
    stop: Stop,
    keep_alive: KeepAlive,
    done: impl FnOnce(Result<(), SnapshotFault>) + Send + 'static,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("quorate-save".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        give_way();
        let begun = boot_time::now();
        let written = catch_unwind(AssertUnwindSafe(|| write_file(label, snapshot, &disk, &stop)));
        match written.unwrap_or_else(|_| Err(SnapshotFault::Panicked)) {
            Ok(staged) => {
                let measures = Arc::clone(disk.measures());
                disk.publish(staged, move |published| {
                    match &published {
                        Ok(()) => measures.took(Took::Snapshot, boot_time::since(begun)),
                        Err(_) => measures.count(Counted::FailedSnapshots, 1),
                    }
                    done(published.map_err(SnapshotFault::from));
                });
            }
            Err(error) => {
                disk.measures().count(Counted::FailedSnapshots, 1);
                done(Err(error));
            }
        }
        drop(keep_alive);
    })?;
    Ok(())
}

fn write_file(
    label: Zxid,
    snapshot: impl Snapshot,
    disk: &DiskHandle,
    stop: &Stop,
) -> Result<StagedSnapshot<quorate_storage::Disk>, SnapshotFault> {
    let digest = snapshot.digest().map(|digest| Digest {
        zxid: label,
        version: DIGEST_VERSION,
        digest: i64::from_be_bytes(digest.to_be_bytes()),
    });
    let mut file = SnapshotWriter::take(quorate_storage::Disk, &disk.dirs().snapshots, label)?;
    if let Err(error) = write_state(snapshot, &mut Stoppable { to: &mut file, stop }) {
        // What stays behind is removed by the next start.
        drop(file.discard());
        return Err(error.into());
    }
    Ok(file.finish(Parts { digest, last_zxid: None })?)
}

/// A file that takes nothing more once it is told to stop.
struct Stoppable<'a, W> {
    to: &'a mut W,
    stop: &'a Stop,
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.0.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the server ends"));
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a state to a file.
pub(crate) fn write_state(mut snapshot: impl Snapshot, to: &mut impl Write) -> io::Result<()> {
    let (mut piece, mut more) = (BytesMut::with_capacity(PIECE_BYTES), true);
    while more {
        more = snapshot.next(&mut piece).map_err(io::Error::other)?;
        to.write_all(&piece)?;
        piece.clear();
    }
    Ok(())
}

/// How much of a state is written at a time.
const PIECE_BYTES: usize = 120 << 10;
/// The version of ZooKeeper's digest.
const DIGEST_VERSION: i32 = 2;
