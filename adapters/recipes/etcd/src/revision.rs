//! etcd's revisions as tokens and versions, and back.

/// A revision as a token, or a version.
pub(crate) fn number(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// The revision behind a token or version, which etcd gave.
pub(crate) fn revision(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
