//! Reading a snapshot: the body by the application, then the seals and the parts between them.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use adler2::Adler32;
use flate2::read::GzDecoder;
use quorate_core::zxid::Zxid;

use super::error::SnapshotError;
use super::format::{
    DIGEST_DIGITS_MAX, Digest, LAST_ZXID_BYTES, Parts, SEAL_BYTES, SEAL_PATH, SNAPSHOT_HEADER,
};
use super::names::{Compression, SnapshotFile};
use super::snappy::SnappyDecoder;
use crate::error::at;
use crate::files::Files;

/// Reads a snapshot: first the application its body, then [`SnapshotReader::finish`] the rest.
///
/// What is read is not known to be what was written before `finish` has said so.
#[derive(Debug)]
pub struct SnapshotReader<F: Files> {
    source: Source<F>,
    path: PathBuf,
    label: Zxid,
    buffer: Box<[u8]>,
    taken: usize,
    filled: usize,
    pub(super) offset: u64,
    pub(super) checksum: Adler32,
}

impl<F: Files> SnapshotReader<F> {
    /// Opens a snapshot and reads its header.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if it cannot be read or is none.
    pub fn open(files: F, snapshot: &SnapshotFile) -> Result<Self, SnapshotError> {
        let path = snapshot.path.clone();
        let file = files.open_to_read(&path).map_err(at("open", &path))?;
        let raw = Raw { files, file, offset: 0 };
        let source = match snapshot.compression {
            Compression::Gzip => Source::Gzip(Box::new(GzDecoder::new(raw))),
            Compression::Snappy => Source::Snappy(Box::new(SnappyDecoder::new(raw))),
            Compression::None => Source::Plain(raw),
        };
        let mut reader = Self {
            source,
            path,
            label: snapshot.label,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            taken: 0,
            filled: 0,
            offset: 0,
            checksum: Adler32::new(),
        };
        let mut found = [0; SNAPSHOT_HEADER.len()];
        reader.exactly(&mut found)?;
        if found != SNAPSHOT_HEADER {
            return Err(SnapshotError::Header { path: reader.path, found });
        }
        Ok(reader)
    }

    /// The last transaction whose effects it has.
    pub fn label(&self) -> Zxid {
        self.label
    }

    /// Checks the seals, after the application has read the body and nothing more.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if a seal does not fit, or something else stands there: the snapshot is
    /// damaged, or the application did not read exactly its own bytes. What it has read must not be
    /// used.
    pub fn finish(mut self) -> Result<Parts, SnapshotError> {
        self.check_seal()?;
        let mut rest = Vec::new();
        let limit = REST_BYTES_MAX as u64;
        let read = Read::by_ref(&mut Unsummed(&mut self)).take(limit).read_to_end(&mut rest);
        read.map_err(at("read", &self.path))?;
        self.parts(&rest)
    }

    /// What stands behind the first seal, where the reader is.
    pub(super) fn parts(&mut self, rest: &[u8]) -> Result<Parts, SnapshotError> {
        let mut parts = Parts::default();
        let mut rest = Rest { reader: self, bytes: rest };
        // Without a digest, 3.9 has its last zxid here; nothing else is that short.
        if !rest.bytes.is_empty() && rest.bytes.len() != LAST_ZXID_BYTES + SEAL_BYTES {
            let (zxid, version) = (Zxid(i64::from_be_bytes(rest.take()?)), rest.take()?);
            let version = i32::from_be_bytes(version);
            let digest =
                if version >= 2 { i64::from_be_bytes(rest.take()?) } else { rest.hexadecimal()? };
            rest.seal()?;
            parts.digest = Some(Digest { zxid, version, digest });
        }
        if !rest.bytes.is_empty() {
            parts.last_zxid = Some(Zxid(i64::from_be_bytes(rest.take()?)));
            rest.seal()?;
        }
        if rest.bytes.is_empty() { Ok(parts) } else { Err(rest.reader.odd()) }
    }

    fn check_seal(&mut self) -> Result<(), SnapshotError> {
        let computed = self.checksum.checksum();
        let mut seal = [0; SEAL_BYTES];
        let offset = self.offset;
        self.exactly(&mut seal)?;
        self.compare(seal, computed, offset)
    }

