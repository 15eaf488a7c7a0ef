//! Snapshot files: what stands around an application's state.
//!
//! ```text
//!   "ZKSN" ┬ version 2 : i32 ┬ dbid -1 : i64            the file's header, 16 bytes
//!   body                                                the application's, opaque
//!   Adler-32 : i64 ┬ "/"                                seal 1
//!   zxid : i64 ┬ version : i32 ┬ digest : i64           digest of the data tree, since 3.6
//!   Adler-32 : i64 ┬ "/"                                seal 2
//!   zxid : i64                                          last processed, since 3.9
//!   Adler-32 : i64 ┬ "/"                                seal 3
//! ```
//!
//! Each seal covers everything before it. What older servers do not write may be missing. The zxid of a
//! snapshot, its label, is its file name's. A snapshot is written under another name, made durable, and
//! then renamed: a file that has the name of a snapshot and was written here is complete. Those of a
//! Java server may not be (ZOOKEEPER-2872); at start a look at the last bytes tells most of them, and
//! the seals tell the rest when the application reads the body.
//!
//! The body has no length: only the application knows where it ends. It must take exactly its own bytes
//! from a [`SnapshotReader`] and then ask it to [finish](SnapshotReader::finish).
//!
//! Files compressed with gzip are read; nothing is written compressed. Snappy is refused.
//!
//! In the Java code: `FileSnap`, `SnapStream`.

use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adler2::Adler32;
use flate2::read::GzDecoder;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::error::{FileError, at};
use crate::files::Files;
use crate::names::{RECEIVING, TAKING, parse_zxid};

/// A snapshot in a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The last transaction whose effects it has; what a Java server wrote may have later ones, too.
    pub label: Zxid,
    /// Where it is.
    pub path: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
}

impl SnapshotFile {
    /// One of ours.
    pub(crate) fn new(dir: &Path, label: Zxid) -> Self {
        Self { label, path: dir.join(name(label)), compression: Compression::None }
    }

    /// The snapshot in a file, to judge by its name; none if that is no snapshot's.
    pub fn at(path: impl Into<PathBuf>) -> Option<Self> {
        let path = path.into();
        let (label, compression) = parse_name(path.file_name()?)?;
        Some(Self { label, path, compression })
    }
}

/// How a snapshot is compressed, as the end of its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compression {
    /// Not at all.
    None,
    /// `.gz`
    Gzip,
    /// `.snappy`
    Snappy,
}

/// What may stand behind a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The digest of the data tree.
    pub digest: Option<Digest>,
    /// The last transaction that was processed.
    pub last_zxid: Option<Zxid>,
}

/// A digest of ZooKeeper's data tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The transaction after which the tree has it; zero if it is not known.
    pub zxid: Zxid,
    /// How it is computed; 2 at present.
    pub version: i32,
    /// The digest.
    pub digest: i64,
}

/// The snapshots in a directory, newest first. Files of other names are passed over, as ZooKeeper does.
///
/// # Errors
///
/// What the system says.
pub fn list<F: Files>(files: &F, dir: &Path) -> Result<Vec<SnapshotFile>, FileError> {
    let names = files.names(dir).map_err(at("list", dir))?.unwrap_or_default();
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let (label, compression) = parse_name(name)?;
            Some(SnapshotFile { label, path: dir.join(name), compression })
        })
        .collect();
    found.sort_by_key(|file| (std::cmp::Reverse(file.label), file.compression));
    Ok(found)
}

/// Whether a snapshot may be whole, to judge by its first or last bytes: the check that costs nothing.
///
/// # Errors
///
/// What the system says.
pub fn looks_whole<F: Files>(files: &F, snapshot: &SnapshotFile) -> Result<bool, FileError> {
    let path = &snapshot.path;
    let Some(size) = files.size(path).map_err(at("look at", path))? else { return Ok(false) };
    let (magic, offset): (&[u8], _) = match snapshot.compression {
        Compression::None => (&SEAL_PATH, size.saturating_sub(SEAL_PATH.len() as u64)),
        Compression::Gzip => (&GZIP_MAGIC, 0),
        Compression::Snappy => (&SNAPPY_MAGIC, 0),
    };
    if size < SIZE_MIN {
        return Ok(false);
    }
    let file = files.open_to_read(path).map_err(at("open", path))?;
    let mut found = [0; SNAPPY_MAGIC.len()];
    let found = &mut found[..magic.len()];
    let read = files.read_at(&file, offset, found).map_err(at("read", path))?;
    Ok(read == magic.len() && found == magic)
}

