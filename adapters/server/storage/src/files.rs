//! File operations, each a step of its own that a crash can fall behind: the trait, and the operating system's.
//!
//! Each step that a crash can fall between is an operation of its own; nothing is combined, so that a
//! test can stop after any of them and forget what was not synced. No operation knows what a file
//! means.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// File operations, one step each.
pub trait Files: Debug {
    /// An open file.
    type File: Debug;
    /// What holds a lock until it is dropped.
    type Lock: Debug;

    /// Creates a directory and those above it, durably; nothing happens if it is there.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names in a directory, in no particular order; none if there is no such directory.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn names(&self, dir: &Path) -> io::Result<Option<Vec<OsString>>>;

    /// The first `limit` bytes of a file; none if there is no such file.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>>;

    /// Creates a file, or empties it, and writes `bytes` to it, not durably.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<Self::File>;

    /// Opens a file that exists, to read it only.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn open_to_read(&self, path: &Path) -> io::Result<Self::File>;

    /// Opens a file that exists, to be written to or synced as well.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    /// Creates an empty file, not durably.
    ///
    /// # Errors
    ///
    /// What the system says, also if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// How long a file is; none if there is no such file.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn size(&self, path: &Path) -> io::Result<Option<u64>>;

    /// Reads from a position on until `buffer` is full or the file ends; tells how much it was.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes` to a position, not durably.
    ///
    /// # Errors
    ///
    /// What the system says. How much of it was written is not known.
    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes a file `size` bytes long by adding zero bytes, not durably, and takes the room for them if
    /// the file system can.
    ///
    /// # Errors
    ///
    /// What the system says, for instance that the disk is full.
    fn reserve(&self, file: &Self::File, size: u64) -> io::Result<()>;

    /// Drops what a file has behind its first `size` bytes, not durably.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn cut(&self, file: &Self::File, size: u64) -> io::Result<()>;

    /// Makes the content of a file durable, and of what is said about it only what reading it needs:
    /// its length, not its times.
    ///
    /// # Errors
    ///
    /// As [`Files::sync`].
    fn sync_data(&self, file: &Self::File) -> io::Result<()>;

    /// Makes the content of a file durable; its name is another matter.
    ///
    /// # Errors
    ///
    /// What the system says. What the file then holds after a crash is not known.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Gives a file another name, taking it from the file that had it, in one step, not durably.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, not durably.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks a file against every other opening of it, also in the same process, and notes our process in it.
    ///
    /// # Errors
    ///
    /// What the system says; that another process has it is no error.
    fn lock(&self, path: &Path) -> io::Result<Lock<Self::Lock>>;

    /// The holder of a file's lock; none if it is not locked, or there is no such file. Changes nothing, and takes the
    /// lock for no longer than it takes to see that it can.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn holder(&self, path: &Path) -> io::Result<Option<Holder>>;
}

/// The process that has locked a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The number of the process, if it says.
    pub pid: Option<u32>,
}

/// What came of an attempt to lock.
#[derive(Debug)]
pub enum Lock<L> {
    /// It is ours until this is dropped.
    Ours(L),
    /// Another process, or another server in this one, has it.
    Taken(Holder),
}

/// The files of the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk;

/// A locked file. The lock ends with the process at the latest; the file stays.
#[derive(Debug)]
pub struct DiskLock {
    _file: File,
}

impl Files for Disk {
    type File = File;
    type Lock = DiskLock;

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(parent) = parent_of(dir) {
            self.create_dir(parent)?;
        }
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            Err(error) => Err(error),
            Ok(()) => parent_of(dir).map_or(Ok(()), |parent| self.sync_dir(parent)),
        }
    }

    fn names(&self, dir: &Path) -> io::Result<Option<Vec<OsString>>> {
        match fs::read_dir(dir) {
            Ok(entries) => {
                entries.map(|entry| Ok(entry?.file_name())).collect::<Result<_, _>>().map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match File::open(path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(limit).read_to_end(&mut bytes)?;
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<File> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        Ok(file)
    }

    fn open_to_read(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        // Some systems sync only what could be written to.
        File::options().read(true).write(true).open(path)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(path)
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_at(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match read_some_at(file, offset + done as u64, &mut buffer[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    #[cfg(unix)]
    fn write_at(&self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
    }

    #[cfg(not(unix))]
    fn write_at(&self, mut file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn reserve(&self, file: &File, size: u64) -> io::Result<()> {
        match fs4::FileExt::allocate(file, size) {
            // The length alone saves the file system some work, too.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => file.set_len(size),
            result => result,
        }
    }

    fn cut(&self, file: &File, size: u64) -> io::Result<()> {
        file.set_len(size)
    }

    fn sync_data(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    /// Elsewhere a directory cannot be opened; the file system keeps its own journal.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Lock<DiskLock>> {
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        // Named in full, because newer standard libraries have a method of that name as well.
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => {
                file.set_len(0)?;
                writeln!(file, "{}", std::process::id())?;
                Ok(Lock::Ours(DiskLock { _file: file }))
            }
            Err(fs4::TryLockError::WouldBlock) => Ok(Lock::Taken(noted_in(file))),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    fn holder(&self, path: &Path) -> io::Result<Option<Holder>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match fs4::FileExt::try_lock_shared(&file) {
            Ok(()) => fs4::FileExt::unlock(&file).map(|()| None),
            Err(fs4::TryLockError::WouldBlock) => Ok(Some(noted_in(file))),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The process that has noted itself in a locked file.
fn noted_in(file: File) -> Holder {
    let mut pid = String::new();
    // Only a courtesy, and not every system lets us read what another has locked.
    let read = file.take(32).read_to_string(&mut pid);
    Holder { pid: read.ok().and_then(|_| pid.trim().parse().ok()) }
}

#[cfg(unix)]
fn read_some_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_some_at(mut file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
    file.read(buffer)
}

/// The directory above; the current one for a bare name.
fn parent_of(path: &Path) -> Option<&Path> {
    path.parent().map(|parent| if parent == Path::new("") { Path::new(".") } else { parent })
}
