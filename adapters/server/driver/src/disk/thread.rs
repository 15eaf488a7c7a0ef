//! The one thread that writes.
//!
//! ```text
//!   loop ──── write ────►┐                       ┌──► appends ──► one fsync ──┐
//!   links ── locate, … ─►│ queue ── take all ──► │                            ├──► last durable ticket
//!   application ─ publish►┘                      └──► each other write ───────┘
//! ```
//!
//! It owns the data directory and takes what has gathered, in order. Transactions that stand together
//! are synced together: while one batch is on its way to the disk, the next one gathers, so the slower
//! the disk, the larger the batches. Any other write waits until the transactions before it are
//! durable. What is wanted from the log (where a learner stands, a reader, the newest snapshot) goes the
//! same way, so it sees everything written before. What takes long and no caller waits for is done between
//! batches, a little at a time: reading old log files for a learner, removing files,
//! and telling on disk where the last batch ended, once none has come for a second.
//!
//! No caller ever waits to hand something over; how much can be under way is bounded by the core. A disk
//! that is slow or hangs holds up what waits for it, and nothing else. A disk that fails ends the
//! thread: what a crash would leave is not known, but for what was synced before.
//!
//! In the Java code: `SyncRequestProcessor`. What it does not do: decide what has to wait for the disk.
//! That is the core's.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

use async_channel::Sender;
use quorate_core::generation_message::GrantedVote;
use quorate_core::id::Ticket;
use quorate_core::input::{Located, Place};
use quorate_core::output::Write;
use quorate_core::zxid::Zxid;
use quorate_leadership::boot_time;
use quorate_storage::install::Memberships;
use quorate_storage::segments::{Locating, Roll};
use quorate_storage::snapshot::{SnapshotError, SnapshotFile, StagedSnapshot};
use quorate_storage::{Log, LogError};

use crate::config::MembershipFiles;
use crate::disk::floor::{Room, Turn};
use crate::disk::queue::{Done, Ending, Job, Shared};
use crate::disk_floor::DiskFloor;
use crate::error::ServerError;
use crate::lock::locked;
use crate::measures::{Counted, Measures, Took, millis};
use crate::threads::THREAD_STACK;

/// How much is kept of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retain {
    /// How many snapshots (`autopurge.snapRetainCount`), three at least, with the log that each needs.
    pub(crate) snapshots: usize,
    /// How long a log file becomes at most; each becomes between half as long and so long, since an
    /// ensemble's servers should not begin new ones at the same time.
    pub(crate) roll: Roll,
    /// How much room is to be left beside it while this server leads.
    pub(crate) floor: DiskFloor,
}

/// What the thread owns.
pub(super) struct Storage {
    log: Log,
    kept: MembershipFiles,
    retain: Retain,
    room: Room,
    /// From when on a sync is worth a warning.
    slow: Duration,
    unsynced: Unsynced,
    /// Who wants to know where something stands, and has to wait until old files have been read.
    searches: VecDeque<(Zxid, Sender<Located>)>,
    /// There may be files to remove.
    purging: bool,
    /// When the last batch was made durable.
    synced: Instant,
    /// When transactions were taken from the queue last.
    taken: Instant,
}

/// What was written and is not durable.
#[derive(Debug, Default)]
struct Unsynced {
    last: Option<Ticket>,
    bytes: usize,
    txns: usize,
    /// When each write among it was handed over.
    since: Vec<Instant>,
}

impl Storage {
    pub(super) fn new(log: Log, kept: MembershipFiles, retain: Retain, slow: Duration) -> Self {
        let mut storage = Self {
            log,
            kept,
            room: Room::new(retain.floor),
            retain,
            slow,
            unsynced: Unsynced::default(),
            searches: VecDeque::new(),
            purging: false,
            synced: boot_time::now(),
            taken: boot_time::now(),
        };
        storage.new_roll();
        storage
    }

