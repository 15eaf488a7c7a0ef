//! Logins of clients by SASL, token by token, and what a client without a proof of its identity may not do.
//!
//! | | answered with |
//! |---|---|
//! | a token, where there is no SASL | no error and a null token: clients go on without |
//! | a token that is right so far | the server's token |
//! | a token that is not | -115 and a null token, and the connection ends; -124 where a proof is required |
//! | the same, where who has failed may stay (`allowSaslFailedClients`), and no proof is required | no error and a null token |
//! | anything else, where a proof is required and there is none | -124, and the connection ends |
//!
//! A login belongs to its connection, and there is one of each (ZOOKEEPER-4839: where they share it, one client is taken for
//! the other). What is asked for in its middle is judged without it.
//!
//! In the Java code: `ZooKeeperServer.processSasl`, `AuthenticationHelper`.

use alloc::boxed::Box;

use bytes::Bytes;
use quorate_application::clients::{ClientId, Close};
use quorate_core::zxid::Zxid;
use quorate_sasl::{Acceptor, CLIENTS, Reply};

use crate::proofs::Scheme;
use crate::service::{Service, Step};
use crate::wire::{ReplyHeader, code, failed_sasl, op, put_data, reply};

impl Service {
    /// The next token of a client. Answered at once, ahead of what waits; who it is holds for what is read behind it.
    pub(crate) fn log_in(&mut self, step: &mut Step<'_>, client: ClientId, xid: i32, token: &[u8]) {
        let answer = |token: Option<Bytes>| {
            let header = ReplyHeader { xid, zxid: Zxid::ZERO, err: code::OK };
            reply(header, |out| put_data(out, token.as_deref()))
        };
        let Some(sasl) = self.options.sasl.clone() else {
            return self.send(step.out, client, answer(None));
        };
        let Some(connection) = self.clients.get_mut(&client) else { return };
        let from = connection.remote.ip();
        let new = || Box::new(Acceptor::new(CLIENTS, sasl.nonces.next()));
        let refused = match connection.login.get_or_insert_with(new).step(token, &sasl.users) {
            Ok(Reply::Challenge(token)) => {
                return self.send(step.out, client, answer(Some(token.into())));
            }
            Ok(Reply::Done { user, token }) => {
                let fits = connection.identify("sasl", &user)
                    && (!sasl.super_users.contains(&user) || connection.identify("super", ""));
                if !fits {
                    let refused = ReplyHeader { xid, zxid: Zxid::ZERO, err: code::AUTH_FAILED };
                    self.send(step.out, client, failed_sasl(refused));
                    return self.has_too_many_identities(step, client);
                }
                return self.send(step.out, client, answer(Some(token.into())));
            }
            Err(refused) => refused,
        };
        self.proofs.failed(step.at, Scheme::Sasl, from);
        let stays = sasl.failed_stay && self.options.required_schemes.is_empty();
        if let Some(suppressed) = self.said_logins.permit(step.at) {
            let then = if stays { "it goes on without" } else { "its connection is closed" };
            tracing::warn!(
                event = "sasl.failed", client = client.0, address = %from, %refused, suppressed,
                "a client has not logged in: {then}"
            );
        }
        if stays {
            return self.send(step.out, client, answer(None));
        }
        let err = match self.options.required_schemes.is_empty() {
            true => code::AUTH_FAILED,
            false => code::SESSION_CLOSED_REQUIRE_AUTH,
        };
        let refused = failed_sasl(ReplyHeader { xid, zxid: Zxid::ZERO, err });
        self.send(step.out, client, refused);
        self.close(step.out, client, Close::AfterWriting);
    }

    /// Whether a client has to prove first who it is: it is told so, and its connection ends.
    pub(crate) fn is_barred(
        &mut self,
        step: &mut Step<'_>,
        client: ClientId,
        xid: i32,
        op: i32,
    ) -> bool {
        let required = &self.options.required_schemes;
        let Some(connection) = self.clients.get(&client) else { return false };
        let mut own = connection.identities.iter();
        let proves = required.is_empty() || own.any(|own| required.contains(&own.scheme));
        if proves || matches!(op, op::AUTH | op::SASL) {
            return false;
        }
        if let Some(suppressed) = self.said_logins.permit(step.at) {
            tracing::warn!(
                event = "auth.required", client = client.0, address = %connection.remote.ip(),
                suppressed, "a client has not proved who it is: its connection is closed"
            );
        }
        let err = code::SESSION_CLOSED_REQUIRE_AUTH;
        let refused = reply(ReplyHeader { xid, zxid: Zxid::ZERO, err }, |_| {});
        self.send(step.out, client, refused);
        self.close(step.out, client, Close::AfterWriting);
        true
    }
}
