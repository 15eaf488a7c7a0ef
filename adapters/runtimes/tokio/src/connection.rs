//! A connection of tokio as `futures-io` names it.
//!
//! `tokio-util` has such a type; this one also writes several pieces at once, which is how TLS gives what it made of a
//! burst: in records of 16 KiB each.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection.
#[derive(Debug)]
pub struct Connection(pub(crate) TcpStream);

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, pieces)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn several_pieces_are_written_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (stream, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (mut writer, mut reader) =
            (Connection(stream.unwrap()), Connection(accepted.unwrap().0));
        let pieces = [IoSlice::new(b"of one"), IoSlice::new(b" burst")];
        let written = poll_fn(|cx| Pin::new(&mut writer).poll_write_vectored(cx, &pieces)).await;
        assert_eq!(written.unwrap(), 12);
        poll_fn(|cx| Pin::new(&mut writer).poll_close(cx)).await.unwrap();
        let mut read = Vec::new();
        let mut buffer = [0; 64];
        loop {
            let some =
                poll_fn(|cx| Pin::new(&mut reader).poll_read(cx, &mut buffer)).await.unwrap();
            if some == 0 {
                break;
            }
            read.extend_from_slice(&buffer[..some]);
        }
        assert_eq!(read, b"of one burst");
    }
}
