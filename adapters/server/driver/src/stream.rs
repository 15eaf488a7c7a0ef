//! What is too long for a queue: a part of the log or a snapshot on its way to a learner, and a
//! snapshot on its way to us.
//!
//! ```text
//!   out:  log, application ── thread ──► at most 1 MiB of pieces ──► link ──► socket
//!   in:   socket ──► link ──► pipe, at most 1 MiB ──► thread ──┬──► application
//!                                                             └──► staged snapshot file ◄── fsync
//! ```
//!
//! Reading and writing files, and turning a state into bytes and back, is the work of threads; a
//! connection moves the bytes. Whoever is slower holds the other up, and nobody gathers more than fits
//! between them. A snapshot on the wire has no frame: only the application knows where it ends, so the
//! link hands over whatever comes and gets back what was not the snapshot's.
//!
//! What this module does not do: it decides neither what to send nor what to do with what has come.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use async_channel::{Receiver, Sender, bounded};
use bytes::{Bytes, BytesMut};
use quorate_application::{Restore, RestoreError, Snapshot};
use quorate_core::input::Unreadable;
use quorate_core::message::Packet;
use quorate_core::output::Form;
use quorate_core::txn::Txn;
use quorate_core::wire;
use quorate_core::zxid::Zxid;
use quorate_storage::LogError;
use quorate_storage::install::Install;
use quorate_storage::snapshot::{
    Digest, Parts, SYNC_BYTES, SnapshotError, SnapshotWriter, StagedSnapshot,
};
use thiserror::Error;

use crate::disk::{DiskHandle, Unread};
use crate::scope::{Hold, THREAD_STACK, give_way};

