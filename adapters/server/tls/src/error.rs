//! Why a server cannot have the TLS that its operator wants.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// What is wrong with a store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Nothing says what kind of store a file is.
    #[error(
        "{}: what kind of store is this? Say it (JKS, PKCS12 or PEM), or let the name end in .jks, .p12 or .pem",
        file.display()
    )]
    Kind {
        /// The file.
        file: PathBuf,
    },
    /// The content is none that can be read.
    #[error("{}: {what}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A key store has no key, or no certificate for it.
    #[error("{}: there is no {what} in it", file.display())]
    Lacks {
        /// The file.
        file: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// Key and certificate do not belong together.
    #[error("{}: the private key is not that of the certificate {subject}", file.display())]
    Mismatch {
        /// The file.
        file: PathBuf,
        /// Whose certificate.
        subject: String,
    },
    /// A key is too short, or of a kind that is not there.
    #[error("{}: the key of {subject} is {what}", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// Whose certificate.
        subject: String,
        /// What it is.
        what: String,
    },
    /// A certificate may not be used for what a member does.
    #[error("{}: the certificate {subject} {what}", file.display())]
    Usage {
        /// The file.
        file: PathBuf,
        /// Whose certificate.
        subject: String,
        /// What it lacks, and what to do.
        what: &'static str,
    },
}

/// Why a server cannot have the TLS that its operator wants.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A store is not good.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Neither version may be spoken, or no suite is left for those that may.
    #[error(
        "no cipher suite is left for the versions of TLS that may be spoken; there are {known}"
    )]
    Nothing {
        /// The suites that there are.
        known: String,
    },
    /// rustls does not take it.
    #[error("TLS cannot be had this way: {0}")]
    Rustls(#[from] rustls::Error),
}
