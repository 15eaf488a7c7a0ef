//! Preparing requests at the leader: each becomes a transaction, or the transaction that refuses it.
//!
//! ```text
//!   request ──► judged by: what was prepared before it and is not applied yet ── else the tree
//!           ──► a transaction that every server can carry out without judging, or an error's
//! ```
//!
//! What would harm a server that reads it is refused like any other request that is wrong, wherever it came from: a
//! check outside a multi, a container's deletion that the leader did not ask for itself, flags of another request,
//! paths of too many names, text that is none in the nodes of a quota, bodies that cannot be read.
//!
//! Behind its body a transaction carries the digest of the tree as it will be then, so that each server finds out whether it
//! holds the same. It counts the zxid of the transaction itself, which the core knows beforehand.
//!
//! What it does not do: it enforces no quotas.

use bytes::{BufMut, BytesMut};
use quorate_core::id::Origin;
use quorate_core::message::Request;
use quorate_core::prepared::{Facts, Prepared, Rejected};

use crate::access;
use crate::closing::close;
use crate::digest;
use crate::judge::{Judge, is_open};
use crate::jute::Reader;
use crate::multi::multi;
use crate::outstanding::Outstanding;
use crate::owners::Owners;
use crate::path;
use crate::refusal::{BAD_ARGUMENTS, NO_NODE, SESSION_EXPIRED, SESSION_MOVED, UNIMPLEMENTED};
use crate::request::{self, unreadable};
use crate::rules::Rules;
use crate::stat::Owner;
use crate::tree::Tree;
use crate::txn::kind;

/// Turns requests into transactions, at the leader: beside the tree, which holds what is applied, it keeps how the
/// nodes and sessions will be that it has prepared for, and by which way the requests of each session come.
///
/// A request costs what it is long, however much is prepared and not applied; to close a session also costs what
/// that session has.
#[derive(Debug, Default)]
pub struct Preparer {
    rules: Rules,
    outstanding: Outstanding,
    owners: Owners,
}

impl Preparer {
    /// Of a server with these settings.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The settings.
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// Makes a transaction of a request that came by `origin`, on top of everything in the tree and everything
    /// prepared since the last [`abandon`](Self::abandon); its body has at most [`Facts::bytes_max`] bytes. One that
    /// is refused becomes a transaction, too ([`Prepared::rejected`]).
    ///
    /// A request with identities is a client's, and its session must be open and its own way be used. One without
    /// is the embedding program's: it may do everything, but creates ephemeral nodes for sessions that are open
    /// only. That a container is deleted only the leader itself may ask, in no session (client 0). What the leader's
    /// service asks for as [an error](kind::ERROR) is one: that the session has moved.
    pub fn prepare(
        &mut self,
        tree: &Tree,
        request: &Request,
        origin: Origin,
        facts: &Facts,
    ) -> Prepared {
        let before = self.outstanding.digest(tree.digest());
        let mut judge = Judge {
            tree,
            outstanding: &mut self.outstanding,
            owners: &mut self.owners,
            request,
            origin,
            rules: self.rules,
            facts,
            digest: before,
        };
        let prepared = judge.judge().and_then(|prepared| {
            let fits = prepared.body.len() <= facts.bytes_max;
            if fits { Ok(prepared) } else { Err(Rejected::TOO_LONG) }
        });
        let digest = judge.digest;
        if prepared.is_ok() {
            self.outstanding.keep(digest);
            self.note_owner(request, origin);
        } else {
            self.outstanding.undo();
            self.outstanding.keep(before);
        }
        prepared.unwrap_or_else(Prepared::rejected)
    }

    fn note_owner(&mut self, request: &Request, origin: Origin) {
        let session = request.id.client;
        match (request.op, origin) {
            (kind::CREATE_SESSION, Origin::Learner(_)) => self.owners.set(session, origin),
            // Of our own clients the first request tells.
            (kind::CREATE_SESSION, Origin::Here | Origin::Service) | (kind::CLOSE_SESSION, _) => {
                self.owners.forget(session);
            }
            _ => {}
        }
    }

    /// A client has come with a session to the server behind `origin`: whether it is open, as far as anything was
    /// prepared. From then on its requests come by this way only.
    pub fn revalidate(&mut self, tree: &Tree, session: i64, origin: Origin) -> bool {
        let open = self.is_open(tree, session);
        if open {
            self.owners.set(session, origin);
        }
        open
    }

