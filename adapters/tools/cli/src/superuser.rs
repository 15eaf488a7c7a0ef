//! A change of membership as ZooKeeper's superuser, in a session of this server's own.

use std::pin::pin;
use std::task::{Context, Waker};

use bytes::Bytes;
use quorate_service::ZooKeeper;
use quorate_tokio::core::message::{Identity, Request};
use quorate_tokio::core::reconfiguration::Reconfiguration;
use quorate_tokio::{Proposal, ProposeError, Proposed, ReconfigureError, Server};
use quorate_znode::kind;

/// Changes the membership, as [`Server::reconfigure`] does, also where a Java server leads: that one takes
/// no request without a session, and this one only of an identity that may write `/zookeeper/config`. So it
/// is asked in a session of this server's own, which ends with it, as ZooKeeper's superuser.
///
/// The caller has been authorised before: no password is asked for. One call at a time. Dropping the future does
/// not cancel the change; its session ends then, too.
///
/// # Errors
///
/// A [`ReconfigureError`].
pub(crate) async fn reconfigure(
    server: &Server<ZooKeeper>,
    asked: &Reconfiguration,
) -> Result<i64, ReconfigureError> {
    let session = Session { server, open: true };
    session.ask(kind::CREATE_SESSION, Bytes::copy_from_slice(&SESSION_MS.to_be_bytes())).await?;
    let changed = session.ask(Request::RECONFIGURE, asked.encode()).await;
    session.close().await;
    Ok(changed?.zxid.0)
}

/// A session of the server's own.
struct Session<'s> {
    server: &'s Server<ZooKeeper>,
    /// Its end was not asked for yet.
    open: bool,
}

impl Session<'_> {
    async fn ask(&self, op: i32, body: Bytes) -> Result<Proposed, ProposeError> {
        let superuser = Identity { scheme: "super".to_owned(), id: String::new() };
        let identities = Some(vec![superuser]);
        self.server.propose(Proposal { op, body, identities }).await
    }

    async fn close(mut self) {
        self.open = false;
        drop(self.ask(kind::CLOSE_SESSION, Bytes::new()).await);
    }
}

/// Its leader ends a session when its time is up, if that is a Java server; ours keep it.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // One poll hands it in, behind all that this session has asked for; its outcome is not awaited.
        let close = pin!(self.ask(kind::CLOSE_SESSION, Bytes::new()));
        drop(close.poll(&mut Context::from_waker(Waker::noop())));
    }
}

/// How long the session may last, in milliseconds: a change waits for a quorum of disks, no longer.
const SESSION_MS: i32 = 30_000;
