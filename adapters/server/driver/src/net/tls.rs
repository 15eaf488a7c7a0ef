//! TLS around connections between servers: who dials or accepts gets a [`Wire`], or the reason why not.
//!
//! ```text
//!   accepted ─► first byte ─┬─ 0x16 ─► handshake ─► the names in the certificate ─► judged when an id is claimed
//!                           └─ other ─► plain, where that is allowed
//!   dialled ─► handshake, names judged in it ─► introduction ─► a word or a receipt of the other side
//! ```
//!
//! What it does not do: decide. Whom to trust and who may be which server is `quorate-tls`'s.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::future::or;
use futures_rustls::rustls::ProtocolVersion;
use futures_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_tls::{
    Check, Failure, FirstBytes, IdentityMode, Marks, PeerNames, Reason, Settings, Speaks, Tls,
    Verdict, judge, names_of,
};

use crate::lock::locked;
use crate::net::reader::read_some;
use crate::net::replayed::Replayed;
use crate::net::secure_links::SecureLink;
use crate::net::tls_failures::Refusal;
use crate::net::wire::Wire;

/// What the connections of a server need for TLS.
#[derive(Debug)]
pub(crate) struct Secure {
    tls: Mutex<Arc<Tls>>,
    /// All that this server knows to be in force, or on their way.
    memberships: Mutex<Arc<[Membership]>>,
    /// Of which peers it was told that a link has no TLS.
    told_plain: Mutex<BTreeSet<(Option<ServerId>, IpAddr)>>,
}

/// What a certificate says of its holder.
pub(super) type Names = PeerNames;

/// A connection that was accepted, as far as it may go before it says who it is.
pub(super) struct Accepted<S> {
    pub(super) wire: Wire<S>,
    /// What was read of it already.
    pub(super) received: BytesMut,
    /// What its certificate says; none without TLS, or where none is asked for.
    pub(super) names: Option<Names>,
}

impl Secure {
    pub(crate) fn new(tls: Tls, memberships: Vec<Membership>) -> Self {
        let (tls, memberships) = (Mutex::new(Arc::new(tls)), Mutex::new(memberships.into()));
        Self { tls, memberships, told_plain: Mutex::default() }
    }

    fn tls(&self) -> Arc<Tls> {
        Arc::clone(&locked(&self.tls))
    }

    /// Its stores have changed: this counts for links to come.
    pub(super) fn replace(&self, tls: Tls) {
        *locked(&self.tls) = Arc::new(tls);
    }

    pub(super) fn marks(&self) -> Marks {
        self.tls().marks().clone()
    }

    pub(super) fn settings(&self) -> Settings {
        self.tls().settings().clone()
    }

    /// When its own certificate ends, in seconds since 1970.
    pub(crate) fn ends(&self) -> Option<i64> {
        self.tls().ends()
    }

    /// Whether the other side of a link would be let in with the stores of now; why not.
    pub(super) fn still_trusts(&self, link: &SecureLink) -> Result<(), Failure> {
        self.tls().still_trusts(&link.certificates, link.dialled)
    }

    /// What should be replaced of the lists of revoked certificates.
    pub(super) fn overdue(&self) -> Vec<String> {
        self.tls().overdue()
    }

    /// Whether a link without TLS is the first with this peer, so that it is told; here it is only one of those that are
    /// allowed to be without.
    pub(super) fn tells_plain(&self, peer: Option<ServerId>, remote: IpAddr) -> bool {
        let mut told = locked(&self.told_plain);
        told.len() < TOLD_MAX && told.insert((peer, remote.to_canonical()))
    }

    /// Others are in force now, or on their way.
    pub(crate) fn know(&self, memberships: Vec<Membership>) {
        *locked(&self.memberships) = memberships.into();
    }

    pub(super) fn dials(&self) -> bool {
        self.tls().settings().dials_tls
    }

    pub(crate) fn handshake_time(&self) -> Duration {
        self.tls().settings().handshake_time
    }

    /// Whether a link whose certificate has these names may be one with `claimed`; what its operator should know, if
    /// it may and the certificate does not say so.
    pub(super) fn judge(
        &self,
        claimed: Option<ServerId>,
        names: Option<&Names>,
    ) -> Result<Option<String>, Refusal> {
        // It was let in without a certificate, or without TLS.
        let Some(names) = names else { return Ok(None) };
        let memberships = Arc::clone(&locked(&self.memberships));
        match judge(claimed, names, &memberships, self.tls().settings().identity) {
            Verdict::Allowed => Ok(None),
            Verdict::Told(mismatch) => Ok(Some(mismatch.to_string())),
            Verdict::Refused(mismatch) => {
                Err(Failure::new(Reason::Identity, mismatch.to_string()).into())
            }
        }
    }

