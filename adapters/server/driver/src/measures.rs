//! What is measured: how long elections, outages, synchronisations, snapshots and forced writes took, and since when the
//! disk has been at work.
//!
//! The loop and the disk's thread put in, whoever asks takes out; the lock is held for as long as one number takes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use quorate_metrics::{Spread, Summary};

use crate::error::DiskFault;
use crate::lock::locked;

/// Where it is put.
#[derive(Debug)]
pub(crate) struct Measures {
    began: Instant,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    summaries: [Summary; Took::COUNT],
    slow_syncs: u64,
    failed_snapshots: u64,
    disk_since: Option<Instant>,
    disk_fault: Option<DiskFault>,
    disk_outages: u64,
}

/// What took some time. The names are ZooKeeper's (`ServerMetrics`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// From the loss of a leader, or the start, to the next one; on each server that votes.
    Election,
    /// Without service.
    Unavailable,
    /// The same, on a server that leads then.
    LeaderUnavailable,
    /// From the leader's epoch to its word that this learner is as new as it; a follower.
    FollowerSync,
    /// The same of an observer.
    ObserverSync,
    /// A forced write of the log.
    Fsync,
    /// Writing a snapshot.
    Snapshot,
}

impl Took {
    const COUNT: usize = 7;

    /// All of them, with ZooKeeper's names.
    pub(crate) const NAMED: [(Self, &'static str); Self::COUNT] = [
        (Self::Election, "election_time"),
        (Self::Unavailable, "unavailable_time"),
        (Self::LeaderUnavailable, "leader_unavailable_time"),
        (Self::FollowerSync, "follower_sync_time"),
        (Self::ObserverSync, "observer_sync_time"),
        (Self::Fsync, "fsynctime"),
        (Self::Snapshot, "snapshottime"),
    ];
}

/// What was counted beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Forced writes that were worth a warning.
    pub(crate) slow_syncs: u64,
    pub(crate) failed_snapshots: u64,
    /// Failures of the disk for which the server left service.
    pub(crate) disk_outages: u64,
}

impl Default for Measures {
    fn default() -> Self {
        Self { began: Instant::now(), kept: Mutex::default() }
    }
}

impl Measures {
    /// Something has ended that took so long.
    pub(crate) fn took(&self, what: Took, time: Duration) {
        let at = self.began.elapsed();
        locked(&self.kept).summaries[what as usize].observe_time(at, time);
    }

    pub(crate) fn slow_sync(&self) {
        locked(&self.kept).slow_syncs += 1;
    }

    pub(crate) fn failed_snapshot(&self) {
        locked(&self.kept).failed_snapshots += 1;
    }

    /// The disk's thread begins to work, or is done.
    pub(crate) fn disk_works(&self, works: bool) {
        locked(&self.kept).disk_since = works.then(Instant::now);
    }

    /// For how long the disk's thread has been at the same work; zero if it has none.
    pub(crate) fn disk_busy(&self) -> Duration {
        locked(&self.kept).disk_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The server is out of service because of its disk, or is not any more.
    pub(crate) fn disk_fails(&self, fault: Option<DiskFault>) {
        let mut kept = locked(&self.kept);
        kept.disk_outages += u64::from(fault.is_some() && kept.disk_fault.is_none());
        kept.disk_fault = fault;
    }

    pub(crate) fn disk_fault(&self) -> Option<DiskFault> {
        locked(&self.kept).disk_fault
    }

    pub(crate) fn spread(&self, what: Took) -> Spread {
        let at = self.began.elapsed();
        locked(&self.kept).summaries[what as usize].spread(at)
    }

    pub(crate) fn counted(&self) -> Counted {
        let Kept { slow_syncs, failed_snapshots, disk_outages, .. } = *locked(&self.kept);
        Counted { slow_syncs, failed_snapshots, disk_outages }
    }
}
