//! The election and the quorum port of a server: opened before its first step, and moved with its line in the membership.
//!
//! Both are open before the first step, so that no peer is refused by a server that is there.

use std::convert::Infallible;
use std::net::SocketAddr;

use async_channel::{Sender, bounded};
use futures_lite::future::or;
use quorate_core::membership::Member;

use crate::config::ServerConfig;
use crate::error::StartError;
use crate::net::acceptor::Acceptor;
use crate::net::bind_tries::{BIND_RETRY, BindTries};
use crate::net::listen_address::{ListenAddress, listen_addresses};
use crate::net::listening_socket::ListeningSocket;
use crate::runtime::Runtime;
use crate::task_group::closed;

/// Opens every address of our own line in the membership.
pub(crate) async fn bind<R: Runtime>(
    runtime: &R,
    config: &ServerConfig,
    own: &Member,
) -> Result<Vec<Bound<R>>, StartError> {
    let mut bound: Vec<Bound<R>> = Vec::new();
    for address in listen_addresses(own, config.listen_on_all_ips) {
        let at = address.at.to_string();
        let mut tries = BindTries::new(config);
        let listeners = loop {
            match address.open(runtime).await? {
                Ok(listeners) => break listeners,
                Err(error) => tries.again(runtime, &at, error).await.map_err(|source| {
                    let (plane, tries) = (address.plane, tries.made());
                    StartError::Bind { plane, address: at.clone(), tries, source }
                })?,
            }
        };
        bound.push(Bound { address, listeners });
    }
    Ok(bound)
}

/// A listen address with its sockets, one for each IP address of its name.
pub(crate) struct Bound<R: Runtime> {
    address: ListenAddress,
    listeners: Vec<(SocketAddr, R::Listener)>,
}

/// The listeners of a server. They move when our line in the membership does.
pub(crate) struct Listeners<R: Runtime> {
    acceptor: Acceptor<R>,
    on_all_ips: bool,
    /// Each closes when its sender goes.
    open: Vec<(ListenAddress, Sender<Infallible>)>,
}

impl<R: Runtime> Listeners<R> {
    /// Serves what is bound.
    pub(crate) fn new(acceptor: Acceptor<R>, on_all_ips: bool, bound: Vec<Bound<R>>) -> Self {
        let mut open = Vec::new();
        for Bound { address, listeners } in bound {
            let (staying, closing) = bounded(1);
            acceptor.serve_all(address.plane, listeners, &closing);
            open.push((address, staying));
        }
        Self { acceptor, on_all_ips, open }
    }

    /// Our line has changed: closes what is no address of ours any more, and opens what is one now, as
    /// soon as that can be had. Nothing else could be done about one that cannot: our peers dial it already.
    pub(crate) fn move_to(&mut self, own: &Member) {
        let wanted = listen_addresses(own, self.on_all_ips);
        self.open.retain(|(address, _)| wanted.contains(address));
        for address in wanted {
            if self.open.iter().any(|(open, _)| *open == address) {
                continue;
            }
            let (staying, closing) = bounded(1);
            let acceptor = self.acceptor.clone();
            self.open.push((address.clone(), staying));
            self.acceptor.tasks.spawn(async move {
                let opened = async { Some(listen_at(&acceptor, &address).await) };
                let closed = async {
                    closed(&closing).await;
                    None
                };
                if let Some(listeners) = or(closed, opened).await {
                    acceptor.serve_all(address.plane, listeners, &closing);
                }
            });
        }
    }
}

/// Listens at an address, however long it takes until that can be had.
async fn listen_at<R: Runtime>(
    acceptor: &Acceptor<R>,
    address: &ListenAddress,
) -> Vec<(SocketAddr, R::Listener)> {
    let runtime = &acceptor.tasks.runtime;
    let socket = ListeningSocket::new(&acceptor.shared, address.plane);
    loop {
        let error = match address.open(runtime).await {
            Ok(Ok(listeners)) => return listeners,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        socket.report(true).await;
        if let Some(suppressed) =
            acceptor.shared.warnings.permit("port.failed", None, runtime.now())
        {
            tracing::warn!(
                event = "port.failed", sid = acceptor.shared.id.0, address = %address.at, error, suppressed,
                "cannot listen at an address that the membership gives us, trying again"
            );
        }
        runtime.sleep(BIND_RETRY).await;
    }
}
