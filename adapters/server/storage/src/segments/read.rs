//! Reading for learners: where a transaction stands in the log, and what follows it.
//!
//! Files before the run that was read at start are read when a learner needs them, piece by piece, since
//! writes wait meanwhile.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use quorate_core::input::{Located, Place};
use quorate_core::zxid::Zxid;

use super::Segments;
use crate::cursor::{Cursor, End, Step};
use crate::error::{Corruption, FileError, at};
use crate::files::Files;
use crate::reader::{ReadError, Reader};
use crate::segment::Segment;
use crate::sequence::{before, follows, is_successor};
use crate::snapshot::SnapshotFile;

/// What came of a [`Segments::locate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locating {
    /// It is known.
    Found(Located),
    /// Older files have to be read first, and there are more of them: ask again.
    Reading,
}

impl<F: Files + Clone> Segments<F> {
    /// Where `zxid` stands, and what it costs to read on from there. What is before the floor may be in
    /// files that were not needed at start: they are read if that is worth it, see
    /// [`SegmentOptions::size_percent`](super::SegmentOptions::size_percent), about `bytes` of them, so
    /// that writes need not wait for it.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if a file cannot be read. If it was one before the floor, the floor stays where it
    /// is from then on.
    pub fn locate(&mut self, zxid: Zxid, bytes: u64) -> Result<Locating, ReadError> {
        let snapshot_bytes = match &self.snapshot {
            Some(SnapshotFile { path, .. }) => {
                self.files.size(path).map_err(at("look at", path))?.unwrap_or_default()
            }
            None => 0,
        };
        if self.may_reach(zxid, snapshot_bytes)? && !self.extend_some(zxid, bytes)? {
            return Ok(Locating::Reading);
        }
        let (place, log_bytes) = self.place(zxid)?;
        Ok(Locating::Found(Located { place, log_bytes, snapshot_bytes }))
    }

    /// Whether `zxid` may be found before the floor, at a price worth paying.
    fn may_reach(&self, zxid: Zxid, snapshot_bytes: u64) -> Result<bool, ReadError> {
        if zxid >= self.floor || zxid < Zxid::ZERO || !self.run_is_open {
            return Ok(false);
        }
        let Some(percent) = self.options.size_percent else { return Ok(false) };
        let behind = self.segments.partition_point(|segment| segment.start <= zxid);
        if behind == 0 && self.segments.first().is_none_or(|first| zxid < before(first.start)) {
            return Ok(false);
        }
        let bytes = self.bytes_from(behind.saturating_sub(1))?;
        Ok(bytes.saturating_mul(100) <= snapshot_bytes.saturating_mul(percent))
    }

    /// How many bytes of records the files have from one on.
    fn bytes_from(&self, first: usize) -> Result<u64, FileError> {
        let mut bytes = 0_u64;
        for segment in self.segments.iter().skip(first) {
            let end = match segment.end {
                Some(end) => end,
                None => {
                    let size = self.files.size(&segment.path);
                    size.map_err(at("look at", &segment.path))?.unwrap_or_default()
                }
            };
            bytes = bytes.saturating_add(end);
        }
        Ok(bytes)
    }

    /// Where `zxid` stands in the run without a hole, and how many bytes of log are behind it. Reads one
    /// file at most, and of that only a part.
    pub(super) fn place(&self, zxid: Zxid) -> Result<(Place, u64), ReadError> {
        if zxid < self.floor {
            return Ok((Place::BelowFloor, self.bytes_from(self.run)?));
        }
        if zxid == self.durable {
            return Ok((Place::Held, 0));
        }
        if zxid > self.durable {
            return Ok((Place::Beyond, 0));
        }
        let (mut previous, mut bytes) = (self.floor, 0);
        let behind = self.segments.partition_point(|segment| segment.start <= zxid);
        if let Some(index) = behind.checked_sub(1).filter(|index| *index >= self.run) {
            let segment = &self.segments[index];
            let max = self.options.txn_bytes_max;
            let offset = segment.place_before(zxid);
            let mut cursor = Cursor::open(&self.files, &segment.path, offset, max)?;
            bytes = segment.end.unwrap_or_default();
            let mut end = cursor.offset();
            while let Step::Record { record, .. } = cursor.next()? {
                if record.zxid > zxid {
                    break;
                }
                previous = previous.max(record.zxid);
                end = cursor.offset();
            }
            bytes = bytes.saturating_sub(end);
        }
        bytes = bytes.saturating_add(self.bytes_from(behind.max(self.run))?);
        let place = if previous == zxid { Place::Held } else { Place::Absent { previous } };
        Ok((place, bytes))
    }

