//! Reading the log at start: where it begins, whether it has a hole, and how it ends.
//!
//! What an interrupted write leaves is repaired; what it cannot leave is refused by file and offset.

use std::collections::VecDeque;
use std::path::Path;

use quorate_core::membership::Membership;
use quorate_core::reconfiguration::membership_of;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use super::error::OpenError;
use super::options::SegmentOptions;
use crate::cursor::{Cursor, Step};
use crate::error::{Corruption, at};
use crate::files::Files;
use crate::segment::Segment;
use crate::sequence::{before, follows, is_number, is_successor};

/// Reading the log behind a snapshot.
pub(super) struct Scan<'a, F> {
    pub(super) files: &'a F,
    pub(super) options: &'a SegmentOptions,
    pub(super) base: Zxid,
    pub(super) previous: Option<Zxid>,
    pub(super) floor: Zxid,
    pub(super) run: usize,
    pub(super) run_is_open: bool,
    /// The first transaction of a later epoch in a file behind one that ends torn.
    pub(super) torn_before: Option<Zxid>,
    /// The log has the transaction whose snapshot could not be read.
    pub(super) passed: bool,
    pub(super) window: VecDeque<Txn>,
    pub(super) window_bytes: usize,
    /// It lacks some of what is behind the floor.
    pub(super) window_cut: bool,
    /// The memberships that it brings.
    pub(super) changes: Vec<Membership>,
    /// How many transactions stand behind the snapshot.
    pub(super) behind: u64,
}

