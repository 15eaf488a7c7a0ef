//! Checking the log files: whether each record can stand where it does, and how each file ends.

use quorate_core::zxid::Zxid;

use super::{Check, LogLine, Problem, Severity};
use crate::dump::{Dump, DumpError, Ending, Entry};
use crate::error::{Corruption, FileError, at};
use crate::files::Files;
use crate::segment::{Segment, list_segments};
use crate::sequence::{before, follows, is_number, is_successor};

impl<F: Files + Clone> Check<F> {
    pub(super) fn logs(&mut self) -> Result<(), FileError> {
        let dirs = self.report.dirs.clone();
        let segments: Vec<_> = match &self.only {
            Some(present) => present.iter().filter_map(|path| Segment::staged(path)).collect(),
            None => list_segments(&self.files, &dirs.logs)?,
        };
        if !segments.is_empty() && self.report.snapshots.is_empty() {
            self.find(Severity::Error, &dirs.snapshots, Problem::NoSnapshot);
        }
        let base = self.base.unwrap_or(Zxid::ZERO);
        let mut run = Run { base, previous: None, floor: base, torn: false };
        let mut endings = Vec::new();
        for segment in &segments {
            let path = &segment.path;
            let Some(bytes) = self.files.size(path).map_err(at("look at", path))? else { continue };
            let mut line =
                LogLine { path: path.clone(), bytes, records: 0, first: None, last: None, end: 0 };
            let ending = self.log(segment.start, &mut run, &mut line);
            endings.push((ending, run.previous));
            self.report.logs.push(line);
        }
        self.judge_endings(&endings);
        let last = run.previous.filter(|last| *last >= base);
        if let (Some(last), None) = (run.previous, last) {
            let problem = Problem::Outdated { last, label: base };
            self.find(Severity::Repaired, &dirs.logs, problem);
        }
        self.report.last = last.unwrap_or(base);
        self.report.floor = if last.is_some() { run.floor } else { base };
        Ok(())
    }

    /// Goes through one file; tells how it ends, if it can be read so far.
    fn log(&mut self, start: Zxid, run: &mut Run, line: &mut LogLine) -> Option<Ending> {
        let path = line.path.clone();
        let mut dump = match Dump::open_on(self.files.clone(), &path, self.txn_bytes_max) {
            Ok(dump) => dump,
            Err(DumpError::Corrupt(Corruption::Header { found, .. })) => {
                self.find_at(Severity::Error, (&path, 0), None, Problem::NoLog(found));
                return None;
            }
            Err(DumpError::Corrupt(_)) => return None,
            Err(DumpError::File(error)) => {
                self.find(Severity::Error, &path, Problem::File(error));
                return None;
            }
        };
        loop {
            match dump.next_entry() {
                Ok(Some(Entry::Record { offset, txn })) => {
                    let zxid = txn.zxid;
                    if line.first.is_none() && zxid != start {
                        let problem = Problem::Misnamed(zxid);
                        self.find_at(Severity::Error, (&path, offset), Some(zxid), problem);
                    }
                    if let Some((severity, problem)) = run.record(zxid) {
                        self.find_at(severity, (&path, offset), Some(zxid), problem);
                    }
                    line.records += 1;
                    line.first = line.first.or(Some(zxid));
                    line.last = Some(zxid);
                }
                Ok(Some(Entry::Damaged { offset, damage, .. })) => {
                    let problem = Problem::Record(damage);
                    self.find_at(Severity::Error, (&path, offset), run.previous, problem);
                    // Which transaction it was is unknown: what follows begins anew.
                    run.previous = None;
                }
                Ok(Some(Entry::End { offset, ending })) => {
                    line.end = offset;
                    run.torn = matches!(ending, Ending::Torn { .. });
                    return Some(ending);
                }
                Ok(None) => return None,
                Err(error) => {
                    self.find(Severity::Error, &path, Problem::File(error));
                    return None;
                }
            }
        }
    }

    /// What it means how the files end depends on what follows them.
    fn judge_endings(&mut self, endings: &[(Option<Ending>, Option<Zxid>)]) {
        let base = self.base.unwrap_or(Zxid::ZERO);
        for (index, (ending, last)) in endings.iter().enumerate() {
            let Some(ending) = *ending else { continue };
            let line = self.report.logs[index].clone();
            let next = self.report.logs[index + 1..].iter().find_map(|line| line.first);
            let after = last.unwrap_or(Zxid::ZERO);
            let place = (line.path.as_path(), line.end);
            match (ending, next) {
                (Ending::Broken(damage), next) => {
                    // Nothing can be between a transaction and its successor.
                    let harmless =
                        next.is_some_and(|next| is_successor(after, next) || next <= base);
                    let severity = if harmless { Severity::Note } else { Severity::Error };
                    self.find_at(severity, place, *last, Problem::Record(damage));
                }
                (Ending::Padding { .. } | Ending::Torn { .. }, _) if line.records == 0 => {
                    let severity = if next.is_none() { Severity::Repaired } else { Severity::Note };
                    self.find_at(severity, place, *last, Problem::NoRecord);
                }
                (Ending::Torn { bytes }, None) => {
                    self.find_at(Severity::Repaired, place, *last, Problem::TornEnd(bytes));
                }
                (Ending::Torn { .. }, Some(_)) => {
                    self.find_at(Severity::Note, place, *last, Problem::TornMiddle);
                }
                (Ending::Padding { .. }, _) => {}
            }
        }
    }
}

/// What the records so far were.
struct Run {
    base: Zxid,
    previous: Option<Zxid>,
    floor: Zxid,
    /// The last file ended torn.
    torn: bool,
}

impl Run {
    /// Whether a transaction can stand where it does.
    fn record(&mut self, zxid: Zxid) -> Option<(Severity, Problem)> {
        let base = self.base;
        let torn = std::mem::take(&mut self.torn);
        let after = self.previous.replace(zxid);
        let hole = |after| Some((Severity::Error, Problem::Hole { zxid, after }));
        match after {
            _ if !is_number(zxid) => Some((Severity::Error, Problem::Number(zxid))),
            Some(after) if zxid <= after => Some((Severity::Error, Problem::Order { zxid, after })),
            Some(after) if after < base && base < zxid => {
                self.floor = base;
                if follows(base, zxid) { None } else { hole(base) }
            }
            Some(after) if follows(after, zxid) => {
                if torn && !is_successor(after, zxid) {
                    self.floor = before(zxid);
                }
                None
            }
            Some(after) => {
                self.floor = before(zxid);
                let gap = Some((Severity::Note, Problem::Gap { zxid, after }));
                if zxid <= base { gap } else { hole(after) }
            }
            None if zxid > base => {
                self.floor = base;
                if follows(base, zxid) { None } else { hole(base) }
            }
            None => {
                self.floor = before(zxid);
                None
            }
        }
    }
}
