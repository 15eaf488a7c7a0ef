//! Sets the ports for clients going.

use std::path::PathBuf;
use std::sync::Arc;

use async_channel::bounded;
use quorate_application::clients::Framing;
use quorate_core::membership::Member;

use crate::audit::AuditQueue;
use crate::config::ServerConfig;
use crate::disk::remembered;
use crate::drive::{ClientLinks, Place};
use crate::error::StartError;
use crate::net::address_limit::AddressLimit;
use crate::net::client_events::SharedByClients;
use crate::net::client_listeners::ClientListeners;
use crate::net::client_port::{ClientPort, ClientSockets};
#[cfg(feature = "tls")]
use crate::net::client_reload;
use crate::net::client_tls::{ClientSecure, SecureDoor};
use crate::net::events::Shared;
use crate::runtime::Runtime;
use crate::server::wake::wake;
use crate::task_group::TaskGroup;
#[cfg(feature = "tls")]
use crate::threads::offload;

/// What accepts the connections of clients; the loop's ends of them.
pub(super) fn serve<R: Runtime>(
    config: &ServerConfig,
    shared: &Arc<Shared>,
    (acceptors, connections): (&TaskGroup<R>, &TaskGroup<R>),
    framing: impl Framing,
    (bound, secure): (ClientSockets<R>, Option<Arc<ClientSecure>>),
    own: &Member,
    snapshots: PathBuf,
) -> Result<ClientLinks, StartError> {
    let (by_clients, news) = SharedByClients::new(Arc::clone(shared), config, wake(&shared.events));
    let by_clients = Arc::new(by_clients);
    let audit = config.audit.as_ref().map(|log| {
        let for_wake = Arc::clone(&by_clients);
        let wake = move || for_wake.written.knock();
        let queue = AuditQueue::start(log, shared, connections.keep_alive(), wake);
        queue.map_err(|source| StartError::Audit { to: log.to.to_string(), source })
    });
    let audit = audit.transpose()?;
    let (of_one, of_all) = (config.max_client_connections, config.max_connections);
    let limit = Arc::new(AddressLimit::with_total(of_one, of_all));
    #[cfg(feature = "tls")]
    reload(&secure, shared, acceptors);
    let [door, secure_door] = doors(config, secure);
    let port = ClientPort {
        shared: Arc::clone(&by_clients),
        connections: connections.clone(),
        limit: Arc::clone(&limit),
        framing,
        keep_alive: config.client_keep_alive,
        backlog: config.client_backlog,
        name: "client port",
        door,
    };
    let secure = secure_door.map(|door| {
        let port = ClientPort { name: "secure client port", door: Some(door), ..port.clone() };
        let listeners = ClientListeners::new(port, acceptors.clone(), bound.secure);
        let (addrs, (moves, to)) = (listeners.addrs(), bounded(1));
        acceptors.spawn(listeners.follow(to));
        (addrs, moves)
    });
    let listeners = ClientListeners::new(port, acceptors.clone(), bound.port);
    let addrs = listeners.addrs();
    let (moves, to) = bounded(1);
    acceptors.spawn(listeners.follow(to));
    let (remember, numbers) = bounded(1);
    connections.spawn(remembered::keep(snapshots, numbers, connections.keep_alive()));
    let place = Place { addrs, line: own.client.clone(), moves, secure, limit };
    Ok(ClientLinks::new(by_clients, news, place, remember, audit))
}

/// What clients go through at the port that may move, and at that for TLS alone.
#[cfg(feature = "tls")]
fn doors(config: &ServerConfig, secure: Option<Arc<ClientSecure>>) -> [Option<SecureDoor>; 2] {
    let (Some(stores), Some(tls)) = (secure, &config.client_tls) else { return [None, None] };
    let door = |accepts_plain| SecureDoor { stores: Arc::clone(&stores), accepts_plain };
    let plain = tls.on_plain_port.then(|| door(true));
    [plain, (!tls.addresses.is_empty()).then(|| door(false))]
}

#[cfg(not(feature = "tls"))]
fn doors(_: &ServerConfig, _: Option<Arc<ClientSecure>>) -> [Option<SecureDoor>; 2] {
    [None, None]
}

/// Looks whether the stores have changed.
#[cfg(feature = "tls")]
fn reload<R: Runtime>(
    secure: &Option<Arc<ClientSecure>>,
    shared: &Arc<Shared>,
    tasks: &TaskGroup<R>,
) {
    let Some(secure) = secure else { return };
    let (runtime, shared) = (tasks.runtime.clone(), Arc::clone(shared));
    let watching = client_reload::watch(runtime, shared, Arc::clone(secure));
    tasks.spawn(async move { match watching.await {} });
}

/// TLS for clients, where it is wanted: its stores are read, and good.
#[cfg(feature = "tls")]
pub(super) async fn secure(config: &ServerConfig) -> Result<Option<Arc<ClientSecure>>, StartError> {
    let Some(settings) = config.client_tls.as_ref().map(|tls| tls.settings.clone()) else {
        return Ok(None);
    };
    let tls = offload("quorate-stores", || quorate_tls::ClientTls::open(settings)).await;
    let tls = tls.map_err(StartError::Thread)??;
    for notice in tls.notices() {
        tracing::warn!(event = "tls.notice", sid = config.core.id.0, "{notice}");
    }
    Ok(Some(Arc::new(ClientSecure::new(tls))))
}

#[cfg(not(feature = "tls"))]
pub(super) async fn secure(_: &ServerConfig) -> Result<Option<Arc<ClientSecure>>, StartError> {
    Ok(None)
}
