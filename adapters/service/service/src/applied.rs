//! What an applied transaction means for the clients of this server: events, sessions that begin and end, replies.
//!
//! Events are sent while the transaction is applied: before the reply to the client that caused it, and before any
//! reply that shows what it did.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::access::{self, READ};
use quorate_znode::acl::Acls;
use quorate_znode::{Applied, ApplyError, ErrorCode, Gone, Outcome, Tree};

use crate::connection::{State, Work};
use crate::marks::may_be_mark;
use crate::service::{Role, Service, Step};
use crate::wire::event::{CHILDREN_CHANGED, CREATED, DATA_CHANGED, DELETED};
use crate::wire::{
    MultiResult, ReplyHeader, WatcherEvent, code, op, put_data, put_multi, put_path, put_stat,
    reply,
};

impl Service {
    /// A transaction is applied, with this effect.
    pub(crate) fn on_txn(
        &mut self,
        step: &mut Step<'_>,
        txn: &Txn,
        effect: &Result<Applied, ApplyError>,
    ) {
        if let Some(reason) = self.unfit_behind(step.state.tree(), txn, effect) {
            return self.halt(step, reason);
        }
        if let Ok(applied) = effect {
            self.digests.compared(txn.zxid, applied.digest, step.state.tree().digest());
        }
        let outcome = effect.as_ref().ok().map(|applied| &applied.outcome);
        if let Some(outcome) = outcome.filter(|_| !self.watches.is_empty()) {
            self.fire(step, outcome);
        }
        let header = &txn.header;
        let is_own = self.submitted.front().is_some_and(|head| head.id == header.request());
        if let Some(Outcome::SessionOpened { timeout }) = outcome {
            match &mut self.role {
                Role::Leader(leading) if !leading.tracker.knows(header.client) => {
                    // If the link ends of the learner that has asked for it, its time-out begins anew.
                    let by = step.state.learner_of(header.client);
                    leading.tracker.add(step.at, header.client, *timeout);
                    // Of whom it is may have been forgotten meanwhile.
                    if by.is_some() || is_own {
                        leading.tracker.touch(step.at, header.client, *timeout, by);
                    }
                }
                Role::Leader(_) => {}
                Role::Idle => self.sessions.see(header.client),
                Role::Learner { .. } => self.sessions.touch(header.client, *timeout),
            }
        }
        let own = if is_own { self.submitted.pop_front() } else { None };
        if own.is_none() {
            self.on_foreign_txn(step, header.client);
            if may_be_mark(header) {
                self.on_marked(step, header.client);
            }
        }
        if let Some(head) = own {
            if let Some(asked) = &head.audited {
                self.audit(step, asked, outcome);
            }
            self.make_room();
            self.on_own(step, head.client, txn.zxid, header, outcome);
        }
        if let Some(Outcome::SessionClosed { deleted }) = outcome {
            self.audit_ended(step, header.client, deleted);
            self.on_session_closed(step, header.client);
        }
        self.go_on(step);
    }

    /// A session has ended: its connections end, without a word but for the one that asked for it.
    fn on_session_closed(&mut self, step: &mut Step<'_>, session: i64) {
        if let Some(leading) = self.leading() {
            leading.tracker.remove(session);
        }
        let Some(&client) = self.by_session.get(&session) else { return };
        let asked = self.clients.get(&client).is_some_and(|connection| {
            let done = |work: &Work| matches!(work, Work::Done(_));
            connection.queue.iter().any(|entry| entry.op == op::CLOSE_SESSION && done(&entry.work))
        });
        if !asked {
            self.close(step.out, client, Close::AfterWriting);
        }
    }

