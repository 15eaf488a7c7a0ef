//! Writing a snapshot under another name, durably, until it is published or installed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adler2::Adler32;
use quorate_core::zxid::Zxid;

use super::error::SnapshotError;
use super::format::{DIGEST_BYTES, Parts, SEAL_PATH, SNAPSHOT_HEADER};
use super::names::name;
use crate::error::at;
use crate::files::Files;
use crate::names::{RECEIVING, TAKING};

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
    /// Up to here it is durable; none if [`SnapshotWriter::sync_elsewhere`] sees to that.
    synced: Option<u64>,
    checksum: Adler32,
    /// What is in the file is not what was meant to be.
    failed: bool,
}

impl<F: Files> SnapshotWriter<F> {
    /// Begins a snapshot of our own state, to be [published](crate::segments::Segments::publish), in the
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
    /// what has been written so far, on whatever thread and as often as it is called. The system may
    /// report an error to that call alone: the snapshot must be [discarded](Self::discard) then.
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
    /// A [`SnapshotError`] if that fails, or if anything failed before; then the file is removed, if it can be.
    pub fn finish(mut self, parts: Parts) -> Result<StagedSnapshot<F>, SnapshotError> {
        if let Err(error) = self.complete(parts) {
            // A disk may be full of it.
            drop(self.discard());
            return Err(error);
        }
        let Self { files, dir, path, label, .. } = self;
        Ok(StagedSnapshot { files, dir, path, label })
    }

    fn complete(&mut self, parts: Parts) -> Result<(), SnapshotError> {
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
        self.files.sync(&self.file).map_err(at("sync", &self.path))?;
        Ok(())
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

/// How many this process has begun to write.
static WRITTEN: AtomicU64 = AtomicU64::new(1);

/// How much of a snapshot is made durable at a time: what else wants to be durable waits behind it, so
/// it must be little, and each time takes a while, so it must not be too little.
pub const SYNC_BYTES: u64 = 512 << 10;
const BUFFER_BYTES: usize = 256 << 10;
/// From this length on, what is written is not gathered first.
const UNBUFFERED_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::names::SnapshotFile;
    use super::super::reader::SnapshotReader;
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
