//! The granted vote of a server that elects by generation: one small file, replaced as a whole.
//!
//! ```text
//!   <dataDir>/version-2/grantedVote      generation, for whom, whose vote it is, Adler-32 of these three
//!                                        6 2 1 029a00da
//! ```
//!
//! A server that forgot its vote could give another in the same generation, and two leaders could be elected. So
//! where the file is missing though the directory has a history, where it is torn, or another server's, the server
//! does not start.

use std::path::{Path, PathBuf};

use adler2::adler32_slice;
use quorate_core::generation_message::{Generation, GrantedVote};
use quorate_core::id::ServerId;
use thiserror::Error;

use crate::epochs;
use crate::error::{FileError, SAFE, at};
use crate::files::Files;

/// The vote.
pub(crate) const VOTE: &str = "grantedVote";
/// Says, beside `version-2`, that the server has elected in another way so far.
const INITIALIZE: &str = "initializeGeneration";

/// What an empty directory alone would not prevent.
const LOST: &str = "start it with an empty directory and with db.autocreate=false, so that it does not vote before \
    it has followed a leader";

/// Why the vote of a server is not known, or cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VoteError {
    /// There is a history, and no vote.
    #[error(
        "{} is missing, and the directory has a history: this server may have voted, and would vote twice. If \
         it has never elected by generation, create the file {} and start again. If its vote is lost: {lost}. \
         {safe}", path.display(), marker.display(), lost = LOST, safe = SAFE
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// What says that none was given.
        marker: PathBuf,
    },
    /// It does not hold what was once written to it.
    #[error(
        "{} should hold a vote with its checksum and holds {found:?}: {lost}. {safe}",
        path.display(), lost = LOST, safe = SAFE
    )]
    Garbage {
        /// The file.
        path: PathBuf,
        /// The beginning of its content.
        found: String,
    },
    /// It is another server's.
    #[error("{} holds the vote of server {of}, and this is server {id}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        of: ServerId,
        /// Our id.
        id: ServerId,
    },
    /// The caller wants to vote twice, or in a generation that is over.
    #[error("the vote in generation {} cannot follow that in generation {}", to.generation, from.generation)]
    Twice {
        /// The vote that was given.
        from: GrantedVote,
        /// The one that was to be given.
        to: GrantedVote,
    },
    /// The directory was opened without it.
    #[error("this server does not elect by generation")]
    Unwanted,
}

/// What the file holds.
pub(crate) fn parse(bytes: &[u8]) -> Option<(GrantedVote, ServerId)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (numbers, checksum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    let expected = u32::from_str_radix(checksum, 16).ok()?;
    if adler32_slice(numbers.as_bytes()) != expected {
        return None;
    }
    let mut numbers = numbers.split(' ').map(|number| number.parse::<i64>().ok());
    let (generation, vote, of) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let generation = Generation(generation);
    let (granted_vote, of) = (GrantedVote { generation, vote: ServerId(vote) }, ServerId(of));
    // Numbers can be written in more ways than one, and only one was written here.
    let whole = generation.is_valid() && format(granted_vote, of).as_bytes() == bytes;
    whole.then_some((granted_vote, of))
}

fn format(granted_vote: GrantedVote, of: ServerId) -> String {
    let GrantedVote { generation, vote } = granted_vote;
    let numbers = format!("{generation} {} {}", vote.0, of.0);
    format!("{numbers} {:08x}\n", adler32_slice(numbers.as_bytes()))
}

/// Reads the vote of server `id`, and makes sure of it; writes that there is none where none can have been
/// given, because there is no history either.
///
/// # Errors
///
/// In the inner result what is wrong with it.
pub(crate) fn open<F: Files>(
    files: &F,
    data_dir: &Path,
    dir: &Path,
    id: ServerId,
    has_history: bool,
) -> Result<Result<GrantedVote, VoteError>, FileError> {
    let (path, marker) = (dir.join(VOTE), data_dir.join(INITIALIZE));
    let Some(bytes) = files.read(&path, BYTES_MAX).map_err(at("read", &path))? else {
        let never = files.read(&marker, 1).map_err(at("read", &marker))?.is_some();
        if has_history && !never {
            return Ok(Err(VoteError::Missing { path, marker }));
        }
        keep(files, dir, GrantedVote::NONE, id)?;
        if never {
            files.remove(&marker).map_err(at("remove", &marker))?;
            files.sync_dir(data_dir).map_err(at("sync", data_dir))?;
        }
        return Ok(Ok(GrantedVote::NONE));
    };
    match parse(&bytes) {
        None => Ok(Err(VoteError::Garbage {
            path,
            found: String::from_utf8_lossy(&bytes).into_owned(),
        })),
        Some((_, of)) if of != id => Ok(Err(VoteError::Foreign { path, of, id })),
        Some((granted_vote, _)) => {
            // It may so far be in the page cache only.
            let file = files.open(&path).map_err(at("open", &path))?;
            files.sync(&file).map_err(at("sync", &path))?;
            files.sync_dir(dir).map_err(at("sync", dir))?;
            Ok(Ok(granted_vote))
        }
    }
}

/// Replaces the vote, durably.
pub(crate) fn keep<F: Files>(
    files: &F,
    dir: &Path,
    granted_vote: GrantedVote,
    id: ServerId,
) -> Result<(), FileError> {
    epochs::replace_with(files, dir, VOTE, format(granted_vote, id).as_bytes())
}

/// Whether one vote may follow another.
pub(crate) fn follows(from: GrantedVote, to: GrantedVote) -> bool {
    to.generation > from.generation || to == from
}

/// More than any vote takes; enough to show what else stands there.
const BYTES_MAX: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const BALLOT: GrantedVote = GrantedVote { generation: Generation(6), vote: ServerId(2) };

    #[test]
    fn the_file_is_one_line() {
        let text = format(BALLOT, ServerId(1));
        assert_eq!(text, "6 2 1 029a00da\n");
        assert_eq!(parse(text.as_bytes()), Some((BALLOT, ServerId(1))));
        let none = format(GrantedVote::NONE, ServerId(1));
        assert_eq!(parse(none.as_bytes()), Some((GrantedVote::NONE, ServerId(1))));
    }

    #[test]
    fn no_part_of_it_and_no_other_byte_in_it_is_a_vote() {
        let text = format(BALLOT, ServerId(1)).into_bytes();
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), None, "{end} bytes");
        }
        for at in 0..text.len() {
            for flip in 1..=255u8 {
                let mut other = text.clone();
                other[at] ^= flip;
                assert_eq!(parse(&other), None, "byte {at} ^ {flip}");
            }
        }
    }

    #[test]
    fn a_vote_follows_one_of_an_earlier_generation_or_itself() {
        let other = GrantedVote { vote: ServerId(3), ..BALLOT };
        let later = GrantedVote { generation: Generation(7), ..other };
        assert!(follows(BALLOT, BALLOT) && follows(BALLOT, later));
        assert!(!follows(BALLOT, other) && !follows(later, BALLOT));
    }
}
