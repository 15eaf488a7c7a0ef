//! The pages of a server: probes, metrics, status; and others that a program adds.

#[cfg(feature = "tls")]
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
#[cfg(feature = "tls")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future::or;
use futures_lite::stream::Boxed;
use quorate_driver::{Application, NoApplication, Runtime, Server};
use quorate_metrics::{CONTENT_TYPE, Figures};

use crate::exchange::{Answer, Method, Request};
use crate::probes::Health;
#[cfg(feature = "tls")]
use crate::secure::Secure;
use crate::status::{ReachPage, Ring, StatusPage};

/// What answers requests.
pub trait Site: Send + Sync + 'static {
    /// The answer to a request, which need not be a page that there is.
    fn answer(&self, request: Request) -> impl Future<Output = Answer> + Send;

    /// Events that go on and on (`text/event-stream`), if that is what is asked for: each piece is sent as it comes.
    fn events(&self, _request: &Request) -> Option<Boxed<Bytes>> {
        None
    }
}

/// What a program adds to the pages of its server.
pub trait Source<R: Runtime, A: Application>: Send + Sync + 'static {
    /// The figures of the server, of its application and of the service of its clients.
    fn figures(&self, server: &Server<R, A>) -> impl Future<Output = Figures> + Send {
        let figures = server.figures();
        async move { figures }
    }

    /// A page that is none of those here; none before the server has started.
    fn answer(
        &self,
        _server: Option<&Server<R, A>>,
        _request: Request,
    ) -> impl Future<Output = Answer> + Send {
        async { Answer::not_found() }
    }
}

/// Adds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMore;

impl<R: Runtime, A: Application> Source<R, A> for NoMore {}

/// The pages of one server. Clones are the same pages.
pub struct Pages<R: Runtime, A: Application = NoApplication, S = NoMore> {
    inner: Arc<Inner<R, A, S>>,
    part: Part,
}

/// Which pages are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    All,
    Metrics,
    Probes,
}

struct Inner<R: Runtime, A: Application, S> {
    started: OnceLock<Started<R, A>>,
    ring: Arc<Ring>,
    disk_patience: Duration,
    source: S,
    /// What is counted at the ports that are spoken to with TLS.
    #[cfg(feature = "tls")]
    secured: Mutex<Vec<Arc<Secure>>>,
}

struct Started<R: Runtime, A: Application> {
    runtime: R,
    server: Server<R, A>,
}

impl<R: Runtime, A: Application> Pages<R, A> {
    /// Those of a server that will have [started](Self::started).
    #[allow(clippy::new_without_default, reason = "pages of nothing are of no use")]
    pub fn new() -> Self {
        Self::with(NoMore, DISK_PATIENCE)
    }
}

impl<R: Runtime, A: Application, S: Source<R, A>> Pages<R, A, S> {
    /// The same with more of them. A write that takes longer than `disk_patience` hangs: as long as a peer may be silent
    /// (`syncLimit`).
    pub fn with(source: S, disk_patience: Duration) -> Self {
        let inner = Inner {
            started: OnceLock::new(),
            ring: Arc::default(),
            disk_patience,
            source,
            #[cfg(feature = "tls")]
            secured: Mutex::default(),
        };
        Self { inner: Arc::new(inner), part: Part::All }
    }

    /// The server has started. Before, it is healthy and not ready.
    pub fn started(&self, runtime: &R, server: Server<R, A>) {
        let (ring, changes) = (Arc::clone(&self.inner.ring), server.changes());
        runtime.spawn(async move { ring.follow(changes).await });
        // Set once.
        drop(self.inner.started.set(Started { runtime: runtime.clone(), server }));
    }

    /// Tells in the metrics whom these ports refuse (`quorate_tls_failures_total` with the plane `http`).
    #[cfg(feature = "tls")]
    pub fn count(&self, secure: Arc<Secure>) {
        let mut secured = self.inner.secured.lock().unwrap_or_else(PoisonError::into_inner);
        secured.push(secure);
    }

