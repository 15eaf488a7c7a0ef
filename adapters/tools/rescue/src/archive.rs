//! The file of a backup: a tar with a manifest, a snapshot, and log files.
//!
//! ```text
//!   manifest.json        what follows, with lengths and SHA-256; last zxid, number of nodes, digest of the tree
//!   snapshot.<zxid>      as it lay in the data directory, compressed if it was
//!   log.<zxid> …         each through its last whole record
//!   1024 zero bytes      tar's own end
//! ```
//!
//! Nothing else may be in it, in no other order, so its length follows from the manifest: what was cut short, by one
//! byte or by half, is known before anything else is read. A part that is not what it was is known by its SHA-256; a
//! manifest that is not, by the state that the parts come to.

mod error;
mod window;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use quorate_storage::segments::Dirs;
use quorate_storage::snapshot::SnapshotFile;

use crate::durable::pass;
use crate::history::{self, History};
use crate::manifest::{Manifest, Part, parse_zxid};

use self::window::{Range, Window};

pub use self::error::{ArchiveError, Malformed};

/// A backup, opened: its manifest is read, and its length is right.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    manifest: Manifest,
    window: Window,
}

impl Archive {
    /// Opens a backup and reads its manifest.
    ///
    /// # Errors
    ///
    /// An [`ArchiveError`] if it cannot be read, is no backup, is cut short, or is of a later format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        let path = path.as_ref().to_owned();
        let unreadable = |source| ArchiveError::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(unreadable)?;
        let found = file.metadata().map_err(unreadable)?.len();
        let (manifest, bytes) = read_manifest(&file).map_err(|problem| {
            let path = path.clone();
            ArchiveError::Manifest { path, problem }
        })?;
        if manifest.format != Manifest::FORMAT {
            return Err(ArchiveError::Format { path, found: manifest.format });
        }
        judge_names(&manifest.parts).map_err(|problem| {
            let path = path.clone();
            ArchiveError::Manifest { path, problem }
        })?;
        let expected = length(bytes, &manifest.parts);
        if found != expected {
            return Err(ArchiveError::Length { path, found, expected });
        }
        let parts = entries(&file, &manifest).map_err(|problem| {
            let path = path.clone();
            ArchiveError::Entry { path, problem }
        })?;
        Ok(Self { path, manifest, window: Window::new(file, parts) })
    }

    /// What it says that it holds.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Reads all of it: each part must have its SHA-256, and the state at the end must be that of the manifest.
    ///
    /// # Errors
    ///
    /// An [`ArchiveError`] that names the first thing that is not so.
    pub fn verify(&self) -> Result<History, ArchiveError> {
        for part in &self.manifest.parts {
            self.unpack(part, &mut io::sink())?;
        }
        let dirs = Dirs::one(&self.path);
        let history = history::load(&self.window, &dirs, self.manifest.txn_bytes_max)?;
        self.manifest.compare(&history.state).map_err(|mismatch| {
            let path = self.path.clone();
            ArchiveError::State { path, mismatch }
        })?;
        Ok(history)
    }

    /// Writes a part out, and compares its SHA-256.
    pub(crate) fn unpack(&self, part: &Part, to: &mut impl Write) -> Result<(), ArchiveError> {
        let unreadable = |source| {
            let path = self.path.join(&part.name);
            ArchiveError::Read { path, source }
        };
        let from = self.window.reader(&part.name).map_err(unreadable)?;
        let found = pass(from, part.bytes, |piece| to.write_all(piece)).map_err(unreadable)?;
        if found == part.sha256 {
            return Ok(());
        }
        let (path, name) = (self.path.clone(), part.name.clone());
        Err(ArchiveError::Sum { path, name, found, told: part.sha256.clone() })
    }
}