    /// A transaction that a client of this server has asked for.
    fn on_own(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        zxid: Zxid,
        header: &TxnHeader,
        outcome: Option<&Outcome>,
    ) {
        // One that has gone: what it asked for is done all the same.
        let Some(connection) = self.clients.get_mut(&client) else { return };
        if let State::Opening { session, read_only } = connection.state {
            return match outcome {
                Some(Outcome::SessionOpened { .. }) => {
                    self.welcome(step, client, session, read_only);
                }
                _ => self.close(step.out, client, Close::AfterWriting),
            };
        }
        let underway = |work: &Work| matches!(work, Work::Underway { .. });
        let entry = connection.queue.iter_mut().find(|entry| underway(&entry.work));
        let Some(entry) = entry.filter(|entry| entry.xid == header.cxid) else { return };
        let Work::Underway { parts } = &entry.work else { return };
        let failed = outcome.map_or(Some(ErrorCode(code::SYSTEM_ERROR)), alone);
        // Another server has its session: there is no reply, and nothing else either.
        if failed == Some(ErrorCode(code::SESSION_MOVED)) {
            self.counters.moved += 1;
            return self.close(step.out, client, Close::AfterWriting);
        }
        let err = failed.map_or(0, |code| code.0);
        let header = ReplyHeader { xid: entry.xid, zxid, err };
        let bytes = answer(step.state.tree(), header, entry.op, parts, outcome);
        entry.work = Work::Done(bytes);
        self.has_moved(client);
    }

    /// Tells of what has happened those that watch it.
    fn fire(&mut self, step: &mut Step<'_>, outcome: &Outcome) {
        let Outcome::Multi(outcomes) = outcome else {
            return self.fire_one(step, outcome, (0, &Behind::default()));
        };
        if outcome.error().is_some() {
            return;
        }
        let mut gone = Behind::default();
        for (at, outcome) in outcomes.iter().enumerate() {
            if let Outcome::Deleted(Gone { path, acl }) = outcome {
                gone.0.entry(path).or_default().push((at, acl.as_ref()));
            }
        }
        for (at, outcome) in outcomes.iter().enumerate() {
            self.fire_one(step, outcome, (at, &gone));
        }
    }

    /// `behind`: what is deleted behind this element.
    fn fire_one(&mut self, step: &mut Step<'_>, outcome: &Outcome, behind: (usize, &Behind<'_>)) {
        match outcome {
            Outcome::Created { path, .. } => {
                self.tell_of_node(step, CREATED, path, List::OfNode(behind));
                self.tell_parent(step, path, behind);
            }
            Outcome::Deleted(Gone { path, acl }) => {
                self.tell_of_node(step, DELETED, path, List::Last(acl.as_ref()));
                self.tell_parent(step, path, behind);
            }
            Outcome::DataSet { path, .. } => {
                self.tell_of_node(step, DATA_CHANGED, path, List::OfNode(behind));
            }
            Outcome::SessionClosed { deleted } => {
                for Gone { path, acl } in deleted {
                    self.tell_of_node(step, DELETED, path, List::Last(acl.as_ref()));
                    self.tell_parent(step, path, behind);
                }
            }
            Outcome::Multi(_)
            | Outcome::AclSet { .. }
            | Outcome::Checked { .. }
            | Outcome::SessionOpened { .. }
            | Outcome::Failed(_) => {}
        }
    }

    fn tell_of_node(&mut self, step: &mut Step<'_>, kind: i32, path: &str, list: List<'_>) {
        let mut hear = Vec::new();
        self.watches.node(path, &mut hear);
        if kind == DELETED {
            self.watches.children(path, &mut hear);
            hear.sort_unstable();
            hear.dedup();
        }
        self.tell(step, kind, path, &hear, list);
    }

    fn tell_parent(&mut self, step: &mut Step<'_>, path: &str, behind: (usize, &Behind<'_>)) {
        let Some((parent, _)) = path.rsplit_once('/') else { return };
        let parent = if parent.is_empty() { "/" } else { parent };
        let mut hear = Vec::new();
        self.watches.children(parent, &mut hear);
        self.tell(step, CHILDREN_CHANGED, parent, &hear, List::OfNode(behind));
    }

    /// One encoding for all; those that may not read the node hear nothing, and their watch is used up all the same.
    fn tell(
        &mut self,
        step: &mut Step<'_>,
        kind: i32,
        path: &str,
        hear: &[ClientId],
        list: List<'_>,
    ) {
        if hear.is_empty() {
            return;
        }
        let applied = step.state.tree().last_zxid();
        let zxid = if self.options.event_zxids { applied } else { Zxid(-1) };
        let event = WatcherEvent { kind, path: path.into() }.encode(zxid);
        for client in hear {
            let Some(connection) = self.clients.get(client) else { continue };
            let identities = &connection.identities;
            let may = match list {
                List::Last(acl) => self.may_read(acl, identities),
                List::OfNode(behind) => match behind.1.list(path, behind.0) {
                    Some(acl) => self.may_read(acl, identities),
                    None => {
                        let node = step.state.tree().get(path);
                        node.is_some_and(|node| self.may_read(node.acl(), identities))
                    }
                },
            };
            if may {
                self.counters.events += 1;
                self.send_event(step, *client, event.clone());
            } else {
                self.counters.events_kept_back += 1;
            }
        }
    }

    fn may_read(&self, acl: Option<&Acls>, identities: &[quorate_core::message::Identity]) -> bool {
        self.options.skip_acl || access::permitted(acl, READ, Some(identities))
    }
}

