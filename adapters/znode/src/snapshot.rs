//! A point in time, written and restored.
//!
//! ```text
//!   sessions   i32 count · count × ( i64 id · i32 timeout )
//!   lists      i32 count · count × ( i64 key · i32 entries · entries × ( i32 perms · scheme · id ) )
//!   nodes      path · data · i64 key · 60 bytes of stat    a parent before its children, first ""
//!   the end    path "/"
//! ```
//!
//! This is the body of ZooKeeper's snapshot files and the whole of its SNAP stream but the signature;
//! nothing tells its length in advance, so only reading it finds its end. Ours is sorted and therefore
//! the same for the same tree; Java's nodes come in any order. Damage that leaves the structure whole
//! is not seen here: files are sealed with a checksum, and a tree has its digest.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::str;
use std::sync::Arc;

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use thiserror::Error;

use crate::acl::{self, Acl, Acls};
use crate::jute;
use crate::map::Map;
use crate::node::{Node, NodeRef};
use crate::stat::StoredStat;
use crate::tree::Tree;

/// A tree at a point in time. The tree goes on; this stays as it was, and can be sent elsewhere.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) root: Arc<Node>,
    pub(crate) lists: Map<i64, Acls>,
    pub(crate) sessions: Map<i64, i32>,
    pub(crate) zxid: Zxid,
    pub(crate) digest: u64,
    pub(crate) len: usize,
}

/// How much is gathered before it is written.
const BUFFER: usize = 64 * 1024;
/// How much memory a length is given before the bytes are there.
const TRUSTED: usize = 64 * 1024;
/// How much the heap grows by at a time: less than what allocators hand back to the system at once.
const ROOM: usize = 96 * 1024;
/// What stands for null in place of a length.
const NULL: i32 = -1;

impl Snapshot {
    /// The last transaction in it: its label.
    pub const fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// ZooKeeper's digest of the tree, version 2.
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// How many nodes it has, the root among them.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never: there is always the root.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The sessions by id, with their timeouts in milliseconds.
    pub fn sessions(&self) -> impl Iterator<Item = (i64, i32)> {
        self.sessions.iter().map(|(id, timeout)| (*id, *timeout))
    }

    /// The access lists by key.
    pub fn acls(&self) -> impl Iterator<Item = (i64, &Acls)> {
        self.lists.iter().map(|(key, list)| (*key, list))
    }

