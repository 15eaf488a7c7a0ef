//! A snapshot on its way to us.
//!
//! ```text
//!   socket ──► link ──► pipe, at most 1 MiB ──► thread ──┬──► application
//!                                                       └──► staged snapshot file ◄── fsync
//! ```
//!
//! A snapshot on the wire has no frame: only the application knows where it ends, so the link hands over all that comes
//! and gets back what was not the snapshot's.
//!
//! What this module does not do: decide what becomes of a snapshot that has come.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use async_channel::{Receiver, Sender, bounded};
use bytes::{Bytes, BytesMut};
use quorate_application::Restore;
use quorate_core::zxid::Zxid;
use quorate_storage::install::Install;
use quorate_storage::snapshot::{Parts, SYNC_BYTES, SnapshotWriter};

use crate::disk::error::SnapshotFault;
use crate::disk::handle::DiskHandle;
use crate::disk::outgoing::SIGNATURE;
use crate::disk::pipe::{Chunk, Pipe};
use crate::lock::locked;
use crate::task_group::KeepAlive;
use crate::threads::{APPLICATION_STACK, THREAD_STACK, give_way};

/// A link's end of a snapshot that comes in. Dropping it ends the thread that takes it.
#[derive(Debug)]
pub(crate) struct Intake {
    pipe: Arc<Pipe>,
    room: Receiver<()>,
    done: Receiver<Result<Received, SnapshotFault>>,
}

/// A snapshot that has come whole.
#[derive(Debug)]
pub(crate) struct Received {
    /// What was not taken.
    pub(crate) unread: BytesMut,
    /// The text of the membership in its state, if that tells one.
    pub(crate) membership: Option<Bytes>,
}

impl Intake {
    /// Hands over bytes that are elsewhere, say because it was not known yet what they were.
    pub(crate) fn put(&self, bytes: &[u8]) {
        self.pipe.put(Chunk::of(bytes));
    }

    /// Memory to read into, if there is room for more.
    pub(crate) fn spare(&self) -> Option<Chunk> {
        self.pipe.spare()
    }

    /// Hands over memory whose first `read` bytes have come.
    pub(crate) fn pass(&self, chunk: Chunk, read: usize) {
        self.pipe.put(Chunk { unread: 0..read, ..chunk });
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.pipe.close();
    }

    /// Waits until there is room, or may be.
    pub(crate) async fn room(&self) {
        let _ = self.room.recv().await;
    }

    /// Waits for the end: whether the snapshot is whole and staged, and if so, what is left of what came.
    pub(crate) async fn done(&self) -> Result<Received, SnapshotFault> {
        let done = self.done.recv().await;
        let mut received = done.map_err(|_| SnapshotFault::Panicked)??;
        for chunk in self.pipe.rest() {
            received.unread.extend_from_slice(chunk.unread());
        }
        Ok(received)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether a snapshot that is being received is still wanted; shared by the loop and the thread.
#[derive(Debug)]
pub(crate) struct Wanted(Mutex<bool>);

impl Wanted {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(true)))
    }

    /// It is not wanted any more: nothing that belongs to it happens after this returns.
    pub(crate) fn revoke(&self) {
        *locked(&self.0) = false;
    }

    /// Does something unless it is not wanted; returns whether it is.
    fn and(&self, act: impl FnOnce()) -> bool {
        let wanted = locked(&self.0);
        if *wanted {
            act();
        }
        *wanted
    }
}

/// What a snapshot that comes in needs.
pub(crate) struct Reception<S: Restore> {
    pub(crate) label: Zxid,
    pub(crate) disk: DiskHandle,
    pub(crate) wanted: Arc<Wanted>,
    /// Held by one reception at a time: an earlier one removes its files first.
    pub(crate) turn: Arc<Mutex<()>>,
    /// The application's part.
    pub(crate) restore: S,
    /// What the state tells of the membership.
    pub(crate) membership: fn(&S::State) -> Option<Bytes>,
    /// Where the state goes when the snapshot is whole, before anybody is told.
    pub(crate) deposit: Box<dyn FnOnce(S::State) + Send>,
    pub(crate) keep_alive: KeepAlive,
}

/// Begins to receive a snapshot: bytes go into the [`Intake`], and a thread restores them, writes them
/// to the staged file and checks the signature.
pub(crate) fn receive<S: Restore>(reception: Reception<S>) -> io::Result<Intake> {
    let (pipe, room) = Pipe::new();
    let (tell, done) = bounded(1);
    let from = Arc::clone(&pipe);
    let thread = std::thread::Builder::new().name("quorate-restore".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        give_way();
        let Reception { label, disk, wanted, turn, restore, membership, deposit, keep_alive } =
            reception;
        let turn_taken = locked(&turn);
        let taken = take_snapshot(&from, &disk, label, restore);
        let told = taken.and_then(|(state, install, unread)| {
            let membership = membership(&state);
            let staged = wanted.and(|| {
                disk.stage(install);
                deposit(state);
            });
            if staged { Ok(Received { unread, membership }) } else { Err(SnapshotFault::Unwanted) }
        });
        drop(turn_taken);
        drop(tell.try_send(told));
        drop(keep_alive);
    })?;
    Ok(Intake { pipe, room, done })
}

