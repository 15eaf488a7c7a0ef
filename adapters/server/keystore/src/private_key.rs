//! What a private key says of its public half.

use crate::certificate::PublicKey;
use crate::der::{Der, DerError, OBJECT_IDENTIFIER, OCTET_STRING, context};
use crate::entries::{Form, SecretKey};
use crate::oid;

/// The public half, as far as the key says it. Java writes keys on elliptic curves without the point.
pub(crate) fn public_half(key: &SecretKey) -> Result<PublicKey<'_>, DerError> {
    match key.form() {
        Form::Pkcs8 => pkcs8(key.der()),
        Form::Pkcs1 => pkcs1(key.der()),
        Form::Sec1 => sec1(key.der(), None),
    }
}

/// RFC 5958.
fn pkcs8(der: &[u8]) -> Result<PublicKey<'_>, DerError> {
    let mut key = Der::new(der).sequence()?;
    key.number()?;
    let (algorithm, mut parameters) = key.algorithm()?;
    let secret = key.take(OCTET_STRING)?;
    key.optional(context(0))?;
    // A bit string without a tag of its own.
    let public = key.optional(0x81)?.and_then(|bits| bits.strip_prefix(&[0]));
    match algorithm {
        oid::RSA => pkcs1(secret),
        oid::EC => sec1(secret, parameters.optional(OBJECT_IDENTIFIER)?),
        oid::ED25519 => Ok(PublicKey::Ed25519(public)),
        other => Ok(PublicKey::Other(other)),
    }
}

/// RFC 8017, A.1.2.
fn pkcs1(der: &[u8]) -> Result<PublicKey<'_>, DerError> {
    let mut key = Der::new(der).sequence()?;
    key.number()?;
    Ok(PublicKey::Rsa { modulus: key.unsigned()?, exponent: key.unsigned()? })
}

/// RFC 5915. The curve stands here, or in what is around it.
fn sec1<'a>(der: &'a [u8], around: Option<&'a [u8]>) -> Result<PublicKey<'a>, DerError> {
    let mut key = Der::new(der).sequence()?;
    key.number()?;
    key.take(OCTET_STRING)?;
    let curve = match key.optional(context(0))? {
        Some(parameters) => Der::new(parameters).optional(OBJECT_IDENTIFIER)?,
        None => None,
    };
    let point = match key.optional(context(1))? {
        Some(point) => Some(Der::new(point).bits()?),
        None => None,
    };
    Ok(PublicKey::Ec { curve: around.or(curve).unwrap_or_default(), point })
}