    /// Serves the queue on a thread, until that is closed or the disk fails; keeps `keep_alive` until the log is closed and its
    /// lock released.
    pub(super) fn start(
        mut self,
        ending: Ending,
        keep_alive: impl Send + 'static,
    ) -> io::Result<Thread> {
        let thread = std::thread::Builder::new().name("quorate-disk".to_owned());
        let thread = thread.stack_size(THREAD_STACK).spawn(move || {
            let served = match self.serve(&ending.0) {
                Ok(()) => self.log.close().map_err(failure),
                Err(error) => {
                    let remains = self.log.remains();
                    // The one that hears of it finds the directory unlocked.
                    drop(self);
                    ending.0.measures.disk_works(false);
                    locked(&ending.0.progress).remains = Some(remains);
                    Err(error)
                }
            };
            if let Err(error) = served {
                ending.0.tell(|progress| progress.failed = Some(error));
            }
            drop(ending);
            drop(keep_alive);
        })?;
        Ok(thread.thread().clone())
    }

    fn serve(&mut self, shared: &Shared) -> Result<(), ServerError> {
        let mut jobs = Vec::new();
        // What another thread found before the disk was opened again.
        shared.measures.disk_gets_low(false);
        loop {
            let closed = {
                let mut queue = locked(&shared.queue);
                std::mem::swap(&mut queue.jobs, &mut jobs);
                queue.closed
            };
            let idle = jobs.is_empty();
            if idle && closed {
                return Ok(());
            }
            shared.measures.disk_works(true);
            self.take(&jobs, &shared.measures);
            for job in jobs.drain(..) {
                self.perform(job, shared)?;
            }
            self.flush(shared)?;
            self.look_at_room(shared);
            shared.measures.disk_works(false);
            let chores = self.chore().map_err(failure)?;
            if idle && !chores {
                self.rest()?;
            }
        }
    }

    /// Measures what waited for the thread.
    fn take(&mut self, jobs: &[Job], measures: &Measures) {
        let txns = |job: &Job| {
            if let Job::Write(_, Write::Append(txns), _) = job { txns.len() } else { 0 }
        };
        let waiting = jobs.iter().map(txns).sum();
        if waiting > 0 {
            self.taken = boot_time::now();
            measures.count(Counted::Logged, waiting);
            measures.saw_at(self.taken, Took::DiskQueue, waiting as u64);
        }
    }

    /// Waits for something to do. Where the last batch ends is told on disk with the next one, or here, if
    /// none comes for a while.
    fn rest(&mut self) -> Result<(), ServerError> {
        let look = self.room.due();
        let mark = self.log.is_unmarked();
        let mark = mark.then(|| MARK_AFTER.saturating_sub(boot_time::since(self.synced)));
        if mark.is_some_and(|wait| wait.is_zero()) {
            return self.log.mark().map_err(failure);
        }
        match mark.into_iter().chain(look).min() {
            Some(wait) => std::thread::park_timeout(wait),
            None => std::thread::park(),
        }
        Ok(())
    }

    /// Looks now and then how much room is left, and says so to the loop where that changes what it means.
    fn look_at_room(&mut self, shared: &Shared) {
        let Self { room, log, .. } = self;
        let bytes = |file: &SnapshotFile| std::fs::metadata(&file.path).map_or(0, |of| of.len());
        let dirs = [&shared.dirs.snapshots, &shared.dirs.logs].map(|dir| &**dir);
        let turn = room.look(dirs, || log.snapshot().map_or(0, bytes));
        let Some(Turn { low, free, floor }) = turn else { return };
        shared.measures.disk_gets_low(low);
        shared.tell(|progress| progress.low = Some(low));
        if low {
            tracing::warn!(
                event = "disk.low", free, floor, dir = %dirs[0].display(),
                "there is little room left on the disk: another server should lead"
            );
        } else {
            tracing::info!(event = "disk.room", free, floor, "there is enough room again");
        }
    }

