//! What an applied transaction means for the clients of this server: events, sessions that begin and end, replies.
//!
//! Events are sent while the transaction is applied: before the reply to whoever caused it, and before any reply that shows
//! what it did.

use alloc::vec::Vec;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;
use quorate_znode::access::{self, READ};
use quorate_znode::acl::Acls;
use quorate_znode::{Applied, ApplyError, ErrorCode, Gone, Outcome, Tree};

use crate::connection::{State, Work};
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
        let outcome = effect.as_ref().ok().map(|applied| &applied.outcome);
        if let Some(outcome) = outcome.filter(|_| !self.watches.is_empty()) {
            self.fire(step, outcome);
        }
        let header = &txn.header;
        if let Some(Outcome::SessionOpened { timeout }) = outcome {
            match &mut self.role {
                Role::Leader(leading) if !leading.tracker.knows(header.client) => {
                    // If the link ends of the learner that has asked for it, its time-out begins anew.
                    let by = step.state.learner_of(header.client);
                    leading.tracker.add(step.at, header.client, *timeout);
                    leading.tracker.touch(step.at, header.client, *timeout, by);
                }
                Role::Leader(_) | Role::Idle => {}
                Role::Learner { .. } => self.sessions.touch(header.client, *timeout),
            }
        }
        let own = self.submitted.front().copied().filter(|head| head.id == header.request());
        if let Some(head) = own {
            self.submitted.pop_front();
            self.make_room();
            self.on_own(step, head.client, txn.zxid, header, outcome);
        }
        if let Some(Outcome::SessionClosed { .. }) = outcome {
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
            return self.close(step.out, client, Close::AfterWriting);
        }
        let err = failed.map_or(0, |code| code.0);
        let header = ReplyHeader { xid: entry.xid, zxid, err };
        let bytes = answer(step.state.tree(), header, entry.op, parts, outcome);
        entry.work = Work::Done(bytes);
        self.moved.insert(client);
    }

    /// Tells of what has happened those that watch it.
    fn fire(&mut self, step: &mut Step<'_>, outcome: &Outcome) {
        if outcome.error().is_some() {
            return;
        }
        let alone = core::slice::from_ref(outcome);
        let all = if let Outcome::Multi(outcomes) = outcome { outcomes } else { alone };
        for (at, outcome) in all.iter().enumerate() {
            self.fire_one(step, outcome, &all[at + 1..]);
        }
    }

    /// `later`: what the same transaction has done behind it.
    fn fire_one(&mut self, step: &mut Step<'_>, outcome: &Outcome, later: &[Outcome]) {
        match outcome {
            Outcome::Created { path, .. } => {
                self.tell_of_node(step, CREATED, path, later_gone(path, later));
                self.tell_parent(step, path, later);
            }
            Outcome::Deleted(gone) => self.tell_of_deletion(step, gone, later),
            Outcome::DataSet { path, .. } => {
                self.tell_of_node(step, DATA_CHANGED, path, later_gone(path, later));
            }
            Outcome::SessionClosed { deleted } => {
                for gone in deleted {
                    self.tell_of_deletion(step, gone, later);
                }
            }
            Outcome::Multi(_)
            | Outcome::AclSet { .. }
            | Outcome::Checked { .. }
            | Outcome::SessionOpened { .. }
            | Outcome::Failed(_) => {}
        }
    }

    fn tell_of_deletion(&mut self, step: &mut Step<'_>, gone: &Gone, later: &[Outcome]) {
        self.tell_of_node(step, DELETED, &gone.path, Some(gone.acl.as_ref()));
        self.tell_parent(step, &gone.path, later);
    }

    /// `gone`: the last access list of a node that is not there any more.
    fn tell_of_node(
        &mut self,
        step: &mut Step<'_>,
        kind: i32,
        path: &str,
        gone: Option<Option<&Acls>>,
    ) {
        let mut hear = Vec::new();
        self.watches.node(path, &mut hear);
        if kind == DELETED {
            self.watches.children(path, &mut hear);
            hear.sort_unstable();
            hear.dedup();
        }
        self.tell(step, kind, path, &hear, gone);
    }

    fn tell_parent(&mut self, step: &mut Step<'_>, path: &str, later: &[Outcome]) {
        let Some((parent, _)) = path.rsplit_once('/') else { return };
        let parent = if parent.is_empty() { "/" } else { parent };
        let mut hear = Vec::new();
        self.watches.children(parent, &mut hear);
        self.tell(step, CHILDREN_CHANGED, parent, &hear, later_gone(parent, later));
    }

    /// One encoding for all; those that may not read the node hear nothing, and their watch is used up all the same.
    fn tell(
        &mut self,
        step: &mut Step<'_>,
        kind: i32,
        path: &str,
        hear: &[ClientId],
        gone: Option<Option<&Acls>>,
    ) {
        if hear.is_empty() {
            return;
        }
        let event = WatcherEvent { kind, path: path.into() }.encode(Zxid(-1));
        for client in hear {
            let Some(connection) = self.clients.get(client) else { continue };
            let identities = &connection.identities;
            let present = || step.state.tree().get(path).and_then(|node| node.acl());
            if self.may_read(gone.unwrap_or_else(present), identities) {
                self.send(step.out, *client, event.clone());
            }
        }
    }

    fn may_read(&self, acl: Option<&Acls>, identities: &[quorate_core::message::Identity]) -> bool {
        self.options.skip_acl || access::permitted(acl, READ, Some(identities))
    }
}

/// The access list with which a node is deleted by what comes later in its transaction, if it is: until then it has had
/// that list, and the tree does not tell any more.
fn later_gone<'a>(path: &str, later: &'a [Outcome]) -> Option<Option<&'a Acls>> {
    later.iter().find_map(|outcome| match outcome {
        Outcome::Deleted(gone) if gone.path == path => Some(gone.acl.as_ref()),
        Outcome::Deleted(_)
        | Outcome::Created { .. }
        | Outcome::DataSet { .. }
        | Outcome::AclSet { .. }
        | Outcome::Checked { .. }
        | Outcome::SessionOpened { .. }
        | Outcome::SessionClosed { .. }
        | Outcome::Multi(_)
        | Outcome::Failed(_) => None,
    })
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
