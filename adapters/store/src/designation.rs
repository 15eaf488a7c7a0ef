//! A leader that an operator names by hand, for when the store cannot be reached.
//!
//! ```text
//!   store out of reach for a whole session, file names us, not too old ──► leads, designated
//!   store in reach again ──► guards are told ──► they are gone ──► the election goes on
//! ```
//!
//! It is off unless it is asked for, and never mixed with an elected leader: its token says that it is
//! designated, and its number is the operator's, who answers for its being greater than any before, and
//! for there being one file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use quorate_leadership::FencingToken;
use thiserror::Error;

use crate::store::Contender;

/// Where an operator says who leads, and for how long that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Designation {
    file: PathBuf,
    max_age: Duration,
}

/// Why nobody is designated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DesignationError {
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error("{0} is no designation: TOKEN SECONDS IDENTITY, in one line")]
    Malformed(String),
    /// It was written too long ago, or its time is yet to come.
    #[error("{0} is too old, or from the future")]
    OutOfDate(String),
}

impl Designation {
    /// What stands in a file counts for `max_age`, by the clocks on the wall of whoever wrote it and here.
    pub fn file(file: impl Into<PathBuf>, max_age: Duration) -> Self {
        Self { file: file.into(), max_age }
    }

    /// Who is designated, and for how long that counts yet.
    ///
    /// # Errors
    ///
    /// If the file is not there or cannot be read, is something else, or is too old.
    pub fn read(&self) -> Result<(Contender, Duration), DesignationError> {
        let path = || self.file.display().to_string();
        let text =
            fs::read(&self.file).map_err(|error| DesignationError::File { path: path(), error })?;
        let (token, written, identity) =
            parse(&text).ok_or_else(|| DesignationError::Malformed(path()))?;
        let age = now().checked_sub(written);
        let left = age.and_then(|age| self.max_age.checked_sub(age)).filter(|left| !left.is_zero());
        let left = left.ok_or_else(|| DesignationError::OutOfDate(path()))?;
        let token = FencingToken::designated(token);
        Ok((Contender { identity, token, key: String::new() }, left))
    }
}

/// Designates a leader: writes the file in one step. `token` has to be greater than that of every leader before,
/// elected or designated: whatever is guarded refuses it otherwise.
///
/// # Errors
///
/// If the file cannot be written, or the identity is empty or has a line break.
pub fn designate(file: &Path, identity: &str, token: u64) -> Result<(), DesignationError> {
    let path = || file.display().to_string();
    if identity.is_empty() || identity.contains('\n') {
        return Err(DesignationError::Malformed(path()));
    }
    let write = || {
        let mut name = file.as_os_str().to_owned();
        name.push(".new");
        let mut new = fs::File::create(&name)?;
        writeln!(new, "{token} {} {identity}", now().as_secs())?;
        new.sync_all()?;
        fs::rename(&name, file)
    };
    write().map_err(|error| DesignationError::File { path: path(), error })
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn parse(text: &[u8]) -> Option<(u64, Duration, Bytes)> {
    let line = text.strip_suffix(b"\n")?;
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
    let (token, written) = (number()?, number()?);
    let identity = words.next().filter(|name| !name.is_empty() && !name.contains(&b'\n'))?;
    Some((token, Duration::from_secs(written), Bytes::copy_from_slice(identity)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_designated_is_read_again_and_marked() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("leader");
        let designation = Designation::file(&file, Duration::from_secs(60));
        assert!(matches!(designation.read(), Err(DesignationError::File { .. })));
        designate(&file, "host 7", 12).expect("written");
        let (leader, left) = designation.read().expect("designated");
        assert_eq!((&*leader.name(), leader.token), ("host 7", FencingToken::designated(12)));
        assert!(left <= Duration::from_secs(60));
        assert!(designate(&file, "", 1).is_err() && designate(&file, "a\nb", 1).is_err());
        for (text, is_old) in [
            ("12 1 host", true),
            ("12 99999999999 host", true),
            ("12 host", false),
            ("", false),
            ("-1 1 host", false),
            ("1 1 ", false),
        ] {
            fs::write(&file, format!("{text}\n")).expect("written");
            let error = designation.read().expect_err(text);
            assert_eq!(
                matches!(error, DesignationError::OutOfDate(_)),
                is_old,
                "{text:?}: {error}"
            );
        }
    }
}