/// The newest snapshot that looks whole, of those labelled below `before`, and how many there are in
/// all.
pub(crate) fn newest<F: Files>(
    files: &F,
    dir: &Path,
    before: Option<Zxid>,
) -> Result<(Option<SnapshotFile>, usize), FileError> {
    let all = list(files, dir)?;
    let count = all.len();
    let eligible = |file: &SnapshotFile| before.is_none_or(|before| file.label < before);
    for snapshot in all.into_iter().filter(eligible).take(CANDIDATES_MAX) {
        if looks_whole(files, &snapshot)? {
            return Ok((Some(snapshot), count));
        }
    }
    Ok((None, count))
}

/// Writes a snapshot under another name, see [`SnapshotWriter::finish`].
///
/// The body is written to it as to any [`Write`]. Nothing is durable before the end, and nothing that
/// was left behind by a crash or an error is ever taken for a snapshot.
#[derive(Debug)]
pub struct SnapshotWriter<F: Files> {
    files: F,
    file: Arc<F::File>,
    dir: PathBuf,
    path: PathBuf,
    label: Zxid,
    buffer: Vec<u8>,
    offset: u64,
    /// Up to here it is durable; none if somebody else sees to that.
    synced: Option<u64>,
    checksum: Adler32,
    /// What is in the file is not what was meant to be.
    failed: bool,
}

impl<F: Files> SnapshotWriter<F> {
    /// Begins a snapshot of our own state, to be [published](crate::history::History::publish), in the
    /// directory `dir` (`version-2`).
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if the file cannot be written.
    pub fn take(files: F, dir: &Path, label: Zxid) -> Result<Self, SnapshotError> {
        Self::create(files, dir, label, TAKING)
    }

    /// Begins a snapshot that a leader sends, to be [installed](crate::install::Install).
    ///
    /// # Errors
    ///
    /// As [`SnapshotWriter::take`].
    pub fn receive(files: F, dir: &Path, label: Zxid) -> Result<Self, SnapshotError> {
        Self::create(files, dir, label, RECEIVING)
    }

    fn create(files: F, dir: &Path, label: Zxid, prefix: &str) -> Result<Self, SnapshotError> {
        if label < Zxid::ZERO {
            return Err(SnapshotError::Label { label });
        }
        // A name that no other has, were it of the same label: that one may be removed at any time.
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{prefix}{number}.{}", name(label)));
        let file = files.write(&path, &[]).map_err(at("create", &path))?;
        let mut checksum = Adler32::new();
        checksum.write_slice(&SNAPSHOT_HEADER);
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(&SNAPSHOT_HEADER);
        let dir = dir.to_owned();
        Ok(Self {
            files,
            file: Arc::new(file),
            dir,
            path,
            label,
            buffer,
            offset: 0,
            synced: Some(0),
            checksum,
            failed: false,
        })
    }

    /// From now on the writer itself makes the file durable at the end only. Returns what makes durable
    /// what has been written so far, on whatever thread and as often as it is called. An error of it may
    /// be told to nobody else: the snapshot must be [discarded](Self::discard) then.
    pub fn sync_elsewhere(&mut self) -> impl Fn() -> io::Result<()> + use<F>
    where
        F: Clone,
    {
        self.synced = None;
        let (files, file) = (self.files.clone(), Arc::clone(&self.file));
        move || files.sync_data(&file)
    }

