//! Why a server cannot have the TLS that its operator wants.

use std::io;
use std::path::PathBuf;

use quorate_keystore::Unusable;
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
    /// A file with a password is no text.
    #[error("{}: it holds no password: its first line is no UTF-8 text", file.display())]
    Password {
        /// The file.
        file: PathBuf,
    },
    /// What is in it cannot be used.
    #[error(transparent)]
    Store(#[from] quorate_keystore::StoreError),
    /// Its certificate may not be used for what a member does.
    #[error("{}: {source}", file.display())]
    Usage {
        /// The file.
        file: PathBuf,
        /// What it lacks, and what to do.
        #[source]
        source: Unusable,
    },
    /// A file with lists of revoked certificates holds none that can be used.
    #[error("{}: {what}", file.display())]
    Revoked {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Key and certificate do not belong together, or cannot be used here.
    #[error("{}: the key of {subject} is {what}", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// Whose certificate.
        subject: String,
        /// What it is.
        what: String,
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
