//! Designation: an operator names a leader by hand while the store cannot be reached.
//!
//! ```text
//!   store out of reach for a whole session, file or page names us, not too old ──► leads, designated
//!   store in reach again ──► guards are revoked ──► they are gone ──► the election goes on
//! ```
//!
//! It is off unless it is configured, and never mixed with an elected leader: its token is marked as designated.
//! The token's number is the operator's: the operator has to choose it greater than any before, and to keep one file,
//! or one page.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use quorate_leadership::FencingToken;
use thiserror::Error;

use crate::contender::Contender;

/// Where an operator designates a leader, and for how long that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Designation {
    source: Source,
    max_age: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    File(PathBuf),
    Page(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Page(url) => url.fmt(f),
        }
    }
}

/// Why no designation can be read or written.
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
    /// The page cannot be had.
    #[error("{url}: {error}")]
    Page {
        /// Which.
        url: String,
        /// Why.
        error: minreq::Error,
    },
    /// The server of the page answers something else than 200.
    #[error("{url} answers {status}")]
    Status {
        /// Which.
        url: String,
        /// What it answers.
        status: u16,
    },
    /// It is not a designation.
    #[error("{0} is no designation: TOKEN SECONDS IDENTITY, in one line")]
    Malformed(String),
    /// It was written too long ago, or its time is in the future.
    #[error("{0} is too old, or from the future")]
    OutOfDate(String),
}

impl Designation {
    /// The designation in a file of 4 KiB at most counts for `max_age`, by the wall clocks of the machine that wrote it and of this one.
    pub fn file(file: impl Into<PathBuf>, max_age: Duration) -> Self {
        Self { source: Source::File(file.into()), max_age }
    }

    /// The designation behind an `http://` URL counts for `max_age`: the same line as in a [`file`](Self::file). It
    /// is given five seconds, and 4 KiB; redirections are not followed.
    pub fn page(url: impl Into<String>, max_age: Duration) -> Self {
        Self { source: Source::Page(url.into()), max_age }
    }

    /// The designated leader, and for how long that counts yet. Blocks until a page has answered.
    ///
    /// # Errors
    ///
    /// If the file or page is not there or cannot be read, is not a designation, or is too old.
    pub fn read(&self) -> Result<(Contender, Duration), DesignationError> {
        self.read_text().map(|(_, leader, left)| (leader, left))
    }

    /// The line that says so, for a program that serves a [`page`](Self::page) of it. What would not count is an error.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn line(&self) -> Result<Bytes, DesignationError> {
        self.read_text().map(|(text, ..)| Bytes::from(text))
    }

    fn read_text(&self) -> Result<(Vec<u8>, Contender, Duration), DesignationError> {
        let path = || self.source.to_string();
        let text = match &self.source {
            Source::File(file) => fs::File::open(file)
                .and_then(head)
                .map_err(|error| DesignationError::File { path: path(), error })?,
            Source::Page(url) => fetch(url)?,
        };
        let (token, written, identity) =
            parse(&text).ok_or_else(|| DesignationError::Malformed(path()))?;
        let age = now().checked_sub(written);
        let left = age.and_then(|age| self.max_age.checked_sub(age)).filter(|left| !left.is_zero());
        let left = left.ok_or_else(|| DesignationError::OutOfDate(path()))?;
        let token = FencingToken::designated(token);
        Ok((text, Contender { identity, token, key: String::new() }, left))
    }
}

/// The body of a page.
fn fetch(url: &str) -> Result<Vec<u8>, DesignationError> {
    let request = minreq::get(url).with_timeout(PAGE_SECONDS).with_follow_redirects(false);
    let request = request
        .with_max_headers_size(Some(PAGE_BYTES_MAX))
        .with_max_status_line_length(Some(PAGE_BYTES_MAX));
    let page = |error| DesignationError::Page { url: url.to_owned(), error };
    let answer = request.send_lazy().map_err(page)?;
    let status = answer.status_code;
    if status != 200 {
        return Err(DesignationError::Status { url: url.to_owned(), status });
    }
    head(answer).map_err(|error| DesignationError::File { path: url.to_owned(), error })
}

/// As much as a designation may be.
fn head(from: impl Read) -> io::Result<Vec<u8>> {
    let (mut text, most) = (Vec::new(), u64::try_from(PAGE_BYTES_MAX).unwrap_or(u64::MAX));
    from.take(most).read_to_end(&mut text)?;
    Ok(text)
}

/// How long a page may take.
const PAGE_SECONDS: u64 = 5;
/// How long a file may be, and the body of a page, and its head.
const PAGE_BYTES_MAX: usize = 4096;

/// Designates a leader: writes the file in one step. `token` has to be greater than that of every leader before,
/// elected or designated: otherwise guarded resources refuse it.
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

    /// Answers each of so many connections with one of these, `|` being a while, and gives the URL.
    fn page(answers: Vec<String>) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut asked = [0; 1024];
                drop(stream.read(&mut asked));
                for part in answer.split_inclusive('|') {
                    drop(stream.write_all(part.trim_end_matches('|').as_bytes()));
                    if part.ends_with('|') {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                }
            }
        });
        format!("http://{address}/leader")
    }

    fn ok(text: &str) -> String {
        let length = text.replace('|', "").len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
    }

    #[test]
    fn a_page_says_the_same_as_a_file_and_no_more_is_read_than_that() {
        let now = now().as_secs();
        let line = format!("12 {now} host 7\n");
        let elsewhere = page(vec![ok(&line)]);
        let url = page(vec![
            ok(&line),
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"),
            // It would be a designation if it were read to its end.
            ok(&format!("12 {now} {}\n", "x".repeat(1 << 20))),
            format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n{line}", "x".repeat(1 << 20)),
            "no answer of any kind".to_owned(),
        ]);
        let designation = Designation::page(&url, Duration::from_secs(60));
        let (leader, _) = designation.read().expect("designated");
        assert_eq!((&*leader.name(), leader.token), ("host 7", FencingToken::designated(12)));
        assert!(matches!(designation.read(), Err(DesignationError::Status { status: 404, .. })));
        assert!(matches!(designation.read(), Err(DesignationError::Status { status: 302, .. })));
        assert!(matches!(designation.read(), Err(DesignationError::Malformed(_))));
        assert!(matches!(designation.read(), Err(DesignationError::Page { .. })), "its headers");
        assert!(designation.read().is_err());
        let refused = Designation::page("http://127.0.0.1:1/", Duration::from_secs(60));
        assert!(matches!(refused.read(), Err(DesignationError::Page { .. })));
    }

    #[test]
    fn a_page_that_never_ends_is_not_waited_for() {
        // Somewhere in it every second, whole after twelve.
        let line = format!("12 {} h||||||||||||ost 7\n", now().as_secs());
        let designation = Designation::page(page(vec![ok(&line)]), Duration::from_secs(60));
        assert!(designation.read().is_err());
    }
}
