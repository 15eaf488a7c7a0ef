//! The names of files and directories: the zxid in them, and the prefixes of files that are not published yet.

use quorate_core::zxid::Zxid;

/// The directory that ZooKeeper keeps its files in, under `dataDir` and `dataLogDir`.
pub(crate) const VERSION_DIR: &str = "version-2";
/// What keeps two processes from sharing a directory.
pub(crate) const LOCK: &str = "quorate.lock";
/// What is written to see whether a disk works again, and removed.
pub(crate) const PROBE: &str = "quorate.probe";
/// What the names of our own unpublished snapshots begin with; ZooKeeper passes over them.
pub(crate) const TAKING: &str = "taking.";
/// What the names of those begin with that a leader sends.
pub(crate) const RECEIVING: &str = "receiving.";
/// What the names of files begin with that are to be installed.
pub(crate) const STAGED: &str = "staged.";

/// As ZooKeeper writes it into names: hexadecimal, without a prefix.
pub(crate) fn parse_zxid(text: &str) -> Option<Zxid> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    i64::from_str_radix(text, 16).ok().map(Zxid)
}
