//! The listening sockets for clients, which follow the client address of our own line in the membership.
//!
//! The new address is opened first, and then the old one closed; only where both cannot be had at the same time, the old
//! one goes before. Connections stay. An address that cannot be had is tried again for as long as it is ours.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use async_channel::{Receiver, Sender, bounded};
use futures_lite::future::{or, pending};
use quorate_application::clients::Framing;
use quorate_core::address::HostPort;

use crate::lock::locked;
use crate::net::accepting::accept_all;
use crate::net::bind_tries::BIND_RETRY;
use crate::net::client_port::{BoundForClients, ClientPort};
use crate::net::listen_address::{client_ips, listen_on};
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::{TaskGroup, closed};

/// Where a server listens for clients.
pub(crate) type ClientAddrs = Arc<Mutex<Vec<SocketAddr>>>;

/// The open listening sockets for clients.
pub(crate) struct ClientListeners<R, F> {
    port: ClientPort<R, F>,
    tasks: TaskGroup<R>,
    open: Vec<Open>,
    addrs: ClientAddrs,
}

/// A listening socket that is served.
struct Open {
    asked: SocketAddr,
    at: SocketAddr,
    /// It closes when this goes.
    staying: Sender<Infallible>,
    /// Closed when it has.
    ended: Receiver<Infallible>,
}

impl<R: Runtime, F: Framing> ClientListeners<R, F> {
    /// Serves what is bound.
    pub(crate) fn new(
        port: ClientPort<R, F>,
        tasks: TaskGroup<R>,
        bound: Vec<BoundForClients<R>>,
    ) -> Self {
        let mut listeners = Self { port, tasks, open: Vec::new(), addrs: ClientAddrs::default() };
        for bound in bound {
            listeners.serve(bound);
        }
        listeners.tell();
        listeners
    }

    /// Where they listen, also from now on.
    pub(crate) fn addrs(&self) -> ClientAddrs {
        Arc::clone(&self.addrs)
    }

    /// Moves to each address that comes, the newest first, until the loop ends or closes the channel: then they are closed.
    pub(crate) async fn follow(mut self, moves: Receiver<HostPort>) {
        self.follow_all(moves).await;
        self.close_others(&[], None).await;
        self.tell();
    }

    async fn follow_all(&mut self, moves: Receiver<HostPort>) {
        let Ok(mut to) = moves.recv().await else { return };
        loop {
            let moved = async {
                self.move_to(&to).await;
                pending().await
            };
            match or(moves.recv(), moved).await {
                Ok(newer) => to = newer,
                Err(_) => return,
            }
        }
    }

    /// However long it takes until that address can be had.
    async fn move_to(&mut self, to: &HostPort) {
        let shared = Arc::clone(&self.port.shared.server);
        while let Err(error) = self.try_to_move(to).await {
            Counters::add(&shared.counters.client_accept_errors);
            if let Some(suppressed) =
                shared.warnings.permit("port.failed", None, self.tasks.runtime.now())
            {
                tracing::warn!(
                    event = "port.failed", sid = shared.id.0, address = %to, error, suppressed,
                    "cannot listen for clients at an address that the membership gives us, trying again"
                );
            }
            self.tasks.runtime.sleep(BIND_RETRY).await;
        }
    }

    async fn try_to_move(&mut self, to: &HostPort) -> Result<(), String> {
        let runtime = self.tasks.runtime.clone();
        let mut ips = client_ips(to).await.map_err(|error| error.to_string())?;
        let wanted: Vec<_> = ips.iter().map(|ip| SocketAddr::new(*ip, to.port)).collect();
        ips.retain(|ip| !self.open.iter().any(|open| same(open.asked, (*ip, to.port).into())));
        let first = listen_on(&runtime, &ips, to.port).await;
        let in_use = first.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        let opened = match in_use && self.close_others(&wanted, Some(to.port)).await {
            // It was one of ours that had the port.
            true => listen_on(&runtime, &ips, to.port).await,
            false => first,
        };
        for opened in opened.map_err(|error| error.to_string())? {
            let bound = BoundForClients::new(&runtime, opened);
            self.serve(bound.map_err(|error| error.to_string())?);
        }
        self.close_others(&wanted, None).await;
        self.tell();
        let sid = self.port.shared.server.id.0;
        tracing::info!(event = "port.opened", sid, address = %to, "listening for clients");
        Ok(())
    }

    /// Closes what is not wanted, at this port or at all; returns whether there was such a one.
    async fn close_others(&mut self, wanted: &[SocketAddr], port: Option<u16>) -> bool {
        let goes = |open: &Open| {
            port.is_none_or(|port| open.at.port() == port)
                && !wanted.iter().any(|wanted| same(open.asked, *wanted))
        };
        let (gone, open) = std::mem::take(&mut self.open).into_iter().partition(goes);
        self.open = open;
        let any = !gone.is_empty();
        for Open { staying, ended, .. } in gone {
            drop(staying);
            closed(&ended).await;
        }
        any
    }

    /// Sets a task to a socket.
    fn serve(&mut self, BoundForClients { asked, at, listener }: BoundForClients<R>) {
        let server = Arc::clone(&self.port.shared.server);
        tracing::debug!(sid = server.id.0, %at, "listening for clients");
        let ((staying, closing), (end, ended)) = (bounded::<Infallible>(1), bounded(1));
        let (port, runtime) = (self.port.clone(), self.tasks.runtime.clone());
        self.tasks.spawn(async move {
            or(closed(&closing), accept_all(&runtime, &server, at, listener, port)).await;
            drop(end);
        });
        self.open.push(Open { asked, at, staying, ended });
    }

    fn tell(&self) {
        *locked(&self.addrs) = self.open.iter().map(|open| open.at).collect();
    }
}

/// Whether two addresses are one. That for all interfaces is asked for in one family or the other.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    let key = |at: SocketAddr| match at.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), at.port()),
        false => at,
    };
    key(one) == key(other)
}