/// Writes a backup: the manifest, and of each part's file as many bytes as it says.
pub(crate) fn write(
    to: &mut File,
    manifest: &Manifest,
    files: &[PathBuf],
) -> Result<(), WriteArchiveError> {
    let text = serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?;
    let mut tar = tar::Builder::new(to);
    let seconds = u64::try_from(manifest.time_ms / 1000).unwrap_or_default();
    let header = |name: &str, bytes: u64| -> io::Result<tar::Header> {
        let mut header = tar::Header::new_gnu();
        header.set_path(name)?;
        header.set_size(bytes);
        // It may hold what clients keep secret.
        header.set_mode(0o600);
        header.set_mtime(seconds);
        header.set_cksum();
        Ok(header)
    };
    tar.append(&header(Manifest::NAME, text.len() as u64)?, &text[..])?;
    for (part, path) in manifest.parts.iter().zip(files) {
        let file = File::open(path);
        let file = file.map_err(|source| WriteArchiveError::Part { path: path.clone(), source })?;
        let mut from = file.take(part.bytes);
        tar.append(&header(&part.name, part.bytes)?, &mut from)?;
        if from.limit() > 0 {
            let source = io::ErrorKind::UnexpectedEof.into();
            return Err(WriteArchiveError::Part { path: path.clone(), source });
        }
    }
    tar.into_inner()?;
    Ok(())
}

/// Why a backup cannot be written.
#[derive(Debug)]
pub(crate) enum WriteArchiveError {
    /// A file that is to be a part of it cannot be read, any more.
    Part { path: PathBuf, source: io::Error },
    /// It cannot be written itself.
    Write(io::Error),
}

impl From<io::Error> for WriteArchiveError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// The manifest, and how long it is.
fn read_manifest(file: &File) -> Result<(Manifest, u64), Malformed> {
    let mut tar = tar::Archive::new(file);
    let first = tar.entries_with_seek()?.next();
    let mut first = first.ok_or(Malformed::NoManifest)??;
    let named = first.path().is_ok_and(|path| path.as_os_str() == Manifest::NAME);
    let bytes = first.size();
    if !named || bytes > MANIFEST_BYTES_MAX {
        return Err(Malformed::NoManifest);
    }
    let mut text = Vec::new();
    first.read_to_end(&mut text)?;
    if text.len() as u64 != bytes {
        return Err(Malformed::ManifestEnds);
    }
    Ok((serde_json::from_slice(&text)?, bytes))
}

/// A snapshot, then log files in their order, and no name that leads elsewhere.
fn judge_names(parts: &[Part]) -> Result<(), Malformed> {
    let Some((snapshot, logs)) = parts.split_first() else { return Err(Malformed::NoParts) };
    let is_plain = |name: &str| !name.contains(['/', '\\']);
    if !is_plain(&snapshot.name) || SnapshotFile::at(&snapshot.name).is_none() {
        return Err(Malformed::NoSnapshot(snapshot.name.clone()));
    }
    let mut before = None;
    for log in logs {
        let start = log.name.strip_prefix("log.").filter(|end| !end.starts_with("0x"));
        let start = start.and_then(parse_zxid);
        if start.is_none() || start <= before {
            return Err(Malformed::NoLog(log.name.clone()));
        }
        before = start;
    }
    Ok(())
}

/// How long an archive with such a manifest is.
fn length(manifest_bytes: u64, parts: &[Part]) -> u64 {
    let entry = |bytes: u64| bytes.div_ceil(BLOCK).saturating_add(1).saturating_mul(BLOCK);
    let parts = parts.iter().map(|part| entry(part.bytes));
    parts.fold(entry(manifest_bytes) + 2 * BLOCK, u64::saturating_add)
}

/// Where the parts stand, which must be those of the manifest.
fn entries(mut file: &File, manifest: &Manifest) -> Result<Vec<Range>, Malformed> {
    file.rewind()?;
    let mut tar = tar::Archive::new(file);
    let mut parts = Vec::new();
    let mut expected = manifest.parts.iter();
    for entry in tar.entries_with_seek()?.skip(1) {
        let entry = entry?;
        let path = entry.path()?.into_owned();
        let part = expected.next().filter(|part| {
            let is_file = entry.header().entry_type().is_file();
            is_file && path.as_os_str() == part.name.as_str() && entry.size() == part.bytes
        });
        let Some(part) = part else {
            return Err(Malformed::OutOfPlace(path));
        };
        let (name, bytes) = (part.name.clone(), part.bytes);
        parts.push(Range { name, offset: entry.raw_file_position(), bytes });
    }
    match expected.next() {
        Some(part) => Err(Malformed::Missing(part.name.clone())),
        None => Ok(parts),
    }
}

/// What tar counts in.
const BLOCK: u64 = 512;
/// More than any manifest has: a data directory with a million log files.
const MANIFEST_BYTES_MAX: u64 = 128 << 20;
