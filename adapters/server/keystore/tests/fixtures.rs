//! The stores that `fixtures/make.sh` made.

use std::fs;
use std::path::Path;

use quorate_keystore::{
    KeyStore, Password, Reason, StoreError, TrustStore, key_store, trust_store,
};

pub(crate) fn password() -> Password {
    Password::new("changeit")
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// All stores, by name.
pub(crate) fn all() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| [".jks", ".p12", ".pem"].iter().any(|ending| name.ends_with(ending)))
        .collect();
    names.sort();
    assert!(names.len() > 40, "{names:?}");
    names
}

/// A key store, with the password of all fixtures.
pub(crate) fn keys(name: &str) -> Result<KeyStore, StoreError> {
    key_store(name, &bytes(name), None, Some(&password()))
}

/// A trust store, with the password of all fixtures.
pub(crate) fn trust(name: &str) -> Result<TrustStore, StoreError> {
    trust_store(name, &bytes(name), None, Some(&password()))
}

/// Why a key store is refused.
pub(crate) fn refusal(name: &str) -> Reason {
    let error = keys(name).unwrap_err();
    assert_eq!(error.file, name);
    error.reason
}
