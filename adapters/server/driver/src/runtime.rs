//! What the driver needs of an async runtime: two types and ten verbs.
//!
//! Only what differs between runtimes is here. Channels come from a runtime-neutral crate, files from
//! plain threads, so there is no blocking pool, no mutex and no file in this trait. Dispatch is static:
//! an adapter is a unit struct, one `impl`, and a type alias.
//!
//! What it does not do: nothing here knows ZooKeeper. An adapter shows with the scenarios of the feature
//! `testing` that it does what is said here.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_io::{AsyncRead, AsyncWrite};
use quorate_leadership::{Clock, boot_time};
use socket2::{SockRef, TcpKeepalive};

/// An async runtime.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A TCP connection. Dropping it closes it; `poll_close` tells the peer that nothing follows
    /// (`shutdown`), and leaves the other direction open.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A TCP socket that listens. Dropping it frees the port.
    type Listener: Send + Sync + 'static;

    /// Runs a task to its end, or until the runtime ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// Listens at an address, which may be reused at once after an earlier listener has closed. Applies
    /// [`lengthen_queue`] to it.
    fn listen(&self, at: SocketAddr) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// Waits for the next connection; says where it comes from. Applies [`tune`] to it. Dropping the
    /// future takes no connection away from the next one.
    fn accept(
        &self,
        on: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Where a socket listens; the port that the system has picked, if none was asked for.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn local_addr(&self, of: &Self::Listener) -> io::Result<SocketAddr>;

    /// Lets no more connections than so many wait at a listener to be accepted ([`limit_queue`]). To override where the socket
    /// can be had.
    fn limit(&self, listener: &Self::Listener, waiting_max: u32) {
        let _ = (listener, waiting_max);
    }

    /// Ends a connection with a reset rather than in order, where the system lets it ([`reset_on_close`]): what is not
    /// written yet is given up. To override where the socket can be had.
    fn reset(&self, stream: Self::Stream) {
        drop(stream);
    }

    /// Makes a connection that was accepted one of a client ([`tune_for_client`]): it may be silent, or not read, for
    /// longer than a peer. To override where the socket can be had.
    fn relax(&self, stream: &Self::Stream, keep_alive: bool) {
        let _ = (stream, keep_alive);
    }

    /// The two ends of a connection ([`ends`]), by which the system is asked how often it had to send something again. To
    /// override where the socket can be had: without, that is not told of its links.
    fn ends(&self, stream: &Self::Stream) -> Option<(SocketAddr, SocketAddr)> {
        let _ = stream;
        None
    }

    /// Connects. Applies [`tune`]. Dropping the future gives up.
    fn dial(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The monotonic clock, with the time in which the machine was suspended: leases end meanwhile
    /// ([`boot_time`]). To override where a runtime can pause its own, to which
    /// [`boot_time::suspended`] is to be added then.
    fn now(&self) -> Instant {
        boot_time::now()
    }
}

/// The clock of a runtime, as the guards of leadership see it.
#[derive(Clone, Copy, Debug)]
pub struct OnRuntime<R>(pub(crate) R);

/// The right to do what only the leader may. See [`Server::leadership`](crate::Server::leadership).
pub type Leadership<R> = quorate_leadership::Leadership<OnRuntime<R>>;

impl<R: Runtime> Clock for OnRuntime<R> {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        self.0.sleep(duration)
    }
}

/// Sets what every connection between servers needs.
///
/// A vote is a small message that its receiver waits for: no Nagle. A peer whose machine is gone sends
/// nothing at all, and the election port has no pings of its own: keep-alive finds it after some ten
/// seconds when the link is idle, the user timeout when bytes are under way (ZOOKEEPER-1748).
///
/// # Errors
///
/// What the system says; the connection works without, so callers may go on.
pub fn tune<'s, S>(socket: &'s S) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
    #[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "solaris")))]
    let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL);
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    let keepalive = keepalive.with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    Ok(())
}

