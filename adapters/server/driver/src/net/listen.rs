//! The listening sockets of a server: election and quorum port.
//!
//! Both are open before the first step, so that no peer is refused by a server that is there. A
//! connection on the election port has to introduce itself first; each is heard out by a task of its
//! own, with a deadline. No address has more than its share of all connections. When the system
//! refuses to accept, out of descriptors say, the socket tries again and says so, to the core, too; a socket that
//! goes on to fail for another reason is opened anew.
//!
//! What it does not do: decide who may come in. That is the core's.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use bytes::BytesMut;
use futures_lite::future::{or, poll_once};
use quorate_core::address::HostPort;
use quorate_core::input::Plane;
use quorate_core::membership::Member;
use quorate_core::message::Introduction;

use crate::config::ServerConfig;
use crate::error::StartError;
use crate::net::accepting::Socket;
use crate::net::events::Shared;
use crate::net::guests::{Guest, Guests};
use crate::net::handshakes::Pending;
use crate::net::link::{self, Opened};
use crate::net::reader::read_some;
use crate::net::resolve::own_ips;
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::{Scope, closed};

/// Opens every address of our own line in the membership.
pub(crate) async fn bind<R: Runtime>(
    runtime: &R,
    config: &ServerConfig,
    own: &Member,
) -> Result<Vec<Open<R>>, StartError> {
    let mut open: Vec<Open<R>> = Vec::new();
    for door in doors(own, config.listen_on_all_ips) {
        let mut tries = 0_u32;
        let listeners = loop {
            tries = tries.saturating_add(1);
            match door.open(runtime).await? {
                Ok(listeners) => break listeners,
                Err(source) => {
                    let address = door.at.to_string();
                    let temporary = matches!(
                        source.kind(),
                        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
                    );
                    if !temporary || (config.bind_tries > 0 && tries >= config.bind_tries) {
                        return Err(StartError::Bind { plane: door.plane, address, tries, source });
                    }
                    tracing::warn!(
                        sid = config.core.id.0, %address, error = %source, tries,
                        "cannot listen, trying again"
                    );
                    runtime.sleep(BIND_RETRY).await;
                }
            }
        };
        open.push(Open { door, listeners });
    }
    Ok(open)
}

/// What listens at a door: a socket for each number of its address.
pub(crate) struct Open<R: Runtime> {
    door: Door,
    listeners: Vec<(SocketAddr, R::Listener)>,
}

/// One address of one port.
#[derive(Clone, PartialEq, Eq)]
struct Door {
    plane: Plane,
    at: HostPort,
}

/// The doors of a line in the membership.
fn doors(own: &Member, on_all_ips: bool) -> Vec<Door> {
    let mut doors = Vec::new();
    for address in &own.addresses {
        for (plane, at) in [(Plane::Election, &address.election), (Plane::Quorum, &address.quorum)]
        {
            let all = Ipv6Addr::UNSPECIFIED.to_string();
            let host = if on_all_ips { all } else { at.host.clone() };
            let door = Door { plane, at: HostPort { host, port: at.port } };
            if !doors.contains(&door) {
                doors.push(door);
            }
        }
    }
    doors
}

/// The doors that are open. They move when our line in the membership does.
pub(crate) struct Doors<R: Runtime> {
    pub(crate) entrance: Entrance<R>,
    pub(crate) on_all_ips: bool,
    /// Each closes when its sender goes.
    open: Vec<(Door, Sender<Infallible>)>,
}

impl<R: Runtime> Doors<R> {
    /// Serves what is open.
    pub(crate) fn new(entrance: Entrance<R>, on_all_ips: bool, open: Vec<Open<R>>) -> Self {
        let mut doors = Self { entrance, on_all_ips, open: Vec::new() };
        for Open { door, listeners } in open {
            let (staying, closing) = bounded(1);
            doors.entrance.serve_all(door.plane, listeners, &closing);
            doors.open.push((door, staying));
        }
        doors
    }

