//! `quorate snapshot dump`: a snapshot's header, sessions and nodes.

use std::io::{self, Read};
use std::path::Path;

use quorate_storage::Disk;
use quorate_storage::snapshot::{Compression, Inspection};
use quorate_storage::snapshot::{Parts, SnapshotError, SnapshotFile, SnapshotReader, inspect};
use quorate_tokio::core::zxid::Zxid;
use quorate_znode::{Snapshot, Tree};
use serde::Serialize;

use super::page::{Gone, Page, excerpt, written};
use crate::failure::Failure;
use crate::utc::utc;

/// A line of JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Header {
        /// As the file's name says.
        zxid: Option<String>,
        bytes: u64,
        compression: &'static str,
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        body_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<DigestLine>,
        /// What the nodes give.
        #[serde(skip_serializing_if = "Option::is_none")]
        computed_digest: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_zxid: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sessions: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        nodes: Option<usize>,
    },
    Session {
        session: String,
        timeout_ms: i32,
    },
    Node {
        path: String,
        czxid: String,
        mzxid: String,
        pzxid: String,
        ctime_ms: i64,
        mtime_ms: i64,
        version: i32,
        cversion: i32,
        aversion: i32,
        owner: String,
        children: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        acl: Option<String>,
        /// Bytes that are not printable ASCII are escaped, as in a byte string of Rust.
        data: Option<String>,
        data_bytes: usize,
    },
    Damaged {
        problem: String,
    },
}

#[derive(Clone, Debug, Serialize)]
struct DigestLine {
    zxid: String,
    version: i32,
    digest: String,
}

/// What a file is found to hold.
struct Found {
    state: State,
    body_bytes: Option<u64>,
    parts: Option<Parts>,
    /// What is wrong.
    problem: Option<String>,
}

enum State {
    /// ZooKeeper's data tree.
    Tree(Box<Snapshot>),
    /// An application's own, in pieces; how many bytes that makes.
    Framed(u64),
    /// Something else, or it cannot be told.
    Unknown,
}

/// Shows a snapshot. The failure says what is wrong with it.
pub(super) fn dump(path: &Path, json: bool) -> Result<(), Failure> {
    let name = path.display();
    let size = std::fs::metadata(path)
        .map_err(|error| Failure::failed(format!("cannot open {name}: {error}")))?
        .len();
    let named = SnapshotFile::at(path);
    let label = named.as_ref().map(|file| file.label);
    let file = named.unwrap_or_else(|| SnapshotFile {
        label: Zxid::ZERO,
        path: path.to_owned(),
        compression: match path.extension() {
            Some(end) if end == "gz" => Compression::Gzip,
            Some(end) if end == "snappy" => Compression::Snappy,
            _ => Compression::None,
        },
    });
    let found = look(&file).map_err(|error| Failure::failed(error.to_string()))?;
    let mut page = Page::new(json);
    written(|| {
        header(&mut page, label, size, file.compression, &found)?;
        if let State::Tree(tree) = &found.state {
            content(&mut page, tree)?;
        }
        if let Some(problem) = &found.problem {
            page.line(&format!("DAMAGED: {problem}"))?;
            page.object(&Line::Damaged { problem: problem.clone() })?;
        }
        page.end()
    })?;
    match found.problem {
        None => Ok(()),
        Some(_) => Err(Failure::failed(format!("{name} is damaged"))),
    }
}

/// Finds out what a snapshot holds. An error if it is none.
fn look(file: &SnapshotFile) -> Result<Found, SnapshotError> {
    let sealed = inspect(Disk, file);
    if let Err(
        error @ (SnapshotError::File(_)
        | SnapshotError::Header { .. }
        | SnapshotError::Ended { offset: 0..=16, .. }),
    ) = sealed
    {
        return Err(error);
    }
    let mut reader = SnapshotReader::open(Disk, file)?;
    let restored = Tree::restore(&mut reader, file.label);
    let (tree, why_not) = match restored {
        Ok(tree) => (Some(Box::new(tree.snapshot())), None),
        Err(error) => (None, Some(error.to_string())),
    };
    match (sealed, tree) {
        (Ok(Inspection { body_bytes, parts }), Some(tree)) if reader.finish().is_ok() => {
            Ok(Found {
                state: State::Tree(tree),
                body_bytes: Some(body_bytes),
                parts: Some(parts),
                problem: None,
            })
        }
        (Ok(Inspection { body_bytes, parts }), _) => {
            let state = match framed(file, body_bytes) {
                Ok(bytes) => State::Framed(bytes),
                Err(_) => State::Unknown,
            };
            Ok(Found { state, body_bytes: Some(body_bytes), parts: Some(parts), problem: None })
        }
        (Err(error), tree) => {
            // What can be read of a damaged tree is shown; it says itself that it cannot be believed.
            let problem = match why_not {
                Some(why_not) => format!("{error}; as a data tree: {why_not}"),
                None => error.to_string(),
            };
            let state = tree.map_or(State::Unknown, State::Tree);
            Ok(Found { state, body_bytes: None, parts: None, problem: Some(problem) })
        }
    }
}