    /// Writes the seals and the parts between them, and makes the file durable.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if that fails, or if anything failed before.
    pub fn finish(mut self, parts: Parts) -> Result<StagedSnapshot<F>, SnapshotError> {
        self.seal().map_err(at("write", &self.path))?;
        if let Some(digest) = parts.digest {
            let mut bytes = [0; DIGEST_BYTES];
            bytes[..8].copy_from_slice(&digest.zxid.0.to_be_bytes());
            bytes[8..12].copy_from_slice(&digest.version.to_be_bytes());
            bytes[12..].copy_from_slice(&digest.digest.to_be_bytes());
            self.write_all(&bytes).map_err(at("write", &self.path))?;
            self.seal().map_err(at("write", &self.path))?;
        }
        if let Some(last) = parts.last_zxid {
            self.write_all(&last.0.to_be_bytes()).map_err(at("write", &self.path))?;
            self.seal().map_err(at("write", &self.path))?;
        }
        self.flush().map_err(at("write", &self.path))?;
        if !planted!(SnapshotUnsynced) {
            self.files.sync(&self.file).map_err(at("sync", &self.path))?;
        }
        let Self { files, dir, path, label, .. } = self;
        Ok(StagedSnapshot { files, dir, path, label })
    }

    /// Removes what was written, for instance because the disk is full or the sender is gone.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if the file cannot be removed; the next start removes it then.
    pub fn discard(self) -> Result<(), SnapshotError> {
        let Self { files, file, path, .. } = self;
        // Not every system removes what is open.
        drop(file);
        Ok(files.remove(&path).map_err(at("remove", &path))?)
    }

    /// Writes to the file. After an error nothing is written any more.
    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.failed = true;
        self.files.write_at(&self.file, self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        if self.synced.is_some_and(|synced| self.offset - synced >= SYNC_BYTES) {
            // All at once, at the end, would hold up the log on the same disk.
            self.files.sync_data(&self.file)?;
            self.synced = Some(self.offset);
        }
        self.failed = false;
        Ok(())
    }

    fn seal(&mut self) -> io::Result<()> {
        let checksum = u64::from(self.checksum.checksum());
        self.write_all(&checksum.to_be_bytes())?;
        self.write_all(&SEAL_PATH)
    }
}

impl<F: Files> Write for SnapshotWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let much = bytes.len() >= UNBUFFERED_BYTES;
        if self.buffer.len() >= BUFFER_BYTES || (much && !self.buffer.is_empty()) {
            self.flush()?;
        }
        let bytes = &bytes[..bytes.len().min(BUFFER_BYTES)];
        self.checksum.write_slice(bytes);
        if much {
            self.write_through(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let flushed = self.write_through(&buffer);
        buffer.clear();
        self.buffer = buffer;
        flushed
    }
}

/// A snapshot that is written and durable, but has not its name yet.
#[derive(Debug)]
pub struct StagedSnapshot<F: Files> {
    pub(crate) files: F,
    pub(crate) dir: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) label: Zxid,
}

impl<F: Files> StagedSnapshot<F> {
    /// The last transaction whose effects it has.
    pub fn label(&self) -> Zxid {
        self.label
    }

    /// Removes it. So does the next start, if this is not called.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if the file cannot be removed.
    pub fn discard(self) -> Result<(), SnapshotError> {
        Ok(self.files.remove(&self.path).map_err(at("remove", &self.path))?)
    }

    /// Gives it its name, durably.
    pub(crate) fn publish(self) -> Result<(), SnapshotError> {
        let path = self.dir.join(name(self.label));
        self.files.rename(&self.path, &path).map_err(at("rename", &self.path))?;
        Ok(self.files.sync_dir(&self.dir).map_err(at("sync", &self.dir))?)
    }
}

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
    offset: u64,
    checksum: Adler32,
}

