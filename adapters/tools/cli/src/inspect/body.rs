//! The body of a transaction, decoded for display only.
//!
//! Bodies that are not what their kind promises are shown as bytes.

use std::{fmt, str};

use quorate_znode::kind;
use serde::Serialize;

use super::page::excerpt;

/// ZooKeeper's name for a kind of transaction.
pub(super) fn name(of: i32) -> Option<&'static str> {
    Some(match of {
        kind::CREATE => "create",
        kind::DELETE => "delete",
        kind::SET_DATA => "setData",
        kind::SET_ACL => "setACL",
        kind::CHECK => "check",
        kind::MULTI => "multi",
        kind::CREATE2 => "create2",
        kind::RECONFIG => "reconfig",
        kind::CREATE_CONTAINER => "createContainer",
        kind::DELETE_CONTAINER => "deleteContainer",
        kind::CREATE_TTL => "createTTL",
        kind::CREATE_SESSION => "createSession",
        kind::CLOSE_SESSION => "closeSession",
        kind::ERROR => "error",
        _ => return None,
    })
}

/// A kind, as people read it.
pub(super) fn op(of: i32) -> String {
    name(of).map_or_else(|| format!("kind {of}"), str::to_owned)
}

/// What a body says; what it does not say is missing.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Body {
    /// How many bytes it has.
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Bytes that are not printable ASCII are escaped, as in a byte string of Rust.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<i32>,
    /// The ephemeral nodes that go with a session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    /// Of a multi.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elements: Vec<Element>,
    /// The leader's digest of its tree afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// It is not what its kind promises; escaped as `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed: Option<String>,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Element {
    op: String,
    #[serde(flatten)]
    body: Body,
}

impl Body {
    /// Of a transaction of `kind`.
    pub(super) fn new(kind: i32, bytes: &[u8]) -> Self {
        let mut body = Self { bytes: bytes.len(), ..Self::default() };
        let mut rest = Bytes(bytes);
        if body.read(kind, &mut rest).is_none() {
            let malformed = Some(bytes.escape_ascii().to_string());
            return Self {
                bytes: bytes.len(),
                malformed,
                shown: excerpt(bytes),
                ..Self::default()
            };
        }
        if let (12, Some(2), Some(digest)) = (rest.0.len(), rest.int(), rest.long()) {
            body.digest = Some(format!("{digest:#x}"));
        }
        body
    }

