//! The configuration of a disk: how long syncs take, what fails, what a crash leaves.

use std::time::Duration;

/// What a crash leaves of writes that were not yet reported as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// The first few of them, in their order: what a driver gives that syncs them one by one.
    Prefix,
    /// The first few, but epoch files each by itself, where the order does not promise more: what a
    /// driver gives that syncs its files at the same time. A current epoch is never ahead of the log.
    Any,
    /// The same, and of the log each write by itself, since pages reach a disk in any order: behind one that
    /// is lost, or has lost its middle, others lie whole. That this is no damage, only the mark of where the
    /// last sync ended tells.
    Misordered,
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
}

/// How a disk behaves. Chances are in 65536ths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The shortest sync.
    pub sync_min: Duration,
    /// The longest sync of a healthy disk.
    pub sync_max: Duration,
    /// The chance that a sync is slow.
    pub slow: u64,
    /// The longest slow sync.
    pub slow_max: Duration,
    /// The chance that a sync fails, and with it the server: a driver does not go on from there, since
    /// what is on the disk is unknown.
    pub failing: u64,
    /// What a crash leaves of unreported writes.
    pub survival: Survival,
    /// How many snapshots are kept; the log is kept from the oldest of them on.
    pub snapshots: usize,
    /// How many bytes of a snapshot file there are for each transaction in it, when it is asked whether
    /// the log costs less to read.
    pub snapshot_bytes_per_txn: u64,
    /// The chance that the log or snapshot that a learner needs cannot be read to its end, or that a
    /// snapshot cannot be taken.
    pub unreadable: u64,
    /// Whether a crash takes the last transaction that was synced: a disk that lies, to be found out.
    pub forgets: bool,
}

impl Default for DiskConfig {
    fn default() -> Self {
        Self {
            sync_min: Duration::from_micros(100),
            sync_max: Duration::from_millis(5),
            slow: 0,
            slow_max: Duration::from_millis(300),
            failing: 0,
            survival: Survival::Prefix,
            snapshots: 3,
            snapshot_bytes_per_txn: 40,
            unreadable: 0,
            forgets: false,
        }
    }
}
