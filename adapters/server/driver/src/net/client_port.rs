//! The ports for clients: opened before the first step, and served until the server ends.
//!
//! One that fails costs no leadership: the servers among themselves do not need it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quorate_application::clients::Framing;

use crate::config::ServerConfig;
use crate::error::StartError;
use crate::net::accepting::{Door, accept_all};
use crate::net::address_limit::AddressLimit;
use crate::net::bind_tries::BindTries;
use crate::net::client_events::SharedByClients;
use crate::net::client_link::{self, Admitted};
use crate::net::descriptors;
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::TaskGroup;

/// A listening socket for clients, and where it is.
pub(crate) struct BoundForClients<R: Runtime> {
    pub(crate) at: SocketAddr,
    listener: R::Listener,
}

/// Opens every address for clients.
pub(crate) async fn bind<R: Runtime>(
    runtime: &R,
    config: &ServerConfig,
) -> Result<Vec<BoundForClients<R>>, StartError> {
    let mut bound = Vec::new();
    for address in &config.client_addresses {
        let mut tries = BindTries::new(config);
        let opened = loop {
            match open(runtime, *address).await {
                Ok(opened) => break opened,
                Err(error) => {
                    tries.again(runtime, &address.to_string(), error).await.map_err(|source| {
                        let (address, tries) = (*address, tries.made());
                        StartError::BindClients { address, tries, source }
                    })?;
                }
            }
        };
        bound.push(opened);
    }
    Ok(bound)
}

async fn open<R: Runtime>(runtime: &R, address: SocketAddr) -> io::Result<BoundForClients<R>> {
    let listener = runtime.listen(address).await?;
    let at = runtime.local_addr(&listener)?;
    Ok(BoundForClients { at, listener })
}

/// What takes the connections of clients.
#[derive(Clone)]
pub(crate) struct ClientPort<R, F> {
    pub(crate) shared: Arc<SharedByClients>,
    /// Where connections run.
    pub(crate) connections: TaskGroup<R>,
    pub(crate) limit: Arc<AddressLimit>,
    pub(crate) framing: F,
}

impl<R: Runtime, F: Framing> ClientPort<R, F> {
    /// Sets a task to each socket, until the group ends.
    pub(crate) fn serve_all(self, tasks: &TaskGroup<R>, bound: Vec<BoundForClients<R>>) {
        for BoundForClients { at, listener } in bound {
            tracing::debug!(sid = self.shared.server.id.0, %at, "listening for clients");
            let (port, runtime) = (self.clone(), tasks.runtime.clone());
            let server = Arc::clone(&self.shared.server);
            tasks.spawn(async move { accept_all(&runtime, &server, at, listener, port).await });
        }
    }
}

impl<R: Runtime, F: Framing> Door<R> for ClientPort<R, F> {
    fn name(&self) -> &'static str {
        "client port"
    }

    async fn report(&self, failing: bool) {
        if failing {
            Counters::add(&self.shared.server.counters.client_accept_errors);
        }
    }

    fn admit(&self, stream: R::Stream, remote: SocketAddr) {
        let server = &self.shared.server;
        let (counters, runtime) = (&server.counters, &self.connections.runtime);
        let clients = counters.clients.load(Ordering::Relaxed);
        let few = !descriptors::are_scarce(DESCRIPTORS_LEFT, clients);
        let Some(share) = self.limit.admit(remote.ip()).filter(|_| few) else {
            Counters::add(&counters.refused_clients);
            if let Some(suppressed) = server.warnings.permit(runtime.now()) {
                tracing::warn!(
                    sid = server.id.0, client = %remote, clients, suppressed,
                    "too many connections of clients, or of this address: closed"
                );
            }
            return runtime.reset(stream);
        };
        runtime.relax(&stream);
        let admitted = Admitted { stream, remote, framing: self.framing.clone(), share };
        let connection = client_link::run(runtime.clone(), Arc::clone(&self.shared), admitted);
        self.connections.spawn(connection);
    }
}

/// How many descriptors clients leave to peers and files.
const DESCRIPTORS_LEFT: u64 = 64;
