//! The certificates of the demo's servers, of an authority that is made on the spot and forgotten with it.
//!
//! All servers are on one host, so that what tells their certificates apart is the id in them
//! (`urn:quorate:server:N`, which `quorate.ssl.identity=id` asks for).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use thiserror::Error;

/// The stores of a server, in PEM: its own certificate with its key, and whom it trusts.
#[derive(Clone, Debug)]
pub(super) struct Stores {
    pub(super) own: PathBuf,
    pub(super) trusted: PathBuf,
}

/// Why there are no certificates.
#[derive(Debug, Error)]
pub(super) enum CertificatesError {
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot write a certificate: {0}")]
    Write(#[from] io::Error),
}

/// Where the stores of a server are.
pub(super) fn stores(dir: &Path, id: i64) -> Stores {
    Stores { own: dir.join(format!("{id}.pem")), trusted: dir.join("authority.pem") }
}

/// Makes an authority, whose key is kept nowhere, and a certificate for each server.
pub(super) fn make(dir: &Path, ids: &[i64]) -> Result<(), CertificatesError> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "an authority of quorate demo");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?;
    for &id in ids {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, format!("server {id} of quorate demo"));
        let urn = format!("urn:quorate:server:{id}");
        params.subject_alt_names.push(SanType::URI(urn.try_into()?));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Each server dials, and is dialled.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority, &authority_key)?;
        let Stores { own, trusted } = stores(dir, id);
        // The directory is readable by its owner alone.
        fs::write(own, format!("{}{}", certificate.pem(), key.serialize_pem()))?;
        fs::write(trusted, authority.pem())?;
    }
    Ok(())
}
