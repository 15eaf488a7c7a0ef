//! Reading one transaction log file from a position on.
//!
//! A [`Cursor`] goes from record to record and says where the file ends and how. It takes the bytes in
//! pieces and each of them once, and never more memory than the longest record needs. What an end means
//! for the history, it does not know.
//!
//! In the Java code: `FileTxnLog.FileTxnIterator`.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use quorate_core::zxid::Zxid;

use crate::error::{Corruption, FileError, at};
use crate::files::Files;
use crate::record::{self, Damage, FILE_HEADER, Found, OVERHEAD, PREFIX_BYTES, Record};
use crate::segment::Segment;
use crate::sync_mark::{self, Stop, Verdict};

/// What a file begins with.
pub(crate) enum Header {
    Whole,
    /// Its creation was interrupted: the header ends early, or in zero bytes.
    Unfinished,
    Other,
}

/// Tells by the first 16 bytes, or all that there are.
pub(crate) fn judge_header(found: &[u8]) -> Header {
    let same = found.iter().zip(&FILE_HEADER).take_while(|(a, b)| a == b).count();
    if same == FILE_HEADER.len() {
        Header::Whole
    } else if found[same..].iter().all(|byte| *byte == 0) {
        Header::Unfinished
    } else {
        Header::Other
    }
}

/// What comes next in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A record.
    Record {
        /// Where it begins.
        offset: u64,
        record: Record,
    },
    /// Nothing that can be relied on.
    End {
        /// Where the last record ends.
        offset: u64,
        /// The record there was not written to its end.
        torn: bool,
    },
}

/// What the end of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// That of what was written.
    Whole,
    /// Behind it is what was being written when the power went.
    Torn,
    /// It is none: acknowledged transactions may be behind it.
    Damaged(Damage),
}

/// A place in a log file.
#[derive(Debug)]
pub(crate) struct Cursor<F: Files> {
    files: F,
    file: F::File,
    path: PathBuf,
    /// A part of the file.
    buffer: Vec<u8>,
    /// Where the file has `buffer[0]`.
    base: u64,
    /// Where in `buffer` the next record begins.
    next: usize,
    /// Where in `buffer` the last record's transaction stands.
    txn: std::ops::Range<usize>,
    /// The file ends with `buffer`.
    complete: bool,
    /// Not even the header is whole.
    headless: bool,
    last: Zxid,
    txn_bytes_max: usize,
    /// How far the file was synced, once that was looked for; see [`sync_mark`].
    mark: Option<Option<SyncMark>>,
}

/// How far a file was synced, and where it says so.
#[derive(Clone, Copy, Debug)]
struct SyncMark {
    through: u64,
    slots: [u64; 2],
}

impl<F: Files + Clone> Cursor<F> {
    /// Stands at the first record, or at the one that begins at `offset`.
    pub(crate) fn open(
        files: &F,
        path: &Path,
        offset: u64,
        txn_bytes_max: usize,
    ) -> Result<Self, CursorError> {
        let file = files.open(path).map_err(at("open", path))?;
        Self::on(files, file, path, offset, txn_bytes_max)
    }

    /// As [`Cursor::open`] at the first record, for a file that we may only read.
    pub(crate) fn look(files: &F, path: &Path, txn_bytes_max: usize) -> Result<Self, CursorError> {
        let file = files.open_to_read(path).map_err(at("open", path))?;
        Self::on(files, file, path, 0, txn_bytes_max)
    }

    fn on(
        files: &F,
        file: F::File,
        path: &Path,
        offset: u64,
        txn_bytes_max: usize,
    ) -> Result<Self, CursorError> {
        let mut cursor = Self {
            files: files.clone(),
            file,
            path: path.to_owned(),
            buffer: Vec::new(),
            base: offset,
            next: 0,
            txn: 0..0,
            complete: false,
            headless: false,
            last: Zxid::ZERO,
            txn_bytes_max,
            mark: None,
        };
        if offset == 0 {
            cursor.read_header()?;
        }
        Ok(cursor)
    }

