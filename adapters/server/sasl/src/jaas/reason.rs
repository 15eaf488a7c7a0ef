//! Why a JAAS file is refused.

use alloc::string::String;

/// A JAAS file, or what it says, is refused. No password is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct JaasError {
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Why.
    pub reason: JaasReason,
}

/// Why a JAAS file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JaasReason {
    /// It is longer than any is.
    #[error("a JAAS file of {length} bytes; up to {FILE_BYTES_MAX} are read")]
    Length {
        /// In bytes.
        length: usize,
    },
    /// Something else should stand there.
    #[error("there should be {0}")]
    Expected(&'static str),
    /// A text in quotes does not end on its line.
    #[error("a text in quotes does not end on its line")]
    Unended,
    /// A section is there twice.
    #[error("the section \"{0}\" is there already")]
    Twice(String),
    /// There is no such section.
    #[error("there is no section \"{0}\"")]
    NoSection(String),
    /// A section has another login module than ZooKeeper's for digests.
    #[error(
        "the section \"{section}\" has the login module {class}, which is not spoken here; of SASL there is DIGEST-MD5 \
         alone, with {DIGEST_MODULE}"
    )]
    Module {
        /// The section.
        section: String,
        /// The module.
        class: String,
    },
    /// A value names a property of the JVM.
    #[error(
        "the option \"{0}\" has a ${{property}} of the JVM in it, and nothing is expanded here"
    )]
    Property(String),
    /// A user without a name, or a name without a password.
    #[error("the option \"{0}\" has no name, or no password beside it")]
    Incomplete(&'static str),
}

/// The longest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 10;
/// The login module of ZooKeeper for names with passwords.
pub(super) const DIGEST_MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";
