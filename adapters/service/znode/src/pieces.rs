//! Writing a snapshot of the tree in pieces.
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
//! the same for the same tree; Java's nodes come in any order.
//!
//! Between two pieces nothing is kept but where the last one ended.

use std::io::{self, Write};

use bytes::{BufMut, BytesMut};
use thiserror::Error;

use crate::acl::Acl;
use crate::node::Node;
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::walk::Walk;

/// A [`Snapshot`] that is being written.
#[derive(Debug)]
pub struct Pieces {
    snapshot: Snapshot,
    position: Position,
}

/// What was written last.
#[derive(Debug)]
enum Position {
    Nothing,
    /// A session, or their count.
    Session(Option<i64>),
    /// An access list, or their count.
    List(Option<i64>),
    Node(String),
    End,
}

/// A tree has more of something than a snapshot can count, 2^31 - 1.
#[derive(Debug, Error)]
#[error("{0} are more than a snapshot can count, 2^31 - 1")]
pub struct Uncountable(usize);

impl Pieces {
    pub(crate) const fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, position: Position::Nothing }
    }

    /// What is written.
    pub const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Puts the next piece, of some 64 KiB and at most one node's data more, behind what is in `out`; false with the
    /// last one.
    ///
    /// # Errors
    ///
    /// [`Uncountable`].
    pub fn next(&mut self, out: &mut BytesMut) -> Result<bool, Uncountable> {
        let full = out.len() + PIECE_BYTES;
        while out.len() < full {
            self.position = match std::mem::replace(&mut self.position, Position::End) {
                Position::Nothing => {
                    put_count(out, self.snapshot.sessions.len())?;
                    Position::Session(None)
                }
                Position::Session(last) => self.put_sessions(last, full, out)?,
                Position::List(last) => self.put_lists(last, full, out)?,
                Position::Node(last) => {
                    let walk = Walk::behind(&self.snapshot.root, &last);
                    put_nodes(walk, full, out)?
                }
                Position::End => return Ok(false),
            };
        }
        Ok(!matches!(self.position, Position::End))
    }

    fn put_sessions(
        &self,
        mut last: Option<i64>,
        full: usize,
        out: &mut BytesMut,
    ) -> Result<Position, Uncountable> {
        let sessions = &self.snapshot.sessions;
        let rest = last.map_or_else(|| sessions.iter(), |last| sessions.iter_behind(&last));
        for (id, timeout) in rest {
            if out.len() >= full {
                return Ok(Position::Session(last));
            }
            out.put_i64(*id);
            out.put_i32(*timeout);
            last = Some(*id);
        }
        put_count(out, self.snapshot.lists.len())?;
        Ok(Position::List(None))
    }

    fn put_lists(
        &self,
        mut last: Option<i64>,
        full: usize,
        out: &mut BytesMut,
    ) -> Result<Position, Uncountable> {
        let lists = &self.snapshot.lists;
        let rest = last.map_or_else(|| lists.iter(), |last| lists.iter_behind(&last));
        for (key, list) in rest {
            if out.len() >= full {
                return Ok(Position::List(last));
            }
            out.put_i64(*key);
            put_count(out, list.len())?;
            for Acl { perms, scheme, id } in list.iter() {
                out.put_i32(*perms);
                put_counted(out, scheme.as_bytes())?;
                put_counted(out, id.as_bytes())?;
            }
            last = Some(*key);
        }
        put_nodes(Walk::begin(&self.snapshot.root), full, out)
    }
}

fn put_nodes(mut walk: Walk<'_>, full: usize, out: &mut BytesMut) -> Result<Position, Uncountable> {
    while let Some((path, node)) = walk.next() {
        put_node(out, path, node)?;
        if out.len() >= full {
            return Ok(Position::Node(path.to_owned()));
        }
    }
    put_counted(out, b"/")?;
    Ok(Position::End)
}

fn put_node(out: &mut BytesMut, path: &str, node: &Node) -> Result<(), Uncountable> {
    put_counted(out, path.as_bytes())?;
    match &node.data {
        None => out.put_i32(NULL),
        Some(data) => put_counted(out, data)?,
    }
    out.put_i64(node.acl);
    out.put_slice(&node.stat.to_bytes());
    Ok(())
}

fn put_counted(out: &mut BytesMut, bytes: &[u8]) -> Result<(), Uncountable> {
    put_count(out, bytes.len())?;
    out.put_slice(bytes);
    Ok(())
}

fn put_count(out: &mut BytesMut, count: usize) -> Result<(), Uncountable> {
    out.put_i32(i32::try_from(count).map_err(|_| Uncountable(count))?);
    Ok(())
}

impl Snapshot {
    /// The same, to be written in pieces.
    pub const fn pieces(self) -> Pieces {
        Pieces::new(self)
    }

    /// Writes it, in pieces of some 64 KiB and with no more memory than that and the data of one node.
    ///
    /// # Errors
    ///
    /// Those of `to`. What was written until then is useless.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let (mut pieces, mut piece, mut more) = (self.clone().pieces(), BytesMut::new(), true);
        while more {
            more = pieces.next(&mut piece).map_err(io::Error::other)?;
            to.write_all(&piece)?;
            piece.clear();
        }
        Ok(())
    }
}

impl Tree {
    /// Writes a snapshot of the tree as it is now, see [`Snapshot::write`].
    ///
    /// # Errors
    ///
    /// Those of `to`.
    pub fn write_snapshot(&self, to: impl Write) -> io::Result<()> {
        self.snapshot().write(to)
    }
}

/// How much is gathered for a piece.
const PIECE_BYTES: usize = 64 * 1024;
/// What stands for null in place of a length.
const NULL: i32 = -1;
