//! Connections that we make.
//!
//! Each dial is a task of its own, so one peer whose machine swallows packets or whose name does not
//! resolve holds up no dial to another peer (ZOOKEEPER-3756, -822).
//!
//! What it does not do: decide whom to dial, and when again. That is the core's.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Sender, bounded};
use bytes::{Bytes, BytesMut};
use futures_io::AsyncWrite;
use futures_lite::future::or;
use futures_lite::io::AsyncWriteExt;
use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Plane};

use crate::net::events::{LoopEvent, Shared};
use crate::net::link::{self, Opened};
use crate::net::reach::{Failed, Unreached};
use crate::net::resolve::Resolver;
use crate::net::sasl::{Between, Logins};
use crate::net::tls::{Secure, accepted_by_peer};
use crate::net::tls_failures::{FailedLink, Refusal, Side};
use crate::net::wire::Wire;
use crate::runtime::Runtime;
use crate::status::Counters;
use crate::task_group::{TaskGroup, closed};

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Dialler<R> {
    pub(crate) shared: Arc<Shared>,
    /// TLS between servers; none where they speak without it.
    pub(crate) secure: Option<Arc<Secure>>,
    /// Logins between servers; none where there are none.
    pub(crate) logins: Option<Arc<Logins>>,
    pub(crate) tasks: TaskGroup<R>,
    pub(crate) links: TaskGroup<R>,
    pub(crate) timeout: Duration,
    pub(crate) resolver: Resolver,
    pub(crate) under_way: UnderWay,
}

/// The dials that may be under way, and what ends each when it is dropped.
pub(crate) type UnderWay = BTreeMap<(Plane, ServerId), Sender<Infallible>>;

impl<R: Runtime> Dialler<R> {
    /// Tries the addresses in order; tells the loop how it went. On the election plane `introduction`
    /// is the first thing that is written.
    pub(crate) fn dial(
        &mut self,
        plane: Plane,
        peer: ServerId,
        addresses: Vec<HostPort>,
        introduction: Option<Bytes>,
    ) {
        let (shared, links) = (Arc::clone(&self.shared), self.links.clone());
        let call = self.call();
        // Dials that are over have no receiver left that could be told.
        self.under_way.retain(|_, cancel| !cancel.is_closed());
        let (cancel, cancelled) = bounded(1);
        self.under_way.insert((plane, peer), cancel);
        self.tasks.spawn(async move {
            let connected = async {
                let to = (plane, peer);
                let wait = shared.held_back.wait(plane, peer, call.runtime.now());
                if !wait.is_zero() {
                    call.runtime.sleep(wait).await;
                }
                for address in &addresses {
                    let connected = call.connect(to, address, introduction.as_ref()).await;
                    let now = call.runtime.now();
                    shared.reach.note(to, address, now, connected.as_ref().err());
                    match connected {
                        Ok(connected) => return Some(connected),
                        Err((_, error)) => {
                            tracing::debug!(
                                sid = shared.id.0, ?plane, peer = peer.0, %address, %error,
                                "cannot connect"
                            );
                        }
                    }
                }
                None
            };
            let give_up = async {
                closed(&cancelled).await;
                tracing::debug!(sid = shared.id.0, ?plane, peer = peer.0, "cancelled");
                None
            };
            if let Some(Connected { stream, remote, received }) = or(connected, give_up).await {
                let opened = Opened {
                    stream,
                    plane,
                    dialled: true,
                    remote,
                    peer: Some(peer),
                    advertised: None,
                    received,
                    share: None,
                };
                return link::open(&links, &shared, opened);
            }
            Counters::add(&shared.counters.failed_dials);
            // No receiver is left: the server ends.
            drop(shared.events.send(LoopEvent::Event(Event::DialFailed { plane, peer })).await);
        });
    }
}

impl<R: Runtime> Dialler<R> {
    fn call(&self) -> Call<R> {
        Call {
            shared: Arc::clone(&self.shared),
            secure: self.secure.clone(),
            logins: self.logins.clone(),
            runtime: self.tasks.runtime.clone(),
            timeout: self.timeout,
            resolver: self.resolver.clone(),
        }
    }

    /// Looks names up, and tells the loop what they lead to; nothing, if that takes too long.
    pub(crate) fn look_up(&self, link: LinkId, hosts: Vec<String>) {
        let shared = Arc::clone(&self.shared);
        let call = self.call();
        self.tasks.spawn(async move {
            let mut addresses = Vec::new();
            for host in &hosts {
                match call.bounded(call.resolver.resolve(host)).await {
                    Ok(ips) => addresses.extend(ips),
                    Err(error) => {
                        tracing::debug!(sid = shared.id.0, link = link.0, host, %error, "cannot look up");
                    }
                }
            }
            // No receiver is left: the server ends.
            drop(shared.events.send(LoopEvent::Event(Event::Resolved { link, addresses })).await);
        });
    }
}

impl<R> Dialler<R> {
    /// Ends a dial that is under way: its answer comes at once.
    pub(crate) fn cancel(&mut self, plane: Plane, peer: ServerId) {
        drop(self.under_way.remove(&(plane, peer)));
    }
}

/// One dial.
struct Call<R> {
    shared: Arc<Shared>,
    secure: Option<Arc<Secure>>,
    logins: Option<Arc<Logins>>,
    runtime: R,
    timeout: Duration,
    resolver: Resolver,
}

/// A dial that has come through.
struct Connected<S> {
    stream: Wire<S>,
    remote: SocketAddr,
    /// What the other side has said already.
    received: BytesMut,
}

