//! Reading the log for a learner that is far behind.
//!
//! A [`Reader`] hands out pieces of bounded size with whole records in them, in the bytes that lie on
//! disk: each is read once, checked, and never copied. It may work on another thread while the log
//! is being written; it sees what was durable when it was made. What it has not yet reached is kept by
//! [`Segments::purge`](crate::segments::Segments::purge) as long as it exists. It ends with the role in
//! which it was made, since a log may be cut afterwards.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::cursor::{CursorError, Header, judge_header};
use crate::error::{Corruption, FileError, at};
use crate::files::{Disk, Files};
use crate::record::{self, FILE_HEADER, Found, OVERHEAD, PREFIX_BYTES};
use crate::sequence::follows;

/// A place in a history that moves to its end.
#[derive(Debug)]
pub struct Reader<F: Files = Disk> {
    files: F,
    /// Files that were not begun.
    paths: VecDeque<PathBuf>,
    current: Option<(F::File, PathBuf)>,
    /// A file was begun; the others are read from their beginning on.
    begun: bool,
    offset: u64,
    after: Zxid,
    /// The same, for the purge, which keeps what is behind it.
    place: Arc<AtomicI64>,
    /// The last record seen, wanted or not.
    previous: Option<Zxid>,
    through: Zxid,
    txn_bytes_max: usize,
}

/// Some whole records.
#[derive(Clone, Debug)]
pub struct Chunk {
    bytes: Bytes,
    /// Where the transactions stand.
    txns: Vec<std::ops::Range<usize>>,
    last: Zxid,
}

impl Chunk {
    /// The bytes of the records as they lie on disk.
    pub fn records(&self) -> &Bytes {
        &self.bytes
    }

    /// The last transaction.
    pub fn last(&self) -> Zxid {
        self.last
    }

    /// How many transactions there are.
    pub fn len(&self) -> usize {
        self.txns.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.txns.is_empty()
    }

    /// The bytes of each transaction, as a packet carries them. They share the chunk's memory.
    pub fn payloads(&self) -> impl Iterator<Item = Bytes> + '_ {
        self.txns.iter().map(|range| self.bytes.slice(range.clone()))
    }

    /// The transactions. They share the chunk's memory.
    pub fn txns(&self) -> impl Iterator<Item = Txn> + '_ {
        self.payloads().filter_map(|bytes| Txn::decode(bytes).ok())
    }
}

impl<F: Files> Reader<F> {
    pub(crate) fn new(
        files: F,
        paths: VecDeque<PathBuf>,
        offset: u64,
        place: Arc<AtomicI64>,
        through: Zxid,
        txn_bytes_max: usize,
    ) -> Self {
        let after = Zxid(place.load(Ordering::Relaxed));
        Self {
            files,
            paths,
            current: None,
            begun: false,
            offset,
            after,
            place,
            previous: None,
            through,
            txn_bytes_max,
        }
    }

    /// The next records, `bytes` of them or less, but at least one; none at the end.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if the log does not lead to the end as it did when this was made.
    pub fn next_chunk(&mut self, bytes: usize) -> Result<Option<Chunk>, ReadError> {
        let mut wanted = bytes;
        loop {
            if self.after >= self.through {
                return Ok(None);
            }
            let Some((file, path)) = &self.current else {
                self.begin()?;
                continue;
            };
            let most = FILE_HEADER.len() + self.txn_bytes_max + OVERHEAD;
            let most = most.max(READ_BYTES_MIN);
            let mut buffer = vec![0; wanted.clamp(READ_BYTES_MIN, most)];
            let read = self.files.read_at(file, self.offset, &mut buffer);
            let read = read.map_err(at("read", path))?;
            let complete = read < buffer.len();
            buffer.truncate(read);
            let path = path.clone();
            let mut start = 0;
            if self.offset == 0 {
                let found = &buffer[..read.min(FILE_HEADER.len())];
                match judge_header(found) {
                    Header::Whole => start = FILE_HEADER.len(),
                    Header::Unfinished => {
                        self.current = None;
                        continue;
                    }
                    Header::Other => {
                        let found = found.to_vec();
                        return Err(Corruption::Header { path, found }.into());
                    }
                }
            }
            let Taken { chunk, end, stop } = self.take(buffer, start, bytes, &path)?;
            self.offset += end as u64;
            if self.previous.is_some_and(|previous| previous > self.after) {
                // Behind the bare start of an epoch.
                self.after = self.through;
            }
            self.place.store(self.after.0, Ordering::Relaxed);
            match stop {
                _ if chunk.is_some() => return Ok(chunk),
                // More than one read of records that are not wanted.
                Stop::Short { needed } if end > 0 => wanted = needed.max(bytes),
                Stop::Short { needed } if !complete => wanted = needed,
                Stop::Short { .. } | Stop::End => self.current = None,
                Stop::Full => {}
            }
        }
    }

