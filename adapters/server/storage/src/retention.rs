//! Retention: which snapshots and log files are no longer needed.
//!
//! Kept are the newest snapshots, so that one that cannot be read has a successor, and every log file
//! that may have a transaction behind the oldest of them, so that history can be had from any of them.
//! A learner that is being brought up from the log has a cursor there; what is in front of it stays as
//! well. What is removed is a prefix of the history, so the rest remains without a hole.
//!
//! In the Java code: `PurgeTxnLog`.

use std::path::PathBuf;

use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::FileError;

/// The smallest number of snapshots kept, as in ZooKeeper.
pub const SNAPSHOTS_MIN: usize = 3;

/// What can go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Snapshots labelled below this one; none if all stay.
    pub snapshots_below: Option<Zxid>,
    /// How many log files, from the oldest on.
    pub logs: usize,
}

/// Plans what can be removed.
///
/// `whole` are the labels of the snapshots that look whole, newest first; `starts` the first
/// transactions of all log files, ascending. `keep` snapshots stay, [`SNAPSHOTS_MIN`] at least, and
/// everything behind `cursor`.
pub fn plan(whole: &[Zxid], starts: &[Zxid], keep: usize, cursor: Option<Zxid>) -> Plan {
    let kept = &whole[..whole.len().min(keep.max(SNAPSHOTS_MIN))];
    let Some(oldest) = kept.last().copied() else { return Plan::default() };
    let needed_after = cursor.map_or(oldest, |cursor| cursor.min(oldest));
    // A file ends where the next one begins; what is behind that matters only if it is all there is.
    let logs = starts.iter().skip(1).take_while(|next| next.0 <= needed_after.0.saturating_add(1));
    Plan { snapshots_below: Some(oldest), logs: logs.count() }
}

/// What was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// How many snapshots.
    pub snapshots: usize,
    /// How many log files.
    pub logs: usize,
    /// From where on the log can be served now.
    pub floor: Zxid,
    /// Whether there is more to remove.
    pub more: bool,
}

/// Why nothing more can be removed.
#[derive(Debug, Error)]
pub enum PurgeError {
    /// The system refused. The history is as good as before.
    #[error(transparent)]
    File(#[from] FileError),
    /// An earlier write failed.
    #[error("nothing is removed from {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zxids(zxids: &[i64]) -> Vec<Zxid> {
        zxids.iter().map(|zxid| Zxid(*zxid)).collect()
    }

    #[test]
    fn what_the_oldest_kept_snapshot_needs_stays() {
        let (snapshots, starts) = (zxids(&[50, 40, 30, 20, 10]), zxids(&[1, 11, 21, 31, 35, 51]));
        let planned = |keep, cursor: Option<i64>| {
            let plan = plan(&snapshots, &starts, keep, cursor.map(Zxid));
            (plan.snapshots_below.map(|zxid| zxid.0), plan.logs)
        };
        assert_eq!(planned(3, None), (Some(30), 3));
        assert_eq!(planned(0, None), (Some(30), 3), "three at least");
        assert_eq!(planned(4, None), (Some(20), 2));
        assert_eq!(planned(9, None), (Some(10), 1));
        assert_eq!(planned(3, Some(29)), (Some(30), 2), "a learner is at 29 and needs 30");
        assert_eq!(planned(3, Some(12)), (Some(30), 1));
        assert_eq!(planned(3, Some(-1)), (Some(30), 0));
        assert_eq!(planned(3, Some(99)), (Some(30), 3));
    }

    #[test]
    fn a_file_that_might_go_on_behind_the_snapshot_stays() {
        let starts = zxids(&[0x1_0000_0001, 0x2_0000_0001]);
        let logs = |label| plan(&zxids(&[label]), &starts, 3, None).logs;
        assert_eq!(logs(0x1_0000_0009), 0, "it may have 0x10000000a");
        assert_eq!(logs(0x2_0000_0000), 1);
        assert_eq!(plan(&[], &starts, 3, None), Plan::default());
    }

    #[test]
    fn the_last_file_stays() {
        assert_eq!(plan(&zxids(&[90]), &zxids(&[1]), 3, None).logs, 0);
        assert_eq!(plan(&zxids(&[90]), &[], 3, None).logs, 0);
    }
}
