//! What this server says that it is.

use alloc::format;
use alloc::string::String;

/// The compatible version of ZooKeeper, and ours behind it.
///
/// It is 3.8.0, not a later one: who reads it takes it for what clients may expect here. Since 3.9.0 events carry the zxid of
/// their transaction (ZOOKEEPER-4655) and the admin server takes and restores snapshots (ZOOKEEPER-4570); here events have zxids
/// only where `quorate.java.oldest` says that no older server is among the members, and snapshots are not told over HTTP.
/// Clients tell versions apart by the first three numbers (kazoo, Datadog); a number below 3.4.4 makes some of them expect other
/// lines of `srvr`.
const VERSION: &str = concat!("3.8.0-quorate-", env!("CARGO_PKG_VERSION"));

/// What it was built of: the commit that the variable named when it was built. Monitoring (Zabbix) looks for it between two
/// dashes and a comma.
const REVISION: &str = match option_env!("QUORATE_COMMIT") {
    Some(commit) => commit,
    None => "release",
};

/// Clients look for a date here; a build that can be repeated has none.
const BUILT: &str = "1970-01-01 00:00 UTC";

/// The version of ZooKeeper that this server is compatible with and ours behind it, with the date of the build: as `srvr`,
/// `mntr` and the pages of the admin server tell it.
pub fn long() -> String {
    format!("{VERSION}--{REVISION}, built on {BUILT}")
}
