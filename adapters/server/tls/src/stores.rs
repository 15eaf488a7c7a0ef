//! The files with a server's key and with those whom it trusts.

use std::fs;
use std::path::Path;

use quorate_keystore::{KeyStore, Password, TrustStore, key_store, trust_store};
use zeroize::Zeroizing;

use crate::error::StoreError;
use crate::revoked::Revoked;
use crate::settings::{RevokedFile, StoreFile, StorePassword};

/// Reads the key and its certificates.
pub(crate) fn own(file: &StoreFile) -> Result<KeyStore, StoreError> {
    let (name, bytes, password) = (name(file), bytes_of(&file.path)?, password(file)?);
    Ok(key_store(&name, &bytes, file.kind, password.as_ref())?)
}

/// Reads whom to trust.
pub(crate) fn trusted(file: &StoreFile) -> Result<TrustStore, StoreError> {
    let (name, bytes, password) = (name(file), bytes_of(&file.path)?, password(file)?);
    Ok(trust_store(&name, &bytes, file.kind, password.as_ref())?)
}

/// Reads which certificates were taken back.
pub(crate) fn revoked(file: &RevokedFile) -> Result<Revoked, StoreError> {
    Revoked::read(&file.path, &bytes_of(&file.path)?, file.strict)
}

fn name(file: &StoreFile) -> String {
    file.path.display().to_string()
}

/// What opens it.
fn password(file: &StoreFile) -> Result<Option<Password>, StoreError> {
    match &file.password {
        None => Ok(None),
        Some(StorePassword::Inline(password)) => Ok(Some(password.clone())),
        Some(StorePassword::File(path)) => {
            let read = Password::from_file(&bytes_of(path)?);
            read.map(Some).map_err(|_| StoreError::Password { file: path.clone() })
        }
    }
}

fn bytes_of(path: &Path) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let read = fs::read(path).map(Zeroizing::new);
    read.map_err(|source| StoreError::Read { file: path.to_owned(), source })
}
