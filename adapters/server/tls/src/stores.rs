//! The files with a server's key and with those whom it trusts.

use std::fs;
use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::StoreError;
use crate::settings::{StoreFile, StoreKind};

/// A key store's content.
pub(crate) struct Own {
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
}

/// Reads the key and its certificates.
pub(crate) fn own(file: &StoreFile) -> Result<Own, StoreError> {
    let bytes = read(file)?;
    let lacks = |what| StoreError::Lacks { file: file.path.clone(), what };
    let chain = certificates(&file.path, &bytes)?;
    if chain.is_empty() {
        return Err(lacks("certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| lacks("private key"))?;
    Ok(Own { key, chain })
}

/// Reads whom to trust.
pub(crate) fn trusted(file: &StoreFile) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let found = certificates(&file.path, &read(file)?)?;
    match found.is_empty() {
        true => Err(StoreError::Lacks { file: file.path.clone(), what: "certificate" }),
        false => Ok(found),
    }
}

fn read(file: &StoreFile) -> Result<Vec<u8>, StoreError> {
    let path = &file.path;
    let by_name = || {
        let end = path.extension()?.to_str()?;
        StoreKind::from_name(if end == "p12" { "PKCS12" } else { end })
    };
    match file.kind.or_else(by_name) {
        None => Err(StoreError::Kind { file: path.clone() }),
        Some(StoreKind::Jks | StoreKind::Pkcs12) => {
            Err(StoreError::Content { file: path.clone(), what: "only PEM is read yet".to_owned() })
        }
        Some(StoreKind::Pem) => {
            fs::read(path).map_err(|source| StoreError::Read { file: path.clone(), source })
        }
    }
}

fn certificates(file: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    read.map_err(|error| StoreError::Content { file: file.to_owned(), what: error.to_string() })
}