    /// Our line has changed: closes what is no address of ours any more, and opens what is one now, as
    /// soon as that can be had. Nothing else could be done about one that cannot: our peers dial it already.
    pub(crate) fn move_to(&mut self, own: &Member) {
        let wanted = doors(own, self.on_all_ips);
        self.open.retain(|(door, _)| wanted.contains(door));
        for door in wanted {
            if self.open.iter().any(|(open, _)| *open == door) {
                continue;
            }
            let (staying, closing) = bounded(1);
            let entrance = self.entrance.clone();
            self.open.push((door.clone(), staying));
            self.entrance.doors.spawn(async move {
                let opened = async { Some(entrance.insist(&door).await) };
                let closed = async {
                    closed(&closing).await;
                    None
                };
                if let Some(listeners) = or(closed, opened).await {
                    entrance.serve_all(door.plane, listeners, &closing);
                }
            });
        }
    }
}

impl Door {
    /// Looks the name up, and listens there.
    async fn open<R: Runtime>(
        &self,
        runtime: &R,
    ) -> Result<io::Result<Vec<(SocketAddr, R::Listener)>>, StartError> {
        let ips = own_ips(&self.at.host).await?;
        Ok(self.listen(runtime, &ips).await)
    }

    /// Listens at each number that this machine has; at least at one.
    async fn listen<R: Runtime>(
        &self,
        runtime: &R,
        ips: &[IpAddr],
    ) -> io::Result<Vec<(SocketAddr, R::Listener)>> {
        let mut open = Vec::new();
        let mut missing = None;
        for ip in ips {
            let at = SocketAddr::new(*ip, self.at.port);
            match runtime.listen(at).await {
                Ok(listener) => open.push((at, listener)),
                // No IPv6 on this machine.
                Err(error)
                    if *ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                        && error.kind() != io::ErrorKind::AddrInUse =>
                {
                    let at = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), self.at.port);
                    open.push((at, runtime.listen(at).await?));
                }
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    missing = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match missing {
            Some(error) if open.is_empty() => Err(error),
            _ => Ok(open),
        }
    }
}

/// What serves listening sockets.
#[derive(Clone)]
pub(crate) struct Entrance<R> {
    pub(crate) shared: Arc<Shared>,
    /// Where handshakes run.
    pub(crate) doors: Scope<R>,
    /// Where links run.
    pub(crate) links: Scope<R>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) guests: Arc<Guests>,
    pub(crate) patience: Duration,
}

