//! What the readers of all kinds find in a store.

use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::notice::Notice;

/// A private key with what stands beside it.
#[derive(Debug)]
pub(crate) struct KeyEntry {
    pub(crate) alias: Option<String>,
    pub(crate) key: SecretKey,
    /// The certificate of the key first.
    pub(crate) chain: Vec<CertificateDer<'static>>,
}

/// A certificate with what stands beside it.
#[derive(Debug)]
pub(crate) struct TrustEntry {
    pub(crate) alias: Option<String>,
    pub(crate) certificate: CertificateDer<'static>,
}

/// All of a store.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) keys: Vec<KeyEntry>,
    pub(crate) trusted: Vec<TrustEntry>,
    /// Certificates that are neither of a key nor marked as trusted.
    pub(crate) unmarked: usize,
    /// Keys that were passed over for want of a password.
    pub(crate) locked: usize,
    pub(crate) notices: Vec<Notice>,
}

/// How a private key is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Pkcs8,
    Pkcs1,
    Sec1,
}

/// A private key, wiped unless it is handed out.
pub(crate) struct SecretKey {
    form: Form,
    der: Zeroizing<Vec<u8>>,
}

impl SecretKey {
    pub(crate) const fn new(form: Form, der: Zeroizing<Vec<u8>>) -> Self {
        Self { form, der }
    }

    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn der(&self) -> &[u8] {
        &self.der
    }

    /// For the caller that asked for it. The memory is the same; it is the caller's to wipe.
    pub(crate) fn into_key(mut self) -> PrivateKeyDer<'static> {
        let der = std::mem::take(&mut *self.der);
        match self.form {
            Form::Pkcs8 => PrivateKeyDer::Pkcs8(der.into()),
            Form::Pkcs1 => PrivateKeyDer::Pkcs1(der.into()),
            Form::Sec1 => PrivateKeyDer::Sec1(der.into()),
        }
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKey").field("form", &self.form).finish_non_exhaustive()
    }
}
