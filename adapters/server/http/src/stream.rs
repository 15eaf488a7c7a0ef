//! The streams of the driver, as hyper reads and writes them.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Write};

/// A stream of a runtime.
#[derive(Debug)]
pub(crate) struct HyperStream<S>(pub(crate) S);

thread_local! {
    /// Where a read puts what has come, before hyper takes it.
    static PIECE: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE_BYTES]);
}

impl<S: AsyncRead + Unpin> Read for HyperStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        PIECE.with_borrow_mut(|piece| {
            let room = buf.remaining().min(piece.len());
            let read = ready!(Pin::new(&mut self.0).poll_read(context, &mut piece[..room]))?;
            buf.put_slice(piece.get(..read).unwrap_or_default());
            Poll::Ready(Ok(()))
        })
    }
}

impl<S: AsyncWrite + Unpin> Write for HyperStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(context)
    }
}

/// How much is read at once.
const PIECE_BYTES: usize = 8 << 10;