impl<R: Runtime> Entrance<R> {
    /// Opens a door, however long that takes.
    async fn insist(&self, door: &Door) -> Vec<(SocketAddr, R::Listener)> {
        let runtime = &self.doors.runtime;
        let socket = Socket::new(&self.shared, door.plane);
        loop {
            let error = match door.open(runtime).await {
                Ok(Ok(listeners)) => return listeners,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            socket.is(true).await;
            if let Some(suppressed) = self.shared.warnings.speak(runtime.now()) {
                tracing::warn!(
                    sid = self.shared.id.0, address = %door.at, error, suppressed,
                    "cannot listen at an address that the membership gives us, trying again"
                );
            }
            runtime.sleep(BIND_RETRY).await;
        }
    }

    /// Sets a task to each socket, until the door closes.
    fn serve_all(
        &self,
        plane: Plane,
        listeners: Vec<(SocketAddr, R::Listener)>,
        closing: &Receiver<Infallible>,
    ) {
        for (at, listener) in listeners {
            tracing::debug!(sid = self.shared.id.0, ?plane, %at, "listening");
            let (entrance, closing) = (self.clone(), closing.clone());
            self.doors.spawn(async move {
                or(closed(&closing), entrance.serve(plane, at, listener)).await;
            });
        }
    }

    /// Accepts until the scope ends.
    async fn serve(&self, plane: Plane, at: SocketAddr, listener: R::Listener) {
        let runtime = self.doors.runtime.clone();
        let socket = Socket::new(&self.shared, plane);
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
                    self.welcome(plane, stream, remote);
                    continue;
                }
                Err(error) => error,
            };
            Counters::add(&self.shared.counters.accept_errors);
            socket.is(true).await;
            errors += 1;
            // A descriptor that is given up when there are none may not come back.
            let anew = errors % ERRORS_FOR_GOOD == 0 && !lacks_descriptors(&error);
            if let Some(suppressed) = self.shared.warnings.speak(runtime.now()) {
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

    /// Waits for the next connection. A socket that lets us wait is well.
    async fn accept(
        &self,
        listener: &R::Listener,
        socket: &Socket,
        errors: &mut u32,
    ) -> io::Result<(R::Stream, SocketAddr)> {
        let mut accepting = pin!(self.doors.runtime.accept(listener));
        match poll_once(accepting.as_mut()).await {
            Some(Err(error)) => Err(error),
            Some(Ok(accepted)) => {
                socket.is(false).await;
                Ok(accepted)
            }
            None => {
                *errors = 0;
                socket.is(false).await;
                accepting.await
            }
        }
    }

    fn welcome(&self, plane: Plane, stream: R::Stream, remote: SocketAddr) {
        let Some(guest) = self.guests.admit(remote.ip()) else {
            Counters::add(&self.shared.counters.refused_connections);
            if let Some(suppressed) = self.shared.warnings.speak(self.doors.runtime.now()) {
                tracing::warn!(
                    sid = self.shared.id.0, peer = %remote, suppressed,
                    "this address has too many connections to our ports for peers: closed"
                );
            }
            return;
        };
        let guest = Some(guest);
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
                    guest,
                };
                link::open(&self.links, &self.shared, opened);
            }
            Plane::Election => {
                let (place, given_up) = self.pending.enter(remote.ip());
                if place.evicted {
                    Counters::add(&self.shared.counters.evicted_introductions);
                }
                let entrance = self.clone();
                self.doors.spawn(async move {
                    let deadline = async {
                        entrance.doors.runtime.sleep(entrance.patience).await;
                        None
                    };
                    let room_needed = async {
                        closed(&given_up).await;
                        None
                    };
                    let heard = entrance.hear(stream, remote, guest);
                    let opened = or(heard, or(room_needed, deadline)).await;
                    drop(place);
                    if let Some(opened) = opened {
                        link::open(&entrance.links, &entrance.shared, opened);
                    }
                });
            }
        }
    }

    /// Reads an introduction.
    async fn hear(
        &self,
        mut stream: R::Stream,
        remote: SocketAddr,
        guest: Option<Guest>,
    ) -> Option<Opened<R::Stream>> {
        let mut received = BytesMut::new();
        loop {
            match self.shared.tongue.hear(&mut received) {
                Ok(Some(Introduction { id, addresses })) => {
                    return Some(Opened {
                        stream,
                        plane: Plane::Election,
                        dialled: false,
                        remote,
                        peer: Some(id),
                        advertised: addresses.into_iter().next(),
                        received,
                        guest,
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    Counters::add(&self.shared.counters.refused_introductions);
                    if let Some(suppressed) = self.shared.warnings.speak(self.doors.runtime.now()) {
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

/// Between two tries to listen.
const BIND_RETRY: Duration = Duration::from_secs(1);
/// The first wait after the system refused to accept.
const ACCEPT_RETRY_MIN: Duration = Duration::from_millis(10);
/// The longest such wait.
const ACCEPT_RETRY_MAX: Duration = Duration::from_secs(1);
/// After so many errors in a row, some 150 ms, a socket is taken for broken and opened anew; again after as many.
const ERRORS_FOR_GOOD: u32 = 4;
/// An introduction is some 40 bytes, and what waits for one should be small.
const INTRODUCTION_READ_BYTES: usize = 256;
