//! ZooKeeper's leader election, embedded in a tokio program.
//!
//! Three servers in one process; each would usually have a machine of its own, and its configuration
//! from a `zoo.cfg` (see [`start`]):
//!
//! ```
//! use quorate_tokio::core::{config::Config, id::ServerId, membership::Membership};
//! use quorate_tokio::{Server, ServerConfig, Tokio};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let ensemble = Membership::parse(
//!     "server.1=127.0.0.1:23881:33881\nserver.2=127.0.0.1:23882:33882\nserver.3=127.0.0.1:23883:33883",
//! )?;
//! let mut servers = Vec::new();
//! for id in [1, 2, 3] {
//!     let config = Config::new(ServerId(id), ensemble.clone());
//!     let config = ServerConfig::new(config, dir.path().join(id.to_string()));
//!     servers.push(Server::start(Tokio, config).await?);
//! }
//! let mut leaders = servers[0].leaders();
//! while let Some(leader) = leaders.next().await {
//!     let Some((id, epoch)) = leader else { continue };
//!     println!("server {id} leads in epoch {epoch}");
//!     # break;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This crate is [`Tokio`], an implementation of [`Runtime`], and a few names; all the rest is in
//! `quorate-driver`, the same for every runtime. It needs tokio's I/O and time drivers
//! (`enable_all`), and works on the current-thread runtime as on the multi-threaded one.
#![forbid(unsafe_code, unused_must_use)]

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

pub use quorate_driver::{
    Changes, Leader, Leaders, Metrics, Observed, Runtime, ServerConfig, ServerError, StartError,
    Status, core, zoo_cfg,
};

/// A server on tokio.
pub type Server = quorate_driver::Server<Tokio>;

/// tokio, as the driver sees it: the runtime in whose context it is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

impl Runtime for Tokio {
    type Stream = Compat<TcpStream>;
    type Listener = TcpListener;

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Detached: the driver ends its tasks by itself.
        drop(tokio::spawn(task));
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }

    async fn listen(&self, at: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(at).await
    }

    async fn accept(&self, on: &TcpListener) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, remote) = on.accept().await?;
        Ok((tuned(stream), remote))
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        Ok(tuned(TcpStream::connect(to).await?))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// Starts a server; for what comes from a `zoo.cfg` as for what was built:
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use quorate_tokio::zoo_cfg::ZooCfg;
///
/// let server = quorate_tokio::start(ZooCfg::read("/etc/zookeeper/zoo.cfg")?).await?;
/// server.finished().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`Server::start`](quorate_driver::Server::start).
pub async fn start(config: impl Into<ServerConfig>) -> Result<Server, StartError> {
    Server::start(Tokio, config.into()).await
}

fn tuned(stream: TcpStream) -> Compat<TcpStream> {
    // A connection without these options is better than none.
    drop(quorate_driver::tune(&stream));
    stream.compat()
}

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