/// Why a snapshot was not written, not restored, or not taken in.
#[derive(Debug, Error)]
pub(crate) enum SnapshotFault {
    /// Its file.
    #[error(transparent)]
    File(#[from] SnapshotError),
    /// The disk does not answer.
    #[error(transparent)]
    Disk(#[from] Unread),
    /// Where it comes from, or goes to.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is written, and cannot take its place.
    #[error(transparent)]
    Publish(#[from] Arc<LogError>),
    /// What the application says of it.
    #[error("the application cannot restore it: {0}")]
    Restore(#[source] RestoreError),
    #[error("it ends within the state")]
    Ended,
    #[error("it ends before its signature")]
    Unsigned,
    #[error("its signature is {0:02x?}")]
    Signature([u8; SIGNATURE.len()]),
    /// Meanwhile its leader is gone.
    #[error("it is not wanted any more")]
    Unwanted,
    #[error("the application has panicked")]
    Panicked,
}

/// A piece of a stream, or its end.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    End(Result<(), Unreadable>),
}

/// The link's end of something that is sent. Dropping it ends the thread that makes it. If the pieces
/// end without an [`Piece::End`], that thread has panicked.
pub(crate) type Pieces = Receiver<Piece>;

/// Sends SNAP, the state and the signature.
pub(crate) fn send_snapshot(
    label: Zxid,
    memberships: Bytes,
    snapshot: impl Snapshot,
) -> io::Result<Pieces> {
    make("quorate-snap", format!("a snapshot, labelled {label}"), move |out| {
        wire::encode_packet(&Packet::Snap { label, memberships }, &mut out.buffer);
        out.put_state(snapshot)?;
        out.buffer.extend_from_slice(&SIGNATURE);
        Ok(())
    })
}

/// Sends a part of the log.
pub(crate) fn send_log(
    disk: DiskHandle,
    after: Zxid,
    through: Zxid,
    form: Form,
) -> io::Result<Pieces> {
    let what = format!("the log behind {after}, through {through}");
    make("quorate-sync", what, move |out| {
        let mut reader = disk.reader(after, through).map_err(io::Error::other)?;
        while let Some(chunk) = reader.next_chunk(LOG_BYTES).map_err(io::Error::other)? {
            for txn in chunk.txns().filter(|txn| txn.zxid <= through) {
                out.put(txn, form)?;
            }
        }
        Ok(())
    })
}

/// Runs what makes a stream, on a thread.
fn make(
    name: &'static str,
    what: String,
    work: impl FnOnce(&mut PieceWriter) -> io::Result<()> + Send + 'static,
) -> io::Result<Pieces> {
    let (pieces, link) = bounded(PIECES_MAX);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        give_way();
        let mut out = PieceWriter { pieces, buffer: BytesMut::with_capacity(PIECE_BYTES) };
        let done = work(&mut out).and_then(|()| out.flush());
        if let Err(error) = &done {
            if !out.pieces.is_closed() {
                tracing::warn!(%error, what, "cannot read what a learner is to be sent");
            }
        }
        // The link is gone: nobody needs it.
        drop(out.pieces.send_blocking(Piece::End(done.map_err(|_| Unreadable))));
    })?;
    Ok(link)
}

/// Gathers pieces and hands them to the link, waiting while that has enough.
struct PieceWriter {
    pieces: Sender<Piece>,
    buffer: BytesMut,
}

impl PieceWriter {
    fn put(&mut self, txn: Txn, form: Form) -> io::Result<()> {
        let zxid = txn.zxid;
        match form {
            Form::Proposals => wire::encode_packet(&Packet::Proposal(txn), &mut self.buffer),
            Form::Committed => {
                wire::encode_packet(&Packet::Proposal(txn), &mut self.buffer);
                wire::encode_packet(&Packet::Commit(zxid), &mut self.buffer);
            }
            Form::Commits => wire::encode_packet(&Packet::Commit(zxid), &mut self.buffer),
            Form::Informs => wire::encode_packet(&Packet::Inform(txn), &mut self.buffer),
        }
        if self.buffer.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn put_state(&mut self, mut snapshot: impl Snapshot) -> io::Result<()> {
        while snapshot.next(&mut self.buffer).map_err(io::Error::other)? {
            // The application's pieces are as long as it likes.
            while self.buffer.len() >= PIECE_BYTES {
                let piece = self.buffer.split_to(PIECE_BYTES);
                self.send(piece)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.buffer.len() > PIECE_BYTES {
            let piece = self.buffer.split_to(PIECE_BYTES);
            self.send(piece)?;
        }
        let piece = self.buffer.split();
        if piece.is_empty() { Ok(()) } else { self.send(piece) }
    }

    fn send(&mut self, piece: BytesMut) -> io::Result<()> {
        self.buffer.reserve(PIECE_BYTES);
        let piece = Piece::Bytes(piece.freeze());
        self.pieces.send_blocking(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
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

/// Memory in which bytes come in, used again and again.
#[derive(Debug)]
pub(crate) struct Chunk {
    memory: Box<[u8]>,
    /// What is in it and was not read.
    unread: Range<usize>,
}

impl Chunk {
    /// Of no use but to hold these bytes.
    fn of(bytes: &[u8]) -> Self {
        Self { memory: bytes.into(), unread: 0..bytes.len() }
    }

    /// Where bytes may be put; whatever is there is of no interest.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    fn unread(&self) -> &[u8] {
        &self.memory[self.unread.clone()]
    }

    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let read = buffer.len().min(self.unread.len());
        let end = self.unread.start + read;
        buffer[..read].copy_from_slice(&self.memory[self.unread.start..end]);
        self.unread.start = end;
        read
    }
}

/// Bytes from a link to a thread: the link never waits, the thread does.
#[derive(Debug)]
pub(crate) struct Pipe {
    state: Mutex<PipeState>,
    readable: Condvar,
    /// There is room again.
    room: Sender<()>,
}

#[derive(Debug)]
struct PipeState {
    filled: VecDeque<Chunk>,
    spare: Vec<Chunk>,
    /// How many chunks there are not yet.
    unmade: usize,
    closed: bool,
}

impl Pipe {
    fn new() -> (Arc<Self>, Receiver<()>) {
        let (room, roomy) = bounded(1);
        let (filled, spare) = (VecDeque::new(), Vec::new());
        let state = PipeState { filled, spare, unmade: CHUNKS_MAX, closed: false };
        let (state, readable) = (Mutex::new(state), Condvar::new());
        (Arc::new(Self { state, readable, room }), roomy)
    }

    fn locked(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory to be filled, if there is some.
    fn spare(&self) -> Option<Chunk> {
        let mut state = self.locked();
        if let Some(chunk) = state.spare.pop() {
            return Some(chunk);
        }
        state.unmade = state.unmade.checked_sub(1)?;
        drop(state);
        Some(Chunk { memory: vec![0; CHUNK_BYTES].into(), unread: 0..0 })
    }

    fn put(&self, chunk: Chunk) {
        if !chunk.unread.is_empty() {
            self.locked().filled.push_back(chunk);
            self.readable.notify_one();
        }
    }

    /// The next bytes; waits for them. None when nothing will come any more.
    fn take(&self) -> Option<Chunk> {
        let mut state = self.locked();
        while state.filled.is_empty() && !state.closed {
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.filled.pop_front()
    }

    /// What was read may be filled again.
    fn give_back(&self, chunk: Chunk) {
        if chunk.memory.len() == CHUNK_BYTES {
            self.locked().spare.push(chunk);
            let _ = self.room.try_send(());
        }
    }

    fn close(&self) {
        self.locked().closed = true;
        self.readable.notify_one();
    }
}

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
    /// Hands over bytes that are elsewhere, say because nobody knew yet what they were.
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
        for chunk in std::mem::take(&mut self.pipe.locked().filled) {
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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Does something unless it is not wanted; returns whether it is.
    fn and(&self, act: impl FnOnce()) -> bool {
        let wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(crate) hold: Hold,
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
        let Reception { label, disk, wanted, turn, restore, membership, deposit, hold } = reception;
        let turn_taken = turn.lock().unwrap_or_else(PoisonError::into_inner);
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
        drop(hold);
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

/// Makes a file durable while it is being written, a part at a time, on a thread of its own: whoever
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

/// Tells threads that write files to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
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

/// Writes a snapshot of our own state to disk, on a thread, and then calls `done`, whatever came of it.
pub(crate) fn save(
    label: Zxid,
    snapshot: impl Snapshot,
    disk: DiskHandle,
    stop: Stop,
    hold: Hold,
    done: impl FnOnce(Result<(), SnapshotFault>) + Send + 'static,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("quorate-save".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        give_way();
        let written = catch_unwind(AssertUnwindSafe(|| write_file(label, snapshot, &disk, &stop)));
        match written.unwrap_or_else(|_| Err(SnapshotFault::Panicked)) {
            Ok(staged) => {
                disk.publish(staged, move |published| {
                    done(published.map_err(SnapshotFault::from));
                });
            }
            Err(error) => done(Err(error)),
        }
        drop(hold);
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

/// The end of a snapshot on the wire: the string `BenWasHere`.
const SIGNATURE: [u8; 14] = *b"\0\0\0\x0aBenWasHere";
/// How much is handed over at a time. A little less than what allocators ask the system for each time.
const PIECE_BYTES: usize = 120 << 10;
/// How many pieces wait: with the one being made, the one being written and what an application gathers
/// before it writes, less than 1 MiB.
const PIECES_MAX: usize = 4;
/// How much of the log is read at a time.
const LOG_BYTES: usize = 256 << 10;
/// How much is read from a socket at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// How many chunks may wait to be restored: 1 MiB.
const CHUNKS_MAX: usize = 4;
/// The version of ZooKeeper's digest.
const DIGEST_VERSION: i32 = 2;
/// Here an application's code runs.
pub(crate) const APPLICATION_STACK: usize = 4 * THREAD_STACK;

#[cfg(test)]
pub(crate) mod tests {
    use quorate_storage::segments::Roll;
    use quorate_storage::{Log, OpenOptions};
    use tempfile::TempDir;

    use super::*;
    use crate::disk::{Disk, Kept, Retain};

    /// A disk with an empty history.
    pub(crate) fn disk() -> (Disk, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), OpenOptions::default()).unwrap();
        let path = log.dirs().snapshots.clone();
        let mut first = SnapshotWriter::take(quorate_storage::Disk, &path, Zxid::ZERO).unwrap();
        first.write_all(&[0; 8]).unwrap();
        log.begin_with(first.finish(Parts::default()).unwrap()).unwrap();
        let retain = Retain { snapshots: 3, roll: Roll::default() };
        let kept = Kept::new(dir.path(), None, None);
        (Disk::start(log, kept, retain, std::time::Duration::MAX, ()).unwrap(), dir)
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
            hold: Hold::idle(),
        };
        (receive(reception).unwrap(), restored)
    }

    /// So many bytes, in pieces of odd length.
    struct Bulk {
        length: usize,
        written: usize,
    }

    impl Bulk {
        fn new(length: usize) -> Self {
            Self { length, written: 0 }
        }
    }

    impl Snapshot for Bulk {
        fn next(&mut self, out: &mut BytesMut) -> Result<bool, quorate_application::SnapshotError> {
            let through = self.length.min(self.written + 50_001);
            out.extend((self.written..through).map(|at| at.to_be_bytes()[7]));
            self.written = through;
            Ok(through < self.length)
        }
    }

    fn gathered(pieces: &Pieces) -> (Vec<u8>, Option<Result<(), Unreadable>>) {
        let mut bytes = Vec::new();
        while let Ok(piece) = pieces.recv_blocking() {
            match piece {
                Piece::Bytes(piece) => {
                    assert!(piece.len() <= PIECE_BYTES);
                    bytes.extend_from_slice(&piece);
                }
                Piece::End(outcome) => return (bytes, Some(outcome)),
            }
        }
        (bytes, None)
    }

    #[test]
    fn a_snapshot_goes_out_behind_its_packet_and_before_its_signature() {
        for length in [0, 1, PIECE_BYTES, 5 * PIECE_BYTES + 3] {
            let bulk = Bulk::new(length);
            let pieces = send_snapshot(Zxid(0x5_0000_0007), Bytes::new(), bulk).unwrap();
            let mut expected = BytesMut::new();
            wire::encode_packet(&Packet::snap(Zxid(0x5_0000_0007)), &mut expected);
            let mut body = Vec::new();
            write_state(Bulk::new(length), &mut body).unwrap();
            expected.extend_from_slice(&body);
            expected.extend_from_slice(b"\0\0\0\x0aBenWasHere");
            let (bytes, outcome) = gathered(&pieces);
            assert!(bytes == expected, "{length}");
            assert_eq!(outcome, Some(Ok(())));
        }
    }

    #[test]
    fn a_learner_that_does_not_read_costs_a_few_pieces_and_its_end_ends_the_thread() {
        /// Says, when it is dropped, how much was written of it.
        struct Endless(usize, Sender<usize>);
        impl Snapshot for Endless {
            fn next(
                &mut self,
                out: &mut BytesMut,
            ) -> Result<bool, quorate_application::SnapshotError> {
                out.extend_from_slice(&[0; 4096]);
                self.0 += 4096;
                Ok(true)
            }
        }
        impl Drop for Endless {
            fn drop(&mut self) {
                self.1.send_blocking(self.0).unwrap();
            }
        }
        let (sender, written) = bounded(1);
        let pieces = send_snapshot(Zxid(1), Bytes::new(), Endless(0, sender)).unwrap();
        while pieces.len() < PIECES_MAX {
            std::thread::yield_now();
        }
        drop(pieces);
        let written = written.recv_blocking().unwrap();
        assert!(written <= (PIECES_MAX + 2) * PIECE_BYTES, "{written}");
    }

    #[test]
    fn what_cannot_be_written_is_said_and_so_is_a_panic() {
        struct Broken(bool);
        impl Snapshot for Broken {
            fn next(
                &mut self,
                _: &mut BytesMut,
            ) -> Result<bool, quorate_application::SnapshotError> {
                assert!(!self.0, "as asked for");
                Err("broken".into())
            }
        }
        let outcome = |broken| gathered(&send_snapshot(Zxid(1), Bytes::new(), broken).unwrap()).1;
        assert_eq!(outcome(Broken(false)), Some(Err(Unreadable)));
        assert_eq!(outcome(Broken(true)), None);
    }

    #[test]
    fn a_pipe_tells_when_it_is_full_and_when_it_is_not() {
        let (pipe, room) = Pipe::new();
        pipe.put(Chunk::of(&[7; 3]));
        for nth in 0..CHUNKS_MAX {
            let chunk = pipe.spare().unwrap();
            pipe.put(Chunk { unread: 0..nth + 1, ..chunk });
        }
        assert!(pipe.spare().is_none() && room.is_empty());
        let mut lengths = Vec::new();
        for _ in 0..=CHUNKS_MAX {
            let chunk = pipe.take().unwrap();
            lengths.push(chunk.unread().len());
            pipe.give_back(chunk);
        }
        assert_eq!((lengths, room.len()), (vec![3, 1, 2, 3, 4], 1));
        assert!((0..CHUNKS_MAX).all(|_| pipe.spare().is_some()) && pipe.spare().is_none());
        pipe.close();
        assert!(pipe.take().is_none());
    }
}
