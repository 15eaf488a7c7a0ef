//! What kind of store a file is.

use std::fmt;

/// A kind of store that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Java's own, up to Java 8 what `keytool` made.
    Jks,
    /// RFC 7292: what `keytool` makes from Java 9 on, and `openssl pkcs12`.
    Pkcs12,
    /// RFC 7468: text.
    Pem,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jks => "JKS",
            Self::Pkcs12 => "PKCS12",
            Self::Pem => "PEM",
        })
    }
}
