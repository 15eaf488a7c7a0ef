//! What is told of the server beneath the service, from its status.

use std::net::SocketAddr;
use std::sync::OnceLock;

use quorate_service::{Beneath, Figures, ZooKeeper};
use quorate_tokio::Server;

use super::text::{configuration, sizes};
use crate::in_force::InForce;
use crate::process;

/// Tells what the service does not know: the server that it asks.
#[derive(Debug)]
pub(crate) struct Responder {
    cfg: InForce,
    /// Once it has started.
    server: OnceLock<Server<ZooKeeper>>,
}

impl Responder {
    pub(crate) fn new(cfg: InForce) -> Self {
        Self { cfg, server: OnceLock::new() }
    }

    /// The server has started.
    pub(crate) fn on_started(&self, server: Server<ZooKeeper>) {
        // Set once, here.
        drop(self.server.set(server));
    }
}

impl Beneath for Responder {
    fn configuration(&self) -> String {
        let ports = self.server.get().map(Server::client_addrs).unwrap_or_default();
        configuration(&self.cfg.get(), ports.first().map(SocketAddr::port))
    }

    fn directories(&self) -> String {
        sizes(&self.cfg.get())
    }

    fn figures(&self) -> Figures {
        let mut figures = self.server.get().map(Server::figures).unwrap_or_default();
        process::descriptors(&mut figures);
        figures
    }
}