    fn read(&mut self, of: i32, from: &mut Bytes<'_>) -> Option<()> {
        match of {
            kind::CREATE | kind::CREATE2 | kind::CREATE_CONTAINER | kind::CREATE_TTL => {
                self.path(from)?;
                self.data(from)?;
                for _ in 0..from.int()?.max(0) {
                    from.int()?;
                    from.buffer()?;
                    from.buffer()?;
                }
                if matches!(of, kind::CREATE | kind::CREATE2) && from.take(1)? == [1] {
                    self.shown += " ephemeral";
                }
                // Very old servers did not write the parent's version.
                if of != kind::CREATE || from.0.len() >= 4 {
                    from.int()?;
                }
                if of == kind::CREATE_TTL {
                    let ttl = from.long()?;
                    self.shown += &format!(" ttl {ttl} ms");
                }
            }
            kind::DELETE | kind::DELETE_CONTAINER => self.path(from)?,
            kind::SET_DATA | kind::RECONFIG => {
                self.path(from)?;
                self.data(from)?;
                self.version(from)?;
            }
            kind::CHECK => {
                self.path(from)?;
                self.version(from)?;
            }
            kind::SET_ACL => {
                self.path(from)?;
                for _ in 0..from.int()?.max(0) {
                    from.int()?;
                    from.buffer()?;
                    from.buffer()?;
                }
                self.version(from)?;
            }
            kind::CREATE_SESSION => {
                let timeout = from.int()?;
                self.timeout_ms = Some(timeout);
                self.shown = format!("timeout {timeout} ms");
            }
            kind::CLOSE_SESSION => self.close_session(from),
            kind::ERROR => {
                let error = from.int()?;
                self.error = Some(error);
                self.shown = error.to_string();
            }
            kind::MULTI => {
                for _ in 0..from.int()?.max(0) {
                    let (of, bytes) = (from.int()?, from.buffer()??);
                    // No multi holds another one, however deep the bytes nest them.
                    if of == kind::MULTI {
                        return None;
                    }
                    let element = Element { op: op(of), body: Self::new(of, bytes) };
                    let before = if self.elements.is_empty() { "" } else { "; " };
                    self.shown += &format!("{before}{} {}", element.op, element.body);
                    self.elements.push(element);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Older servers did not write the paths, only perhaps a digest.
    fn close_session(&mut self, from: &mut Bytes<'_>) {
        let mut ahead = Bytes(from.0);
        if ahead.0.len() == 12 && ahead.int() == Some(2) {
            return;
        }
        let mut ahead = Bytes(from.0);
        let mut paths = || -> Option<Vec<String>> {
            let mut paths = Vec::new();
            for _ in 0..ahead.int()?.max(0) {
                paths.push(String::from_utf8_lossy(ahead.buffer()??).into_owned());
            }
            Some(paths)
        };
        if let Some(paths) = paths() {
            *from = ahead;
            self.shown = paths.join(" ");
            self.paths = paths;
        }
    }

    fn path(&mut self, from: &mut Bytes<'_>) -> Option<()> {
        let path = str::from_utf8(from.buffer()??).ok()?.to_owned();
        self.shown = path.escape_debug().to_string();
        self.path = Some(path);
        Some(())
    }

    fn data(&mut self, from: &mut Bytes<'_>) -> Option<()> {
        let Some(data) = from.buffer()? else {
            self.shown += " null";
            return Some(());
        };
        self.shown += &format!(" {}", excerpt(data));
        self.data_bytes = Some(data.len());
        self.data = Some(data.escape_ascii().to_string());
        Some(())
    }

    fn version(&mut self, from: &mut Bytes<'_>) -> Option<()> {
        let version = from.int()?;
        self.shown += &format!(" version {version}");
        self.version = Some(version);
        Some(())
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// What is left of a body.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Option<i64> {
        self.take(8)?.try_into().ok().map(i64::from_be_bytes)
    }

    /// Bytes behind their length; -1 stands for null.
    fn buffer(&mut self) -> Option<Option<&'a [u8]>> {
        match self.int()? {
            -1 => Some(None),
            length => Some(Some(self.take(usize::try_from(length).ok()?)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[u8] = b"\0\0\0\x02/a\0\0\0\x02h\n\0\0\0\x07\0\0\0\x02\0\0\0\0\0\0\0\xff";

    #[test]
    fn set_data_with_a_digest() {
        let body = Body::new(kind::SET_DATA, SET);
        assert_eq!(body.to_string(), "/a \"h\\n\" version 7");
        assert_eq!((body.data_bytes, body.digest.as_deref()), (Some(2), Some("0xff")));
    }

    #[test]
    fn a_multi_in_a_multi_is_no_multi() {
        // Deep enough to run out of stack, if each were looked into.
        let body: Vec<u8> = (0..100_000_u32)
            .rev()
            .flat_map(|rest| [1, 14, 12 * rest].map(u32::to_be_bytes))
            .flatten()
            .collect();
        assert!(Body::new(kind::MULTI, &body).malformed.is_some());
    }

    /// Whatever comes, it ends, and nothing is taken for what is not there.
    #[test]
    fn bodies_cut_short_are_shown_as_bytes() {
        for length in 0..16 {
            let body = Body::new(kind::SET_DATA, &SET[..length]);
            assert!(body.malformed.is_some(), "{length}: {body:?}");
        }
        for kind in [kind::CREATE, kind::CREATE_TTL, kind::MULTI, kind::SET_ACL, 99] {
            let body = Body::new(kind, &[0x7f; 40]);
            assert!(body.malformed.is_some(), "{kind}: {body:?}");
        }
    }
}