impl<F: Files> SnapshotReader<F> {
    /// Opens a snapshot and reads its header.
    ///
    /// # Errors
    ///
    /// A [`SnapshotError`] if it cannot be read, is none, or is compressed in a way that we cannot read.
    pub fn open(files: F, snapshot: &SnapshotFile) -> Result<Self, SnapshotError> {
        let path = snapshot.path.clone();
        if snapshot.compression == Compression::Snappy {
            return Err(SnapshotError::Snappy { path });
        }
        let file = files.open_to_read(&path).map_err(at("open", &path))?;
        let raw = Raw { files, file, offset: 0 };
        let source = match snapshot.compression {
            Compression::Gzip => Source::Gzip(Box::new(GzDecoder::new(raw))),
            Compression::None | Compression::Snappy => Source::Plain(raw),
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
    fn parts(&mut self, rest: &[u8]) -> Result<Parts, SnapshotError> {
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
        if seal == expected || planted!(SealUnchecked) {
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

/// What can be told of a snapshot by somebody who does not know its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// How many bytes the body has, uncompressed.
    pub body_bytes: u64,
    /// What stands behind it.
    pub parts: Parts,
}

/// Checks a snapshot from its header to its last seal. The body ends where the first seal fits that is
/// followed by nothing but what ZooKeeper writes there. Reads all of it, once, and keeps a little.
///
/// # Errors
///
/// A [`SnapshotError`] if it cannot be read or is damaged.
pub fn inspect<F: Files>(files: F, snapshot: &SnapshotFile) -> Result<Inspection, SnapshotError> {
    let mut reader = SnapshotReader::open(files, snapshot)?;
    let (mut tail, mut piece) = (Vec::new(), vec![0; BUFFER_BYTES]);
    loop {
        let read = Unsummed(&mut reader).read(&mut piece).map_err(at("read", &snapshot.path))?;
        if read == 0 {
            break;
        }
        tail.extend_from_slice(&piece[..read]);
        let sure = tail.len().saturating_sub(TAIL_BYTES_MAX);
        reader.checksum.write_slice(&tail[..sure]);
        reader.offset += sure as u64;
        tail.drain(..sure);
    }
    let (checksum, offset) = (reader.checksum, reader.offset);
    // Every seal covers those before it, so the last one alone would fit as well.
    for end in 0..(tail.len() + 1).saturating_sub(SEAL_BYTES) {
        (reader.checksum, reader.offset) = (checksum, offset + end as u64);
        reader.checksum.write_slice(&tail[..end]);
        let (seal, rest) = tail[end..].split_at(SEAL_BYTES);
        if (Rest { reader: &mut reader, bytes: seal }).seal().is_err() {
            continue;
        }
        if let Ok(parts) = reader.parts(rest) {
            let body_bytes = offset + end as u64 - SNAPSHOT_HEADER.len() as u64;
            return Ok(Inspection { body_bytes, parts });
        }
    }
    let (path, label) = (snapshot.path.clone(), snapshot.label);
    let size = offset + tail.len() as u64;
    Err(match size.checked_sub((SNAPSHOT_HEADER.len() + SEAL_BYTES) as u64) {
        None => SnapshotError::Ended { path, offset: size },
        Some(_) => SnapshotError::Seal { path, offset: size - SEAL_BYTES as u64, label },
    })
}

/// Reads on without adding to the checksum.
struct Unsummed<'a, F: Files>(&'a mut SnapshotReader<F>);

impl<F: Files> Read for Unsummed<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.refill()?;
        let read = (&self.0.buffer[self.0.taken..self.0.filled]).read(buffer)?;
        self.0.taken += read;
        Ok(read)
    }
}

/// What stands behind the first seal.
struct Rest<'a, F: Files> {
    reader: &'a mut SnapshotReader<F>,
    bytes: &'a [u8],
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

    fn seal(&mut self) -> Result<(), SnapshotError> {
        let (computed, offset) = (self.reader.checksum.checksum(), self.reader.offset);
        let seal = self.take()?;
        self.reader.compare(seal, computed, offset)
    }
}

#[derive(Debug)]
enum Source<F: Files> {
    Plain(Raw<F>),
    Gzip(Box<GzDecoder<Raw<F>>>),
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

/// Why a snapshot cannot be written or read.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// It does not begin as a snapshot does.
    #[error("{} is no snapshot: it begins with {found:02x?}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: [u8; 16],
    },
    /// It ends too early.
    #[error("the snapshot {} ends too early, after {offset} bytes", path.display())]
    Ended {
        /// The file.
        path: PathBuf,
        /// How many bytes it has, uncompressed.
        offset: u64,
    },
    /// A checksum does not fit.
    #[error(
        "the seal at offset {offset} of the snapshot {} of {label} does not fit to its content",
        path.display()
    )]
    Seal {
        /// The file.
        path: PathBuf,
        /// Where the seal stands, uncompressed.
        offset: u64,
        /// The snapshot's label.
        label: Zxid,
    },
    /// Behind the seals stands what no version of ZooKeeper writes.
    #[error("the snapshot {} of {label} has something odd at offset {offset}", path.display())]
    Odd {
        /// The file.
        path: PathBuf,
        /// Where it stands, uncompressed.
        offset: u64,
        /// The snapshot's label.
        label: Zxid,
    },
    /// It is compressed with snappy.
    #[error(
        "the snapshot {} is compressed with snappy, which is not supported; set \
         zookeeper.snapshot.compression.method to none or gz on the Java server and let it write \
         another one", path.display()
    )]
    Snappy {
        /// The file.
        path: PathBuf,
    },
    /// No snapshot can have that label.
    #[error("a snapshot cannot be labelled {label}")]
    Label {
        /// The label.
        label: Zxid,
    },
    /// The log does not reach as far as the snapshot, so that a start from it would leave a hole.
    #[error(
        "the snapshot of {label} is not published while the log is durable through {durable} only"
    )]
    NotDurable {
        /// The snapshot's label.
        label: Zxid,
        /// The last transaction that is durable.
        durable: Zxid,
    },
    /// An earlier write to the directory failed.
    #[error("nothing is written to {} after an earlier write failed", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
    },
}

