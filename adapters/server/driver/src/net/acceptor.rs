//! Accepts connections at listening sockets, and makes links of them.
//!
//! A connection on the election port has to introduce itself first; each is heard by a task of its own, with a deadline.
//! No address has more than its share of all connections. A socket that does not accept is reported to the core, too.
//!
//! What it does not do: decide which peer may connect. That is the core's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_channel::Receiver;
use bytes::BytesMut;
use futures_lite::future::or;
use quorate_core::input::Plane;
use quorate_core::message::Introduction;

use crate::error::port_name;
use crate::net::accepting::{Door, accept_all};
use crate::net::address_limit::{AddressLimit, AddressShare};
use crate::net::events::Shared;
use crate::net::handshakes::Handshakes;
use crate::net::link::{self, Opened};
use crate::net::listening_socket::ListeningSocket;
use crate::net::reader::read_some;
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::{TaskGroup, closed};

/// What serves listening sockets.
#[derive(Clone)]
pub(crate) struct Acceptor<R> {
    pub(crate) shared: Arc<Shared>,
    /// Where sockets are served and introductions heard.
    pub(crate) tasks: TaskGroup<R>,
    /// Where links run.
    pub(crate) links: TaskGroup<R>,
    pub(crate) handshakes: Arc<Handshakes>,
    pub(crate) connections: Arc<AddressLimit>,
    /// How long an introduction may take.
    pub(crate) introduction_time: Duration,
}

/// A listening socket of one of the ports for peers.
struct PeerDoor<R> {
    acceptor: Acceptor<R>,
    plane: Plane,
    socket: ListeningSocket,
}

impl<R: Runtime> Door<R> for PeerDoor<R> {
    fn name(&self) -> &'static str {
        port_name(self.plane)
    }

    async fn report(&self, failing: bool) {
        if failing {
            Counters::add(&self.acceptor.shared.counters.accept_errors);
        }
        self.socket.report(failing).await;
    }

    fn admit(&self, stream: R::Stream, remote: SocketAddr) {
        self.acceptor.admit(self.plane, stream, remote);
    }
}

impl<R: Runtime> Acceptor<R> {
    /// Sets a task to each socket, until the listener closes.
    pub(super) fn serve_all(
        &self,
        plane: Plane,
        listeners: Vec<(SocketAddr, R::Listener)>,
        closing: &Receiver<Infallible>,
    ) {
        for (at, listener) in listeners {
            tracing::debug!(sid = self.shared.id.0, ?plane, %at, "listening");
            let (acceptor, closing) = (self.clone(), closing.clone());
            self.tasks.spawn(async move {
                let (runtime, shared) =
                    (acceptor.tasks.runtime.clone(), Arc::clone(&acceptor.shared));
                let socket = ListeningSocket::new(&shared, plane);
                let door = PeerDoor { acceptor, plane, socket };
                or(closed(&closing), accept_all(&runtime, &shared, at, listener, door)).await;
            });
        }
    }

    fn admit(&self, plane: Plane, stream: R::Stream, remote: SocketAddr) {
        let Some(share) = self.connections.admit(remote.ip()) else {
            Counters::add(&self.shared.counters.refused_connections);
            if let Some(suppressed) = self.shared.warnings.permit(
                "link.refused",
                Some(remote.ip()),
                self.tasks.runtime.now(),
            ) {
                tracing::warn!(
                    event = "link.refused", sid = self.shared.id.0, peer = %remote, suppressed,
                    "this address has too many connections to our ports for peers: closed"
                );
            }
            return;
        };
        let share = Some(share);
        match plane {
            Plane::Quorum => {
                let opened = Opened {
                    stream,
                    plane: Plane::Quorum,
                    dialled: false,
                    remote,
                    peer: None,
                    advertised: None,
                    received: BytesMut::new(),
                    share,
                };
                link::open(&self.links, &self.shared, opened);
            }
            Plane::Election => {
                let (place, given_up) = self.handshakes.enter(remote.ip());
                if place.evicted {
                    Counters::add(&self.shared.counters.evicted_introductions);
                }
                let acceptor = self.clone();
                self.tasks.spawn(async move {
                    let deadline = async {
                        acceptor.tasks.runtime.sleep(acceptor.introduction_time).await;
                        None
                    };
                    let room_needed = async {
                        closed(&given_up).await;
                        None
                    };
                    let heard = acceptor.introduction(stream, remote, share);
                    let opened = or(heard, or(room_needed, deadline)).await;
                    drop(place);
                    if let Some(opened) = opened {
                        link::open(&acceptor.links, &acceptor.shared, opened);
                    }
                });
            }
        }
    }

    /// Reads an introduction; none if the connection is to be closed.
    async fn introduction(
        &self,
        mut stream: R::Stream,
        remote: SocketAddr,
        share: Option<AddressShare>,
    ) -> Option<Opened<R::Stream>> {
        let mut received = BytesMut::new();
        loop {
            match self.shared.codec.decode_introduction(&mut received) {
                Ok(Some(Introduction { id, addresses })) => {
                    return Some(Opened {
                        stream,
                        plane: Plane::Election,
                        dialled: false,
                        remote,
                        peer: Some(id),
                        advertised: addresses.into_iter().next(),
                        received,
                        share,
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    Counters::add(&self.shared.counters.refused_introductions);
                    if let Some(suppressed) = self.shared.warnings.permit(
                        "link.refused",
                        Some(remote.ip()),
                        self.tasks.runtime.now(),
                    ) {
                        tracing::warn!(
                            event = "link.refused", sid = self.shared.id.0, peer = %remote, %error,
                            suppressed,
                            "unreadable introduction, connection closed"
                        );
                    }
                    return None;
                }
            }
            match read_some(&mut stream, &mut received, INTRODUCTION_READ_BYTES).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

/// An introduction is some 40 bytes, and what waits for one should be small.
const INTRODUCTION_READ_BYTES: usize = 256;
