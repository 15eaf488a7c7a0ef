//! Nonces: texts that nothing has seen before, and that cannot be foretold.

use alloc::string::String;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// Makes nonces out of a seed, which has to come from the operating system's randomness and to be used for nothing else.
///
/// The same seed makes the same nonces: so what is made from it can be run again, and one seed must not be used twice.
pub struct Nonces {
    seed: Zeroizing<[u8; 32]>,
    drawn: AtomicU64,
}

impl Nonces {
    /// From this seed.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed: Zeroizing::new(seed), drawn: AtomicU64::new(0) }
    }

    /// The next one.
    pub fn next(&self) -> Nonce {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(&self.seed[..]);
        hash.update(number.to_be_bytes());
        // As many bytes as Java takes.
        Nonce(STANDARD.encode(&hash.finalize()[..30]))
    }
}

/// Without the seed.
impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

/// A nonce, for one login.
#[derive(Debug, PartialEq, Eq)]
pub struct Nonce(pub(crate) String);

impl Nonce {
    /// One that is known already, to run again what was recorded: letters, digits, `+`, `/` and `=`; what else there is
    /// is left out.
    #[must_use]
    pub fn recorded(text: &str) -> Self {
        let is_base64 = |c: &char| c.is_ascii_alphanumeric() || "+/=".contains(*c);
        Self(text.chars().filter(is_base64).collect())
    }
}
