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
use crate::net::client_port::{BoundForClients, ClientPort};
use crate::net::events::Shared;
use crate::runtime::Runtime;
use crate::server::wake::wake;
use crate::task_group::TaskGroup;

/// What accepts the connections of clients; the loop's ends of them.
pub(super) fn serve<R: Runtime>(
    config: &ServerConfig,
    shared: &Arc<Shared>,
    (acceptors, connections): (&TaskGroup<R>, &TaskGroup<R>),
    framing: impl Framing,
    bound: Vec<BoundForClients<R>>,
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
    let port = ClientPort {
        shared: Arc::clone(&by_clients),
        connections: connections.clone(),
        limit: Arc::clone(&limit),
        framing,
        keep_alive: config.client_keep_alive,
        backlog: config.client_backlog,
    };
    let listeners = ClientListeners::new(port, acceptors.clone(), bound);
    let addrs = listeners.addrs();
    let (moves, to) = bounded(1);
    acceptors.spawn(listeners.follow(to));
    let (remember, numbers) = bounded(1);
    connections.spawn(remembered::keep(snapshots, numbers, connections.keep_alive()));
    let place = Place { addrs, line: own.client.clone(), moves, limit };
    Ok(ClientLinks::new(by_clients, news, place, remember, audit))
}
