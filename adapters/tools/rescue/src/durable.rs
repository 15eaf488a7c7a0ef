//! Files and directories that are known to survive a power cut, and copies that are known to be equal.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::manifest::Sum;

/// Writes a file that must not be there, and makes it durable; its name is another matter.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let mut file = create(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(at("write", path))
}

/// Replaces a small file: a crash leaves the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let dir = dir_of(path);
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(at("write into", dir))?;
    let written = file.write_all(bytes).and_then(|()| file.as_file().sync_all());
    written.map_err(at("write", path))?;
    file.persist(path).map_err(|error| at("replace", path)(error.error))?;
    sync_dir(dir)
}

/// A new file that only its owner may read: it may hold what clients keep secret.
pub(crate) fn create(path: &Path) -> Result<File, WriteError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(at("create", path))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), WriteError> {
    // Elsewhere a directory cannot be opened.
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(at("sync", dir))?;
    }
    Ok(())
}

/// Makes a directory and those above it.
pub(crate) fn create_dir(dir: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(dir).map_err(at("create the directory", dir))
}

/// The directory that a file is in; the current one for a bare name.
pub(crate) fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What is in the way of files that are about to be written there: what a directory holds, but for what every new file
/// system has in its root.
pub(crate) fn first_in(dir: &Path) -> Result<Option<PathBuf>, WriteError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(at("list", dir))?,
    };
    for entry in entries {
        let entry = entry.map_err(at("list", dir))?;
        if entry.file_name() != "lost+found" {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Hands the first `bytes` of `from` to `take`, piece by piece; tells their SHA-256.
pub(crate) fn pass<R: Read>(
    from: R,
    bytes: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<String> {
    let (mut from, mut sum) = (from.take(bytes), Sum::default());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        sum.add(&piece[..read]);
        take(&piece[..read])?;
    }
    if from.limit() > 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(sum.shown()) }
}

/// What could not be written, or looked at before.
#[derive(Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct WriteError {
    /// What was to be done, for instance "sync".
    pub action: &'static str,
    /// To which file or directory.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub source: io::Error,
}

pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError { action, path, source }
}

const PIECE_BYTES: usize = 256 << 10;
