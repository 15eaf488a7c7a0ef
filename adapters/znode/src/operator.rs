//! What an operator asks of an ensemble that keeps a tree.

use std::slice;

use bytes::Bytes;
use quorate_core::message::{Identity, Request};
use quorate_core::reconfiguration::Reconfiguration;
use quorate_driver::{Proposal, ReconfigureError, Runtime, Server};

use crate::Tree;
use crate::txn::kind;

/// Changes the membership, as [`Server::reconfigure`] does, also where a Java server leads: that one takes
/// no request without a session, and this one only of an identity that may write `/zookeeper/config`. So it
/// is asked in a session of this server's own, which ends with it, as ZooKeeper's superuser.
///
/// Whoever may call this has been judged before: nobody is asked for a password. One call at a time.
///
/// # Errors
///
/// A [`ReconfigureError`].
pub async fn reconfigure<R: Runtime>(
    server: &Server<R, Tree>,
    asked: &Reconfiguration,
) -> Result<i64, ReconfigureError> {
    let superuser = Identity { scheme: "super".to_owned(), id: String::new() };
    let ask = |op, body: Bytes| {
        let identities = Some(slice::from_ref(&superuser).to_vec());
        server.propose(Proposal { op, body, identities })
    };
    ask(kind::CREATE_SESSION, Bytes::copy_from_slice(&SESSION_MS.to_be_bytes())).await?;
    let changed = ask(Request::RECONFIGURE, asked.encode()).await;
    // Its leader ends it otherwise, when its time is up.
    drop(ask(kind::CLOSE_SESSION, Bytes::new()).await);
    Ok(changed?.zxid.0)
}

/// How long the session may last, in milliseconds: a change waits for a quorum of disks, no longer.
const SESSION_MS: i32 = 30_000;