    /// Shows every node with its path, each before its children and these sorted; the root's path is
    /// `""`.
    ///
    /// # Errors
    ///
    /// The first of `show`, which ends the walk.
    pub fn walk<E>(
        &self,
        mut show: impl FnMut(&str, NodeRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut path = String::new();
        show(&path, NodeRef { node: &self.root, lists: &self.lists })?;
        let mut below = vec![(0, self.root.children.iter())];
        while let Some((parent, children)) = below.last_mut() {
            path.truncate(*parent);
            let Some((name, node)) = children.next() else {
                below.pop();
                continue;
            };
            path.push('/');
            path.push_str(name);
            show(&path, NodeRef { node, lists: &self.lists })?;
            if !node.children.is_empty() {
                below.push((path.len(), node.children.iter()));
            }
        }
        Ok(())
    }

    /// Writes it, in pieces of some 64 KiB and with no more memory than that; large data of a node
    /// goes as it is.
    ///
    /// # Errors
    ///
    /// Those of `to`. What was written until then is useless.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        let mut out = Out { to, buffer: Vec::with_capacity(BUFFER + 1024) };
        out.count(self.sessions.len())?;
        for (id, timeout) in self.sessions.iter() {
            out.raw(&id.to_be_bytes())?;
            out.raw(&timeout.to_be_bytes())?;
        }
        out.count(self.lists.len())?;
        for (key, list) in self.lists.iter() {
            out.raw(&key.to_be_bytes())?;
            out.count(list.len())?;
            for Acl { perms, scheme, id } in list.iter() {
                out.raw(&perms.to_be_bytes())?;
                out.counted(scheme.as_bytes())?;
                out.counted(id.as_bytes())?;
            }
        }
        self.walk(|path, NodeRef { node, .. }| {
            out.counted(path.as_bytes())?;
            match &node.data {
                None => out.raw(&NULL.to_be_bytes())?,
                Some(data) => out.counted(data)?,
            }
            out.raw(&node.acl.to_be_bytes())?;
            out.raw(&node.stat.to_bytes())
        })?;
        out.counted(b"/")?;
        out.to.write_all(&out.buffer)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("zxid", &self.zxid)
            .field("digest", &self.digest)
            .field("nodes", &self.len)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

struct Out<W> {
    to: W,
    buffer: Vec<u8>,
}

impl<W: Write> Out<W> {
    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.to.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        if bytes.len() > BUFFER {
            return self.to.write_all(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn count(&mut self, count: usize) -> io::Result<()> {
        let count = i32::try_from(count)
            .map_err(|_| io::Error::other("more than a snapshot can count, 2^31 - 1"))?;
        self.raw(&count.to_be_bytes())
    }

    fn counted(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count(bytes.len())?;
        self.raw(bytes)
    }
}

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
    #[error("the snapshot is damaged before byte {offset}: {reason}")]
    Damaged {
        /// Where, about.
        offset: u64,
        /// What cannot be.
        reason: &'static str,
    },
    /// A node cannot be where it says.
    #[error("the snapshot is damaged before byte {offset}: {reason}: {path:?}")]
    Misplaced {
        /// Where, about.
        offset: u64,
        /// What is wrong with the node.
        reason: &'static str,
        /// The node's path, the beginning of it if it is long.
        path: String,
    },
}

impl Tree {
    /// The tree as it is now, whatever is applied later; see the type for what that costs.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            root: Arc::clone(&self.root),
            lists: self.acls.lists().clone(),
            sessions: self.sessions.clone(),
            zxid: self.last_zxid,
            digest: self.digest,
            len: self.len,
        }
    }

    /// Writes a snapshot of the tree as it is now, see [`Snapshot::write`].
    ///
    /// # Errors
    ///
    /// Those of `to`.
    pub fn write_snapshot(&self, to: impl Write) -> io::Result<()> {
        self.snapshot().write(to)
    }

    /// Restores a tree whose last transaction is `label`.
    ///
    /// Reads exactly the snapshot's own bytes and not one more, in small pieces: hand over a reader
    /// with a buffer. Memory is taken for what was read, not for what a length promises.
    ///
    /// # Errors
    ///
    /// If `from` cannot be read, ends too early, or is not a snapshot. Where Java's snapshots are
    /// known to lack an access list, that is no error, see [`NodeRef::acl`].
    pub fn restore(from: impl Read, label: Zxid) -> Result<Self, SnapshotError> {
        let mut from = Source { from, offset: 0, kept: 0 };
        let mut sessions = Map::default();
        for _ in 0..from.count()? {
            let (id, timeout) = (from.long()?, from.int()?);
            if sessions.insert(id, timeout).is_some() {
                return Err(from.damaged("a session is there twice"));
            }
        }
        let mut lists = acl::AclTable::default();
        for _ in 0..from.count()? {
            let key = from.long()?;
            let list = from.list()?;
            if !lists.insert(key, list.into()) {
                return Err(from.damaged("the key of an access list is there twice, or is -1"));
            }
        }
        let mut path = Vec::new();
        from.path(&mut path)?;
        if !path.is_empty() {
            return Err(from.damaged("the first node is not the root"));
        }
        let root = from.node("")?;
        lists.acquire_key(root.acl);
        lists.reserve(root.acl);
        let mut tree = Self { sessions, acls: lists, last_zxid: label, ..Self::with_root(root) };
        loop {
            let path = from.path(&mut path)?;
            if path == "/" {
                break;
            }
            let node = from.node(path)?;
            let acl = node.acl;
            if !tree.attach(path, node) {
                let reason = "the node's parent is missing, or it is there twice, or it is no path";
                let path = path.chars().take(200).collect();
                return Err(SnapshotError::Misplaced { offset: from.offset, reason, path });
            }
            tree.acls.acquire_key(acl);
            // A key without a list is not given to another one.
            tree.acls.reserve(acl);
        }
        tree.acls.purge();
        tree.quota_restored();
        Ok(tree)
    }
}

/// Lets the heap grow by the data of several nodes at a time. glibc's allocator asks the system for no
/// more than it is asked for itself, except in the first thread: for nodes of a page each, that is a
/// system call each, and takes as long as all the rest. Elsewhere this does nothing, quickly.
fn make_room() {
    drop(black_box(Vec::<u8>::with_capacity(ROOM)));
}

struct Source<R> {
    from: R,
    offset: u64,
    /// How much data was kept since [`make_room`].
    kept: usize,
}

type Restored<T> = Result<T, SnapshotError>;

impl<R: Read> Source<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Restored<()> {
        let offset = self.offset;
        self.from.read_exact(bytes).map_err(|source| {
            if source.kind() == io::ErrorKind::UnexpectedEof {
                SnapshotError::Ended { offset }
            } else {
                SnapshotError::Io { offset, source }
            }
        })?;
        self.offset = offset.saturating_add(bytes.len() as u64);
        Ok(())
    }

