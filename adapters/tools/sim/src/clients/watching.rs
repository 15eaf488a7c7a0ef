//! What a client watches, and which events it must hear of the transactions that its replies show.
//!
//! A model of ZooKeeper's watches of its own: the server's tables are not looked at. Between two replies a client hears just
//! the events of the transactions between them, in their order.

use std::collections::{BTreeSet, VecDeque};

use quorate_core::id::ServerId;
use quorate_core::zxid::Zxid;
use quorate_service::wire::event::{CHILDREN_CHANGED, CREATED, DATA_CHANGED, DELETED};
use quorate_service::wire::{Request, WatcherEvent, op};

use crate::clients::access::{READ, Who};
use crate::clients::judge::{Change, Judge, event};
use crate::rule::{Rule, Violation, broken};

/// The watches that a client has set, as far as it knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watching {
    data: BTreeSet<String>,
    /// Nodes that were not there.
    exist: BTreeSet<String>,
    child: BTreeSet<String>,
    persistent: BTreeSet<String>,
    recursive: BTreeSet<String>,
    /// The events of everything through this were heard.
    through: Zxid,
    /// Who its client is: it hears of what it may read.
    who: Who,
    /// How many events it was not told for that.
    pub(crate) hidden: u64,
    /// Events that came since the last reply.
    heard: VecDeque<WatcherEvent>,
}

impl Watching {
    /// A connection begins: nothing is watched there.
    pub(crate) fn begin(&mut self, seen: Zxid, who: Who) {
        *self = Self { through: seen, who, ..Self::default() };
    }

    /// An event has come.
    pub(crate) fn hear(&mut self, event: WatcherEvent) {
        self.heard.push_back(event);
    }

    /// These events were heard by `other`, which is of no use any more: what they were for is not watched any more.
    pub(crate) fn forget(&mut self, other: &mut Self) {
        for event in other.heard.drain(..) {
            self.consume(&event);
        }
    }

    /// The connection is lost while replies were held back: what was heard is not watched any more.
    pub(crate) fn give_up(&mut self) {
        for event in std::mem::take(&mut self.heard) {
            self.consume(&event);
        }
    }

    /// A reply shows everything through `zxid`: the events of that have come, in order, and what `request` brings at once.
    pub(crate) fn advance(
        &mut self,
        judge: &Judge,
        server: ServerId,
        zxid: Zxid,
        request: &Request,
    ) -> Result<(), Violation> {
        for (at, change) in judge.changes(self.through, zxid) {
            if let Some(expected) = self.fire(change) {
                self.expect(server, at, &expected)?;
            }
        }
        self.through = self.through.max(zxid);
        self.on_again(judge, server, zxid, request)
    }

    /// The connection is lost: what was heard is a prefix of what had to be heard. What was not is watched on.
    pub(crate) fn lose(&mut self, judge: &Judge, server: ServerId) -> Result<(), Violation> {
        for (at, change) in judge.changes(self.through, Zxid(i64::MAX)) {
            if self.heard.is_empty() {
                return Ok(());
            }
            if let Some(expected) = self.fire(change) {
                self.expect(server, at, &expected)?;
            }
        }
        self.nothing_more(server, judge.last())
    }

    fn expect(
        &mut self,
        server: ServerId,
        at: Zxid,
        expected: &WatcherEvent,
    ) -> Result<(), Violation> {
        match self.heard.pop_front() {
            Some(heard) if heard == *expected => Ok(()),
            Some(heard) => {
                broken(Rule::EventOrder, server, format!("{heard:?}, not {expected:?} of {at}"))
            }
            None => broken(Rule::Watch, server, format!("{expected:?} of {at} is not told")),
        }
    }

    /// No event is left of those that have come.
    pub(crate) fn nothing_more(&self, server: ServerId, zxid: Zxid) -> Result<(), Violation> {
        match self.heard.front() {
            None => Ok(()),
            Some(more) => {
                let detail = format!("{more:?} before a reply of {zxid}, which does not show it");
                broken(Rule::EventOrder, server, detail)
            }
        }
    }

