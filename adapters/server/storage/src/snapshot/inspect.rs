//! Whether a snapshot is whole: by a look at its first or last bytes, or by reading all of it.

use std::io::Read;
use std::path::Path;

use quorate_core::zxid::Zxid;

use super::error::SnapshotError;
use super::format::{
    DIGEST_BYTES, DIGEST_DIGITS_MAX, LAST_ZXID_BYTES, Parts, SEAL_BYTES, SEAL_PATH, SNAPSHOT_HEADER,
};
use super::names::{Compression, SnapshotFile, list};
use super::reader::{BUFFER_BYTES, Rest, SnapshotReader, Unsummed};
use super::snappy::SNAPPY_MAGIC;
use crate::error::{FileError, at};
use crate::files::Files;

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

/// What can be told of a snapshot without knowing its application.
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

/// As much as three seals and the parts between them take at most.
const TAIL_BYTES_MAX: usize =
    3 * SEAL_BYTES + DIGEST_BYTES - 8 + 4 + DIGEST_DIGITS_MAX + LAST_ZXID_BYTES;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const SIZE_MIN: u64 = 10;

/// How many snapshots are looked at before none is taken to be whole, as in ZooKeeper.
const CANDIDATES_MAX: usize = 100;