    fn chunk<const N: usize>(&mut self) -> Restored<[u8; N]> {
        let mut chunk = [0; N];
        self.fill(&mut chunk)?;
        Ok(chunk)
    }

    fn int(&mut self) -> Restored<i32> {
        self.chunk().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Restored<i64> {
        self.chunk().map(i64::from_be_bytes)
    }

    fn count(&mut self) -> Restored<usize> {
        let count = self.int()?;
        usize::try_from(count).map_err(|_| self.damaged("a negative count or length"))
    }

    /// Puts `length` bytes into `bytes`, instead of what is there.
    fn bytes(&mut self, bytes: &mut Vec<u8>, length: usize) -> Restored<()> {
        bytes.clear();
        while bytes.len() < length {
            let have = bytes.len();
            bytes.resize(length.min(have + have.max(TRUSTED)), 0);
            self.fill(&mut bytes[have..])?;
        }
        Ok(())
    }

    fn path<'a>(&mut self, bytes: &'a mut Vec<u8>) -> Restored<&'a str> {
        let length = self.count()?;
        self.bytes(bytes, length)?;
        str::from_utf8(bytes).map_err(|_| self.damaged("a path that is not UTF-8"))
    }

    fn list(&mut self) -> Restored<Vec<Acl>> {
        let mut list = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..self.count()? {
            let perms = self.int()?;
            let mut word = || {
                // Null may be what an old client sent; it is the same as empty.
                let length = match self.int()? {
                    NULL => 0,
                    length => usize::try_from(length)
                        .map_err(|_| self.damaged("a negative count or length"))?,
                };
                self.bytes(&mut bytes, length)?;
                Ok(jute::word(&bytes))
            };
            list.push(Acl { perms, scheme: word()?, id: word()? });
        }
        Ok(list)
    }

    fn node(&mut self, path: &str) -> Restored<Node> {
        let data = match self.int()? {
            NULL => None,
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| self.damaged("a negative count or length"))?;
                let mut data = Vec::with_capacity(length.min(TRUSTED));
                self.bytes(&mut data, length)?;
                data.shrink_to_fit();
                self.kept += length;
                if self.kept > ROOM {
                    self.kept = 0;
                    make_room();
                }
                Some(Bytes::from(data))
            }
        };
        let acl = self.long()?;
        let stat = StoredStat::from_bytes(&self.chunk()?);
        Ok(Node::new(path, data, acl, stat))
    }

    fn damaged(&self, reason: &'static str) -> SnapshotError {
        SnapshotError::Damaged { offset: self.offset, reason }
    }
}
