//! The options of the log segments and snapshots of a directory.

use quorate_core::zxid::Zxid;

use crate::record::TXN_BYTES_MAX;

/// How to open a history, and how to go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentOptions {
    /// By how many bytes a log file grows at a time (`zookeeper.preAllocSize`), so that most syncs need
    /// not tell the file system that it has grown; 4 MiB at most, since a file system may take its time
    /// to find more, and transactions wait. None: as it comes.
    pub preallocate: u64,
    /// When to begin a new log file.
    pub roll: Roll,
    /// The longest transaction that is read or written, in bytes: `jute.maxbuffer` and its extra size
    /// (`zookeeper.jute.maxbuffer.extrasize`) of the whole ensemble. A longer one in a log is damage to this server, as
    /// it is to ZooKeeper ("Unreasonable length").
    pub txn_bytes_max: usize,
    /// How many transactions at the end are returned at open.
    pub window_count: usize,
    /// How many bytes they may take together.
    pub window_bytes: usize,
    /// Take only a snapshot older than this one, the newest, which turned out to be unreadable. The log
    /// must lead from the older one through it: it was acknowledged.
    pub snapshot_before: Option<Zxid>,
    /// Whether a log without a snapshot is a history from the beginning
    /// (`zookeeper.snapshot.trust.empty`).
    pub trust_empty_snapshot: bool,
    /// Log files older than the newest snapshot are read for a learner that stands in them, if what it
    /// would be sent from disk has at most this many hundredths of that snapshot's bytes
    /// (`zookeeper.snapshotSizeFactor`); never, if none.
    pub size_percent: Option<u64>,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            preallocate: 64 << 20,
            roll: Roll::default(),
            txn_bytes_max: TXN_BYTES_MAX,
            window_count: 500,
            window_bytes: 16 << 20,
            snapshot_before: None,
            trust_empty_snapshot: false,
            size_percent: Some(33),
        }
    }
}

/// When a log file is long enough. The caller adds the jitter that keeps an ensemble's servers from
/// doing it at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roll {
    /// After so many transactions.
    pub records: u64,
    /// After so many bytes.
    pub bytes: u64,
}

impl Default for Roll {
    fn default() -> Self {
        Self { records: 100_000, bytes: 2 << 30 }
    }
}