    /// Prepares to read what follows `after`, up to `through`. A bare start of an epoch stands for what is
    /// before it.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if that is not in the log without a hole, or not durable.
    pub fn read(&mut self, after: Zxid, through: Zxid) -> Result<Reader<F>, ReadError> {
        if after < self.floor {
            return Err(ReadError::BelowFloor { zxid: after, floor: self.floor });
        }
        if through > self.durable {
            return Err(ReadError::Beyond { zxid: through, durable: self.durable });
        }
        let behind = self.segments.partition_point(|segment| segment.start <= after);
        // What is before the run was not read, and may be anything.
        let first = behind.saturating_sub(1).max(self.run).min(self.segments.len());
        let offset = self.segments.get(first).map_or(0, |segment| segment.place_before(after));
        let paths = self.segments[first..].iter().map(|segment| segment.path.clone()).collect();
        let place = Arc::new(AtomicI64::new(after.0));
        self.readers.retain(|reader| reader.strong_count() > 0);
        self.readers.push(Arc::downgrade(&place));
        let max = self.options.txn_bytes_max;
        Ok(Reader::new(self.files.clone(), paths, offset, place, through, max))
    }

    /// Looks for more history without a hole, in files that were not needed at start, until the floor
    /// is at `wanted` or cannot be lower. Returns the floor. Reads each of these files whole.
    pub(super) fn extend(&mut self, wanted: Zxid) -> Result<Zxid, ReadError> {
        while !self.extend_some(wanted, u64::MAX)? {}
        Ok(self.floor)
    }

    /// As [`Segments::extend`], about so many bytes; tells whether it has ended.
    fn extend_some(&mut self, wanted: Zxid, bytes: u64) -> Result<bool, ReadError> {
        let Some(next) = self.segments.get(self.run).map(|first| first.start) else {
            return Ok(true);
        };
        if self.floor <= wanted || !self.run_is_open {
            return Ok(true);
        }
        // Unless all goes well, this is not tried again.
        self.run_is_open = false;
        let mut extension = match self.extension.take() {
            Some(extension) => extension,
            None => {
                let Some(index) = self.run.checked_sub(1) else { return Ok(true) };
                let segment = self.segments[index].clone();
                Extension::begin(&self.files, segment, self.options.txn_bytes_max)?
            }
        };
        let Some(torn) = extension.read(bytes)? else {
            (self.extension, self.run_is_open) = (Some(extension), true);
            return Ok(false);
        };
        let Extension { mut segment, mut cursor, floor, last, whole } = extension;
        let connects = last.is_some_and(|last| {
            is_successor(last, next)
                || (!torn
                    && follows(last, next)
                    && matches!(cursor.end(last, torn), Ok(End::Whole)))
        });
        if !connects {
            return Ok(true);
        }
        // To a killed process it may have been in the page cache only.
        let file = self.files.open(&segment.path).map_err(at("open", &segment.path))?;
        self.files.sync(&file).map_err(at("sync", &segment.path))?;
        self.run -= 1;
        segment.end = Some(cursor.offset());
        self.segments[self.run] = segment;
        (self.floor, self.run_is_open) = (floor, whole && self.run > 0);
        Ok(self.floor <= wanted || !self.run_is_open)
    }
}

/// A file before the run that is being read, to see whether the run goes on in it.
#[derive(Debug)]
pub(super) struct Extension<F: Files> {
    segment: Segment,
    cursor: Cursor<F>,
    floor: Zxid,
    last: Option<Zxid>,
    /// It has no hole.
    whole: bool,
}

impl<F: Files + Clone> Extension<F> {
    fn begin(files: &F, segment: Segment, txn_bytes_max: usize) -> Result<Self, ReadError> {
        let cursor = Cursor::look(files, &segment.path, txn_bytes_max)?;
        let floor = before(segment.start);
        let segment = Segment { marks: Vec::new(), ..segment };
        Ok(Self { segment, cursor, floor, last: None, whole: true })
    }

    /// Reads about so many bytes on; at the end of the file it tells whether that is torn.
    fn read(&mut self, bytes: u64) -> Result<Option<bool>, ReadError> {
        let until = self.cursor.offset().saturating_add(bytes);
        while self.cursor.offset() < until {
            let (offset, zxid) = match self.cursor.next()? {
                Step::Record { offset, record } => (offset, record.zxid),
                Step::End { torn, .. } => return Ok(Some(torn)),
            };
            if self.last.is_none() && zxid != self.segment.start {
                let path = self.segment.path.clone();
                return Err(Corruption::Misnamed { path, found: zxid }.into());
            }
            if self.last.is_some_and(|last| !follows(last, zxid)) {
                (self.floor, self.whole) = (before(zxid), false);
            }
            self.segment.mark(zxid, offset);
            self.last = Some(zxid);
        }
        Ok(None)
    }
}
