//! Removing old snapshots and log files, as far as no reader needs them.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use quorate_core::zxid::Zxid;

use super::Segments;
use crate::error::at;
use crate::files::Files;
use crate::retention::{self, PurgeError, Purged};
use crate::sequence::before;
use crate::snapshot;

impl<F: Files + Clone> Segments<F> {
    /// Removes old snapshots and log files, see [`retention::plan`], but no more than `files_max`: to
    /// remove a large file may take a while. What a [`Reader`](crate::reader::Reader) has not reached yet stays.
    ///
    /// # Errors
    ///
    /// A [`PurgeError`] if the disk fails; then nothing is written from then on.
    pub fn purge(&mut self, keep: usize, files_max: usize) -> Result<Purged, PurgeError> {
        if self.failed {
            return Err(PurgeError::Failed { dir: self.dirs.snapshots.clone() });
        }
        let all = snapshot::list(&self.files, &self.dirs.snapshots)?;
        let mut whole = Vec::new();
        for snapshot in &all {
            if whole.len() < keep.max(retention::SNAPSHOTS_MIN)
                && snapshot::looks_whole(&self.files, snapshot)?
            {
                whole.push(snapshot.label);
            }
        }
        whole.dedup();
        let starts: Vec<_> = self.segments.iter().map(|segment| segment.start).collect();
        let plan = retention::plan(&whole, &starts, keep, self.slowest_reader());
        let old = |label: Zxid| plan.snapshots_below.is_some_and(|oldest| label < oldest);
        let old: Vec<_> = all.iter().rev().filter(|snapshot| old(snapshot.label)).collect();
        let snapshots = old.len().min(files_max);
        let logs = plan.logs.min(files_max - snapshots);
        self.failed = true;
        for snapshot in &old[..snapshots] {
            self.files.remove(&snapshot.path).map_err(at("remove", &snapshot.path))?;
        }
        for segment in &self.segments[..logs] {
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
        }
        self.segments.drain(..logs);
        if logs + snapshots > 0 {
            self.dirs.sync(&self.files)?;
        }
        if logs > self.run {
            self.floor = self.floor.max(before(self.segments[0].start));
        }
        if logs > 0 {
            self.run_is_open &= logs < self.run;
            self.extension = None;
        }
        self.run = self.run.saturating_sub(logs);
        self.failed = false;
        let more = snapshots < old.len() || logs < plan.logs;
        Ok(Purged { snapshots, logs, floor: self.floor, more })
    }

    /// Where the reader that is furthest behind has come to.
    fn slowest_reader(&mut self) -> Option<Zxid> {
        self.readers.retain(|reader| reader.strong_count() > 0);
        let places = self.readers.iter().filter_map(Weak::upgrade);
        places.map(|place| Zxid(place.load(Ordering::Relaxed))).min()
    }
}
