//! What computes, with the suites that an operator lets it have.

use rustls::CipherSuite;
use rustls::crypto::CryptoProvider;

use crate::error::TlsError;
use crate::settings::{Suite, Versions};

/// The provider of this build; the process's own one is not asked.
fn built_in() -> CryptoProvider {
    #[cfg(feature = "aws-lc-rs")]
    return rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return rustls::crypto::ring::default_provider();
    #[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
    compile_error!("quorate-tls needs one of its features aws-lc-rs and ring");
}

/// The provider, with no more than the suites that may be agreed on, the cheapest first.
pub(crate) fn provider(versions: Versions, suites: &[Suite]) -> Result<CryptoProvider, TlsError> {
    let mut provider = built_in();
    let wanted = Suite::ALL.into_iter().filter(|suite| {
        let spoken = if suite.is_tls13() { versions.tls13 } else { versions.tls12 };
        spoken && (suites.is_empty() || suites.contains(suite))
    });
    let known = std::mem::take(&mut provider.cipher_suites);
    let find = |suite: Suite| known.iter().find(|known| known.suite() == number(suite)).copied();
    provider.cipher_suites = wanted.filter_map(find).collect();
    if provider.cipher_suites.is_empty() {
        let known: Vec<_> = Suite::ALL.into_iter().map(Suite::name).collect();
        return Err(TlsError::Nothing { known: known.join(", ") });
    }
    Ok(provider)
}

/// Its number in the registry.
const fn number(suite: Suite) -> CipherSuite {
    match suite {
        Suite::Tls13Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Suite::Tls13Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
        Suite::Tls13Chacha20 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        Suite::EcdheRsaAes128 => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        Suite::EcdheRsaAes256 => CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        Suite::EcdheRsaChacha20 => CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        Suite::EcdheEcdsaAes128 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        Suite::EcdheEcdsaAes256 => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        Suite::EcdheEcdsaChacha20 => CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    }
}
