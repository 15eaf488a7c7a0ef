//! What goes to the storage thread, and what it has done.
//!
//! Jobs wait in a vector that the thread takes as a whole; progress is a cell that the loop reads. Neither side waits
//! for the other.

use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use async_channel::Sender;
use quorate_core::id::Ticket;
use quorate_core::input::Located;
use quorate_core::output::Write;
use quorate_core::zxid::Zxid;
use quorate_storage::install::Install;
use quorate_storage::reader::{ReadError, Reader};
use quorate_storage::segments::Dirs;
use quorate_storage::snapshot::{SnapshotFile, StagedSnapshot};
use quorate_storage::{LogError, Remains};

use crate::error::ServerError;
use crate::lock::locked;
use crate::measures::Measures;

/// What goes to and fro.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    pub(super) progress: Mutex<Progress>,
    pub(super) measures: Arc<Measures>,
    pub(super) dirs: Dirs,
    pub(super) txn_bytes_max: usize,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) jobs: Vec<Job>,
    /// Nothing more is taken.
    pub(super) closed: bool,
}

/// What the thread has done since the loop looked last. A cell, not a queue: the thread must never
/// wait for the loop.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) durable: Option<Ticket>,
    /// There is little room left, or enough again.
    pub(super) low: Option<bool>,
    pub(super) failed: Option<ServerError>,
    /// What was durable then.
    pub(super) remains: Option<Remains>,
    /// There is no thread any more.
    pub(super) ended: bool,
    /// Whom to wake.
    pub(super) waker: Option<Waker>,
}

/// Something for the thread to do.
pub(super) enum Job {
    /// And when it was handed over.
    Write(Ticket, Write, Instant),
    Locate(Zxid, Sender<Located>),
    Read {
        after: Zxid,
        through: Zxid,
        reply: Sender<Result<Reader, ReadError>>,
    },
    Newest(Sender<Option<SnapshotFile>>),
    Publish(Box<(StagedSnapshot<quorate_storage::Disk>, Done)>),
    Stage(Box<Install<quorate_storage::Disk>>),
    DiscardStaged,
}

/// Called on the storage thread when a snapshot is published, or is not.
pub(super) type Done = Box<dyn FnOnce(Result<(), Arc<LogError>>) + Send>;

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

impl Shared {
    /// Changes the progress, and wakes who waits for it.
    pub(super) fn tell(&self, change: impl FnOnce(&mut Progress)) {
        let waker = {
            let mut progress = locked(&self.progress);
            change(&mut progress);
            progress.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// However the thread ends: no caller waits for it any more.
pub(super) struct Ending(pub(super) Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let jobs = {
            let mut queue = locked(&self.0.queue);
            queue.closed = true;
            std::mem::take(&mut queue.jobs)
        };
        drop(jobs);
        self.0.tell(|progress| progress.ended = true);
    }
}
