//! What a client asks for: sorted by who answers it, and in which order.
//!
//! | request | |
//! |---|---|
//! | auth, sasl | answered when it is read |
//! | an operation that is none of a client's | -6 and the end of the connection |
//! | a write that this server's tree forbids, if an operator has it so | refused when it is read |
//! | a write that cannot be read, or that would harm a server | refused here, in its turn: it never reaches a leader |
//! | other writes | submitted in their turn, answered when applied here |
//! | sync | a read point |
//! | everything else | answered from the tree, in its turn |
//!
//! Leaders of ZooKeeper 3.9 stop all writes for ever after one that they cannot decode, and whole ensembles end with some
//! others; such requests go no further than this server.

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use quorate_application::clients::{ClientId, Close};
use quorate_core::id::Origin;
use quorate_core::message::Request as Submission;
use quorate_core::txn::{RequestId, Txn};
use quorate_core::zxid::Zxid;
use quorate_znode::{Tree, access};

use crate::connection::{Entry, State, Work};
use crate::screen::{Screened, longest_body, reworded, screen};
use crate::service::{Role, Service, Step};
use crate::wire::{self, PING_XID, ReplyHeader, Request, RequestHeader, code, op, reply};

impl Service {
    /// A frame of a client.
    pub(crate) fn on_frame(&mut self, step: &mut Step<'_>, client: ClientId, frame: Bytes) {
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let waits = !matches!(connection.state, State::New | State::Open { .. });
        // What waits is counted when it is heard.
        if !waits {
            connection.figures.received += 1;
            self.counters.received += 1;
        }
        match connection.state {
            State::New => self.connect(step, client, &frame),
            // Longer frames are taken of those that have watches to set again: of sessions.
            State::Between | State::Opening { .. } | State::Asking { .. }
                if frame.len() > self.frame_bytes_max =>
            {
                self.close(step.out, client, Close::AfterWriting);
            }
            State::Between | State::Opening { .. } | State::Asking { .. } | State::Kept { .. } => {
                connection.queued += frame.len();
                connection.early.push_back(frame);
                self.has_moved(client);
            }
            State::Open { session } => match wire::split(frame) {
                Ok(_) if self.is_deaf(step, client) => {
                    let why = "nothing could be written to a client for its time-out: cut off";
                    self.cut_off(step, client, why);
                }
                Ok((header, body)) => self.on_request(step, client, session, header, body),
                Err(_) => self.close(step.out, client, Close::AfterWriting),
            },
        }
    }