    /// What a connection that was accepted speaks, and its handshake if that is TLS.
    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut stream: S,
        too_late: impl Future<Output = ()>,
    ) -> Result<Accepted<S>, Refusal> {
        let accepted = async {
            let mut received = BytesMut::new();
            let read = read_some(&mut stream, &mut received, FIRST_READ_BYTES).await;
            let first = match read.map(|_| received.first().copied()) {
                Ok(Some(first)) => first,
                Ok(None) => return Err(Failure::new(Reason::Reset, "closed without a byte").into()),
                Err(error) => return Err(Failure::of(&error).into()),
            };
            match Speaks::told_by(first) {
                Speaks::Plain if self.tls().settings().accepts_plain => {
                    Ok(Accepted { wire: Wire::Plain(stream), received, names: None })
                }
                Speaks::Plain => {
                    let seen = FirstBytes(&received).to_string();
                    Err(Failure::new(Reason::PlainOnTlsPort, seen).into())
                }
                Speaks::Tls => {
                    let records_max = self.tls().settings().records_max;
                    let stream = Replayed::of_server(received, stream, records_max);
                    let shaken = TlsAcceptor::from(self.tls().acceptor()).accept(stream).await;
                    let stream = shaken.map_err(|error| Failure::of(&error))?;
                    let shown = stream.get_ref().1.peer_certificates();
                    let names = shown.and_then(<[_]>::first).map(names_of).transpose()?;
                    let wire = Wire::Tls(Box::new(TlsStream::from(stream)));
                    Ok(Accepted { wire, received: BytesMut::new(), names })
                }
            }
        };
        or(accepted, async {
            too_late.await;
            Err(Failure::new(Reason::Timeout, "no handshake in time").into())
        })
        .await
    }

    /// The handshake of a connection that was dialled to reach `peer`, whose certificate has to be for it.
    pub(super) async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        peer: ServerId,
        too_late: impl Future<Output = ()>,
    ) -> Result<Wire<S>, Refusal> {
        let mode = self.tls().settings().dialled_mode();
        let memberships = Arc::clone(&locked(&self.memberships));
        let check: Check =
            Arc::new(move |names| match judge(Some(peer), names, &memberships, mode) {
                Verdict::Allowed => Ok(()),
                Verdict::Told(mismatch) => {
                    tracing::debug!(
                        event = "tls.identity",
                        peer = peer.0,
                        "the server that was dialled: {mismatch}"
                    );
                    Ok(())
                }
                Verdict::Refused(mismatch) => {
                    let by_id = mode == IdentityMode::Id;
                    let reason = if by_id { Reason::Identity } else { Reason::Name };
                    Err(Failure::new(
                        reason,
                        format!("dialled as {peer}; {}", mismatch.certificate()),
                    ))
                }
            });
        let dialler = self.tls().dialler(check);
        let dialler =
            dialler.map_err(|error| Failure::new(Reason::Malformed, error.to_string()))?;
        // It is not sent: nothing depends on it, and names are judged by the configuration.
        let unsent = "quorate.invalid".try_into();
        let unsent = unsent.map_err(|_| Failure::new(Reason::Malformed, "no name"))?;
        let records_max = self.tls().settings().records_max;
        let stream = Replayed::of_server(BytesMut::new(), stream, records_max);
        let shaken = async {
            let shaken = TlsConnector::from(dialler).connect(unsent, stream).await;
            let stream = shaken.map_err(|error| Failure::of(&error))?;
            Ok(Wire::Tls(Box::new(TlsStream::from(stream))))
        };
        or(shaken, async {
            too_late.await;
            Err(Failure::new(Reason::Timeout, "no handshake in time").into())
        })
        .await
    }
}

/// Waits until the other side has taken our certificate, which in TLS 1.3 it looks at when we are done: it says a word,
/// or sends a ticket (RFC 8446, 4.6.1), as ours and Java's do; or nothing for as long as `patience` lasts, and then it
/// may be one that sends none. What else ends a connection is the link's to tell.
pub(super) async fn accepted_by_peer<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    received: &mut BytesMut,
    patience: impl Future<Output = ()>,
) -> Result<(), Refusal> {
    let Wire::Tls(stream) = wire else { return Ok(()) };
    if stream.get_ref().1.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
        return Ok(());
    }
    let mut patience = pin!(patience);
    let mut first = [0; 256];
    poll_fn(|cx| {
        let read = Pin::new(&mut *stream).poll_read(cx, &mut first);
        match read {
            Poll::Ready(Ok(read)) => {
                received.extend_from_slice(&first[..read]);
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Err(error)) if Failure::is_alert(&error) => {
                return Poll::Ready(Err(Failure::of(&error).into()));
            }
            Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
            Poll::Pending => {}
        }
        let has_ticket = match &**stream {
            TlsStream::Client(client) => client.get_ref().1.tls13_tickets_received() > 0,
            TlsStream::Server(_) => true,
        };
        if has_ticket { Poll::Ready(Ok(())) } else { patience.as_mut().poll(cx).map(Ok) }
    })
    .await
}

/// Of how many peers it is told that they link without TLS.
const TOLD_MAX: usize = 1024;
/// An introduction is some 40 bytes, and what waits for a handshake should be small.
const FIRST_READ_BYTES: usize = 256;