impl<R: Runtime> Call<R> {
    async fn connect(
        &self,
        to: (Plane, ServerId),
        address: &HostPort,
        introduction: Option<&Bytes>,
    ) -> Result<Connected<R::Stream>, Failed> {
        let ips = self.bounded(self.resolver.resolve(&address.host)).await;
        let ips = ips.map_err(|error| (Unreached::Name, error))?;
        self.shared.members.found(&address.host, &ips);
        let none = io::Error::new(ErrorKind::NotFound, "the name has no address");
        let mut last = (Unreached::Name, none);
        for ip in ips {
            let remote = SocketAddr::new(ip, address.port);
            match self.reach(to, remote, introduction).await {
                Ok(connected) => return Ok(connected),
                Err(error) => last = (Unreached::of(&error), error),
            }
        }
        Err(last)
    }

    async fn reach(
        &self,
        (plane, peer): (Plane, ServerId),
        remote: SocketAddr,
        introduction: Option<&Bytes>,
    ) -> io::Result<Connected<R::Stream>> {
        let refused = |refusal: Refusal| {
            let peer = Some(peer);
            let refusal = &refusal;
            let failed = FailedLink { plane, side: Side::Dial, remote, peer, refusal };
            self.shared.tls_failed(&failed, self.runtime.now());
            io::Error::from(refusal.clone())
        };
        let stream = self.bounded(self.runtime.dial(remote)).await?;
        let mut stream = match self.secure.as_ref().filter(|secure| secure.dials()) {
            None => {
                let tells = |secure: &Arc<Secure>| secure.tells_plain(Some(peer), remote.ip());
                if self.secure.as_ref().is_some_and(tells) {
                    self.shared.tell_plain(plane, Some(peer), remote);
                }
                Wire::Plain(stream)
            }
            Some(secure) => {
                let too_late = self.runtime.sleep(secure.handshake_time());
                secure.dial(stream, peer, too_late).await.map_err(refused)?
            }
        };
        let mut received = BytesMut::new();
        let introducing = async {
            let introduced = introduce(&mut stream, introduction).await;
            // Also if that failed: perhaps the other side has said why.
            let patience = async {
                self.runtime.sleep(RECEIPT_PATIENCE).await;
            };
            accepted_by_peer(&mut stream, &mut received, patience).await.map_err(refused)?;
            introduced?;
            let Some(logins) = &self.logins else { return Ok(()) };
            let between = Between { plane, remote, peer: Some(peer) };
            let (wire, now) = ((&mut stream, &mut received), || self.runtime.now());
            logins.log_in(&self.shared, &between, wire, now).await
        };
        self.bounded(introducing).await?;
        Ok(Connected { stream, remote, received })
    }

    async fn bounded<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        or(work, async {
            self.runtime.sleep(self.timeout).await;
            Err(io::Error::new(ErrorKind::TimedOut, format!("no answer in {:?}", self.timeout)))
        })
        .await
    }
}

/// Says who dials, in one piece: Java gives up on an introduction that its first read does not get.
async fn introduce(
    stream: &mut (impl AsyncWrite + Unpin),
    introduction: Option<&Bytes>,
) -> io::Result<()> {
    let Some(introduction) = introduction else { return Ok(()) };
    stream.write_all(introduction).await?;
    stream.flush().await
}

/// How long a side that dialled waits for a sign that its certificate was taken, from one that gives none: ours and Java's
/// give it at once.
const RECEIPT_PATIENCE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_lite::future::block_on;
    use futures_lite::io::Cursor;

    use super::*;
    use crate::net::codec::ElectionCodec;

    /// A machine that swallows packets, and no time passes.
    #[derive(Clone)]
    struct Deaf;

    impl Runtime for Deaf {
        type Stream = Cursor<Vec<u8>>;
        type Listener = ();

        fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
            std::thread::spawn(|| block_on(task));
        }

        async fn sleep(&self, _: Duration) {
            pending().await
        }

        async fn listen(&self, _: SocketAddr) -> io::Result<()> {
            unreachable!("nobody listens")
        }

        async fn accept(&self, (): &()) -> io::Result<(Self::Stream, SocketAddr)> {
            unreachable!("nobody listens")
        }

        fn local_addr(&self, (): &()) -> io::Result<SocketAddr> {
            unreachable!("nothing listens")
        }

        async fn dial(&self, _: SocketAddr) -> io::Result<Self::Stream> {
            pending().await
        }
    }

    #[test]
    fn a_dial_that_hangs_is_answered_when_it_is_called_off() {
        let (sender, events) = bounded(8);
        let patience = Duration::from_secs(1);
        let shared = Arc::new(Shared::new(ServerId(3), sender, patience, ElectionCodec::Fast));
        let ((tasks, _tasks), (links, _links)) = (TaskGroup::new(Deaf), TaskGroup::new(Deaf));
        let (timeout, resolver) = (Duration::from_secs(1), Resolver::default());
        let (under_way, secure, logins) = (UnderWay::default(), None, None);
        let mut dialler =
            Dialler { shared, secure, logins, tasks, links, timeout, resolver, under_way };
        let at = vec![HostPort { host: "10.0.0.1".to_owned(), port: 3888 }];
        for _ in 0..2 {
            for plane in [Plane::Quorum, Plane::Election] {
                dialler.dial(plane, ServerId(1), at.clone(), None);
            }
            for plane in [Plane::Election, Plane::Quorum] {
                dialler.cancel(plane, ServerId(1));
                let Ok(LoopEvent::Event(told)) = events.recv_blocking() else { panic!("nothing") };
                assert_eq!(told, Event::DialFailed { plane, peer: ServerId(1) });
            }
        }
        assert!(events.is_empty() && dialler.under_way.is_empty(), "each has one answer");
    }
}
