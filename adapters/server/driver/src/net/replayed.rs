//! A connection of which something was read already, to find out what it speaks.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use futures_io::{AsyncRead, AsyncWrite};
use quorate_tls::Records;

use crate::net::secure_links::Passed;

/// A connection, and what comes before its next byte. The records of TLS in it are counted.
#[derive(Debug)]
pub(crate) struct Replayed<S> {
    before: BytesMut,
    stream: S,
    read: Records,
    written: Records,
    passed: Arc<Passed>,
    /// How many may pass in one direction, if its cipher does not set less.
    pub(super) records_max: u64,
}

impl<S> Replayed<S> {
    pub(super) fn new(before: BytesMut, stream: S, records_max: u64) -> Self {
        let (read, written) = (Records::default(), Records::default());
        Self { before, stream, read, written, passed: Arc::default(), records_max }
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

impl<S: AsyncRead + Unpin> AsyncRead for Replayed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.before.is_empty() {
            let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
            if let Poll::Ready(Ok(read)) = polled {
                this.has_read(&buffer[..read]);
            }
            return polled;
        }
        let most = this.before.len().min(buffer.len());
        buffer[..most].copy_from_slice(&this.before[..most]);
        this.before.advance(most);
        this.has_read(&buffer[..most]);
        Poll::Ready(Ok(most))
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
