//! Whether a certificate may be used as a member of an ensemble uses it.

use crate::certificate::Certificate;
use crate::store::KeyStore;

/// What a certificate may not be used for, though every member does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// Its extended key usage names serverAuth and not clientAuth.
    #[error(
        "the certificate may only accept; a member also dials: add clientAuth to its extended key usage"
    )]
    OnlyAccepts,
    /// Its extended key usage names clientAuth and not serverAuth.
    #[error(
        "the certificate may only dial; a member also accepts: add serverAuth to its extended key usage"
    )]
    OnlyDials,
    /// Its extended key usage names neither.
    #[error(
        "the certificate may neither accept nor dial: add serverAuth and clientAuth to its extended key usage"
    )]
    Neither,
    /// It has a key usage without digitalSignature.
    #[error("the certificate may not sign handshakes: add digitalSignature to its key usage")]
    SignsNot,
    /// There is none, or it cannot be read. No store that was read here is so.
    #[error("there is no certificate that can be read")]
    Damaged,
}

/// Whether the certificate of this store may be used by a member: each of them dials some of the others and accepts the
/// rest, so that an ensemble of certificates for one of the two never forms. A certificate that does not say for what it
/// is may be used for all.
///
/// # Errors
///
/// If it may not, with what is to be added to it.
pub fn usable_by_a_member(store: &KeyStore) -> Result<(), Unusable> {
    let leaf = store.chain.first().ok_or(Unusable::Damaged)?;
    let uses = Certificate::read(leaf).map_err(|_| Unusable::Damaged)?.uses();
    match (uses.accept, uses.dial) {
        (true, true) if uses.sign => Ok(()),
        (true, true) => Err(Unusable::SignsNot),
        (true, false) => Err(Unusable::OnlyAccepts),
        (false, true) => Err(Unusable::OnlyDials),
        (false, false) => Err(Unusable::Neither),
    }
}
