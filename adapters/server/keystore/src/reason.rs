//! Why a store is refused.

use std::fmt;

use crate::der::DerError;
use crate::kind::Kind;

/// A store is refused: which file, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct StoreError {
    /// The file, as it was named.
    pub file: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// Why a store is refused, with the remedy where there is one. No secret is in it.
///
/// An alias is the name of an entry in the store; PEM files have none, and what stands for it says which certificate of
/// the file is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Neither a setting nor the ending says of what kind it is.
    #[error(
        "its kind is not said: the name ends in none of .jks, .p12 and .pem; set ssl.*.type to JKS, PKCS12 or PEM"
    )]
    Ending,
    /// The setting names no kind of store.
    #[error("\"{0}\" is no type of store; JKS, PKCS12 and PEM are")]
    Type(String),
    /// Bouncy Castle's store.
    #[error(
        "BCFKS is not read here; where Bouncy Castle's provider is, convert it: {}, with \
         `-srcstoretype BCFKS -providerclass org.bouncycastle.jcajce.provider.BouncyCastleFipsProvider -providerpath JAR`",
        Keytool
    )]
    Bcfks,
    /// Java's second own store.
    #[error(
        "JCEKS is not read here, nor by ZooKeeper; convert it: {}, with `-srcstoretype JCEKS`",
        Keytool
    )]
    Jceks,
    /// A certificate or a key that is neither a store nor text.
    #[error(
        "it is no store but DER, such as one certificate; `openssl x509 -inform der` makes PEM of it"
    )]
    Der,
    /// The bytes are of no kind of store.
    #[error("it is no {0} store, nor one of another kind")]
    NotThis(Kind),
    /// It is longer than any store is.
    #[error("it is {length} bytes long; stores are read up to {most}")]
    Length {
        /// In bytes.
        length: usize,
        /// In bytes.
        most: usize,
    },
    /// It is cut short, or not what the format says.
    #[error("the {kind} store is damaged: {what}")]
    Damaged {
        /// As what it was read.
        kind: Kind,
        /// Where, or what is wrong.
        what: &'static str,
    },
    /// The password does not open it. The formats do not tell this from a change to the file.
    #[error("the password is wrong, or the file was changed")]
    WrongPassword,
    /// A password is needed and none is given.
    #[error("it needs a password; set ssl.*.passwordPath to a file with it")]
    NoPassword,
    /// So much computing is asked for that it would be an attack to do it.
    #[error("it asks for {asked} rounds of key derivation; up to {most} are done")]
    Rounds {
        /// What the file asks for.
        asked: u64,
        /// What is done for one file.
        most: u32,
    },
    /// So much memory is asked for that it would be an attack to take it.
    #[error("it asks for {asked} bytes of memory for key derivation; up to {most} are taken")]
    Memory {
        /// What the file asks for, in bytes.
        asked: u64,
        /// In bytes.
        most: u64,
    },
    /// It is sealed in a way that is not read here.
    #[error("it is sealed by {algorithm}, which is not read here; convert it: {remedy}")]
    Sealed {
        /// Its name, or its identifier.
        algorithm: String,
        /// What converts it.
        remedy: Remedy,
    },
    /// It is of a variant of the format that is not read here.
    #[error("{what}, which is not read here; convert it: {remedy}")]
    Variant {
        /// What it has.
        what: &'static str,
        /// What converts it.
        remedy: Remedy,
    },
    /// There is no private key.
    #[error("it holds no private key")]
    NoKey,
    /// A PEM file with several keys, of which none is named.
    #[error("it holds {0} private keys; a PEM key store holds one")]
    SeveralKeys(usize),
    /// A private key in PEM of an algorithm that is not taken, or in a form that is not known.
    #[error(
        "it holds a {0}; PRIVATE KEY, ENCRYPTED PRIVATE KEY, RSA PRIVATE KEY and EC PRIVATE KEY are read"
    )]
    KeyLabel(String),
    /// There is a private key and no certificate for it.
    #[error("the key \"{alias}\" has no certificate")]
    NoCertificate {
        /// Of the key.
        alias: String,
    },
    /// A trust store holds nothing that is trusted.
    #[error("it holds no trusted certificate{}", if *.unmarked == 0 { "" } else {
        "; those in it lack Java's mark, which `keytool -importcert` sets"
    })]
    NothingTrusted {
        /// Certificates without Java's mark.
        unmarked: usize,
    },
    /// The key that is asked for by its alias is not there.
    #[error("it holds no key \"{alias}\"; it holds \"{}\"", .there.join("\", \""))]
    Alias {
        /// What is asked for.
        alias: String,
        /// What is there.
        there: Vec<String>,
    },
    /// The certificate is for another key.
    #[error("the key \"{alias}\" and its certificate do not belong together: {what}")]
    Mismatch {
        /// Of the key.
        alias: String,
        /// What differs.
        what: &'static str,
    },
    /// A key or a signature is too weak to be relied on, or of a kind that no link here takes.
    #[error(
        "\"{alias}\" is refused: {what}; RSA of 2048 to 8192 bits, P-256, P-384, P-521 and Ed25519 are taken"
    )]
    Unfit {
        /// Of the entry.
        alias: String,
        /// The algorithm, and its length.
        what: String,
    },
    /// A signature rests on a broken digest.
    #[error(
        "\"{alias}\" is refused: it is signed by {algorithm}; let it be signed anew with SHA-256"
    )]
    Signature {
        /// Of the entry.
        alias: String,
        /// By its name.
        algorithm: &'static str,
    },
    /// A certificate cannot be read.
    #[error("\"{alias}\" is no X.509 certificate")]
    Certificate {
        /// Of the entry.
        alias: String,
    },
    /// The chain is longer than a server takes in a handshake.
    #[error("the chain of \"{alias}\" has {length} certificates; up to {most} are taken")]
    Chain {
        /// Of the entry.
        alias: String,
        /// Certificates.
        length: usize,
        /// Certificates.
        most: usize,
    },
}

/// What converts a store to one that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A store: `keytool -importkeystore`.
    Keytool,
    /// A key in PEM: `openssl pkcs8`.
    OpenSsl,
    /// A certificate in PEM: `openssl x509`.
    OpenSslCertificate,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keytool => Keytool.fmt(f),
            Self::OpenSsl => f.write_str("`openssl pkcs8 -topk8 -in FILE -out NEW`"),
            Self::OpenSslCertificate => f.write_str("`openssl x509 -in FILE -out NEW`"),
        }
    }
}

struct Keytool;

impl fmt::Display for Keytool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`keytool -importkeystore -srckeystore FILE -destkeystore NEW.p12 -deststoretype PKCS12`")
    }
}

impl Reason {
    /// What a cursor says of a store.
    pub(crate) const fn encoding(kind: Kind, error: DerError) -> Self {
        let what = match error {
            DerError::Cut => "it ends within an element",
            DerError::Indefinite => {
                let remedy =
                    if matches!(kind, Kind::Pem) { Remedy::OpenSsl } else { Remedy::Keytool };
                return Self::Variant {
                    what: "it has elements of indefinite length (BER)",
                    remedy,
                };
            }
            DerError::Long => "an element is longer than any file",
            DerError::Other => "an element is not the one that is expected",
            DerError::Trailing => "something follows after its end",
        };
        Self::Damaged { kind, what }
    }
}
