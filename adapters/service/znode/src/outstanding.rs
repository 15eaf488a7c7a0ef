//! The change records of a leader: how nodes and sessions will be that prepared, unapplied transactions touch.
//!
//! A node that a prepared transaction touches has a record of how it will be then; the newest counts.
//! Records go when their transaction is applied, and all at once when the leadership ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::acl::Acls;
use crate::stat::Owner;

/// What is prepared and not applied yet.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    /// How each node will be that one of these transactions touches; none if it will not be.
    nodes: BTreeMap<Arc<str>, Newest<Option<Record>>>,
    /// Whether each session will be open that one of these transactions opens or closes.
    sessions: BTreeMap<i64, Newest<bool>>,
    /// What each of them touches, the oldest first.
    touched: VecDeque<Touched>,
    /// How many transactions before these were prepared and applied.
    applied: u64,
}

/// What the last transaction to touch something makes of it.
#[derive(Debug)]
struct Newest<T> {
    by: u64,
    value: T,
}

/// What one transaction touches.
#[derive(Debug, Default)]
struct Touched {
    nodes: Vec<Arc<str>>,
    session: Option<i64>,
}

/// A node as it will be, as far as it matters here.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) version: i32,
    pub(crate) cversion: i32,
    pub(crate) owner: Owner,
    pub(crate) children: usize,
    pub(crate) acl: Acls,
}

impl Outstanding {
    /// The oldest transaction was applied. One that comes while there is none was not prepared here.
    pub(crate) fn on_applied(&mut self) {
        let Some(touched) = self.touched.pop_front() else { return };
        let by = self.applied;
        self.applied += 1;
        for path in touched.nodes {
            if self.nodes.get(&path).is_some_and(|newest| newest.by == by) {
                self.nodes.remove(&path);
            }
        }
        if let Some(session) = touched.session {
            if self.sessions.get(&session).is_some_and(|newest| newest.by == by) {
                self.sessions.remove(&session);
            }
        }
    }

    /// How a node will be that one of them touches; none if none does.
    pub(crate) fn node(&self, path: &str) -> Option<&Option<Record>> {
        self.nodes.get(path).map(|newest| &newest.value)
    }

    /// How the nodes will be that they touch.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, Option<&Record>)> {
        self.nodes.iter().map(|(path, newest)| (path, newest.value.as_ref()))
    }

    /// Whether a session will be open that one of them opens or closes; none if none does.
    pub(crate) fn session(&self, id: i64) -> Option<bool> {
        self.sessions.get(&id).map(|newest| newest.value)
    }

    /// Another was prepared: this is what it changes, nothing if it is an error's.
    pub(crate) fn prepared(&mut self, changes: Changes) {
        let (by, mut touched) = (self.applied + self.touched.len() as u64, Touched::default());
        for (path, value) in changes.nodes {
            touched.nodes.push(Arc::clone(&path));
            self.nodes.insert(path, Newest { by, value });
        }
        if let Some((session, value)) = changes.session {
            touched.session = Some(session);
            self.sessions.insert(session, Newest { by, value });
        }
        self.touched.push_back(touched);
    }
}

/// What the transaction that is being prepared changes.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) nodes: Vec<(Arc<str>, Option<Record>)>,
    pub(crate) session: Option<(i64, bool)>,
}