    /// Whether a session is open, as far as anything was prepared.
    pub fn is_open(&self, tree: &Tree, session: i64) -> bool {
        is_open(tree, &self.outstanding, session)
    }

    /// Whether what closes the session is prepared and not applied.
    pub fn is_closing(&self, session: i64) -> bool {
        self.outstanding.session(session) == Some(false)
    }

    /// By which way the requests of a session come, if it is known. A link that is gone stays the owner until the
    /// session is [revalidated](Self::revalidate).
    pub fn owner(&self, session: i64) -> Option<Origin> {
        self.owners.get(session)
    }

    /// Whether a request of this session may come by `origin`; reads and pings of the leader's own clients are
    /// asked so, writes when they are [prepared](Self::prepare). If the owner is not known yet, it is this.
    ///
    /// # Errors
    ///
    /// -112 if the session is not open, -118 if its client writes by another way.
    pub fn check_owner(
        &mut self,
        tree: &Tree,
        session: i64,
        origin: Origin,
    ) -> Result<(), Rejected> {
        if !is_open(tree, &self.outstanding, session) {
            return Err(SESSION_EXPIRED);
        }
        self.owners.check(session, origin)
    }

    /// The oldest transaction that was prepared is applied to the tree. One that comes while there is none was not
    /// prepared here.
    pub fn on_applied(&mut self) {
        self.outstanding.on_applied();
    }

    /// Whether everything that was prepared is applied, and nothing is kept of it.
    pub fn is_settled(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Forgets what was prepared and not applied, and all owners: this server leads no more.
    pub fn abandon(&mut self) {
        self.outstanding = Outstanding::default();
        self.owners = Owners::default();
    }
}

impl Judge<'_> {
    fn judge(&mut self) -> Result<Prepared, Rejected> {
        let (session, kind) = (self.request.id.client, self.request.op);
        let mut reader = Reader::new(&self.request.body);
        match kind {
            kind::CREATE_SESSION => {
                let timeout = reader.int().map_err(unreadable)?;
                self.open_session(session)?;
                let mut body = BytesMut::with_capacity(4 + digest::BYTES);
                body.put_i32(timeout);
                return Ok(self.made(kind, body));
            }
            kind::CLOSE_SESSION => {
                let body = close(self, session);
                return Ok(self.made(kind, body));
            }
            kind::RECONFIG => {
                self.check_session(false)?;
                let node = self.record(path::CONFIG).ok_or(NO_NODE)?;
                return Ok(match self.permit(&node, access::WRITE) {
                    Ok(()) => Prepared::reconfiguration(self.request),
                    Err(reason) => Prepared::reconfiguration_denied(self.request, reason),
                });
            }
            kind::CHECK => return Err(UNIMPLEMENTED),
            kind::ERROR if matches!(self.origin, Origin::Service) => return Err(SESSION_MOVED),
            kind::DELETE_CONTAINER if session != 0 || matches!(self.origin, Origin::Learner(_)) => {
                return Err(UNIMPLEMENTED);
            }
            _ => {}
        }
        // The transaction is a little longer than the request.
        let capacity = (self.request.body.len() + 32 + digest::BYTES).min(self.facts.bytes_max);
        if kind == kind::MULTI {
            let writes = request::multi(&mut reader, self.rules)?;
            self.check_session(false)?;
            let mut body = BytesMut::with_capacity(capacity);
            multi(self, &writes, &mut body)?;
            return Ok(self.made(kind, body));
        }
        let write = request::write(kind, &mut reader).map_err(unreadable)?.ok_or(UNIMPLEMENTED)?;
        let mut body = BytesMut::with_capacity(capacity);
        self.write(&write, &mut body)?;
        Ok(self.made(kind, body))
    }

    /// A session that is known gets another timeout; one that is closing stays closed, and no client opens one
    /// within its own.
    fn open_session(&mut self, session: i64) -> Result<(), Rejected> {
        let prepared = self.outstanding.session(session);
        if prepared == Some(false) {
            return Err(SESSION_EXPIRED);
        }
        let open = is_open(self.tree, self.outstanding, session);
        if open && self.request.identities.is_some() {
            return Err(UNIMPLEMENTED);
        }
        // What it would own no server could tell from containers and the like.
        if Owner::from_stored(session) != Owner::Session(session) {
            return Err(BAD_ARGUMENTS);
        }
        self.outstanding.put_session(session, true);
        Ok(())
    }
}
