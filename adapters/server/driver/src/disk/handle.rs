//! The ends of the storage thread: the loop's, and those of everything else that needs the disk.
//!
//! Handing something over never waits. What is asked for is answered once everything that was written before is on
//! disk, and is not answered any more when the thread has ended.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::Thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, bounded};
use quorate_core::id::Ticket;
use quorate_core::input::Located;
use quorate_core::output::Write;
use quorate_core::zxid::Zxid;
use quorate_storage::install::Install;
use quorate_storage::reader::Reader;
use quorate_storage::segments::Dirs;
use quorate_storage::snapshot::{SnapshotFile, StagedSnapshot};
use quorate_storage::{Log, LogError, Remains};

use crate::config::MembershipFiles;
use crate::disk::error::DiskReadError;
use crate::disk::queue::{Ending, Job, Shared};
use crate::disk::thread::{Retain, Storage};
use crate::error::ServerError;
use crate::lock::locked;
use crate::measures::Measures;

/// The loop's end of the storage thread. Dropping it ends the thread after what was handed over.
#[derive(Debug)]
pub(crate) struct Disk {
    handle: DiskHandle,
}

/// What the thread has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskNews {
    /// This write and all before it are durable.
    Durable(Ticket),
    /// There is little room left, or enough again.
    Low(bool),
}

/// Everybody else's end. It outlives the thread; what is asked for then is not answered.
#[derive(Clone, Debug)]
pub(crate) struct DiskHandle {
    shared: Arc<Shared>,
    thread: Thread,
}

