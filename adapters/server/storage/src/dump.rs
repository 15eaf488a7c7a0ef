//! One log file shown record by record, damaged records and the kind of its end among them.
//!
//! ```text
//!   header │ record │ record │ damaged record │ record │ torn record │ zero bytes …
//!           Record   Record   Damaged          Record    End(Torn)
//! ```
//!
//! Nothing is changed and no lock is needed. A record whose checksum is wrong is shown and passed over;
//! where its length cannot be told, the file ends. It looks at one file: whether what is in it goes
//! on from another is told by [`check`](crate::check).
//!
//! In the Java code: `TxnLogToolkit`.

use std::path::Path;

use quorate_core::txn::Txn;
use thiserror::Error;

use crate::cursor::{Cursor, CursorError, End, Step};
use crate::error::{Corruption, FileError, at};
use crate::files::{Disk, Files};
use crate::record::{Damage, OVERHEAD};

/// The records of a log file, from the first to the end.
#[derive(Debug)]
pub struct Dump<F: Files = Disk> {
    cursor: Cursor<F>,
    size: u64,
    ended: bool,
}

/// What stands at a place in a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A whole record.
    Record {
        /// Where it begins.
        offset: u64,
        /// Its transaction.
        txn: Txn,
    },
    /// A record that was complete once and no longer says the same; the next one stands behind it.
    Damaged {
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        damage: Damage,
        /// Its transaction, as far as it can be believed.
        txn: Option<Txn>,
    },
    /// The end of what can be read.
    End {
        /// Where the last record ends.
        offset: u64,
        /// How.
        ending: Ending,
    },
}

/// How a log file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Well: behind the last record is room that was taken in advance, or none.
    Padding {
        /// How many.
        bytes: u64,
    },
    /// With a record, a header or a batch that was not written to its end. The next start cuts it off.
    Torn {
        /// How many bytes stand behind the last record.
        bytes: u64,
    },
    /// Damaged: what was once written to its end cannot be read.
    Broken(Damage),
}

impl Dump {
    /// Opens a log file.
    ///
    /// # Errors
    ///
    /// A [`DumpError`] if it cannot be read or is no log file. An empty file is a log file: its creation was
    /// interrupted.
    pub fn open(path: impl AsRef<Path>, txn_bytes_max: usize) -> Result<Self, DumpError> {
        Self::open_on(Disk, path.as_ref(), txn_bytes_max)
    }
}

impl<F: Files + Clone> Dump<F> {
    /// As [`Dump::open`], on other files than the operating system's.
    ///
    /// # Errors
    ///
    /// As [`Dump::open`].
    pub fn open_on(files: F, path: &Path, txn_bytes_max: usize) -> Result<Self, DumpError> {
        let cursor = Cursor::look(&files, path, txn_bytes_max)?;
        let size = files.size(path).map_err(at("look at", path))?.unwrap_or_default();
        Ok(Self { cursor, size, ended: false })
    }

    /// What comes next; none behind the end.
    ///
    /// # Errors
    ///
    /// A [`FileError`] if the file cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, FileError> {
        if self.ended {
            return Ok(None);
        }
        let entry = match self.cursor.next() {
            Ok(Step::Record { offset, .. }) => match Txn::decode(self.cursor.txn()) {
                Ok(txn) => Entry::Record { offset, txn },
                // Cannot be: what is found to be a record has a header.
                Err(_) => Entry::Damaged { offset, damage: Damage::Frame, txn: None },
            },
            Ok(Step::End { offset, torn }) => {
                let bytes = self.size.saturating_sub(offset);
                let ending = match self.cursor.end(self.cursor.last(), torn) {
                    Ok(End::Torn) => Ending::Torn { bytes },
                    Ok(End::Whole) => Ending::Padding { bytes },
                    Ok(End::Damaged(damage)) => Ending::Broken(damage),
                    Err(error) => Ending::Broken(damage_of(error)?),
                };
                Entry::End { offset, ending }
            }
            Err(error) => {
                let (offset, damage) = (self.cursor.offset(), damage_of(error)?);
                match self.cursor.pass_over() {
                    Some(bytes) if bytes > OVERHEAD => {
                        Entry::Damaged { offset, damage, txn: Txn::decode(self.cursor.txn()).ok() }
                    }
                    _ => Entry::End { offset, ending: Ending::Broken(damage) },
                }
            }
        };
        self.ended = matches!(entry, Entry::End { .. });
        Ok(Some(entry))
    }
}

impl<F: Files + Clone> Iterator for Dump<F> {
    type Item = Result<Entry, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next_entry();
        self.ended |= entry.is_err();
        entry.transpose()
    }
}

/// What a cursor that has an open file stumbles over.
fn damage_of(error: CursorError) -> Result<Damage, FileError> {
    match error {
        CursorError::File(error) => Err(error),
        CursorError::Corrupt(Corruption::Record { damage, .. }) => Ok(damage),
        // A cursor knows nothing of other records, and the header was read.
        CursorError::Corrupt(
            Corruption::Header { .. }
            | Corruption::Misnamed { .. }
            | Corruption::Number { .. }
            | Corruption::Order { .. }
            | Corruption::Hole { .. },
        ) => Ok(Damage::Frame),
    }
}

/// Why a log file cannot be shown.
#[derive(Debug, Error)]
pub enum DumpError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no log file.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
}

impl From<CursorError> for DumpError {
    fn from(error: CursorError) -> Self {
        match error {
            CursorError::File(error) => Self::File(error),
            CursorError::Corrupt(error) => Self::Corrupt(error),
        }
    }
}