    fn perform(&mut self, job: Job, shared: &Shared) -> Result<(), ServerError> {
        match job {
            Job::Write(ticket, Write::Append(txns), since) => {
                let waited = millis(self.taken.saturating_duration_since(since));
                shared.measures.saw_at(self.taken, Took::DiskWait, waited);
                self.log.append(&txns).map_err(failure)?;
                self.unsynced.last = Some(ticket);
                self.unsynced.txns += txns.len();
                self.unsynced.since.push(since);
                self.unsynced.bytes += txns.iter().map(|txn| txn.len()).sum::<usize>();
                if self.unsynced.bytes >= BATCH_BYTES_MAX { self.flush(shared) } else { Ok(()) }
            }
            Job::Write(ticket, Write::AppendStaged(txn), _) => {
                self.unsynced.last = Some(ticket);
                self.log.append_staged(&[txn]).map_err(failure)
            }
            Job::Write(ticket, write, _) => {
                self.flush(shared)?;
                self.write(write)?;
                shared.tell(|progress| progress.durable = Some(ticket));
                Ok(())
            }
            Job::Locate(zxid, reply) => {
                self.flush(shared)?;
                self.locate(zxid, reply);
                Ok(())
            }
            Job::Read { after, through, reply } => {
                self.flush(shared)?;
                // The caller may have stopped waiting.
                drop(reply.try_send(self.log.read(after, through)));
                Ok(())
            }
            Job::Newest(reply) => {
                drop(reply.try_send(self.log.snapshot().cloned()));
                Ok(())
            }
            Job::Publish(publication) => {
                self.flush(shared)?;
                let (snapshot, done) = *publication;
                self.publish(snapshot, done)
            }
            Job::Stage(install) => self.log.stage(*install).map_err(failure),
            Job::DiscardStaged => self.log.discard_staged().map_err(failure),
        }
    }

    /// Makes durable what was appended, and says so.
    fn flush(&mut self, shared: &Shared) -> Result<(), ServerError> {
        let Some(last) = self.unsynced.last.take() else { return Ok(()) };
        self.unsynced.bytes = 0;
        let start = boot_time::now();
        let synced = self.log.sync().map_err(failure)?;
        shared.tell(|progress| progress.durable = Some(last));
        self.synced = boot_time::now();
        let took = self.synced.duration_since(start);
        self.measure(took, &shared.measures);
        shared.measures.disk_works(true);
        if took > self.slow {
            shared.measures.count(Counted::SlowSyncs, 1);
            tracing::warn!(
                event = "disk.slow",
                ?took,
                "the disk was slow to make transactions durable"
            );
        }
        if synced.rolled {
            self.new_roll();
        }
        Ok(())
    }

    /// A batch is durable, of which the sync took so long.
    fn measure(&mut self, took: Duration, measures: &Measures) {
        let Self { synced: now, taken, unsynced, .. } = self;
        measures.saw_at(*now, Took::Fsync, millis(took));
        if unsynced.txns > 0 {
            measures.saw_at(*now, Took::BatchSize, unsynced.txns as u64);
            measures.saw_at(*now, Took::DiskFlush, millis(took));
            measures.saw_at(*now, Took::DiskWork, millis(now.saturating_duration_since(*taken)));
        }
        for since in unsynced.since.drain(..) {
            let all = now.saturating_duration_since(since);
            measures.saw_at(*now, Took::DiskWaitAndFlush, millis(all));
        }
        unsynced.txns = 0;
    }

