//! Logins between servers: the server that dials or accepts has a connection logged in, or hears why not.
//!
//! ```text
//!   election: TCP ─► TLS ─► introduction ─► login ─► notifications
//!   quorum:   TCP ─► TLS ─► login ─► the registration of a learner
//! ```
//!
//! What it does not do: decide. What is said, and who is let in, is `quorate-sasl`'s.
//!
//! In the Java code: `QuorumCnxManager`, `Learner.connectToLeader`, `LearnerHandler`.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::BytesMut;
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::io::AsyncWriteExt;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_sasl::Nonces;
use quorate_sasl::quorum::{Accepting, Admitted, Dialling, Failure, Move};

use crate::error::{SaslError, StartError};
use crate::lock::locked;
use crate::net::events::Shared;
use crate::net::reader::read_some;
use crate::net::tls_failures::Side;
use crate::randomness::nonces;
use crate::threads::offload;
use crate::zoo_cfg::{QuorumLogins, QuorumSasl};

/// What the connections of a server need for logins.
#[derive(Debug)]
pub(crate) struct Logins {
    who: Mutex<Arc<QuorumLogins>>,
    settings: QuorumSasl,
    nonces: Nonces,
}

/// A connection that is logged in or not.
pub(super) struct Between {
    pub(super) plane: Plane,
    pub(super) remote: SocketAddr,
    /// Who it is said to be with, if that is known.
    pub(super) peer: Option<ServerId>,
}

impl Logins {
    /// Reads who may log in, where there are logins.
    pub(crate) async fn open(
        settings: Option<QuorumSasl>,
    ) -> Result<Option<Arc<Self>>, StartError> {
        let Some(settings) = settings else { return Ok(None) };
        let to_read = settings.clone();
        let read = move || Ok::<_, SaslError>((to_read.read()?, nonces()?));
        let (who, nonces) = offload("quorate-jaas", read).await.map_err(StartError::Thread)??;
        let who = Mutex::new(Arc::new(who));
        Ok(Some(Arc::new(Self { who, settings, nonces })))
    }

    pub(super) const fn settings(&self) -> &QuorumSasl {
        &self.settings
    }

    /// For links to come; whether it is anything else than before.
    pub(super) fn replace(&self, who: QuorumLogins) -> bool {
        let mut held = locked(&self.who);
        let differs = **held != who;
        if differs {
            *held = Arc::new(who);
        }
        differs
    }

    fn who(&self) -> Arc<QuorumLogins> {
        Arc::clone(&locked(&self.who))
    }

    /// Has the other side of a connection log in that was accepted. Whether it may become a link.
    pub(super) async fn admit<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        shared: &Shared,
        between: &Between,
        (wire, received): (&mut S, &mut BytesMut),
        now: impl Fn() -> Instant,
    ) -> bool {
        let mut accepting = Accepting::new(self.nonces.next(), self.settings.required);
        let who = self.who();
        let outcome = loop {
            let next = match accepting.next(received, &who.users) {
                Move::Over(outcome) => break outcome,
                next @ (Move::Read | Move::Write(_)) => carried_out(next, wire, received).await,
            };
            if next.is_err() {
                break accepting.ended();
            }
        };
        let side = Side::Accept;
        let (word, failure) = match &outcome {
            Ok(Admitted::As(_)) => ("ok", None),
            Ok(Admitted::Without) => ("without", None),
            Ok(Admitted::Despite(failure)) => ("allowed", Some(failure)),
            Err(failure) => (failure.word(), Some(failure)),
        };
        shared.logins.count(between.plane, false, word);
        if let Some(failure) = failure {
            tell(shared, between, side, (failure, outcome.is_ok()), now());
        }
        outcome.is_ok()
    }

    /// Logs in to the other side of a connection that was dialled, where this server does.
    pub(super) async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        shared: &Shared,
        between: &Between,
        (wire, received): (&mut S, &mut BytesMut),
        now: impl Fn() -> Instant,
    ) -> io::Result<()> {
        if !self.settings.dials {
            return Ok(());
        }
        let mut dialling = Dialling::new(self.who().own.clone(), self.nonces.next());
        let outcome = loop {
            let next = match dialling.next(received) {
                Move::Over(outcome) => break outcome,
                next @ (Move::Read | Move::Write(_)) => carried_out(next, wire, received).await,
            };
            if next.is_err() {
                break Err(dialling.ended());
            }
        };
        let word = outcome.as_ref().map_or_else(Failure::word, |()| "ok");
        shared.logins.count(between.plane, true, word);
        outcome.map_err(|failure| {
            tell(shared, between, Side::Dial, (&failure, false), now());
            io::Error::other(format!("SASL: {failure}"))
        })
    }
}

/// Reads or writes. An error is the end of the connection.
async fn carried_out<T>(
    next: Move<T>,
    wire: &mut (impl AsyncRead + AsyncWrite + Unpin),
    received: &mut BytesMut,
) -> io::Result<()> {
    match next {
        Move::Write(bytes) => {
            wire.write_all(&bytes).await?;
            wire.flush().await
        }
        Move::Read => match read_some(wire, received, READ_BYTES).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        },
        Move::Over(_) => Ok(()),
    }
}

/// Tells of a login that has failed, and whether there is a link all the same.
fn tell(
    shared: &Shared,
    between: &Between,
    side: Side,
    (failure, allowed): (&Failure, bool),
    now: Instant,
) {
    let Between { plane, remote, peer } = between;
    let (sid, reason) = (shared.id.0, failure.word());
    let event = if allowed { "sasl.failed_allowed" } else { "sasl.failed" };
    let Some(suppressed) = shared.warnings.permit(event, Some(remote.ip()), now) else { return };
    shared.note_refused("loginFailed", (*plane, side), (*remote, *peer), reason);
    let (peer, side) = (peer.map(|peer| peer.0), side.word());
    if allowed {
        tracing::warn!(
            event = "sasl.failed_allowed", sid, ?plane, side, %remote, peer, reason, suppressed,
            "a login has failed, and none is required (quorum.auth.serverRequireSasl): let in. {failure}"
        );
    } else {
        tracing::warn!(
            event = "sasl.failed", sid, ?plane, side, %remote, peer, reason, suppressed,
            "no link: {failure}"
        );
    }
}

/// A token is some 300 bytes.
const READ_BYTES: usize = 512;
