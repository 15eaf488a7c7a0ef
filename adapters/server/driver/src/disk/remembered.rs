//! The number that the service has kept over the ends of this server, in a small file of its own.
//!
//! ```text
//!   version-2/quorate.remembered     the number and its complement, 16 hexadecimal digits each
//! ```
//!
//! ZooKeeper's servers pass files by whose names do not begin with `log.` or `snapshot.`. Without the file, or with one that
//! is damaged, the server goes on: what the service makes of that is its business.

use std::io;
use std::path::{Path, PathBuf};

use async_channel::Receiver;

use crate::replace_file::replace;
use crate::task_group::KeepAlive;
use crate::threads::offload;

/// What is kept in the directory of the snapshots. `used`: this directory has a history, so that there should be something.
pub(crate) fn read(snapshots: &Path, used: bool) -> Option<i64> {
    let path = path(snapshots);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let number = parse(&text);
            if number.is_none() {
                tracing::warn!(event = "disk.warning", path = %path.display(), "damaged, and passed over");
            }
            number
        }
        Err(error) => {
            if used || error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(event = "disk.warning", path = %path.display(), %error, "cannot be read, and is made anew");
            }
            None
        }
    }
}

/// Keeps each number that comes, the newest at least, until no more can come.
pub(crate) async fn keep(snapshots: PathBuf, numbers: Receiver<i64>, keep_alive: KeepAlive) {
    while let Ok(number) = numbers.recv().await {
        let (path, keep_alive) = (path(&snapshots), keep_alive.clone());
        let write = move || {
            let written = replace(&path, text(number).as_bytes());
            if let Err(error) = written {
                tracing::warn!(event = "disk.warning", path = %path.display(), %error, "cannot be written");
            }
            drop(keep_alive);
        };
        if let Err(error) = offload("quorate-remember", write).await {
            tracing::warn!(event = "disk.warning", %error, "cannot remember {number:x}");
        }
    }
}

fn path(snapshots: &Path) -> PathBuf {
    snapshots.join("quorate.remembered")
}

fn text(number: i64) -> String {
    format!("{number:016x} {:016x}", !number)
}

fn parse(text: &str) -> Option<i64> {
    let digits = |text: &str| u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
    let (number, complement) = text.strip_suffix('\n')?.split_once(' ')?;
    let number = digits(number).filter(|number| digits(complement) == Some(!number))?;
    Some(i64::from_ne_bytes(number.to_ne_bytes()))
}

#[cfg(test)]
mod tests {
    use async_channel::bounded;
    use futures_lite::future::block_on;

    use super::*;

    #[test]
    fn the_newest_number_is_read_and_a_damaged_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path(), true), None);
        let (numbers, coming) = bounded(2);
        for number in [7, i64::MIN + 3] {
            numbers.try_send(number).unwrap();
        }
        drop(numbers);
        block_on(keep(dir.path().to_owned(), coming, KeepAlive::idle()));
        assert_eq!(read(dir.path(), true), Some(i64::MIN + 3));
        let path = path(dir.path());
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read(dir.path(), true), None, "cut at {at}");
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(read(dir.path(), true), None, "damaged at {at}");
        }
        std::fs::write(&path, [0xff; 40]).unwrap();
        assert_eq!(read(dir.path(), true), None);
        // A directory where the file should be is no obstacle either.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(read(dir.path(), true), None);
        let (numbers, coming) = bounded(1);
        numbers.try_send(9).unwrap();
        drop(numbers);
        block_on(keep(dir.path().to_owned(), coming, KeepAlive::idle()));
    }
}
