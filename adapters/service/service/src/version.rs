//! What this server says that it is.

use alloc::format;
use alloc::string::String;

/// The compatible version, which clients and monitoring read, and ours behind it.
pub(crate) const VERSION: &str = concat!("3.8.0-quorate-", env!("CARGO_PKG_VERSION"));

/// Clients look for a date here; a build that can be repeated has none.
const BUILT: &str = "1970-01-01 00:00 UTC";

/// The version of ZooKeeper that this server is compatible with and ours behind it, with the date of the build: as `srvr`,
/// `mntr` and the pages of the admin server tell it.
pub fn long() -> String {
    format!("{VERSION}, built on {BUILT}")
}
