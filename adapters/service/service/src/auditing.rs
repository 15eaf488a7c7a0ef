//! Tells the audit log what clients of this server have changed.
//!
//! ```text
//!   request ── Asked: who, what ──► submitted ──► applied, with its outcome ──► Output::Audit
//!                                └► refused here ──────────────────────────────────┘
//! ```
//!
//! A change is told by the server that its client is connected to; the deletion of ephemeral nodes with their session by
//! every server. What a server has submitted when it loses its leader may come to pass and is told by none, as in
//! ZooKeeper.

use alloc::boxed::Box;
use alloc::string::ToString;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Note, Output};
use quorate_znode::{Gone, Outcome};

use crate::audit::{Asked, Record, Who, hex, noted, users};
use crate::connection::Connection;
use crate::options::{Audit, AuditFormat};
use crate::service::{Service, Step};
use crate::wire::Request;

impl Service {
    /// What is to be told of a request when its outcome is known; nothing where nothing is told.
    pub(crate) fn to_be_audited(
        &self,
        session: i64,
        connection: &Connection,
        request: &Request,
    ) -> Option<Box<Asked>> {
        let who = Who { session, identities: &connection.identities, ip: connection.remote.ip() };
        self.options.audit.as_ref().and_then(|_| Asked::of(who, request))
    }

    /// A change is refused here.
    pub(crate) fn audit_refused(
        &self,
        step: &mut Step<'_>,
        session: i64,
        client: ClientId,
        request: &Request,
    ) {
        let connection = self.clients.get(&client);
        let asked =
            connection.and_then(|connection| self.to_be_audited(session, connection, request));
        if let Some(asked) = asked {
            self.audit(step, &asked, None);
        }
    }

    /// A change was made, or refused by the leader.
    pub(crate) fn audit(&self, step: &mut Step<'_>, asked: &Asked, outcome: Option<&Outcome>) {
        for record in asked.records(outcome) {
            self.tell_audit(step, &record);
        }
    }

    /// A session has ended, and these nodes with it.
    pub(crate) fn audit_ended(&self, step: &mut Step<'_>, session: i64, deleted: &[Gone]) {
        let Some(Audit { server_user, .. }) = &self.options.audit else { return };
        for Gone { path, .. } in deleted {
            let record = Record {
                session: Some(hex(session)),
                user: Some(server_user),
                operation: "ephemeralZNodeDeletionOnSessionCloseOrExpire",
                znode: Some(path),
                result: "success",
                ..Record::default()
            };
            self.tell_audit(step, &record);
        }
    }

    /// This server starts, or is about to stop.
    pub(crate) fn audit_server(&self, step: &mut Step<'_>, operation: &str, result: &str) {
        let Some(Audit { server_user, .. }) = &self.options.audit else { return };
        let record = Record { user: Some(server_user), operation, result, ..Record::default() };
        self.tell_audit(step, &record);
    }

    /// A client has not proved what it claims. ZooKeeper does not tell this, and its readers do not expect it.
    pub(crate) fn audit_unproved(&self, step: &mut Step<'_>, connection: &Connection) {
        if self.options.audit.as_ref().is_some_and(|audit| audit.format == AuditFormat::Json) {
            let users = users(&connection.identities);
            let record = Record {
                session: connection.session().map(hex),
                user: users.as_deref(),
                ip: Some(connection.remote.ip().to_string()),
                operation: "auth",
                result: "failure",
                ..Record::default()
            };
            self.tell_audit(step, &record);
        }
    }

    /// Something has happened that ZooKeeper does not tell, either.
    pub(crate) fn audit_note(&self, step: &mut Step<'_>, note: &Note) {
        if self.options.audit.as_ref().is_some_and(|audit| audit.format == AuditFormat::Json) {
            step.out.push(Output::Audit(Bytes::from(noted(note, step.wall_ms))));
        }
    }

    fn tell_audit(&self, step: &mut Step<'_>, record: &Record<'_>) {
        let Some(Audit { format, .. }) = self.options.audit else { return };
        step.out.push(Output::Audit(Bytes::from(record.line(format, step.wall_ms))));
    }
}
