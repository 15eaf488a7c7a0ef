//! What is too long for a queue, on its way to a learner: a snapshot, or a part of the log.
//!
//! ```text
//!   log, application ── thread ──► at most 1 MiB of pieces ──► link ──► socket
//! ```
//!
//! Reading files and turning a state into bytes is the work of threads; a connection moves the bytes. The slower of the
//! two holds the other up.

use std::io;

use async_channel::{Receiver, Sender, bounded};
use bytes::{Bytes, BytesMut};
use quorate_application::Snapshot;
use quorate_core::input::Unreadable;
use quorate_core::message::Packet;
use quorate_core::output::Form;
use quorate_core::txn::Txn;
use quorate_core::wire;
use quorate_core::zxid::Zxid;

use crate::disk::handle::DiskHandle;
use crate::threads::{APPLICATION_STACK, give_way};

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
                tracing::warn!(event = "log.unreadable", %error, what, "cannot read what a learner is to be sent");
            }
        }
        // If this fails, the link is gone: no receiver needs it.
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

/// The end of a snapshot on the wire: the string `BenWasHere`.
pub(super) const SIGNATURE: [u8; 14] = *b"\0\0\0\x0aBenWasHere";
/// How much is handed over at a time. A little less than what allocators ask the system for each time.
pub(super) const PIECE_BYTES: usize = 120 << 10;
/// How many pieces wait: with the one being made, the one being written and what an application gathers
/// before it writes, less than 1 MiB.
const PIECES_MAX: usize = 4;
/// How much of the log is read at a time.
const LOG_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::save::write_state;

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
}