    fn begin(&mut self) -> Result<(), ReadError> {
        let Some(path) = self.paths.pop_front() else {
            return Err(ReadError::Ended { after: self.after, through: self.through });
        };
        let file = self.files.open_to_read(&path).map_err(at("open", &path))?;
        if self.begun {
            self.offset = 0;
        }
        self.begun = true;
        self.current = Some((file, path));
        Ok(())
    }

    /// Goes through what was read.
    fn take(
        &mut self,
        buffer: Vec<u8>,
        start: usize,
        limit: usize,
        path: &Path,
    ) -> Result<Taken, ReadError> {
        let (mut next, mut first) = (start, start);
        let mut txns = Vec::new();
        let stop = loop {
            if self.after >= self.through {
                break Stop::End;
            }
            let record = match record::decode(&buffer[next..], self.txn_bytes_max) {
                Found::Record(record) => record,
                Found::Short { needed } => break Stop::Short { needed },
                Found::Padding | Found::Torn => break Stop::End,
                Found::Damaged(damage) => {
                    let (path, after) = (path.to_owned(), self.previous.unwrap_or(self.after));
                    let offset = self.offset + next as u64;
                    return Err(Corruption::Record { path, offset, after, damage }.into());
                }
            };
            let end = next + record.len();
            if !txns.is_empty() && end - first > limit {
                break Stop::Full;
            }
            let zxid = record.zxid;
            if let Some(after) = self.previous.filter(|previous| !follows(*previous, zxid)) {
                // What comes before the first one that is wanted was judged when it was opened.
                if zxid > self.after && after >= self.after {
                    let (path, offset) = (path.to_owned(), self.offset + next as u64);
                    return Err(Corruption::Hole { path, offset, zxid, after }.into());
                }
            }
            self.previous = Some(zxid);
            if zxid > self.through {
                break Stop::End;
            }
            if zxid > self.after {
                let txn = next + PREFIX_BYTES - first;
                txns.push(txn..txn + record.txn_bytes);
                self.after = zxid;
            } else {
                first = end;
            }
            next = end;
        };
        let last = self.after;
        let chunk = (!txns.is_empty()).then(|| Chunk {
            bytes: Bytes::from(buffer).slice(first..next),
            txns,
            last,
        });
        Ok(Taken { chunk, end: next, stop })
    }
}

struct Taken {
    chunk: Option<Chunk>,
    /// How far it went.
    end: usize,
    stop: Stop,
}

enum Stop {
    /// A record ends behind what was read.
    Short { needed: usize },
    /// The file has no more.
    End,
    /// The chunk has.
    Full,
}

/// Why the log cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something is damaged.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// The log cannot be served from there.
    #[error("the log has no history without a hole behind {zxid}, only behind {floor}")]
    BelowFloor {
        /// The transaction behind which to begin.
        zxid: Zxid,
        /// The first one behind which one can.
        floor: Zxid,
    },
    /// The log does not reach so far, durably.
    #[error("the log is durable through {durable} only, not through {zxid}")]
    Beyond {
        /// The transaction that was asked for.
        zxid: Zxid,
        /// The last one that is durable.
        durable: Zxid,
    },
    /// The log ends before it should.
    #[error("the log ends after {after}, it should reach {through}")]
    Ended {
        /// The last transaction found.
        after: Zxid,
        /// The last that was to be read.
        through: Zxid,
    },
}

impl From<CursorError> for ReadError {
    fn from(error: CursorError) -> Self {
        match error {
            CursorError::File(error) => Self::File(error),
            CursorError::Corrupt(error) => Self::Corrupt(error),
        }
    }
}

/// Less than this is not worth a read.
const READ_BYTES_MIN: usize = 64 << 10;