fn take_snapshot<S: Restore>(
    pipe: &Pipe,
    disk: &DiskHandle,
    label: Zxid,
    restore: S,
) -> Result<(S::State, Install<quorate_storage::Disk>, BytesMut), SnapshotFault> {
    let dirs = disk.dirs();
    // When the disk has answered anything, it has removed what was staged before, under these names.
    disk.newest_snapshot()?;
    let file = SnapshotWriter::receive(quorate_storage::Disk, &dirs.snapshots, label)?;
    let (mut file, mut syncer) = Syncer::start(file)?;
    let taken = take_state(pipe, &mut file, &mut syncer, restore)
        .and_then(|(state, held)| Ok((state, check_signature(pipe, held)?)));
    let synced = syncer.end();
    match taken.and_then(|taken| Ok(synced.map(|()| taken)?)) {
        Ok((state, held)) => {
            let staged = file.finish(Parts::default())?;
            let unread = BytesMut::from(held.unread());
            Ok((state, Install::new(staged, dirs, disk.txn_bytes_max()), unread))
        }
        Err(error) => {
            // What stays behind is removed by the next start.
            drop(file.discard());
            Err(error)
        }
    }
}

/// Takes the state, which goes to the file as it comes; and what came with its end.
fn take_state<S: Restore>(
    pipe: &Pipe,
    file: &mut SnapshotWriter<quorate_storage::Disk>,
    syncer: &mut Syncer,
    mut restore: S,
) -> Result<(S::State, Chunk), SnapshotFault> {
    loop {
        let mut chunk = pipe.take().ok_or(SnapshotFault::Ended)?;
        let mut rest = chunk.unread();
        let whole = push(&mut restore, &mut rest)?;
        let behind = rest.len();
        let taken = &chunk.unread()[..chunk.unread.len() - behind];
        file.write_all(taken)?;
        syncer.wrote(taken.len())?;
        chunk.unread.start = chunk.unread.end - behind;
        match whole {
            Some(state) => return Ok((state, chunk)),
            None => pipe.give_back(chunk),
        }
    }
}

/// Gives bytes to a state that is being made; all of them are taken while it goes on.
pub(crate) fn push<S: Restore>(
    restore: &mut S,
    bytes: &mut &[u8],
) -> Result<Option<S::State>, SnapshotFault> {
    let whole = restore.push(bytes).map_err(SnapshotFault::Restore)?;
    if whole.is_none() && !bytes.is_empty() {
        let reason = "the application takes no more of a state that goes on";
        return Err(SnapshotFault::Restore(reason.into()));
    }
    Ok(whole)
}

/// Reads the signature, from what came with the end of the state; what is behind it.
fn check_signature(pipe: &Pipe, mut held: Chunk) -> Result<Chunk, SnapshotFault> {
    let mut found = [0; SIGNATURE.len()];
    let mut filled = 0;
    while filled < found.len() {
        if held.unread.is_empty() {
            let next = pipe.take().ok_or(SnapshotFault::Unsigned)?;
            pipe.give_back(std::mem::replace(&mut held, next));
        }
        filled += held.read(&mut found[filled..]);
    }
    if found == SIGNATURE { Ok(held) } else { Err(SnapshotFault::Signature(found)) }
}

/// Makes a file durable while it is being written, a part at a time, on a thread of its own: the thread that
/// writes need not wait for that, as long as the disk is not far behind.
struct Syncer {
    /// Parts that are written.
    parts: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
    unsynced: u64,
}

impl Syncer {
    /// Begins; the file's own writer syncs at the end only.
    fn start(
        mut file: SnapshotWriter<quorate_storage::Disk>,
    ) -> io::Result<(SnapshotWriter<quorate_storage::Disk>, Self)> {
        let sync = file.sync_elsewhere();
        // One that is being synced, one that waits, one that is being written.
        let (parts, written) = bounded(1);
        let thread = std::thread::Builder::new().name("quorate-flush".to_owned());
        let thread = thread.stack_size(THREAD_STACK).spawn(move || {
            give_way();
            while written.recv_blocking().is_ok() {
                sync()?;
            }
            Ok(())
        })?;
        Ok((file, Self { parts, thread, unsynced: 0 }))
    }

    /// So many bytes more are written.
    fn wrote(&mut self, bytes: usize) -> io::Result<()> {
        self.unsynced += bytes as u64;
        if self.unsynced < SYNC_BYTES {
            return Ok(());
        }
        self.unsynced = 0;
        // It ends early only if it fails, and says at the end why.
        self.parts.send_blocking(()).map_err(|_| io::Error::other("the disk failed"))
    }

    /// Waits for the end; whether all went well.
    fn end(self) -> io::Result<()> {
        drop(self.parts);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("syncing has panicked")))
    }
}
