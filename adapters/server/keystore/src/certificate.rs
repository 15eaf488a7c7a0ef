//! What a certificate says (RFC 5280): for whom it is, from when to when, for what, and with which key.
//!
//! Nothing is judged here but the encoding: whether a signature is good is up to the TLS that makes a link.

mod distinguished_name;
mod extensions;
mod hosts;
mod time;

use std::fmt;
use std::net::IpAddr;

use rustls_pki_types::CertificateDer;

use self::extensions::Extensions;
pub use self::extensions::Uses;
pub use self::hosts::{Named, Names};
use crate::der::{Der, DerError, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, context};
use crate::oid;

/// A certificate that was read. Names in it are what its issuer wrote: a caller that prints them takes control
/// characters out.
#[derive(Clone)]
pub struct Certificate<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    /// In seconds since 1970.
    validity: (i64, i64),
    public_key: Der<'a>,
    signature: &'a [u8],
    extensions: Extensions,
}

/// These bytes are no certificate, or one that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no X.509 certificate, or one that is damaged")]
pub struct NoCertificate;

/// The public half of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey<'a> {
    Rsa {
        modulus: &'a [u8],
        exponent: &'a [u8],
    },
    Ec {
        curve: &'a [u8],
        /// None if a private key does not say it.
        point: Option<&'a [u8]>,
    },
    Ed25519(Option<&'a [u8]>),
    /// Of another algorithm.
    Other(&'a [u8]),
}

impl<'a> Certificate<'a> {
    /// Reads one certificate and nothing after it.
    ///
    /// # Errors
    ///
    /// If it is no certificate, or an extension that is read here is damaged or stands in it twice.
    pub fn read(der: &'a CertificateDer<'_>) -> Result<Self, NoCertificate> {
        Self::decode(der).map_err(|_| NoCertificate)
    }

    fn decode(der: &'a [u8]) -> Result<Self, DerError> {
        let mut outer = Der::new(der);
        let mut whole = outer.sequence()?;
        outer.end()?;
        let mut signed = whole.sequence()?;
        let (signature, _) = whole.algorithm()?;
        whole.bits()?;
        whole.end()?;
        signed.optional(context(0))?;
        signed.take(INTEGER)?;
        signed.take(SEQUENCE)?;
        let issuer = signed.whole()?;
        let mut validity = signed.sequence()?;
        let validity = (time::read(&mut validity)?, time::read(&mut validity)?);
        let subject = signed.whole()?;
        let public_key = signed.sequence()?;
        // Identifiers of issuer and subject, which went out of use.
        signed.optional(0x81)?;
        signed.optional(0x82)?;
        let extensions = match signed.optional(context(3))? {
            Some(extensions) => Extensions::read(Der::new(extensions))?,
            None => Extensions::default(),
        };
        signed.end()?;
        for name in [issuer, subject] {
            distinguished_name::check(name)?;
        }
        Ok(Self { issuer, subject, validity, public_key, signature, extensions })
    }

    /// For whom it is, as RFC 4514 writes it: the last part first.
    #[must_use]
    pub fn subject(&self) -> String {
        distinguished_name::text(self.subject)
    }

    /// Who issued it, in the same form.
    #[must_use]
    pub fn issuer(&self) -> String {
        distinguished_name::text(self.issuer)
    }

    /// The last common name of the subject.
    #[must_use]
    pub fn common_name(&self) -> Option<String> {
        distinguished_name::common_name(self.subject)
    }

    /// The alternative names that are names of hosts.
    #[must_use]
    pub fn dns_names(&self) -> &[String] {
        &self.extensions.dns_names
    }

    /// The alternative names that are addresses.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.extensions.addresses
    }

    /// The alternative names that are URIs.
    #[must_use]
    pub fn uris(&self) -> &[String] {
        &self.extensions.uris
    }

    /// Whether and how it names this host.
    #[must_use]
    pub fn names_host(&self, host: &str) -> Option<Named> {
        let Extensions { dns_names: hosts, addresses, .. } = &self.extensions;
        let common_name = self.common_name();
        Names { hosts, addresses, common_name: common_name.as_deref() }.names(host)
    }

    /// From when it holds, in seconds since 1970.
    #[must_use]
    pub const fn not_before(&self) -> i64 {
        self.validity.0
    }

    /// Until when it holds, in seconds since 1970.
    #[must_use]
    pub const fn not_after(&self) -> i64 {
        self.validity.1
    }

    /// For what it may be used. What it does not say may all be done.
    #[must_use]
    pub const fn uses(&self) -> Uses {
        self.extensions.uses
    }

    /// Its key: the algorithm, and its length or curve.
    #[must_use]
    pub fn key(&self) -> String {
        self.public_key().map_or_else(|_| "a damaged key".to_owned(), |key| key.to_string())
    }

    /// Whether the issuer of this one has the name of the other, byte for byte.
    #[must_use]
    pub fn names_as_issuer(&self, other: &Certificate<'_>) -> bool {
        self.issuer == other.subject
    }

    /// What is too weak about it: the digest that its issuer signed, unless it is its own issuer, or its key.
    #[must_use]
    pub fn weakness(&self) -> Option<String> {
        let is_own_issuer = self.issuer == self.subject;
        let digest = self.broken_signature().filter(|_| !is_own_issuer);
        let key = self.public_key().ok().filter(|key| !key.is_fit());
        digest
            .map(|digest| format!("is signed with {digest}"))
            .or_else(|| key.map(|key| format!("has a key that is too weak, {key}")))
    }

    pub(crate) fn has_subject_of(&self, other: &Self) -> bool {
        self.subject == other.subject
    }

    pub(crate) fn public_key(&self) -> Result<PublicKey<'a>, DerError> {
        let mut info = self.public_key;
        let (algorithm, mut parameters) = info.algorithm()?;
        let key = info.bits()?;
        Ok(match algorithm {
            oid::RSA => {
                let mut key = Der::new(key).sequence()?;
                PublicKey::Rsa { modulus: key.unsigned()?, exponent: key.unsigned()? }
            }
            oid::EC => {
                let curve = parameters.optional(OBJECT_IDENTIFIER)?.unwrap_or_default();
                PublicKey::Ec { curve, point: Some(key) }
            }
            oid::ED25519 => PublicKey::Ed25519(Some(key)),
            other => PublicKey::Other(other),
        })
    }

    /// The name of the broken digest that its signature rests on, if it does.
    pub(crate) fn broken_signature(&self) -> Option<&'static str> {
        let known: [(&[u8], &str); 5] = [
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x02", "MD2 with RSA"),
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", "MD5 with RSA"),
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", "SHA-1 with RSA"),
            (b"\x2a\x86\x48\xce\x3d\x04\x01", "SHA-1 with ECDSA"),
            (b"\x2a\x86\x48\xce\x38\x04\x03", "SHA-1 with DSA"),
        ];
        known.iter().find(|(known, _)| *known == self.signature).map(|(_, name)| *name)
    }
}

impl PublicKey<'_> {
    /// Whether it is strong enough, and of a kind that links take.
    pub(crate) fn is_fit(&self) -> bool {
        match self {
            Self::Rsa { modulus, .. } => (2048..=8192).contains(&bits(modulus)),
            Self::Ec { curve, .. } => [oid::P256, oid::P384, oid::P521].contains(curve),
            Self::Ed25519(_) => true,
            Self::Other(_) => false,
        }
    }
}

/// Of a number without zeros before it.
fn bits(number: &[u8]) -> usize {
    let zeros = number.first().map_or(0, |first| first.leading_zeros() as usize);
    number.len() * 8 - zeros
}

impl fmt::Display for PublicKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa { modulus, .. } => write!(f, "RSA of {} bits", bits(modulus)),
            Self::Ec { curve: [], .. } => f.write_str("an elliptic curve without a name"),
            Self::Ec { curve: name, .. } | Self::Other(name) => f.write_str(&oid::name(name)),
            Self::Ed25519(_) => f.write_str("Ed25519"),
        }
    }
}

impl fmt::Debug for Certificate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Certificate");
        shown.field("subject", &self.subject()).field("issuer", &self.issuer());
        shown.field("validity", &self.validity).finish_non_exhaustive()
    }
}