    fn write(&mut self, write: Write) -> Result<(), ServerError> {
        match write {
            Write::AcceptedEpoch(epoch) => self.log.write_accepted_epoch(epoch),
            Write::CurrentEpoch(epoch) => self.log.write_current_epoch(epoch),
            Write::GrantedVote { generation, vote } => {
                self.log.write_vote(GrantedVote { generation, vote })
            }
            Write::Lease(longest) => self.log.write_lease(longest),
            Write::Append(txns) => self.log.append(&txns).and_then(|()| self.log.sync().map(drop)),
            Write::Truncate(zxid) => self.log.truncate(zxid),
            Write::AppendStaged(txn) => self.log.append_staged(&[txn]),
            Write::Install { label, membership, next } => {
                let memberships = Memberships { present: membership, next };
                let kept = &mut self.kept;
                self.log.install(label, &memberships, || kept.take_over(&memberships))
            }
            Write::Membership(text) => return self.kept.keep(&text).map_err(unkept),
            Write::NextMembership(text) => {
                return self.kept.keep_next(text.as_deref()).map_err(unkept);
            }
        }
        .map_err(failure)
    }

    /// Answers where a zxid stands, or remembers that it has to.
    fn locate(&mut self, zxid: Zxid, reply: Sender<Located>) {
        let located = match self.log.locate(zxid, SEARCH_BYTES) {
            Ok(Locating::Found(located)) => located,
            Ok(Locating::Reading) => return self.searches.push_back((zxid, reply)),
            Err(error) => {
                let event = "log.unreadable";
                tracing::warn!(event, %zxid, %error, "the log cannot be read; a snapshot is sent instead");
                Located { place: Place::BelowFloor, log_bytes: 0, snapshot_bytes: 0 }
            }
        };
        // The caller may have stopped waiting.
        let _ = reply.try_send(located);
    }

    fn publish(
        &mut self,
        snapshot: StagedSnapshot<quorate_storage::Disk>,
        done: Done,
    ) -> Result<(), ServerError> {
        match self.log.publish(snapshot).map_err(Arc::new) {
            Ok(()) => {
                self.purging = true;
                done(Ok(()));
                Ok(())
            }
            Err(source) => {
                done(Err(Arc::clone(&source)));
                let early = matches!(*source, LogError::Snapshot(SnapshotError::NotDurable { .. }));
                if early { Ok(()) } else { Err(ServerError::Disk { source }) }
            }
        }
    }

    /// Does a little of what takes long; tells whether there is more.
    fn chore(&mut self) -> Result<bool, LogError> {
        if let Some((zxid, reply)) = self.searches.pop_front() {
            if !reply.is_closed() {
                self.locate(zxid, reply);
            }
        } else if self.purging {
            let purged = self.log.purge(self.retain.snapshots, 1)?;
            if purged.snapshots + purged.logs > 0 {
                tracing::debug!(event = "purge.done", ?purged, "old files removed");
            }
            self.purging = purged.more;
        }
        Ok(self.purging || !self.searches.is_empty())
    }

    fn new_roll(&mut self) {
        let Roll { records, bytes } = self.retain.roll;
        self.log.set_roll(Roll { records: jittered(records), bytes: jittered(bytes) });
    }
}

fn unkept((path, source): (PathBuf, io::Error)) -> ServerError {
    ServerError::DynamicConfig { path, source: Arc::new(source) }
}

fn failure(source: LogError) -> ServerError {
    let too_long = source.is_too_long();
    let source = Arc::new(source);
    if too_long { ServerError::TooLong { source } } else { ServerError::Disk { source } }
}

/// Between half of `most` and all of it.
fn jittered(most: u64) -> u64 {
    let random = RandomState::new().build_hasher().finish();
    most - random % (most / 2 + 1)
}

/// How many bytes of transactions are synced together at most.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// How much is read at a time for those who want to know where something stands.
const SEARCH_BYTES: u64 = 256 << 10;
/// How long after the last batch its end is marked, if none follows.
const MARK_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_files_are_of_different_lengths() {
        let lengths: std::collections::BTreeSet<_> = (0..100).map(|_| jittered(1000)).collect();
        assert!(lengths.iter().all(|length| (500..=1000).contains(length)), "{lengths:?}");
        assert!(lengths.len() > 10, "{lengths:?}");
        assert_eq!((jittered(0), jittered(1), jittered(u64::MAX) > 0), (0, 1, true));
    }
}
