//! A connection of which something was read already: to find out what it speaks, or because much is coming.
//!
//! rustls reads 4 KiB at a time. The system is asked for more at once: between servers always, of a client while more than that is
//! there.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use futures_io::{AsyncRead, AsyncWrite};
use quorate_tls::Records;

use crate::net::secure_links::Passed;

/// A connection, and what comes before its next byte. The records of TLS in it are counted.
#[derive(Debug)]
pub(crate) struct Replayed<S> {
    before: Before,
    /// Whether its memory stays while nothing comes.
    keeps: bool,
    stream: S,
    read: Records,
    written: Records,
    passed: Arc<Passed>,
    /// How many may pass in one direction, if its cipher does not set less.
    pub(super) records_max: u64,
}

/// What was read and is still to be taken.
#[derive(Debug, Default)]
struct Before {
    bytes: Vec<u8>,
    rest: Range<usize>,
    /// Whether there was more to read than was asked for.
    much: bool,
}

impl Before {
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let taken = self.rest.len().min(buffer.len());
        let end = self.rest.start + taken;
        buffer[..taken].copy_from_slice(&self.bytes[self.rest.start..end]);
        self.rest.start = end;
        taken
    }
}

impl<S> Replayed<S> {
    pub(super) const fn inner(&self) -> &S {
        &self.stream
    }

    /// Between servers: there are few, and what comes is read at once.
    pub(super) fn of_server(before: BytesMut, stream: S, records_max: u64) -> Self {
        Self { keeps: true, ..Self::of_client(before, stream, records_max) }
    }

    /// Of a client: there may be ten thousand, of which most are silent.
    pub(super) fn of_client(before: BytesMut, stream: S, records_max: u64) -> Self {
        let (read, written) = (Records::default(), Records::default());
        let before = Before { rest: 0..before.len(), bytes: before.to_vec(), much: false };
        Self { before, keeps: false, stream, read, written, passed: Arc::default(), records_max }
    }

    /// The connection beneath.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// How many records have passed.
    pub(super) const fn passed(&self) -> &Arc<Passed> {
        &self.passed
    }

    fn has_read(&mut self, bytes: &[u8]) {
        self.read.pass(bytes);
        self.passed.read.store(self.read.count(), Ordering::Relaxed);
    }

    fn has_written<'b>(&mut self, pieces: impl IntoIterator<Item = &'b [u8]>, written: usize) {
        let mut left = written;
        for piece in pieces {
            let most = left.min(piece.len());
            self.written.pass(&piece[..most]);
            left -= most;
        }
        self.passed.written.store(self.written.count(), Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> Replayed<S> {
    /// Ready when it is worth while to read. A link is asked for what has come whenever it has something to write, too, and
    /// for TLS to find that there is nothing takes longer than to look here.
    pub(super) fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.keeps || !self.before.rest.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.before.bytes.resize(READ_AHEAD_BYTES, 0);
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut self.before.bytes))?;
        self.before.rest = 0..read;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Replayed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.before.rest.is_empty() {
            if !this.keeps && !this.before.much {
                // What waits holds no memory.
                this.before = Before::default();
                let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
                if let Poll::Ready(Ok(read)) = polled {
                    this.before.much = read == buffer.len();
                    this.has_read(&buffer[..read]);
                }
                return polled;
            }
            this.before.bytes.resize(READ_AHEAD_BYTES, 0);
            let polled = Pin::new(&mut this.stream).poll_read(cx, &mut this.before.bytes);
            let Poll::Ready(Ok(read)) = polled else {
                if !this.keeps {
                    this.before = Before::default();
                }
                return polled;
            };
            this.before.rest = 0..read;
            this.before.much = read > buffer.len();
        }
        let taken = this.before.take(buffer);
        this.has_read(&buffer[..taken]);
        Poll::Ready(Ok(taken))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Replayed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            self.has_written([bytes], written);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // For one piece the system has a shorter way.
        if let [piece] = pieces {
            return self.poll_write(cx, piece);
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        if let Poll::Ready(Ok(written)) = polled {
            self.has_written(pieces.iter().map(|piece| &**piece), written);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

/// How much is read at once while much is coming: four of the longest records.
const READ_AHEAD_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use futures_lite::future::{block_on, poll_fn, poll_once};
    use futures_lite::io::AsyncReadExt;

    use super::*;

    /// Bytes that count up, `each` at a time; then silence.
    struct Counting {
        next: usize,
        end: usize,
        each: usize,
        reads: usize,
    }

    impl AsyncRead for Counting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            let most = self.each.min(buffer.len()).min(self.end - self.next);
            if most == 0 {
                return Poll::Pending;
            }
            for byte in &mut buffer[..most] {
                *byte = self.next.to_le_bytes()[0] ^ self.next.to_le_bytes()[1];
                self.next += 1;
            }
            self.reads += 1;
            Poll::Ready(Ok(most))
        }
    }

    #[test]
    fn what_comes_fast_is_read_in_few_pieces_and_a_client_that_waits_holds_no_memory() {
        const ALL: usize = 1 << 20;
        for (each, reads_max) in [(ALL, ALL / READ_AHEAD_BYTES + 1), (5000, 300), (4096, 256)] {
            let mut all = vec![0; ALL];
            let whole = Counting { next: 0, end: ALL, each: ALL, reads: 0 };
            let mut whole = Replayed::of_server(BytesMut::new(), whole, u64::MAX);
            block_on(whole.read_exact(&mut all)).unwrap();

            for keeps in [false, true] {
                let stream = Counting { next: 100, end: ALL, each, reads: 0 };
                let mut stream = Replayed::of_client(all[..100].into(), stream, u64::MAX);
                stream.keeps = keeps;
                let mut read = Vec::new();
                let mut piece = [0; 4096];
                while let Some(taken) = block_on(poll_once(stream.read(&mut piece))) {
                    read.extend_from_slice(&piece[..taken.unwrap()]);
                }
                assert!(read == all, "{each}: {} bytes, or others", read.len());
                assert!(stream.stream.reads <= reads_max, "{each}: {} reads", stream.stream.reads);
                let held = if keeps { READ_AHEAD_BYTES } else { 0 };
                assert_eq!(stream.before.bytes.capacity(), held, "{each}");
            }
        }
    }

    #[test]
    fn whether_something_has_come_from_a_server_is_seen_by_one_read_that_is_not_lost() {
        let stream = Counting { next: 0, end: 5000, each: 5000, reads: 0 };
        let mut stream = Replayed::of_server(b"ab"[..].into(), stream, u64::MAX);
        let arrival = |stream: &mut Replayed<_>| {
            block_on(poll_once(poll_fn(|cx| stream.poll_arrival(cx)))).map(Result::unwrap)
        };
        assert_eq!(
            (arrival(&mut stream), stream.stream.reads),
            (Some(()), 0),
            "what was read before"
        );
        let mut piece = [0; 4096];
        assert_eq!(block_on(stream.read(&mut piece)).unwrap(), 2);
        for _ in 0..2 {
            assert_eq!((arrival(&mut stream), stream.stream.reads), (Some(()), 1));
        }
        for length in [4096, 904] {
            assert_eq!(block_on(stream.read(&mut piece)).unwrap(), length);
        }
        assert_eq!((arrival(&mut stream), stream.stream.reads), (None, 1), "nothing has come");
    }
}