    fn read_header(&mut self) -> Result<(), CursorError> {
        self.fill(FILE_HEADER.len())?;
        let found = &self.buffer[..FILE_HEADER.len().min(self.buffer.len())];
        match judge_header(found) {
            Header::Whole => self.next = FILE_HEADER.len(),
            Header::Unfinished => self.headless = true,
            Header::Other => {
                let (path, found) = (self.path.clone(), found.to_vec());
                return Err(Corruption::Header { path, found }.into());
            }
        }
        Ok(())
    }

    /// The next record, or the end; then the end again. A damaged record of a batch that was not synced is
    /// an end.
    pub(crate) fn next(&mut self) -> Result<Step, CursorError> {
        if self.headless {
            return Ok(Step::End { offset: 0, torn: true });
        }
        loop {
            let offset = self.offset();
            let rest = &self.buffer[self.next..];
            match record::decode(rest, self.txn_bytes_max) {
                Found::Record(record) => {
                    let start = self.next + PREFIX_BYTES;
                    self.txn = start..start + record.txn_bytes;
                    self.next += record.len();
                    self.last = record.zxid;
                    return Ok(Step::Record { offset, record });
                }
                Found::Short { .. } if self.complete => {
                    return Ok(Step::End { offset, torn: !rest.is_empty() });
                }
                Found::Short { needed } => self.fill(needed)?,
                Found::Padding => return Ok(Step::End { offset, torn: false }),
                Found::Torn => return Ok(Step::End { offset, torn: true }),
                Found::Damaged(damage) => {
                    let mark = self.mark()?.map(|mark| mark.through);
                    if sync_mark::judge(offset, Stop::Damaged, mark) == Verdict::Cut {
                        return Ok(Step::End { offset, torn: true });
                    }
                    let (path, after) = (self.path.clone(), self.last);
                    return Err(Corruption::Record { path, offset, after, damage }.into());
                }
            }
        }
    }

    /// The transaction of the last record.
    pub(crate) fn txn(&self) -> Bytes {
        Bytes::copy_from_slice(&self.buffer[self.txn.clone()])
    }

    /// At the end: what it is, to judge by what stands behind it, and by how far the file was synced.
    pub(crate) fn end(&mut self, after: Zxid, torn: bool) -> Result<End, CursorError> {
        // A damaged record, and a whole one behind it.
        self.fill(2 * (self.txn_bytes_max + OVERHEAD))?;
        let (mark, offset) = (self.mark()?, self.offset());
        let rest = &self.buffer[self.next..];
        let trace = || record::trace(rest, after, self.txn_bytes_max);
        let (stop, damage) = match mark {
            // What is there is not looked for: it was never acknowledged.
            Some(mark) if mark.through <= offset => {
                let room = usize::try_from(mark.slots[0] - offset.min(mark.slots[0]));
                let room = room.map_or(rest, |room| &rest[..room.min(rest.len())]);
                let clean = !torn && record::is_zero(room);
                (if clean { Stop::Clean } else { Stop::Damaged }, None)
            }
            Some(_) | None => match trace() {
                damage @ Some(_) => (Stop::Damaged, damage),
                None => (if torn { Stop::Torn } else { Stop::Clean }, None),
            },
        };
        let through = mark.map(|mark| mark.through);
        Ok(match sync_mark::judge(offset, stop, through) {
            Verdict::Whole => End::Whole,
            Verdict::Cut => End::Torn,
            Verdict::Refuse => {
                let synced = Damage::Synced { through: through.unwrap_or_default() };
                End::Damaged(damage.unwrap_or(synced))
            }
        })
    }

    /// Whether the file says how far it was synced.
    pub(crate) fn is_marked(&mut self) -> Result<bool, FileError> {
        Ok(self.mark()?.is_some())
    }

