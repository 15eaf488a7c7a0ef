//! The bytes of a connection, between servers or of a client, with TLS around them or without.
//!
//! Everything above is the same for both: what is framed, queued and counted does not know which it is.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};
#[cfg(feature = "tls")]
use {
    crate::net::replayed::Replayed, crate::net::secure_links::SecureLink,
    futures_rustls::TlsStream, futures_rustls::rustls::SupportedCipherSuite,
    quorate_core::id::ServerId, quorate_core::input::Plane, quorate_tls::end_of,
    std::net::SocketAddr, std::sync::Arc, std::task::ready,
};

/// A connection between servers, or of a client.
#[derive(Debug)]
pub(crate) enum Wire<S> {
    /// A host on the way reads it, and may change it.
    Plain(S),
    /// No host on the way reads or changes it.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<Replayed<S>>>),
}

impl<S> Wire<S> {
    /// Whether there is TLS around it.
    pub(crate) const fn is_secure(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(_) => true,
        }
    }

    /// The connection beneath.
    pub(crate) fn inner(&self) -> &S {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.get_ref().0.inner(),
        }
    }

    /// The connection beneath, alone.
    pub(crate) fn into_inner(self) -> S {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => match *stream {
                TlsStream::Client(stream) => stream.into_inner().0.into_inner(),
                TlsStream::Server(stream) => stream.into_inner().0.into_inner(),
            },
        }
    }
}

#[cfg(feature = "tls")]
impl<S> Wire<S> {
    /// What counts of a link over this connection while it is up; none without TLS.
    pub(super) fn secure_link(
        &self,
        (plane, dialled, remote): (Plane, bool, SocketAddr),
        peer: Option<ServerId>,
    ) -> Option<SecureLink> {
        let Self::Tls(stream) = self else { return None };
        let (stream, state) = stream.get_ref();
        let shown = state.peer_certificates().unwrap_or_default();
        let certificates: Arc<[_]> =
            shown.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let ends = certificates.first().and_then(end_of).unwrap_or(i64::MAX);
        // TLS 1.3 changes its keys by itself, and so those of ChaCha20 are good for ever.
        let of_cipher = match state.negotiated_cipher_suite() {
            Some(SupportedCipherSuite::Tls12(suite)) => suite.common.confidentiality_limit,
            Some(SupportedCipherSuite::Tls13(_)) | None => u64::MAX,
        };
        let own = if of_cipher == u64::MAX { of_cipher } else { stream.records_max };
        let (records_max, passed) = (own.min(of_cipher), Arc::clone(stream.passed()));
        let unwanted = None;
        Some(SecureLink {
            plane,
            dialled,
            remote,
            peer,
            certificates,
            ends,
            passed,
            records_max,
            unwanted,
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                let (beneath, session) = stream.get_mut();
                if session.wants_read() {
                    ready!(beneath.poll_arrival(cx))?;
                }
                // Java often closes without saying so within TLS. What is cut short there is an unfinished packet, which
                // nobody acts on.
                Pin::new(stream).poll_read(cx, buffer).map(|read| match read {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                    read => read,
                })
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_close(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_close(cx),
        }
    }
}