impl<F: Files + Clone> Scan<'_, F> {
    /// Reads what is behind the snapshot, and repairs the end. Returns the files that are left.
    pub(super) fn run(&mut self, mut segments: Vec<Segment>) -> Result<Vec<Segment>, OpenError> {
        self.drop_empty_end(&mut segments)?;
        self.run = self.first(&segments);
        for index in self.run..segments.len() {
            let next = segments.get(index + 1).map(|next| next.start);
            self.file(&mut segments[index], index, next)?;
        }
        Ok(segments)
    }

    /// Removes last files that have no record: those whose creation was interrupted.
    fn drop_empty_end(&self, segments: &mut Vec<Segment>) -> Result<(), OpenError> {
        while let Some(segment) = segments.last() {
            let mut cursor = self.cursor(&segment.path)?;
            let Step::End { torn, .. } = cursor.next()? else { break };
            cursor.check_end(Zxid::ZERO, torn)?;
            drop(cursor);
            self.files.remove(&segment.path).map_err(at("remove", &segment.path))?;
            // Synced with the directory, before anything is reported.
            segments.pop();
        }
        Ok(())
    }

    /// The first file that may have something behind the snapshot.
    fn first(&self, segments: &[Segment]) -> usize {
        let behind = segments.partition_point(|segment| segment.start <= self.base);
        match segments.get(behind) {
            // Then everything before it is in the snapshot.
            Some(next) if is_successor(self.base, next.start) => behind,
            _ => behind.saturating_sub(1),
        }
    }

    fn file(
        &mut self,
        segment: &mut Segment,
        index: usize,
        next: Option<Zxid>,
    ) -> Result<(), OpenError> {
        let mut cursor = self.cursor(&segment.path)?;
        let mut first = true;
        loop {
            match cursor.next()? {
                Step::Record { offset, record } => {
                    let zxid = record.zxid;
                    if first && zxid != segment.start {
                        let path = segment.path.clone();
                        return Err(Corruption::Misnamed { path, found: zxid }.into());
                    }
                    first = false;
                    self.record(&segment.path, index, offset, zxid)?;
                    segment.mark(zxid, offset);
                    if let Ok(txn) = Txn::decode(cursor.txn()) {
                        self.keep(txn);
                    }
                }
                Step::End { offset, torn } => {
                    return self.end(segment, &mut cursor, offset, torn, next);
                }
            }
        }
    }

    /// Whether a record can stand where it does, and what that means for the floor.
    fn record(
        &mut self,
        path: &Path,
        index: usize,
        offset: u64,
        zxid: Zxid,
    ) -> Result<(), OpenError> {
        let base = self.base;
        if !is_number(zxid) {
            return Err(Corruption::Number { path: path.to_owned(), offset, zxid }.into());
        }
        let hole = |after| Corruption::Hole { path: path.to_owned(), offset, zxid, after };
        match self.previous {
            Some(after) if zxid <= after => {
                let path = path.to_owned();
                return Err(Corruption::Order { path, offset, zxid, after }.into());
            }
            Some(after) if after < base && base < zxid => {
                // The snapshot stands between them and is no record.
                if !follows(base, zxid) {
                    return Err(hole(base).into());
                }
                self.restart(base, index);
            }
            Some(after) if follows(after, zxid) => {}
            // What is missing is in the snapshot.
            Some(_) if zxid <= base => self.restart(before(zxid), index),
            Some(after) => return Err(hole(after).into()),
            None if zxid > base => {
                if !follows(base, zxid) {
                    return Err(hole(base).into());
                }
                self.restart(base, index);
                self.run_is_open = index > 0 && is_successor(base, zxid);
            }
            None => {
                self.restart(before(zxid), index);
                self.run_is_open = index > 0;
            }
        }
        if self.torn_before == Some(zxid) {
            self.restart(self.floor.max(before(zxid)), index);
        }
        self.previous = Some(zxid);
        self.passed |= self.options.snapshot_before == Some(zxid);
        Ok(())
    }

    /// The run without a hole begins here.
    fn restart(&mut self, floor: Zxid, index: usize) {
        (self.floor, self.run, self.run_is_open) = (floor, index, false);
        self.window.clear();
        (self.window_bytes, self.window_cut) = (0, false);
    }

    fn end(
        &mut self,
        segment: &mut Segment,
        cursor: &mut Cursor<F>,
        offset: u64,
        torn: bool,
        next: Option<Zxid>,
    ) -> Result<(), OpenError> {
        segment.end = Some(offset);
        let after = self.previous.unwrap_or(Zxid::ZERO);
        let Some(next) = next else {
            let torn = cursor.check_end(after, torn)?;
            let cut = torn || cursor.is_marked()?;
            return if cut { self.cut(segment, cursor, offset) } else { Ok(()) };
        };
        // Nothing can be between a transaction and its successor.
        if is_successor(after, next) {
            return Ok(());
        }
        // What is missing before the snapshot is not missed.
        let torn = if next > self.base { cursor.check_end(after, torn)? } else { torn };
        if torn {
            // Another epoch began; the torn record may or may not have been part of the last one.
            self.torn_before = Some(next);
        }
        Ok(())
    }

    /// Shortens the last file to its records. What was torn goes, and the mark with it: from here on
    /// everything in the file is durable, and none of it may be missing when it is opened again.
    fn cut(&self, segment: &Segment, cursor: &Cursor<F>, offset: u64) -> Result<(), OpenError> {
        let (path, file) = (&segment.path, cursor.file());
        // What a killed process left may be in the page cache only, and a power cut may take it yet: as long
        // as it can, the mark says so.
        self.files.sync(file).map_err(at("sync", path))?;
        self.files.cut(file, offset).map_err(at("cut", path))?;
        self.files.sync(file).map_err(at("sync", path))?;
        Ok(())
    }

    fn keep(&mut self, txn: Txn) {
        if txn.header.kind == Txn::RECONFIGURATION && txn.zxid > self.base {
            self.changes.extend(membership_of(&txn));
        }
        self.behind += u64::from(txn.zxid > self.base);
        self.window_bytes += txn.len();
        self.window.push_back(txn);
        while self.window.len() > self.options.window_count
            || self.window_bytes > self.options.window_bytes
        {
            let Some(dropped) = self.window.pop_front() else { break };
            self.window_bytes -= dropped.len();
            self.window_cut = true;
        }
    }

    fn cursor(&self, path: &Path) -> Result<Cursor<F>, OpenError> {
        Ok(Cursor::open(self.files, path, 0, self.options.txn_bytes_max)?)
    }
}
