//! Connections that claim the ids of voters, beside Java ZooKeeper servers: non-members end no link, and a Java server
//! that was killed has its link again.
//!
//! Needs Debian's `zookeeper` and a Java runtime; skipped without, see [`java::available`].
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]
#![allow(clippy::print_stdout, reason = "how long it took, and why a test was skipped")]

use crate::java;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::within;
use crate::mixed::{Java, Kind, Mixed, POLL, Quorate, established};
use bytes::{Bytes, BytesMut};
use quorate_core::address::HostPort;
use quorate_core::id::ServerId;
use quorate_core::message::{Introduction, Mark, Notification};
use quorate_core::vote::{Round, ServerState, Standing, Vote};
use quorate_core::wire;
use quorate_core::zxid::{Epoch, Zxid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

/// Says at the election port of `target` that it is `claimed` and has the best of all votes, from an address that
/// no member is configured with; returns when it was hung up.
async fn claim(mixed: &Mixed, target: ServerId, claimed: ServerId) {
    let at = mixed.membership.member(target).unwrap().election_address();
    let to = SocketAddr::new(at.host.parse().unwrap(), at.port);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 7], 0))).unwrap();
    let mut stream = within("connect", socket.connect(to)).await.unwrap();
    let address = HostPort { host: "127.0.0.7".into(), port: 9 };
    let introduction = Introduction { id: claimed, addresses: vec![address] };
    let vote = Vote { peer_epoch: Epoch(9), zxid: Zxid(9 << 32), leader: claimed };
    let standing = Standing { state: ServerState::Looking, vote, round: Round(99) };
    let (version, mark) = (Notification::VERSION, Mark::NONE);
    let mut bytes = BytesMut::from(&wire::encode_introduction(&introduction)[..]);
    let forged = Notification { standing, version, config: Bytes::new(), mark };
    wire::encode_notification(&forged, &mut bytes);
    stream.write_all(&bytes).await.unwrap();
    // A reset is an end, too.
    drop(within("the end", stream.read_to_end(&mut Vec::new())).await);
}

/// Waits until a quorate server has links with all others.
async fn linked(mixed: &Mixed, id: ServerId) {
    let all = async {
        while mixed.quorate(id).status().peer.linked.len() < 2 {
            tokio::time::sleep(POLL).await;
        }
    };
    within("links", all).await;
}

/// The quorate server between is told by non-members that they are the smaller and the larger Java server; then each of
/// these is killed, and comes back.
async fn non_members_and_restarts(order: [i64; 3]) {
    if !java::available() {
        return;
    }
    const KINDS: [Kind; 3] = [Java, Quorate, Java];
    let (mut mixed, leader) = established(KINDS, order).await;
    let ours = ServerId(2);
    linked(&mixed, ours).await;
    let before = mixed.quorate(ours).status().peer;
    for claimed in [ServerId(1), ServerId(3), ServerId(3), ServerId(1)] {
        claim(&mixed, ours, claimed).await;
        linked(&mixed, ours).await;
    }
    assert_eq!(mixed.agreed("after the claims").await, leader);
    let after = mixed.quorate(ours).status().peer;
    assert_eq!((after.round, after.current_epoch), (before.round, before.current_epoch));
    for killed in [ServerId(1), ServerId(3)] {
        mixed.kill(killed).await;
        mixed.agreed(&format!("without {killed}")).await;
        mixed.start(killed).await;
        mixed.up(killed).await;
        let begun = Instant::now();
        linked(&mixed, ours).await;
        let waited = begun.elapsed();
        println!("server {killed} is linked {waited:?} after it takes part in elections");
        assert!(waited < Duration::from_secs(3), "{waited:?}");
        mixed.agreed(&format!("with {killed} back")).await;
        claim(&mixed, ours, killed).await;
        linked(&mixed, ours).await;
    }
    mixed.agreed("in the end").await;
}

#[tokio::test]
async fn non_members_end_no_link_of_a_quorate_leader_between_java_servers() {
    non_members_and_restarts([2, 1, 3]).await;
}

#[tokio::test]
async fn non_members_end_no_link_of_a_quorate_follower_between_java_servers() {
    non_members_and_restarts([3, 2, 1]).await;
}