/// How many bytes the state of an application of ours has, that is cut into pieces behind their
/// lengths, if the body is nothing else.
fn framed(file: &SnapshotFile, body_bytes: u64) -> io::Result<u64> {
    let reader = SnapshotReader::open(Disk, file).map_err(io::Error::other)?;
    let (mut body, mut state) = (reader.take(body_bytes), 0);
    loop {
        let mut length = [0; 4];
        body.read_exact(&mut length)?;
        let length = u64::from(u32::from_be_bytes(length));
        if length == 0 {
            break;
        }
        if io::copy(&mut (&mut body).take(length), &mut io::sink())? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        state += length;
    }
    if body.limit() > 0 { Err(io::ErrorKind::InvalidData.into()) } else { Ok(state) }
}

fn header(
    page: &mut Page,
    label: Option<Zxid>,
    bytes: u64,
    compression: Compression,
    found: &Found,
) -> Result<(), Gone> {
    let compression = match compression {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
    };
    let tree = match &found.state {
        State::Tree(tree) => Some(tree),
        State::Framed(_) | State::Unknown => None,
    };
    let parts = found.parts.unwrap_or_default();
    // Java writes zeros while it does not know one.
    let digest = parts.digest.filter(|digest| digest.zxid != Zxid::ZERO);
    let digest = digest.map(|digest| DigestLine {
        zxid: digest.zxid.to_string(),
        version: digest.version,
        digest: format!("{:#x}", digest.digest),
    });
    let line = Line::Header {
        zxid: label.map(|label| label.to_string()),
        bytes,
        compression,
        state: match &found.state {
            State::Tree(_) => "data_tree",
            State::Framed(_) => "application",
            State::Unknown => "unknown",
        },
        body_bytes: found.body_bytes,
        digest: digest.clone(),
        computed_digest: tree.map(|tree| format!("{:#x}", tree.digest())),
        last_zxid: parts.last_zxid.map(|zxid| zxid.to_string()),
        sessions: tree.map(|tree| tree.sessions().count()),
        nodes: tree.map(|tree| tree.len()),
    };
    page.object(&line)?;
    let label = label.map_or("a snapshot".to_owned(), |label| format!("the snapshot of {label}"));
    let packed = match compression {
        "none" => String::new(),
        with => format!(", compressed with {with}"),
    };
    page.line(&format!("{label}, {bytes} bytes{packed}"))?;
    if let Some(state) = described(found) {
        page.line(&state)?;
    }
    if let Some(DigestLine { zxid, version, digest }) = digest {
        page.line(&format!("digest {digest} (version {version}) after {zxid}"))?;
        // Java writes its snapshots while the tree goes on: only the log makes them equal.
        let computed = tree.map(|tree| format!("{:#x}", tree.digest()));
        if let Some(computed) = computed.filter(|computed| version == 2 && *computed != digest) {
            page.line(&format!(
                "the nodes give {computed}: it was written while the tree changed"
            ))?;
        }
    }
    if let Some(last) = parts.last_zxid {
        page.line(&format!("last transaction {last}"))?;
    }
    Ok(())
}

/// The state in a sentence, if it is known how long it is.
fn described(found: &Found) -> Option<String> {
    match (&found.state, found.body_bytes) {
        (State::Tree(tree), _) => {
            let sessions = tree.sessions().count();
            Some(format!("a data tree of {} nodes, {sessions} sessions", tree.len()))
        }
        (State::Framed(bytes), _) => {
            Some(format!("the state of an application of its own, {bytes} bytes"))
        }
        (State::Unknown, Some(bytes)) => {
            Some(format!("{bytes} bytes that are neither a data tree nor one of ours"))
        }
        (State::Unknown, None) => None,
    }
}

fn content(page: &mut Page, tree: &Snapshot) -> Result<(), Gone> {
    let mut first = true;
    for (session, timeout_ms) in tree.sessions() {
        if std::mem::take(&mut first) {
            page.line("\nsession               timeout")?;
        }
        let session = format!("{session:#x}");
        page.line(&format!("{session:<18}{timeout_ms:>8} ms"))?;
        page.object(&Line::Session { session, timeout_ms })?;
    }
    page.line("\nczxid        mzxid        changed                   version  node")?;
    tree.walk(|path, node| {
        let (stored, stat) = (node.stored_stat(), node.stat());
        let owner = match stored.owner {
            0 => String::new(),
            owner => format!("{owner:#x}"),
        };
        let path = if path.is_empty() { "/" } else { path };
        let data = node.data();
        if !page.is_json() {
            let data = data.map_or("null".to_owned(), |data| excerpt(data));
            let owned = if owner.is_empty() { owner } else { format!(" of {owner}") };
            return page.line(&format!(
                "{:<12} {:<12} {} {:>7}  {} {data}{owned}",
                stored.czxid.to_string(),
                stored.mzxid.to_string(),
                utc(stored.mtime),
                stored.version,
                path.escape_debug(),
            ));
        }
        page.object(&Line::Node {
            path: path.to_owned(),
            czxid: stored.czxid.to_string(),
            mzxid: stored.mzxid.to_string(),
            pzxid: stored.pzxid.to_string(),
            ctime_ms: stored.ctime,
            mtime_ms: stored.mtime,
            version: stored.version,
            cversion: stored.cversion,
            aversion: stored.aversion,
            owner,
            children: stat.num_children,
            acl: node.acl().map(|acl| {
                let entries =
                    acl.iter().map(|acl| format!("{}:{}:{}", acl.scheme, acl.id, acl.perms));
                entries.collect::<Vec<_>>().join(",")
            }),
            data: data.map(|data| data.escape_ascii().to_string()),
            data_bytes: data.map_or(0, |data| data.len()),
        })
    })
}
