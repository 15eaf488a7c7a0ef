//! Restoring a tree from the bytes of a snapshot, as they come.
//!
//! The form stands in [`pieces`](crate::pieces). Each element is taken when it has come whole; what has come of the
//! next one waits, and memory is taken for that, not for what a length promises. Damage that leaves the
//! structure whole is not seen here: files are sealed with a checksum, and a tree has its digest.

use std::hint::black_box;
use std::io::{self, BufRead};
use std::str;

use bytes::{Bytes, BytesMut};
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::acl::{Acl, AclTable};
use crate::jute;
use crate::map::Map;
use crate::node::Node;
use crate::stat::StoredStat;
use crate::tree::Tree;

/// How much the heap grows by at a time: less than what allocators hand back to the system at once.
const ROOM: usize = 96 * 1024;
/// What stands for null in place of a length.
const NULL: i32 = -1;
/// How many bytes a node's stat has.
const STAT_BYTES: usize = 60;

/// A snapshot that could not be restored.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// It could not be read.
    #[error("the snapshot cannot be read at byte {offset}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// It ends before its end.
    #[error("the snapshot ends within what begins at byte {offset}")]
    Ended {
        /// Where.
        offset: u64,
    },
    /// Something in it cannot be.
    #[error("the snapshot is damaged before byte {offset}: {damage}")]
    Damaged {
        /// Where, about.
        offset: u64,
        /// What cannot be.
        damage: Damage,
    },
    /// A node cannot be where it says.
    #[error(
        "the snapshot is damaged before byte {offset}: the node's parent is missing, or it is there twice, or it is no \
         path: {path:?}"
    )]
    Misplaced {
        /// Where, about.
        offset: u64,
        /// The node's path, the beginning of it if it is long.
        path: String,
    },
}

/// What no snapshot can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Damage {
    /// Two sessions of one id.
    #[error("a session is there twice")]
    SessionTwice,
    /// A path that is not UTF-8.
    #[error("a path that is not UTF-8")]
    PathNotUtf8,
    /// The nodes begin with another than the root.
    #[error("the first node is not the root")]
    NoRoot,
    /// Two access lists of one key, or one of the key that stands for none.
    #[error("the key of an access list is there twice, or is -1")]
    ListKey,
    /// A count or length below 0, or below -1 where null may be.
    #[error("a negative count or length")]
    NegativeLength,
}

/// A tree that is being restored.
pub struct Restoring {
    label: Zxid,
    /// The beginning of an element of which at least `needed` bytes are to come.
    begun: BytesMut,
    needed: usize,
    /// Where the element begins, in the snapshot; and what is missing, in the element.
    offset: u64,
    missing: usize,
    /// How much data was kept since [`make_room`].
    kept: usize,
    sessions: Map<i64, i32>,
    lists: AclTable,
    tree: Option<Box<Tree>>,
    next: Next,
}

/// What comes next.
#[derive(Clone, Debug)]
enum Next {
    Sessions,
    /// So many sessions.
    Session(usize),
    Lists,
    /// So many lists.
    List(usize),
    /// So many lists behind this one, of which some entries are there and so many are to come.
    Entry {
        behind: usize,
        key: i64,
        list: Vec<Acl>,
        entries: usize,
    },
    Node,
}

/// Why an element was not taken.
enum Stop {
    /// It has at least so many bytes, and the part that is not there begins where this says.
    Needs {
        bytes: usize,
        from: usize,
    },
    /// It cannot be; so many bytes were looked at.
    Damaged {
        at: usize,
        damage: Damage,
    },
    Misplaced {
        at: usize,
        path: String,
    },
}

impl Restoring {
    /// A tree whose last transaction will be `label`.
    pub fn new(label: Zxid) -> Self {
        Self {
            label,
            begun: BytesMut::new(),
            needed: 0,
            offset: 0,
            missing: 0,
            kept: 0,
            sessions: Map::default(),
            lists: AclTable::default(),
            tree: None,
            next: Next::Sessions,
        }
    }

