//! The operating system's randomness, for what must not be foretold.

use std::io;

use quorate_sasl::Nonces;
use zeroize::Zeroizing;

use crate::error::SaslError;

/// Nonces for logins, from a seed of the operating system's randomness.
///
/// # Errors
///
/// If the system gives none.
pub fn nonces() -> Result<Nonces, SaslError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| SaslError::Randomness(io::Error::from(error)))?;
    Ok(Nonces::new(*seed))
}
