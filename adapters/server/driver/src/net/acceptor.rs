//! Accepts connections at listening sockets, and makes links of them.
//!
//! A connection on the election port has to introduce itself first; each is heard by a task of its own, with a deadline.
//! No address has more than its share of all connections. When the system refuses to accept, out of descriptors say, the
//! socket tries again and reports it, to the core, too; a socket that goes on to fail for another reason is opened anew.
//!
//! What it does not do: decide which peer may connect. That is the core's.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_channel::Receiver;
use bytes::BytesMut;
use futures_lite::future::{or, poll_once};
use quorate_core::input::Plane;
use quorate_core::message::Introduction;

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
                or(closed(&closing), acceptor.serve(plane, at, listener)).await;
            });
        }
    }

    /// Accepts until the task group ends.
    async fn serve(&self, plane: Plane, at: SocketAddr, listener: R::Listener) {
        let runtime = self.tasks.runtime.clone();
        let socket = ListeningSocket::new(&self.shared, plane);
        let (mut rest, mut errors) = (ACCEPT_RETRY_MIN, 0);
        let mut listener = Some(listener);
        loop {
            let accepted = match &listener {
                Some(listener) => self.accept(listener, &socket, &mut errors).await.map(Some),
                None => runtime.listen(at).await.map(|opened| {
                    listener = Some(opened);
                    None
                }),
            };
            let error = match accepted {
                Ok(None) => continue,
                Ok(Some((stream, remote))) => {
                    (rest, errors) = (ACCEPT_RETRY_MIN, 0);
                    self.admit(plane, stream, remote);
                    continue;
                }
                Err(error) => error,
            };
            Counters::add(&self.shared.counters.accept_errors);
            socket.report(true).await;
            errors += 1;
            // A descriptor that is given up when there are none may not come back.
            let anew = errors % ERRORS_FOR_GOOD == 0 && !lacks_descriptors(&error);
            if let Some(suppressed) = self.shared.warnings.permit(runtime.now()) {
                let then = if anew { "opening the port anew" } else { "trying again" };
                tracing::warn!(
                    sid = self.shared.id.0, ?plane, %at, %error, suppressed,
                    "cannot accept connections, {then}"
                );
            }
            runtime.sleep(rest).await;
            rest = (rest * 2).min(ACCEPT_RETRY_MAX);
            if anew {
                listener = None;
            }
        }
    }

    /// Waits for the next connection. A socket that lets us wait works.
    async fn accept(
        &self,
        listener: &R::Listener,
        socket: &ListeningSocket,
        errors: &mut u32,
    ) -> io::Result<(R::Stream, SocketAddr)> {
        let mut accepting = pin!(self.tasks.runtime.accept(listener));
        match poll_once(accepting.as_mut()).await {
            Some(Err(error)) => Err(error),
            Some(Ok(accepted)) => {
                socket.report(false).await;
                Ok(accepted)
            }
            None => {
                *errors = 0;
                socket.report(false).await;
                accepting.await
            }
        }
    }

    fn admit(&self, plane: Plane, stream: R::Stream, remote: SocketAddr) {
        let Some(share) = self.connections.admit(remote.ip()) else {
            Counters::add(&self.shared.counters.refused_connections);
            if let Some(suppressed) = self.shared.warnings.permit(self.tasks.runtime.now()) {
                tracing::warn!(
                    sid = self.shared.id.0, peer = %remote, suppressed,
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
                    if let Some(suppressed) = self.shared.warnings.permit(self.tasks.runtime.now())
                    {
                        tracing::warn!(
                            sid = self.shared.id.0, peer = %remote, %error, suppressed,
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

/// Whether it is descriptors that the process or the system has none left of (EMFILE, ENFILE; WSAEMFILE): the
/// socket itself is well then.
fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24 | 10_024))
}

/// The first wait after the system refused to accept.
const ACCEPT_RETRY_MIN: Duration = Duration::from_millis(10);
/// The longest such wait.
const ACCEPT_RETRY_MAX: Duration = Duration::from_secs(1);
/// After so many errors in a row, some 150 ms, a socket is taken for broken and opened anew; again after as many.
const ERRORS_FOR_GOOD: u32 = 4;
/// An introduction is some 40 bytes, and what waits for one should be small.
const INTRODUCTION_READ_BYTES: usize = 256;
