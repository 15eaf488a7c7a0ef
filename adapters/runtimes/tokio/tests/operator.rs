//! What the command's operator asks of an ensemble, in a session of the server's own.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;

use quorate_core::id::ServerId;
use quorate_core::membership::Member;
use quorate_core::reconfiguration::Reconfiguration;
use quorate_service::ZooKeeper;
use quorate_tokio::{ServerConfig, start_with};

use crate::superuser::reconfigure;

/// The future is dropped at each of the points at which it waits, and at none.
#[tokio::test]
async fn a_change_of_the_membership_leaves_no_session_whoever_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = ServerConfig::builder(1, dir.path()).voter(1, "127.0.0.1:24491:25491");
    let server =
        start_with(config.reconfigurable(true).build().unwrap(), ZooKeeper::new()).await.unwrap();
    server.ready().await.unwrap();
    // Nobody is there to be made a voter: it is refused in its turn.
    let two = Member::parse(ServerId(2), "127.0.0.1:24492:25492").unwrap();
    let asked = Reconfiguration::change([two], []);
    for looks in [1, 2, 3, usize::MAX] {
        let mut change = pin!(Some(reconfigure(&server, &asked)));
        let mut looked = 0;
        poll_fn(|cx| {
            looked += 1;
            let change = change.as_mut().as_pin_mut().map(|change| change.poll(cx).map(drop));
            change.filter(|_| looked < looks).unwrap_or(Poll::Ready(()))
        })
        .await;
        change.set(None);
        // Behind whatever that has asked for.
        assert!(server.reconfigure(&asked).await.is_err());
        let sessions = server
            .read_local(|zookeeper: &ZooKeeper| zookeeper.tree().sessions().count())
            .await
            .unwrap();
        assert_eq!(sessions, 0, "dropped when it was looked at {looked} times");
    }
    server.shutdown().await.unwrap();
}