    fn compare(
        &self,
        seal: [u8; SEAL_BYTES],
        computed: u32,
        offset: u64,
    ) -> Result<(), SnapshotError> {
        let mut expected = [0; SEAL_BYTES];
        expected[4..8].copy_from_slice(&computed.to_be_bytes());
        expected[8..].copy_from_slice(&SEAL_PATH);
        if seal == expected {
            return Ok(());
        }
        Err(SnapshotError::Seal { path: self.path.clone(), offset, label: self.label })
    }

    fn exactly(&mut self, buffer: &mut [u8]) -> Result<(), SnapshotError> {
        match self.read_exact(buffer) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(SnapshotError::Ended { path: self.path.clone(), offset: self.offset })
            }
            Err(error) => Err(at("read", &self.path)(error).into()),
        }
    }

    fn odd(&self) -> SnapshotError {
        SnapshotError::Odd { path: self.path.clone(), offset: self.offset, label: self.label }
    }

    fn refill(&mut self) -> io::Result<()> {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
            self.filled = match &mut self.source {
                Source::Plain(raw) => raw.read(&mut self.buffer)?,
                Source::Gzip(decoder) => decoder.read(&mut self.buffer)?,
                Source::Snappy(decoder) => decoder.read(&mut self.buffer)?,
            };
        }
        Ok(())
    }
}

impl<F: Files> BufRead for SnapshotReader<F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.refill()?;
        Ok(&self.buffer[self.taken..self.filled])
    }

    fn consume(&mut self, amount: usize) {
        let until = (self.taken + amount).min(self.filled);
        self.checksum.write_slice(&self.buffer[self.taken..until]);
        self.offset += (until - self.taken) as u64;
        self.taken = until;
    }
}

impl<F: Files> Read for SnapshotReader<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// Reads on without adding to the checksum.
pub(super) struct Unsummed<'a, F: Files>(pub(super) &'a mut SnapshotReader<F>);

impl<F: Files> Read for Unsummed<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.refill()?;
        let read = (&self.0.buffer[self.0.taken..self.0.filled]).read(buffer)?;
        self.0.taken += read;
        Ok(read)
    }
}

/// What stands behind the first seal.
pub(super) struct Rest<'a, F: Files> {
    pub(super) reader: &'a mut SnapshotReader<F>,
    pub(super) bytes: &'a [u8],
}

impl<F: Files> Rest<'_, F> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let Some((taken, rest)) = self.bytes.split_first_chunk() else {
            let offset = self.reader.offset + self.bytes.len() as u64;
            return Err(SnapshotError::Ended { path: self.reader.path.clone(), offset });
        };
        self.reader.checksum.write_slice(taken);
        self.reader.offset += N as u64;
        self.bytes = rest;
        Ok(*taken)
    }

    /// A string of hexadecimal digits, as the first versions of the digest had it.
    fn hexadecimal(&mut self) -> Result<i64, SnapshotError> {
        let length = i32::from_be_bytes(self.take()?);
        let length = usize::try_from(length).ok().filter(|length| *length <= DIGEST_DIGITS_MAX);
        let length = length.ok_or_else(|| self.reader.odd())?;
        let mut digest = 0_u64;
        for _ in 0..length {
            let [digit] = self.take()?;
            let digit = char::from(digit).to_digit(16).ok_or_else(|| self.reader.odd())?;
            digest = digest << 4 | u64::from(digit);
        }
        Ok(i64::from_be_bytes(digest.to_be_bytes()))
    }

    pub(super) fn seal(&mut self) -> Result<(), SnapshotError> {
        let (computed, offset) = (self.reader.checksum.checksum(), self.reader.offset);
        let seal = self.take()?;
        self.reader.compare(seal, computed, offset)
    }
}

#[derive(Debug)]
enum Source<F: Files> {
    Plain(Raw<F>),
    Gzip(Box<GzDecoder<Raw<F>>>),
    Snappy(Box<SnappyDecoder<Raw<F>>>),
}

/// A file from its beginning on.
#[derive(Debug)]
struct Raw<F: Files> {
    files: F,
    file: F::File,
    offset: u64,
}

impl<F: Files> Read for Raw<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.files.read_at(&self.file, self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// More than all parts behind the first seal take.
const REST_BYTES_MAX: usize = 4096;
pub(super) const BUFFER_BYTES: usize = 256 << 10;
