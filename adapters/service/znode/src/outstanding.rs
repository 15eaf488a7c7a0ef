//! The change records of a leader: how nodes and sessions will be that prepared, unapplied transactions touch.
//!
//! A node that a prepared transaction touches has a record of how it will be then; the newest counts.
//! Records go when their transaction is applied, and all at once when the leadership ends. While a transaction is
//! being prepared, what it has replaced is kept, and put back if it is refused.
//!
//! ```text
//!   put, put … ──► keep   (it is prepared)        or   undo, keep   (its refusal is)
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::acl::Acls;
use crate::digest;
use crate::stat::{Owner, StoredStat};

/// What is prepared and not applied yet.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    /// How each node will be that one of these transactions touches; none if it will not be. Only looked up in:
    /// nothing depends on its order.
    nodes: HashMap<Arc<str>, Newest<Option<Record>>>,
    /// The paths of those that will be ephemeral, by session.
    owned: BTreeMap<i64, BTreeSet<Arc<str>>>,
    /// Whether each session will be open that one of these transactions opens or closes.
    sessions: BTreeMap<i64, Newest<bool>>,
    /// What each of them touches, the oldest first.
    touched: VecDeque<(u64, Touched)>,
    /// What the transaction that is being prepared has replaced, the first first.
    undo: Vec<Replaced>,
    /// The digest of the tree behind what was prepared last.
    digest: u64,
    /// How many transactions were prepared.
    prepared: u64,
    /// How many of these were applied.
    applied: u64,
}

/// What the last transaction to touch something makes of it.
#[derive(Debug)]
struct Newest<T> {
    by: u64,
    value: T,
}

/// What a transaction touches.
#[derive(Debug)]
enum Touched {
    Node(Arc<str>),
    Session(i64),
}

/// What was there before.
#[derive(Debug)]
enum Replaced {
    Node(Arc<str>, Option<Newest<Option<Record>>>),
    Session(i64, Option<Newest<bool>>),
}

/// A node as it will be, as far as it matters here.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) stat: StoredStat,
    /// The CRC of its path and data, see [`digest`].
    pub(crate) content: u32,
    pub(crate) children: usize,
    /// None where a snapshot lacked it.
    pub(crate) acl: Option<Acls>,
}

impl Record {
    pub(crate) const fn owner(&self) -> Owner {
        Owner::from_stored(self.stat.owner)
    }

    /// What the node, which stands at `path`, will add to the digest of the tree.
    pub(crate) fn digest(&self, path: &str) -> u64 {
        digest::of(path, self.content, &self.stat)
    }

    const fn session(&self) -> Option<i64> {
        match self.owner() {
            Owner::Session(session) => Some(session),
            Owner::None | Owner::Container | Owner::Ttl(_) => None,
        }
    }
}

impl Outstanding {
    /// The oldest transaction was applied. One that comes while there is none was not prepared here.
    pub(crate) fn on_applied(&mut self) {
        if self.applied == self.prepared {
            return;
        }
        let by = self.applied;
        self.applied += 1;
        while self.touched.front().is_some_and(|(at, _)| *at == by) {
            let Some((_, touched)) = self.touched.pop_front() else { return };
            match touched {
                Touched::Node(path) => {
                    if self.nodes.get(&path).is_some_and(|newest| newest.by == by) {
                        self.replace(&path, None);
                    }
                }
                Touched::Session(session) => {
                    if self.sessions.get(&session).is_some_and(|newest| newest.by == by) {
                        self.sessions.remove(&session);
                    }
                }
            }
        }
    }

    /// How a node will be that one of them touches; none if none does.
    pub(crate) fn node(&self, path: &str) -> Option<&Option<Record>> {
        self.nodes.get(path).map(|newest| &newest.value)
    }

    /// The paths of the nodes that will be ephemeral with this session, of those that they touch; sorted.
    pub(crate) fn owned(&self, session: i64) -> impl Iterator<Item = &Arc<str>> {
        self.owned.get(&session).into_iter().flatten()
    }

    /// Whether a session will be open that one of them opens or closes; none if none does.
    pub(crate) fn session(&self, id: i64) -> Option<bool> {
        self.sessions.get(&id).map(|newest| newest.value)
    }

    /// Whether nothing is prepared that is not applied, and nothing is kept of what is.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
            && self.owned.is_empty()
            && self.sessions.is_empty()
            && self.touched.is_empty()
    }

    /// The transaction that is being prepared makes this of a node.
    pub(crate) fn put(&mut self, path: &str, record: Option<Record>) {
        let known = self.nodes.get_key_value(path).map(|(path, _)| Arc::clone(path));
        self.put_shared(known.unwrap_or_else(|| path.into()), record);
    }

    /// The same, of a path that is kept somewhere.
    pub(crate) fn put_shared(&mut self, path: Arc<str>, record: Option<Record>) {
        let newest = Newest { by: self.prepared, value: record };
        let before = self.replace(&path, Some(newest));
        self.undo.push(Replaced::Node(path, before));
    }

    /// The transaction that is being prepared opens or closes a session.
    pub(crate) fn put_session(&mut self, id: i64, open: bool) {
        let before = self.sessions.insert(id, Newest { by: self.prepared, value: open });
        self.undo.push(Replaced::Session(id, before));
    }

    /// The transaction that is being prepared shall touch nothing.
    pub(crate) fn undo(&mut self) {
        while let Some(replaced) = self.undo.pop() {
            match replaced {
                Replaced::Node(path, before) => drop(self.replace(&path, before)),
                Replaced::Session(id, None) => drop(self.sessions.remove(&id)),
                Replaced::Session(id, Some(before)) => drop(self.sessions.insert(id, before)),
            }
        }
    }

    /// The digest of a tree, this or what will become of it.
    pub(crate) const fn digest(&self, tree: u64) -> u64 {
        if self.applied == self.prepared { tree } else { self.digest }
    }

    /// The transaction is prepared; the digest of the tree behind it.
    pub(crate) fn keep(&mut self, digest: u64) {
        self.digest = digest;
        let by = self.prepared;
        self.prepared += 1;
        self.touched.extend(self.undo.drain(..).map(|replaced| match replaced {
            Replaced::Node(path, _) => (by, Touched::Node(path)),
            Replaced::Session(id, _) => (by, Touched::Session(id)),
        }));
        // A session with a hundred thousand nodes may have closed.
        self.undo.shrink_to(64);
    }

    fn replace(
        &mut self,
        path: &Arc<str>,
        newest: Option<Newest<Option<Record>>>,
    ) -> Option<Newest<Option<Record>>> {
        let owner = |newest: Option<&Newest<Option<Record>>>| newest?.value.as_ref()?.session();
        let after = owner(newest.as_ref());
        let before = match newest {
            Some(newest) => self.nodes.insert(Arc::clone(path), newest),
            None => self.nodes.remove(path),
        };
        let earlier = owner(before.as_ref());
        if earlier != after {
            if let Some(session) = earlier {
                if let Some(paths) = self.owned.get_mut(&session) {
                    paths.remove(path);
                    if paths.is_empty() {
                        self.owned.remove(&session);
                    }
                }
            }
            if let Some(session) = after {
                self.owned.entry(session).or_default().insert(Arc::clone(path));
            }
        }
        before
    }
}