    /// Takes what belongs to the snapshot from the front of `bytes`: all of them while it goes on, and not one more
    /// when the tree is whole and returned.
    ///
    /// # Errors
    ///
    /// If this is no snapshot. Where Java's snapshots are known to lack an access list, that is no error, see
    /// [`NodeRef::acl`](crate::NodeRef::acl).
    pub fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<Tree>, SnapshotError> {
        loop {
            let more = self.needed.saturating_sub(self.begun.len());
            if self.begun.is_empty() {
                if bytes.is_empty() {
                    return Ok(None);
                }
                match self.element(bytes) {
                    Ok((taken, whole)) => {
                        *bytes = &bytes[taken..];
                        self.took(taken);
                        if whole {
                            return Ok(self.finish());
                        }
                    }
                    Err(Stop::Needs { bytes: needed, from }) => {
                        self.begun.extend_from_slice(bytes);
                        *bytes = &[];
                        (self.needed, self.missing) = (needed, from);
                        return Ok(None);
                    }
                    Err(stop) => return Err(self.broken(stop)),
                }
            } else if more > bytes.len() {
                self.begun.extend_from_slice(bytes);
                *bytes = &[];
                return Ok(None);
            } else {
                let (now, later) = bytes.split_at(more);
                *bytes = later;
                self.begun.extend_from_slice(now);
                let begun = std::mem::take(&mut self.begun);
                match self.element(&begun) {
                    Ok((taken, whole)) => {
                        debug_assert_eq!(taken, begun.len(), "no more than it needs");
                        self.took(taken);
                        if whole {
                            return Ok(self.finish());
                        }
                    }
                    Err(Stop::Needs { bytes: needed, from }) => {
                        self.begun = begun;
                        (self.needed, self.missing) = (needed, from);
                    }
                    Err(stop) => return Err(self.broken(stop)),
                }
            }
        }
    }

    /// What a snapshot that goes on no further is.
    pub const fn ended(&self) -> SnapshotError {
        SnapshotError::Ended { offset: self.offset.saturating_add(self.missing as u64) }
    }

    const fn took(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(bytes as u64);
        (self.needed, self.missing) = (0, 0);
    }

    fn broken(&self, stop: Stop) -> SnapshotError {
        let offset = |at: usize| self.offset.saturating_add(at as u64);
        match stop {
            Stop::Needs { from, .. } => SnapshotError::Ended { offset: offset(from) },
            Stop::Damaged { at, damage } => SnapshotError::Damaged { offset: offset(at), damage },
            Stop::Misplaced { at, path } => SnapshotError::Misplaced { offset: offset(at), path },
        }
    }

    fn finish(&mut self) -> Option<Tree> {
        let mut tree = *self.tree.take()?;
        tree.sessions = std::mem::take(&mut self.sessions);
        tree.acls = std::mem::take(&mut self.lists);
        tree.last_zxid = self.label;
        tree.acls.purge();
        tree.quota_restored();
        Some(tree)
    }

    /// Takes the next element; how many bytes it has, and whether it was the last.
    fn element(&mut self, bytes: &[u8]) -> Result<(usize, bool), Stop> {
        let mut from = Source { bytes, at: 0 };
        self.next = match &mut self.next {
            Next::Sessions => match from.count()? {
                0 => Next::Lists,
                count => Next::Session(count),
            },
            Next::Session(left) => {
                let (id, timeout) = (from.long()?, from.int()?);
                if self.sessions.insert(id, timeout).is_some() {
                    return Err(from.damaged(Damage::SessionTwice));
                }
                if *left == 1 { Next::Lists } else { Next::Session(*left - 1) }
            }
            Next::Lists => lists(from.count()?),
            Next::List(left) => {
                let (key, entries) = (from.long()?, from.count()?);
                let next = Next::Entry { behind: *left - 1, key, list: Vec::new(), entries };
                entry(&mut self.lists, next, &from)?
            }
            Next::Entry { behind, key, list, entries } => {
                let acl = Acl { perms: from.int()?, scheme: from.word()?, id: from.word()? };
                let mut list = std::mem::take(list);
                list.push(acl);
                let (behind, key, entries) = (*behind, *key, *entries - 1);
                entry(&mut self.lists, Next::Entry { behind, key, list, entries }, &from)?
            }
            Next::Node => {
                let last = self.node(&mut from)?;
                return Ok((from.at, last));
            }
        };
        Ok((from.at, false))
    }

