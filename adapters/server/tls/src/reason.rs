//! Why no link came to be, by one word for figures and one sentence for people.

use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, Error, OtherError, PeerIncompatible};

/// Why no link came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The certificate leads to none that is trusted.
    UnknownAuthority,
    /// It has ended.
    Expired,
    /// It has not begun.
    NotYetValid,
    /// It names no host of the server that was dialled.
    Name,
    /// It is not for the server that was claimed.
    Identity,
    /// It may not be used for this.
    Usage,
    /// Its authority has taken it back, or no list of what that takes back is at hand.
    Revoked,
    /// There was none.
    NoCertificate,
    /// Its key is too short.
    WeakKey,
    /// No version of TLS in common.
    Version,
    /// No cipher suite, group or kind of signature in common.
    NoCommonSuite,
    /// What came where TLS is expected is none.
    PlainOnTlsPort,
    /// TLS came where it is not expected.
    TlsOnPlainPort,
    /// What came in a handshake cannot be read, or does not belong there.
    Malformed,
    /// The other side has refused, with an alert.
    RefusedByPeer,
    /// It took too long.
    Timeout,
    /// The other side has closed.
    Reset,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::UnknownAuthority,
        Self::Expired,
        Self::NotYetValid,
        Self::Name,
        Self::Identity,
        Self::Usage,
        Self::Revoked,
        Self::NoCertificate,
        Self::WeakKey,
        Self::Version,
        Self::NoCommonSuite,
        Self::PlainOnTlsPort,
        Self::TlsOnPlainPort,
        Self::Malformed,
        Self::RefusedByPeer,
        Self::Timeout,
        Self::Reset,
    ];

    /// The word for it, which stays.
    pub const fn word(self) -> &'static str {
        match self {
            Self::UnknownAuthority => "unknown-authority",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::Name => "name",
            Self::Identity => "identity",
            Self::Usage => "usage",
            Self::Revoked => "revoked",
            Self::NoCertificate => "no-certificate",
            Self::WeakKey => "weak-key",
            Self::Version => "version",
            Self::NoCommonSuite => "no-common-suite",
            Self::PlainOnTlsPort => "plain-on-tls-port",
            Self::TlsOnPlainPort => "tls-on-plain-port",
            Self::Malformed => "malformed",
            Self::RefusedByPeer => "refused-by-peer",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
        }
    }
}

/// Why no link came to be, with what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In a word.
    pub reason: Reason,
    /// What was seen.
    pub seen: String,
}

impl Failure {
    /// This one.
    pub fn new(reason: Reason, seen: impl Into<String>) -> Self {
        Self { reason, seen: seen.into() }
    }

    /// What an error of a connection over TLS means.
    pub fn of(error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(failure) = inner.and_then(|inner| inner.downcast_ref::<Self>()) {
            return failure.clone();
        }
        if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<Error>()) {
            return of_tls(tls);
        }
        let timed_out = error.kind() == io::ErrorKind::TimedOut;
        let reason = if timed_out { Reason::Timeout } else { Reason::Reset };
        Self::new(reason, error.to_string())
    }

    /// Whether an error is an alert of the other side.
    pub fn is_alert(error: &io::Error) -> bool {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        matches!(tls, Some(Error::AlertReceived(_)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.word(), self.seen)
    }
}

impl std::error::Error for Failure {}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "rustls's list grows; the rest is no reason of its own"
)]
fn of_tls(error: &Error) -> Failure {
    let reason = match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(own))) => {
            if let Some(failure) = own.downcast_ref::<Failure>() {
                return failure.clone();
            }
            Reason::Malformed
        }
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::NoCertificatesPresented => Reason::NoCertificate,
        Error::AlertReceived(alert) => return of_alert(*alert),
        Error::PeerIncompatible(incompatible) => match incompatible {
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled => Reason::Version,
            _ => Reason::NoCommonSuite,
        },
        _ => Reason::Malformed,
    };
    Failure::new(reason, error.to_string())
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "rustls's list grows; the rest is no reason of its own"
)]
fn of_certificate(error: &CertificateError) -> Reason {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Reason::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Reason::NotYetValid
        }
        CertificateError::Revoked
        | CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => Reason::Revoked,
        CertificateError::UnknownIssuer => Reason::UnknownAuthority,
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            Reason::Usage
        }
        _ => Reason::Malformed,
    }
}

/// An alert says which of ours the other side did not like; that is its judgement, and so it is told.
fn of_alert(alert: AlertDescription) -> Failure {
    let name = format!("{alert:?}");
    Failure::new(Reason::RefusedByPeer, format!("the other side refuses with the alert {name}"))
}