impl Disk {
    /// Starts the thread. It keeps `keep_alive` until the log is closed and its lock released.
    pub(crate) fn start(
        log: Log,
        kept: MembershipFiles,
        retain: Retain,
        slow: Duration,
        measures: Arc<Measures>,
        keep_alive: impl Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            progress: Mutex::default(),
            measures,
            dirs: log.dirs().clone(),
            txn_bytes_max: log.txn_bytes_max(),
        });
        let storage = Storage::new(log, kept, retain, slow);
        let thread = storage.start(Ending(Arc::clone(&shared)), keep_alive)?;
        Ok(Self { handle: DiskHandle { shared, thread } })
    }

    /// Hands a write over that waits since then; never waits itself.
    pub(crate) fn write_since(&self, since: Instant, ticket: Ticket, write: Write) {
        self.handle.submit(Job::Write(ticket, write, since));
    }

    /// The same, since now.
    #[cfg(test)]
    pub(crate) fn write(&self, ticket: Ticket, write: Write) {
        self.write_since(quorate_leadership::boot_time::now(), ticket, write);
    }

    /// Waits for what it has to say since it was asked last: the last ticket that has become durable, then whether there is
    /// little room. For one at a time.
    pub(crate) async fn news(&self) -> Result<DiskNews, ServerError> {
        poll_fn(|context| {
            let mut progress = locked(&self.handle.shared.progress);
            if let Some(error) = &progress.failed {
                return Poll::Ready(Err(error.clone()));
            }
            if let Some(ticket) = progress.durable.take() {
                return Poll::Ready(Ok(DiskNews::Durable(ticket)));
            }
            if let Some(low) = progress.low.take() {
                return Poll::Ready(Ok(DiskNews::Low(low)));
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

    /// Waits for the last ticket that has become durable since it was asked last.
    #[cfg(test)]
    pub(crate) async fn durable(&self) -> Result<Ticket, ServerError> {
        loop {
            if let DiskNews::Durable(ticket) = self.news().await? {
                return Ok(ticket);
            }
        }
    }

    /// What was durable when a write failed; none if none has.
    pub(crate) fn remains(&self) -> Option<Remains> {
        locked(&self.handle.shared.progress).remains.clone()
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
    /// Where is noted how long the disk took.
    pub(crate) fn measures(&self) -> &Arc<Measures> {
        &self.shared.measures
    }

    /// Where a zxid stands in the log, and what it costs to read on from there. What cannot be read is
    /// below the floor.
    ///
    /// # Errors
    ///
    /// [`DiskReadError::Ended`].
    pub(crate) async fn locate(&self, zxid: Zxid) -> Result<Located, DiskReadError> {
        let (reply, answer) = bounded(1);
        self.submit(Job::Locate(zxid, reply));
        answer.recv().await.map_err(|_| DiskReadError::Ended)
    }

    /// Reads what follows `after` up to `through`. Blocks; what it returns does, too. As long as that
    /// exists, the files that it needs stay.
    ///
    /// # Errors
    ///
    /// A [`DiskReadError`] if that is not in the log without a hole.
    pub(crate) fn reader(&self, after: Zxid, through: Zxid) -> Result<Reader, DiskReadError> {
        let (reply, answer) = bounded(1);
        self.submit(Job::Read { after, through, reply });
        Ok(wait(&answer)??)
    }

    /// The snapshot from which a state is to be restored; none before the first. Blocks.
    ///
    /// # Errors
    ///
    /// [`DiskReadError::Ended`].
    pub(crate) fn newest_snapshot(&self) -> Result<Option<SnapshotFile>, DiskReadError> {
        let (reply, answer) = bounded(1);
        self.submit(Job::Newest(reply));
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
        self.submit(Job::Publish(Box::new((snapshot, Box::new(done)))));
    }

    /// Begins the history that a leader sends, behind a snapshot that has come whole. The writes that
    /// are [beside](Write::AppendStaged) the history go there, and it is [installed](Write::Install).
    pub(crate) fn stage(&self, install: Install<quorate_storage::Disk>) {
        self.submit(Job::Stage(Box::new(install)));
    }

    /// Gives up what was staged, if anything was.
    pub(crate) fn discard_staged(&self) {
        self.submit(Job::DiscardStaged);
    }

    /// Where the files are.
    pub(crate) fn dirs(&self) -> &Dirs {
        &self.shared.dirs
    }

    /// The longest transaction that is read or written.
    pub(crate) fn txn_bytes_max(&self) -> usize {
        self.shared.txn_bytes_max
    }

    fn submit(&self, job: Job) {
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

fn wait<T>(answer: &Receiver<T>) -> Result<T, DiskReadError> {
    answer.recv_blocking().map_err(|_| DiskReadError::Ended)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use async_channel::Sender;
    use futures_lite::future::block_on;
    use quorate_core::input::Place;
    use quorate_core::txn::{Txn, TxnHeader};
    use quorate_core::zxid::Epoch;
    use quorate_storage::reader::ReadError;
    use quorate_storage::segments::Roll;
    use quorate_storage::snapshot::{Parts, SnapshotWriter};
    use quorate_storage::{Found, OpenOptions, sync_mark};
    use tempfile::TempDir;

    use super::*;
    use crate::disk_floor::DiskFloor;

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
        let (keep_alive, ended) = bounded(1);
        let roll = Roll { records: 8, bytes: 1 << 20 };
        let retain = Retain { snapshots: 3, roll, floor: DiskFloor::Bytes(u64::MAX) };
        (
            Disk::start(
                log,
                MembershipFiles::new(dir.path(), None, None),
                retain,
                Duration::MAX,
                Arc::default(),
                keep_alive,
            )
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
    fn a_thread_that_hangs_in_its_work_is_told_for_how_long_and_one_that_rests_is_not() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        let measures = Arc::clone(disk.handle().measures());
        let release = busy(&disk.handle());
        let before = measures.disk_busy();
        while measures.disk_busy() == before {
            std::thread::yield_now();
        }
        assert!(measures.disk_busy() > before && before > Duration::ZERO, "it grows");
        drop(release);
        disk.write(Ticket(1), append([E1 + 1]));
        until(&disk, 1);
        while !measures.disk_busy().is_zero() {
            std::thread::yield_now();
        }
        end(disk, &ended);
    }

    #[test]
    fn a_disk_with_less_room_than_is_asked_for_says_so_beside_what_is_durable() {
        let dir = TempDir::new().unwrap();
        let (disk, ended) = started(&dir);
        disk.write(Ticket(1), append([E1 + 1]));
        let mut said = [(); 2].map(|()| block_on(disk.news()).unwrap());
        said.sort_by_key(|news| matches!(news, DiskNews::Low(_)));
        assert_eq!(said, [DiskNews::Durable(Ticket(1)), DiskNews::Low(true)]);
        assert!(disk.handle().measures().disk_is_low());
        end(disk, &ended);
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
        // Handles may outlive it; nothing is answered any more, and no caller waits.
        assert!(matches!(block_on(handle.locate(Zxid(E1))), Err(DiskReadError::Ended)));
        assert!(matches!(handle.reader(Zxid(0), Zxid(E1 + 1)), Err(DiskReadError::Ended)));
        assert!(matches!(handle.newest_snapshot(), Err(DiskReadError::Ended)));
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
        assert!(matches!(beyond, DiskReadError::Log(ReadError::Beyond { .. })), "{beyond}");
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
            disk.write(Ticket(ticket), Write::AppendStaged(txns[0].clone()));
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
        assert!(matches!(block_on(handle.locate(Zxid(0))), Err(DiskReadError::Ended)));
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
        assert!(matches!(block_on(handle.locate(Zxid(0))), Err(DiskReadError::Ended)));
        disk.write(Ticket(1), append([E1 + 1]));
    }
}
