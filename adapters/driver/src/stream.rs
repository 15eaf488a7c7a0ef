//! What is too long for a queue: a part of the log or a snapshot on its way to a learner, and a
//! snapshot on its way to us.
//!
//! ```text
//!   out:  log, application ── thread ──► at most 1 MiB of pieces ──► link ──► socket
//!   in:   socket ──► link ──► pipe, at most 1 MiB ──► thread ──┬──► application
//!                                                             └──► staged snapshot file
//! ```
//!
//! Reading and writing files, and turning a state into bytes and back, is the work of threads; a
//! connection moves the bytes. Whoever is slower holds the other up, and nobody gathers more than fits
//! between them. A snapshot on the wire has no frame: only the application knows where it ends, so the
//! link hands over whatever comes and gets back what was not the snapshot's.
//!
//! What this module does not do: it decides neither what to send nor what to do with what has come.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use async_channel::{Receiver, Sender, bounded};
use bytes::{Buf, Bytes, BytesMut};
use quorate_core::input::Unreadable;
use quorate_core::message::Packet;
use quorate_core::output::Form;
use quorate_core::txn::Txn;
use quorate_core::wire;
use quorate_core::zxid::Zxid;
use quorate_log::install::Install;
use quorate_log::snapshot::{Digest, Parts, SnapshotWriter, StagedSnapshot};

use crate::application::{RestoreError, Snapshot};
use crate::disk::DiskHandle;
use crate::scope::{Hold, THREAD_STACK};

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
pub(crate) fn send_snapshot(label: Zxid, snapshot: impl Snapshot) -> io::Result<Pieces> {
    make("quorate-snap", move |out| {
        wire::encode_packet(&Packet::Snap(label), &mut out.buffer);
        snapshot.write(out)?;
        out.write_all(&SIGNATURE)
    })
}

