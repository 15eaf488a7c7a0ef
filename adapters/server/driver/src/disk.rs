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
//! same way, so it sees everything written before. What takes long and nobody waits for is done between
//! batches, a little at a time: reading old log files for a learner, removing files,
//! and telling on disk where the last batch ended, once none has come for a second.
//!
//! Nobody ever waits to hand something over; how much can be under way is bounded by the core. A disk
//! that is slow or hangs holds up what waits for it, and nothing else. A disk that fails ends the
//! server: nobody knows what a crash would leave.
//!
//! In the Java code: `SyncRequestProcessor`. What it does not do: decide what has to wait for the disk.
//! That is the core's.

mod kept;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded};
use quorate_core::ballot::Ballot;
use quorate_core::id::Ticket;
use quorate_core::input::{Located, Place};
use quorate_core::output::Write;
use quorate_core::zxid::Zxid;
use quorate_storage::install::{Install, Memberships};
use quorate_storage::reader::{ReadError, Reader};
use quorate_storage::segments::{Dirs, Locating, Roll};
use quorate_storage::snapshot::{SnapshotError, SnapshotFile, StagedSnapshot};
use quorate_storage::{Log, LogError};
use thiserror::Error;

pub(crate) use crate::disk::kept::Kept;
use crate::error::ServerError;
use crate::scope::THREAD_STACK;

/// The loop's end of the storage thread. Dropping it ends the thread after what was handed over.
#[derive(Debug)]
pub(crate) struct Disk {
    handle: DiskHandle,
}

/// Everybody else's end. It outlives the thread; what is asked for then is not answered.
#[derive(Clone, Debug)]
pub(crate) struct DiskHandle {
    shared: Arc<Shared>,
    thread: Thread,
}

/// How much is kept of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retain {
    /// How many snapshots (`autopurge.snapRetainCount`), three at least, with the log that each needs.
    pub(crate) snapshots: usize,
    /// How long a log file becomes at most; each becomes between half as long and so long, since an
    /// ensemble's servers should not begin new ones at the same time.
    pub(crate) roll: Roll,
}

/// What goes to and fro.
#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    progress: Mutex<Progress>,
    dirs: Dirs,
    txn_bytes_max: usize,
}

/// What is to be done.
#[derive(Debug, Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Nothing more is taken.
    closed: bool,
}

/// What the thread has done since the loop looked last. A cell, not a queue: the thread must never
/// wait for the loop.
#[derive(Debug, Default)]
struct Progress {
    durable: Option<Ticket>,
    failed: Option<ServerError>,
    /// There is no thread any more.
    ended: bool,
    /// Whom to wake.
    waker: Option<Waker>,
}

/// Something for the thread to do.
enum Job {
    Write(Ticket, Write),
    Locate(Zxid, Sender<Located>),
    Read { after: Zxid, through: Zxid, reply: Sender<Result<Reader, ReadError>> },
    Newest(Sender<Option<SnapshotFile>>),
    Publish(Box<(StagedSnapshot<quorate_storage::Disk>, Done)>),
    Stage(Box<Install<quorate_storage::Disk>>),
    DiscardStaged,
}

/// Called on the storage thread when a snapshot is published, or is not.
type Done = Box<dyn FnOnce(Result<(), Arc<LogError>>) + Send>;

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

/// Why something was not read from the disk.
#[derive(Debug, Error)]
pub(crate) enum Unread {
    /// The storage thread has ended, and with it the server.
    #[error("the server ends")]
    Ended,
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
}

