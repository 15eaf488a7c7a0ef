//! How the command comes to a store through TLS: with the stores that a Java client's settings name, or with PEM files.
//!
//! ```text
//!   --tls FILE            ssl.keyStore.*, ssl.trustStore.*: JKS, PKCS12, PEM ─┐
//!   --ca, --cert, --key   PEM ────────────────────────────────────────────────┴─► Pem ─► the client libraries
//! ```
//!
//! No option takes a secret: passwords stand in files.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use quorate_keystore::rustls_pki_types::{CertificateDer, PrivateKeyDer};
use quorate_keystore::{KeyStore, Kind, Password, StoreError, key_store, trust_store};
use zeroize::Zeroizing;
use zookeeper_client::TlsOptions;

use crate::failure::Failure;
use crate::tls::{Store, client_stores};

/// What is said of TLS.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsArguments {
    /// Through TLS, with the stores that this file names as a Java client's settings do.
    ///
    /// ssl.keyStore.location, .type, .password or .passwordPath, and the same of ssl.trustStore: JKS, PKCS12 or PEM. Every
    /// server has to be certified by one of the trust store, under the name that is given here. A key store is needed
    /// where servers ask for it.
    #[arg(long, global = true, value_name = "FILE", conflicts_with_all = ["ca", "cert", "key"])]
    tls: Option<PathBuf>,
    /// Through TLS, to servers that these authorities have certified (PEM).
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// With --ca: the certificate to show, with those above it (PEM).
    #[arg(long, global = true, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// With --cert: its key, not encrypted (PEM).
    #[arg(long, global = true, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Whom to trust, and what to show, as the client libraries take it.
pub(crate) struct Pem {
    pub(crate) authorities: String,
    /// The certificate with those above it, and its key.
    pub(crate) identity: Option<(String, Zeroizing<String>)>,
}

impl TlsArguments {
    /// Reads the files; none if there is to be no TLS.
    pub(crate) fn read(&self) -> Result<Option<Pem>, Failure> {
        if let Some(file) = &self.tls {
            return Pem::of_settings(file).map(Some);
        }
        match (&self.ca, &self.cert, &self.key) {
            (None, None, None) => Ok(None),
            (Some(ca), None, None) => Pem::of_files(ca, None).map(Some),
            (Some(ca), Some(cert), Some(key)) => Pem::of_files(ca, Some((cert, key))).map(Some),
            (None, ..) => Err(Failure::usage("--cert and --key need --ca: whom to trust?")),
            (Some(_), ..) => Err(Failure::usage("--cert and --key go together")),
        }
    }

    /// The same for sessions of ZooKeeper.
    pub(crate) fn options(&self) -> Result<Option<TlsOptions>, Failure> {
        let Some(Pem { authorities, identity }) = self.read()? else { return Ok(None) };
        let refused = |error| Failure::usage(format!("TLS cannot be had this way: {error}"));
        let options = TlsOptions::new().with_pem_ca(&authorities).map_err(refused)?;
        match identity {
            None => Ok(Some(options)),
            Some((chain, key)) => {
                options.with_pem_identity(&chain, &key).map(Some).map_err(refused)
            }
        }
    }
}

impl Pem {
    fn of_settings(file: &Path) -> Result<Self, Failure> {
        let (own, trusted) =
            client_stores(file).map_err(|error| Failure::usage(error.to_string()))?;
        let Some(trusted) = trusted else {
            let file = file.display();
            return Err(Failure::usage(format!("{file}: ssl.trustStore.location is not set")));
        };
        let trusted = opened(&trusted, |name, bytes, kind, password| {
            trust_store(name, bytes, kind, password).map(|store| store.certificates)
        })?;
        let own = own.map(|own| opened(&own, key_store)).transpose()?;
        Ok(Self::new(&trusted, own))
    }

    fn of_files(ca: &Path, own: Option<(&PathBuf, &PathBuf)>) -> Result<Self, Failure> {
        let (pem, wrong) =
            (Some(Kind::Pem), |error: &dyn std::fmt::Display| Failure::usage(error.to_string()));
        let trusted = trust_store(&ca.display().to_string(), &bytes(ca)?, pem, None);
        let trusted = trusted.map_err(|error| wrong(&error))?.certificates;
        let Some((cert, key)) = own else { return Ok(Self::new(&trusted, None)) };
        let mut both = bytes(cert)?;
        both.push(b'\n');
        both.extend_from_slice(&bytes(key)?);
        let own = key_store(&key.display().to_string(), &both, pem, None);
        Ok(Self::new(&trusted, Some(own.map_err(|error| wrong(&error))?)))
    }

    fn new(trusted: &[CertificateDer<'_>], own: Option<KeyStore>) -> Self {
        let identity = own.map(|KeyStore { key, chain, .. }| {
            let label = match &key {
                PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
                PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
                PrivateKeyDer::Pkcs8(_) | _ => "PRIVATE KEY",
            };
            (certificates(&chain), block(label, key.secret_der()))
        });
        Self { authorities: certificates(trusted), identity }
    }
}

/// What reads a store: its name, its bytes, its kind, and its password.
type Reader<T> = fn(&str, &[u8], Option<Kind>, Option<&Password>) -> Result<T, StoreError>;

/// A store, read.
fn opened<T>(store: &Store, read: Reader<T>) -> Result<T, Failure> {
    let name = store.file.display().to_string();
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{name}: {why}"));
    let kind = store.parsed().map_err(|reason| wrong(&reason))?;
    let password = store.password.as_ref().map_err(|error| Failure::usage(error.to_string()))?;
    read(&name, &bytes(&store.file)?, kind, password.as_ref())
        .map_err(|error| Failure::usage(error.to_string()))
}

fn bytes(file: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let read = fs::read(file).map(Zeroizing::new);
    read.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn certificates(chain: &[CertificateDer<'_>]) -> String {
    chain.iter().map(|der| block("CERTIFICATE", der).as_str().to_owned()).collect()
}

/// A block of PEM (RFC 7468).
fn block(label: &str, der: &[u8]) -> Zeroizing<String> {
    let coded = Zeroizing::new(STANDARD.encode(der));
    let mut text = Zeroizing::new(String::with_capacity(coded.len() + coded.len() / 64 + 80));
    text.push_str(&format!("-----BEGIN {label}-----\n"));
    for (at, character) in coded.char_indices() {
        if at > 0 && at % 64 == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push_str(&format!("\n-----END {label}-----\n"));
    text
}
