//! TLS around a port: a connection is heard when its handshake is done, and new certificates count while the port is open.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::or;
use futures_lite::io::AsyncReadExt;
use futures_rustls::TlsAcceptor;
use futures_rustls::server::TlsStream;
use quorate_driver::{Runtime, offload};
use quorate_tls::{ClientTls, Failure, Reason, Speaks};

/// What a port needs to be spoken to with TLS.
///
/// A handshake begins with 0x16 (RFC 8446, 5.1) and no request does: a port may take both, as ZooKeeper's admin server does with
/// `admin.portUnification`.
#[derive(Debug)]
pub struct Secure {
    tls: Mutex<Arc<ClientTls>>,
    accepts_plain: bool,
    /// When the last refusal was told, and how many were not since.
    told: Mutex<(Option<Instant>, u64)>,
    /// How many there were, by their reasons.
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Secure {
    /// With these stores; `accepts_plain`: requests may come without TLS, too.
    pub fn new(tls: ClientTls, accepts_plain: bool) -> Self {
        let tls = Mutex::new(Arc::new(tls));
        Self { tls, accepts_plain, told: Mutex::default(), refused: Mutex::default() }
    }

    /// How many connections it has refused, by the reason: a word that stays. Those that said nothing are not among them.
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().map(|(reason, count)| (*reason, *count)).collect()
    }

    fn tls(&self) -> Arc<ClientTls> {
        Arc::clone(&self.tls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a connection speaks, and its handshake if that is TLS; none if it is to be closed. `patience` is how long one may be
    /// silent that need not begin with a handshake.
    pub(crate) async fn hear<R: Runtime>(
        &self,
        runtime: &R,
        mut stream: R::Stream,
        remote: SocketAddr,
        patience: Duration,
    ) -> Option<Wire<R::Stream>> {
        let tls = self.tls();
        let limit = tls.settings().handshake_time;
        let mut first = [0];
        let silent = async {
            runtime.sleep(if self.accepts_plain { patience } else { limit }).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        // As at a port without TLS: a look at whether it is open says nothing.
        if or(stream.read(&mut first), silent).await.unwrap_or(0) == 0 {
            return None;
        }
        let stream = Begun { first: Some(first[0]), stream };
        let heard = match Speaks::told_by(first[0]) {
            Speaks::Plain if self.accepts_plain => return Some(Wire::Plain(stream)),
            Speaks::Plain => Err(Failure::new(Reason::PlainOnTlsPort, "HTTP without TLS")),
            Speaks::Tls => {
                let shaken = TlsAcceptor::from(tls.acceptor()).accept(stream);
                let late = async {
                    runtime.sleep(limit).await;
                    Err(io::ErrorKind::TimedOut.into())
                };
                or(shaken, late).await.map_err(|error| Failure::of(&error))
            }
        };
        match heard {
            Ok(stream) => Some(Wire::Tls(Box::new(stream))),
            Err(failure) => {
                self.refuse(&failure, remote, runtime.now());
                None
            }
        }
    }

    /// Counts a refusal, and tells of it, once a minute.
    fn refuse(&self, failure: &Failure, remote: SocketAddr, now: Instant) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(failure.reason.word()).or_insert(0) += 1;
        drop(refused);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.is_some_and(|at| now.saturating_duration_since(at) < TOLD_EVERY) {
            told.1 += 1;
            return;
        }
        let (_, suppressed) = std::mem::replace(&mut *told, (Some(now), 0));
        drop(told);
        tracing::warn!(event = "tls.http_refused", peer = %remote, %failure, suppressed, "no TLS for HTTP");
    }

    /// Takes new stores up for connections to come, for as long as the port is open. All are good together, or the old ones stay.
    pub(crate) async fn watch<R: Runtime>(&self, runtime: &R) -> Infallible {
        let mut failed = false;
        loop {
            let tls = self.tls();
            let Some(every) = tls.settings().reload else {
                return std::future::pending().await;
            };
            runtime.sleep(every).await;
            let looked = offload("quorate-stores", move || {
                let settings = tls.settings();
                (ClientTls::marks_of(settings) != *tls.marks())
                    .then(|| ClientTls::open(settings.clone()))
            });
            match looked.await {
                Ok(Some(Ok(tls))) => {
                    let own = tls.own();
                    tracing::info!(event = "tls.reloaded", "new stores, for HTTP to come: {own}");
                    *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tls);
                    failed = false;
                }
                // Half written, perhaps: it is tried again at the next look, and said once.
                Ok(Some(Err(error))) => {
                    if !failed {
                        let what = "the stores for HTTP have changed, and the old ones stay";
                        tracing::warn!(event = "tls.reload_failed", %error, "{what}");
                    }
                    failed = true;
                }
                Ok(None) | Err(_) => {}
            }
        }
    }
}

/// A connection that may go on, with TLS around it or without.
#[derive(Debug)]
pub(crate) enum Wire<S> {
    Plain(Begun<S>),
    Tls(Box<TlsStream<Begun<S>>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
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
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_close(cx),
            Self::Tls(stream) => Pin::new(stream).poll_close(cx),
        }
    }
}

/// A connection whose first byte was read already.
#[derive(Debug)]
pub(crate) struct Begun<S> {
    first: Option<u8>,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match (buffer.first_mut(), self.first.take()) {
            (Some(place), Some(first)) => {
                *place = first;
                Poll::Ready(Ok(1))
            }
            (_, first) => {
                self.first = first;
                Pin::new(&mut self.stream).poll_read(cx, buffer)
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

/// How often a refusal is told at most; a stranger can have one as often as it likes.
const TOLD_EVERY: Duration = Duration::from_secs(60);
