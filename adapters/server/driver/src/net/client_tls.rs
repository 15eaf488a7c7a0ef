//! TLS around the connections of clients: who connects gets a [`Wire`], or the reason why not.
//!
//! ```text
//!   accepted ─► first byte ─┬─ 0x16 ─► a place ─► handshake ─► whose certificate it is
//!                           └─ other ─► plain, where that is allowed
//! ```
//!
//! A connection that is silent holds its socket; from its first byte on it has a place among the handshakes, which are
//! bounded. Nothing of what follows is read before the certificate is known to be good.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use futures_lite::future::or;
use futures_rustls::{TlsAcceptor, TlsStream};
use quorate_application::clients::Transport;
use quorate_tls::{ClientFirstBytes, ClientSettings, ClientTls, Failure, Marks, Reason, Speaks};

use crate::lock::locked;
use crate::net::client_handshakes::Among;
use crate::net::events::Shared;
use crate::net::handshakes::Handshakes;
use crate::net::reader::read_some;
use crate::net::replayed::Replayed;
use crate::net::tls_failures::Refusal;
use crate::net::wire::Wire;
use crate::runtime::Runtime;
use crate::task_group::closed;

/// What the connections of clients need for TLS.
#[derive(Debug)]
pub(crate) struct ClientSecure {
    tls: Mutex<Arc<ClientTls>>,
    handshakes: Arc<Handshakes>,
}

impl ClientSecure {
    pub(crate) fn new(tls: ClientTls) -> Self {
        Self { tls: Mutex::new(Arc::new(tls)), handshakes: Arc::new(Handshakes::of_clients()) }
    }

    fn tls(&self) -> Arc<ClientTls> {
        Arc::clone(&locked(&self.tls))
    }

    /// Its stores have changed: this counts for connections to come.
    pub(super) fn replace(&self, tls: ClientTls) {
        *locked(&self.tls) = Arc::new(tls);
    }

    pub(super) fn marks(&self) -> Marks {
        self.tls().marks().clone()
    }

    pub(super) fn settings(&self) -> ClientSettings {
        self.tls().settings().clone()
    }

    /// What should be replaced of the lists of revoked certificates.
    pub(super) fn overdue(&self) -> Vec<String> {
        self.tls().overdue()
    }
}

/// A port where clients come through TLS.
#[derive(Clone, Debug)]
pub(crate) struct SecureDoor {
    pub(crate) stores: Arc<ClientSecure>,
    /// Others come without (`client.portUnification`).
    pub(crate) accepts_plain: bool,
}

/// A client that may go on.
pub(super) struct Heard<S> {
    pub(super) wire: Wire<S>,
    /// What was read of it already.
    pub(super) received: BytesMut,
    pub(super) over: Transport,
}

impl SecureDoor {
    /// What a client speaks, and its handshake if that is TLS; none if it is to be closed. `patience` is how long a client
    /// may be silent where it need not begin with a handshake.
    pub(super) async fn hear<R: Runtime>(
        &self,
        runtime: &R,
        shared: &Shared,
        (mut stream, remote): (R::Stream, SocketAddr),
        patience: Duration,
    ) -> Option<Heard<R::Stream>> {
        let tls = self.stores.tls();
        let limit = tls.settings().handshake_time;
        let begun = runtime.now();
        let mut received = BytesMut::new();
        let heard = async {
            let read = read_some(&mut stream, &mut received, FIRST_READ_BYTES).await;
            Some(read.unwrap_or(0))
        };
        let silent = async {
            runtime.sleep(if self.accepts_plain { patience } else { limit }).await;
            None
        };
        let refused = |refusal: Failure| {
            shared.client_refused(remote, &Refusal::from(refusal), runtime.now());
        };
        match or(heard, silent).await {
            Some(1..) => {}
            // As of a plain client: a check whether the port is open says nothing.
            Some(0) => return None,
            None if self.accepts_plain => return None,
            None => {
                refused(Failure::new(Reason::Timeout, "no handshake in time"));
                return None;
            }
        }
        match Speaks::told_by(received[0]) {
            Speaks::Plain if self.accepts_plain => {
                Some(Heard { wire: Wire::Plain(stream), received, over: Transport::Plain })
            }
            Speaks::Plain => {
                let seen = ClientFirstBytes(&received).to_string();
                refused(Failure::new(Reason::PlainOnTlsPort, seen));
                None
            }
            Speaks::Tls => {
                let spent = if self.accepts_plain { Duration::ZERO } else { runtime.now() - begun };
                let limit = limit.saturating_sub(spent);
                // A client whose keys are worn comes again by itself.
                let stream = Replayed::of_client(received, stream, u64::MAX);
                let shaken = self.shake(runtime, shared, (&tls, stream, remote), limit).await?;
                shaken.map_err(refused).ok()
            }
        }
    }

    /// The handshake; none if it had to make room for another.
    async fn shake<R: Runtime>(
        &self,
        runtime: &R,
        shared: &Shared,
        (tls, stream, remote): (&ClientTls, Replayed<R::Stream>, SocketAddr),
        limit: Duration,
    ) -> Option<Result<Heard<R::Stream>, Failure>> {
        let (place, given_up) = self.stores.handshakes.enter(remote.ip(), ALL_ALIKE);
        if place.evicted {
            shared.client_handshakes.evict();
        }
        let _among = Among::new(&shared.client_handshakes.under_way);
        let shaken = async {
            let shaken = TlsAcceptor::from(tls.acceptor()).accept(stream).await;
            let stream = shaken.map_err(|error| Failure::of(&error))?;
            let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            let holder = shown.map(|shown| tls.holder(shown, remote.ip())).transpose()?;
            let over = Transport::Tls { subject: holder.map(|holder| holder.subject) };
            let wire = Wire::Tls(Box::new(TlsStream::from(stream)));
            Ok(Heard { wire, received: BytesMut::new(), over })
        };
        let late = async {
            runtime.sleep(limit).await;
            Err(Failure::new(Reason::Timeout, "no handshake in time"))
        };
        let room_needed = async {
            closed(&given_up).await;
            None
        };
        let shaken = async { Some(or(shaken, late).await) };
        let shaken = or(shaken, room_needed).await;
        drop(place);
        shaken
    }
}

/// What waits for a handshake should be small.
const FIRST_READ_BYTES: usize = 256;

/// No place is kept for some clients before others.
const ALL_ALIKE: bool = true;
