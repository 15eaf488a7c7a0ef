//! Links that did not come to be for what TLS says, or for its lack: counted by reason, and told at a bounded rate.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

use quorate_core::id::ServerId;
use quorate_core::input::Plane;

use crate::lock::locked;

/// What this server did when a link failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// It had dialled.
    Dial,
    /// It had accepted.
    Accept,
}

impl Side {
    /// The word for it in figures.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Dial => "dial",
            Self::Accept => "accept",
        }
    }
}

/// How often links failed for each reason.
#[derive(Debug, Default)]
pub(crate) struct TlsFailures(Mutex<BTreeMap<(Plane, Side, &'static str), u64>>);

impl TlsFailures {
    pub(super) fn count(&self, failed: &FailedLink<'_>) {
        let of = (failed.plane, failed.side, failed.refusal.reason);
        *locked(&self.0).entry(of).or_insert(0) += 1;
    }

    pub(crate) fn all(&self) -> Vec<((Plane, Side, &'static str), u64)> {
        locked(&self.0).iter().map(|(of, count)| (*of, *count)).collect()
    }
}

/// Why a link did not come to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// In a word, which stays.
    pub(super) reason: &'static str,
    /// What was seen.
    pub(super) seen: String,
}

/// As an error of the connection.
impl From<Refusal> for io::Error {
    fn from(Refusal { reason, seen }: Refusal) -> Self {
        Self::other(format!("TLS: {reason}: {seen}"))
    }
}

/// A link that did not come to be.
pub(super) struct FailedLink<'a> {
    pub(super) plane: Plane,
    pub(super) side: Side,
    pub(super) remote: SocketAddr,
    /// Who it is said to be with, if that is known.
    pub(super) peer: Option<ServerId>,
    /// Why.
    pub(super) refusal: &'a Refusal,
}

/// Why a plain port refuses what begins like a TLS handshake: read as anything else it would be an absurd id or length.
pub(super) fn tls_on_plain_port() -> Refusal {
    let seen = "a TLS ClientHello where servers speak without it: that peer has sslQuorum=true";
    Refusal { reason: "tls-on-plain-port", seen: seen.to_owned() }
}

/// The same of a client.
pub(super) fn tls_from_client_on_plain_port() -> Refusal {
    let seen = "a TLS ClientHello at the port without TLS: that client has to be told of the secure port, or not of TLS";
    Refusal { reason: "tls-on-plain-port", seen: seen.to_owned() }
}

/// Whether these first bytes are those of a TLS handshake (RFC 8446, 5.1).
pub(super) fn is_client_hello(first: &[u8]) -> bool {
    matches!(first, [0x16, 3, ..])
}

/// What an error of a link says about TLS; none if that is not what it is about.
#[cfg(feature = "tls")]
pub(super) fn refusal_of(error: &io::Error) -> Option<Refusal> {
    use quorate_tls::Failure;
    Failure::is_alert(error).then(|| Failure::of(error).into())
}

/// No error is about TLS.
#[cfg(not(feature = "tls"))]
pub(super) fn refusal_of(_: &io::Error) -> Option<Refusal> {
    None
}

#[cfg(feature = "tls")]
impl From<quorate_tls::Failure> for Refusal {
    fn from(failure: quorate_tls::Failure) -> Self {
        Self { reason: failure.reason.word(), seen: failure.seen }
    }
}
