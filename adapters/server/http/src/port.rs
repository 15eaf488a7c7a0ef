//! A port: who may connect, what is read, and for how long.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_channel::{Receiver, bounded};
use bytes::Bytes;
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::or;
use futures_lite::stream::{Boxed, StreamExt};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use quorate_driver::Runtime;

use crate::exchange::{Answer, Method, Request};
use crate::pages::Site;
#[cfg(feature = "tls")]
use crate::secure::Secure;
use crate::stream::HyperStream;

/// What is sent: a body, or events.
type Body = Either<Full<Bytes>, StreamBody<Frames>>;

/// Pieces of a body as they come.
type Frames = Boxed<Result<Frame<Bytes>, Infallible>>;

/// An open port.
#[derive(Debug)]
pub struct Port<R: Runtime> {
    runtime: R,
    listener: R::Listener,
    at: SocketAddr,
    #[cfg(feature = "tls")]
    secure: Option<Arc<Secure>>,
}

/// What a port bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections at a time; one more is closed at once.
    pub connections: usize,
    /// How long a connection may be without a whole request (`admin.idleTimeout`): it is closed after so long at least, and
    /// twice as long at most. So is one that does not take its answer.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, idle: Duration::from_secs(30) }
    }
}

impl<R: Runtime> Port<R> {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn open(runtime: R, at: SocketAddr) -> io::Result<Self> {
        let listener = runtime.listen(at).await?;
        let at = runtime.local_addr(&listener)?;
        Ok(Self {
            runtime,
            listener,
            at,
            #[cfg(feature = "tls")]
            secure: None,
        })
    }

    /// The same, spoken to with TLS; one certificate may be for several ports.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn secured(self, secure: Arc<Secure>) -> Self {
        Self { secure: Some(secure), ..self }
    }

    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.at
    }

    /// Answers what is asked there, until this future is dropped: then the port and all its connections close.
    pub async fn serve(self, site: Arc<impl Site>, limits: Limits) {
        #[cfg(feature = "tls")]
        if let Some(secure) = self.secure.clone() {
            let (runtime, watched) = (self.runtime.clone(), Arc::clone(&secure));
            let hear = move |runtime: R, stream, remote| {
                let secure = Arc::clone(&secure);
                async move { secure.hear(&runtime, stream, remote, limits.idle).await }
            };
            let watch = async { match watched.watch(&runtime).await {} };
            return or(self.accept(site, limits, hear), watch).await;
        }
        self.accept(site, limits, |_, stream, _| async { Some(stream) }).await;
    }

    /// `hear` says what a connection is spoken to by; none if it is to be closed.
    async fn accept<W, H>(
        self,
        site: Arc<impl Site>,
        limits: Limits,
        hear: impl Fn(R, R::Stream, SocketAddr) -> H + Clone + Send + Sync + 'static,
    ) where
        W: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        H: Future<Output = Option<W>> + Send,
    {
        let Self { runtime, listener, at, .. } = self;
        // Dropped with this future.
        let (_open, closed) = bounded::<Infallible>(1);
        let count = Arc::new(());
        loop {
            let (stream, remote) = match runtime.accept(&listener).await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%at, %error, "cannot accept");
                    runtime.sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            if Arc::strong_count(&count) > limits.connections {
                continue;
            }
            let (site, closed, counted) = (Arc::clone(&site), closed.clone(), Arc::clone(&count));
            let (on, hear) = (runtime.clone(), hear.clone());
            runtime.spawn(async move {
                let talk = async {
                    if let Some(wire) = hear(on.clone(), stream, remote).await {
                        converse(on, wire, remote, site, limits.idle).await;
                    }
                };
                or(until_closed(&closed), talk).await;
                drop(counted);
            });
        }
    }
}

async fn until_closed(closed: &Receiver<Infallible>) {
    if let Ok(never) = closed.recv().await {
        match never {}
    }
}

/// One connection, from its first request to its last.
async fn converse(
    runtime: impl Runtime,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    remote: SocketAddr,
    site: Arc<impl Site>,
    idle: Duration,
) {
    let requests = AtomicU64::new(0);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        requests.fetch_add(1, Ordering::Relaxed);
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(respond(&*site, &request, remote).await) }
    });
    let talk = async {
        let connection = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(HyperStream(stream), service);
        if let Err(error) = connection.await {
            tracing::debug!(%remote, %error, "a connection for HTTP ends");
        }
    };
    let silence = async {
        loop {
            let before = requests.load(Ordering::Relaxed);
            runtime.sleep(idle).await;
            if requests.load(Ordering::Relaxed) == before {
                return;
            }
        }
    };
    or(talk, silence).await;
}

async fn respond(
    site: &impl Site,
    request: &hyper::Request<Incoming>,
    remote: SocketAddr,
) -> Response<Body> {
    let method = match *request.method() {
        hyper::Method::GET | hyper::Method::HEAD => Some(Method::Get),
        hyper::Method::POST => Some(Method::Post),
        _ => None,
    };
    let has_body = !request.body().is_end_stream();
    if let Some(method) = method.filter(|_| !has_body) {
        if let Some(events) = site.events(&understood(method, request, remote)) {
            return endless(events);
        }
    }
    let answer = match method {
        None => Answer::text(405, "GET and HEAD are answered\n"),
        Some(Method::Get) if has_body => Answer::text(400, "a GET has no body\n"),
        Some(method) => site.answer(understood(method, request, remote)).await,
    };
    let mut response = Response::new(Either::Left(Full::new(answer.body)));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    if answer.status == 405 {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if has_body {
        // It is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Sent until its reader goes, or has been silent for the idle time: it comes back by itself, and says what it has had.
fn endless(events: Boxed<Bytes>) -> Response<Body> {
    let frames: Frames = Box::pin(events.map(|piece| Ok(Frame::data(piece))));
    let mut response = Response::new(Either::Right(StreamBody::new(frames)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn understood(method: Method, request: &hyper::Request<Incoming>, remote: SocketAddr) -> Request {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let query = request.uri().query().unwrap_or_default();
    Request {
        method,
        path: request.uri().path().to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        accepts_json: header(ACCEPT).is_some_and(|value| value.contains("application/json")),
        authorization: header(AUTHORIZATION).map(str::to_owned),
        last_event_id: header(HeaderName::from_static("last-event-id")).map(str::to_owned),
        remote,
    }
}

/// Shuts `serve` up about its bounds where they are awaited.
#[allow(dead_code, reason = "that it compiles is the test")]
fn is_send<R: Runtime>(port: Port<R>, site: Arc<impl Site>) -> impl Future<Output = ()> + Send {
    port.serve(site, Limits::default())
}

/// The longest head of a request: hyper's least.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long to wait after the system refused to accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
