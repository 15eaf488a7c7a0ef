//! The manifest of a backup: what is in it, and what it must come to when it is read back.

use std::fmt;

use quorate_core::zxid::Zxid;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::history::State;

/// The first entry of a backup, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the archive: [`Manifest::FORMAT`].
    pub format: u32,
    /// The version of quorate that wrote it.
    pub version: String,
    /// When, in milliseconds since 1970, by the clock of that machine.
    pub time_ms: i64,
    /// The server whose directory it was, if there was a `myid`.
    #[serde(default)]
    pub source_id: Option<i64>,
    /// Its `acceptedEpoch`, if there was one.
    #[serde(default)]
    pub accepted_epoch: Option<i64>,
    /// Its `currentEpoch`, likewise.
    #[serde(default)]
    pub current_epoch: Option<i64>,
    /// The last transaction, as `0x200000002`.
    pub zxid: String,
    /// The epoch of that.
    pub epoch: i64,
    /// How many nodes the tree has then.
    pub nodes: usize,
    /// How many sessions.
    pub sessions: usize,
    /// ZooKeeper's digest of the tree, version 2, as `0x1bd2a1b8c`.
    pub digest: String,
    /// How long a transaction may be to be read back.
    pub txn_bytes_max: usize,
    /// What follows in the archive, in this order: a snapshot, then log files.
    pub parts: Vec<Part>,
}

/// A file in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name, as in the data directory.
    pub name: String,
    /// How long it is. A log file ends with its last whole record.
    pub bytes: u64,
    /// What its bytes give.
    pub sha256: String,
}

impl Manifest {
    /// The format that is written, and the only one that is read.
    pub const FORMAT: u32 = 1;
    /// What the entry is called.
    pub const NAME: &str = "manifest.json";

    /// Whether `state` is what the archive must come to; the first thing that is not.
    ///
    /// # Errors
    ///
    /// A [`Mismatch`].
    pub fn compare(&self, state: &State) -> Result<(), Mismatch> {
        let pairs = [
            ("last transaction", &self.zxid, state.zxid.to_string()),
            ("epoch", &self.epoch.to_string(), state.zxid.epoch().to_string()),
            ("number of nodes", &self.nodes.to_string(), state.nodes.to_string()),
            ("number of sessions", &self.sessions.to_string(), state.sessions.to_string()),
            ("digest of the tree", &self.digest, shown_digest(state.digest)),
        ];
        for (what, told, found) in pairs {
            if *told != found {
                return Err(Mismatch { what, told: told.clone(), found });
            }
        }
        Ok(())
    }

    /// The last transaction.
    pub fn last(&self) -> Option<Zxid> {
        parse_zxid(&self.zxid)
    }
}

/// What a manifest says and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// About what.
    pub what: &'static str,
    /// What the manifest says.
    pub told: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, told, found } = self;
        write!(f, "the {what} is {found}, the manifest says {told}")
    }
}

impl std::error::Error for Mismatch {}

/// A digest as it is written.
pub fn shown_digest(digest: u64) -> String {
    format!("{digest:#x}")
}

/// The zxid in `0x200000002`, or the same without what is in front.
pub fn parse_zxid(text: &str) -> Option<Zxid> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { i64::from_str_radix(digits, 16).ok().map(Zxid) } else { None }
}

/// A SHA-256 in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum(Sha256);

impl Sum {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// In lower-case hexadecimal, as `sha256sum` prints it.
    pub(crate) fn shown(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
