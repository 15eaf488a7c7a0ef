//! The parts of an archive as files, where they stand in it: they are read without being unpacked.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use quorate_storage::{Disk, Files, Holder, Lock};

/// A directory whose files are parts of an archive. Nothing in it can be changed.
#[derive(Clone, Debug)]
pub(crate) struct Window(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    file: File,
    parts: Vec<Range>,
}

/// Where a part stands.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Window {
    pub(crate) fn new(file: File, parts: Vec<Range>) -> Self {
        Self(Arc::new(Inside { file, parts }))
    }

    /// Reads a part from its beginning.
    pub(crate) fn reader(&self, name: &str) -> io::Result<impl Read> {
        let part = self.part(Path::new(name))?;
        Ok(Reader { window: self, part, offset: 0 })
    }

    fn part(&self, path: &Path) -> io::Result<Range> {
        let named = |part: &&Range| path.file_name().is_some_and(|name| *name == *part.name);
        self.0.parts.iter().find(named).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

struct Reader<'a> {
    window: &'a Window,
    part: Range,
    offset: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.window.read_at(&self.part, self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Files for Window {
    type File = Range;
    type Lock = ();

    fn names(&self, _dir: &Path) -> io::Result<Option<Vec<OsString>>> {
        Ok(Some(self.0.parts.iter().map(|part| part.name.clone().into()).collect()))
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let Ok(part) = self.part(path) else { return Ok(None) };
        let mut bytes = vec![0; usize::try_from(part.bytes.min(limit)).unwrap_or(usize::MAX)];
        let read = self.read_at(&part, 0, &mut bytes)?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Range> {
        self.part(path)
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.part(path).ok().map(|part| part.bytes))
    }

    fn read_at(&self, part: &Range, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = part.bytes.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        Disk.read_at(&self.0.file, part.offset + offset, &mut buffer[..wanted])
    }

    fn holder(&self, _path: &Path) -> io::Result<Option<Holder>> {
        Ok(None)
    }

    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        unchangeable()
    }

    fn write(&self, _path: &Path, _bytes: &[u8]) -> io::Result<Range> {
        unchangeable()
    }

    fn open(&self, _path: &Path) -> io::Result<Range> {
        unchangeable()
    }

    fn create(&self, _path: &Path) -> io::Result<Range> {
        unchangeable()
    }

    fn write_at(&self, _file: &Range, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        unchangeable()
    }

    fn reserve(&self, _file: &Range, _size: u64) -> io::Result<()> {
        unchangeable()
    }

    fn cut(&self, _file: &Range, _size: u64) -> io::Result<()> {
        unchangeable()
    }

    fn sync_data(&self, _file: &Range) -> io::Result<()> {
        unchangeable()
    }

    fn sync(&self, _file: &Range) -> io::Result<()> {
        unchangeable()
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        unchangeable()
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        unchangeable()
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        unchangeable()
    }

    fn lock(&self, _path: &Path) -> io::Result<Lock<()>> {
        unchangeable()
    }
}

fn unchangeable<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}