    /// Takes a node, or the end.
    fn node(&mut self, from: &mut Source<'_>) -> Result<bool, Stop> {
        let path = from.counted()?;
        let path = str::from_utf8(path).map_err(|_| from.damaged(Damage::PathNotUtf8))?;
        match (&self.tree, path) {
            (None, "") | (Some(_), _) => {}
            (None, _) => return Err(from.damaged(Damage::NoRoot)),
        }
        if path == "/" {
            return Ok(true);
        }
        let data = match from.int()? {
            NULL => None,
            length => Some(from.take(from.length(length)?)?),
        };
        let (acl, stat) = (from.long()?, StoredStat::from_bytes(&from.chunk::<STAT_BYTES>()?));
        let data = data.map(|data| {
            self.kept += data.len();
            if self.kept > ROOM {
                self.kept = 0;
                make_room();
            }
            Bytes::copy_from_slice(data)
        });
        let node = Node::new(path, data, acl, stat);
        match &mut self.tree {
            None => self.tree = Some(Box::new(Tree::with_root(node))),
            Some(tree) => {
                if !tree.attach(path, node) {
                    let path = path.chars().take(200).collect();
                    return Err(Stop::Misplaced { at: from.at, path });
                }
            }
        }
        self.lists.acquire_key(acl);
        // A key without a list is not given to another one.
        self.lists.reserve(acl);
        Ok(false)
    }
}

impl std::fmt::Debug for Restoring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Restoring")
            .field("label", &self.label)
            .field("offset", &self.offset)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

const fn lists(left: usize) -> Next {
    if left == 0 { Next::Node } else { Next::List(left) }
}

/// What comes next when a list has so many entries; it is noted when it has all.
fn entry(to: &mut AclTable, next: Next, from: &Source<'_>) -> Result<Next, Stop> {
    let Next::Entry { behind, key, list, entries: 0 } = next else { return Ok(next) };
    if !to.insert(key, list.into()) {
        return Err(from.damaged(Damage::ListKey));
    }
    Ok(lists(behind))
}

/// Lets the heap grow by the data of several nodes at a time. glibc's allocator asks the system for no
/// more than it is asked for itself, except in the first thread: for nodes of a page each, that is a
/// system call each, and takes as long as all the rest. Elsewhere this does nothing, quickly.
fn make_room() {
    drop(black_box(Vec::<u8>::with_capacity(ROOM)));
}

/// What has come of an element.
struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Source<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end);
        let taken = taken.ok_or(Stop::Needs { bytes: end, from: self.at })?;
        self.at = end;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut chunk = [0; N];
        chunk.copy_from_slice(self.take(N)?);
        Ok(chunk)
    }

    fn int(&mut self) -> Result<i32, Stop> {
        self.chunk().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Result<i64, Stop> {
        self.chunk().map(i64::from_be_bytes)
    }

    fn length(&self, length: i32) -> Result<usize, Stop> {
        usize::try_from(length).map_err(|_| self.damaged(Damage::NegativeLength))
    }

    fn count(&mut self) -> Result<usize, Stop> {
        let count = self.int()?;
        self.length(count)
    }

    fn counted(&mut self) -> Result<&'a [u8], Stop> {
        let length = self.count()?;
        self.take(length)
    }

    /// Null may be what an old client sent; it is the same as empty.
    fn word(&mut self) -> Result<Box<str>, Stop> {
        let length = match self.int()? {
            NULL => 0,
            length => self.length(length)?,
        };
        self.take(length).map(jute::word)
    }

    const fn damaged(&self, damage: Damage) -> Stop {
        Stop::Damaged { at: self.at, damage }
    }
}

impl Tree {
    /// Restores a tree whose last transaction is `label`. Reads exactly the snapshot's own bytes and not one more.
    ///
    /// # Errors
    ///
    /// If `from` cannot be read, ends too early, or is not a snapshot. Where Java's snapshots are
    /// known to lack an access list, that is no error, see [`NodeRef::acl`](crate::NodeRef::acl).
    pub fn restore(mut from: impl BufRead, label: Zxid) -> Result<Self, SnapshotError> {
        let mut restoring = Restoring::new(label);
        loop {
            let bytes = match from.fill_buf() {
                Ok([]) => return Err(restoring.ended()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    let offset = restoring.offset + restoring.begun.len() as u64;
                    return Err(SnapshotError::Io { offset, source });
                }
            };
            let mut rest = bytes;
            let whole = restoring.push(&mut rest)?;
            let taken = bytes.len() - rest.len();
            from.consume(taken);
            if let Some(tree) = whole {
                return Ok(tree);
            }
        }
    }
}