    /// The probes of the same server, and nothing else.
    #[must_use]
    pub fn only_probes(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), part: Part::Probes }
    }

    /// The metrics of the same server, and nothing else.
    #[must_use]
    pub fn only_metrics(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), part: Part::Metrics }
    }

    async fn health(&self) -> Health {
        let disk_patience = self.inner.disk_patience;
        let Some(Started { runtime, server }) = self.inner.started.get() else {
            return Health { status: None, turns: true, disk_patience };
        };
        let turned = async { server.healthy().await.is_ok() };
        let late = async {
            runtime.sleep(LOOP_PATIENCE).await;
            false
        };
        let turns = or(turned, late).await;
        Health { status: Some(server.status()), turns, disk_patience }
    }

    async fn metrics(&self, request: &Request) -> Answer {
        let Some(Started { server, .. }) = self.inner.started.get() else {
            return Answer::text(503, "starting\n");
        };
        #[allow(unused_mut, reason = "without TLS nothing is added")]
        let mut figures = self.inner.source.figures(server).await;
        #[cfg(feature = "tls")]
        for (reason, count) in self.refused() {
            figures.tls_failures("http", "accept", reason, count);
        }
        let only = request.query.iter().filter(|(name, _)| name == "name[]");
        let only: Vec<_> = only.map(|(_, value)| value.as_str()).collect();
        let page = figures.page(&only);
        Answer { status: 200, content_type: CONTENT_TYPE, body: page.into() }
    }

    /// By all ports together.
    #[cfg(feature = "tls")]
    fn refused(&self) -> BTreeMap<&'static str, u64> {
        let mut refused = BTreeMap::new();
        let secured = self.inner.secured.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, count) in secured.iter().flat_map(|secure| secure.refused()) {
            *refused.entry(reason).or_insert(0) += count;
        }
        refused
    }

    async fn own(&self, request: &Request) -> Answer {
        if request.path == "/quorate/health" {
            return Answer::json(200, &self.health().await.all());
        }
        let Some(Started { runtime, server }) = self.inner.started.get() else {
            return Answer::text(503, "starting\n");
        };
        let (status, membership) = (server.status(), server.membership());
        match &*request.path {
            "/quorate/status" => {
                let (wearing, ring) = (server.wearing_links(), &self.inner.ring);
                Answer::json(200, &StatusPage::new(&status, &membership, &wearing, ring))
            }
            "/quorate/reach" => {
                let page = ReachPage::new(&status, &membership, &server.dials(), runtime.now());
                Answer::json(200, &page)
            }
            "/quorate/changes" => match request.value("since").unwrap_or("0").parse() {
                Ok(since) => Answer::json(200, &self.inner.ring.since(since)),
                Err(_) => Answer::text(400, "since is a number\n"),
            },
            _ => Answer::not_found(),
        }
    }
}

impl<R: Runtime, A: Application, S: Source<R, A>> Site for Pages<R, A, S> {
    fn events(&self, request: &Request) -> Option<Boxed<Bytes>> {
        let asked = request.path == "/quorate/stream" && request.method == Method::Get;
        if !asked || self.part != Part::All || self.inner.started.get().is_none() {
            return None;
        }
        let since = request.value("since").and_then(|text| text.parse().ok());
        let had = request.last_event_id.as_ref().and_then(|text| text.parse::<u64>().ok());
        Some(self.inner.ring.stream(had.map(|had| had.saturating_add(1)).or(since)))
    }

    async fn answer(&self, request: Request) -> Answer {
        let gets = request.method == Method::Get;
        let probe = gets && Health::is_probe(&request.path);
        let metrics = gets && request.path == "/metrics";
        match self.part {
            Part::All => {}
            Part::Probes if probe => {}
            Part::Metrics if metrics => {}
            Part::Probes | Part::Metrics => return Answer::not_found(),
        }
        match &*request.path {
            _ if probe => self.health().await.probe(&request).unwrap_or_else(Answer::not_found),
            _ if metrics => self.metrics(&request).await,
            path if gets && path.starts_with("/quorate/") => self.own(&request).await,
            _ => {
                let server = self.inner.started.get().map(|started| &started.server);
                self.inner.source.answer(server, request).await
            }
        }
    }
}

impl<R: Runtime, A: Application, S> Clone for Pages<R, A, S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), part: self.part }
    }
}

impl<R: Runtime, A: Application, S> fmt::Debug for Pages<R, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("part", &self.part).finish_non_exhaustive()
    }
}

/// How long the loop may take to give a sign of life.
const LOOP_PATIENCE: Duration = Duration::from_secs(1);
/// How long a write may take unless it is said.
const DISK_PATIENCE: Duration = Duration::from_secs(10);
