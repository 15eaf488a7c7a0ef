//! What non-members can make a server hold: memory, connections and time, each within its bound.

use std::time::Duration;

use async_channel::bounded;
use bytes::BytesMut;
use futures_lite::io::AsyncReadExt;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::message::{LearnerInfo, Packet};
use quorate_core::wire;
use quorate_core::zxid::Epoch;

use super::Stage;
use super::line::{Line, NON_MEMBER, introduction, question, running, still_serves};
use crate::Runtime;

/// Anybody may register as an observer and begin a long request. Together they get a bounded part of
/// the leader's memory; who wants more loses its link.
pub async fn requests_that_never_end_share_a_bound<R: Runtime>(stage: Stage<R>) {
    const MEGABYTE: usize = 1 << 20;
    let (ensemble, leader) = running(&stage).await;
    let (closed, closings) = bounded(64);
    for n in 0..40 {
        let mut line = Line::to(&stage, &ensemble, leader, Plane::Quorum).await;
        let mut hello = BytesMut::new();
        let info = LearnerInfo {
            accepted_epoch: Epoch::ZERO,
            id: Some(ServerId(1_000 + n)),
            protocol: LearnerInfo::OTHER_APPLICATION,
            config_version: 0,
        };
        wire::encode_packet(&Packet::ObserverInfo(info), &mut hello);
        line.write(&hello).await;
        // LEADERINFO: from now on longer packets are in order.
        stage.within("LEADERINFO", line.stream.read_exact(&mut [0; 24])).await.unwrap();
        let length = i32::try_from(MEGABYTE).unwrap().to_be_bytes();
        let request = [&1_i32.to_be_bytes()[..], &(-1_i64).to_be_bytes(), &length].concat();
        line.write(&request).await;
        line.write(&vec![0; MEGABYTE - 1]).await;
        let (mut stream, closed) = (line.stream, closed.clone());
        stage.spawn(async move {
            drop(stream.read_to_end(&mut Vec::new()).await);
            closed.send(()).await.ok();
        });
    }
    for nth in 1..=20 {
        stage.within(&format!("the end of link {nth}"), closings.recv()).await.unwrap();
    }
    still_serves(&stage, ensemble).await;
}

pub async fn a_thousand_silent_connections_keep_nobody_out<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    // Nobody gives up by itself.
    ensemble.adjust = |config| config.introduction_timeout = Some(Duration::from_secs(3600));
    let [first, second, third] = ensemble.ids()[..] else { panic!("three servers") };
    ensemble.start(first).await;
    ensemble.start(second).await;
    let (leader, _) = ensemble.agreed().await;
    let mut silent = Vec::new();
    for n in 0..1000 {
        let plane = if n % 4 < 2 { Plane::Election } else { Plane::Quorum };
        silent.push(ensemble.connect([first, second][n % 2], plane).await);
    }
    ensemble.start(third).await;
    assert_eq!(ensemble.agreed().await.0, leader);
    let server = ensemble.server(first);
    stage.until("counting", || server.status().metrics.evicted_introductions > 0).await;
    still_serves(&stage, ensemble).await;
    drop(silent);
}

pub async fn an_introduction_has_a_deadline<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    ensemble.adjust = |config| config.introduction_timeout = Some(Duration::from_millis(50));
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
    line.write(&introduction(NON_MEMBER)[..10]).await;
    line.until_closed("half an introduction").await;
}

pub async fn one_address_has_a_share_of_the_connections<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    ensemble.adjust = |config| {
        config.max_peer_connections = 3;
        config.introduction_timeout = Some(Duration::from_secs(3600));
    };
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    // One port takes them in their order, two ports do not. After the fourth the three are held.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(Line::to(&stage, &ensemble, leader, Plane::Election).await);
    }
    for (refused, plane) in [(1, Plane::Election), (2, Plane::Quorum)] {
        let mut another = Line::to(&stage, &ensemble, leader, plane).await;
        another.until_closed("a connection too many").await;
        assert_eq!(ensemble.server(leader).status().metrics.refused_connections, refused);
    }
    // When they have gone there is room, as soon as the server has noticed.
    drop(held);
    stage
        .within("room again", async {
            let mut piece = [0; 64];
            loop {
                let mut line = Line::to(&stage, &ensemble, leader, Plane::Election).await;
                line.write(&introduction(NON_MEMBER)).await;
                line.write(&question(1)).await;
                if matches!(line.stream.read(&mut piece).await, Ok(1..)) {
                    break;
                }
            }
        })
        .await;
    assert_eq!(ensemble.agreed().await.0, leader);
}
