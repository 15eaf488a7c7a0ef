//! What is worth knowing of a store that can be read.

use std::fmt;

use crate::kind::Kind;

/// What is worth knowing of a store that was read: what was passed over, and what a Java server would make of it.
///
/// None of it keeps a server from starting. Names in it are those that stand in the store; no notice holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The bytes are of another kind than is said, or than the ending says.
    Kind {
        /// What is said.
        said: Kind,
        /// What it is.
        found: Kind,
        /// Whether a Java server reads it all the same.
        java_looks_too: bool,
    },
    /// There are several keys, and this one is taken.
    Several {
        /// Its alias.
        taken: String,
        /// Those of the others.
        others: Vec<String>,
    },
    /// A Java server could not read the same file.
    JavaCannotRead(JavaCannot),
    /// A trust store holds certificates that are not marked as trusted: Java trusts none of them, and so it is here.
    NotMarked {
        /// How many.
        certificates: usize,
    },
    /// Several authorities have the same subject, which stand side by side here. Of a PEM file, Java takes the last.
    SameSubject(String),
    /// No password is given, so that it is not known whether the store was changed.
    Unchecked,
    /// The store has no seal, so that a password does not tell whether it was changed.
    Unsealed,
}

/// What Java's reader lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JavaCannot {
    /// A private key in PEM that is not PKCS#8: `BEGIN RSA PRIVATE KEY`, `BEGIN EC PRIVATE KEY`.
    Traditional,
    /// A private key in PEM that is sealed by PBES2, which is what `openssl` does unless it is told otherwise.
    Pbes2,
    /// A private key in PEM that is not sealed, where a password is given all the same: Java then takes it for sealed.
    Open,
    /// An Ed25519 key, before Java 15.
    Ed25519,
    /// A PKCS12 trust store without a password.
    NoPassword,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { said, found, java_looks_too } => {
                let java = if *java_looks_too { "; so does Java" } else { "; Java would not" };
                write!(f, "is said to be {said} and is {found}: it is read as what it is{java}")
            }
            Self::Several { taken, others } => write!(
                f,
                "holds several keys: \"{taken}\" is taken, not \"{}\"",
                others.join("\", \"")
            ),
            Self::JavaCannotRead(what) => write!(f, "a Java server could not read it: {what}"),
            Self::NotMarked { certificates } => write!(
                f,
                "holds certificates that Java would not trust, and so it is here ({certificates}): they lack Java's \
                 mark; `keytool -importcert` sets it"
            ),
            Self::SameSubject(subject) => write!(
                f,
                "holds several authorities named \"{subject}\": all are taken here; Java takes the last of a PEM file"
            ),
            Self::Unchecked => f.write_str(
                "is read without a password, so that nothing tells whether it was changed",
            ),
            Self::Unsealed => {
                f.write_str("has no seal, so that nothing tells whether it was changed")
            }
        }
    }
}

impl fmt::Display for JavaCannot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Traditional => {
                "the key is not PKCS#8; `openssl pkcs8 -topk8 -nocrypt -in FILE` converts it"
            }
            Self::Pbes2 => {
                "the key is sealed by PBES2, which Java's reader of PEM lacks; \
                 `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in FILE` converts it"
            }
            Self::Open => {
                "the key is not sealed, and a password is given: Java takes it for sealed then, and \
                 reads it where no password is given"
            }
            Self::Ed25519 => "the key is Ed25519, which needs Java 15",
            Self::NoPassword => "it takes no PKCS12 trust store without a password",
        })
    }
}