    /// As [`Cursor::end`], but one that is none is an error. Tells whether something torn is behind it.
    pub(crate) fn check_end(&mut self, after: Zxid, torn: bool) -> Result<bool, CursorError> {
        match self.end(after, torn)? {
            End::Whole => Ok(false),
            End::Torn => Ok(true),
            End::Damaged(damage) => {
                let (path, offset) = (self.path.clone(), self.offset());
                Err(Corruption::Record { path, offset, after, damage }.into())
            }
        }
    }

    /// How far the file was synced, if it says so.
    fn mark(&mut self) -> Result<Option<SyncMark>, FileError> {
        if let Some(mark) = self.mark {
            return Ok(mark);
        }
        let mark = self.read_mark()?;
        self.mark = Some(mark);
        Ok(mark)
    }

    fn read_mark(&self) -> Result<Option<SyncMark>, FileError> {
        let size = self.files.size(&self.path).map_err(at("look at", &self.path))?;
        let Some(slots) = sync_mark::slots(size.unwrap_or_default()) else { return Ok(None) };
        let named = Segment::staged(&self.path).map(|segment| segment.start);
        let Some(start) = named else { return Ok(None) };
        let mut found = [[0; sync_mark::BYTES]; 2];
        for (offset, bytes) in slots.into_iter().zip(&mut found) {
            self.files.read_at(&self.file, offset, bytes).map_err(at("read", &self.path))?;
        }
        let through = sync_mark::decode(start, [&found[0], &found[1]]);
        Ok(through.map(|through| SyncMark { through, slots }))
    }

    /// Passes over a record that is damaged but has its frame; tells how long it is. None if the
    /// beginning of the next one cannot be told.
    pub(crate) fn pass_over(&mut self) -> Option<usize> {
        let length = record::frame(&self.buffer[self.next..], self.txn_bytes_max)?;
        let start = self.next + PREFIX_BYTES;
        self.txn = start..start + length - OVERHEAD;
        self.next += length;
        Some(length)
    }

    /// The last transaction that was seen; zero if there was none.
    pub(crate) fn last(&self) -> Zxid {
        self.last
    }

    pub(crate) fn offset(&self) -> u64 {
        self.base + self.next as u64
    }

    pub(crate) fn file(&self) -> &F::File {
        &self.file
    }

    /// Sees to it that `needed` bytes from the next record on are there, if the file has them.
    fn fill(&mut self, needed: usize) -> Result<(), CursorError> {
        if self.complete || self.buffer.len() - self.next >= needed {
            return Ok(());
        }
        let mut length = needed.max(READ_BYTES);
        if length > READ_BYTES {
            // No memory for what a damaged length promises; a byte more than there is tells that the file ends.
            let size = self.files.size(&self.path).map_err(at("look at", &self.path))?;
            let there = size.unwrap_or_default().saturating_sub(self.offset()).saturating_add(1);
            length = length.min(usize::try_from(there).unwrap_or(usize::MAX)).max(READ_BYTES);
        }
        let rest = &self.buffer[self.next..];
        let have = rest.len();
        let mut buffer = vec![0; length.max(have)];
        buffer[..have].copy_from_slice(rest);
        self.buffer = buffer;
        self.base += self.next as u64;
        self.next = 0;
        let offset = self.base + have as u64;
        let read = self.files.read_at(&self.file, offset, &mut self.buffer[have..]);
        let read = read.map_err(at("read", &self.path))?;
        self.complete = have + read < self.buffer.len();
        self.buffer.truncate(have + read);
        Ok(())
    }
}

/// Why a file cannot be read on.
#[derive(Debug)]
pub(crate) enum CursorError {
    File(FileError),
    Corrupt(Corruption),
}

impl From<FileError> for CursorError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<Corruption> for CursorError {
    fn from(error: Corruption) -> Self {
        Self::Corrupt(error)
    }
}

/// How much is read at a time.
const READ_BYTES: usize = 256 << 10;