/// Sends a part of the log.
pub(crate) fn send_log(
    disk: DiskHandle,
    after: Zxid,
    through: Zxid,
    form: Form,
) -> io::Result<Pieces> {
    make("quorate-sync", move |out| {
        let mut reader = disk.reader(after, through).map_err(io::Error::other)?;
        while let Some(chunk) = reader.next_chunk(PIECE_BYTES).map_err(io::Error::other)? {
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
    work: impl FnOnce(&mut PieceWriter) -> io::Result<()> + Send + 'static,
) -> io::Result<Pieces> {
    let (pieces, link) = bounded(PIECES_MAX);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        let mut out = PieceWriter { pieces, buffer: BytesMut::new() };
        let done = work(&mut out).and_then(|()| out.flush());
        if let Err(error) = &done {
            if !out.pieces.is_closed() {
                tracing::warn!(%error, "cannot read what a learner is to be sent");
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
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= PIECE_BYTES {
            self.flush()?;
        }
        let bytes = &bytes[..bytes.len().min(PIECE_BYTES)];
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = Piece::Bytes(self.buffer.split().freeze());
        self.buffer.reserve(PIECE_BYTES);
        self.pieces.send_blocking(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
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

#[derive(Debug, Default)]
struct PipeState {
    bytes: BytesMut,
    closed: bool,
}

impl Pipe {
    fn new() -> (Arc<Self>, Receiver<()>) {
        let (room, roomy) = bounded(1);
        let (state, readable) = (Mutex::default(), Condvar::new());
        (Arc::new(Self { state, readable, room }), roomy)
    }

    fn locked(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, bytes: &[u8]) -> bool {
        let mut state = self.locked();
        state.bytes.extend_from_slice(bytes);
        let room = state.bytes.len() < PIPE_BYTES;
        drop(state);
        self.readable.notify_one();
        room
    }

    /// Everything that is there; waits for something. Empty when nothing will come any more.
    fn take(&self) -> BytesMut {
        let mut state = self.locked();
        while state.bytes.is_empty() && !state.closed {
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let bytes = state.bytes.split();
        drop(state);
        let _ = self.room.try_send(());
        bytes
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
    done: Receiver<Result<Bytes, String>>,
}

impl Intake {
    /// Hands bytes over; returns whether there is room for more.
    pub(crate) fn put(&self, bytes: &[u8]) -> bool {
        self.pipe.put(bytes)
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.pipe.close();
    }

    /// Waits until there is room, or may be.
    pub(crate) async fn room(&self) {
        let _ = self.room.recv().await;
    }

    /// Waits for the end: whether the snapshot is whole and staged, and if so, what was not taken.
    pub(crate) async fn done(&self) -> Result<BytesMut, String> {
        let unread = self.done.recv().await.map_err(|_| "restoring has panicked".to_owned())??;
        let mut unread = BytesMut::from(unread);
        unread.unsplit(std::mem::take(&mut self.pipe.locked().bytes));
        Ok(unread)
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
pub(crate) struct Reception<S> {
    pub(crate) label: Zxid,
    pub(crate) disk: DiskHandle,
    pub(crate) wanted: Arc<Wanted>,
    /// Held by one reception at a time: an earlier one removes its files first.
    pub(crate) turn: Arc<Mutex<()>>,
    /// The application's part.
    pub(crate) restore: fn(Zxid, &mut dyn Read) -> Result<S, RestoreError>,
    /// Where the state goes when the snapshot is whole, before anybody is told.
    pub(crate) deposit: Box<dyn FnOnce(S) + Send>,
    pub(crate) hold: Hold,
}

/// Begins to receive a snapshot: bytes go into the [`Intake`], and a thread restores them, writes them
/// to the staged file and checks the signature.
pub(crate) fn receive<S: Send + 'static>(reception: Reception<S>) -> io::Result<Intake> {
    let (pipe, room) = Pipe::new();
    let (tell, done) = bounded(1);
    let from = Arc::clone(&pipe);
    let thread = std::thread::Builder::new().name("quorate-restore".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        let Reception { label, disk, wanted, turn, restore, deposit, hold } = reception;
        let turn_taken = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = take_snapshot(&from, &disk, label, restore);
        let told = taken.and_then(|(state, install, unread)| {
            let staged = wanted.and(|| {
                disk.stage(install);
                deposit(state);
            });
            if staged { Ok(unread) } else { Err("it is not wanted any more".to_owned()) }
        });
        drop(turn_taken);
        drop(tell.try_send(told));
        drop(hold);
    })?;
    Ok(Intake { pipe, room, done })
}

fn take_snapshot<S>(
    pipe: &Pipe,
    disk: &DiskHandle,
    label: Zxid,
    restore: fn(Zxid, &mut dyn Read) -> Result<S, RestoreError>,
) -> Result<(S, Install<quorate_log::Disk>, Bytes), String> {
    let dirs = disk.dirs();
    // When the disk has answered anything, it has removed what was staged before, under these names.
    disk.newest_snapshot().map_err(|error| error.to_string())?;
    let file = SnapshotWriter::receive(quorate_log::Disk, &dirs.snapshots, label);
    let file = file.map_err(|error| error.to_string())?;
    let mut tee = Tee { pipe, held: Bytes::new(), read: 0, file };
    let restored = restore(label, &mut tee)
        .map_err(|error| format!("the application cannot restore it: {error}"))
        .and_then(|state| tee.check_signature().map(|()| state));
    let Tee { held, file, .. } = tee;
    match restored {
        Ok(state) => {
            let staged = file.finish(Parts::default());
            let staged = staged.map_err(|error| error.to_string())?;
            Ok((state, Install::new(staged, dirs, disk.txn_bytes_max()), held))
        }
        Err(error) => {
            // What stays behind is removed by the next start.
            drop(file.discard());
            Err(error)
        }
    }
}

/// Reads from a pipe, and writes to a file what was read.
struct Tee<'a> {
    pipe: &'a Pipe,
    held: Bytes,
    /// How many bytes at the front of `held` were read; they are written to the file together.
    read: usize,
    file: SnapshotWriter<quorate_log::Disk>,
}

impl Tee<'_> {
    /// What was read goes to the file.
    fn copy(&mut self) -> io::Result<()> {
        let read = self.held.split_to(std::mem::take(&mut self.read));
        self.file.write_all(&read)
    }

    fn check_signature(&mut self) -> Result<(), String> {
        self.copy().map_err(|error| error.to_string())?;
        let mut found = [0; SIGNATURE.len()];
        let mut filled = 0;
        while filled < found.len() {
            if self.held.is_empty() {
                self.held = self.pipe.take().freeze();
                if self.held.is_empty() {
                    return Err("it ends before its signature".to_owned());
                }
            }
            let some = self.held.len().min(found.len() - filled);
            self.held.copy_to_slice(&mut found[filled..filled + some]);
            filled += some;
        }
        if found == SIGNATURE { Ok(()) } else { Err(format!("its signature is {found:02x?}")) }
    }
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.held.len() {
            self.copy()?;
            self.held = self.pipe.take().freeze();
        }
        let read = (&self.held[self.read..]).read(buffer)?;
        self.read += read;
        Ok(read)
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
    done: impl FnOnce(Result<(), String>) + Send + 'static,
) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("quorate-save".to_owned());
    thread.stack_size(APPLICATION_STACK).spawn(move || {
        let written = catch_unwind(AssertUnwindSafe(|| write_file(label, snapshot, &disk, &stop)));
        match written.unwrap_or_else(|_| Err("the application has panicked".to_owned())) {
            Ok(staged) => {
                disk.publish(staged, move |published| {
                    done(published.map_err(|error| error.to_string()));
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
) -> Result<StagedSnapshot<quorate_log::Disk>, String> {
    let digest = snapshot.digest().map(|digest| Digest {
        zxid: label,
        version: DIGEST_VERSION,
        digest: i64::from_be_bytes(digest.to_be_bytes()),
    });
    let file = SnapshotWriter::take(quorate_log::Disk, &disk.dirs().snapshots, label);
    let mut file = file.map_err(|error| error.to_string())?;
    if let Err(error) = snapshot.write(&mut Stoppable { to: &mut file, stop }) {
        // What stays behind is removed by the next start.
        drop(file.discard());
        return Err(error.to_string());
    }
    file.finish(Parts { digest, last_zxid: None }).map_err(|error| error.to_string())
}

/// The end of a snapshot on the wire: the string `BenWasHere`.
const SIGNATURE: [u8; 14] = *b"\0\0\0\x0aBenWasHere";
/// How much is read and handed over at a time.
const PIECE_BYTES: usize = 256 << 10;
/// How many pieces wait: with the one being made and the one being written, 1 MiB.
const PIECES_MAX: usize = 2;
/// How much may wait to be restored.
const PIPE_BYTES: usize = 1 << 20;
/// The version of ZooKeeper's digest.
const DIGEST_VERSION: i32 = 2;
/// Here an application's code runs.
pub(crate) const APPLICATION_STACK: usize = 4 * THREAD_STACK;

#[cfg(test)]
pub(crate) mod tests {
    use quorate_log::history::Roll;
    use quorate_log::{Log, OpenOptions};
    use tempfile::TempDir;

    use super::*;
    use crate::disk::{Disk, Kept, Retain};

    /// A disk with an empty history.
    pub(crate) fn disk() -> (Disk, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(dir.path(), OpenOptions::default()).unwrap();
        let path = log.dirs().snapshots.clone();
        let mut first = SnapshotWriter::take(quorate_log::Disk, &path, Zxid::ZERO).unwrap();
        first.write_all(&[0; 8]).unwrap();
        log.begin_with(first.finish(Parts::default()).unwrap()).unwrap();
        let retain = Retain { snapshots: 3, roll: Roll::default() };
        (Disk::start(log, Kept::default(), retain, ()).unwrap(), dir)
    }

    /// Begins to receive a snapshot whose body is its length as eight bytes, and so many more.
    pub(crate) fn reception(label: Zxid, disk: &Disk) -> (Intake, Arc<Mutex<Vec<usize>>>) {
        fn restore(_: Zxid, from: &mut dyn Read) -> Result<usize, RestoreError> {
            let mut length = [0; 8];
            from.read_exact(&mut length)?;
            let length = usize::from_be_bytes(length);
            let mut bytes = vec![0; length];
            from.read_exact(&mut bytes)?;
            if bytes.contains(&1) { Err("a one".into()) } else { Ok(length) }
        }
        let restored = Arc::new(Mutex::new(Vec::new()));
        let place = Arc::clone(&restored);
        let reception = Reception {
            label,
            disk: disk.handle(),
            wanted: Wanted::new(),
            turn: Arc::default(),
            restore,
            deposit: Box::new(move |length| place.lock().unwrap().push(length)),
            hold: Hold::idle(),
        };
        (receive(reception).unwrap(), restored)
    }

    /// So many bytes, in pieces of odd length.
    struct Bulk(usize);

    impl Snapshot for Bulk {
        fn write(self, to: &mut dyn Write) -> io::Result<()> {
            for at in 0..self.0 {
                to.write_all(&[at.to_be_bytes()[7]; 1][..])?;
            }
            Ok(())
        }
    }

    fn gathered(pieces: &Pieces) -> (Vec<u8>, Option<Result<(), Unreadable>>) {
        let mut bytes = Vec::new();
        while let Ok(piece) = pieces.recv_blocking() {
            match piece {
                Piece::Bytes(piece) => {
                    assert!(piece.len() <= 2 * PIECE_BYTES);
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
            let pieces = send_snapshot(Zxid(0x5_0000_0007), Bulk(length)).unwrap();
            let mut expected = BytesMut::new();
            wire::encode_packet(&Packet::Snap(Zxid(0x5_0000_0007)), &mut expected);
            let mut body = Vec::new();
            Bulk(length).write(&mut body).unwrap();
            expected.extend_from_slice(&body);
            expected.extend_from_slice(b"\0\0\0\x0aBenWasHere");
            let (bytes, outcome) = gathered(&pieces);
            assert!(bytes == expected, "{length}");
            assert_eq!(outcome, Some(Ok(())));
        }
    }

    #[test]
    fn a_learner_that_does_not_read_costs_a_few_pieces_and_its_end_ends_the_thread() {
        struct Endless(Sender<usize>);
        impl Snapshot for Endless {
            fn write(self, to: &mut dyn Write) -> io::Result<()> {
                let mut written = 0;
                let error = loop {
                    match to.write_all(&[0; 4096]) {
                        Ok(()) => written += 4096,
                        Err(error) => break error,
                    }
                };
                self.0.send_blocking(written).map_err(io::Error::other)?;
                Err(error)
            }
        }
        let (sender, written) = bounded(1);
        let pieces = send_snapshot(Zxid(1), Endless(sender)).unwrap();
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
            fn write(self, _: &mut dyn Write) -> io::Result<()> {
                assert!(!self.0, "as asked for");
                Err(io::Error::other("broken"))
            }
        }
        let outcome = |broken| gathered(&send_snapshot(Zxid(1), broken).unwrap()).1;
        assert_eq!(outcome(Broken(false)), Some(Err(Unreadable)));
        assert_eq!(outcome(Broken(true)), None);
    }

    #[test]
    fn a_pipe_tells_when_it_is_full_and_when_it_is_not() {
        let (pipe, room) = Pipe::new();
        assert!(pipe.put(&[1; PIPE_BYTES - 1]));
        assert!(!pipe.put(&[2]));
        assert!(room.is_empty());
        assert_eq!(pipe.take().len(), PIPE_BYTES);
        assert_eq!(room.len(), 1);
        pipe.close();
        assert!(pipe.take().is_empty());
    }
}
