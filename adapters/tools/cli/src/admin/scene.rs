//! What a command may tell of: the settings, what the server has published, and what was seen of the service.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_http::Request;
use quorate_service::metrics::Number;
use quorate_service::{ConnectionView, ZooKeeper};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::membership::Membership;
use quorate_tokio::zoo_cfg::ZooCfg;
use quorate_tokio::{Server, Status};
use tokio::time::timeout;

use crate::admin::json::Json;

/// What a command wants to see of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Nothing,
    Figures,
    Connections,
    Sessions,
    Digests,
    WatchSummary,
    Watches,
    ResetConnections,
    ResetFigures,
}

/// What was seen of the service.
#[derive(Debug, Default)]
pub(super) enum Looked {
    #[default]
    Nothing,
    Figures(Vec<(String, Number)>),
    Connections(Vec<ConnectionView>),
    /// By milliseconds until they expire; what each session owns.
    Sessions(BTreeMap<u128, BTreeSet<i64>>, BTreeMap<i64, Vec<String>>),
    Digests(Vec<(i64, u64)>),
    WatchSummary(usize, usize, usize),
    Watches(BTreeMap<String, Vec<i64>>),
}

/// All that a command may tell of.
pub(super) struct Scene<'a> {
    pub(super) cfg: &'a ZooCfg,
    pub(super) request: &'a Request,
    pub(super) server: Option<Known>,
    pub(super) looked: Looked,
    pub(super) now_ms: u128,
}

/// What is known of a server that has started.
pub(super) struct Known {
    pub(super) status: Status,
    pub(super) membership: Arc<Membership>,
    pub(super) clients: Vec<SocketAddr>,
}

impl<'a> Scene<'a> {
    /// Looks at what the command wants.
    pub(super) async fn of(
        cfg: &'a ZooCfg,
        server: Option<&Server<ZooKeeper>>,
        request: &'a Request,
        wants: Wants,
    ) -> Result<Self, &'static str> {
        let looked = match server {
            Some(server) => look(server, wants).await?,
            None => Looked::Nothing,
        };
        let server = server.map(|server| Known {
            status: server.status(),
            membership: server.membership(),
            clients: server.client_addrs(),
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { cfg, request, server, looked, now_ms: now.as_millis() })
    }

    pub(super) fn figure(&self, name: &str) -> Option<Json> {
        let Looked::Figures(lines) = &self.looked else { return None };
        let line = lines.iter().find(|(known, _)| known == name);
        line.map(|(_, value)| value.clone().into())
    }

    pub(super) fn status(&self) -> Result<&Known, (u16, &'static str)> {
        self.server.as_ref().ok_or((200, NOT_SERVING))
    }

    pub(super) fn client_address(&self) -> String {
        let clients = self.server.as_ref().map(|known| &known.clients[..]).unwrap_or_default();
        let said = || self.cfg.client_address.as_ref().map(HostPort::to_string);
        clients.first().map(SocketAddr::to_string).or_else(said).unwrap_or_default()
    }
}

async fn look(server: &Server<ZooKeeper>, wants: Wants) -> Result<Looked, &'static str> {
    if wants == Wants::Nothing {
        return Ok(Looked::Nothing);
    }
    let look = server.look(move |at, service, state| match wants {
        Wants::Nothing => Looked::Nothing,
        Wants::Figures => Looked::Figures(service.figures(at, state).lines()),
        Wants::Connections => Looked::Connections(service.connections_view()),
        Wants::Sessions => {
            let tree = state.tree();
            let owned = |session| tree.ephemerals(session).map(str::to_owned).collect();
            let owned = tree.owners().map(|session| (session, owned(session))).collect();
            Looked::Sessions(service.expiries(at), owned)
        }
        Wants::Digests => Looked::Digests(service.digests()),
        Wants::WatchSummary => {
            let (connections, paths, watches) = service.watch_summary();
            Looked::WatchSummary(connections, paths, watches)
        }
        Wants::Watches => Looked::Watches(service.watchers()),
        Wants::ResetConnections => {
            service.reset_connections();
            Looked::Nothing
        }
        Wants::ResetFigures => {
            service.reset_figures();
            Looked::Nothing
        }
    });
    match timeout(PATIENCE, look).await {
        Ok(Ok(looked)) => Ok(looked),
        Ok(Err(_)) => Err(NOT_SERVING),
        // What is known of the server is at hand.
        Err(_) if wants == Wants::Figures => Ok(Looked::Figures(server.figures().lines())),
        Err(_) => Err("The server is too busy to tell"),
    }
}

/// How long the service may be away before a page does without it.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
pub(super) const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests";
