//! A history read from a snapshot on without changing it: which log files it takes, and their transactions in order.
//!
//! ```text
//!   log.1 … log.80   log.81 … log.d0   log.d1 … (torn)
//!                       ▲ snapshot.9f       ▲
//!                       begins here         ends behind the last whole record
//! ```
//!
//! Needs no lock. Of a directory in use, a record that is being written is an end, as after a crash; files may go while
//! they are read. What a start would refuse is refused: damage, and transactions that are missing.
//!
//! In the Java code: `FileTxnLog.getLogFiles`, `FileTxnSnapLog.restore`.

use std::path::PathBuf;

use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::dirs::Dirs;
use crate::dump::{Dump, DumpError, Ending, Entry};
use crate::error::{Corruption, FileError};
use crate::files::{Disk, Files};
use crate::install::{self, InstallError};
use crate::record::Damage;
use crate::segment::{Segment, list_segments};
use crate::sequence::{follows, is_number, is_successor};

/// The transactions behind a snapshot, one after the other.
#[derive(Debug)]
pub struct Replay<F: Files = Disk> {
    files: F,
    txn_bytes_max: usize,
    base: Zxid,
    /// Files that were not begun, the next one last.
    rest: Vec<Segment>,
    current: Option<(Dump<F>, LogPart)>,
    previous: Option<Zxid>,
    parts: Vec<LogPart>,
}

/// A log file, as far as it has whole records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Where it is.
    pub path: PathBuf,
    /// Its first transaction, which gives it its name.
    pub start: Zxid,
    /// Its last one.
    pub last: Zxid,
    /// How many bytes it has through the end of that.
    pub bytes: u64,
    /// How many records.
    pub records: u64,
}

impl<F: Files + Clone> Replay<F> {
    /// Begins behind the snapshot labelled `base`: with the last log file that begins at or before it.
    ///
    /// # Errors
    ///
    /// A [`ReplayError`] if the directory cannot be listed, or if its history is about to be replaced by another.
    pub fn open_on(
        files: F,
        dirs: &Dirs,
        base: Zxid,
        txn_bytes_max: usize,
    ) -> Result<Self, ReplayError> {
        if let Some((marker, _)) = install::pending(&files, dirs)? {
            return Err(ReplayError::Installing { marker });
        }
        let mut rest = list_segments(&files, &dirs.logs)?;
        let behind = rest.partition_point(|segment| segment.start <= base);
        rest.drain(..behind.saturating_sub(1));
        rest.reverse();
        let (current, previous, parts) = (None, None, Vec::new());
        Ok(Self { files, txn_bytes_max, base, rest, current, previous, parts })
    }

    /// The next transaction behind the snapshot; none at the end.
    ///
    /// # Errors
    ///
    /// A [`ReplayError`] if a file cannot be read, or acknowledged transactions may be missing.
    pub fn next_txn(&mut self) -> Result<Option<Txn>, ReplayError> {
        loop {
            let Some((dump, part)) = &mut self.current else {
                let Some(segment) = self.rest.pop() else { return Ok(None) };
                let dump = Dump::open_on(self.files.clone(), &segment.path, self.txn_bytes_max)?;
                let Segment { start, path, .. } = segment;
                self.current =
                    Some((dump, LogPart { path, start, last: start, bytes: 0, records: 0 }));
                continue;
            };
            match dump.next_entry()? {
                Some(Entry::Record { offset, txn }) => {
                    part.last = txn.zxid;
                    part.records += 1;
                    let (first, path) = (part.records == 1, part.path.clone());
                    if first && txn.zxid != part.start {
                        return Err(Corruption::Misnamed { path, found: txn.zxid }.into());
                    }
                    self.judge(path, offset, txn.zxid)?;
                    if txn.zxid > self.base {
                        return Ok(Some(txn));
                    }
                }
                Some(Entry::Damaged { offset, damage, .. }) => {
                    return Err(damaged(part.path.clone(), offset, self.previous, damage));
                }
                Some(Entry::End { offset, ending }) => {
                    part.bytes = offset;
                    let path = part.path.clone();
                    self.end(path, offset, ending)?;
                }
                // Behind the end, which has closed the file.
                None => self.current = None,
            }
        }
    }

    /// The files in which the history is, each through its last whole record; complete once
    /// [`next_txn`](Self::next_txn) has returned none. Those that end before the snapshot are not among them.
    pub fn parts(&self) -> &[LogPart] {
        &self.parts
    }

    /// The last transaction, or the snapshot's label if nothing follows it.
    pub fn last(&self) -> Zxid {
        self.previous.map_or(self.base, |last| last.max(self.base))
    }

    /// Whether a transaction can stand where it does; what is missing before the snapshot is not missed.
    fn judge(&mut self, path: PathBuf, offset: u64, zxid: Zxid) -> Result<(), Corruption> {
        if !is_number(zxid) {
            return Err(Corruption::Number { path, offset, zxid });
        }
        let previous = self.previous.replace(zxid);
        if let Some(after) = previous.filter(|after| zxid <= *after) {
            return Err(Corruption::Order { path, offset, zxid, after });
        }
        // The snapshot may stand between two transactions, and is no record.
        let after = previous.map_or(self.base, |after| after.max(self.base));
        if zxid > self.base && !follows(after, zxid) {
            return Err(Corruption::Hole { path, offset, zxid, after });
        }
        Ok(())
    }

    fn end(&mut self, path: PathBuf, offset: u64, ending: Ending) -> Result<(), ReplayError> {
        let Some((_, part)) = self.current.take() else { return Ok(()) };
        if let Ending::Broken(damage) = ending {
            let next = self.rest.last().map(|next| next.start);
            let after = self.previous.unwrap_or(Zxid::ZERO);
            // Nothing can be between a transaction and its successor.
            let harmless = next.is_some_and(|next| is_successor(after, next) || next <= self.base);
            if !harmless {
                return Err(damaged(path, offset, self.previous, damage));
            }
        }
        if part.records > 0 && part.last >= self.base {
            self.parts.push(part);
        }
        Ok(())
    }
}

fn damaged(path: PathBuf, offset: u64, after: Option<Zxid>, damage: Damage) -> ReplayError {
    let after = after.unwrap_or(Zxid::ZERO);
    Corruption::Record { path, offset, after, damage }.into()
}

/// Why a history cannot be read.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something is damaged or missing.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// Another history is about to take the place of this one.
    #[error("{}: the installation of a history was interrupted; a start finishes it", marker.display())]
    Installing {
        /// What says so.
        marker: PathBuf,
    },
    /// The same, and it cannot be finished.
    #[error(transparent)]
    Install(#[from] InstallError),
}

impl From<DumpError> for ReplayError {
    fn from(error: DumpError) -> Self {
        match error {
            DumpError::File(error) => Self::File(error),
            DumpError::Corrupt(error) => Self::Corrupt(error),
        }
    }
}
