//! Accepts connections at listening sockets, and makes links of them.
//!
//! A connection on the election port has to introduce itself first; each is heard by a task of its own, with a deadline.
//! No address has more than its share of all connections. A socket that does not accept is reported to the core, too.
//!
//! What it does not do: decide which peer may connect. That is the core's.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_channel::Receiver;
use bytes::BytesMut;
use futures_lite::future::or;
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{Introduction, Packet};
use quorate_core::wire;

use crate::allowed_hosts::AllowedHosts;
use crate::error::port_name;
use crate::net::accepting::{Door, accept_all};
use crate::net::address_limit::{AddressLimit, AddressShare};
use crate::net::events::Shared;
use crate::net::handshakes::Handshakes;
use crate::net::link::{self, FIRST_PACKET_BYTES_MAX, Opened};
use crate::net::listening_socket::ListeningSocket;
use crate::net::reader::read_some;
use crate::net::sasl::{Between, Logins};
use crate::net::tls::{Accepted, Secure};
use crate::net::tls_failures::{FailedLink, Refusal, Side, is_client_hello, tls_on_plain_port};
use crate::net::wire::Wire;
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::{TaskGroup, closed};

/// What serves listening sockets.
#[derive(Clone)]
pub(crate) struct Acceptor<R> {
    pub(crate) shared: Arc<Shared>,
    /// TLS between servers; none where they speak without it.
    pub(crate) secure: Option<Arc<Secure>>,
    /// Logins between servers; none where there are none.
    pub(crate) logins: Option<Arc<Logins>>,
    /// Where sockets are served and introductions heard.
    pub(crate) tasks: TaskGroup<R>,
    /// Where links run.
    pub(crate) links: TaskGroup<R>,
    pub(crate) handshakes: Arc<Handshakes>,
    pub(crate) connections: Arc<AddressLimit>,
    /// From where connections are taken; from everywhere, if none.
    pub(crate) allowed: Option<Arc<AllowedHosts>>,
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
        if !self.is_allowed(remote) {
            return;
        }
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
        if plane == Plane::Quorum && self.secure.is_none() && self.logins.is_none() {
            let opened = Opened {
                stream: Wire::Plain(stream),
                plane,
                dialled: false,
                remote,
                peer: None,
                advertised: None,
                received: BytesMut::new(),
                share: Some(share),
            };
            return link::open(&self.links, &self.shared, opened);
        }
        let (place, given_up) =
            self.handshakes.enter(remote.ip(), self.shared.members.contain(remote.ip()));
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
            let heard = acceptor.hear(plane, stream, remote, share);
            let opened = or(heard, or(room_needed, deadline)).await;
            drop(place);
            if let Some(opened) = opened {
                link::open(&acceptor.links, &acceptor.shared, opened);
            }
        });
    }

    /// Whether connections are taken from there; tells of one that is not.
    fn is_allowed(&self, remote: SocketAddr) -> bool {
        let members = &self.shared.members;
        let is_allowed =
            |allowed: &Arc<AllowedHosts>| allowed.allows(remote.ip(), |ip| members.contain(ip));
        if self.allowed.as_ref().is_none_or(is_allowed) {
            return true;
        }
        Counters::add(&self.shared.counters.refused_connections);
        let now = self.tasks.runtime.now();
        let permitted = self.shared.warnings.permit("exposed.address_refused", None, now);
        if let Some(suppressed) = permitted {
            tracing::warn!(
                event = "exposed.address_refused", sid = self.shared.id.0, peer = %remote, suppressed,
                "quorate.quorumAllow does not name this address: closed"
            );
        }
        false
    }

    /// Hears who is at the other end, and whether it may be; none if the connection is to be closed.
    async fn hear(
        &self,
        plane: Plane,
        stream: R::Stream,
        remote: SocketAddr,
        share: AddressShare,
    ) -> Option<Opened<Wire<R::Stream>>> {
        let refused = |peer, refusal: &Refusal| {
            let failed = FailedLink { plane, side: Side::Accept, remote, peer, refusal };
            self.shared.tls_failed(&failed, self.tasks.runtime.now());
        };
        let (mut wire, mut received, names) = match &self.secure {
            None => (Wire::Plain(stream), BytesMut::new(), None),
            Some(secure) => {
                let limit = secure.handshake_time().min(self.introduction_time);
                let too_late = self.tasks.runtime.sleep(limit);
                match secure.accept(stream, too_late).await {
                    Ok(Accepted { wire, received, names }) => (wire, received, names),
                    Err(refusal) => {
                        refused(None, &refusal);
                        return None;
                    }
                }
            }
        };
        let Said { peer, advertised } = match plane {
            Plane::Election => {
                let said = self.introduction(&mut wire, remote, &mut received).await?;
                let between = Between { plane, remote, peer: said.peer };
                self.log_in(&between, &mut wire, &mut received).await?;
                said
            }
            Plane::Quorum => {
                let between = Between { plane, remote, peer: None };
                self.log_in(&between, &mut wire, &mut received).await?;
                // The core hears it from the packet itself, which is not taken here.
                let peer = match wire.is_secure() {
                    true => self.registration(&mut wire, remote, &mut received).await?,
                    false => None,
                };
                Said { peer, advertised: None }
            }
        };
        if let Some(secure) = &self.secure {
            match secure.judge(peer, names.as_ref()) {
                Ok(None) => {}
                Ok(Some(seen)) => self.tell_identity(remote, peer, &seen),
                Err(refusal) => {
                    refused(peer, &refusal);
                    return None;
                }
            }
        }
        let tells = |secure: &Arc<Secure>| secure.tells_plain(peer, remote.ip());
        if !wire.is_secure() && self.secure.as_ref().is_some_and(tells) {
            self.shared.tell_plain(plane, peer, remote);
        }
        let peer = peer.filter(|_| plane == Plane::Election);
        Some(Opened {
            stream: wire,
            plane,
            dialled: false,
            remote,
            peer,
            advertised,
            received,
            share: Some(share),
        })
    }

    /// Has the other side log in, where that is done; none if the connection is to be closed.
    async fn log_in(
        &self,
        between: &Between,
        wire: &mut Wire<R::Stream>,
        received: &mut BytesMut,
    ) -> Option<()> {
        let Some(logins) = &self.logins else { return Some(()) };
        let now = || self.tasks.runtime.now();
        logins.admit(&self.shared, between, (wire, received), now).await.then_some(())
    }

    /// Reads an introduction; none if the connection is to be closed.
    async fn introduction(
        &self,
        wire: &mut Wire<R::Stream>,
        remote: SocketAddr,
        received: &mut BytesMut,
    ) -> Option<Said> {
        loop {
            if !wire.is_secure() && is_client_hello(received) {
                let (plane, side) = (Plane::Election, Side::Accept);
                let refusal = &tls_on_plain_port();
                let failed = FailedLink { plane, side, remote, peer: None, refusal };
                self.shared.tls_failed(&failed, self.tasks.runtime.now());
                return None;
            }
            match self.shared.codec.decode_introduction(received) {
                Ok(Some(Introduction { id, addresses })) => {
                    return Some(Said { peer: Some(id), advertised: addresses.into_iter().next() });
                }
                Ok(None) => {}
                Err(error) => {
                    Counters::add(&self.shared.counters.refused_introductions);
                    self.unreadable(remote, &error, "unreadable introduction, connection closed");
                    return None;
                }
            }
            match read_some(wire, received, INTRODUCTION_READ_BYTES).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Reads until the first packet of a learner is there, and leaves it where it is; who it says that it is. None if
    /// the connection is to be closed.
    async fn registration(
        &self,
        wire: &mut Wire<R::Stream>,
        remote: SocketAddr,
        received: &mut BytesMut,
    ) -> Option<Option<ServerId>> {
        loop {
            let wrong: &dyn Display =
                match wire::take_packet(&mut received.clone(), FIRST_PACKET_BYTES_MAX) {
                    Ok(Some(Packet::FollowerInfo(info) | Packet::ObserverInfo(info))) => {
                        return Some(info.id);
                    }
                    Ok(None) if received.len() <= FIRST_PACKET_BYTES_MAX => {
                        match read_some(wire, received, INTRODUCTION_READ_BYTES).await {
                            Ok(0) | Err(_) => return None,
                            Ok(_) => continue,
                        }
                    }
                    Ok(_) => &"it does not begin with the registration of a learner",
                    Err(error) => &error.to_string(),
                };
            Counters::add(&self.shared.counters.garbled_links);
            self.unreadable(remote, wrong, "unreadable first packet, connection closed");
            return None;
        }
    }

    fn unreadable(&self, remote: SocketAddr, error: &dyn Display, consequence: &str) {
        let now = self.tasks.runtime.now();
        let permitted = self.shared.warnings.permit("link.refused", Some(remote.ip()), now);
        if let Some(suppressed) = permitted {
            tracing::warn!(
                event = "link.refused", sid = self.shared.id.0, peer = %remote, %error, suppressed,
                "{consequence}"
            );
        }
    }

    /// A certificate that would be refused, where that is only told.
    fn tell_identity(&self, remote: SocketAddr, peer: Option<ServerId>, seen: &str) {
        let now = self.tasks.runtime.now();
        let permitted = self.shared.warnings.permit("tls.identity", Some(remote.ip()), now);
        if let Some(suppressed) = permitted {
            let (sid, peer) = (self.shared.id.0, peer.map(|peer| peer.0));
            tracing::warn!(
                event = "tls.identity", sid, peer, %remote, suppressed,
                "a certificate is not for the server that is claimed, and quorate.ssl.identity is warn: {seen}"
            );
        }
    }
}

/// What a connection has said of who is at its other end.
struct Said {
    peer: Option<ServerId>,
    advertised: Option<HostPort>,
}

/// An introduction is some 40 bytes, and what waits for one should be small.
const INTRODUCTION_READ_BYTES: usize = 256;
