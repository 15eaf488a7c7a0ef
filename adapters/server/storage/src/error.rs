//! The errors that all acts share: the system refused a file operation, or a log file is corrupt.
//!
//! Each act has an error of its own, next to it; here stand the two things that happen in all of them:
//! the system refuses, or a log file does not say what was once written to it. Both name the file.

use std::io;
use std::path::{Path, PathBuf};

use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::record::Damage;

/// What may be done about a directory that a server refuses. Each refusal that can be cured by an empty
/// directory ends with it, since the same advice may be followed on a majority: what those had acknowledged
/// would then be gone, and nothing would tell.
pub const SAFE: &str = "This directory may hold the only copy of acknowledged transactions. Only while the other \
    servers have a leader and take writes without this one, and for one server at a time, it can be moved away: \
    then the server gets its history from them. Otherwise leave it as it is";

/// The system refused something.
#[derive(Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was to be done, for instance "sync".
    pub action: &'static str,
    /// To which file or directory.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError { action, path, source }
}

/// A log file that cannot be continued from, because acknowledged history may be missing in it.
///
/// Nothing was changed. What an operator may do about it: [`SAFE`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Corruption {
    /// It does not begin as a log file does.
    #[error("{} is no transaction log: it begins with {found:02x?}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// A record in the middle is damaged.
    #[error("{}, offset {offset}, after {after}: the record is damaged: {damage}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// The last transaction before it; zero if there is none.
        after: Zxid,
        /// What is wrong with it.
        #[source]
        damage: Damage,
    },
    /// The first record is not the one that gives the file its name.
    #[error("{} begins with transaction {found}", path.display())]
    Misnamed {
        /// The file.
        path: PathBuf,
        /// Its first transaction.
        found: Zxid,
    },
    /// A transaction has a number that is the start of an epoch, or no zxid at all.
    #[error(
        "{}, offset {offset}: no leader gives a transaction the number {zxid}",
        path.display()
    )]
    Number {
        /// The file.
        path: PathBuf,
        /// Where its record begins.
        offset: u64,
        /// The number.
        zxid: Zxid,
    },
    /// A transaction does not come after the one before it.
    #[error("{}, offset {offset}: transaction {zxid} stands behind {after}", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// Where its record begins.
        offset: u64,
        /// The transaction.
        zxid: Zxid,
        /// The one before it.
        after: Zxid,
    },
    /// Transactions are missing, and no snapshot makes up for them.
    #[error(
        "{}, offset {offset}: transaction {zxid} follows {after}; those between are missing",
        path.display()
    )]
    Hole {
        /// The file.
        path: PathBuf,
        /// Where the record behind the hole begins.
        offset: u64,
        /// Its transaction.
        zxid: Zxid,
        /// The last one before the hole, or the snapshot that the log should continue.
        after: Zxid,
    },
}