/// Takes back what [`tune`] has set and only a peer wants: how long a client may be silent is the service's to say, and one
/// that does not read for a while is no dead machine. It is probed while it is silent only with `keep_alive`.
///
/// # Errors
///
/// What the system says; the connection works all the same.
pub fn tune_for_client<'s, S>(socket: &'s S, keep_alive: bool) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    let socket = SockRef::from(socket);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(None)?;
    socket.set_keepalive(keep_alive)
}

/// Lets as many connections wait to be accepted as the system allows: many clients may come at once, when a server is back
/// say, and a dialler that finds the queue full tries again only after a second.
///
/// # Errors
///
/// What the system says; the queue is as long as it was then.
pub fn lengthen_queue<'s, S>(listener: &'s S) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    SockRef::from(listener).listen(QUEUE)
}

/// This end of a connection, and the other one; none if the system does not tell.
pub fn ends<'s, S>(socket: &'s S) -> Option<(SocketAddr, SocketAddr)>
where
    SockRef<'s>: From<&'s S>,
{
    let socket = SockRef::from(socket);
    let address = |known: io::Result<socket2::SockAddr>| known.ok()?.as_socket();
    address(socket.local_addr()).zip(address(socket.peer_addr()))
}

/// Lets no more connections than so many wait to be accepted, nor more than the system allows: systems that count otherwise
/// let one more wait.
///
/// # Errors
///
/// What the system says; the queue is as long as it was then.
pub fn limit_queue<'s, S>(listener: &'s S, waiting_max: u32) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    SockRef::from(listener).listen(i32::try_from(waiting_max).unwrap_or(i32::MAX))
}

/// Lets a connection end with a reset when it is closed: what it has not sent yet is given up, and nothing is kept of it.
///
/// # Errors
///
/// What the system says; the connection ends in order then.
pub fn reset_on_close<'s, S>(socket: &'s S) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    SockRef::from(socket).set_linger(Some(Duration::ZERO))
}

/// Longer than any system has by default.
const QUEUE: i32 = 1 << 16;
/// How long a connection may be idle before it is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
/// Between two probes.
#[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "solaris")))]
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
/// Probes without an answer that end a connection.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
const KEEPALIVE_RETRIES: u32 = 3;
/// How long sent bytes may stay without an acknowledgement.
#[cfg(any(target_os = "linux", target_os = "android"))]
const USER_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_is_short_is_not_held_back_and_only_peers_are_probed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = SockRef::from(&stream);
        tune(&stream).unwrap();
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        for probed in [false, true] {
            tune_for_client(&stream, probed).unwrap();
            assert!(socket.tcp_nodelay().unwrap());
            assert_eq!(socket.keepalive().unwrap(), probed);
            #[cfg(target_os = "linux")]
            assert_eq!(socket.tcp_user_timeout().unwrap(), None);
        }
        assert_eq!(socket.linger().unwrap(), None);
        reset_on_close(&stream).unwrap();
        assert_eq!(socket.linger().unwrap(), Some(Duration::ZERO));
    }

    /// A queue of 128, as listeners have it by themselves, takes no more than that, nor some more.
    #[cfg(target_os = "linux")]
    #[test]
    fn many_may_connect_before_one_is_accepted() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        if most.trim().parse::<u32>().unwrap() < 1000 {
            return;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        lengthen_queue(&listener).unwrap();
        let at = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&at, Duration::from_millis(500));
        let connected = (0..600).map(connect).filter(Result::is_ok).count();
        assert_eq!(connected, 600);
    }

    /// Linux lets one more wait. The others get no answer.
    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_wait_to_be_accepted_than_an_operator_says() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        lengthen_queue(&listener).unwrap();
        limit_queue(&listener, 3).unwrap();
        let at = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&at, Duration::from_millis(200));
        let waiting: Vec<_> = (0..8).map(connect).filter_map(Result::ok).collect();
        assert!(waiting.len() <= 4, "{}", waiting.len());
    }
}