    /// Whether a client speaks, and has taken nothing of what waits for it for as long as its session may be silent. Not if
    /// it was this server that stood still.
    fn is_deaf(&self, step: &Step<'_>, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(|connection| {
            let patience = connection.patience();
            connection.unwritten.is_stuck(step.at, patience)
                && self.pauses.was_at_work(step.at, patience)
        })
    }

    fn on_request(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        session: i64,
        header: RequestHeader,
        body: Bytes,
    ) {
        let RequestHeader { xid, op } = header;
        let bytes = body.len();
        if let Some(connection) = self.clients.get_mut(&client) {
            (connection.figures.last_op, connection.figures.last_xid) = (op, xid);
        }
        if self.is_barred(step, client, xid, op) {
            return;
        }
        let decoded = match op {
            // Of servers, and of a multi: whatever it says.
            op::CREATE_SESSION | op::CHECK => Ok(None),
            _ => Request::decode(op, &body),
        };
        match decoded {
            Ok(Some(Request::Auth { scheme, auth, .. })) => {
                return self.authenticate(step, client, xid, scheme.as_deref(), &auth);
            }
            Ok(Some(Request::Sasl { token })) => {
                return self.log_in(step, client, xid, &token);
            }
            Ok(None) => {
                // The session was heard all the same: it has its full time-out to come to another connection.
                if self.is_owner(step, client, session, op) {
                    self.touch(step.at, client);
                }
                let header = ReplyHeader { xid, zxid: Zxid(-1), err: code::UNIMPLEMENTED };
                let bytes = reply(header, |_| {});
                self.send(step.out, client, bytes);
                return self.close(step.out, client, Close::AfterWriting);
            }
            Ok(Some(_)) | Err(_) => {}
        }
        if !self.is_owner(step, client, session, op) {
            return;
        }
        self.touch(step.at, client);
        if let Ok(Some(request)) = &decoded {
            if self.is_forbidden_here(step.state.tree(), client, request) {
                self.audit_refused(step, session, client, request);
                let header = ReplyHeader { xid, zxid: Zxid::ZERO, err: code::NO_AUTH };
                return self.send(step.out, client, reply(header, |_| {}));
            }
        }
        let work = match decoded {
            Ok(Some(request)) => self.work(step, client, session, header, request, body),
            Ok(None) | Err(_) => Ok(None),
        };
        let work = match work {
            Ok(Some(work)) => work,
            Ok(None) => Work::Refused(code::MARSHALLING_ERROR),
            Err(err) => Work::Refused(err),
        };
        let xid = if op == op::PING { PING_XID } else { xid };
        if let Some(connection) = self.clients.get_mut(&client) {
            connection.queued += bytes;
            connection.queue.push_back(Entry { xid, op, came: step.at, bytes, work });
            self.has_moved(client);
        }
    }

    /// What there is to do about a request that could be read.
    fn work(
        &self,
        step: &mut Step<'_>,
        client: ClientId,
        session: i64,
        header: RequestHeader,
        request: Request,
        body: Bytes,
    ) -> Result<Option<Work>, i32> {
        if let Request::Sync { path } = request {
            return Ok(Some(Work::Sync { path, id: None, done: false }));
        }
        let Some(connection) = self.clients.get(&client) else { return Ok(None) };
        if !is_write(header.op) {
            return Ok(Some(Work::Read(request)));
        }
        if let Screened::Poison(err) = screen(&request) {
            self.audit_refused(step, session, client, &request);
            return Err(err);
        }
        let longest = longest_body(&request, body.len(), &connection.identities);
        if longest > self.txn_bytes_max.saturating_sub(Txn::HEADER_BYTES) {
            self.audit_refused(step, session, client, &request);
            return Err(code::MARSHALLING_ERROR);
        }
        let body = reworded(&request).map_or(body, |request| {
            let mut body = BytesMut::new();
            request.encode(&mut body);
            body.freeze()
        });
        let id = RequestId { client: session, cxid: header.xid };
        let identities = Some(connection.identities.clone());
        let submission = Submission { id, op: header.op, body, identities };
        let audited = self.to_be_audited(session, connection, &request);
        Ok(Some(Work::Waiting { request: submission, parts: parts(&request), audited }))
    }

    /// Whether the access list that counts for a write forbids it, in this server's own tree; a node that is not here
    /// forbids nothing. Only where an operator wants to spare the leader such requests.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the others are the leader's to judge")]
    fn is_forbidden_here(&self, tree: &Tree, client: ClientId, request: &Request) -> bool {
        if !self.options.eager_acl_check {
            return false;
        }
        let (path, permission) = match request {
            Request::Create { op: op::CREATE | op::CREATE2, path, .. } => {
                (parent_of(path), access::CREATE)
            }
            Request::Delete { path, .. } => (parent_of(path), access::DELETE),
            Request::SetData { path, .. } => (Some(&**path), access::WRITE),
            Request::SetAcl { path, .. } => (Some(&**path), access::ADMIN),
            _ => return false,
        };
        let node = path.and_then(|path| tree.get(path));
        node.is_some_and(|node| !self.may(client, node, permission))
    }

    /// Whether the session is this connection's, as far as a leader can tell of its own clients; other servers' leaders
    /// tell of writes. A session that has moved to another server closes the connection, of one that ends nothing more is
    /// heard.
    fn is_owner(&mut self, step: &mut Step<'_>, client: ClientId, session: i64, op: i32) -> bool {
        if !matches!(self.role, Role::Leader(_)) || op == op::CLOSE_SESSION {
            return true;
        }
        match step.state.check_owner(session, Origin::Service) {
            Ok(()) => true,
            Err(err) => {
                if err == code::SESSION_MOVED {
                    self.counters.moved += 1;
                    self.close(step.out, client, Close::AfterWriting);
                } else if let Some(connection) = self.clients.get_mut(&client) {
                    connection.parts = true;
                }
                false
            }
        }
    }
}

/// The path of a node's parent.
fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent)
}

/// Whether a request becomes a transaction.
const fn is_write(op: i32) -> bool {
    matches!(
        op,
        op::CREATE
            | op::CREATE2
            | op::CREATE_CONTAINER
            | op::CREATE_TTL
            | op::DELETE
            | op::SET_DATA
            | op::SET_ACL
            | op::MULTI
            | op::RECONFIG
            | op::CLOSE_SESSION
    )
}

/// The operations of a multi: the results are told apart by them.
fn parts(request: &Request) -> Vec<i32> {
    let Request::Multi(elements) = request else { return Vec::new() };
    elements.iter().map(Request::op).collect()
}
