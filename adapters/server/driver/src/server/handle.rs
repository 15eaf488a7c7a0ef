//! The handle that programs embed: how a server is doing, and its end.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_channel::{Receiver, Sender, bounded};
use quorate_application::Application;
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_leadership::LeadershipGate;

use crate::drive::Quit;
use crate::error::ServerError;
use crate::host::callers::Ask;
use crate::inbox::Inbox;
use crate::lock::locked;
use crate::net::address_limit::AddressLimit;
use crate::net::client_listeners::ClientAddrs;
use crate::net::events::Shared;
use crate::net::reach::Dialled;
use crate::net::wearing::WearingLink;
use crate::permits::Permits;
use crate::runtime::Runtime;
use crate::status::{Changes, Leader, Leaders, Published, Status};
use crate::task_group::closed;

/// A running server of an ensemble, and the [`Application`] that it replicates.
///
/// Clones are the same server. It shuts down when the last one is dropped.
pub struct Server<R: Runtime, A: Application> {
    pub(super) handle: Arc<Handle<R, A>>,
}

impl<R: Runtime, A: Application> Server<R, A> {
    /// Who it is.
    pub fn id(&self) -> ServerId {
        self.handle.shared.id
    }

    /// Where it listens for clients now: where its own line in the membership says, else in the order of
    /// [`ServerConfig::client_addresses`](crate::ServerConfig::client_addresses), with the ports that the system has
    /// picked; nowhere without a service.
    pub fn client_addrs(&self) -> Vec<SocketAddr> {
        locked(&self.handle.client_addrs).clone()
    }

    /// Where it listens for clients with TLS alone, in the order of
    /// [`SecureClients::addresses`](crate::ServerConfig), with the ports that the system has picked.
    pub fn secure_client_addrs(&self) -> Vec<SocketAddr> {
        let addrs = self.handle.secure_client_addrs.as_ref();
        addrs.map_or_else(Vec::new, |addrs| locked(addrs).clone())
    }

    /// How it is doing.
    pub fn status(&self) -> Status {
        let Handle { published, shared, runtime, .. } = &*self.handle;
        published.status(&shared.counters, runtime.now())
    }

    /// Who leads and in which epoch, if this server serves under that leader or is it.
    pub fn leader(&self) -> Option<Leader> {
        self.handle.published.leader()
    }

    /// The leader now, and each change of leader from now on; the latest counts.
    pub fn leaders(&self) -> Leaders {
        self.handle.published.leaders()
    }

    /// Waits until this server serves, as leader or under one, and tells who leads: what a readiness probe
    /// wants to know.
    ///
    /// # Errors
    ///
    /// A [`ServerError`], if it ends before.
    pub async fn ready(&self) -> Result<Leader, ServerError> {
        match self.leaders().led().await {
            Some(leader) => Ok(leader),
            None => {
                self.finished().await?;
                Err(ServerError::Ended)
            }
        }
    }

    /// Asks whether the server is alive: returns at once if its loop has turned in the last second, otherwise as soon as it
    /// turns. What a liveness probe wants to know, with a limit of its own: a server that has no leader is healthy.
    ///
    /// # Errors
    ///
    /// A [`ServerError`], if it has ended.
    pub async fn healthy(&self) -> Result<(), ServerError> {
        let ended = self.handle.ended.is_closed();
        if !ended && self.handle.published.measures.has_turned_within(LATELY) {
            return Ok(());
        }
        let (answer, pulse) = bounded(1);
        if self.handle.asks.put(Ask::Pulse(answer)).is_ok() && pulse.recv().await.is_ok() {
            return Ok(());
        }
        self.finished().await?;
        Err(ServerError::Ended)
    }

    /// Every change of vote, state, round and phase from now on, with its reason. A reader that does
    /// not keep up loses the oldest; the server never waits for it.
    pub fn changes(&self) -> Changes {
        self.handle.published.changes()
    }

    /// The membership in force at this server.
    pub fn membership(&self) -> Arc<Membership> {
        self.handle.published.membership()
    }

    /// The last dial to each peer that came to an end, for elections and for its quorum port.
    pub fn dials(&self) -> Vec<Dialled> {
        self.handle.shared.reach.all()
    }

    /// The links with other servers whose keys wear: those over TLS 1.2, but for ChaCha20.
    pub fn wearing_links(&self) -> Vec<WearingLink> {
        #[cfg(feature = "tls")]
        let wearing = {
            let Handle { shared, runtime, .. } = &*self.handle;
            let (wearing, now) = (shared.secure_links.wearing(), runtime.now());
            let each = wearing.into_iter().map(|(link, since)| WearingLink {
                plane: link.plane,
                peer: link.peer,
                records: link.records(),
                records_max: link.records_max,
                age: now.saturating_duration_since(since),
            });
            each.collect()
        };
        #[cfg(not(feature = "tls"))]
        let wearing = Vec::new();
        wearing
    }

    /// Ends it in order: a leader transfers its leadership first, if a follower can take it; then clients leave, a share at a
    /// time ([`ServerConfig::client_shed`](crate::ServerConfig::client_shed)); then it closes its links, so that the others need not find out, and waits until its ports are free and its data
    /// directory is unlocked.
    ///
    /// # Errors
    ///
    /// As [`Server::finished`].
    pub async fn shutdown(&self) -> Result<(), ServerError> {
        // Full: it has been told already.
        let _ = self.handle.quit.try_send(Quit::Gracefully);
        self.finished().await
    }

    /// Ends it at once, as if the process had been killed: nothing more is written to any link. Returns
    /// when it may be started again on the same ports and directory.
    pub async fn kill(&self) {
        let _ = self.handle.quit.try_send(Quit::AtOnce);
        closed(&self.handle.ended).await;
    }

    /// Waits until it has ended, and tells why.
    ///
    /// # Errors
    ///
    /// A [`ServerError`] unless it was asked to end.
    pub async fn finished(&self) -> Result<(), ServerError> {
        closed(&self.handle.ended).await;
        self.handle.outcome.get().cloned().unwrap_or(Err(ServerError::Aborted))
    }
}

impl<R: Runtime, A: Application> Clone for Server<R, A> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<R: Runtime, A: Application> fmt::Debug for Server<R, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("id", &self.id()).field("leader", &self.leader()).finish()
    }
}

/// What the clones of a server share. Dropping it closes `quit`, which shuts the server down.
pub(super) struct Handle<R, A: Application> {
    pub(super) runtime: R,
    pub(super) shared: Arc<Shared>,
    pub(super) client_addrs: ClientAddrs,
    pub(super) secure_client_addrs: Option<ClientAddrs>,
    pub(super) client_limit: Arc<AddressLimit>,
    pub(super) published: Arc<Published>,
    pub(super) quit: Sender<Quit>,
    pub(super) ended: Receiver<Infallible>,
    pub(super) outcome: Arc<OnceLock<Result<(), ServerError>>>,
    pub(super) asks: Arc<Inbox<Ask<A>>>,
    pub(super) gate: Arc<LeadershipGate>,
    /// Bounds what is under way.
    pub(super) permits: Permits,
    /// Bounds how many look at once.
    pub(super) looks: Permits,
    /// How long requests and reads wait for service.
    pub(super) patience: Duration,
    /// The session that requests come in, another one after each start.
    pub(super) client: i64,
    /// How many have come.
    pub(super) requests: AtomicI32,
}

/// A loop that has turned since need not be asked: a turn of it costs more than the rest of a probe.
const LATELY: Duration = Duration::from_secs(1);
