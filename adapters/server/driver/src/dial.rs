//! Connections that we make.
//!
//! Each dial is a task of its own, so one peer whose machine swallows packets or whose name does not
//! resolve holds up nobody else (ZOOKEEPER-3756, -822). Names are resolved anew for each dial: in a
//! cluster of containers a restarted peer has another number (ZOOKEEPER-1506). Numbers need no
//! resolver; a name has at most one thread looking it up, so a resolver that hangs cannot pile them up.
//!
//! What it does not do: decide whom to dial, and when again. That is the core's.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use bytes::{Bytes, BytesMut};
use futures_lite::future::or;
use futures_lite::io::AsyncWriteExt;
use quorate_core::address::HostPort;
use quorate_core::id::{LinkId, ServerId};
use quorate_core::input::{Event, Plane};

use crate::link::{self, Happened, Opened, Shared};
use crate::runtime::Runtime;
use crate::scope::{Scope, THREAD_STACK, closed};
use crate::status::Counters;

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Dialler<R> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) doors: Scope<R>,
    pub(crate) links: Scope<R>,
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
        let call = Call {
            runtime: self.doors.runtime.clone(),
            timeout: self.timeout,
            resolver: self.resolver.clone(),
        };
        // Those that are over have nobody left who could be told.
        self.under_way.retain(|_, call_off| !call_off.is_closed());
        let (call_off, called_off) = bounded(1);
        self.under_way.insert((plane, peer), call_off);
        self.doors.spawn(async move {
            let connected = async {
                for address in &addresses {
                    match call.connect(address, introduction.as_ref()).await {
                        Ok(connected) => return Some(connected),
                        Err(error) => {
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
                closed(&called_off).await;
                tracing::debug!(sid = shared.id.0, ?plane, peer = peer.0, "called off");
                None
            };
            if let Some((stream, remote)) = or(connected, give_up).await {
                let opened = Opened {
                    stream,
                    plane,
                    dialled: true,
                    remote,
                    peer: Some(peer),
                    advertised: None,
                    received: BytesMut::new(),
                    guest: None,
                };
                return link::open(&links, &shared, opened);
            }
            Counters::add(&shared.counters.failed_dials);
            // Nobody listens: the server ends.
            drop(shared.events.send(Happened::Event(Event::DialFailed { plane, peer })).await);
        });
    }
}

impl<R: Runtime> Dialler<R> {
    /// Looks names up, and tells the loop what they lead to; nothing, if that takes too long.
    pub(crate) fn look_up(&self, link: LinkId, hosts: Vec<String>) {
        let shared = Arc::clone(&self.shared);
        let call = Call {
            runtime: self.doors.runtime.clone(),
            timeout: self.timeout,
            resolver: self.resolver.clone(),
        };
        self.doors.spawn(async move {
            let mut addresses = Vec::new();
            for host in &hosts {
                match call.bounded(call.resolver.resolve(host)).await {
                    Ok(ips) => addresses.extend(ips),
                    Err(error) => {
                        tracing::debug!(sid = shared.id.0, link = link.0, host, %error, "cannot look up");
                    }
                }
            }
            // Nobody listens: the server ends.
            drop(shared.events.send(Happened::Event(Event::Resolved { link, addresses })).await);
        });
    }
}

impl<R> Dialler<R> {
    /// Ends a dial that is under way: its answer comes at once.
    pub(crate) fn call_off(&mut self, plane: Plane, peer: ServerId) {
        drop(self.under_way.remove(&(plane, peer)));
    }
}

/// One dial.
struct Call<R> {
    runtime: R,
    timeout: Duration,
    resolver: Resolver,
}

impl<R: Runtime> Call<R> {
    async fn connect(
        &self,
        address: &HostPort,
        introduction: Option<&Bytes>,
    ) -> io::Result<(R::Stream, SocketAddr)> {
        let ips = self.bounded(self.resolver.resolve(&address.host)).await?;
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for ip in ips {
            let to = SocketAddr::new(ip, address.port);
            let connected = self.bounded(async {
                let mut stream = self.runtime.dial(to).await?;
                if let Some(introduction) = introduction {
                    // In one piece: Java gives up on an introduction that its first read does not get.
                    stream.write_all(introduction).await?;
                    stream.flush().await?;
                }
                Ok(stream)
            });
            match connected.await {
                Ok(stream) => return Ok((stream, to)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn bounded<T>(&self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        or(work, async {
            self.runtime.sleep(self.timeout).await;
            Err(io::Error::new(ErrorKind::TimedOut, format!("no answer in {:?}", self.timeout)))
        })
        .await
    }
}

/// Turns names into numbers, one thread for each name at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolver {
    busy: Arc<Mutex<BTreeMap<String, Arc<LookUp>>>>,
}

/// A name that is being looked up; dials of the same name that come meanwhile wait for the same answer.
#[derive(Debug)]
struct LookUp {
    answer: Mutex<Option<Answer>>,
    done: Receiver<Infallible>,
}

/// What a look-up has found; errors of the system cannot be cloned.
type Answer = Result<Vec<IpAddr>, (ErrorKind, String)>;

impl Resolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(ip) = host.parse() {
            return Ok(vec![ip]);
        }
        let look_up = self.look_up(host, |host| look_up(&host))?;
        closed(&look_up.done).await;
        match &*locked(&look_up.answer) {
            Some(Ok(ips)) => Ok(ips.clone()),
            Some(Err((kind, text))) => Err(io::Error::new(*kind, text.clone())),
            None => Err(io::Error::other("the resolver has panicked")),
        }
    }

    /// Joins the look-up that is under way, or begins one.
    fn look_up(
        &self,
        host: &str,
        ask: impl FnOnce(String) -> io::Result<Vec<IpAddr>> + Send + 'static,
    ) -> io::Result<Arc<LookUp>> {
        let mut busy = locked(&self.busy);
        if let Some(look_up) = busy.get(host) {
            return Ok(Arc::clone(look_up));
        }
        let (finish, done) = bounded(1);
        let look_up = Arc::new(LookUp { answer: Mutex::new(None), done });
        let turn = Turn { host: host.to_owned(), resolver: self.clone(), _finish: finish };
        let asked = Arc::clone(&look_up);
        let thread = std::thread::Builder::new().name("quorate-resolve".to_owned());
        // Inserted first: a turn that ends, be it because there is no thread, takes its entry away.
        busy.insert(host.to_owned(), Arc::clone(&look_up));
        drop(busy);
        thread.stack_size(THREAD_STACK).spawn(move || {
            let answer = ask(turn.host.clone()).map_err(|error| (error.kind(), error.to_string()));
            *locked(&asked.answer) = Some(answer);
            drop(turn);
        })?;
        Ok(look_up)
    }
}

/// The right to look a name up. Dropping it tells those who wait for the answer.
#[derive(Debug)]
struct Turn {
    host: String,
    resolver: Resolver,
    _finish: Sender<Infallible>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.resolver.busy).remove(&self.host);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the system for the numbers of a name; blocks.
pub(crate) fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    let mut ips = Vec::new();
    for found in (host, 0).to_socket_addrs()? {
        if !ips.contains(&found.ip()) {
            ips.push(found.ip());
        }
    }
    Ok(ips)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_lite::future::block_on;
    use futures_lite::io::Cursor;

    use super::*;
    use crate::link::Tongue;

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

        async fn dial(&self, _: SocketAddr) -> io::Result<Self::Stream> {
            pending().await
        }
    }

    #[test]
    fn a_dial_that_hangs_is_answered_when_it_is_called_off() {
        let (sender, events) = bounded(8);
        let patience = Duration::from_secs(1);
        let shared = Arc::new(Shared::new(ServerId(3), sender, patience, Tongue::Fast));
        let ((doors, _doors), (links, _links)) = (Scope::new(Deaf), Scope::new(Deaf));
        let (timeout, resolver) = (Duration::from_secs(1), Resolver::default());
        let under_way = UnderWay::default();
        let mut dialler = Dialler { shared, doors, links, timeout, resolver, under_way };
        let at = vec![HostPort { host: "10.0.0.1".to_owned(), port: 3888 }];
        for _ in 0..2 {
            for plane in [Plane::Quorum, Plane::Election] {
                dialler.dial(plane, ServerId(1), at.clone(), None);
            }
            for plane in [Plane::Election, Plane::Quorum] {
                dialler.call_off(plane, ServerId(1));
                let Ok(Happened::Event(told)) = events.recv_blocking() else { panic!("nothing") };
                assert_eq!(told, Event::DialFailed { plane, peer: ServerId(1) });
            }
        }
        assert!(events.is_empty() && dialler.under_way.is_empty(), "each has one answer");
    }

    #[test]
    fn a_name_is_looked_up_once_at_a_time() {
        let resolver = Resolver::default();
        let (answer, answers) = bounded::<IpAddr>(1);
        let hanging = move |_| Ok(answers.recv_blocking().into_iter().collect());
        let first = resolver.look_up("zk1", hanging).unwrap();
        let second = resolver.look_up("zk1", |_| panic!("it is being looked up")).unwrap();
        let other = resolver.look_up("zk2", |_| Ok(Vec::new())).unwrap();
        block_on(closed(&other.done));
        assert!(!first.done.is_closed());

        answer.send_blocking([10, 0, 0, 1].into()).unwrap();
        block_on(closed(&second.done));
        assert_eq!(*locked(&second.answer), Some(Ok(vec![IpAddr::from([10, 0, 0, 1])])));
        assert!(locked(&resolver.busy).is_empty());
    }
}
