//! What ZooKeeper's operations do to a tree of nodes, one after the other, and what they answer: written down apart from
//! the tree that servers have.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::hash::Mix;

/// Codes of ZooKeeper's protocol.
const NO_NODE: i32 = -101;
const BAD_VERSION: i32 = -103;
const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
const NODE_EXISTS: i32 = -110;
const NOT_EMPTY: i32 = -111;
const SESSION_EXPIRED: i32 = -112;
const NOT_REACHED: i32 = -2;

/// What is asked for. `-1` is any version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Create {
        path: String,
        data: Option<Bytes>,
        ephemeral: bool,
        sequential: bool,
    },
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Option<Bytes>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    Multi(Vec<Self>),
    GetData {
        path: String,
    },
    Exists {
        path: String,
    },
    GetChildren {
        path: String,
    },
    /// The session has seen everything that was there when it asked.
    Sync,
    /// The session ends, and its ephemeral nodes with it.
    End,
}

/// What a stat tells that does not depend on when things happened: version, creations and deletions of children,
/// children, owner.
pub(crate) type Shown = (i32, i32, i32, i64);

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Created(String),
    Done,
    Set(i32),
    Data(Option<Bytes>, Shown),
    Stat(Shown),
    Children(Vec<String>, Shown),
    Multi(Vec<Self>),
    Failed(i32),
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    data: Option<Bytes>,
    version: i32,
    /// How many children were created, and how many there are.
    created: i32,
    children: i32,
    /// The session with which it ends, or 0.
    owner: i64,
}

/// The nodes below the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nodes {
    nodes: BTreeMap<String, Node>,
    /// Sessions that have ended: what they ask for is not done.
    ended: BTreeSet<i64>,
}

/// What was there before an operation, so that it can be taken back.
#[derive(Debug, Default)]
pub(crate) struct Undo(Vec<(String, Option<Node>)>, Option<i64>);

impl Nodes {
    /// Does what a session asks for, and tells what it answers.
    pub(crate) fn act(&mut self, session: i64, act: &Act, undo: &mut Undo) -> Told {
        self.tried(session, act, undo).unwrap_or_else(Told::Failed)
    }

    /// Takes back what was done.
    pub(crate) fn take_back(&mut self, undo: Undo) {
        if let Some(session) = undo.1 {
            self.ended.remove(&session);
        }
        for (path, before) in undo.0.into_iter().rev() {
            match before {
                Some(node) => drop(self.nodes.insert(path, node)),
                None => drop(self.nodes.remove(&path)),
            }
        }
    }

    /// A number that equal ones have in common, and practically no others.
    pub(crate) fn hashed(&self) -> u64 {
        let mut mix = Mix::default();
        self.nodes.iter().for_each(|entry| entry.hash(&mut mix));
        self.ended.hash(&mut mix);
        mix.finish()
    }

    fn tried(&mut self, session: i64, act: &Act, undo: &mut Undo) -> Result<Told, i32> {
        if self.ended.contains(&session) {
            return Err(SESSION_EXPIRED);
        }
        match act {
            Act::Create { path, data, ephemeral, sequential } => {
                let above = parent(path);
                // The root is not looked at.
                let mut number = 0;
                if !above.is_empty() {
                    number = self.nodes.get(above).ok_or(NO_NODE)?.created;
                }
                let path = if *sequential { format!("{path}{number:010}") } else { path.clone() };
                if self.nodes.contains_key(&path) {
                    return Err(NODE_EXISTS);
                }
                if self.nodes.get(above).is_some_and(|node| node.owner != 0) {
                    return Err(NO_CHILDREN_FOR_EPHEMERALS);
                }
                self.change(above, undo, |node| {
                    (node.created, node.children) = (node.created + 1, node.children + 1);
                });
                let owner = if *ephemeral { session } else { 0 };
                let node = Node { data: data.clone(), owner, ..Node::default() };
                undo.0.push((path.clone(), self.nodes.insert(path.clone(), node)));
                Ok(Told::Created(path))
            }
            Act::Delete { path, version } => {
                let node = self.expect(path, *version)?;
                if node.children > 0 {
                    return Err(NOT_EMPTY);
                }
                self.remove(path, undo);
                Ok(Told::Done)
            }
            Act::SetData { path, data, version } => {
                let next = self.expect(path, *version)?.version + 1;
                let data = data.clone();
                self.change(path, undo, |node| (node.data, node.version) = (data, next));
                Ok(Told::Set(next))
            }
            Act::Check { path, version } => self.expect(path, *version).map(|_| Told::Done),
            Act::Multi(acts) => Ok(Told::Multi(self.all_or_nothing(session, acts, undo))),
            Act::GetData { path } => {
                let node = self.nodes.get(path).ok_or(NO_NODE)?;
                Ok(Told::Data(node.data.clone(), node.shown()))
            }
            Act::Exists { path } => Ok(Told::Stat(self.nodes.get(path).ok_or(NO_NODE)?.shown())),
            Act::GetChildren { path } => {
                let node = self.nodes.get(path).ok_or(NO_NODE)?;
                let below = format!("{path}/");
                let all = self.nodes.range(below.clone()..);
                let all = all.map_while(|(path, _)| path.strip_prefix(&below));
                let names = all.filter(|name| !name.contains('/')).map(str::to_owned).collect();
                Ok(Told::Children(names, node.shown()))
            }
            Act::Sync => Ok(Told::Done),
            Act::End => {
                undo.1 = self.ended.insert(session).then_some(session);
                let own = |(path, node): (&String, &Node)| {
                    (session != 0 && node.owner == session).then(|| path.clone())
                };
                let all: Vec<String> = self.nodes.iter().filter_map(own).collect();
                all.iter().for_each(|path| self.remove(path, undo));
                Ok(Told::Done)
            }
        }
    }

    fn all_or_nothing(&mut self, session: i64, acts: &[Act], undo: &mut Undo) -> Vec<Told> {
        let (mut done, mut told) = (Undo::default(), Vec::new());
        for act in acts {
            match self.tried(session, act, &mut done) {
                Ok(one) => told.push(one),
                Err(err) => {
                    self.take_back(done);
                    let before = told.iter().map(|_| Told::Failed(0)).collect::<Vec<_>>();
                    let behind = acts.len() - before.len() - 1;
                    let behind = std::iter::repeat_n(Told::Failed(NOT_REACHED), behind);
                    return before.into_iter().chain([Told::Failed(err)]).chain(behind).collect();
                }
            }
        }
        undo.0.extend(done.0);
        told
    }

    fn expect(&self, path: &str, version: i32) -> Result<&Node, i32> {
        let node = self.nodes.get(path).ok_or(NO_NODE)?;
        if version == -1 || version == node.version { Ok(node) } else { Err(BAD_VERSION) }
    }

    fn change(&mut self, path: &str, undo: &mut Undo, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(path) {
            undo.0.push((path.to_owned(), Some(node.clone())));
            change(node);
        }
    }

    fn remove(&mut self, path: &str, undo: &mut Undo) {
        undo.0.push((path.to_owned(), self.nodes.remove(path)));
        self.change(parent(path), undo, |node| node.children -= 1);
    }
}

impl Node {
    const fn shown(&self) -> Shown {
        (self.version, 2 * self.created - self.children, self.children, self.owner)
    }
}

/// Of the root's children it is the empty path.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}