    /// The event of a change, if it is watched, and by one that may read the node. Otherwise its watch is used up all the
    /// same.
    fn fire(&mut self, change: &Change) -> Option<WatcherEvent> {
        let watched = self.consume(&change.event);
        let told = watched && self.who.may(change.acl.as_ref(), READ);
        self.hidden += u64::from(watched && !told);
        told.then(|| change.event.clone())
    }

    /// Whether an event is watched for: from then on no more, unless the watch stays.
    fn consume(&mut self, change: &WatcherEvent) -> bool {
        let path = &change.path;
        let mut hears = self.persistent.contains(path);
        if change.kind == CHILDREN_CHANGED {
            hears |= self.child.remove(path);
        } else {
            hears |= self.data.remove(path) | self.exist.remove(path);
            hears |= self.recursive.iter().any(|above| is_below(path, above));
            if change.kind == DELETED {
                hears |= self.child.remove(path);
            }
        }
        hears
    }

    /// A request that may set a watch was answered; `err` as in its reply.
    pub(crate) fn set(&mut self, request: &Request, err: i32) {
        let done = err == 0;
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others set none")]
        match request {
            Request::GetData { path, watch: true } if done => drop(self.data.insert(path.clone())),
            Request::Exists { path, watch: true } => {
                let set = if done { &mut self.data } else { &mut self.exist };
                set.insert(path.clone());
            }
            Request::GetChildren { path, watch: true }
            | Request::GetChildren2 { path, watch: true }
                if done =>
            {
                self.child.insert(path.clone());
            }
            Request::AddWatch { path, mode } if done => {
                let set = if *mode == 0 { &mut self.persistent } else { &mut self.recursive };
                set.insert(path.clone());
            }
            _ => {}
        }
    }

    /// What sets all of it again on a new connection; none if nothing is watched.
    pub(crate) fn again(&self, relative_zxid: Zxid) -> Option<Request> {
        let list = |set: &BTreeSet<String>| set.iter().cloned().map(Some).collect::<Vec<_>>();
        let all = [&self.data, &self.exist, &self.child, &self.persistent, &self.recursive];
        all.iter().any(|set| !set.is_empty()).then(|| Request::SetWatches {
            op: op::SET_WATCHES2,
            relative_zxid,
            data: list(&self.data),
            exist: list(&self.exist),
            child: list(&self.child),
            persistent: list(&self.persistent),
            recursive: list(&self.recursive),
        })
    }

    /// That, if it is the request, was answered with `zxid`: what has changed was told, and everything else is watched.
    fn on_again(
        &mut self,
        judge: &Judge,
        server: ServerId,
        zxid: Zxid,
        request: &Request,
    ) -> Result<(), Violation> {
        let Request::SetWatches {
            relative_zxid, data, exist, child, persistent, recursive, ..
        } = request
        else {
            return Ok(());
        };
        let since = *relative_zxid;
        for path in data.iter().flatten() {
            match judge.node(path, zxid).map(|node| node.stat.mzxid > since) {
                None => self.expect(server, zxid, &event(DELETED, path))?,
                Some(true) => self.expect(server, zxid, &event(DATA_CHANGED, path))?,
                Some(false) => drop(self.data.insert(path.clone())),
            }
        }
        for path in exist.iter().flatten() {
            if judge.node(path, zxid).is_some() {
                self.expect(server, zxid, &event(CREATED, path))?;
            } else {
                self.exist.insert(path.clone());
            }
        }
        for path in child.iter().flatten() {
            match judge.node(path, zxid).map(|node| node.stat.pzxid > since) {
                None => self.expect(server, zxid, &event(DELETED, path))?,
                Some(true) => self.expect(server, zxid, &event(CHILDREN_CHANGED, path))?,
                Some(false) => drop(self.child.insert(path.clone())),
            }
        }
        self.persistent.extend(persistent.iter().flatten().cloned());
        self.recursive.extend(recursive.iter().flatten().cloned());
        Ok(())
    }
}

/// Whether a node is `above`, or below it.
fn is_below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
