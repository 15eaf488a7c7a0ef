//! The ports at which a server speaks HTTP: which its `zoo.cfg` asks for, what is shown at each, and with TLS or without.

use std::sync::Arc;
use std::time::Duration;

use quorate_http::{Limits, Pages, Port};
use quorate_service::ZooKeeper;
use quorate_tokio::Tokio;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::zoo_cfg::HttpSettings;
#[cfg(feature = "tls")]
use {quorate_http::Secure, quorate_tls::ClientTls};

use crate::admin::Admin;
use crate::failure::Failure;
use crate::in_force::InForce;
use crate::listen_at::resolve;

/// Without TLS there is no value of it.
#[cfg(not(feature = "tls"))]
#[derive(Debug)]
enum Secure {}

/// One of them.
struct HttpPort<'c> {
    address: &'c HostPort,
    shows: Shows,
    idle: Duration,
    secure: Option<Arc<Secure>>,
}

#[derive(Clone, Copy)]
enum Shows {
    All,
    Metrics,
    Probes,
}

impl Shows {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "admin server",
            Self::Metrics => "metrics",
            Self::Probes => "probes",
        }
    }
}

/// Opens those that the file asks for: a port that is not to be had is an error. They answer at once.
pub(crate) async fn open(
    in_force: &InForce,
) -> Result<Option<Pages<Tokio, ZooKeeper, Admin>>, Failure> {
    let cfg = in_force.get();
    let ports = asked_for(&cfg.http)?;
    if ports.is_empty() {
        return Ok(None);
    }
    let pages = Pages::with(Admin::new(in_force.clone()), cfg.sync_time());
    for HttpPort { address, shows, idle, secure } in ports {
        let (what, limits) = (shows.name(), Limits { idle, ..Limits::default() });
        let failed =
            |error| Failure::failed(format!("cannot listen at {address} ({what}): {error}"));
        let site = Arc::new(match shows {
            Shows::All => pages.clone(),
            Shows::Metrics => pages.only_metrics(),
            Shows::Probes => pages.only_probes(),
        });
        #[cfg(feature = "tls")]
        if let Some(secure) = &secure {
            pages.count(Arc::clone(secure));
        }
        for at in resolve(address).await? {
            let port = Port::open(Tokio, at).await.map_err(failed)?;
            let (at, tls) = (port.local_addr(), secure.is_some());
            tracing::info!(event = "port.opened", address = %at, tls, "{what} over HTTP");
            let port = secured(port, secure.clone());
            drop(tokio::spawn(port.serve(Arc::clone(&site), limits)));
        }
    }
    Ok(Some(pages))
}

fn asked_for(http: &HttpSettings) -> Result<Vec<HttpPort<'_>>, Failure> {
    let plain = |address, shows| HttpPort { address, shows, idle: IDLE, secure: None };
    let mut ports = Vec::new();
    if let Some(admin) = &http.admin {
        #[cfg(not(feature = "tls"))]
        let secure = None;
        #[cfg(feature = "tls")]
        let secure = match &admin.tls {
            Some(tls) => Some(stores(&tls.settings, tls.accepts_plain)?),
            None => None,
        };
        let (address, idle) = (&admin.address, admin.idle);
        ports.push(HttpPort { address, shows: Shows::All, idle, secure });
    }
    ports.extend(http.metrics.as_ref().map(|at| plain(at, Shows::Metrics)));
    #[cfg(feature = "tls")]
    if let Some(metrics) = &http.secure_metrics {
        let secure = Some(stores(&metrics.settings, false)?);
        ports.push(HttpPort { secure, ..plain(&metrics.address, Shows::Metrics) });
    }
    ports.extend(http.probes.as_ref().map(|at| plain(at, Shows::Probes)));
    Ok(ports)
}

/// Reads them before a port is open.
#[cfg(feature = "tls")]
fn stores(
    settings: &quorate_tls::ClientSettings,
    accepts_plain: bool,
) -> Result<Arc<Secure>, Failure> {
    let tls = ClientTls::open(settings.clone());
    let tls = tls.map_err(|error| Failure::usage(format!("TLS for HTTP: {error}")))?;
    for notice in tls.notices() {
        tracing::warn!(event = "tls.notice", "for HTTP: {notice}");
    }
    Ok(Arc::new(Secure::new(tls, accepts_plain)))
}

fn secured(port: Port<Tokio>, secure: Option<Arc<Secure>>) -> Port<Tokio> {
    #[cfg(feature = "tls")]
    return match secure {
        Some(secure) => port.secured(secure),
        None => port,
    };
    #[cfg(not(feature = "tls"))]
    match secure.as_deref() {
        None => port,
        Some(never) => match *never {},
    }
}

/// How long a connection for metrics or probes may be without a request.
const IDLE: Duration = Duration::from_secs(30);
