//! The ports for clients: opened before the first step; who connects is let in, or not.
//!
//! One that fails costs no leadership: the servers among themselves do not need it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quorate_application::clients::Framing;
use quorate_core::membership::Member;

use crate::config::ServerConfig;
use crate::error::StartError;
use crate::net::accepting::Door;
use crate::net::address_limit::AddressLimit;
use crate::net::bind_tries::BindTries;
use crate::net::client_events::SharedByClients;
use crate::net::client_link::{self, Admitted};
use crate::net::client_tls::SecureDoor;
use crate::net::descriptors;
use crate::net::listen_address::{client_ips, listen_on};
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::TaskGroup;

/// A listening socket for clients.
pub(crate) struct BoundForClients<R: Runtime> {
    /// Where it was asked for.
    pub(super) asked: SocketAddr,
    /// Where it is: the system may have picked its port.
    pub(super) at: SocketAddr,
    pub(super) listener: R::Listener,
}

impl<R: Runtime> BoundForClients<R> {
    pub(super) fn new(
        runtime: &R,
        (asked, listener): (SocketAddr, R::Listener),
    ) -> io::Result<Self> {
        let at = runtime.local_addr(&listener)?;
        Ok(Self { asked, at, listener })
    }
}

/// The listening sockets for clients, as they were opened.
pub(crate) struct ClientSockets<R: Runtime> {
    /// Of the port that may move with our own line in the membership.
    pub(crate) port: Vec<BoundForClients<R>>,
    /// Of that for TLS alone.
    pub(crate) secure: Vec<BoundForClients<R>>,
}

impl<R: Runtime> ClientSockets<R> {
    pub(crate) const fn none() -> Self {
        Self { port: Vec::new(), secure: Vec::new() }
    }
}

/// Opens every address for clients: that of our own line in the membership, if it has one.
pub(crate) async fn bind<R: Runtime>(
    runtime: &R,
    config: &ServerConfig,
    own: &Member,
) -> Result<ClientSockets<R>, StartError> {
    let mut bound = Vec::new();
    if let Some(line) = &own.client {
        let ips = client_ips(line).await?;
        bind_one(runtime, config, (line.to_string(), &ips, line.port), &mut bound).await?;
    } else {
        for address in &config.client_addresses {
            let asked = (address.to_string(), &[address.ip()][..], address.port());
            bind_one(runtime, config, asked, &mut bound).await?;
        }
    }
    let mut secure = Vec::new();
    for address in config.secure_addresses() {
        let asked = (address.to_string(), &[address.ip()][..], address.port());
        bind_one(runtime, config, asked, &mut secure).await?;
    }
    Ok(ClientSockets { port: bound, secure })
}

/// Listens at one address, which may be several of this machine, as often as the configuration says.
async fn bind_one<R: Runtime>(
    runtime: &R,
    config: &ServerConfig,
    (address, ips, port): (String, &[IpAddr], u16),
    bound: &mut Vec<BoundForClients<R>>,
) -> Result<(), StartError> {
    let mut tries = BindTries::new(config);
    loop {
        let opened = listen_on(runtime, ips, port).await;
        let opened = opened.and_then(|opened| {
            let bound = opened.into_iter().map(|opened| BoundForClients::new(runtime, opened));
            bound.collect::<io::Result<Vec<_>>>()
        });
        let error = match opened {
            Ok(opened) => {
                bound.extend(opened);
                return Ok(());
            }
            Err(error) => error,
        };
        tries.again(runtime, &address, error).await.map_err(|source| StartError::BindClients {
            address: address.clone(),
            tries: tries.made(),
            source,
        })?;
    }
}

/// What takes the connections of clients.
#[derive(Clone)]
pub(crate) struct ClientPort<R, F> {
    pub(crate) shared: Arc<SharedByClients>,
    /// Where connections run.
    pub(crate) connections: TaskGroup<R>,
    pub(crate) limit: Arc<AddressLimit>,
    pub(crate) framing: F,
    /// Whether silent connections are probed.
    pub(crate) keep_alive: bool,
    /// How many may wait to be accepted, if an operator says so.
    pub(crate) backlog: Option<u32>,
    /// For the log.
    pub(crate) name: &'static str,
    /// TLS, which clients have to go through, or may.
    pub(crate) door: Option<SecureDoor>,
}

impl<R: Runtime, F: Framing> Door<R> for ClientPort<R, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn report(&self, failing: bool) {
        if failing {
            Counters::add(&self.shared.server.counters.client_accept_errors);
        }
    }

    fn opened(&self, listener: &R::Listener) {
        if let Some(backlog) = self.backlog {
            self.connections.runtime.limit(listener, backlog);
        }
    }

    fn admit(&self, stream: R::Stream, remote: SocketAddr) {
        let server = &self.shared.server;
        let (counters, runtime) = (&server.counters, &self.connections.runtime);
        let clients = counters.clients.load(Ordering::Relaxed);
        let few = !descriptors::are_scarce(DESCRIPTORS_LEFT, clients);
        let Some(share) = self.limit.admit(remote.ip()).filter(|_| few) else {
            Counters::add(&counters.refused_clients);
            if let Some(suppressed) =
                server.warnings.permit("client.refused", Some(remote.ip()), runtime.now())
            {
                tracing::warn!(
                    event = "client.refused", sid = server.id.0, client = %remote, clients, suppressed,
                    "too many connections of clients, or of this address: closed"
                );
            }
            return runtime.reset(stream);
        };
        runtime.relax(&stream, self.keep_alive);
        let admitted = Admitted {
            stream,
            remote,
            framing: self.framing.clone(),
            share,
            door: self.door.clone(),
        };
        let connection = client_link::run(runtime.clone(), Arc::clone(&self.shared), admitted);
        self.connections.spawn(connection);
    }
}

/// How many descriptors clients leave to peers and files.
const DESCRIPTORS_LEFT: u64 = 64;
