//! Small files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces a file as a whole, durably: a crash leaves the old one or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut next = path.as_os_str().to_owned();
    next.push(".next");
    let mut file = File::create(&next)?;
    file.write_all(content)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    drop(file);
    fs::rename(&next, path)?;
    sync_dir(path)
}

/// Makes it durable that a file is there, or is not.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(dir.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("zoo.cfg.dynamic");
        replace(&path, b"server.1=a:1:2:participant").unwrap();
        replace(&path, b"server.2=b:1:2:participant").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "server.2=b:1:2:participant\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
