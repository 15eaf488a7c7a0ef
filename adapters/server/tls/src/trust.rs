//! Whom a server trusts.
//!
//! A certificate that stands in the trust store byte for byte is trusted, whatever it says of itself: ZooKeeper's guide
//! makes one self-signed certificate for each server and gives it to all others, and `openssl req -x509` makes such ones
//! authorities. Path building alone takes neither. Any other certificate needs a path to an authority of the store.

use std::collections::BTreeSet;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{CertificateError, DistinguishedName, Error, OtherError};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, RevocationOptions, anchor_from_trusted_cert};

use crate::certificate::{Certificate, Side};
use crate::names::PeerNames;
use crate::reason::{Failure, Reason};
use crate::revoked::Revoked;

/// The certificates of a trust store.
#[derive(Debug)]
pub(crate) struct TrustSet {
    entries: BTreeSet<Vec<u8>>,
    anchors: Vec<TrustAnchor<'static>>,
    revoked: Option<Revoked>,
    pub(crate) subjects: Vec<DistinguishedName>,
}

impl TrustSet {
    /// What cannot be read, or is no authority, counts for itself alone.
    pub(crate) fn new(
        certificates: Vec<CertificateDer<'static>>,
        revoked: Option<Revoked>,
    ) -> Self {
        let mut anchors = Vec::new();
        for der in &certificates {
            let signs = Certificate::read(der).is_ok_and(|read| read.is_authority());
            if let (true, Ok(anchor)) = (signs, anchor_from_trusted_cert(der)) {
                anchors.push(anchor.to_owned());
            }
        }
        // Also of those that sign nothing: Java shows no certificate whose issuer is not among those named. A hint that
        // is longer than a record helps no one.
        let read = certificates.iter().filter_map(|der| Certificate::read(der).ok());
        let subjects: BTreeSet<_> = read.map(|read| read.subject_der().to_vec()).collect();
        let subjects = match subjects.len() {
            0..=SUBJECTS_MAX => subjects.into_iter().map(DistinguishedName::from).collect(),
            _ => Vec::new(),
        };
        let entries = certificates.iter().map(|der| der.to_vec()).collect();
        Self { entries, anchors, revoked, subjects }
    }

    /// Whether the holder of a certificate is trusted at this side; what the certificate calls it.
    pub(crate) fn check(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
        side: Side,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<PeerNames, Error> {
        if chain.len() >= CHAIN_MAX {
            return Err(refused(Failure::new(Reason::Malformed, "its chain is too long")));
        }
        let known = self.entries.contains(leaf.as_ref());
        if let (true, Some(revoked)) = (known, &self.revoked) {
            let end = EndEntityCert::try_from(leaf).map_err(|error| of_path(&error))?;
            if revoked.name(&end) {
                return Err(of_path(&webpki::Error::CertRevoked));
            }
        }
        if !known {
            let usage = match side {
                Side::Dials => KeyUsage::client_auth(),
                Side::Accepts => KeyUsage::server_auth(),
            };
            let end = EndEntityCert::try_from(leaf).map_err(|error| of_path(&error))?;
            let verify = |revoked: Option<RevocationOptions<'_>>| {
                let (all, anchors) = (algorithms.all, &self.anchors);
                let path = end.verify_for_usage(all, anchors, chain, now, usage, revoked, None);
                path.map(drop).map_err(|error| of_path(&error))
            };
            match &self.revoked {
                None => verify(None)?,
                Some(revoked) => revoked.each(|asked| verify(Some(asked)))?,
            }
        }
        // Read only now: what a stranger has written is looked at no further than its signature.
        let read = Certificate::read(leaf).map_err(refused)?;
        read.check_key().map_err(refused)?;
        if known {
            read.check_time(now).map_err(told_by_alert)?;
        }
        read.check_use(side).map_err(told_by_alert)?;
        read.names().map_err(refused)
    }
}

impl TrustSet {
    /// The lists of revoked certificates whose next update is overdue now, one sentence for each.
    pub(crate) fn overdue(&self) -> Vec<String> {
        self.revoked.as_ref().map(|revoked| revoked.overdue(UnixTime::now())).unwrap_or_default()
    }
}

/// A refusal in our own words.
pub(crate) fn refused(failure: Failure) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(std::sync::Arc::new(failure))))
}

/// A refusal for which TLS has an alert, so that the other side learns why.
fn told_by_alert(failure: Failure) -> Error {
    let known = [
        (Reason::Expired, CertificateError::Expired),
        (Reason::NotYetValid, CertificateError::NotValidYet),
        (Reason::Usage, CertificateError::InvalidPurpose),
    ];
    match known.into_iter().find(|(reason, _)| *reason == failure.reason) {
        Some((_, known)) => Error::InvalidCertificate(known),
        None => refused(failure),
    }
}

/// What a path building error means.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "webpki's list grows; the rest is no reason of its own"
)]
fn of_path(error: &webpki::Error) -> Error {
    use webpki::Error as Path;
    let known = match error {
        Path::CertExpired { .. } => CertificateError::Expired,
        Path::CertNotValidYet { .. } => CertificateError::NotValidYet,
        Path::CertRevoked => CertificateError::Revoked,
        Path::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        Path::CrlExpired { .. } => CertificateError::ExpiredRevocationList,
        Path::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        // A self-signed one that is not known, be it called an authority or not.
        Path::UnknownIssuer | Path::CaUsedAsEndEntity | Path::InvalidSignatureForPublicKey => {
            CertificateError::UnknownIssuer
        }
        other => return refused(Failure::new(Reason::Malformed, other.to_string())),
    };
    Error::InvalidCertificate(known)
}

/// How many authorities are named to the side that dials.
const SUBJECTS_MAX: usize = 50;
/// How many certificates may stand above the first one of a chain.
const CHAIN_MAX: usize = 10;