impl Disk {
    /// Starts the thread. It keeps `hold` until the log is closed and its lock released.
    pub(crate) fn start(
        log: Log,
        kept: Kept,
        retain: Retain,
        slow: Duration,
        hold: impl Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            progress: Mutex::default(),
            dirs: log.dirs().clone(),
            txn_bytes_max: log.txn_bytes_max(),
        });
        let ending = Ending(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("quorate-disk".to_owned());
        let thread = thread.stack_size(THREAD_STACK).spawn(move || {
            let mut storage = Storage {
                log,
                kept,
                retain,
                slow,
                unsynced: Unsynced::default(),
                searches: VecDeque::new(),
                purging: false,
                synced: Instant::now(),
            };
            storage.new_roll();
            let served = match storage.serve(&ending.0) {
                Ok(()) => storage.log.close().map_err(failure),
                Err(error) => {
                    drop(storage);
                    Err(error)
                }
            };
            if let Err(error) = served {
                ending.0.tell(|progress| progress.failed = Some(error));
            }
            drop(ending);
            drop(hold);
        })?;
        Ok(Self { handle: DiskHandle { shared, thread: thread.thread().clone() } })
    }

    /// Hands a write over; never waits.
    pub(crate) fn write(&self, ticket: Ticket, write: Write) {
        self.handle.hand_over(Job::Write(ticket, write));
    }

    /// Waits for the last ticket that has become durable since it was asked last. For one at a time.
    pub(crate) async fn durable(&self) -> Result<Ticket, ServerError> {
        poll_fn(|context| {
            let mut progress = locked(&self.handle.shared.progress);
            if let Some(error) = &progress.failed {
                return Poll::Ready(Err(error.clone()));
            }
            if let Some(ticket) = progress.durable.take() {
                return Poll::Ready(Ok(ticket));
            }
            if progress.ended {
                // While we are there, it ends of itself only by a panic.
                return Poll::Ready(Err(ServerError::Aborted));
            }
            match &mut progress.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    /// For those who want something else than to write.
    pub(crate) fn handle(&self) -> DiskHandle {
        self.handle.clone()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        locked(&self.handle.shared.queue).closed = true;
        self.handle.thread.unpark();
    }
}

impl DiskHandle {
    /// Where a zxid stands in the log, and what it costs to read on from there. What cannot be read is
    /// below the floor.
    ///
    /// # Errors
    ///
    /// [`Unread::Ended`].
    pub(crate) async fn locate(&self, zxid: Zxid) -> Result<Located, Unread> {
        let (reply, answer) = bounded(1);
        self.hand_over(Job::Locate(zxid, reply));
        answer.recv().await.map_err(|_| Unread::Ended)
    }

    /// Reads what follows `after` up to `through`. Blocks; what it returns does, too. As long as that
    /// exists, the files that it needs stay.
    ///
    /// # Errors
    ///
    /// An [`Unread`] if that is not in the log without a hole.
    pub(crate) fn reader(&self, after: Zxid, through: Zxid) -> Result<Reader, Unread> {
        let (reply, answer) = bounded(1);
        self.hand_over(Job::Read { after, through, reply });
        Ok(wait(&answer)??)
    }

    /// The snapshot from which a state is to be restored; none before the first. Blocks.
    ///
    /// # Errors
    ///
    /// [`Unread::Ended`].
    pub(crate) fn newest_snapshot(&self) -> Result<Option<SnapshotFile>, Unread> {
        let (reply, answer) = bounded(1);
        self.hand_over(Job::Newest(reply));
        wait(&answer)
    }

    /// Makes a snapshot of our own state one that a start may choose, then removes what is no longer
    /// needed. `done` is called on the storage thread, with an error if the log is not durable through
    /// the snapshot's label, or the disk has failed; it is dropped if the server ends before.
    pub(crate) fn publish(
        &self,
        snapshot: StagedSnapshot<quorate_storage::Disk>,
        done: impl FnOnce(Result<(), Arc<LogError>>) + Send + 'static,
    ) {
        self.hand_over(Job::Publish(Box::new((snapshot, Box::new(done)))));
    }

    /// Begins the history that a leader sends, behind a snapshot that has come whole. The writes that
    /// are [beside](Write::Beside) the history go there, and it is [installed](Write::Install).
    pub(crate) fn stage(&self, install: Install<quorate_storage::Disk>) {
        self.hand_over(Job::Stage(Box::new(install)));
    }

    /// Gives up what was staged, if anything was.
    pub(crate) fn discard_staged(&self) {
        self.hand_over(Job::DiscardStaged);
    }

    /// Where the files are.
    pub(crate) fn dirs(&self) -> &Dirs {
        &self.shared.dirs
    }

    /// The longest transaction that is read or written.
    pub(crate) fn txn_bytes_max(&self) -> usize {
        self.shared.txn_bytes_max
    }

    fn hand_over(&self, job: Job) {
        {
            let mut queue = locked(&self.shared.queue);
            // The thread ends early only after a failure, which `durable` tells.
            if queue.closed {
                return;
            }
            queue.jobs.push(job);
        }
        // Costs nothing unless the thread is asleep.
        self.thread.unpark();
    }
}

fn wait<T>(answer: &Receiver<T>) -> Result<T, Unread> {
    answer.recv_blocking().map_err(|_| Unread::Ended)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Changes the progress, and wakes who waits for it.
    fn tell(&self, change: impl FnOnce(&mut Progress)) {
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

/// However the thread ends: nobody waits for it any more.
struct Ending(Arc<Shared>);

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

/// What the thread owns.
struct Storage {
    log: Log,
    kept: Kept,
    retain: Retain,
    /// From when on a sync is worth a warning.
    slow: Duration,
    unsynced: Unsynced,
    /// Who wants to know where something stands, and has to wait until old files have been read.
    searches: VecDeque<(Zxid, Sender<Located>)>,
    /// There may be files to remove.
    purging: bool,
    /// When the last batch was made durable.
    synced: Instant,
}

/// What was written and is not durable.
#[derive(Debug, Default)]
struct Unsynced {
    last: Option<Ticket>,
    bytes: usize,
}

impl Storage {
    fn serve(&mut self, shared: &Shared) -> Result<(), ServerError> {
        let mut jobs = Vec::new();
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
            for job in jobs.drain(..) {
                self.perform(job, shared)?;
            }
            self.flush(shared)?;
            let chores = self.chore().map_err(failure)?;
            if idle && !chores {
                self.rest()?;
            }
        }
    }

    /// Waits for something to do. Where the last batch ends is told on disk with the next one, or here, if
    /// none comes for a while.
    fn rest(&mut self) -> Result<(), ServerError> {
        if !self.log.is_unmarked() {
            std::thread::park();
            return Ok(());
        }
        match MARK_AFTER.checked_sub(self.synced.elapsed()) {
            Some(wait) if !wait.is_zero() => std::thread::park_timeout(wait),
            _ => self.log.mark().map_err(failure)?,
        }
        Ok(())
    }

    fn perform(&mut self, job: Job, shared: &Shared) -> Result<(), ServerError> {
        match job {
            Job::Write(ticket, Write::Append(txns)) => {
                self.log.append(&txns).map_err(failure)?;
                self.unsynced.last = Some(ticket);
                self.unsynced.bytes += txns.iter().map(|txn| txn.len()).sum::<usize>();
                if self.unsynced.bytes >= BATCH_BYTES_MAX { self.flush(shared) } else { Ok(()) }
            }
            Job::Write(ticket, Write::Beside(txn)) => {
                self.unsynced.last = Some(ticket);
                self.log.append_staged(&[txn]).map_err(failure)
            }
            Job::Write(ticket, write) => {
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
                // Nobody may be waiting any more.
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
        let start = Instant::now();
        let synced = self.log.sync().map_err(failure)?;
        shared.tell(|progress| progress.durable = Some(last));
        self.synced = Instant::now();
        let took = self.synced.duration_since(start);
        if took > self.slow {
            tracing::warn!(?took, "the disk was slow to make transactions durable");
        }
        if synced.rolled {
            self.new_roll();
        }
        Ok(())
    }

    fn write(&mut self, write: Write) -> Result<(), ServerError> {
        match write {
            Write::AcceptedEpoch(epoch) => self.log.write_accepted_epoch(epoch),
            Write::CurrentEpoch(epoch) => self.log.write_current_epoch(epoch),
            Write::GrantedVote { generation, vote } => {
                self.log.write_vote(Ballot { generation, vote })
            }
            Write::Lease(longest) => self.log.write_lease(longest),
            Write::Append(txns) => self.log.append(&txns).and_then(|()| self.log.sync().map(drop)),
            Write::Truncate(zxid) => self.log.truncate(zxid),
            Write::Beside(txn) => self.log.append_staged(&[txn]),
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
                tracing::warn!(%zxid, %error, "the log cannot be read; a snapshot is sent instead");
                Located { place: Place::BelowFloor, log_bytes: 0, snapshot_bytes: 0 }
            }
        };
        // Nobody may be waiting any more.
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
                tracing::debug!(?purged, "old files removed");
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
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use futures_lite::future::block_on;
    use quorate_core::txn::{Txn, TxnHeader};
    use quorate_core::zxid::Epoch;
    use quorate_storage::snapshot::{Parts, SnapshotWriter};
    use quorate_storage::{Found, OpenOptions, sync_mark};
    use tempfile::TempDir;

    use super::*;

    const E1: i64 = 1 << 32;
    const E2: i64 = 2 << 32;

    fn append(zxids: impl IntoIterator<Item = i64>) -> Write {
        let header = TxnHeader { client: 1, cxid: 2, time: 3, kind: 5 };
        let body = bytes::Bytes::from_static(b"some bytes");
        let txn = |zxid| Txn { zxid: Zxid(zxid), header, body: body.clone() };
        Write::Append(zxids.into_iter().map(txn).collect())
    }

    const MEMBERSHIP: &str = "server.1=127.0.0.1:2888:3888:participant\nversion=0";

    fn take(dirs: &Dirs, label: i64) -> StagedSnapshot<quorate_storage::Disk> {
        let mut file =
            SnapshotWriter::take(quorate_storage::Disk, &dirs.snapshots, Zxid(label)).unwrap();
        file.write_all(b"state").unwrap();
        file.finish(Parts::default()).unwrap()
    }

    fn open(dir: &TempDir) -> (Log, Found) {
        Log::open(dir.path(), OpenOptions::default()).unwrap()
    }

    /// A disk that serves a new directory with the epoch 1, and what is closed when its thread has ended.
    fn started(dir: &TempDir) -> (Disk, Receiver<()>) {
        let (mut log, _) = open(dir);
        log.begin_with(take(log.dirs(), 0)).unwrap();
        log.write_accepted_epoch(Epoch(1)).unwrap();
        let (hold, ended) = bounded(1);
        let retain = Retain { snapshots: 3, roll: Roll { records: 8, bytes: 1 << 20 } };
        (
            Disk::start(log, Kept::new(dir.path(), None, None), retain, Duration::MAX, hold)
                .unwrap(),
            ended,
        )
    }

    /// Waits until a ticket is durable; what is reported ascends.
    fn until(disk: &Disk, ticket: u64) {
        let mut last = Ticket(0);
        while last < Ticket(ticket) {
            let durable = block_on(disk.durable()).unwrap();
            assert!(durable > last && durable <= Ticket(ticket));
            last = durable;
        }
    }

    /// Ends a disk, and waits until its directory is unlocked.
    fn end(disk: Disk, ended: &Receiver<()>) {
        drop(disk);
        block_on(ended.recv()).unwrap_err();
    }

    /// Keeps the thread busy until the sender is dropped.
    fn busy(disk: &DiskHandle) -> Sender<()> {
        let (release, released) = bounded(1);
        let (sender, reached) = bounded(1);
        disk.publish(take(disk.dirs(), 0), move |_| {
            sender.try_send(()).unwrap();
            released.recv_blocking().unwrap_err();
        });
        reached.recv_blocking().unwrap();
        release
    }

    fn place(disk: &DiskHandle, zxid: i64) -> Place {
        block_on(disk.locate(Zxid(zxid))).unwrap().place
    }

    fn names(dir: &TempDir, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(dir.path().join("version-2")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names
    }

    #[test]
    fn what_has_gathered_is_durable_in_order_when_the_last_ticket_is_reported() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let release = busy(&disk.handle());
        let writes = [
            append([E1 + 1]),
            append([E1 + 2, E1 + 3]),
            Write::CurrentEpoch(Epoch(1)),
            append([E1 + 4, E1 + 5]),
            Write::Truncate(Zxid(E1 + 4)),
            Write::AcceptedEpoch(Epoch(2)),
            append([E2 + 1]),
        ];
        for (ticket, write) in (1..).zip(writes) {
            disk.write(Ticket(ticket), write);
        }
        drop(release);
        until(&disk, 7);
        // As after a crash: nothing more is written.
        let copy = TempDir::new().unwrap();
        fs::create_dir(copy.path().join("version-2")).unwrap();
        for name in names(&dir, "") {
            let name = Path::new("version-2").join(name);
            fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
        }
        let found = open(&copy).1.durable;
        assert_eq!((found.accepted_epoch, found.current_epoch), (Epoch(2), Epoch(1)));
        let zxids: Vec<_> = found.window.iter().map(|txn| txn.zxid.0).collect();
        assert_eq!(zxids, [E1 + 1, E1 + 2, E1 + 3, E1 + 4, E2 + 1]);
        end(disk, &ended);
        assert_eq!(open(&dir).1.durable, found);
    }

    /// A torn batch and a damaged one look alike until its end is marked, which the next one does, or nothing
    /// but time.
    #[test]
    fn damage_to_the_last_batch_is_told_from_a_torn_one_when_none_has_followed_for_a_while() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        disk.write(Ticket(1), append([E1 + 1, E1 + 2]));
        until(&disk, 1);
        let path = dir.path().join("version-2/log.100000001");
        let marked = |bytes: &[u8]| {
            let slots = sync_mark::slots(bytes.len() as u64).unwrap();
            let [first, second] = slots.map(|slot| &bytes[usize::try_from(slot).unwrap()..]);
            sync_mark::decode(Zxid(E1 + 1), [first, second]).unwrap()
        };
        let mut bytes = fs::read(&path).unwrap();
        while marked(&bytes) == 16 {
            std::thread::yield_now();
            bytes = fs::read(&path).unwrap();
        }
        // As found after a power cut, with one wrong bit in what was synced last.
        let place = usize::try_from(marked(&bytes)).unwrap();
        bytes[place - 5] ^= 1;
        let copy = TempDir::new().unwrap();
        fs::create_dir(copy.path().join("version-2")).unwrap();
        for name in names(&dir, "") {
            let name = Path::new("version-2").join(name);
            fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
        }
        fs::write(copy.path().join("version-2/log.100000001"), bytes).unwrap();
        let error = Log::open(copy.path(), OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains("log.100000001, offset ") && error.contains("damaged"), "{error}");
        disk.write(Ticket(2), append([E1 + 3]));
        until(&disk, 2);
        end(disk, &ended);
    }

    #[test]
    fn what_was_handed_over_is_written_before_the_thread_ends() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        for number in 1..=100 {
            disk.write(Ticket(number), append([E1 + i64::try_from(number).unwrap()]));
        }
        end(disk, &ended);
        assert_eq!(open(&dir).1.durable.last_zxid, Zxid(E1 + 100));
        // Handles may outlive it; nothing is answered any more, and nobody waits.
        assert!(matches!(block_on(handle.locate(Zxid(E1))), Err(Unread::Ended)));
        assert!(matches!(handle.reader(Zxid(0), Zxid(E1 + 1)), Err(Unread::Ended)));
        assert!(matches!(handle.newest_snapshot(), Err(Unread::Ended)));
        handle.discard_staged();
    }

    #[test]
    fn what_is_asked_for_sees_everything_written_before() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        disk.write(Ticket(1), append([E1 + 1, E1 + 2]));
        assert_eq!(place(&handle, E1 + 2), Place::Held);
        assert_eq!(place(&handle, E1), Place::Absent { previous: Zxid(0) });
        disk.write(Ticket(2), append([E1 + 3]));
        let mut reader = handle.reader(Zxid(E1 + 1), Zxid(E1 + 3)).unwrap();
        let chunk = reader.next_chunk(1 << 16).unwrap().unwrap();
        assert_eq!((chunk.len(), chunk.last()), (2, Zxid(E1 + 3)));
        let beyond = handle.reader(Zxid(0), Zxid(E1 + 4)).unwrap_err();
        assert!(matches!(beyond, Unread::Log(ReadError::Beyond { .. })), "{beyond}");
        assert_eq!(handle.newest_snapshot().unwrap().unwrap().label, Zxid(0));
        end(disk, &ended);
    }

    #[test]
    fn published_snapshots_take_the_place_of_old_ones_and_of_their_log() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        let (done, published) = bounded(1);
        for number in 1..=60 {
            disk.write(Ticket(number), append([E1 + i64::try_from(number).unwrap()]));
            until(&disk, number);
            if number % 10 == 0 {
                let label = E1 + i64::try_from(number).unwrap();
                let done = done.clone();
                handle.publish(take(handle.dirs(), label), move |result| {
                    done.try_send(result).unwrap();
                });
                published.recv_blocking().unwrap().unwrap();
                assert_eq!(handle.newest_snapshot().unwrap().unwrap().label, Zxid(label));
            }
        }
        // Files go one at a time, between batches.
        for _ in 0..60 {
            place(&handle, E1 + 60);
        }
        let kept: Vec<_> = [40, 50, 60].map(|label| format!("snapshot.{:x}", E1 + label)).into();
        assert_eq!(names(&dir, "snapshot."), kept);
        assert_eq!(place(&handle, E1 + 20), Place::BelowFloor);
        assert_eq!(place(&handle, E1 + 40), Place::Held);
        end(disk, &ended);
        let found = open(&dir).1;
        assert_eq!(found.durable.last_zxid, Zxid(E1 + 60));
        assert!(names(&dir, "log.").len() < 8, "{:?}", names(&dir, "log."));
    }

    #[test]
    fn a_snapshot_that_the_log_does_not_reach_is_refused_and_the_server_goes_on() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        let (done, published) = bounded(1);
        handle.publish(take(handle.dirs(), E1 + 1), move |result| done.try_send(result).unwrap());
        let error = published.recv_blocking().unwrap().unwrap_err();
        assert!(error.to_string().contains("durable through 0x0 only"), "{error}");
        disk.write(Ticket(1), append([E1 + 1]));
        until(&disk, 1);
        end(disk, &ended);
    }

    #[test]
    fn what_a_leader_sends_replaces_the_history_when_it_is_installed() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        let receive = |label: i64| {
            let dirs = handle.dirs();
            let file = SnapshotWriter::receive(quorate_storage::Disk, &dirs.snapshots, Zxid(label));
            let staged = file.unwrap().finish(Parts::default()).unwrap();
            Install::new(staged, dirs, handle.txn_bytes_max())
        };
        let beside = |ticket, zxid: i64| {
            let Write::Append(txns) = append([zxid]) else { return };
            disk.write(Ticket(ticket), Write::Beside(txns[0].clone()));
        };
        disk.write(Ticket(1), append([E1 + 1, E1 + 2]));
        disk.write(Ticket(2), Write::AcceptedEpoch(Epoch(2)));
        handle.stage(receive(E1 + 7));
        beside(3, E1 + 8);
        handle.discard_staged();
        handle.stage(receive(E2));
        beside(4, E2 + 1);
        until(&disk, 4);
        assert_eq!(place(&handle, E1 + 2), Place::Held, "it is the old one still");
        beside(5, E2 + 2);
        disk.write(
            Ticket(6),
            Write::Install { label: Zxid(E2), membership: MEMBERSHIP.into(), next: None },
        );
        disk.write(Ticket(7), Write::CurrentEpoch(Epoch(2)));
        disk.write(Ticket(8), append([E2 + 3]));
        until(&disk, 8);
        assert_eq!(place(&handle, E1 + 2), Place::BelowFloor);
        assert_eq!(handle.newest_snapshot().unwrap().unwrap().label, Zxid(E2));
        end(disk, &ended);
        let found = open(&dir).1.durable;
        assert_eq!((found.floor, found.last_zxid), (Zxid(E2), Zxid(E2 + 3)));
        assert_eq!(names(&dir, "staged."), [""; 0]);
    }

    #[test]
    fn a_disk_that_fails_says_where_and_is_not_written_to_any_more() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        let version = dir.path().join("version-2");
        let aside = dir.path().join("aside");
        let release = busy(&handle);
        fs::rename(&version, &aside).unwrap();
        disk.write(Ticket(1), append([E1 + 1]));
        disk.write(Ticket(2), Write::AcceptedEpoch(Epoch(9)));
        drop(release);
        let error = block_on(disk.durable()).unwrap_err().to_string();
        let log = version.join("log.100000001");
        assert!(
            error.starts_with(&format!("the disk failed: cannot create {}: ", log.display())),
            "{error}"
        );
        block_on(ended.recv()).unwrap_err();
        fs::rename(&aside, &version).unwrap();
        disk.write(Ticket(3), append([E1 + 1]));
        assert!(block_on(disk.durable()).is_err(), "and says it again");
        assert!(matches!(block_on(handle.locate(Zxid(0))), Err(Unread::Ended)));
        drop(disk);
        let found = open(&dir).1.durable;
        assert_eq!((found.accepted_epoch, found.last_zxid), (Epoch(1), Zxid::ZERO));
    }

    #[test]
    fn a_thread_that_panics_leaves_nobody_waiting() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let handle = disk.handle();
        handle.publish(take(handle.dirs(), 0), |_| panic!("as it should"));
        block_on(ended.recv()).unwrap_err();
        assert!(matches!(block_on(disk.durable()), Err(ServerError::Aborted)));
        assert!(matches!(block_on(handle.locate(Zxid(0))), Err(Unread::Ended)));
        disk.write(Ticket(1), append([E1 + 1]));
    }

    #[test]
    fn log_files_are_of_different_lengths() {
        let lengths: std::collections::BTreeSet<_> = (0..100).map(|_| jittered(1000)).collect();
        assert!(lengths.iter().all(|length| (500..=1000).contains(length)), "{lengths:?}");
        assert!(lengths.len() > 10, "{lengths:?}");
        assert_eq!((jittered(0), jittered(1), jittered(u64::MAX) > 0), (0, 1, true));
    }
}