/// By which access list it is judged who hears of a node.
#[derive(Clone, Copy)]
enum List<'a> {
    /// The last of a node that has gone.
    Last(Option<&'a Acls>),
    /// That of the node when this element of a multi was carried out: the tree shows how it is behind all of them.
    OfNode((usize, &'a Behind<'a>)),
}

/// The nodes that elements of a multi delete, and their last access lists.
#[derive(Default)]
struct Behind<'a>(BTreeMap<&'a str, Vec<(usize, Option<&'a Acls>)>>);

impl<'a> Behind<'a> {
    /// The list of a node that is deleted behind that element.
    fn list(&self, path: &str, at: usize) -> Option<Option<&'a Acls>> {
        let gone = self.0.get(path)?;
        let next = gone.partition_point(|(deleted, _)| *deleted <= at);
        gone.get(next).map(|(_, acl)| *acl)
    }
}

/// Why a request failed as a whole. A multi that failed says so for each of its elements.
const fn alone(outcome: &Outcome) -> Option<ErrorCode> {
    if let Outcome::Failed(code) = outcome { Some(*code) } else { None }
}

/// The reply to a write.
fn answer(
    tree: &Tree,
    header: ReplyHeader,
    op: i32,
    parts: &[i32],
    outcome: Option<&Outcome>,
) -> Bytes {
    reply(header, |out| match outcome {
        Some(Outcome::Created { path, stat }) => {
            put_path(out, path);
            if op != op::CREATE {
                put_stat(out, stat);
            }
        }
        Some(Outcome::DataSet { path, stat }) => {
            if op == op::RECONFIG {
                let text = tree.get(path).and_then(|node| node.data());
                put_data(out, text.map(|text| &text[..]));
            }
            put_stat(out, stat);
        }
        Some(Outcome::AclSet { stat, .. }) => put_stat(out, stat),
        Some(Outcome::Multi(outcomes)) => {
            let kinds = parts.iter().copied().chain(core::iter::repeat(op::CREATE));
            let results: Vec<_> =
                outcomes.iter().zip(kinds).map(|(outcome, op)| result(outcome, op)).collect();
            put_multi(out, &results);
        }
        Some(
            Outcome::Deleted(_)
            | Outcome::Checked { .. }
            | Outcome::SessionOpened { .. }
            | Outcome::SessionClosed { .. }
            | Outcome::Failed(_),
        )
        | None => {}
    })
}

/// What became of an element of a multi.
fn result(outcome: &Outcome, op: i32) -> MultiResult {
    match outcome {
        Outcome::Created { path, .. } if op == op::CREATE => {
            MultiResult::Created { path: path.clone() }
        }
        Outcome::Created { path, stat } => {
            MultiResult::Created2 { path: path.clone(), stat: *stat }
        }
        Outcome::Deleted(_) => MultiResult::Deleted,
        Outcome::DataSet { stat, .. } => MultiResult::DataSet { stat: *stat },
        Outcome::Checked { .. } => MultiResult::Checked,
        Outcome::Failed(code) => MultiResult::Failed { err: code.0 },
        Outcome::AclSet { .. }
        | Outcome::SessionOpened { .. }
        | Outcome::SessionClosed { .. }
        | Outcome::Multi(_) => MultiResult::Failed { err: code::RUNTIME_INCONSISTENCY },
    }
}