/// The name of the snapshot labelled `label`.
pub(crate) fn name(label: Zxid) -> String {
    format!("{PREFIX}.{:x}", label.0)
}

pub(crate) fn parse_name(name: &OsStr) -> Option<(Zxid, Compression)> {
    let (prefix, rest) = name.to_str()?.split_once('.')?;
    let (zxid, compression) = match rest.split_once('.') {
        None => (rest, Compression::None),
        Some((zxid, "gz")) => (zxid, Compression::Gzip),
        Some((zxid, "snappy")) => (zxid, Compression::Snappy),
        Some(_) => return None,
    };
    if prefix == PREFIX { Some((parse_zxid(zxid)?, compression)) } else { None }
}

/// How many this process has begun to write.
static WRITTEN: AtomicU64 = AtomicU64::new(1);

const PREFIX: &str = "snapshot";
const SNAPSHOT_HEADER: [u8; 16] = *b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";
/// The string "/", with which every seal ends.
const SEAL_PATH: [u8; 5] = *b"\0\0\0\x01/";
const SEAL_BYTES: usize = 13;
const DIGEST_BYTES: usize = 20;
const LAST_ZXID_BYTES: usize = 8;
/// As much as three seals and the parts between them take at most.
const TAIL_BYTES_MAX: usize =
    3 * SEAL_BYTES + DIGEST_BYTES - 8 + 4 + DIGEST_DIGITS_MAX + LAST_ZXID_BYTES;
/// How long the first versions of the digest were at most, in hexadecimal.
const DIGEST_DIGITS_MAX: usize = 16;
/// More than all parts behind the first seal take.
const REST_BYTES_MAX: usize = 4096;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const SNAPPY_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const SIZE_MIN: u64 = 10;
/// How much of a snapshot is made durable at a time: what else wants to be durable waits behind it, so
/// it must be little, and each time takes a while, so it must not be too little.
pub const SYNC_BYTES: u64 = 512 << 10;
/// How many snapshots are looked at before none is taken to be whole, as in ZooKeeper.
const CANDIDATES_MAX: usize = 100;
const BUFFER_BYTES: usize = 256 << 10;
/// From this length on, what is written is not gathered first.
const UNBUFFERED_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn what_is_written_in_pieces_of_any_length_is_one_body() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = SnapshotWriter::take(Disk, dir.path(), Zxid(7)).unwrap();
        let sync = file.sync_elsewhere();
        let mut body = Vec::new();
        std::thread::scope(|scope| {
            for round in 0_u8..3 {
                for around in [0, UNBUFFERED_BYTES, BUFFER_BYTES, 3 * BUFFER_BYTES] {
                    for length in around.saturating_sub(1)..around + 2 {
                        let piece = vec![round.wrapping_add(body.len().to_le_bytes()[0]); length];
                        file.write_all(&piece).unwrap();
                        body.extend_from_slice(&piece);
                    }
                }
                scope.spawn(|| sync().unwrap());
            }
        });
        drop(sync);
        file.finish(Parts::default()).unwrap().publish().unwrap();
        let mut reader =
            SnapshotReader::open(Disk, &SnapshotFile::new(dir.path(), Zxid(7))).unwrap();
        let mut found = vec![0; body.len()];
        reader.read_exact(&mut found).unwrap();
        assert!(found == body);
        assert_eq!(reader.finish().unwrap(), Parts::default());
    }
}
